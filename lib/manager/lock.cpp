#include "core/base/hash.hpp"
#include "held_leases.hpp"

#include <redlock/lock.hpp>

#include <stdexcept>

namespace redlock { inline namespace REDLOCK_ABI {

namespace {

void end_lease(const std::shared_ptr<detail::lease_handle>& handle, bool release) noexcept {
    if (!handle || !handle->end_once()) {
        return;
    }
    try {
        if (const auto manager = handle->manager()) {
            manager->drop(handle, release);
        }
    } catch (...) {
        // No memory for the message: the lease ends by its ttl.
    }
}

const detail::lease_handle& checked(const std::shared_ptr<detail::lease_handle>& handle) {
    if (!handle) {
        throw std::logic_error("redlock::lock: the handle is empty (never acquired, moved from or "
                               "abandoned): check valid() first");
    }
    return *handle;
}

} // namespace

lock::lock(std::shared_ptr<detail::lease_handle> handle) noexcept : handle_(std::move(handle)) {}

lock& lock::operator=(lock&& other) noexcept {
    if (this != &other) {
        end_lease(handle_, true);
        handle_ = std::move(other.handle_);
    }
    return *this;
}

lock::~lock() {
    end_lease(handle_, true);
}

void lock::abandon() noexcept {
    end_lease(handle_, false);
    handle_.reset();
}

bool lock::held() const noexcept {
    return handle_ && handle_->now() < handle_->held_until();
}

time_point lock::deadline() const noexcept {
    return handle_ ? time_point(clock::duration(handle_->deadline.load(std::memory_order_relaxed)))
                   : time_point::min();
}

std::chrono::nanoseconds lock::remaining() const noexcept {
    if (!handle_) {
        return std::chrono::nanoseconds::zero();
    }
    const time_point until = handle_->held_until();
    const time_point now = handle_->now();
    return until > now ? until - now : std::chrono::nanoseconds::zero();
}

std::string_view lock::resource() const {
    return checked(handle_).resource();
}

std::size_t lock::slot() const {
    const std::span<const std::uint32_t> numbers = slots();
    if (numbers.empty()) {
        throw std::logic_error("redlock::lock: slot() of a lock on a resource: only a lock on "
                               "redlock::slots has one");
    }
    return numbers.front();
}

std::span<const std::uint32_t> lock::slots() const {
    return checked(handle_).slots();
}

std::string_view lock::secret() const {
    return checked(handle_).token();
}

std::string lock::owner_digest() const {
    return core::digest_of(secret());
}

std::uint64_t lock::fencing_token() const {
    const std::optional<std::uint64_t> number = checked(handle_).fencing_token();
    if (!number) {
        throw std::logic_error("redlock::lock: fencing_token() of a lock without one: set "
                               "acquire_options::fencing");
    }
    return *number;
}

bool lock::has_fencing_token() const {
    return checked(handle_).fencing_token().has_value();
}

lock::executor_type lock::get_executor() const {
    return checked(handle_).io();
}

void detail::loss_listener::listen(const lock& mine, const std::shared_ptr<loss_listener>& to) {
    if (const auto manager = mine.handle_->manager()) {
        manager->listen(*mine.handle_, to);
    } else {
        to->lost(to, diagnostics());
    }
}

namespace {

// If the manager is gone, its connections are gone as well: the lock is lost, and no master can be
// asked.
template <typename... Results>
void end_alone(
    const detail::lease_handle& handle,
    boost::asio::any_completion_handler<void(error_code, Results...)>&& done,
    const error_code& error,
    Results... results) {
    detail::complete(detail::home(handle.io()), std::move(done), error, results...);
}

// Without a ttl: a downgrade.
void extend(
    std::shared_ptr<detail::lease_handle> handle,
    std::optional<std::chrono::milliseconds> ttl,
    detail::diagnostics_sink votes,
    boost::asio::any_completion_handler<void(error_code, extend_result)> done) {
    if (const auto manager = handle->manager()) {
        manager->extend(std::move(handle), ttl, votes, std::move(done));
        return;
    }
    const bool held = handle->stage == detail::lease_handle::phase::held;
    const error_code error = held ? errc::closed : handle->why_not_held();
    end_alone(*handle, std::move(done), error, extend_result::extended);
}

} // namespace

void lock::start_extend(
    handle_ptr handle, std::chrono::milliseconds ttl, sink votes, handler<extend_result> done) {
    extend(std::move(handle), ttl, votes, std::move(done));
}

void lock::start_downgrade(handle_ptr handle, sink votes, handler<> done) {
    extend(
        std::move(handle),
        std::nullopt,
        votes,
        detail::adapt(std::move(done), [](auto caller, error_code error, extend_result) {
            std::move(caller)(error);
        }));
}

void lock::start_release(handle_ptr handle, sink votes, handler<release_result> done) {
    if (const auto manager = handle->manager()) {
        manager->release(std::move(handle), votes.on({}), std::move(done));
        return;
    }
    handle->end_once();
    end_alone(*handle, std::move(done), {}, handle->result.value_or(release_result::uncertain));
}

void lock::start_wait_lost(handle_ptr handle, sink votes, handler<loss_reason> done) {
    if (const auto manager = handle->manager()) {
        manager->wait_lost(std::move(handle), votes.on({}), std::move(done));
        return;
    }
    using phase = detail::lease_handle::phase;
    if (handle->stage == phase::released) {
        end_alone(*handle, std::move(done), errc::released, loss_reason::none);
    } else {
        const bool lost = handle->stage == phase::lost;
        end_alone(*handle, std::move(done), {}, lost ? handle->reason : loss_reason::closed);
    }
}

}} // namespace redlock::REDLOCK_ABI
