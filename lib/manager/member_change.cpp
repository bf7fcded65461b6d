#include "member_change.hpp"

#include "config/settings_of.hpp"
#include "config/value_checks.hpp"
#include "manager_access.hpp"
#include "manager_impl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

namespace {

// Whether this master has a plan for the next generation.
bool has_plan(const health& now, const master_health& one) {
    return !one.planned.empty() && one.generation == now.generation;
}

bool is_planned(const health& now, const member_change& what) {
    return std::ranges::any_of(now.masters, [&](const master_health& one) {
        return has_plan(now, one) && one.planned == what.shown();
    });
}

// Whether all records that could be read have the present generation, as final.
bool is_settled(const health& now) {
    return std::ranges::none_of(now.masters, [&](const master_health& one) {
        return !one.planned.empty() || (one.generation != 0 && one.generation < now.generation);
    });
}

bool is_made(const member_change& what, const health& now, const config& how) {
    if (what.max_ttl.count() == 0) {
        return is_member(now, what.name) == what.adds;
    }
    const auto quarantine = settings_of(how).recorded_quarantine(what.max_ttl);
    return is_settled(now) && now.max_ttl == what.max_ttl
           && now.quarantine_time <= std::chrono::ceil<std::chrono::milliseconds>(quarantine)
                                         + std::chrono::milliseconds(1);
}

// The new master comes first, unless the old one is dead: then it could not take part in the
// addition. A step that has begun stays the first.
member_changes steps_of(
    const member_changes& wanted,
    const health& now,
    const config& how,
    const std::optional<member_change>& current) {
    member_changes out;
    std::ranges::remove_copy_if(wanted, std::back_inserter(out), [&](const member_change& what) {
        return is_made(what, now, how);
    });
    if (out.size() == 2 && current != out[0] && !is_planned(now, out[0])
        && (current == out[1] || is_planned(now, out[1])
            || !replies(*state_of(now, how, out[1].name)))) {
        std::swap(out[0], out[1]);
    }
    return out;
}

member_plan refused(errc error, std::string text) {
    return {{}, error, std::move(text)};
}

member_plan refused_by(const health& now, const std::string& planned) {
    std::string on;
    for (const master_health& one : now.masters) {
        if (has_plan(now, one) && one.planned == planned) {
            core::add_item(on, one.endpoint);
        }
    }
    return refused(
        errc::conflicting_change,
        fmt::format(
            "{0} is planned on {1} and not final: finish it with redlock members {0}, then go on",
            planned,
            on));
}

// What is wanted is there, but would not last.
member_plan refused_by_opposite(const member_changes& wanted, const health& now) {
    for (member_change opposite : wanted) {
        opposite.adds = !opposite.adds;
        if (opposite.max_ttl.count() == 0 && is_planned(now, opposite)) {
            return refused_by(now, opposite.shown());
        }
    }
    return {};
}

// Another plan on a master that has to take part.
member_plan refused_by_other(const member_change& step, const health& now, const config& how) {
    for (std::size_t i = 0; i < now.masters.size(); ++i) {
        const master_health& one = now.masters[i];
        const std::string name = member_name(how.masters[i]);
        const bool takes_part =
            step.name == name && step.max_ttl.count() == 0 ? step.adds : is_member(now, name);
        if (takes_part && has_plan(now, one) && one.planned != step.shown()) {
            return refused_by(now, one.planned);
        }
    }
    return {};
}

// Refuses changes that cannot all be made with this list of masters.
member_plan refused_by_list(const member_changes& steps, const health& now, const config& how) {
    const bool adds = std::ranges::any_of(steps, &member_change::adds);
    if (adds
        && std::ranges::count(now.masters, master_state::duplicate, &master_health::state) > 0) {
        return refused(errc::invalid_argument, "two masters of the list are the same server");
    }
    for (const std::string& name : now.members) {
        if (state_of(now, how, name) == nullptr && name != steps[0].name) {
            return refused(
                errc::invalid_argument,
                name
                    + " is a member, and not in the list of masters: the list needs all members, "
                      "and the new master");
        }
    }
    std::size_t members = now.members.size();
    for (const member_change& step : steps) {
        if (step.max_ttl.count() != 0) {
            continue;
        }
        if (!step.adds && members == 2) {
            return refused(
                errc::invalid_argument,
                "a quorum of two masters cannot lose one: add another master first");
        }
        members = step.adds ? members + 1 : members - 1;
        if (2 * members <= how.masters.size()) {
            return refused(
                errc::invalid_argument,
                fmt::format(
                    "{}: {} members would be left, and the list has {} masters: they must be more "
                    "than half of it, or clients with this list stop{}",
                    step.shown(),
                    members,
                    how.masters.size(),
                    steps.size() == 2 ? ". Remove it with a list without the new master, then add "
                                        "that one"
                                      : ""));
        }
    }
    return {};
}

} // namespace

bool is_member(const health& now, std::string_view name) {
    return std::ranges::find(now.members, name) != now.members.end();
}

const master_health* state_of(const health& now, const config& how, std::string_view name) {
    const auto at = std::ranges::find(how.masters, name, member_name);
    return at == how.masters.end()
               ? nullptr
               : &now.masters[static_cast<std::size_t>(at - how.masters.begin())];
}

bool replies(const master_health& one) {
    return one.state != master_state::down && one.state != master_state::connecting
           && one.state != master_state::silent;
}

std::string outdated_on(const health& now, const config& how) {
    for (std::size_t i = 0; i < now.masters.size(); ++i) {
        std::string name = member_name(how.masters[i]);
        if (now.masters[i].generation > now.generation && is_member(now, name)) {
            return name;
        }
    }
    return {};
}

validation check_members(const member_changes& wanted, const config& how) {
    if (how.protocol == protocol::plain) {
        return against(
            "member",
            wanted.empty() ? "" : wanted.front().name,
            "only the guarded protocol has members");
    }
    for (const member_change& what : wanted) {
        if (what.max_ttl.count() == 0
            && std::ranges::count(how.masters, what.name, member_name) == 0) {
            return against("member", what.name, "it must be in the list of masters, by its name");
        }
    }
    return wanted.size() == 2 && wanted[0].name == wanted[1].name
               ? against("member", wanted[0].name, "a master cannot be replaced by itself")
               : validation();
}

member_plan plan_of(
    const member_changes& wanted,
    const health& now,
    const config& how,
    bool patient,
    const std::optional<member_change>& current) {
    if (!outdated_on(now, how).empty()) {
        return refused(errc::no_quorum, "this list of masters is outdated: " + to_string(now));
    }
    member_changes steps = steps_of(wanted, now, how, current);
    if (steps.empty()) {
        return refused_by_opposite(wanted, now);
    }
    member_plan out = patient ? member_plan() : refused_by_other(steps.front(), now, how);
    if (!out.error) {
        out = refused_by_list(steps, now, how);
    }
    out.steps = std::move(steps);
    return out;
}

void change_members(
    const lock_manager& manager,
    member_changes wanted,
    bool patient,
    diagnostics* why,
    boost::asio::any_completion_handler<void(error_code)> done) {
    manager_access::impl_of(manager).change_members(
        std::move(wanted), patient, why, std::move(done));
}

void found_quorum(const lock_manager& manager, bool unused) {
    manager_access::impl_of(manager).found(unused);
}

// --- The calls that wait ------------------------------------------------------------------------

void manager_impl::change_members(
    member_changes&& wanted, bool patient, diagnostics* why, handler<> done) {
    const section lock(*this);
    if (why != nullptr) {
        *why = {};
    }
    const auto refuse_with = [&](errc error, const std::string& text) {
        refuse(why, {}, text);
        complete(io(), std::move(done), error);
    };
    if (const validation valid = check_members(wanted, configuration()); !valid) {
        refuse_with(errc::invalid_argument, to_string(valid.error()));
        return;
    }
    if (!engine().running()) {
        complete(io(), std::move(done), why_not_running());
        return;
    }
    const bool joins = !change_.waiting.empty();
    if (joins && change_.wanted != wanted) {
        const member_change& other = change_.step.value_or(change_.wanted.front());
        refuse_with(
            errc::conflicting_change,
            other.shown() + " is in progress in this manager: wait for it or cancel it first");
        return;
    }
    const auto id = on_cancel(done, without_effects, [this](std::uint64_t id, auto) {
        const bool goes_on = !change_.waiting.empty();
        change_.waiting.complete(io(), id, aborted);
        if (goes_on && change_.waiting.empty()) {
            end_change();
        }
    });
    change_.waiting.add({id, why, completion<error_code>(std::move(done), io())});
    if (!joins) {
        change_.wanted = std::move(wanted);
        change_.patient = patient;
        dispatch([this](time_point now) { engine().read_members(now); });
    }
}

// The records may be older than the call until a majority was read again, and the order of the
// steps depends on whether the old master replies.
void manager_impl::look_at_change() {
    const health now = engine().examine(this->now());
    member_plan left = plan_of(change_.wanted, now, configuration(), change_.patient, change_.step);
    if (left.error == errc::no_quorum) {
        end_change(left.error, left.text);
        return;
    }
    const auto connects = [&](const member_change& what) {
        return state_of(now, configuration(), what.name)->state == master_state::connecting;
    };
    if (!engine().members_confirmed()
        || (!change_.step && left.steps.size() == 2 && std::ranges::any_of(left.steps, connects))) {
        return;
    }
    const std::uint64_t before = std::exchange(change_.generation, now.generation);
    if (left.error) {
        end_change(left.error, left.text);
    } else if (left.steps.empty()) {
        // The vote of a new master counts once it has the final list, unless it is away.
        const bool added = change_.step && change_.step->adds;
        const master_health* const joined =
            added ? state_of(now, configuration(), change_.step->name) : nullptr;
        if (joined == nullptr || joined->generation == now.generation || !replies(*joined)) {
            end_change();
        }
    } else if (before != 0 && now.generation > before + 1) {
        end_change(
            errc::conflicting_change,
            "the members have changed since, to " + core::shown(now.members)
                + ": begin the change again if it is still wanted");
    } else if (change_.step != left.steps.front()) {
        change_.step = left.steps.front();
        dispatch([this](time_point now) { engine().change_members(change_.step, now); });
    } else if (change_.step->max_ttl.count() != 0 && now.change.empty() && is_settled(now)) {
        end_change(errc::conflicting_change, {}); // a client has raised it again
    }
}

// What is planned stays so.
void manager_impl::end_change(const error_code& error, const std::string& why) {
    if (!why.empty()) {
        diagnostics explanation;
        refuse(&explanation, {}, why);
        change_.waiting.explain_all(explanation);
    }
    change_.waiting.complete_all(io(), error);
    change_.step.reset();
    change_.generation = 0;
    dispatch([this](time_point now) { engine().change_members(std::nullopt, now); });
}

}}} // namespace redlock::REDLOCK_ABI::detail
