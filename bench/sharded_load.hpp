// Locks through several quorums: what they bear together, and what the busiest master of them does.
#pragma once

#include "load.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct sharded_result {
    // Acquired and released by a majority of their home.
    std::uint64_t pairs = 0;
    // Attempts that ended otherwise, and keys found on masters after the run.
    std::uint64_t failures = 0;
    std::string first_failure;
    std::chrono::nanoseconds elapsed{0};
    // User and system time of this process in the same span.
    std::chrono::nanoseconds cpu{0};
    // The same of all masters together, and of the one that had most.
    std::chrono::microseconds servers_cpu{0};
    std::chrono::microseconds busiest_cpu{0};
    // Commands of the master that had most.
    std::uint64_t busiest_commands = 0;
};

// K loops, each on a resource of its own, acquire and release for `work.duration`. Throws
// std::runtime_error when the masters are not all admitted.
sharded_result run_sharded(const std::vector<std::vector<address>>& quorums, const load& work);

} // namespace bench
