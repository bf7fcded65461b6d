// The maximum of the servers: each master alone is kept busy with the floor's commands, K pairs in
// its pipeline, as redis-benchmark does. No majority is waited for, so this is not a lock.
#pragma once

#include "load.hpp"

#include <vector>

namespace bench {

// Runs the load. A pair is one acquire and one release on each master, so that all figures are
// those of a quorum of the same size. Throws std::runtime_error if a connection breaks.
result run_pipeline(const std::vector<address>& masters, const load& work);

} // namespace bench
