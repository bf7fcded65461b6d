// What every part of the engine works with.

#pragma once

#include "claim.hpp"
#include "engine_callbacks.hpp"
#include "quorum.hpp"
#include "sender.hpp"
#include "settings.hpp"
#include "slot_map.hpp"
#include "timers.hpp"

#include <redlock/metrics.hpp>

namespace redlock::core {

/// A part of the engine has these as a private base.
struct essentials {
    const settings& rules_;
    quorum& masters_;
    sender& sender_;
    timers& timers_;
    pool<claim>& claims_;
    jitter& random_;
    metrics& counters_;
    engine_callbacks& host_;
};

} // namespace redlock::core
