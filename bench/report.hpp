// From the results of rounds to a table for people and JSON for programs.
#pragma once

#include "load.hpp"
#include "machine.hpp"
#include "statistics.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

enum class metric {
    acquire_p50_us,
    acquire_p99_us,
    pairs_per_second,
    client_cpu_us_per_pair,
    server_cpu_us_per_pair,
    bytes_in_per_pair,
    reads_per_pair,
};
std::string_view to_string(metric) noexcept;

// One side's figures at one number of locks in flight: a value per round and metric.
class series {
public:
    void add(result&& round);

    const std::vector<double>& values(metric which) const;
    std::size_t rounds() const noexcept { return rounds_; }
    std::uint64_t pairs() const noexcept { return pairs_; }
    // Failed attempts, wrong or missing replies and keys left behind, all rounds together.
    std::uint64_t failures() const noexcept { return failures_; }
    const std::string& first_failure() const noexcept { return first_failure_; }
    const std::string& release_command() const noexcept { return release_command_; }
    // Acquires that needed a second round trip.
    std::uint64_t raised() const noexcept { return raised_; }

private:
    std::map<metric, std::vector<double>> values_;
    std::size_t rounds_ = 0;
    std::uint64_t pairs_ = 0;
    std::uint64_t failures_ = 0;
    std::uint64_t raised_ = 0;
    std::string first_failure_;
    std::string release_command_;
};

// All sides at one number of locks in flight. A side that was not run has no rounds.
struct comparison {
    std::size_t in_flight = 0;
    std::array<series, all_sides.size()> sides;

    series& of(side who) { return sides[static_cast<std::size_t>(who)]; }
    const series& of(side who) const { return sides[static_cast<std::size_t>(who)]; }
};

// What was asked for, for the record.
struct settings {
    std::size_t masters = 0;
    std::size_t rounds = 0;
    load work;
};

// Lines of the terminal table. The rows of a comparison also tell what is wrong with it.
std::string table_head(const machine& here, const settings& asked);
std::string table_rows(const comparison& measured);

// What makes the ratios of this comparison doubtful, a sentence each: other bytes or another
// release command than the floor's.
std::vector<std::string> doubts(const comparison& measured);

nlohmann::json
to_json(const machine& here, const settings& asked, const std::vector<comparison>& measured);

} // namespace bench
