// Runs a load that the user chose, to find out which quorum can serve it.
#pragma once

#include "workload.hpp"

namespace bench {

// Table "load": acquires start at a fixed rate, whatever becomes of earlier ones.
void run_load(const plan&, report&);

} // namespace bench
