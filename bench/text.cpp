// Columns for people.
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

std::string cell(const spread& value, int digits) {
    if (std::isnan(value.median)) {
        return "-";
    }
    return fmt::format(
        "{:.{}f} ({:.{}f}..{:.{}f})", value.median, digits, value.min, digits, value.max, digits);
}

// Enough digits that a small figure does not become zero.
int digits_for(double value) {
    return value >= 1000 ? 0 : value >= 0.1 ? 2 : 4;
}

using line = std::vector<std::string>;

std::vector<std::string> cells_before(const row& one) {
    line cells;
    for (const auto& value : one.at()) {
        cells.push_back(to_string(value));
    }
    return cells;
}

line value_line(const table& of, const row& one) {
    line cells = cells_before(one);
    for (const auto& shown : of.columns) {
        cells.push_back(cell(one.over_rounds(shown.metric), shown.digits));
    }
    return cells;
}

line ratio_line(const table& of, const row& one) {
    line cells(of.axes.size());
    cells.back() = "  to " + one.ratios().front().to;
    for (const auto& shown : of.columns) {
        const auto* const found = one.ratio_of(shown.metric);
        cells.push_back(found == nullptr ? "" : cell(found->value, 2));
    }
    return cells;
}

std::string aligned(const std::vector<line>& lines, std::size_t axes) {
    std::vector<std::size_t> widths(lines.front().size());
    for (const auto& one : lines) {
        for (std::size_t i = 0; i < one.size(); ++i) {
            widths[i] = std::max(widths[i], one[i].size());
        }
    }
    std::string out;
    for (const auto& one : lines) {
        std::string text;
        for (std::size_t i = 0; i < one.size(); ++i) {
            // Only the last axis is words: left, as words are.
            text += i + 1 == axes ? fmt::format("  {:<{}}", one[i], widths[i])
                                  : fmt::format("  {:>{}}", one[i], widths[i]);
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + '\n';
    }
    return out;
}

} // namespace

std::string heading_text(const report& all) {
    const auto& here = all.here;
    return fmt::format(
        "{} masters ({}), {} cores ({}), {}, {}, build {}{}\n"
        "median (min..max) of {} rounds of {} ms; ttl {} ms\n",
        all.asked.masters,
        here.servers.empty() ? "?" : here.servers.front(),
        here.cores,
        here.cpu,
        here.kernel,
        here.compiler,
        here.build_type,
        here.assertions ? " with assertions" : "",
        all.asked.rounds,
        all.asked.round_ms,
        all.asked.ttl_ms);
}

std::string table_text(const table& one) {
    std::vector<line> lines(1, line(one.axes.begin(), one.axes.end()));
    for (const auto& shown : one.columns) {
        lines.front().push_back(shown.heading);
    }
    for (const auto& each : one.rows) {
        lines.push_back(value_line(one, each));
        if (!each.ratios().empty()) {
            lines.push_back(ratio_line(one, each));
        }
    }
    return fmt::format("\n{}\n{}", one.title, aligned(lines, one.axes.size()));
}

std::string targets_text(const report& all) {
    std::string out = all.targets.empty() ? "" : "\nTargets\n";
    for (const auto& one : all.targets) {
        out += fmt::format(
            "  {:<7}  {}: {}, target {}\n",
            one.reached ? "reached" : "MISSED",
            one.what,
            cell(one.measured, digits_for(one.measured.median)),
            one.bound);
    }
    for (const auto& failure : all.failures) {
        out += fmt::format("  FAILURE  {}\n", failure);
    }
    return out;
}

} // namespace bench
