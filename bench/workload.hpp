// The plan of a run: each workload uses its part of the plan and adds its tables to the report.
#pragma once

#include "load.hpp"
#include "masters.hpp"
#include "result.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct plan {
    // The quorum of all workloads but `latency`.
    std::vector<address> masters;
    // Quorums of several sizes, for `latency`.
    std::vector<std::vector<address>> quorums;
    // The processes of `masters`, in the same order. Null if the masters are the user's: then they
    // are used for locks only.
    bench::masters* own = nullptr;

    std::vector<side> sides{all_sides.begin(), all_sides.end()};
    std::vector<std::size_t> in_flight;
    std::vector<std::size_t> waiters;
    // Acquires a second, for `load`, and how long each lock is held.
    std::vector<std::size_t> rates;
    std::chrono::milliseconds hold{0};
    std::size_t rounds = 0;
    std::chrono::milliseconds duration{0};
    // Duration of the round that measures the fairness between local waiters.
    std::chrono::milliseconds fairness_duration{0};
    std::chrono::milliseconds ttl{0};
    std::chrono::milliseconds master_timeout{0};
    std::size_t memory_locks = 0;

    // Called with a few words before each step.
    std::function<void(std::string_view)> progress;

    bool has(side) const;
    // Returns the sides that use the library: plain and guarded, or `fenced` if neither was chosen.
    std::vector<side> protocols() const;
    load make_load(side, std::size_t in_flight) const;
};

void note_failure(report&, std::string_view where, const result&);

} // namespace bench
