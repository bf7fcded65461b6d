#include "lease.hpp"

#include "core/base/decisions.hpp"

#include <algorithm>
#include <utility>

namespace redlock::core {

time_point
lease::renewal_time(time_point since, std::chrono::milliseconds ttl, jitter& random) noexcept {
    const time_point wanted = since + renewal_period(ttl) - random.between({}, renewal_spread(ttl));
    const auto tick = std::chrono::nanoseconds(ttl) / 100; // may be less than a millisecond
    return wanted - wanted.time_since_epoch() % tick;
}

loss_reason lease::reason(const claim_record& mine, std::size_t quorum) const noexcept {
    if (capped()) {
        return loss_reason::max_hold_reached;
    }
    const std::size_t foreign = mine.votes.count(vote::owned_by_other);
    const std::size_t absent = mine.votes.count(vote::absent);
    if (deadline_ == never || foreign + absent + quorum > mine.votes.of.size()) {
        return foreign > absent ? loss_reason::owned_by_other : loss_reason::expired;
    }
    return renew_ == renewal::automatic ? loss_reason::majority_unreachable : loss_reason::expired;
}

bool lease::move_deadline(claim_record& mine, std::size_t quorum) noexcept {
    const time_point before = deadline_;
    deadline_ =
        std::min(mine.votes.lasts_until(wrong::extended_without_quorum ? 1 : quorum), hold_limit());
    deadline_ = std::max(deadline_, more_ ? more_->kept : never);
    if (mine.extending.active && !mine.extending.judged) {
        deadline_ = std::max(deadline_, before);
    }
    mine.believed_until = std::max(mine.believed_until, deadline_);
    return deadline_ != before;
}

std::optional<std::chrono::milliseconds> lease::next_wanted(const claim_record& mine) {
    if (mine.extending.active || !more_ || more_->wanted.empty()) {
        return std::nullopt;
    }
    const auto ttl = more_->wanted.front();
    more_->wanted.erase(more_->wanted.begin());
    return ttl;
}

std::size_t lease::drop_wanted(claim_record& mine) noexcept {
    const bool under_way = mine.extending.active && mine.extending.asked_for;
    mine.extending.active = mine.extending.active && !under_way;
    std::size_t dropped = under_way ? 1 : 0;
    if (more_) {
        dropped += more_->wanted.size();
        more_->wanted.clear();
    }
    return dropped;
}

void lease::extend(
    claim_record& mine,
    std::chrono::milliseconds ttl,
    bool asked_for,
    time_point now,
    const settings& rules) {
    mine.extending = {
        .round = static_cast<std::uint16_t>(mine.extending.round + 1),
        .active = true,
        .asked_for = asked_for,
        .ttl = shortened(ttl),
        .sent = now};
    next_at_ = later(now, rules.master_timeout);
    const time_point executed_by = rules.guarded() ? deadline_ : now;
    mine.expires_at = std::max(mine.expires_at, executed_by + ttl + rules.drift.of(ttl));
    mine.votes.clear_texts();
    mine.ttl_max = std::max(mine.ttl_max, mine.extending.ttl);
}

void lease::heal(claim_record& mine, std::size_t master, drift_bound drift) const noexcept {
    mine.votes.of[master].asked = true;
    mine.votes.of[master].found = key_state::pending;
    mine.expires_at =
        std::max(mine.expires_at, deadline_ + mine.extending.ttl + drift.of(mine.extending.ttl));
}

lease::next lease::answered(
    claim_record& mine,
    std::size_t master,
    vote said,
    key_state found,
    std::uint16_t round) noexcept {
    if (round != mine.extending.round) {
        return next::nothing;
    }
    ballot& theirs = mine.votes.of[master];
    theirs.said = said;
    mine.votes.set_left(master, lease_unknown);
    theirs.found = found;
    if (mine.extending.active) {
        return next::judge;
    }
    // A late reply, after a majority still had the key: the master is healed like the others.
    return mine.extending.confirmed && found == key_state::missing ? next::heal : next::nothing;
}

ruling lease::judge(
    claim_record& mine,
    std::size_t voters,
    std::size_t quorum,
    time_point now,
    const settings& rules) noexcept {
    extension& round = mine.extending;
    ruling next = round.rule(mine.votes.of, voters, quorum, mine.removal_seen, now);
    if (next == ruling::heal && rules.guarded()) {
        round.healing = round.heals = true;
        next_at_ = later(now, rules.master_timeout);
        return next;
    }
    if (next != ruling::open) {
        next = next == ruling::won ? next : ruling::failed;
        round.judged = true;
        if (more_ && next == ruling::won) {
            more_->kept = never;
        }
        round.confirmed = next == ruling::won && rules.guarded() && !round.healing;
        round.heals = next == ruling::won && (round.heals || round.confirmed);
    }
    return next;
}

// Votes for the members before do not count together with those for the present ones.
void lease::members_changed(claim_record& mine) {
    need_more().kept = deadline_;
    mine.extending.round += wrong::earlier_votes_count ? 0 : 1;
    mine.extending.heals = mine.extending.confirmed = false;
}

void lease::end_extension(
    claim_record& mine,
    bool extended,
    time_point now,
    std::chrono::nanoseconds retry_floor,
    jitter& random) noexcept {
    mine.extending.active = false;
    if (extended && more_) {
        more_->renewal_delay.reset();
    }
    if (renew_ == renewal::off || deadline_ >= hold_limit()) {
        next_at_ = forever;
    } else if (extended) {
        next_at_ = renewal_time(mine.extending.sent, mine.ttl, random);
    } else {
        // A failed extension is not a loss: retry until the deadline.
        next_at_ = now + need_more().renewal_delay.next(retry_floor, mine.ttl / 10, random);
    }
}

master_set lease::give_up(claim_record& mine) noexcept {
    master_set silent = 0;
    for (std::size_t i = 0; i < mine.votes.of.size(); ++i) {
        ballot& theirs = mine.votes.of[i];
        if (theirs.found == key_state::pending) {
            theirs.found = key_state::unknown;
            theirs.said = vote::timed_out;
            silent |= set_of(i);
        }
    }
    return silent;
}

lease::event lease::due(const claim_record& mine, time_point now) noexcept {
    if (now >= lost_at(mine)) {
        return event::stop;
    }
    if (now >= warn_at()) {
        more_->warn_at = forever;
        return event::warn;
    }
    if (now < next_at_) {
        return event::none;
    }
    return mine.extending.active ? event::give_up : event::renew;
}

time_point lease::next_due(const claim_record& mine) const noexcept {
    return std::min({lost_at(mine), warn_at(), next_at_});
}

} // namespace redlock::core
