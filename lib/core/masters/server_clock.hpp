// Bounds on the offset of a master's wall clock, from the replies that contain it; and whether it
// was stepped.
//
// A reply contains T, read between the moment S at which its command was sent and the moment R at
// which it arrived. So the master's clock was ahead by at least T - R and at most T - S. Each reply
// narrows the bounds, as far as its round trip was short; time widens them, because the clocks may
// run at different rates. A reply outside the bounds shows a step, of the master's clock or of
// ours.

#pragma once

#include "settings.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace redlock::core {

class server_clock {
public:
    /// Discards what is known, for another server.
    void reset() noexcept { known_ = false; }

    /// A reply to a command that was sent at `sent` arrived at `now` with `server_us`. Returns the
    /// minimum step of the clock if it is more than `rules.step_margin()`: positive if forward.
    /// Else 0.
    std::chrono::microseconds sample(
        std::int64_t server_us, time_point sent, time_point now, const settings& rules) noexcept {
        using std::chrono::microseconds;
        std::int64_t least = server_us - ceil_us(now.time_since_epoch());
        std::int64_t most = server_us - floor_us(sent.time_since_epoch());
        std::int64_t stepped = 0;
        if (known_) {
            const std::int64_t drift = drift_until(now, rules);
            if (least > most_ + drift) {
                stepped = least - (most_ + drift);
            } else if (most < least_ - drift) {
                stepped = most - (least_ - drift);
            } else {
                least = std::max(least, least_ - drift);
                most = std::min(most, most_ + drift);
            }
        }
        widest_ =
            known_ ? std::max(widest_, most_ - least_ + 2 * drift_until(now, rules)) : most - least;
        least_ = least;
        most_ = most;
        at_ = sent;
        known_ = true;
        const std::int64_t margin = microseconds(rules.step_margin()).count();
        return microseconds(stepped > margin || stepped < -margin ? stepped : 0);
    }

    /// The largest value, in us since 1970, that the server's clock can have at `moment`; 0 if
    /// nothing is known. Includes a millisecond by which the server's own reading may be late.
    std::int64_t not_after(time_point moment, const settings& rules) const noexcept {
        return known_
                   ? ceil_us(moment.time_since_epoch()) + most_ + drift_until(moment, rules) + 1'000
                   : 0;
    }

    /// Whether the bounds are further apart than `error`. They are as far apart as the round trip
    /// of the fastest reply.
    bool is_vague(std::chrono::nanoseconds error) const noexcept {
        return known_ && std::chrono::microseconds(most_ - least_) > error;
    }
    /// From now on the bounds are used: what they were before does not matter to `error`.
    void begin_use() noexcept { widest_ = most_ - least_; }
    /// How much later than at `moment`, by our clock, the server may execute a command that carries
    /// `not_after(moment)`, at any time since `begin_use`.
    std::chrono::nanoseconds error(time_point moment, const settings& rules) const noexcept {
        using std::chrono::microseconds;
        return known_ ? std::chrono::nanoseconds(
                   microseconds(widest_ + 2 * drift_until(moment, rules) + 2'000))
                      : rules.master_timeout;
    }

private:
    static std::int64_t ceil_us(std::chrono::nanoseconds span) noexcept {
        return std::chrono::ceil<std::chrono::microseconds>(span).count();
    }
    static std::int64_t floor_us(std::chrono::nanoseconds span) noexcept {
        return std::chrono::floor<std::chrono::microseconds>(span).count();
    }
    std::int64_t drift_until(time_point moment, const settings& rules) const noexcept {
        return ceil_us(rules.rate_error(moment - at_));
    }

    std::int64_t least_ = 0; // bounds on the offset to our clock, in us, at `at_`
    std::int64_t most_ = 0;
    std::int64_t widest_ = 0; // distance of the bounds
    time_point at_ = never;
    bool known_ = false;
};

} // namespace redlock::core
