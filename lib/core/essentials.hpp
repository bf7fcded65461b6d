// What every part of the engine works with.

#pragma once

#include "quorum.hpp"
#include "sender.hpp"
#include "settings.hpp"
#include "timers.hpp"

namespace redlock::core {

/// A part of the engine has these as a private base.
struct essentials {
    const settings& rules_;
    quorum& masters_;
    sender& sender_;
    timers& timers_;
};

} // namespace redlock::core
