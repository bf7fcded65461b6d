#include "blocking_wait.hpp"

#include <redlock/redis_lock.hpp>

#include <boost/asio/as_tuple.hpp>

#include <algorithm>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

namespace asio = boost::asio;

redis_lock::redis_lock(manager& owner, std::string resource, acquire_options options)
    : manager_(owner),
      resource_(std::move(resource)),
      options_(options) {
    // Readers have no owner to query.
    detail::shared_manager(owner.async()).require(resource_, options_, "redis_lock");
}

// The object has at most one lock. A lost lock is dropped, so that the next one can be acquired.
template <typename Begin>
error_code redis_lock::take(Begin begin, const std::stop_token& stop) {
    if (lock_.held()) {
        detail::throw_error(errc::would_deadlock);
    }
    lock_ = {};
    auto [error, taken] = manager_.call(
        [&](auto token) {
            return begin(with_diagnostics(last_attempt_, asio::as_tuple(std::move(token))));
        },
        stop);
    if (!error) {
        lock_ = std::move(taken);
        lost_ = std::stop_source();
        lock_.async_wait_lost([lost = lost_](error_code failure, loss_reason) mutable {
            if (!failure) {
                lost.request_stop();
            }
        });
    }
    return error;
}

bool redis_lock::acquire(wait_for wait, std::stop_token stop) {
    acquire_options options = options_;
    options.wait = wait;
    const auto begin = [&](auto token) {
        return manager_.async().async_acquire(resource_, options, std::move(token));
    };
    return detail::is_acquired(take(begin, stop), last_attempt_);
}

bool redis_lock::acquire_as(std::string lock_token) {
    const auto begin = [&](auto token) {
        return manager_.async().async_acquire_as(resource_, lock_token, options_, std::move(token));
    };
    return detail::is_acquired(take(begin), last_attempt_);
}

void redis_lock::attach(std::string lock_token) {
    const auto begin = [&](auto token) {
        return manager_.async().async_attach(resource_, lock_token, options_, std::move(token));
    };
    if (const error_code error = take(begin)) {
        std::rethrow_exception(detail::explained(error, last_attempt_));
    }
}

lock_status redis_lock::query() {
    return manager_.call(
        [&](auto token) { return manager_.async().async_query(resource_, std::move(token)); });
}

bool redis_lock::locked() {
    const lock_status status = query();
    if (status.state != lock_state::undecided) {
        return status.state == lock_state::held;
    }
    // A majority replies but does not agree: some owner holds a part of the masters.
    const auto answered =
        std::ranges::count_if(status.masters, [](const master_lock_status& master) {
            return master.vote == vote::held || master.vote == vote::absent
                   || master.vote == vote::owned_by_other;
        });
    if (2 * static_cast<std::size_t>(answered) <= status.masters.size()) {
        detail::throw_error(errc::no_quorum);
    }
    return true;
}

bool redis_lock::owned() {
    if (!lock_.valid()) {
        return false;
    }
    const lock_status status = query();
    return status.state == lock_state::held && status.owner == lock_.owner();
}

void redis_lock::require_lock() const {
    if (!lock_.valid()) {
        detail::throw_error(errc::not_locked);
    }
}

extend_result redis_lock::extend(std::chrono::milliseconds additional) {
    require_lock();
    using std::chrono::milliseconds;
    const auto left = std::max(
        std::chrono::ceil<milliseconds>(lock_.deadline() - clock::now()), milliseconds::zero());
    return extend_to(
        left + std::min(additional, milliseconds::max() - left)); // a longer ttl is refused there
}

extend_result redis_lock::extend_to(std::chrono::milliseconds ttl) {
    require_lock();
    const auto [error, how] = manager_.call([&](auto token) {
        return lock_.async_extend(
            ttl, with_diagnostics(last_attempt_, asio::as_tuple(std::move(token))));
    });
    if (error) {
        std::rethrow_exception(detail::explained(error, last_attempt_));
    }
    return how;
}

release_result redis_lock::release() {
    require_lock();
    redlock::lock ended = std::move(lock_);
    return manager_.call([&](auto token) { return ended.async_release(std::move(token)); });
}

std::string redis_lock::hand_off() {
    require_lock();
    if (!lock_.held()) {
        detail::throw_error(errc::lost);
    }
    std::string token(lock_.token());
    lock_.abandon();
    return token;
}

}}} // namespace redlock::REDLOCK_ABI::blocking
