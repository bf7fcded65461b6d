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
    // Durations of handoffs within the process and to another process: from just before the release
    // starts to just after the next holder has the lock.
    std::vector<std::uint32_t> local_ns;
    std::vector<std::uint32_t> remote_ns;
    double per_second = 0;
    double jain_index = 0;
    // Longest time without a holder; longest wait of one waiter.
    std::chrono::nanoseconds longest_gap{0};
    std::chrono::nanoseconds longest_wait{0};
    // Holders that acquired the lock before the previous holder had started to release it. Must be
    // 0.
    std::uint64_t overlaps = 0;
};

// Of all holdings of a round. `waiters` asked for the lock for `duration`.
handoff_figures
figures_of(std::vector<holding> holdings, std::size_t waiters, std::chrono::nanoseconds duration);

// Jain's fairness index: 1 if all shares are equal, 1/n if one share is everything.
double jain_index(const std::vector<std::uint64_t>& shares);

} // namespace bench
