// The clock that leases are measured with.

#pragma once

#include <redlock/version.hpp>

#include <chrono>

namespace redlock { inline namespace REDLOCK_ABI {

/// A clock that never steps and that goes on while the machine is suspended: `CLOCK_BOOTTIME` where
/// there is one, else the steady clock. `std::chrono::steady_clock` stops during a suspend on
/// Linux, so a process that was resumed after its lease had ended would still believe in it. Meets
/// the standard *TrivialClock* requirements. Its epoch means nothing outside this machine.
struct clock {
    /// Its unit.
    using duration = std::chrono::nanoseconds;
    /// As *TrivialClock* wants it.
    using rep = duration::rep;
    /// As *TrivialClock* wants it.
    using period = duration::period;
    /// What `now` gives.
    using time_point = std::chrono::time_point<clock>;
    /// It never steps.
    static constexpr bool is_steady = true;

    /// The present time. Thread-safe, no allocation; a few dozen nanoseconds.
    static time_point now() noexcept;
};

/// A point in time of `redlock::clock`.
using time_point = clock::time_point;

}} // namespace redlock::REDLOCK_ABI
