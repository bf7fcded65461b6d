// Sums over runs.

#pragma once

#include "plan.hpp"

#include <array>

namespace simulation {

struct figures {
    std::uint64_t seeds = 0;
    nanos simulated = 0;
    std::uint64_t commands = 0;
    std::uint64_t attempts = 0;
    std::uint64_t acquired = 0;
    std::uint64_t extended = 0;
    std::uint64_t lost = 0;
    std::uint64_t fenced = 0;        // acquisitions with a fencing token
    std::uint64_t late_commands = 0; // executed after their client had hung up
    std::uint64_t local_handoffs = 0;
    std::uint64_t pushes = 0;
    std::uint64_t writes = 0;
    std::uint64_t refused_writes = 0;
    std::uint64_t overlaps = 0;   // two acting holders at once, even where that is allowed
    std::uint64_t inversions = 0; // writes of an older owner, accepted after a newer one's
    std::uint64_t digest = 0;     // of the wire and the reports; the same for seeds in any order
    std::array<std::uint64_t, fault_kinds> faults{};

    /// A few lines.
    std::string describe() const;
};

} // namespace simulation
