// Clocks with a rate error, in integer arithmetic: a seed always gives the same times.

#pragma once

#include "plan.hpp"

#include <redlock/clock.hpp>

#include <chrono>

namespace simulation {

__extension__ using wide = __int128;

/// A clock with a constant rate error. Shows `base` when the run begins.
class skewed_clock {
public:
    skewed_clock(nanos base, std::int64_t rate_ppb) noexcept : base_(base), rate_ppb_(rate_ppb) {}

    nanos at(nanos now) const noexcept {
        return base_ + now + static_cast<nanos>(floor_div(wide(now) * rate_ppb_, billion));
    }

    /// The first moment at which it shows `shown`, or more.
    nanos when(nanos shown) const noexcept {
        if (shown <= base_) {
            return 0;
        }
        nanos found =
            static_cast<nanos>(floor_div(wide(shown - base_) * billion, wide(billion) + rate_ppb_));
        while (at(found) < shown) {
            ++found;
        }
        return found;
    }

    /// Steps the clock by `by`.
    void step(nanos by) noexcept { base_ += by; }

private:
    static constexpr std::int64_t billion = 1'000'000'000;
    static wide floor_div(wide a, wide b) noexcept {
        const wide quotient = a / b;
        return a % b < 0 ? quotient - 1 : quotient;
    }

    nanos base_;
    std::int64_t rate_ppb_;
};

inline redlock::time_point to_moment(nanos shown) noexcept {
    return redlock::time_point(std::chrono::nanoseconds(shown));
}

} // namespace simulation
