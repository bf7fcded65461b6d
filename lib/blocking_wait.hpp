// What the blocking mutexes have in common: a wait first for the threads of this process, then for
// the masters, with one limit for both.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/options.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>

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

/// The explanation where another thread of this process kept the mutex for the whole wait.
inline diagnostics another_thread_has(const std::string& resource) {
    diagnostics why;
    why.message = "contended: another thread has this mutex";
    why.resource = resource;
    return why;
}

}}} // namespace redlock::REDLOCK_ABI::detail
