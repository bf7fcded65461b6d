#include <redlock/blocking.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

struct lock::state {
    explicit state(const manager& owner) : locks(owner) {}

    manager locks; // may end before
    redlock::lock handle;
    std::stop_source lost;
};

lock::lock() noexcept = default;
lock::lock(std::unique_ptr<state> made) noexcept : state_(std::move(made)) {}
lock::lock(lock&& other) noexcept = default;

lock& lock::operator=(lock&& other) noexcept {
    if (this != &other) {
        const lock old(std::move(*this));
        state_ = std::move(other.state_);
    }
    return *this;
}

lock::~lock() {
    if (!state_ || !state_->handle.valid() || state_->locks.on_own_thread()) {
        return; // the handle releases in the background
    }
    try {
        release();
    } catch (...) { // NOLINT(bugprone-empty-catch): closed, or no memory: the lease expires
    }
}

redlock::lock& lock::async() const {
    if (!state_) {
        throw std::logic_error("redlock::blocking::lock: it is empty (never acquired, or moved "
                               "from)");
    }
    return state_->handle;
}

extend_result lock::extend(std::chrono::milliseconds ttl) {
    redlock::lock& mine = async();
    return state_->locks.call([&](auto token) { return mine.async_extend(ttl, std::move(token)); });
}

release_result lock::release() {
    redlock::lock& mine = async();
    return state_->locks.release(mine);
}

bool lock::held() const noexcept {
    return state_ && state_->handle.held();
}

std::stop_token lock::lost() const {
    return state_ ? state_->lost.get_token() : std::stop_token();
}

std::uint64_t lock::fencing_token() const {
    return async().fencing_token();
}

std::string_view lock::secret() const {
    return async().secret();
}

lock manager::acquire(target wanted, acquire_options options, std::stop_token stop) {
    auto made = std::make_unique<lock::state>(*this);
    diagnostics why;
    if (const error_code error =
            take(std::move(wanted), options, stop, made->handle, {&why, true})) {
        std::rethrow_exception(detail::explained(error, std::move(why)));
    }
    made->handle.async_wait_lost([lost = made->lost](error_code failure, loss_reason) mutable {
        if (!failure) {
            lost.request_stop();
        }
    });
    return lock(std::move(made));
}

}}} // namespace redlock::REDLOCK_ABI::blocking
