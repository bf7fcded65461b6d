// Plans in which several resources are taken at once, and readers and owners meet.

#pragma once

#include "plan.hpp"

namespace simulation {

class generator;

/// Changes the plan so that workers acquire several resources, or as readers. Adds one
/// resource to choose from.
void choose_forms(plan& what, generator& random);

/// Adds the faults of another profile, then calls `choose_forms`.
template <void (*AddFaults)(plan&, generator&)>
void with_forms(plan& what, generator& random) {
    AddFaults(what, random);
    choose_forms(what, random);
}

} // namespace simulation
