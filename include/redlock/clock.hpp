// The clock that measures leases.

#pragma once

#include <redlock/version.hpp>

#include <chrono>

namespace redlock { inline namespace REDLOCK_ABI {

/// A monotonic clock that keeps running while the machine is suspended: `CLOCK_BOOTTIME` where
/// available, otherwise the steady clock. On Linux `std::chrono::steady_clock` stops during a
/// suspend, so a resumed process would rely on a lease that has already ended. Meets the standard
/// *TrivialClock* requirements. Its epoch has no meaning outside this machine.
struct clock {
    /// The unit of this clock.
    using duration = std::chrono::nanoseconds;
    /// Required by *TrivialClock*.
    using rep = duration::rep;
    /// Required by *TrivialClock*.
    using period = duration::period;
    /// The type that `now` returns.
    using time_point = std::chrono::time_point<clock>;
    /// This clock never goes backwards.
    static constexpr bool is_steady = true;

    /// Returns the current time. Thread-safe. Does not allocate; takes a few dozen nanoseconds.
    static time_point now() noexcept;
};

/// A point in time of `redlock::clock`.
using time_point = clock::time_point;

}} // namespace redlock::REDLOCK_ABI
