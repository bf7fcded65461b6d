// Targets of the library with five masters on loopback, in a release build.
#pragma once

#include "result.hpp"

namespace bench {

// Fills in the targets from what was measured; those that were not measured are left out.
void add_targets(report&);

} // namespace bench
