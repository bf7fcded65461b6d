// What the blocking locks have in common: calls that block, and a wait first for the threads of
// this process, then for the masters, with one limit for both.

#pragma once

#include <redlock/blocking.hpp>
#include <redlock/diagnostics.hpp>
#include <redlock/options.hpp>

#include <boost/asio/as_tuple.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class blocking_wait {
public:
    explicit blocking_wait(wait_for limit)
        : limit_(limit),
          endless_(limit.limit() > long_enough),
          end_(clock::now() + std::min(limit.limit(), long_enough)) {}

    /// Returns whether `open` came true before the end and before a stop.
    template <typename Open>
    bool for_threads(
        std::condition_variable_any& changed,
        std::unique_lock<std::mutex>& lock,
        const std::stop_token& stop,
        Open open) const {
        return endless_ ? changed.wait(lock, stop, open)
                        : changed.wait_until(lock, stop, end_, open);
    }

    /// Returns what is left of the wait.
    wait_for for_masters() const {
        using std::chrono::milliseconds;
        if (endless_ || limit_ == wait_for::none()) {
            return limit_;
        }
        return std::max(std::chrono::ceil<milliseconds>(end_ - clock::now()), milliseconds::zero());
    }

private:
    using clock = std::chrono::steady_clock;
    // The clock could not represent the end of a longer wait.
    static constexpr std::chrono::milliseconds long_enough = std::chrono::hours(24 * 365);

    wait_for limit_;
    bool endless_;
    clock::time_point end_;
};

/// Acquires the lock from the masters. `why` gets the votes.
inline std::tuple<error_code, lock> acquire_blocking(
    blocking::manager& owner,
    const std::string& resource,
    const acquire_options& options,
    diagnostics& why,
    const std::stop_token& stop) {
    return owner.call(
        [&](auto token) {
            return owner.async().async_acquire(
                resource, options, with_diagnostics(why, boost::asio::as_tuple(std::move(token))));
        },
        stop);
}

/// Empty if it could not wait: on the manager's own thread, or when the call fails. Then the handle
/// releases in the background, or the lease expires.
inline std::optional<release_result>
release_blocking(blocking::manager& owner, lock& ended) noexcept {
    try {
        if (!owner.on_own_thread()) {
            return owner.call([&](auto token) { return ended.async_release(std::move(token)); });
        }
    } catch (...) { // NOLINT(bugprone-empty-catch)
    }
    return std::nullopt;
}

/// Whether the lock was acquired. Throws unless the reason is `condition::not_acquired`.
inline bool is_acquired(const error_code& error, const diagnostics& why) {
    if (error && error != condition::not_acquired) {
        std::rethrow_exception(explained(error, why));
    }
    return !error;
}

}}} // namespace redlock::REDLOCK_ABI::detail
