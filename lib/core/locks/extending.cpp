// The extension of a claim that is held, and the replies that decide it (extension.hpp).

#include "claim.hpp"

#include <algorithm>

namespace redlock::core {

namespace {

key_state state_of(const answer& got, bool heals) noexcept {
    switch (got.said) {
    case vote::granted:
        return heals ? key_state::healed : key_state::kept;
    case vote::absent:
        return got.forgot ? key_state::quarantined : key_state::missing;
    case vote::quarantined:
        return key_state::quarantined;
    case vote::owned_by_other:
        return key_state::owned_by_other;
    default:
        return key_state::unknown;
    }
}

} // namespace

void claim::extend(std::chrono::milliseconds ttl, bool asked_for, const circumstances& at) {
    assert(is_held() && !extending_.active);
    if (!asked_for) {
        ttl_ = shortened(ttl);
    }
    extending_ = {
        .round = static_cast<std::uint16_t>(extending_.round + 1),
        .active = true,
        .asked_for = asked_for,
        .ttl = shortened(ttl),
        .sent = at.now};
    held_.next_at = later(at.now, at.rules.master_timeout);
    const time_point executed_by = at.rules.guarded() ? held_.deadline : at.now;
    expires_at_ = std::max(expires_at_, executed_by + ttl + at.rules.drift.of(ttl));
    votes.clear_texts();
    ttl_max_ = std::max(ttl_max_, extending_.ttl);
    for (ballot& theirs : votes.of) {
        theirs.latency = {};
        theirs.found = key_state::unknown;
    }
}

bool claim::extends_on(std::size_t master, bool guarded) noexcept {
    ballot& theirs = votes.of[master];
    if (!theirs.asked && !guarded) { // guarded: a key that is missing may be healed
        return false;
    }
    theirs.said = vote::pending;
    theirs.found = key_state::pending;
    return true;
}

void claim::heals_on(std::size_t master, drift_bound drift) noexcept {
    if (is_held()) {
        votes.of[master].asked = true;
        votes.of[master].found = key_state::pending;
        expires_at_ =
            std::max(expires_at_, held_.deadline + extending_.ttl + drift.of(extending_.ttl));
    } else {
        votes.of[master].said = vote::pending;
    }
}

steps claim::mend(master_set where, const circumstances& at) {
    const bool attaching = attaches();
    if (attaching) {
        asking_.at = asking_stage::heals;
    }
    to_ = 0;
    for (const std::size_t i : each_of(where)) {
        const ballot& theirs = votes.of[i];
        const bool missing =
            attaching ? theirs.said == vote::absent : theirs.found == key_state::missing;
        if (missing && may_send(command_kind::heal, extending_.round, at.now)) {
            heals_on(i, at.rules.drift);
            to_ |= set_of(i);
        }
    }
    const steps sent = to_ != 0 ? steps::heal : steps::none;
    if (attaching) {
        return to_ != 0 ? sent : failed(errc::no_quorum);
    }
    return extending_.active ? sent | judge(at) : sent;
}

steps claim::extend_answered(const told& from, const answer& got, const circumstances& at) {
    if (is_held() && at.now >= lost_at()) {
        // Its reply does not count: `held()` is false already, and must not become true again.
        return stop_now(at);
    }
    if (!is_held() && !is_asking()) {
        return steps::none;
    }
    const bool heals = from.kind == command_kind::heal;
    key_state found = wrong::any_reply_extends && got.said != vote::unreachable
                          ? key_state::kept
                          : state_of(got, heals);
    // The script used the master's clock, which may have been stepped. So our own count of the
    // quarantine applies.
    if (at.rules.guarded() && from.quarantined
        && (found == key_state::missing || found == key_state::healed)) {
        found = key_state::quarantined;
    }
    // What a reader has on a master may come from a SET without a certificate (async_downgrade).
    if (form_ == lock_form::shared && found == key_state::kept) {
        ballot& theirs = votes.of[from.master];
        if (!wrong::unvouched_extends && theirs.unvouched && from.quarantined) {
            found = key_state::quarantined;
        } else {
            theirs.unvouched = false;
        }
    }
    if (found == key_state::unknown && !from.fit) {
        found = key_state::ineligible;
    }
    const steps counted = heals ? steps::none : steps::counted;
    ballot& theirs = votes.of[from.master];
    removal_seen_ |= extending_.count(theirs, found, from.epoch, heals, at.now, at.rules.drift);
    if (!is_held()) {
        return counted; // during a local handoff only the replies to the raise decide
    }
    const bool of_round = from.epoch == extending_.round;
    if (of_round) {
        theirs.said = got.said;
        votes.set_left(from.master, lease_unknown);
        theirs.found = found;
    }
    const steps moved = counted | move_deadline(at);
    if (!of_round || has(moved, steps::stop)) {
        return moved;
    }
    if (extending_.active) {
        return moved | judge(at);
    }
    // A late reply, after a majority still had the key: the master is healed like the others.
    return extending_.confirmed && found == key_state::missing ? moved | steps::mend : moved;
}

// What follows from the replies so far.
steps claim::judge(const circumstances& at) {
    extension& round = extending_;
    const ruling next = round.rule(votes.of, at.voters, at.majority, removal_seen_, at.now);
    if (next == ruling::heal && at.rules.guarded()) {
        round.healing = round.heals = true;
        held_.next_at = later(at.now, at.rules.master_timeout);
        return steps::mend; // its replies are votes of this round
    }
    if (next == ruling::open) {
        return steps::later;
    }
    const bool won = next == ruling::won;
    round.judged = true; // the deadline may now also move back
    if (more_ && won) {
        more_->kept = never;
    }
    round.confirmed = won && at.rules.guarded() && !round.healing;
    round.heals = won && (round.heals || round.confirmed);
    if (won && held_.margin_follows) { // but no further than the limit of the whole, as at first
        using std::chrono::milliseconds;
        const auto limit = std::chrono::floor<milliseconds>(hold_limit() - held_.since);
        held_.stop_margin = shortened(usual_margin(std::min<milliseconds>(round.ttl, limit)));
    }
    const steps moved = move_deadline(at);
    if (has(moved, steps::stop)) {
        return moved;
    }
    // A missing key is created without waiting for the replies.
    const steps mends = round.confirmed ? steps::mend : steps::none;
    return moved | mends | end_round(won, at);
}

} // namespace redlock::core
