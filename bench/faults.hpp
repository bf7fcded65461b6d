// Masters that do not do their part. Only with masters that this program started, because it stops
// them.
#pragma once

#include "workload.hpp"

namespace bench {

// Table "faults": a minority is hung, refuses or is slow. Table "outage": a majority.
void run_faults(const plan&, report&);

} // namespace bench
