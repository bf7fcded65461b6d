// A given load for a given time: how a user finds out what quorum is enough for it.
#pragma once

#include "workload.hpp"

namespace bench {

// Table "load": acquires start at a fixed rate, whatever becomes of earlier ones.
void run_load(const plan&, report&);

} // namespace bench
