// Takes timers as the engine does.

#pragma once

#include "core/base/timers.hpp"

namespace unit {

/// The earliest timer that is due, after as many looks as necessary; null if none is.
inline redlock::core::timer* take_timer(redlock::core::timers& all, redlock::time_point now) {
    while (all.next() <= now && all.next() != redlock::core::forever) {
        if (redlock::core::timer* const due = all.pop(now)) {
            return due;
        }
    }
    return nullptr;
}

} // namespace unit
