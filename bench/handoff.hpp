// Many waiters for one lock.
#pragma once

#include "workload.hpp"

namespace bench {

// Tables "handoff", "handoff_basis" and "fairness".
void run_handoff(const plan&, report&);

} // namespace bench
