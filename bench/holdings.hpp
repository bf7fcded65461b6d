// Evaluates the stamps of a handoff round.
#pragma once

#include "handoff_log.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

struct handoff_figures {
    std::size_t handoffs = 0;
    // To another waiter of the same process, or the same waiter again; and to another process. From
    // just before the release is started until just after the next holder has the lock.
    std::vector<std::uint32_t> local_ns;
    std::vector<std::uint32_t> remote_ns;
    double per_second = 0;
    double jain_index = 0;
    // Without a holder, and of one waiter.
    std::chrono::nanoseconds longest_gap{0};
    std::chrono::nanoseconds longest_wait{0};
    // Holders that came before the one before them had begun to release: must be zero.
    std::uint64_t overlaps = 0;
};

// Of all holdings of a round. `waiters` asked for the lock for `duration`.
handoff_figures
figures_of(std::vector<holding> holdings, std::size_t waiters, std::chrono::nanoseconds duration);

// Jain's fairness index: 1 when all have the same, 1/n when one has it all.
double jain_index(const std::vector<std::uint64_t>& shares);

} // namespace bench
