// What the servers can do at most: each master is kept busy by itself with the floor's commands, K
// pairs in its pipeline, as redis-benchmark does. Nobody waits for a majority, so this is no lock.
#pragma once

#include "load.hpp"

#include <vector>

namespace bench {

// Runs the load. A pair is one acquire and one release on each master, so that all figures are
// those of a quorum of the same size. Throws std::runtime_error when a connection breaks.
result run_pipeline(const std::vector<address>& masters, const load& work);

} // namespace bench
