// The latest time of the next attempt of a paused waiter. Notifications only bring an attempt
// forward. A waiter must find a free lock even if none arrives: its connection may break, PUBLISH
// may be refused, or a client that publishes nothing may remove the lock.

#pragma once

#include "backoff.hpp"
#include "validity.hpp"

#include <chrono>

namespace redlock::core {

/// Times the attempts of one wait queue. While a majority is admitted, an attempt on all masters
/// starts less than `settings::poll_limit` after the previous one. In between, an attempt may go to
/// the arbiter alone: if the lock is free there, the attempt on the others follows at once, so a
/// poll of a held lock is mostly one command. The refusal of one master does not prove that the
/// lock is held, so it never replaces an attempt on all masters for longer than `limit`.
class polling {
public:
    /// An attempt on all masters starts.
    void asked_all(time_point now) noexcept { last_ = now; }
    void reset() noexcept { last_ = {}; }

    /// Whether an attempt that starts now must go to all masters, not to one first.
    bool all_due(std::chrono::milliseconds limit, time_point now) const noexcept {
        return now >= later(last_, limit - margin);
    }

    /// Latest start of the next attempt, which goes to the arbiter first if `one_first`. Processes
    /// that were refused at the same time spread over a quarter of the pause.
    time_point
    next(std::chrono::milliseconds limit, bool one_first, jitter& random) const noexcept {
        const std::chrono::nanoseconds longest = (one_first ? limit / 2 : limit) - margin;
        return later(last_, random.between(3 * longest / 4, longest));
    }

private:
    // For timers that fire late, and for the round trip to the arbiter.
    static constexpr std::chrono::milliseconds margin{50};

    time_point last_{};
};

} // namespace redlock::core
