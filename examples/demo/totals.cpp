#include "totals.hpp"

#include <algorithm>

namespace demo {

totals total_of(const board& shared, std::size_t workers) {
    totals sum;
    for (std::size_t i = 0; i < workers; ++i) {
        const auto& one = shared.workers[i];
        sum.acquired += one.acquired;
        sum.contended += one.contended;
        sum.no_quorum += one.no_quorum;
        sum.other_failures += one.other_failures;
        sum.written += one.written;
        sum.lost += one.lost;
        sum.attempts += one.attempts;
        sum.renewed += one.renewed;
    }
    for (const auto& counter : shared.counters) {
        sum.seen += counter.read();
        sum.overlaps += counter.overlaps();
    }
    return sum;
}

vote_totals votes_of(const board& shared, std::size_t workers, std::size_t master) {
    vote_totals sum;
    for (std::size_t i = 0; i < workers; ++i) {
        const auto& one = shared.workers[i].votes[master];
        sum.granted += one.granted;
        sum.held += one.held;
        sum.failed += one.failed;
    }
    return sum;
}

std::vector<std::chrono::microseconds> latencies_of(const board& shared, std::size_t workers) {
    std::vector<std::chrono::microseconds> all;
    for (std::size_t i = 0; i < workers; ++i) {
        const auto& one = shared.workers[i];
        for (std::size_t sample = 0; sample < one.samples; ++sample) {
            all.emplace_back(one.latency_us[sample].load());
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

} // namespace demo
