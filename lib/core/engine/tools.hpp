// What a part of the engine that sends commands of its own works with.

#pragma once

#include "core/base/timers.hpp"
#include "core/locks/wire.hpp"
#include "core/masters/masters.hpp"
#include "core/masters/settings.hpp"
#include "engine_callbacks.hpp"

namespace redlock::core {

/// Queries, scans, tickets and the log have these as a private base.
struct tools {
    const settings& rules_;
    masters& masters_;
    wire& wire_;
    timers& timers_;
    engine_callbacks& host_;
};

} // namespace redlock::core
