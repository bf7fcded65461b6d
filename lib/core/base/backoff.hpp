// Delays between retries: decorrelated jitter, so that contenders that collided do not collide
// again. (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.)

#pragma once

#include "hash.hpp"
#include "validity.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

/// A small generator of uniform numbers for jitter only (splitmix64, Steele et al. 2014). Tokens
/// come from the operating system.
class jitter {
public:
    explicit jitter(std::uint64_t seed) noexcept : state_(seed) {}

    /// Uniform in [low, high].
    std::chrono::nanoseconds
    between(std::chrono::nanoseconds low, std::chrono::nanoseconds high) noexcept {
        if (high <= low) {
            return low;
        }
        const auto span = static_cast<std::uint64_t>((high - low).count()) + 1;
        return low + std::chrono::nanoseconds(static_cast<std::int64_t>(next() % span));
    }

    /// Uniform in [0, end).
    std::size_t below(std::size_t end) noexcept { return static_cast<std::size_t>(next() % end); }

private:
    std::uint64_t next() noexcept { return mixed(state_ += 0x9e3779b97f4a7c15U); }

    std::uint64_t state_;
};

class backoff {
public:
    /// The next delay: uniform between `floor` and three times the previous one, at most `ceiling`.
    std::chrono::nanoseconds next(
        std::chrono::nanoseconds floor, std::chrono::nanoseconds ceiling, jitter& random) noexcept {
        ceiling = std::max(floor, ceiling);
        last_ = std::min(ceiling, random.between(floor, std::max(floor, last_) * 3));
        return last_;
    }

    /// After a success: start with a small delay next time.
    void reset() noexcept { last_ = {}; }

private:
    std::chrono::nanoseconds last_{};
};

/// Times the attempts of one wait queue. Notifications only bring an attempt forward: a waiter must
/// find a free lock even if none arrives, because its connection may break, PUBLISH may be refused,
/// or a client that publishes nothing may remove the lock. While a majority is admitted, an attempt
/// on all masters starts less than `settings::poll_limit` after the previous one. In between, an
/// attempt may go to the arbiter alone: if the lock is free there, the attempt on the others
/// follows at once, so a poll of a held lock is mostly one command. The refusal of one master does
/// not prove that the lock is held, so it never replaces an attempt on all masters for longer than
/// `limit`.
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
