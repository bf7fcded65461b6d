// The sides beside each other: how long an acquire takes when nothing else goes on, and how many
// pairs go through when much does.
#pragma once

#include "workload.hpp"

namespace bench {

// One round of one side. Throws std::runtime_error when it cannot be run.
result run_side(const std::vector<address>& masters, const load& work);

// Table "latency": one lock at a time, on quorums of several sizes.
void run_latency(const plan&, report&);
// Table "throughput": K locks in flight.
void run_throughput(const plan&, report&);

} // namespace bench
