#include "members.hpp"

#include "command_line.hpp"
#include "exit_code.hpp"
#include "json.hpp"
#include "session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cli {
namespace {

using action = redlock::member_change::action;

struct member_wishes {
    std::string what; // "add", "remove"; empty: show
    std::string master;
    bool only_shows = false;
};

std::string joined(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) {
        out.append(out.empty() ? "" : ", ").append(printable(name));
    }
    return out;
}

bool has(const redlock::health& now, const std::string& master) {
    return std::ranges::find(now.members, master) != now.members.end();
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
             {"masters", std::move(masters)}});
        return;
    }
    if (now.members.empty()) {
        fmt::print(
            "the members are not known{}\n",
            now.protocol == redlock::protocol::plain ? ": the plain protocol has none" : "");
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
    if (!now.change.empty()) {
        fmt::print("change: {}\n", printable(now.change));
    }
}

void refuse_outdated(const redlock::health& now, const redlock::config& how) {
    if (!outdated_on(now, how).empty()) {
        throw failure(
            exit_code::no_quorum, "this list of masters is outdated: " + printable(to_string(now)));
    }
}

// The state that is wanted would not last.
void refuse_opposite(
    const redlock::health& now, const std::string& action, const std::string& master) {
    for (const redlock::master_health& one : now.masters) {
        if (one.planned == action + ' ' + master) {
            throw failure(
                exit_code::no_quorum,
                fmt::format(
                    "{0} {1} is planned on {2} and not final: finish it with redlock members {0} "
                    "{1}, then go on",
                    action,
                    printable(master),
                    one.endpoint));
        }
    }
}

// Whether the change can be made with this list of masters; refuses it otherwise.
void check(const redlock::health& now, const redlock::config& how, const member_wishes& wanted) {
    const bool adds = wanted.what == "add";
    if (now.members.empty()) {
        throw failure(
            exit_code::no_quorum,
            fmt::format(
                "the members of the quorum are not known{}: {}",
                std::ranges::any_of(now.masters, [](const auto& one) { return one.generation > 0; })
                    ? ". They must be more than half of this list, and this list must have more "
                      "than half of them, so a quorum of one master cannot grow"
                    : "",
                printable(to_string(now))));
    }
    if (adds && std::ranges::any_of(now.masters, [](const auto& one) {
            return one.state == redlock::master_state::duplicate;
        })) {
        throw failure(exit_code::usage, "two masters of the list are the same server");
    }
    if (!adds && now.members.size() == 2) {
        throw failure(
            exit_code::usage, "a quorum of two masters cannot lose one: add another master first");
    }
    std::size_t listed = 0;
    for (const std::string& name : now.members) {
        const bool known = std::ranges::any_of(
            how.masters, [&](const redlock::endpoint& one) { return name_of(one) == name; });
        if (!known && name != wanted.master) {
            throw failure(
                exit_code::usage, printable(name) + " is a member, and not in the list of masters");
        }
        listed += name != wanted.master ? 1U : 0U;
    }
    listed += adds ? 1U : 0U;
    if (2 * listed <= how.masters.size()) {
        throw failure(
            exit_code::usage,
            fmt::format(
                "{} members would be left, and the list has {} masters: they must be more than "
                "half of it, or clients with this list stop",
                listed,
                how.masters.size()));
    }
    if (listed % 2 == 0) {
        say(fmt::format(
            "{} masters tolerate as many failures as {}: go on to an odd number",
            listed,
            listed - 1));
    }
}

int change(const member_wishes& wanted, const settings& common) {
    redlock::config how = reading_config_of(common);
    const bool adds = wanted.what == "add";
    how.change = redlock::member_change{adds ? action::add : action::remove, wanted.master};
    require(redlock::validate(how), exit_code::usage);
    how.change.reset();
    {
        session before(how);
        before.settle(need::all, std::chrono::seconds(10));
        const redlock::health now = before.manager.get_health();
        refuse_outdated(now, how);
        if (!now.members.empty() && has(now, wanted.master) == adds) {
            refuse_opposite(now, adds ? "remove" : "add", wanted.master);
            say(printable(wanted.master) + (adds ? " is a member already" : " is not a member"));
            show(now, how, common.json);
            return 0;
        }
        check(now, how, wanted);
        if (wanted.only_shows) {
            show(now, how, common.json);
            say(fmt::format(
                "{} {} would make generation {}",
                wanted.what,
                printable(wanted.master),
                now.generation + 1));
            return 0;
        }
    }
    how.change = redlock::member_change{adds ? action::add : action::remove, wanted.master};
    session now(how);
    now.settle(need::all, std::chrono::seconds(10));
    std::string said;
    std::uint64_t generation = now.manager.get_health().generation;
    for (;;) {
        const redlock::health health = now.manager.get_health();
        refuse_outdated(health, how);
        if (!health.members.empty() && has(health, wanted.master) == adds) {
            now.settle(need::most, std::chrono::seconds(10));
            show(now.manager.get_health(), how, common.json);
            return 0;
        }
        if (generation != 0 && health.generation > generation + 1) {
            throw failure(exit_code::no_quorum, printable(health.change));
        }
        generation = health.generation;
        if (health.change != said && !health.change.empty()) {
            said = health.change;
            say(said);
        }
        if (now.pause(std::chrono::milliseconds(100))) {
            say("stopped; the same command goes on from here");
            return 128 + now.signal();
        }
    }
}

int members(const member_wishes& wanted, const settings& common) {
    if (!wanted.what.empty()) {
        return change(wanted, common);
    }
    const redlock::config how = reading_config_of(common);
    session now(how);
    now.settle(need::all, std::chrono::seconds(10));
    const redlock::health health = now.manager.get_health();
    const bool known = !health.members.empty() && outdated_on(health, how).empty();
    show(health, how, common.json);
    return known ? 0 : static_cast<int>(exit_code::no_quorum);
}

} // namespace

std::string name_of(const redlock::endpoint& master) {
    return master.name.empty() ? to_string(master) : master.name;
}

std::string outdated_on(const redlock::health& now, const redlock::config& how) {
    for (std::size_t i = 0; i < now.masters.size(); ++i) {
        std::string name = name_of(how.masters[i]);
        if (now.masters[i].generation > now.generation && has(now, name)) {
            return name;
        }
    }
    return {};
}

void add_members_command(command_line& to) {
    const auto wanted = std::make_shared<member_wishes>();
    CLI::App& made = to.add(
        "members",
        "Show the members of the quorum, add one or remove one",
        "  redlock members\n"
        "  redlock members add 10.0.0.14:6379 --masters ...    # a list with the new master\n"
        "  redlock members remove 10.0.0.11:6379\n\n"
        "Locks can be taken during that time. All masters that stay must reply, and the command "
        "waits for\n"
        "them. The change takes the length of a quarantine. A change that was interrupted is\n"
        "continued by the same command.\n"
        "To replace a master, add the new one and then remove the old one, or the other way "
        "round.\n"
        "Exits with 201 if the quorum has not been founded, or if the list of masters is "
        "outdated.");
    made.add_option("ACTION", wanted->what, "add or remove; default: show")
        ->type_name("add|remove")
        ->check(one_of({"add", "remove"}));
    made.add_option("MASTER", wanted->master, "Name of the master: host:port, or its ?name=")
        ->type_name("");
    made.add_flag("--dry-run", wanted->only_shows, "Show what would be done");
    to.when(made, [wanted, &to] {
        if (wanted->what.empty() != wanted->master.empty()) {
            throw failure(exit_code::usage, "which master? redlock members add|remove MASTER");
        }
        return members(*wanted, to.common);
    });
}

} // namespace cli
