#include "doctor.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "findings.hpp"
#include "json.hpp"
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace cli {
namespace {

tint tint_of(severity level) {
    return level == severity::note      ? tint::good
           : level == severity::warning ? tint::fair
                                        : tint::bad;
}

redlock::health health_of(const redlock::config& how) {
    session now(how);
    now.settle(need::all);
    return now.manager.get_health();
}

void print_table(const std::vector<facts>& masters, const redlock::health& health) {
    std::size_t width = 0;
    for (const facts& one : masters) {
        width = std::max(width, one.endpoint.size());
    }
    for (std::size_t i = 0; i < masters.size(); ++i) {
        const redlock::master_health& mine = health.masters[i];
        const bool votes = mine.state == redlock::master_state::admitted;
        fmt::print(
            "{:{}}  {}  {}\n",
            masters[i].endpoint,
            width,
            tinted(
                votes ? tint::good : tint::bad,
                fmt::format("{:<11}", redlock::to_string(mine.state))),
            printable(mine.version));
    }
}

void print_text(
    const std::vector<facts>& masters,
    const redlock::config& how,
    const redlock::health& health,
    const std::vector<finding>& found) {
    print_table(masters, health);
    for (const finding& one : found) {
        fmt::print(
            "\n{} [{}] {}{}\n",
            tinted(tint_of(one.level), to_string(one.level)),
            one.check,
            one.master.empty() ? "" : one.master + " ",
            printable(one.what));
        if (!one.change.empty()) {
            fmt::print("    {}\n", printable(one.change));
        }
    }
    fmt::print("\nSufficient ACL:\n    {}\n", acl_line(how));
}

int doctor(milliseconds clock_time, const settings& common) {
    const redlock::config how = config_of(common);
    const redlock::health health = health_of(how);
    const std::vector<facts> masters = examine(how, clock_time);
    const std::vector<finding> found = judge(masters, how, health);
    const severity worst = found.empty() ? severity::note : found.front().level;
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
            {{"verdict", worst == severity::note ? "well" : to_string(worst)},
             {"ready", health.ready},
             {"admitted", health.admitted},
             {"quorum", health.quorum},
             {"masters", masters.size()},
             {"acl", acl_line(how)},
             {"findings", std::move(list)}});
    } else {
        print_text(masters, how, health, found);
        fmt::print(
            "\nVerdict: {}\n",
            worst == severity::note      ? tinted(tint::good, "well")
            : worst == severity::warning ? tinted(tint::fair, "works, with warnings")
                                         : tinted(tint::bad, "broken"));
    }
    return static_cast<int>(
        worst == severity::note      ? exit_code::done
        : worst == severity::warning ? exit_code::warnings
                                     : exit_code::broken);
}

} // namespace

void add_doctor(command_line& to) {
    const auto clock_time = std::make_shared<milliseconds>(1'000);
    CLI::App& app = to.add(
        "doctor",
        "Check a quorum and say what to change",
        "  redlock doctor\n"
        "  redlock doctor --json | jq '.findings[] | select(.severity != \"note\")'\n\n"
        "Exits with 0 if all is well, 207 with warnings, 208 if a master cannot vote or an\n"
        "assumption of the guarantees does not hold. Acquires test locks under its own name for a\n"
        "moment, and changes nothing else.");
    add_duration(app, "--clock-time", *clock_time, "Time over which clock drift is measured");
    to.when(app, [clock_time, &to] { return doctor(*clock_time, to.common); });
}

} // namespace cli
