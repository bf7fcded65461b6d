// What many locks and many waiters keep in memory.
#pragma once

#include "workload.hpp"

namespace bench {

// Table "memory". Where the C library cannot tell what is allocated, there is none.
void run_memory(const plan&, report&);

} // namespace bench
