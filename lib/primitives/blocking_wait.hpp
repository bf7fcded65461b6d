// What the blocking locks have in common: a wait first for the threads of this process, then for
// the masters, with one limit for both.

#pragma once

#include <redlock/blocking.hpp>
#include <redlock/options.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

class blocking_wait {
public:
    explicit blocking_wait(wait_for limit)
        : limit_(limit),
          end_(
              limit.limit() > long_enough
                      || (limit == wait_for::contention(limit) && limit.limit().count() != 0)
                  ? std::nullopt
                  : std::optional(clock::now() + limit.limit())) {}

    /// Returns the end of the wait, unless it is endless.
    auto end() const noexcept { return end_; }

    /// Returns whether `open` came true before the end and before a stop.
    template <typename Open>
    bool for_threads(
        std::condition_variable_any& changed,
        std::unique_lock<std::mutex>& lock,
        const std::stop_token& stop,
        Open open) const {
        return end_ ? changed.wait_until(lock, stop, *end_, open) : changed.wait(lock, stop, open);
    }

    /// Returns what is left of the wait.
    wait_for for_masters() const {
        using std::chrono::milliseconds;
        if (!end_ || limit_.limit().count() == 0) {
            return limit_;
        }
        return std::max(
            std::chrono::ceil<milliseconds>(*end_ - clock::now()), milliseconds::zero());
    }

private:
    using clock = std::chrono::steady_clock;
    // The clock could not represent the end of a longer wait.
    static constexpr std::chrono::milliseconds long_enough = std::chrono::hours(24 * 365);

    wait_for limit_;
    std::optional<clock::time_point> end_;
};

}}} // namespace redlock::REDLOCK_ABI::detail
