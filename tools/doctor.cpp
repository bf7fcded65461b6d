#include "doctor.hpp"

#include "acl.hpp"
#include "command_line.hpp"
#include "exit_code.hpp"
#include "findings.hpp"
#include "json.hpp"
#include "options.hpp"
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace cli {
namespace {

tint tint_of(severity level) {
    return level == severity::note      ? tint::good
           : level == severity::warning ? tint::fair
                                        : tint::bad;
}

redlock::health health_of(const redlock::config& how) {
    session now(watching(how)); // what it finds must not depend on what it has written
    now.settle(need::all);
    return now.manager.get_health();
}

// Whether a master with this finding grants nothing. One that votes although an assumption does not
// hold for it endangers the locks of all.
bool costs_a_vote_only(
    const finding& it, const std::vector<facts>& masters, const redlock::health& health) {
    for (std::size_t i = 0; i < masters.size(); ++i) {
        if (masters[i].endpoint == it.master) {
            return health.masters[i].state != redlock::master_state::admitted || refuses_locks(it);
        }
    }
    return false; // it is about the quorum
}

// Whether all that is broken are masters without which the others are a majority.
bool works(
    const std::vector<finding>& found,
    const std::vector<facts>& masters,
    const redlock::health& health) {
    return health.ready && voters(found, masters, health) >= health.quorum
           && std::ranges::all_of(found, [&](const finding& one) {
                  return one.level != severity::broken || costs_a_vote_only(one, masters, health);
              });
}

struct judgement_of_all {
    exit_code code;
    tint colour;
    std::string_view name; // in JSON
    std::string_view words;
};

judgement_of_all verdict_of(
    const std::vector<finding>& found,
    const std::vector<facts>& masters,
    const redlock::health& health) {
    switch (found.empty() ? severity::note : found.front().level) {
    case severity::note:
        return {exit_code::done, tint::good, "healthy", "healthy"};
    case severity::warning:
        return {exit_code::warnings, tint::fair, "warning", "works, with warnings"};
    case severity::broken:
        break;
    }
    return works(found, masters, health)
               ? judgement_of_all{exit_code::degraded, tint::fair, "degraded", "degraded: locks work, but at least one master needs repair"}
               : judgement_of_all{exit_code::broken, tint::bad, "broken", "broken"};
}

// Median of the replies, what a restart costs, and the version.
std::string details_of(const facts& it, const redlock::master_health& mine) {
    if (!it.unreachable.empty() || it.round_trips.empty()) {
        return {};
    }
    return fmt::format(
        "  {:>8}  {:<14}  {}",
        latency_text(it.round_trips[it.round_trips.size() / 2]),
        it.keeps_locks() ? "keeps locks" : "may lose locks",
        printable(mine.version));
}

void print_table(const std::vector<facts>& masters, const redlock::health& health) {
    constexpr std::string_view title = "MASTER";
    std::size_t width = title.size();
    for (const facts& one : masters) {
        width = std::max(width, one.endpoint.size());
    }
    fmt::print(
        "{:{}}  {:<11}  {:>8}  {:<14}  VERSION\n", title, width, "STATE", "REPLY", "RESTART");
    for (std::size_t i = 0; i < masters.size(); ++i) {
        const redlock::master_health& mine = health.masters[i];
        const bool votes = mine.state == redlock::master_state::admitted;
        fmt::print(
            "{:{}}  {}{}\n",
            masters[i].endpoint,
            width,
            tinted(
                votes ? tint::good : tint::bad,
                fmt::format("{:<11}", redlock::to_string(mine.state))),
            details_of(masters[i], mine));
    }
}

// What is said of one master, of several.
std::string of_several(const std::string& what) {
    constexpr std::array<std::array<std::string_view, 2>, 11> forms{{
        {"is a node of a cluster", "are nodes of a cluster"},
        {"is a sentinel", "are sentinels"},
        {"is a replica", "are replicas"},
        {"is not a member", "are not members"},
        {"was a replica before, or has", "were replicas before, or have"},
        {"is ", "are "},
        {"does ", "do "},
        {"has ", "have "},
        {"refuses ", "refuse "},
        {"replies ", "reply "},
        {"wants ", "want "},
    }};
    for (const auto& [one, several] : forms) {
        if (what.starts_with(one)) {
            return std::string(several) + what.substr(one.size());
        }
    }
    return what;
}

// What was found on several masters is printed once.
void print_findings(const std::vector<finding>& found, bool notes) {
    for (auto at = found.begin(); at != found.end(); ++at) {
        const finding& one = *at;
        const auto same = [&](const finding& other) {
            return std::tie(one.level, one.check, one.what, one.change)
                   == std::tie(other.level, other.check, other.what, other.change);
        };
        if ((one.level == severity::note && !notes) || std::any_of(found.begin(), at, same)) {
            continue;
        }
        std::vector<std::string> masters;
        for (const finding& other : found) {
            if (same(other) && !other.master.empty()) {
                masters.push_back(other.master);
            }
        }
        fmt::print(
            "\n{} [{}] {}{}{}\n",
            tinted(tint_of(one.level), to_string(one.level)),
            one.check,
            fmt::join(masters, ", "),
            masters.empty() ? "" : " ",
            printable(masters.size() > 1 ? of_several(one.what) : one.what));
        if (!one.change.empty()) {
            fmt::print("    {}\n", printable(one.change));
        }
    }
}

struct doctor_options {
    milliseconds clock_time{1'000};
    bool notes = false;
};

int doctor(const doctor_options& wanted, const settings& common) {
    const redlock::config how = config_of(common);
    // Both at once, because a silent master uses up the time of each.
    auto looked = std::async(std::launch::async, examine, std::cref(how), wanted.clock_time);
    const redlock::health health = health_of(how);
    const std::vector<facts> masters = looked.get();
    const std::vector<finding> found = judge(masters, how, health);
    const judgement_of_all verdict = verdict_of(found, masters, health);
    if (common.json) {
        json list = json::array();
        for (const finding& one : found) {
            list.push_back(
                {{"severity", to_string(one.level)},
                 {"check", one.check},
                 {"master", one.master},
                 {"what", printable(one.what)},
                 {"change", printable(one.change)}});
        }
        print(
            {{"verdict", verdict.name},
             {"ready", health.ready},
             {"admitted", health.admitted},
             {"voting", voters(found, masters, health)},
             {"quorum", health.quorum},
             {"masters", masters.size()},
             {"acl", acl_line(how)},
             {"findings", std::move(list)}});
    } else {
        print_table(masters, health);
        print_findings(found, wanted.notes);
        if (wanted.notes) {
            fmt::print("\nSufficient ACL:\n    {}\n", acl_line(how));
        }
        fmt::print(
            "\nVerdict: {} ({} of {} masters vote, {} needed)\n",
            tinted(verdict.colour, verdict.words),
            voters(found, masters, health),
            masters.size(),
            health.quorum);
    }
    return static_cast<int>(verdict.code);
}

} // namespace

void add_doctor(command_line& to) {
    const auto wanted = std::make_shared<doctor_options>();
    CLI::App& app = to.add(
        "doctor",
        "Check a quorum and say what to change",
        "  redlock doctor\n"
        "  redlock doctor --json | jq '.findings[] | select(.severity != \"note\")'\n\n"
        "Exits with 0 if all is well, 207 with warnings. 209: something is broken on a minority\n"
        "of the masters, and locks work. 208: there is no majority to lock on, or an assumption\n"
        "of the guarantees does not hold. Sets test keys for a moment. It founds no quorum, and\n"
        "raises no quarantine, but that of a server without a memory record begins with it: use\n"
        "--prefix check on a server that is not in use yet.");
    add_duration(
        app, "--clock-time", wanted->clock_time, "Time over which clock drift is measured");
    app.add_flag("--notes", wanted->notes, "Also print passed checks and a sufficient ACL");
    to.when(app, [wanted, &to] { return doctor(*wanted, to.common); });
}

} // namespace cli
