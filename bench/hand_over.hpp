// Many waiters for one lock.
#pragma once

#include "workload.hpp"

namespace bench {

// Tables "handover", "handover_basis" and "fairness".
void run_hand_over(const plan&, report&);

} // namespace bench
