// Plans in which several resources are taken at once, and readers and writers meet.

#pragma once

#include "plan.hpp"

namespace simulation {

class generator;

/// Has the workers take in any form what they would take as one resource each. A worker that takes
/// several chooses from one resource more than there was.
void choose_forms(plan& what, generator& random);

/// The same of any trouble.
template <void (*Trouble)(plan&, generator&)>
void trouble_forms(plan& what, generator& random) {
    Trouble(what, random);
    choose_forms(what, random);
}

} // namespace simulation
