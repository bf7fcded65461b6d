// A given load for a given time: how a user finds out what quorum is enough for it.
#pragma once

#include "workload.hpp"

namespace bench {

// Table "load": so many acquires begin each second, whatever becomes of those before them.
void run_load(const plan&, report&);

} // namespace bench
