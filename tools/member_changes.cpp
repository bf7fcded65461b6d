#include "member_changes.hpp"

#include "config/sizing.hpp"
#include "ending.hpp"
#include "exit_code.hpp"
#include "hints.hpp"
#include "members.hpp"
#include "session.hpp"
#include "text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

namespace cli {
namespace {

using change = redlock::member_change;
using action = change::action;

void refuse_outdated(const redlock::health& now, const redlock::config& how) {
    if (!outdated_on(now, how).empty()) {
        throw failure(
            exit_code::no_quorum, "this list of masters is outdated: " + printable(to_string(now)));
    }
}

std::string shown(const change& one) {
    if (one.what == action::set_max_ttl) {
        return fmt::format("max-ttl {}ms", one.max_ttl.count());
    }
    return (one.what == action::add ? "add " : "remove ") + printable(one.master);
}

// Whether this master has a plan for the next generation.
bool has_plan(const redlock::health& now, const redlock::master_health& one) {
    return !one.planned.empty() && one.generation == now.generation;
}

bool is_planned(const redlock::health& now, const change& one) {
    return std::ranges::any_of(now.masters, [&](const redlock::master_health& each) {
        return has_plan(now, each) && each.planned == shown(one);
    });
}

[[noreturn]] void refuse_plan(const redlock::health& now, const std::string& planned) {
    std::string on;
    for (const redlock::master_health& one : now.masters) {
        if (has_plan(now, one) && one.planned == planned) {
            on += (on.empty() ? "" : ", ") + one.endpoint;
        }
    }
    throw failure(
        exit_code::no_quorum,
        fmt::format(
            "{0} is planned on {1} and not final: finish it with redlock members {0}, then go on",
            printable(planned),
            on));
}

void refuse_other_plans(const redlock::health& now, const change& wanted) {
    for (const redlock::master_health& one : now.masters) {
        if (has_plan(now, one) && one.planned != shown(wanted)) {
            refuse_plan(now, one.planned);
        }
    }
}

// What is wanted is there, but would not last.
void refuse_opposite_plans(const redlock::health& now, const std::vector<change>& wanted) {
    for (const redlock::master_health& one : now.masters) {
        for (change each : wanted) {
            if (each.what == action::set_max_ttl) {
                continue;
            }
            each.what = each.what == action::add ? action::remove : action::add;
            if (has_plan(now, one) && one.planned == shown(each)) {
                refuse_plan(now, one.planned);
            }
        }
    }
}

const redlock::master_health*
state_of(const redlock::health& now, const redlock::config& how, const std::string& name) {
    for (std::size_t i = 0; i < now.masters.size(); ++i) {
        if (name_of(how.masters[i]) == name) {
            return &now.masters[i];
        }
    }
    return nullptr;
}

bool replies(const redlock::master_health& one) {
    return one.state != redlock::master_state::down
           && one.state != redlock::master_state::connecting
           && one.state != redlock::master_state::silent;
}

// Whether all records that could be read have the present generation, as final.
bool is_settled(const redlock::health& now) {
    return std::ranges::none_of(now.masters, [&](const redlock::master_health& each) {
        return !each.planned.empty() || (each.generation != 0 && each.generation < now.generation);
    });
}

bool is_made(const redlock::health& now, const change& one, redlock::config how) {
    if (one.what == action::set_max_ttl) {
        how.max_ttl = one.max_ttl;
        return is_settled(now) && now.max_ttl == one.max_ttl
               && now.quarantine_time
                      <= redlock::detail::times_of(how, {}).quarantine + milliseconds(1);
    }
    return is_member(now, one.master) == (one.what == action::add);
}

// Those that are not made yet, in this order. The new master comes first, unless the old one is
// dead: then it could not take part in the addition.
std::vector<change> steps_of(
    const std::vector<change>& wanted, const redlock::health& now, const redlock::config& how) {
    std::vector<change> out;
    std::ranges::remove_copy_if(
        wanted, std::back_inserter(out), [&](const change& one) { return is_made(now, one, how); });
    if (out.size() == 2 && !is_planned(now, out[0])
        && (is_planned(now, out[1]) || !replies(*state_of(now, how, out[1].master)))) {
        std::swap(out[0], out[1]);
    }
    return out;
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
                  "half of them, by the same names: so a quorum of one master cannot grow. To "
                  "found another list: stop all clients, DEL PREFIX:epoch (by default "
                  "redlock::epoch) on each master, then redlock members found"
                : "",
            printable(to_string(now))));
}

// Refuses changes that cannot all be made with this list of masters.
void check(
    const redlock::health& now, const redlock::config& how, const std::vector<change>& steps) {
    const bool adds =
        std::ranges::any_of(steps, [](const change& one) { return one.what == action::add; });
    if (adds && std::ranges::any_of(now.masters, [](const auto& one) {
            return one.state == redlock::master_state::duplicate;
        })) {
        throw failure(exit_code::usage, "two masters of the list are the same server");
    }
    for (const std::string& name : now.members) {
        if (std::ranges::none_of(how.masters, [&](const auto& one) { return name_of(one) == name; })
            && name != steps[0].master) {
            throw failure(
                exit_code::usage,
                printable(name)
                    + " is a member, and not in the list of masters: the list needs all members, "
                      "and the new master");
        }
    }
    std::size_t members = now.members.size();
    for (const change& one : steps) {
        if (one.what == action::set_max_ttl) {
            continue;
        }
        if (one.what == action::remove && members == 2) {
            throw failure(
                exit_code::usage,
                "a quorum of two masters cannot lose one: add another master first");
        }
        members = one.what == action::add ? members + 1 : members - 1;
        if (2 * members <= how.masters.size()) {
            throw failure(
                exit_code::usage,
                fmt::format(
                    "{}: {} members would be left, and the list has {} masters: they must be more "
                    "than half of it, or clients with this list stop{}",
                    shown(one),
                    members,
                    how.masters.size(),
                    steps.size() == 2 ? ". Remove it with a list without the new master, then add "
                                        "that one"
                                      : ""));
        }
    }
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
    const redlock::health& now, const redlock::config& how, const std::vector<change>& steps) {
    for (const change& one : steps) {
        const redlock::master_health* const mine = state_of(now, how, one.master);
        if (one.what == action::add && mine != nullptr && mine->generation != 0
            && mine->generation + 1 != now.generation) {
            throw failure(
                exit_code::no_quorum,
                fmt::format(
                    "{} has the memory record of another quorum, or of long ago (generation {}): "
                    "empty it first",
                    printable(one.master),
                    mine->generation));
        }
    }
}

// The masters that must reply, and do not.
void say_awaited(
    const redlock::health& now, const redlock::config& how, const std::vector<change>& steps) {
    std::vector<std::string> needed = now.members;
    for (const change& one : steps) {
        if (one.what == action::add) {
            needed.push_back(one.master);
        } else if (&one == &steps.front()) {
            std::erase(needed, one.master);
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
redlock::health
found(const change& wanted, redlock::config how, redlock::health now, bool only_shows) {
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
                      return is_member(found, name_of(one));
                  });
    };
    // Of a founding that was interrupted, not all masters have the final list.
    const auto unfinished = [](const redlock::master_health& one) {
        return replies(one) && one.generation == 0;
    };
    if (is_ours(now) && std::ranges::none_of(now.masters, unfinished)) {
        say(wanted.what == redlock::member_change::action::found_unused && !now.ready
                ? "the quorum has been founded already, so --new changes nothing. If its masters "
                  "are new: stop all clients, DEL PREFIX:epoch (by default redlock::epoch) "
                  "on each, then redlock members found --new"
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
    how.change = wanted;
    how.founds_quorum = true;
    session founder(how);
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

// Ends when the change is final.
void make(const change& wanted, redlock::config how) {
    how.change = wanted;
    session now(how);
    now.settle(need::all, std::chrono::seconds(10));
    std::string said;
    std::uint64_t generation = now.manager.get_health().generation;
    for (;;) {
        const redlock::health health = now.manager.get_health();
        refuse_outdated(health, how);
        if (!health.members.empty() && is_made(health, wanted, how)) {
            return;
        }
        if (wanted.what == action::set_max_ttl && !health.members.empty() && health.change.empty()
            && is_settled(health)) {
            throw failure(
                exit_code::no_quorum,
                fmt::format(
                    "a client that sets a longer max_ttl has raised it again: it is {}, with a "
                    "quarantine of {}",
                    duration_text(health.max_ttl),
                    duration_text(health.quarantine_time)));
        }
        if (generation != 0 && health.generation > generation + 1) {
            throw failure(exit_code::no_quorum, printable(health.change));
        }
        if (health.generation != generation && !health.members.empty()) {
            check(health, how, {wanted}); // another change may have made it impossible
        }
        generation = health.generation;
        if (health.change != said && !health.change.empty()) {
            said = health.change;
            say(shown(wanted) + ": " + printable(said));
        }
        if (now.pause(std::chrono::milliseconds(100))) {
            throw failure(
                static_cast<exit_code>(by_signal + now.signal()),
                "stopped; the same command continues the change, with its wait from the beginning");
        }
    }
}

} // namespace

redlock::health
make_changes(const std::vector<change>& wanted, const redlock::config& how, bool only_shows) {
    for (bool first = true;; first = false) {
        redlock::health now;
        {
            session before(how);
            before.settle(need::all, std::chrono::seconds(10));
            if (before.signal() != 0) {
                throw failure(static_cast<exit_code>(by_signal + before.signal()), "stopped");
            }
            now = before.manager.get_health();
        }
        refuse_outdated(now, how);
        if (wanted.front().what >= action::found) {
            return found(wanted.front(), how, std::move(now), only_shows);
        }
        refuse_unknown(now);
        const std::vector<change> steps = steps_of(wanted, now, how);
        if (steps.empty()) {
            refuse_opposite_plans(now, wanted);
            for (const change& one : wanted) {
                if (first) {
                    say(one.what == action::set_max_ttl
                            ? "max_ttl is " + duration_text(one.max_ttl) + " already"
                            : printable(one.master)
                                  + (one.what == action::add ? " is a member already"
                                                             : " is not a member"));
                }
            }
            return now;
        }
        check(now, how, steps);
        std::size_t members = now.members.size();
        for (const change& one : steps) {
            members += one.what == action::add ? 1U : 0U;
            members -= one.what == action::remove ? 1U : 0U;
        }
        if (members != now.members.size()) {
            warn_of_even(members);
        }
        if (steps.front().what == action::set_max_ttl && steps.front().max_ttl < now.max_ttl) {
            say(fmt::format(
                "holders whose --grace (stop_margin) is more than {} will stop with their next "
                "extension",
                duration_text(steps.front().max_ttl / 2)));
        }
        if (only_shows) {
            refuse_other_plans(now, steps.front());
            refuse_old_record(now, how, steps);
            say_awaited(now, how, steps);
            std::uint64_t generation = now.generation;
            for (const change& one : steps) {
                say(fmt::format("{} would make generation {}", shown(one), ++generation));
            }
            return now;
        }
        make(steps.front(), how);
    }
}

} // namespace cli
