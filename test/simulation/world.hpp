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
    std::string story; // if it was wanted
};

/// Adds what happened to `sum`.
outcome run(const plan& what, lua_machine& lua, figures& sum, bool with_story = false);
outcome run(const plan& what, lua_machine& lua, bool with_story = false);

/// Shrinks a failing plan: removes everything that is not needed to break the same promise.
plan shrink(plan what, lua_machine& lua, promise broken);

/// The smallest plan that breaks the promise that this one breaks, and what happens in it.
std::string explain(const plan& failing, lua_machine& lua);

} // namespace simulation
