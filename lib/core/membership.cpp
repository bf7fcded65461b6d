#include "membership.hpp"

#include "decisions.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace redlock::core {

namespace {

using state = recorded_list::state;

// The longest quarantine that a client has asked for: the fifth word.
std::chrono::microseconds quarantine_in(std::string_view record) {
    for (int word = 0; word < 4; ++word) {
        record.remove_prefix(std::min(record.find(' '), record.size() - 1) + 1);
    }
    std::int64_t us = 0;
    std::from_chars(record.data(), record.data() + record.size(), us);
    return std::chrono::microseconds(us);
}

} // namespace

membership::membership(const settings& rules)
    : rules_(rules),
      own_{1, rules.members, {}},
      voters_(rules.size()),
      quorum_(rules.quorum()),
      seen_(rules.size()) {
    std::ranges::sort(own_.members);
}

membership::proposal membership::proposal_to(std::size_t master) {
    if (!enforced()) {
        return {};
    }
    seen& one = seen_[master];
    const recorded_list next = wanted_on(master);
    if (next.what == state::none) {
        return {};
    }
    one.proposed_at = look_;
    const bool returns = !one.list.founded();
    return {
        .list = written(next),
        .id = next.what == state::founding ? std::string() : one.id,
        .quarantine = returns ? longest_quarantine() : std::chrono::microseconds(0)};
}

void membership::read(
    std::size_t master, std::string_view record, std::uint32_t look, time_point now) {
    if (!enforced()) {
        return;
    }
    seen& one = seen_[master];
    const std::string_view id = record.substr(record.rfind(' ') + 1);
    if (!one.known || one.id != id) {
        ++look_;
        one = {
            .known = true,
            .list = read_list(id),
            .id = std::string(id),
            .quarantine = quarantine_in(record),
            .read_at = look};
        adopt(one.list);
        if (std::ranges::none_of(
                seen_, [](const seen& each) { return each.list.founded() || !each.known; })) {
            view_ = {}; // what a client remembers proves nothing: the quorum is founded again
        }
    } else {
        one.refused_at = one.proposed_at == look ? look : one.refused_at;
        one.read_at = std::max(one.read_at, look);
    }
    look_for_agreement(now);
}

// A list that knows more than half of the members, and whose larger part are members, cannot be
// taken for that of two quorums.
bool membership::accepts(const member_names& members) const {
    const auto shared =
        static_cast<std::size_t>(std::ranges::count_if(own_.members, [&](const std::string& name) {
            return std::ranges::binary_search(members, name);
        }));
    return 2 * shared > members.size() && 2 * shared > own_.members.size();
}

void membership::adopt(const recorded_list& of) {
    if (is_ours(of) && of.what == state::final) {
        view_.last = of.list.last; // a plan does not tell what the change before it was
    }
    // Of two lists of the same generation, one is of another quorum, or damaged.
    const bool ours_instead =
        of.number() == view_.number && view_.members != own_.members && of.voting() == own_.members;
    if (!of.founded() || (of.number() <= view_.number && !ours_instead) || !accepts(of.voting())) {
        return;
    }
    ++adopted_;
    const std::uint64_t before = view_.number;
    view_ = of.what == state::final ? of.list : generation{of.number(), of.voting(), {}};
    voters_ = view_.members.size();
    quorum_ = quorum_of(voters_);
    stage_ = stage::agreeing;
    commit_at_ = forever;
    if (rules_.change) {
        const bool made = view_.contains(rules_.change->name) == rules_.change->adds;
        // Of two generations at once, it may have been made and undone again.
        over_ = over_ || made || (before != 0 && view_.number > before + 1);
    }
}

// Once all masters have had a plan at the same moment, it cannot get lost.
void membership::look_for_agreement(time_point now) {
    const auto next = planned();
    if (!next || stage_ != stage::agreeing) {
        return;
    }
    const auto masters = order_of(*next);
    if (!masters.empty() && all_have({state::planned, *next}, masters) && just_read(masters)) {
        stage_ = stage::waiting;
        const auto wait =
            std::max<std::chrono::nanoseconds>(longest_quarantine(), rules_.quarantine_time());
        commit_at_ =
            later(now, wrong::change_committed_at_once ? std::chrono::nanoseconds(0) : wait);
    }
}

void membership::time_passed(time_point now) noexcept {
    if (now >= commit_at_) {
        stage_ = stage::committing;
        commit_at_ = forever;
    }
}

// The longest quarantine that any client has asked a member for. What a damaged record asks for
// does not spread: no configuration has a quarantine of two days.
std::chrono::microseconds membership::longest_quarantine() const {
    std::chrono::microseconds out{0};
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        const seen& one = seen_[i];
        const std::string& name = rules_.members[i];
        const bool counts = view_.contains(name) || (!view_.last.adds && view_.last.name == name);
        if (counts && one.list.founded() && one.quarantine < std::chrono::hours(48)) {
            out = std::max(out, one.quarantine);
        }
    }
    return out;
}

// Whether its members are those that this client has adopted.
bool membership::is_ours(const recorded_list& list) const {
    return view_.number != 0 && list.number() == view_.number && list.voting() == view_.members;
}

bool membership::all_have(
    const recorded_list& list, const std::vector<std::size_t>& masters) const {
    return std::ranges::all_of(masters, [&](std::size_t i) { return seen_[i].list == list; });
}

// Whether these masters have been read since the last change of a record that was seen.
bool membership::just_read(const std::vector<std::size_t>& masters) const {
    return std::ranges::all_of(masters, [&](std::size_t i) { return seen_[i].read_at == look_; });
}

bool membership::all_just_read() const noexcept {
    return std::ranges::all_of(seen_, [&](const seen& one) { return one.read_at == look_; });
}

// Whether all masters of this client's list have it, as final or not yet, and nothing newer is
// known.
bool membership::founding_everywhere() const {
    return view_.number <= 1 && std::ranges::all_of(seen_, [&](const seen& one) {
               return one.list == recorded_list{state::founding, own_}
                      || one.list == recorded_list{state::final, own_};
           });
}

// Whether a quorum whose members have never changed has lost too many records to restore the others
// from them, while all its masters reply: it is founded again.
bool membership::lost_by_most() const {
    return view_.number == 1 && view_.members == own_.members && all_just_read()
           && !enough_read(view_.members) && std::ranges::none_of(seen_, [](const seen& one) {
                  return one.list.what == state::planned;
              });
}

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

// Whether our list replaces an older one.
bool membership::wanted_over(const recorded_list& list, std::size_t master) const {
    const bool behind = list.number() < view_.number;
    const bool is_known = view_.number == 1 || !view_.last.name.empty();
    const bool was_member =
        behind && is_known && view_.number == list.number() + 1 && list.voting() == view_.before();
    return behind && is_known && (was_member || view_.contains(rules_.members[master]));
}

// The record of a member with newer members, of which this client's list has too few: then this
// client must neither count by the older ones nor restore them. What another master has does not
// matter. It may belong to another quorum.
const recorded_list* membership::newer() const {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        if (seen_[i].list.number() > view_.number && view_.contains(rules_.members[i])) {
            return &seen_[i].list;
        }
    }
    return nullptr;
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
    // From two to one: the two that were removed could still be a majority of the three.
    const bool too_few = !rules_.change->adds && view_.members.size() < 3;
    auto next = too_few ? std::nullopt : view_.after(*rules_.change);
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

bool membership::serves(std::size_t master) const {
    return wrong::any_list_votes || !enforced()
           || (is_ours(seen_[master].list) && view_.contains(rules_.members[master])
               && newer() == nullptr);
}

bool membership::being_founded(std::size_t master) const noexcept {
    const recorded_list& list = seen_[master].list;
    return enforced() && !wrong::any_list_votes
           && (view_.number == 0 || view_.contains(rules_.members[master]))
           && (list.what == state::none
               || (list.what == state::founding && (view_.number != 0 || list.list == own_)));
}

std::string membership::why_not(std::size_t master) const {
    if (serves(master)) {
        return {};
    }
    const recorded_list& list = seen_[master].list;
    if (list.what == state::invalid) {
        return "its memory record has a list of masters of another version, or a damaged one";
    }
    const bool foreign = list.founded() || (list.what == state::founding && list.list != own_);
    if (view_.number == 0) {
        return foreign ? "not a member of this client's quorum: it "
                             + std::string(list.founded() ? "belongs to" : "is being founded for")
                             + " that of " + shown(list.voting()) + ", and this client's list is "
                             + shown(own_.members)
                       : why_not_founded();
    }
    const std::string ours = shown(view_.members);
    if (const recorded_list* const present = newer()) {
        return "the members of the quorum have changed to " + shown(present->voting())
               + ", and this client's list has too few of them, or too many other masters: "
               + shown(own_.members);
    }
    if (!view_.contains(rules_.members[master])) {
        return "not a member of the quorum: its members are " + ours;
    }
    if (!list.founded()) {
        return "it lost its memory record, and receives the members of the quorum from the others";
    }
    return list.number() < view_.number
               ? "its memory record has earlier members of the quorum, and receives the present "
                 "ones: "
                     + ours
               : "its memory record has other members, " + shown(list.voting())
                     + ", than this client has read elsewhere: " + ours;
}

// "add d (planned on a, b)" for each plan of these members.
std::string membership::plans_text() const {
    std::map<std::string, std::string> masters; // by plan
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        const recorded_list& list = seen_[i].list;
        if (list.what == state::planned && is_ours(list)) {
            std::string& of = masters[list.list.last.shown()];
            of.append(of.empty() ? "" : ", ").append(rules_.members[i]);
        }
    }
    std::string out;
    for (const auto& [plan, of] : masters) {
        out.append(out.empty() ? "" : ", ").append(plan + " (planned on " + of + ")");
    }
    return out;
}

std::vector<std::size_t> membership::awaited() const {
    const auto next = planned();
    return next && stage_ != stage::waiting ? order_of(*next) : std::vector<std::size_t>();
}

std::string membership::change_text(time_point now) const {
    if (!rules_.change) {
        return plans_text();
    }
    const member_change& what = *rules_.change;
    if (view_.number == 0) {
        return "the members of the quorum are not known yet";
    }
    const auto next = planned();
    if (!next) {
        const bool made = view_.contains(what.name) == what.adds;
        return made    ? std::string()
               : over_ ? "the members have changed since, to " + shown(view_.members)
                             + ": begin the change again if it is still wanted"
               : view_.members.size() == 2
                   ? "a quorum of two masters cannot lose one"
                   : "the members must be more than half of this client's list";
    }
    if (stage_ == stage::committing) {
        return "being made final";
    }
    if (stage_ == stage::waiting) {
        const auto left = std::chrono::ceil<std::chrono::seconds>(std::max(commit_at_, now) - now);
        return "planned on all masters; final in " + std::to_string(left.count()) + " s";
    }
    std::string missing;
    std::string others;
    for (const std::string& name : next->members) {
        const auto at = std::ranges::find(rules_.members, name);
        if (at == rules_.members.end()) {
            return name + " is not in this client's list of masters";
        }
        const auto index = static_cast<std::size_t>(at - rules_.members.begin());
        const seen& one = seen_[index];
        if (one.known && one.list.what != state::planned && stays_away(index)) {
            return name
                   + " has the memory record of another quorum, or of long ago: empty it first";
        }
        if (one.list.what == state::planned && one.list.list != *next) {
            others.append(others.empty() ? "" : ", ")
                .append(name + " (" + one.list.list.last.shown() + ")");
        } else if (one.list.what != state::planned) {
            missing.append(missing.empty() ? "" : ", ").append(name);
        }
    }
    return !others.empty()    ? "waits for another change, which is planned on " + others
           : !missing.empty() ? "to be planned on " + missing
                              : "planned on all masters; reading them once more";
}

std::string membership::why_not_founded() const {
    std::string missing;
    std::string foreign;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        const recorded_list& list = seen_[i].list;
        if (list != recorded_list{state::founding, own_}) {
            std::string& names = list.what == state::none ? missing : foreign;
            names.append(names.empty() ? "" : ", ").append(rules_.names[i]);
        }
    }
    if (!foreign.empty()) {
        return "the quorum cannot be founded: another list is recorded on " + foreign;
    }
    return missing.empty() ? "the quorum is being founded"
                           : "the quorum is not founded yet: each master of the list must reply "
                             "once; missing: "
                                 + missing;
}

} // namespace redlock::core
