// What was measured, in one form for the terminal, for programs and for the page: tables of rows,
// each with a value per round and metric, ratios between rows, and the targets.
#pragma once

#include "machine.hpp"
#include "statistics.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bench {

// One value of an axis: 64, or "plain".
using coordinate = std::variant<std::int64_t, std::string>;
using coordinates = std::vector<coordinate>;

std::string to_string(const coordinate&);

// How a metric of a row compares with that of another row, round by round.
struct ratio {
    std::string metric;
    std::string to;
    spread value;
};

// The measurements at one point of the axes. A unit is the last part of a metric's name.
class row {
public:
    explicit row(coordinates at) : at_(std::move(at)) {}

    // Adds the value of the next round; NaN if there is none.
    void add(std::string_view metric, double value);
    // Both must have been measured in the same rounds.
    void compare(std::string_view metric, const row& other, std::string_view name);

    const coordinates& at() const noexcept { return at_; }
    // Empty if it was not measured.
    const std::vector<double>& values(std::string_view metric) const;
    spread over_rounds(std::string_view metric) const { return spread_of(values(metric)); }
    // Returns null if there is none.
    const ratio* ratio_of(std::string_view metric) const;
    const auto& metrics() const noexcept { return metrics_; }
    const auto& ratios() const noexcept { return ratios_; }

private:
    coordinates at_;
    // In the order in which they were added.
    std::vector<std::pair<std::string, std::vector<double>>> metrics_;
    std::vector<ratio> ratios_;
};

// A metric that the terminal shows; the JSON has them all.
struct column {
    std::string metric;
    std::string heading;
    int digits = 1;
};

struct table {
    std::string id;
    std::string title;
    // How it was measured.
    std::string note;
    std::vector<std::string> axes;
    std::vector<column> columns;
    // References to rows stay valid.
    std::deque<row> rows;

    // Returns the row at this point, which is created if there is none.
    row& at(const coordinates& place);
    // Returns null if there is none.
    const row* find(const coordinates& place) const;
};

struct target {
    std::string what;
    std::string bound;
    spread measured;
    bool reached = false;
};

// The requested settings.
struct settings {
    std::size_t masters = 0;
    std::size_t rounds = 0;
    std::int64_t round_ms = 0;
    std::int64_t fairness_ms = 0;
    std::int64_t ttl_ms = 0;
    std::int64_t master_timeout_ms = 0;
    std::vector<std::string> workloads;
};

struct report {
    machine here;
    settings asked;
    bool quick = true;
    std::deque<table> tables;
    std::vector<target> targets;
    // What went wrong, a sentence each. A report with failures is invalid.
    std::vector<std::string> failures;

    // Returns null if it was not measured.
    const table* find(std::string_view id) const;
};

nlohmann::ordered_json to_json(const report&);

} // namespace bench
