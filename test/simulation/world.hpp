// One run of one plan: clients, masters and the network between them in virtual time, with the
// judge looking on after every event.

#pragma once

#include "checker.hpp"
#include "figures.hpp"
#include "memory.hpp"
#include "plan.hpp"

#include <optional>
#include <string>

namespace simulation {

struct outcome {
    std::optional<violation> broken;
    figures count;
    std::string story; // if it was wanted
};

outcome run(const plan& what, lua_machine& lua, bool with_story = false);

/// Takes out of a failing plan what the same broken promise does not need.
plan shrink(plan what, lua_machine& lua, promise broken);

} // namespace simulation
