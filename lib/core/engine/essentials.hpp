// What every part of the engine works with.

#pragma once

#include "core/base/pool.hpp"
#include "core/base/timers.hpp"
#include "core/locks/claim.hpp"
#include "core/locks/sender.hpp"
#include "core/masters/masters.hpp"
#include "core/masters/settings.hpp"
#include "engine_callbacks.hpp"

#include <redlock/metrics.hpp>

namespace redlock::core {

/// A part of the engine has these as a private base.
struct essentials {
    const settings& rules_;
    masters& masters_;
    sender& sender_;
    timers& timers_;
    pool<claim>& claims_;
    jitter& random_;
    metrics& counters_;
    engine_callbacks& host_;
};

} // namespace redlock::core
