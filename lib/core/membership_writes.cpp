// What this client writes to the memory records of the masters: the list of a quorum that it
// founds, a change of the members, and the list of a master that has lost its record.

#include "decisions.hpp"
#include "membership.hpp"

#include <algorithm>
#include <utility>

namespace redlock::core {

namespace {

using state = recorded_list::state;

} // namespace

recorded_list membership::founding_of(const seen& one) const {
    if (!rules_.founds) {
        return {};
    }
    if (one.list.what == state::none) {
        return {state::founding, own_};
    }
    const bool agreed =
        one.list.what == state::founding && founding_everywhere() && all_just_read();
    return agreed ? recorded_list{state::final, own_} : recorded_list{};
}

// Whether all masters that must have the plan are known, and none of them belongs to another
// quorum.
bool membership::can_be_made(const generation& next) const {
    const auto masters = order_of(next);
    return !masters.empty() && std::ranges::all_of(masters, [&](std::size_t i) {
        return seen_[i].known && !stays_away(i);
    });
}

// Whether its record cannot become one of ours: of another quorum, or of one long ago.
bool membership::stays_away(std::size_t master) const {
    const recorded_list& list = seen_[master].list;
    const bool ours = !list.founded() || is_ours(list) || wanted_over(list, master);
    return list.what == state::invalid || !ours;
}

// The next step of the change that this client makes.
recorded_list membership::change_on(std::size_t master) const {
    const auto next = planned();
    if (!next) {
        return {};
    }
    const recorded_list plan{state::planned, *next};
    const auto masters = order_of(*next);
    if (stage_ == stage::committing && seen_[master].list == plan) {
        return {state::final, *next};
    }
    if (!can_be_made(*next)) {
        return {}; // nothing is begun that could not be finished
    }
    const auto first =
        std::ranges::find_if(masters, [&](std::size_t i) { return seen_[i].list != plan; });
    const bool open = wrong::plan_overwritten || seen_[master].list.what != state::planned;
    return first != masters.end() && *first == master && open ? plan : recorded_list{};
}

// A master without a list, or with one that was never final: it lost its record, or is new.
recorded_list membership::returned_to(std::size_t master) const {
    if (newer() != nullptr) {
        return {};
    }
    const std::string& name = rules_.members[master];
    recorded_list newest{state::final, view_};
    for (const seen& one : seen_) {
        if (one.read_at != look_ || one.list.what != state::planned || !is_ours(one.list)) {
            continue;
        }
        const bool rival = newest.what == state::planned && one.list != newest;
        if (rival && !refuted(newest) && !refuted(one.list)) {
            return {}; // one of the two may be final soon, and it is not known which
        }
        // If neither can be final soon, the one that is on more masters: so a person can decide.
        const bool stays = rival && refuted(one.list)
                           && (!refuted(newest) || recorded_by(newest) >= recorded_by(one.list));
        newest = stays ? newest : one.list;
    }
    const bool belongs = view_.contains(name) || newest.list.contains(name);
    const bool complete = newest.list.number == 1 || !newest.list.last.name.empty();
    return belongs && complete && enough_before() && enough_read(view_.members)
                   && enough_read(newest.list.members)
               ? newest
               : recorded_list{};
}

recorded_list membership::wanted_on(std::size_t master) const {
    const seen& one = seen_[master];
    if (view_.number == 0) {
        return founding_of(one);
    }
    if (!one.known || one.list.what == state::invalid) {
        return {};
    }
    if (!one.list.founded()) {
        return founding_everywhere() || lost_by_most() ? founding_of(one) : returned_to(master);
    }
    if (is_ours(one.list)) {
        return change_on(master);
    }
    return wanted_over(one.list, master) ? recorded_list{state::final, view_} : recorded_list{};
}

// Whether our list replaces an older one. It cannot be written while its last change is not known.
bool membership::wanted_over(const recorded_list& list, std::size_t master) const {
    if (list.number() >= view_.number || view_.last.name.empty()) {
        return false;
    }
    return view_.contains(rules_.members[master])
           || (view_.number == list.number() + 1 && list.voting() == view_.before());
}

// The record of a member with newer members, of which this client's list has too few: then this
// client must neither count by the older ones nor restore them. What another master has does not
// matter. It may belong to another quorum.
const recorded_list* membership::newer() const {
    const recorded_list* newest = nullptr;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        const recorded_list& list = seen_[i].list;
        if (list.number() > (newest != nullptr ? newest->number() : view_.number)
            && view_.contains(rules_.members[i])) {
            newest = &list;
        }
    }
    return newest;
}

std::ptrdiff_t membership::recorded_by(const recorded_list& list) const {
    return std::ranges::count(seen_, list, &seen::list);
}

// Whether not all masters have had this plan: one of them has something else.
bool membership::refuted(const recorded_list& plan) const {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        const seen& one = seen_[i];
        if (one.read_at == look_ && one.list.founded() && one.list != plan
            && plan.list.contains(rules_.members[i])) {
            return true;
        }
    }
    return false;
}

// N - q + 1: each majority has one of them.
bool membership::enough_read(const member_names& of) const {
    std::size_t read = 0;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        const bool fresh = seen_[i].read_at == look_;
        const bool counts = fresh && seen_[i].list.founded();
        read += counts && std::ranges::binary_search(of, rules_.members[i]) ? 1U : 0U;
    }
    return read >= of.size() - quorum_of(of.size()) + 1;
}

// The same for the members before the last change.
bool membership::enough_before() const {
    if (view_.number == 1) {
        return true;
    }
    if (!view_.last.name.empty()) {
        return enough_read(view_.before());
    }
    // Plans do not tell what the last change was. All members but one are enough after any.
    const auto read = std::ranges::count_if(view_.members, [&](const std::string& name) {
        const auto at = std::ranges::find(rules_.members, name);
        if (at == rules_.members.end()) {
            return false;
        }
        const seen& one = seen_[static_cast<std::size_t>(at - rules_.members.begin())];
        return one.read_at == look_ && one.list.founded();
    });
    return view_.members.size() > 2 && static_cast<std::size_t>(read) + 1 >= view_.members.size();
}

bool membership::wants_handshake(std::size_t master) const {
    const seen& one = seen_[master];
    if (!enforced() || !one.known || one.refused_at == look_) {
        return false;
    }
    // Another client may have made an older record newer.
    const bool behind = one.list.founded() && one.list.number() < view_.number;
    return wanted_on(master).what != state::none
           || (one.read_at != look_ && (behind || needs_look()));
}

// Whether it depends on another reading of all records how to go on.
bool membership::needs_look() const {
    if (view_.number == 0) {
        return founding_everywhere();
    }
    const auto next = planned();
    const auto masters = next ? order_of(*next) : std::vector<std::size_t>();
    if (!masters.empty() && stage_ == stage::agreeing
        && all_have({state::planned, *next}, masters)) {
        return true;
    }
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        const std::string& name = rules_.members[i];
        const bool belongs = view_.contains(name) || (next && next->contains(name));
        if (belongs && seen_[i].known && !seen_[i].list.founded()) {
            return true;
        }
    }
    return false;
}

std::optional<generation> membership::planned() const {
    if (!rules_.change || view_.number == 0 || over_) {
        return std::nullopt;
    }
    // A quorum of two cannot lose one: no client accepts the two and the one that is left. So two
    // that were removed one after the other can never be a majority of the three.
    auto next = view_.after(*rules_.change);
    return next && accepts(next->members) ? next : std::nullopt;
}

// Those that belong to the quorum before and after it, then a new one. Empty if this client does
// not know them all.
std::vector<std::size_t> membership::order_of(const generation& next) const {
    std::vector<std::size_t> out;
    const auto add = [&](const std::string& name) {
        const auto at = std::ranges::find(rules_.members, name);
        if (at != rules_.members.end()) {
            out.push_back(static_cast<std::size_t>(at - rules_.members.begin()));
        }
    };
    for (const std::string& name : next.members) {
        if (view_.contains(name)) {
            add(name);
        }
    }
    if (next.last.adds) {
        add(next.last.name);
    }
    return out.size() == next.members.size() ? out : std::vector<std::size_t>();
}

} // namespace redlock::core
