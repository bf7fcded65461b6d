// Memory per lock and per waiter.
#pragma once

#include "workload.hpp"

namespace bench {

// Table "memory". Absent if the C library does not report what is allocated.
void run_memory(const plan&, report&);

} // namespace bench
