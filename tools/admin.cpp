#include "admin.hpp"

#include "command_line.hpp"
#include "config/sizing.hpp"
#include "exit_code.hpp"
#include "hints.hpp"
#include "json.hpp"
#include "options.hpp"
#include "session.hpp"
#include "status.hpp"

#include <redlock/admin.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

namespace cli {
namespace {

int list(const settings& common) {
    redlock::config how = reading_config_of(common);
    if (how.key_prefix.empty()) {
        throw failure(
            exit_code::configuration,
            "without a prefix, locks cannot be distinguished from other keys: set --prefix");
    }
    const redlock::admin::held_locks found = redlock::admin::list(how);
    std::size_t read = 0;
    for (const redlock::master_vote& one : found.masters) {
        if (one.vote == redlock::vote::granted) {
            ++read;
        } else {
            say(fmt::format("{}: {}", one.endpoint, printable(one.text)));
        }
    }
    const bool enough = read >= redlock::detail::votes_needed(how.masters.size());
    session now(std::move(how));
    if (!found.resources.empty()) { // silent masters have cost their time already
        now.settle(need::all);
    }
    json all = json::array();
    for (const std::string& resource : found.resources) {
        if (const auto valid = redlock::detail::check_resource(resource); !valid) {
            say(fmt::format(
                "a key that is not a lock of this library: {}", in_options(valid.error())));
            continue;
        }
        const auto status = now.wait(
            [&](auto token) { return now.manager.async_query(resource, std::move(token)); });
        const bool gone = std::ranges::all_of(status.masters, [](const redlock::master_vote& one) {
            return one.vote == redlock::vote::absent;
        });
        if (gone) {
            continue; // it ended since the listing
        }
        if (common.json) {
            json one{{"resource", resource}};
            one.update(json_of(status));
            all.push_back(std::move(one));
        } else {
            const std::string text = text_of(resource, status);
            fmt::print("{}\n", text.substr(0, text.find('\n')));
        }
    }
    if (common.json) {
        print(all);
    }
    return enough ? 0 : static_cast<int>(exit_code::no_quorum);
}

bool agreed(const std::string& resource) {
    fmt::print("Type yes to release '{}': ", printable(resource));
    require_written();
    std::string line;
    return std::getline(std::cin, line) && line == "yes";
}

struct forced {
    std::string resource;
    bool yes = false;
    bool at_once = false;
};

constexpr std::string_view what_may_break =
    "\nThe holder is not asked. If it is alive, it learns of the release at its next renewal,\n"
    "within a third of its ttl. Others can acquire the lock after the current lease.\n\n";
constexpr std::string_view what_may_break_now =
    "\nThe holder is not asked. If it is alive, it continues until its next renewal, within a\n"
    "third of its ttl, so there may be two holders: only a resource that checks fencing tokens\n"
    "is safe from that. Use --now for a holder that is known to be dead.\n\n";

int force_release(const forced& wanted, const settings& common) {
    const auto& [resource, yes, at_once] = wanted;
    redlock::config how = reading_config_of(common);
    require(redlock::detail::check_resource(resource), exit_code::usage);
    if (!yes && ::isatty(STDIN_FILENO) != 1) {
        throw failure(
            exit_code::usage, "cannot ask for confirmation without a terminal: add --yes");
    }
    redlock::lock_status found;
    {
        session now(how);
        now.settle(need::all);
        found =
            now.wait([&, &name = resource](auto token) { // clang 14 captures no binding by itself
                return now.manager.async_query(name, std::move(token));
            });
    }
    if (!common.json) {
        fmt::print("{}", text_of(resource, found));
    }
    if (!yes) {
        fmt::print("{}", at_once ? what_may_break_now : what_may_break);
        if (!agreed(resource)) {
            say("nothing was released");
            return static_cast<int>(exit_code::held);
        }
    }
    const redlock::admin::force_result done = at_once
                                                  ? redlock::admin::force_release_now(how, resource)
                                                  : redlock::admin::force_release(how, resource);
    json masters = json::array();
    for (const redlock::master_vote& one : done.masters) {
        if (common.json) {
            const bool gone =
                one.vote == redlock::vote::granted || one.vote == redlock::vote::absent;
            masters.push_back({{"master", one.endpoint}, {"gone", gone}, {"text", one.text}});
        } else {
            fmt::print("  {}  {}\n", one.endpoint, printable(one.text));
        }
    }
    if (common.json) {
        print(
            {{"resource", resource}, {"released", done.released}, {"masters", std::move(masters)}});
    }
    if (std::ranges::any_of(done.masters, [](const redlock::master_vote& one) {
            return one.text.starts_with("WRONGTYPE");
        })) {
        hint_at_types(how, resource);
    }
    if (!done.released) {
        say("a majority may still have the lock: a holder that is alive can restore it");
    }
    return done.released ? 0 : static_cast<int>(exit_code::no_quorum);
}

} // namespace

void add_admin_commands(command_line& to) {
    CLI::App& lists = to.add(
        "list",
        "List the held locks of all masters",
        "  redlock list\n"
        "  redlock list --json | jq -r '.[] | select(.state == \"held\").resource'\n\n"
        "Reads the names of all keys with SCAN, a thousand per call; needs +scan in an ACL.");
    to.when(lists, [&to] { return list(to.common); });

    const auto wanted = std::make_shared<forced>();
    CLI::App& forces = to.add(
        "force-release",
        "Release a lock without its holder",
        "  redlock force-release backup         # shows the holder, and asks\n"
        "  redlock force-release --yes backup\n"
        "  redlock force-release --now backup   # its holder is known to be dead\n\n"
        "The lock is free when the current lease ends, with --now or without an expiry at once.\n"
        "A master whose memory record has another list of masters is not touched. Exits with 0\n"
        "if a majority released it, 200 if you answered no, 201 if too few masters released it.");
    add_resource(forces, wanted->resource);
    forces.add_flag("--yes", wanted->yes, "Do not ask");
    forces.add_flag("--now", wanted->at_once, "Do not wait for the end of the lease");
    to.when(forces, [wanted, &to] { return force_release(*wanted, to.common); });
}

} // namespace cli
