// The options of the command line.
#pragma once

#include "load.hpp"
#include "workload.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace bench {

struct arguments {
    std::vector<std::string> workloads;
    bool full = false;
    std::vector<std::string> masters;
    std::size_t start = 5;
    std::string server = "redis-server";
    std::vector<std::size_t> in_flight{1, 16, 64, 256, 1024, 4096};
    std::vector<std::size_t> waiters{2, 8, 64};
    std::vector<std::size_t> rates;
    std::size_t hold_ms = 10;
    std::size_t rounds = 3;
    double seconds_per_round = 0.25;
    double ttl_seconds = 10;
    std::size_t master_timeout_ms = 100;
    std::size_t memory_locks = 10'000;
    std::size_t pairs = 0;
    std::string only;
    std::string json_file;
    std::string html_file;
    // JSON files of earlier runs: makes a page of them and measures nothing.
    std::vector<std::string> page_of;

    bool wants(std::string_view workload) const;
};

// Fills in the arguments, or returns the program's exit code if it has nothing more to do.
std::optional<int> parse_arguments(int argc, char** argv, arguments& into);

side side_named(std::string_view name);

// Makes the plan, except for the masters and the progress callback.
plan make_plan(const arguments&);

} // namespace bench
