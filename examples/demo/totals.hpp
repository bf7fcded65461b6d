// Sums over the board.
#pragma once

#include "board.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace demo {

struct totals {
    std::uint64_t acquired = 0;
    std::uint64_t contended = 0;
    std::uint64_t no_quorum = 0;
    std::uint64_t other_failures = 0;
    std::uint64_t written = 0;
    std::uint64_t lost = 0;
    std::uint64_t attempts = 0;
    std::uint64_t renewed = 0;
    std::uint64_t seen = 0; // the sum of the counters; must equal `written`
    std::uint64_t overlaps = 0;
};
totals total_of(const board& shared, std::size_t workers);

struct vote_totals {
    std::uint64_t granted = 0;
    std::uint64_t held = 0;
    std::uint64_t failed = 0;
};
vote_totals votes_of(const board& shared, std::size_t workers, std::size_t master);

// How long the acquires took that were granted, in ascending order.
std::vector<std::chrono::microseconds> latencies_of(const board& shared, std::size_t workers);

} // namespace demo
