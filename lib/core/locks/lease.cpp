// A claim that is held, from the grant of a majority until its holder ends it or it is lost.
//
// Each vote is valid until some moment. The deadline is the latest moment at which a majority of
// votes is still valid. While a round of an extension is open, its replies only move the deadline
// forward; a vote that a reply takes away shortens the deadline only after the result is decided
// (extension.hpp). The lease is lost `stop_margin` before the deadline, whatever is in flight.

#include "claim.hpp"

#include <cassert>

namespace redlock::core {

namespace {

// The time of the next renewal: a third of the ttl after the last extension, minus a random part,
// rounded to 1 % of the ttl. The random part spreads locks that were acquired together; the
// rounding lets some of them share a write.
time_point renewal_time(time_point since, std::chrono::milliseconds ttl, jitter& random) noexcept {
    const time_point wanted = since + renewal_period(ttl) - random.between({}, renewal_spread(ttl));
    const auto tick = std::chrono::nanoseconds(ttl) / 100; // may be less than a millisecond
    return wanted - wanted.time_since_epoch() % tick;
}

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

void claim::hold(
    const acquire_options& options,
    time_point deadline,
    time_point limit,
    const circumstances& at) {
    assert(is_asking());
    publishes_ = true;
    if (form_ == lock_form::announced) { // on masters that did not grant the intent expires
        form_ = lock_form::exclusive;
    }
    if (asking_.raise_to != 0) { // 0: without fencing
        fencing_token_ = asking_.raise_to;
    }
    believed_until_ = deadline;
    time_point next_at = forever;
    if (extending_.active) { // of the owner before a local handoff: it goes on
        next_at = later(extending_.sent, at.rules.master_timeout);
    } else if (options.renew) {
        const time_point renewed_at = lasts_until(at) - (ttl_ - at.rules.drift.of(ttl_));
        next_at = renewal_time(renewed_at, ttl_, at.random);
    }
    phase_ = phase::held;
    std::construct_at(
        &held_,
        held_state{
            .renew = options.renew,
            .margin_follows = options.stop_margin == default_stop_margin,
            .stop_margin = shortened(stop_margin_of(options)),
            .since = at.now,
            .deadline = deadline,
            .next_at = next_at});
    const auto warn_after = at.rules.held_warning;
    if (more_ != nullptr || limit != forever || warn_after.count() != 0) {
        particulars& mine = need_more();
        mine.hold_limit = limit;
        mine.warn_at = warn_after.count() == 0 ? forever : later(at.now, warn_after);
        mine.kept = never;
        mine.renewal_delay.reset();
    }
}

// --- Extensions

std::chrono::milliseconds claim::next_wanted() {
    if (extending_.active || !more_ || more_->wanted.empty()) {
        return {};
    }
    const auto ttl = more_->wanted.front();
    more_->wanted.erase(more_->wanted.begin());
    return ttl;
}

std::size_t claim::drop_wanted() noexcept {
    const bool under_way = extending_.active && extending_.asked_for;
    extending_.active = extending_.active && !under_way;
    std::size_t dropped = under_way ? 1 : 0;
    if (more_) {
        dropped += more_->wanted.size();
        more_->wanted.clear();
    }
    return dropped;
}

// --- Replies

// The reply to an acquire, after the majority.
steps claim::granted_late(const told& from, const answer& got, const circumstances& at) {
    ballot& theirs = votes.of[from.master];
    const vote what = note_grant(from.master, got, at);
    // During an extension, `pending` is the state of its reply.
    if (theirs.said == vote::pending && !extending_.active) {
        theirs.said = what;
    }
    const bool later = theirs.until() > held_.deadline && at.now < held_until();
    return steps::counted | (later ? move_deadline(at) : steps::none); // a majority can use it
}

steps claim::raised_late(const told& from, const answer& got, const circumstances& at) {
    if (got.said != vote::owned_by_other) {
        return steps::none;
    }
    removal_seen_ |= votes.of[from.master].remove(at.now);
    return move_deadline(at);
}

// --- Decisions

// Moves the deadline to where the votes reach: forward only, while the round of an extension is
// open.
steps claim::move_deadline(const circumstances& at) {
    const time_point before = held_.deadline;
    time_point& deadline = held_.deadline;
    deadline =
        std::min(votes.lasts_until(wrong::extended_without_quorum ? 1 : at.majority), hold_limit());
    deadline = std::max(deadline, more_ ? more_->kept : never);
    if (extending_.active && !extending_.judged) {
        deadline = std::max(deadline, before);
    }
    believed_until_ = std::max(believed_until_, deadline);
    const steps moved = deadline != before && deadline != never ? steps::deadline : steps::none;
    const bool lost = deadline == never || at.now >= lost_at();
    return moved | (lost ? stop(reason(at.majority)) : steps::later);
}

steps claim::end_round(bool extended, const circumstances& at) {
    extending_.active = false;
    held_.extended = extended;
    if (extended && more_) {
        more_->renewal_delay.reset();
    }
    if (!held_.renew || held_.deadline >= hold_limit()) {
        held_.next_at = forever;
    } else if (extended) {
        held_.next_at = renewal_time(extending_.sent, ttl_, at.random);
    } else {
        // A failed extension is not a loss: retry until the deadline.
        held_.next_at =
            at.now + need_more().renewal_delay.next(at.retry_floor, ttl_ / 10, at.random);
    }
    return steps::round_over | steps::later;
}

// Votes for the members before do not count together with those for the present ones.
void claim::members_changed(master_set gone) {
    need_more().kept = held_.deadline;
    extending_.round += wrong::earlier_votes_count ? 0 : 1;
    extending_.heals = extending_.confirmed = false;
    for (const std::size_t i : each_of(gone)) {
        votes.of[i].forget_all();
    }
}

loss_reason claim::reason(std::size_t majority) const noexcept {
    if (held_.deadline == hold_limit()) {
        return loss_reason::max_hold_reached;
    }
    const std::size_t foreign = votes.count(vote::owned_by_other);
    const std::size_t absent = votes.count(vote::absent);
    if (held_.deadline == never || foreign + absent + majority > votes.of.size()) {
        return foreign > absent ? loss_reason::owned_by_other : loss_reason::expired;
    }
    return held_.renew ? loss_reason::majority_unreachable : loss_reason::expired;
}

steps claim::stop_now(const circumstances& at) noexcept {
    const loss_reason why = reason(at.majority);
    if (why != loss_reason::majority_unreachable) {
        return stop(why);
    }
    // The timer was due much earlier: this process did not run.
    if (held_until() - wake.due
        > std::min<clock::duration>(at.rules.master_timeout, renewal_period(ttl_))) {
        return stop(loss_reason::stalled);
    }
    // The last renewal succeeded, but with a lower `max_ttl` it was too short.
    return stop(held_.extended && !extending_.active ? loss_reason::expired : why);
}

// --- Time

steps claim::due(master_set& silent, const circumstances& at) {
    assert(is_held());
    if (at.now >= lost_at()) {
        return stop_now(at);
    }
    if (at.now >= warn_at()) {
        more_->warn_at = forever;
        return steps::warn;
    }
    if (at.now < held_.next_at) {
        return steps::later;
    }
    if (!extending_.active) {
        return steps::renew;
    }
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        ballot& theirs = votes.of[i];
        if (theirs.found == key_state::pending) {
            theirs.found = key_state::unknown;
            theirs.said = vote::timed_out;
            silent |= set_of(i);
        }
    }
    return judge(at);
}

// --- An extension, and the replies that decide it (extension.hpp)

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
    ballot& theirs = votes.of[from.master];
    // What a reader has on a master may come from a SET without a certificate (async_downgrade).
    if (form_ == lock_form::shared && found == key_state::kept) {
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
