// Filling in the page, and reading what it is filled with.
#include "page.hpp"

#include "page_parts.hpp"

#include <fmt/format.h>

#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace bench {
namespace {

using nlohmann::json;

// Inside a script element the parser looks for `</script` and `<!--` alone, quotes or not. In JSON
// a `<` occurs in strings only, and there it can be written as an escape.
std::string script_safe(const json& report) {
    std::string safe;
    for (const char c : report.dump(-1, ' ', false, json::error_handler_t::replace)) {
        if (c == '<') {
            safe += "\\u003c";
        } else {
            safe += c;
        }
    }
    return safe;
}

// The template up to the marker; the template continues after it.
std::string_view take_until(std::string_view& rest, std::string_view marker) {
    const auto at = rest.find(marker);
    if (at == std::string_view::npos) {
        throw std::logic_error(fmt::format("the page has no {}", marker));
    }
    const auto taken = rest.substr(0, at);
    rest.remove_prefix(at + marker.size());
    return taken;
}

json read_report(const std::string& file) {
    std::ifstream in(file);
    if (!in) {
        throw std::runtime_error(fmt::format("cannot read {}", file));
    }
    auto report = json::parse(in, nullptr, false);
    if (!report.is_object() || !report.contains("tables") || !report["tables"].is_array()) {
        throw std::runtime_error(fmt::format("{} is not a report of quorum_bench", file));
    }
    return report;
}

void append(json& to, const json& from, const char* name) {
    for (const auto& entry : from.value(name, json::array())) {
        to[name].push_back(entry);
    }
}

} // namespace

std::string page_of(const json& report) {
    std::string_view rest = page_parts::html;
    std::string page;
    page += take_until(rest, "<!-- style -->");
    page += page_parts::style;
    page += take_until(rest, "<!-- data -->");
    page += script_safe(report);
    page += take_until(rest, "<!-- script -->");
    page += page_parts::model;
    page += page_parts::charts;
    page += page_parts::report;
    page += rest;
    return page;
}

json read_reports(const std::vector<std::string>& files) {
    json all;
    for (const auto& file : files) {
        auto report = read_report(file);
        if (all.is_null()) {
            all = std::move(report);
            continue;
        }
        append(all, report, "tables");
        append(all, report, "targets");
        append(all, report, "failures");
        all["quick"] = all.value("quick", false) || report.value("quick", false);
    }
    return all;
}

void write_page(const std::string& file, const json& report) {
    const auto page = page_of(report);
    if (file == "-") {
        fmt::print("{}", page);
        return;
    }
    std::ofstream out(file);
    if (!(out << page).flush()) {
        throw std::runtime_error(fmt::format("cannot write {}", file));
    }
}

} // namespace bench
