// The simulated servers are those of the testing kit.

#pragma once

#include "memory/audience.hpp"
#include "memory/lua_machine.hpp"
#include "memory/server.hpp"
#include "memory/store.hpp"

namespace simulation {

using namespace redlock::testing::memory;

} // namespace simulation
