// Masters that do not do their part. On the program's own masters only: it stops and cuts them off.
#pragma once

#include "workload.hpp"

namespace bench {

// Table "faults": a minority is hung, refuses or is slow. Table "outage": a majority.
void run_faults(const plan&, report&);

} // namespace bench
