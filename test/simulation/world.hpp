// One run of one plan: clients, masters and the network between them in virtual time, checked after
// every event.

#pragma once

#include "checker.hpp"
#include "figures.hpp"
#include "memory.hpp"
#include "plan.hpp"

namespace simulation {

struct outcome {
    std::optional<violation> broken;
    figures count;
    std::string story; // if it was wanted
};

outcome run(const plan& what, lua_machine& lua, bool with_story = false);

/// Shrinks a failing plan: removes everything that is not needed to break the same promise.
plan shrink(plan what, lua_machine& lua, promise broken);

} // namespace simulation
