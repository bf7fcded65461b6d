#include "members.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "member_changes.hpp"
#include "options.hpp"
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cli {
namespace {

struct member_wishes {
    std::string what;   // "add", "remove", "replace", "found", "max-ttl"; empty: show
    std::string master; // or the duration
    std::string replacement;
    bool only_shows = false;
    bool unused = false; // the masters that found a quorum
};

std::string joined(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) {
        out.append(out.empty() ? "" : ", ").append(printable(name));
    }
    return out;
}

void show(const redlock::health& now, const redlock::config& how, bool as_json) {
    const std::string newer_on = outdated_on(now, how);
    if (as_json) {
        json masters = json::array();
        for (const auto& one : now.masters) {
            masters.push_back(
                {{"endpoint", one.endpoint},
                 {"state", std::string(to_string(one.state))},
                 {"generation", one.generation},
                 {"planned", one.planned},
                 {"text", one.text}});
        }
        print(
            {{"generation", now.generation},
             {"members", now.members},
             {"outdated", !newer_on.empty()},
             {"change", now.change},
             {"max_ttl_ms", now.max_ttl.count()},
             {"quarantine_ms", now.quarantine_time.count()},
             {"masters", std::move(masters)}});
        return;
    }
    if (now.members.empty()) {
        fmt::print(
            "the members are not known{}\n",
            how.protocol == redlock::protocol::plain ? ": the plain protocol has none" : "");
    } else if (!newer_on.empty()) {
        fmt::print(
            "this list of masters is outdated: generation {} was {}; {} has a newer one\n",
            now.generation,
            joined(now.members),
            printable(newer_on));
    } else {
        fmt::print("generation {}: {}\n", now.generation, joined(now.members));
    }
    std::size_t width = 0;
    for (const auto& one : now.masters) {
        width = std::max(width, one.endpoint.size());
    }
    for (const auto& one : now.masters) {
        fmt::print(
            "  {:{}}  {}{}\n",
            one.endpoint,
            width,
            to_string(one.state),
            one.text.empty() ? "" : ": " + printable(one.text));
    }
    if (now.max_ttl.count() != 0) {
        fmt::print(
            "max_ttl {}, quarantine {}\n",
            duration_text(now.max_ttl),
            duration_text(now.quarantine_time));
    }
    if (!now.change.empty()) {
        fmt::print("change: {}\n", printable(now.change));
    }
}

redlock::detail::member_changes changes_of(const member_wishes& wanted) {
    if (wanted.what == "replace") {
        return {{true, wanted.replacement, {}}, {false, wanted.master, {}}};
    }
    if (wanted.what == "max-ttl") {
        constexpr milliseconds least{10};
        constexpr milliseconds most = std::chrono::hours(24);
        milliseconds ttl{};
        try {
            ttl = parse_duration(wanted.master);
        } catch (const std::invalid_argument& error) {
            throw failure(exit_code::usage, error.what());
        }
        const bool valid = ttl >= least && ttl <= most;
        require(
            valid ? redlock::detail::validation()
                  : redlock::detail::invalid_value{"change.max_ttl", ttl, {}, least, most, {}},
            exit_code::usage);
        return {{false, {}, ttl}};
    }
    return {{wanted.what == "add", wanted.master, {}}};
}

int members(const member_wishes& wanted, const settings& common) {
    const bool changes_nothing = wanted.what.empty() || wanted.only_shows;
    redlock::config how = changes_nothing ? watching_config_of(common) : reading_config_of(common);
    if (!wanted.what.empty()) {
        const bool founds = wanted.what == "found";
        const auto changes = founds ? redlock::detail::member_changes() : changes_of(wanted);
        require(redlock::detail::check_members(changes, how), exit_code::usage);
        show(
            founds ? found_quorum(wanted.unused, how, wanted.only_shows)
                   : make_changes(changes, how, wanted.only_shows),
            how,
            common.json);
        return 0;
    }
    session now(how);
    now.settle(need::all, std::chrono::seconds(10));
    const redlock::health health = now.manager.get_health();
    const bool known = !health.members.empty() && outdated_on(health, how).empty();
    show(health, how, common.json);
    return known ? 0 : static_cast<int>(exit_code::no_quorum);
}

} // namespace

void add_members_command(command_line& to) {
    const auto wanted = std::make_shared<member_wishes>();
    CLI::App& made = to.add(
        "members",
        "Show the members of the quorum, add, remove or replace one, found it, or set max_ttl",
        "  redlock members\n"
        "  redlock members add 10.0.0.14:6379 --masters ...    # a list with the new master\n"
        "  redlock members remove 10.0.0.11:6379\n"
        "  redlock members replace 10.0.0.11:6379 10.0.0.14:6379 --masters ...    # with both\n"
        "  redlock members found --new    # masters that have never had a lock\n"
        "  redlock members max-ttl 5s    # the longest ttl of all clients\n\n"
        "Locks can be acquired while the members change. Every master that stays must reply; the "
        "command waits\n"
        "for it. A change takes the length of a quarantine. One that was interrupted is continued "
        "by the same\n"
        "command. replace adds the new master and then removes the old one, in the other order if "
        "the old\n"
        "one does not reply.\n"
        "With found the list of masters becomes that of the quorum. It replaces another list at "
        "once if that\n"
        "one is not final.\n"
        "A smaller max-ttl holds for new locks as soon as all masters have recorded the plan. "
        "Their "
        "quarantine\n"
        "becomes shorter when every longer lease is over. A client with a larger --max-ttl raises "
        "it again.\n"
        "Exits with 201 if the quorum has not been founded, or if the list of masters is "
        "outdated.");
    made.add_option("ACTION", wanted->what, "add, remove, replace, found or max-ttl; default: show")
        ->type_name("add|remove|replace|found|max-ttl")
        ->check(one_of({"add", "remove", "replace", "found", "max-ttl"}));
    made.add_option(
            "MASTER",
            wanted->master,
            "Name of the master: host:port, or its ?name=; max-ttl: the duration")
        ->type_name("");
    made.add_option("NEW", wanted->replacement, "replace: name of the master that takes its place")
        ->type_name("");
    made.add_flag(
        "--new",
        wanted->unused,
        "found: no lock can have been on these masters, so the first one needs no quarantine");
    made.add_flag("--dry-run", wanted->only_shows, "Show what would be done");
    to.when(made, [wanted, &to] {
        const bool founds = wanted->what == "found";
        if (wanted->unused && !founds) {
            throw failure(exit_code::usage, "--new belongs to redlock members found");
        }
        if (founds && !wanted->master.empty()) {
            throw failure(exit_code::usage, "redlock members found takes the masters of --masters");
        }
        if (wanted->what == "max-ttl" && (wanted->master.empty() || !wanted->replacement.empty())) {
            throw failure(
                exit_code::usage, "one duration is needed, as in redlock members max-ttl 5s");
        }
        if ((wanted->what.empty() || founds) != wanted->master.empty()
            || (wanted->what == "replace") == wanted->replacement.empty()) {
            throw failure(
                exit_code::usage,
                "which master? redlock members add MASTER, remove MASTER or replace MASTER NEW");
        }
        if (wanted->master == wanted->replacement && !wanted->master.empty()) {
            throw failure(exit_code::usage, "a master cannot be replaced by itself");
        }
        return members(*wanted, to.common);
    });
}

} // namespace cli
