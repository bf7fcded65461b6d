// What this client writes to the memory records of the masters: the list of a quorum that it
// founds, a change of the members, and the list of a master that has lost its record.

#include "core/base/decisions.hpp"
#include "membership.hpp"

namespace redlock::core {

recorded_list membership::founding_of(const seen& one) const {
    if (!rules_.founds) {
        return {};
    }
    // Without a reply of each, it cannot become final: one may be a mistake, or have another list.
    if (one.list.what == state::none) {
        return std::ranges::all_of(seen_, &seen::known) ? recorded_list{state::founding, own_}
                                                        : recorded_list{};
    }
    if (wrong::founded_list_replaced && one.list.list != own_) {
        return {state::founding, own_};
    }
    if (is_rival(one.list)) {
        return replacing_ && can_be_founded() ? recorded_list{state::founding, own_}
                                              : recorded_list{};
    }
    const bool next =
        one.list.unfinished() && all_just_read() && founding_everywhere(one.list.what);
    const bool final = wrong::agreed_step_skipped || one.list.what == state::agreed;
    return next ? recorded_list{final ? state::final : state::agreed, own_} : recorded_list{};
}

// Whether its record cannot become one of ours: of another quorum, or of one long ago.
bool membership::stays_away(const seen& one) const {
    const bool ours = !one.list.founded() || is_ours(one.list) || wanted_over(one);
    return one.list.what == state::invalid || !ours;
}

// The next step of the change that this client makes.
recorded_list membership::change_on(const seen& one) const {
    const auto next = planned();
    if (!next) {
        return {};
    }
    if (stage_ == stage::committing && one.list == next->list) {
        return {state::final, next->list.list};
    }
    // Nothing is begun that could not be finished, because a master is not known, or belongs to
    // another quorum.
    const bool can_be_made = std::ranges::none_of(
        next->masters, [&](const seen* each) { return !each->known || stays_away(*each); });
    const auto first = std::ranges::find_if(
        next->masters, [&](const seen* each) { return each->list != next->list; });
    const bool open = wrong::plan_overwritten || !one.list.is_planned();
    return can_be_made && first != next->masters.end() && *first == &one && open ? next->list
                                                                                 : recorded_list{};
}

// A master without a list, or with one that was never final: it lost its record, or is new, or its
// founder stopped. In the last case the first final record shows that all masters had the list.
recorded_list membership::returned_to(const seen& master) const {
    if (newer() != nullptr) {
        return {};
    }
    if (master.list.what == state::agreed && view_.number == 1
        && master.list.list.members == view_.members) {
        return {state::final, view_};
    }
    recorded_list newest{state::final, view_};
    for (const seen& one : seen_) {
        if (one.read_at != look_ || !one.list.is_planned() || !is_ours(one.list)) {
            continue;
        }
        const bool rival = newest.is_planned() && one.list != newest;
        if (rival && !refuted(newest) && !refuted(one.list)) {
            return {}; // one of the two may be final soon, and it is not known which
        }
        // If neither can be final soon, the one that is on more masters: so a person can decide.
        const bool stays = rival && refuted(one.list)
                           && (!refuted(newest) || recorded_by(newest) >= recorded_by(one.list));
        newest = stays ? newest : one.list;
    }
    const bool belongs = view_.contains(master.name) || newest.list.contains(master.name);
    const bool complete = newest.list.number == 1 || newest.list.last.known();
    return belongs && complete && enough_before() && enough_read(view_.members)
                   && enough_read(newest.list.members)
               ? newest
               : recorded_list{};
}

recorded_list membership::wanted_on(const seen& one) const {
    if (view_.number == 0) {
        return founding_of(one);
    }
    if (!one.known || one.list.what == state::invalid) {
        return {};
    }
    if (!one.list.founded()) {
        return founding_everywhere() || lost_by_most() ? founding_of(one) : returned_to(one);
    }
    if (is_ours(one.list)) {
        return change_on(one);
    }
    return wanted_over(one) ? recorded_list{state::final, view_} : recorded_list{};
}

// Whether our list replaces an older one. It cannot be written while its last change is not known.
bool membership::wanted_over(const seen& one) const {
    if (one.list.number() >= view_.number || !view_.last.known()) {
        return false;
    }
    return view_.contains(one.name)
           || (view_.number == one.list.number() + 1 && one.list.voting() == view_.before());
}

// The record of a member with newer members, of which this client's list has too few: then this
// client must neither count by the older ones nor restore them. What another master has does not
// matter. It may belong to another quorum.
const recorded_list* membership::newer() const {
    const recorded_list* newest = nullptr;
    for (const seen& one : seen_) {
        if (one.list.number() > (newest != nullptr ? newest->number() : view_.number)
            && view_.contains(one.name)) {
            newest = &one.list;
        }
    }
    return newest;
}

// Whether not all masters have had this plan: one of them has something else.
bool membership::refuted(const recorded_list& plan) const {
    return std::ranges::any_of(seen_, [&](const seen& one) {
        return is_fresh(one) && one.list != plan && plan.list.contains(one.name);
    });
}

std::size_t membership::read_of(const member_names& of) const {
    return static_cast<std::size_t>(std::ranges::count_if(seen_, [&](const seen& one) {
        return is_fresh(one) && std::ranges::binary_search(of, one.name);
    }));
}

// The same for the members before the last change. Plans do not tell what that was. All members but
// one are enough after any.
bool membership::enough_before() const {
    const member_names& now = view_.members;
    return view_.number == 1
           || (view_.last.known() ? enough_read(view_.before())
                                  : now.size() > 2 && read_of(now) + 1 >= now.size());
}

bool membership::proposes(std::size_t master) const {
    return enforced() && seen_[master].known && wanted_on(seen_[master]).what != state::none;
}

bool membership::wants_handshake(std::size_t master) const {
    const seen& one = seen_[master];
    if (!enforced() || !one.known || one.refused_at == look_) {
        return false;
    }
    // Another client may have made an older record newer.
    const bool behind = one.list.founded() && one.list.number() < view_.number;
    return proposes(master)
           || (one.read_at != look_ && (behind || one.read_at < asked_ || needs_look()));
}

// Whether it depends on another reading of all records how to go on.
bool membership::needs_look() const {
    if (view_.number == 0) {
        return founding_everywhere();
    }
    const auto next = planned();
    return (next && stage_ == stage::agreeing && next->on_all())
           || std::ranges::any_of(seen_, [&](const seen& one) {
                  const bool belongs =
                      view_.contains(one.name) || (next && next->list.list.contains(one.name));
                  return belongs && one.known && !one.list.founded();
              });
}

std::optional<membership::plan> membership::planned() const {
    if (!change_ || view_.number == 0 || over_) {
        return std::nullopt;
    }
    // A quorum of two cannot lose one: no client accepts the two and the one that is left. So two
    // that were removed one after the other can never be a majority of the three.
    const auto next = view_.after(*change_);
    if (!next || !accepts(next->members)) {
        return std::nullopt;
    }
    plan out{{state::planned, *next}, {}};
    for (const bool joins : {false, true}) {
        for (const std::string& name : next->members) {
            const seen* const one = find(name);
            if (one != nullptr && joins != view_.contains(name)) {
                out.masters.push_back(one);
            }
        }
    }
    if (out.masters.size() != next->members.size()) {
        out.masters.clear();
    }
    return out;
}

bool membership::plan::on_all() const {
    return !masters.empty()
           && std::ranges::all_of(masters, [&](const seen* one) { return one->list == list; });
}

} // namespace redlock::core
