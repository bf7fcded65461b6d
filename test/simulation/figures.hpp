// Sums over runs.

#pragma once

#include "plan.hpp"

#include <array>
#include <string_view>

namespace simulation {

struct figures {
    std::uint64_t seeds = 0;
    nanos simulated = 0;
    std::uint64_t events = 0;
    std::uint64_t commands = 0;
    std::uint64_t attempts = 0;
    std::uint64_t acquired = 0;
    std::uint64_t not_acquired = 0;
    std::uint64_t extended = 0;
    std::uint64_t lost = 0;
    std::uint64_t fenced = 0;        // acquisitions with a fencing token
    std::uint64_t late_commands = 0; // executed after their client had hung up
    std::uint64_t local_handoffs = 0;
    std::uint64_t pushes = 0;
    std::uint64_t lost_pushes = 0;
    nanos longest_wait = 0; // for a last lock, after the end of the faults
    std::uint64_t writes = 0;
    std::uint64_t refused_writes = 0;
    std::uint64_t overlaps = 0;   // two acting holders at once, even where that is allowed
    std::uint64_t inversions = 0; // writes of an older owner, accepted after a newer one's
    std::uint64_t violations = 0;
    std::uint64_t digest = 0; // of all that `witness` was called with, in order
    std::array<std::uint64_t, fault_kinds> faults{};

    /// Adds bytes that a client wrote, or a report of its engine, to the digest of this run.
    void witness(nanos at, std::uint64_t origin, std::string_view what) noexcept;
    void add(const figures&) noexcept;
    /// One line.
    std::string describe() const;
};

} // namespace simulation
