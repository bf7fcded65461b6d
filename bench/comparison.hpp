// Compares the sides: the time of an acquire without other load, and the number of pairs per second
// under load.
#pragma once

#include "workload.hpp"

namespace bench {

// One round of one side. Throws std::runtime_error if it cannot be run.
result run_side(const std::vector<address>& masters, const load& work);

// Table "latency": one lock at a time, on quorums of several sizes.
void run_latency(const plan&, report&);
// Table "throughput": K locks in flight.
void run_throughput(const plan&, report&);

} // namespace bench
