#include "membership.hpp"

#include "core/base/decisions.hpp"

#include <utility>

namespace redlock::core {

membership::membership(const settings& rules)
    : rules_(rules),
      own_{1, rules.members, {}},
      voters_(rules.size()),
      quorum_(rules.quorum()),
      seen_(rules.size()) {
    std::ranges::sort(own_.members);
    for (std::size_t i = 0; i < rules.members.size(); ++i) {
        seen_[i].name = rules.members[i];
    }
}

membership::proposal membership::proposal_to(std::size_t master) {
    if (!enforced()) {
        return {};
    }
    seen& one = seen_[master];
    const recorded_list next = wanted_on(one);
    if (next.what == state::none) {
        return {};
    }
    one.proposed_at = look_;
    const bool first = next.what == state::founding && one.list.what == state::none;
    return {
        .list = written(next),
        .id = first ? std::string() : one.id,
        .quarantine = quarantine_with(next, one),
        .unused = rules_.unused && view_.number == 0};
}

void membership::read(
    std::size_t master,
    std::string_view record,
    std::uint32_t look,
    time_point now,
    time_point votes_from) {
    if (!enforced()) {
        return;
    }
    seen& one = seen_[master];
    const std::string_view id = last_word(record);
    if (!one.known || one.id != id) {
        ++look_;
        moved_ = moved_ || one.known;
        changed_at_ = now;
        replacing_ = false;
        const bool was_ours = one.list == recorded_list{state::founding, own_};
        one = {
            .name = one.name,
            .known = true,
            .list = read_list(id),
            .id = std::string(id),
            .quarantine = recorded_quarantine(record),
            .read_at = look};
        if (wrong::unfinished_list_votes && one.list.unfinished()) {
            one.list.what = state::final;
        }
        contradicted_ = contradicted_ || (was_ours && is_rival(one.list));
        adopt(one.list);
        if (std::ranges::none_of(
                seen_, [](const seen& each) { return each.list.founded() || !each.known; })) {
            adopt(generation()); // what a client remembers proves nothing: the quorum is founded
                                 // again
        }
        one.votes_from = votes_from;
    } else {
        one.refused_at = one.proposed_at == look ? look : one.refused_at;
        one.read_at = look;
        one.votes_from = std::min(one.votes_from, votes_from); // without a quarantine: now
    }
    look_for_agreement(now);
    look_for_rivals(now);
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

void membership::adopt(generation&& newer) {
    view_ = std::move(newer);
    known_members_ =
        set_where(seen_.size(), [this](std::size_t i) { return view_.contains(seen_[i].name); });
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
    adopt(of.what == state::final ? generation(of.list) : generation{of.number(), of.voting(), {}});
    voters_ = view_.members.size();
    quorum_ = quorum_of(voters_);
    stage_ = stage::agreeing;
    commit_at_ = forever;
    if (change_) {
        const bool made = made_in_view() && (change_->max_ttl.count() == 0 || before != 0);
        // Of two generations at once, it may have been made and undone again.
        over_ = made || (moved_ && (over_ || (before != 0 && view_.number > before + 1)));
    }
}

void membership::make(std::optional<member_change> what, time_point now) {
    change_ = std::move(what);
    moved_ = over_ = false;
    stage_ = stage::agreeing;
    commit_at_ = forever;
    look_for_agreement(now);
}

bool membership::confirmed() const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        sum += serves(i) && seen_[i].read_at >= asked_ ? 1U : 0U;
    }
    return view_.number != 0 && sum >= quorum_;
}

// Once all masters have had a plan at the same moment, it cannot get lost.
void membership::look_for_agreement(time_point now) {
    const auto next = stage_ == stage::agreeing ? planned() : std::nullopt;
    if (next && next->on_all() && std::ranges::all_of(next->masters, [&](const seen* one) {
            return one->read_at == look_;
        })) {
        stage_ = stage::waiting;
        const bool lowers = change_->max_ttl.count() != 0;
        const auto wait =
            std::max(longest_quarantine(), rules_.recorded_quarantine(rules_.usual_max_ttl()));
        commit_at_ = wrong::change_committed_at_once    ? now
                     : wrong::lowered_at_once && lowers ? now
                                                        : later(now, wait);
    }
}

void membership::time_passed(time_point now) noexcept {
    if (now >= commit_at_) {
        stage_ = stage::committing;
        commit_at_ = forever;
    }
    if (now >= replace_at_) {
        replacing_ = true;
        replace_at_ = forever;
    }
}

std::chrono::microseconds membership::longest_quarantine() const {
    std::chrono::microseconds out{0};
    for (const seen& one : seen_) {
        const bool counts =
            view_.contains(one.name) || (!view_.last.adds && view_.last.name == one.name);
        if (counts && one.list.founded()) {
            out = std::max(out, one.quarantine);
        }
    }
    return out;
}

// The quarantine that is recorded together with a list: for a quorum that is founded, what its
// masters ask for already, or the default. A master that returns takes the longest of the others.
// Only the list that changes `max_ttl` shortens one: every longer lease is over then. If a client
// has asked for more since, masters with that list have recorded it.
std::chrono::microseconds
membership::quarantine_with(const recorded_list& next, const seen& one) const {
    std::chrono::microseconds out{0};
    const std::chrono::milliseconds changed = next.list.last.max_ttl;
    if (next.what == state::founding) {
        for (const seen& each : seen_) {
            out = std::max(out, each.quarantine);
        }
        return out.count() == 0 && rules_.quarantine && rules_.max_ttl.count() == 0
                   ? rules_.founding_quarantine()
                   : out;
    }
    if (next.what == state::final && changed.count() != 0 && one.list.founded()) {
        out = rules_.recorded_quarantine(changed);
        for (const seen& each : seen_) {
            const bool has_it = each.list.what == state::final && each.list.list == next.list;
            out = has_it ? std::max(out, each.quarantine) : out;
        }
        return out;
    }
    const bool stays = is_ours(one.list);
    return stays ? one.quarantine : std::max(one.quarantine, longest_quarantine());
}

const membership::seen* membership::find(std::string_view name) const {
    const auto at = std::ranges::find(seen_, name, &seen::name);
    return at == seen_.end() ? nullptr : &*at;
}

bool membership::all_just_read() const noexcept {
    return std::ranges::all_of(seen_, [&](const seen& one) { return one.read_at == look_; });
}

// Whether all masters of this client's list have it, in this state or a later one, and nothing
// newer is known.
bool membership::founding_everywhere(state least) const {
    return view_.number <= 1 && std::ranges::all_of(seen_, [&](const seen& one) {
               return one.list.what >= least && one.list.what <= state::final
                      && one.list.list == own_;
           });
}

// Whether it would be final soon if it replaced the lists of others.
bool membership::can_be_founded() const {
    return rules_.founds && view_.number == 0 && std::ranges::all_of(seen_, [&](const seen& one) {
               return one.known
                      && (one.list.what == state::none || one.list.list == own_
                          || is_rival(one.list));
           });
}

// A list that makes no progress for a quarantine gives way, unless both clients go on. Of two lists
// that could replace each other, one begins earlier.
void membership::look_for_rivals(time_point now) {
    replace_at_ = forever;
    if (replacing_ || !can_be_founded() || (contradicted_ && !rules_.replaces)) {
        return;
    }
    const auto pause =
        std::min<std::chrono::nanoseconds>(rules_.founding_quarantine(), rules_.poll_limit);
    time_point last = never;
    for (const seen& one : seen_) {
        if (is_rival(one.list)) {
            const auto later_by = own_.members > one.list.list.members
                                      ? rules_.founding_quarantine() / 4
                                      : std::chrono::nanoseconds(0);
            last = std::max(
                last, later(std::max(one.votes_from, later(changed_at_, pause)), later_by));
        }
    }
    if (last != never) {
        replace_at_ = rules_.replaces ? now : last;
    }
}

// Whether a quorum whose members have never changed has lost too many records to restore the others
// from them, while all its masters reply: it is founded again.
bool membership::lost_by_most() const {
    return view_.number == 1 && view_.members == own_.members && all_just_read()
           && !enough_read(view_.members)
           && std::ranges::none_of(seen_, [](const seen& one) { return one.list.is_planned(); });
}

bool membership::serves(std::size_t master) const {
    return wrong::any_list_votes || !enforced()
           || (is_ours(seen_[master].list) && view_.contains(seen_[master].name)
               && newer() == nullptr);
}

bool membership::being_founded(std::size_t master) const noexcept {
    const recorded_list& list = seen_[master].list;
    return enforced() && !wrong::any_list_votes
           && (view_.number == 0 || view_.contains(seen_[master].name))
           && (list.what == state::none
               || (list.unfinished()
                   && (view_.number != 0 || list.list == own_
                       || (is_rival(list) && (replacing_ || replace_at_ != forever)))));
}

} // namespace redlock::core
