#include "member_changes.hpp"

#include "config/sizing.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "hints.hpp"
#include "session.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cli {
namespace {

using redlock::detail::is_member;
using redlock::detail::member_change;
using redlock::detail::member_changes;
using redlock::detail::member_name;
using redlock::detail::member_plan;
using redlock::detail::replies;
using redlock::detail::state_of;

bool sets_max_ttl(const member_change& one) {
    return one.max_ttl.count() != 0;
}

exit_code exit_code_of(const redlock::error_code& error) {
    return error == redlock::errc::invalid_argument ? exit_code::usage : exit_code::no_quorum;
}

void refuse_unknown(const redlock::health& now) {
    if (!now.members.empty()) {
        return;
    }
    throw failure(
        exit_code::no_quorum,
        fmt::format(
            "the members of the quorum are not known{}: {}",
            std::ranges::any_of(now.masters, [](const auto& one) { return one.generation > 0; })
                ? ". They must be more than half of this list, and this list must have more than "
                  "half of them, by the same names: so a quorum of one master cannot grow. Leave "
                  "out a master that was removed. To found another list, see "
                  "docs/operations/masters.md, 'Another list from the "
                  "start'"
                : "",
            printable(to_string(now))));
}

void warn_of_even(std::size_t members) {
    if (members % 2 == 0) {
        say(fmt::format(
            "{} masters tolerate as many failures as {}: go on to an odd number",
            members,
            members - 1));
    }
}

// A new master that was a member long ago, or belongs to another quorum, is not added.
void refuse_old_record(
    const redlock::health& now, const redlock::config& how, const member_changes& steps) {
    for (const member_change& one : steps) {
        const redlock::master_health* const mine = state_of(now, how, one.name);
        if (one.adds && mine != nullptr && mine->generation != 0
            && mine->generation + 1 != now.generation) {
            throw failure(
                exit_code::no_quorum,
                fmt::format(
                    "{} has the memory record of another quorum, or of long ago (generation {}): "
                    "empty it first",
                    printable(one.name),
                    mine->generation));
        }
    }
}

// The masters that must reply, and do not.
void say_awaited(
    const redlock::health& now, const redlock::config& how, const member_changes& steps) {
    std::vector<std::string> needed = now.members;
    for (const member_change& one : steps) {
        if (one.adds) {
            needed.push_back(one.name);
        } else if (&one == &steps.front()) {
            std::erase(needed, one.name);
        }
    }
    for (const std::string& name : needed) {
        const redlock::master_health* const one = state_of(now, how, name);
        if (one != nullptr && !replies(*one)) {
            say(fmt::format("it would wait for {}: {}", printable(name), printable(one->text)));
        }
    }
}

// Why masters do not reply or have another list, and what to do about it.
void say_causes(const redlock::health& now, const redlock::config& how) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < now.masters.size(); ++i) {
        const redlock::master_health& one = now.masters[i];
        texts.push_back(one.text);
        if (!replies(one) || one.state == redlock::master_state::ineligible) {
            say(fmt::format("{}: {}", to_string(how.masters[i]), printable(one.text)));
        }
    }
    hint_at_causes(how, texts);
}

// Founds the quorum with this list, unless another one is final.
redlock::health found(bool unused, redlock::config how, redlock::health now, bool only_shows) {
    const auto refuse_final = [&] {
        if (std::ranges::any_of(now.masters, [](const auto& one) { return one.generation > 0; })) {
            throw failure(
                exit_code::no_quorum,
                "another list is final, and is not replaced (correct --masters, or change the "
                "members by redlock members add, remove or replace): "
                    + printable(to_string(now)));
        }
    };
    if (std::ranges::any_of(now.masters, [](const auto& one) {
            return one.state == redlock::master_state::duplicate;
        })) {
        throw failure(
            exit_code::usage, "two masters of the list are the same server: list each server once");
    }
    const auto is_ours = [&](const redlock::health& found) {
        return found.members.size() == how.masters.size()
               && std::ranges::all_of(how.masters, [&](const redlock::endpoint& one) {
                      return is_member(found, member_name(one));
                  });
    };
    // Of a founding that was interrupted, not all masters have the final list.
    const auto unfinished = [](const redlock::master_health& one) {
        return replies(one) && one.generation == 0;
    };
    if (is_ours(now) && std::ranges::none_of(now.masters, unfinished)) {
        say(unused && !now.ready
                ? "the quorum has been founded already, so --new changes nothing. If its masters "
                  "are new, see docs/operations/masters.md, 'Another list from the start'"
                : "the quorum has been founded already");
        return now;
    }
    if (!is_ours(now)) {
        refuse_final();
    }
    if (only_shows) {
        say("it would found the quorum with the masters of this list");
        return now;
    }
    how.founds_quorum = true;
    session founder(how);
    redlock::detail::found_quorum(founder.manager, unused);
    const auto settled_by = redlock::clock::now() + std::chrono::milliseconds(1'300);
    for (std::string said;;) {
        now = founder.manager.get_health();
        if (is_ours(now)) {
            if (std::ranges::none_of(now.masters, unfinished)) {
                return now;
            }
        } else {
            refuse_final();
            const bool settled = std::ranges::all_of(now.masters, [](const auto& one) {
                return one.state != redlock::master_state::connecting;
            });
            if (now.change != said && (settled || redlock::clock::now() >= settled_by)) {
                said = now.change;
                say(printable(said));
                say_causes(now, how);
            }
        }
        if (founder.pause(std::chrono::milliseconds(20))) {
            throw failure(
                static_cast<exit_code>(by_signal + founder.signal()),
                "stopped; the same command, or a client with this list, continues the founding");
        }
    }
}

redlock::health health_before(const redlock::config& how) {
    session before(how);
    before.settle(need::all, std::chrono::seconds(10));
    if (before.signal() != 0) {
        throw failure(static_cast<exit_code>(by_signal + before.signal()), "stopped");
    }
    redlock::health now = before.manager.get_health();
    if (!redlock::detail::outdated_on(now, how).empty()) {
        throw failure(
            exit_code::no_quorum, "this list of masters is outdated: " + printable(to_string(now)));
    }
    return now;
}

// Ends when the change is final.
void make(const member_change& wanted, const redlock::config& how) {
    redlock::diagnostics why;
    std::optional<redlock::error_code> error;
    session now(how);
    redlock::detail::change_members(
        now.manager, {wanted}, true, &why, [&](const redlock::error_code& e) { error = e; });
    now.settle(need::all, std::chrono::seconds(10));
    for (std::string said; !error;) {
        const redlock::health health = now.manager.get_health();
        if (health.change != said && !health.change.empty()) {
            said = health.change;
            say(printable(wanted.shown() + ": " + said));
        }
        if (now.pause(std::chrono::milliseconds(100))) {
            throw failure(
                static_cast<exit_code>(by_signal + now.signal()),
                "stopped; the same command continues the change, with its wait from the beginning");
        }
    }
    if (*error) {
        const redlock::health health = now.manager.get_health();
        throw failure(
            exit_code_of(*error),
            why.message.empty() ? fmt::format(
                "a client that sets a longer max_ttl has raised it again: it is {}, with a "
                "quarantine of {}",
                duration_text(health.max_ttl),
                duration_text(health.quarantine_time))
                                : printable(why.message));
    }
}

} // namespace

redlock::health found_quorum(bool unused, const redlock::config& how, bool only_shows) {
    return found(unused, how, health_before(how), only_shows);
}

redlock::health
make_changes(const member_changes& wanted, const redlock::config& given, bool only_shows) {
    redlock::config how = given;
    if (std::ranges::any_of(wanted, sets_max_ttl)) {
        how.max_ttl = {}; // its own would be in force again
    }
    for (bool first = true;; first = false) {
        const redlock::health now = health_before(how);
        refuse_unknown(now);
        const member_plan plan = redlock::detail::plan_of(wanted, now, how, !only_shows);
        if (plan.error) {
            throw failure(exit_code_of(plan.error), printable(plan.text));
        }
        const member_changes& steps = plan.steps;
        if (steps.empty()) {
            for (const member_change& one : wanted) {
                if (first) {
                    say(sets_max_ttl(one)
                            ? "max_ttl is " + duration_text(one.max_ttl) + " already"
                            : printable(one.name)
                                  + (one.adds ? " is a member already" : " is not a member"));
                }
            }
            return now;
        }
        std::size_t members = now.members.size();
        for (const member_change& one : steps) {
            members += one.adds ? 1U : 0U;
            members -= one.adds || sets_max_ttl(one) ? 0U : 1U;
        }
        if (members != now.members.size()) {
            warn_of_even(members);
        }
        if (sets_max_ttl(steps.front()) && steps.front().max_ttl < now.max_ttl) {
            say(fmt::format(
                "holders whose --grace (stop_margin) is more than {} will stop with their next "
                "extension",
                duration_text(steps.front().max_ttl / 2)));
        }
        if (only_shows) {
            refuse_old_record(now, how, steps);
            say_awaited(now, how, steps);
            std::uint64_t generation = now.generation;
            for (const member_change& one : steps) {
                say(fmt::format(
                    "{} would make generation {}", printable(one.shown()), ++generation));
            }
            return now;
        }
        make(steps.front(), how);
    }
}

} // namespace cli
