// Collecting values and writing them as JSON.
#include "result.hpp"

#include <redlock/version.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace bench {
namespace {

using json = nlohmann::ordered_json;

const std::vector<double> no_values;

template <class Pairs>
auto find_named(Pairs& pairs, std::string_view name) {
    return std::find_if(
        pairs.begin(), pairs.end(), [name](const auto& pair) { return pair.first == name; });
}

// Not a number becomes null.
json spread_json(const spread& value) {
    return {{"median", value.median}, {"min", value.min}, {"max", value.max}};
}

json row_json(const table& of, const row& one) {
    json at = json::object();
    for (std::size_t i = 0; i < of.axes.size(); ++i) {
        std::visit([&](const auto& value) { at[of.axes[i]] = value; }, one.at()[i]);
    }
    json metrics = json::object();
    for (const auto& [name, values] : one.metrics()) {
        metrics[name] = spread_json(spread_of(values));
        metrics[name]["rounds"] = values;
    }
    json ratios = json::object();
    for (const auto& found : one.ratios()) {
        ratios[found.metric] = json{{"to", found.to}};
        ratios[found.metric].update(spread_json(found.value));
    }
    return {{"at", at}, {"metrics", metrics}, {"ratios", ratios}};
}

json table_json(const table& one) {
    json rows = json::array();
    for (const auto& each : one.rows) {
        rows.push_back(row_json(one, each));
    }
    return {
        {"id", one.id},
        {"title", one.title},
        {"note", one.note},
        {"axes", one.axes},
        {"rows", std::move(rows)}};
}

json target_json(const target& one) {
    return {
        {"what", one.what},
        {"target", one.bound},
        {"measured", one.measured.median},
        {"min", one.measured.min},
        {"max", one.measured.max},
        {"reached", one.reached}};
}

json machine_json(const machine& here) {
    return {
        {"cores", here.cores},
        {"cpu", here.cpu},
        {"kernel", here.kernel},
        {"compiler", here.compiler},
        {"build_type", here.build_type},
        {"assertions", here.assertions},
        {"servers", here.servers}};
}

json settings_json(const settings& asked) {
    return {
        {"masters", asked.masters},
        {"rounds", asked.rounds},
        {"round_ms", asked.round_ms},
        {"fairness_ms", asked.fairness_ms},
        {"ttl_ms", asked.ttl_ms},
        {"master_timeout_ms", asked.master_timeout_ms},
        {"workloads", asked.workloads}};
}

} // namespace

std::string to_string(const coordinate& value) {
    return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

void row::add(std::string_view metric, double value) {
    auto found = find_named(metrics_, metric);
    if (found == metrics_.end()) {
        found = metrics_.emplace(metrics_.end(), metric, std::vector<double>{});
    }
    found->second.push_back(value);
}

void row::compare(std::string_view metric, const row& other, std::string_view name) {
    const auto value = bench::ratio_of(values(metric), other.values(metric));
    ratios_.push_back(ratio{std::string(metric), std::string(name), value});
}

const std::vector<double>& row::values(std::string_view metric) const {
    const auto found = find_named(metrics_, metric);
    return found == metrics_.end() ? no_values : found->second;
}

const ratio* row::ratio_of(std::string_view metric) const {
    const auto found = std::find_if(
        ratios_.begin(), ratios_.end(), [&](const ratio& one) { return one.metric == metric; });
    return found == ratios_.end() ? nullptr : &*found;
}

row& table::at(const coordinates& place) {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const row& one) { return one.at() == place; });
    return found == rows.end() ? rows.emplace_back(place) : *found;
}

const row* table::find(const coordinates& place) const {
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const row& one) { return one.at() == place; });
    return found == rows.end() ? nullptr : &*found;
}

const table* report::find(std::string_view id) const {
    const auto found =
        std::find_if(tables.begin(), tables.end(), [&](const table& one) { return one.id == id; });
    return found == tables.end() ? nullptr : &*found;
}

nlohmann::ordered_json to_json(const report& all) {
    json tables = json::array();
    for (const auto& one : all.tables) {
        tables.push_back(table_json(one));
    }
    json targets = json::array();
    for (const auto& one : all.targets) {
        targets.push_back(target_json(one));
    }
    return {
        {"redlock", REDLOCK_VERSION_STRING},
        {"when", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
        {"machine", machine_json(all.here)},
        {"settings", settings_json(all.asked)},
        {"quick", all.quick},
        {"tables", std::move(tables)},
        {"targets", std::move(targets)},
        {"failures", all.failures}};
}

} // namespace bench
