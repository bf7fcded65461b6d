// One process of the handoff workload: waiters that acquire and release one lock in a loop.
#pragma once

#include "load.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

inline constexpr const char* handoff_worker_name = "handoff";

// The task of a worker.
struct handoff_task {
    std::vector<address> masters;
    std::string resource;
    // Only side, duration, ttl and master_timeout are used.
    load work;
    // How long each holding lasts.
    std::chrono::milliseconds hold{0};
    std::uint32_t process = 0;
    std::uint32_t first_waiter = 0;
    std::uint32_t waiters = 0;
    // The log that it writes to: an inherited file.
    int log = -1;
};

// The result of a worker.
struct handoff_answer {
    std::size_t holdings = 0;
    // Local handoffs.
    std::uint64_t local = 0;
    std::uint64_t failures = 0;
    std::string first_failure;
};

void to_json(nlohmann::json&, const handoff_task&);
void from_json(const nlohmann::json&, handoff_task&);
void to_json(nlohmann::json&, const handoff_answer&);
void from_json(const nlohmann::json&, handoff_answer&);

// Reads a task from the standard input, connects, prints "ready", waits for another line, runs, and
// writes the result. Returns the exit code.
int run_handoff_worker();

} // namespace bench
