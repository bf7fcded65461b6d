// The rarer events of a removal (removal.hpp).

#include "removal.hpp"

#include <algorithm>

namespace redlock::core {

master_set claim::may_be_on() const noexcept {
    master_set out = 0;
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        if (wrong::no_rollback_when_unknown && believed_until_ == never
            && votes.of[i].said != vote::granted) {
            continue;
        }
        out |= votes.of[i].asked ? set_of(i) : 0U;
    }
    return out;
}

void claim::remove(master_set there, master_set away, const circumstances& at) {
    assert(!is_ending());
    const bool wanted = acts(); // the result of a rollback is not needed
    const bool late = wanted && (is_lost() || at.now >= held_until());
    asked_at_ = at.now;
    phase_ = phase::removing;
    std::construct_at(
        &removing_,
        removing_state{
            .decide_by = wanted ? later(at.now, at.rules.master_timeout) : forever,
            .unconfirmed = there | away,
            .overdue = away,
            .awaited = there,
            .late = !wrong::released_after_loss && late,
            .pending = static_cast<std::uint8_t>(std::popcount(there))});
    if (wanted) { // the votes explain the result of the removal only
        votes.clear_texts();
        for (std::size_t i = 0; i < votes.of.size(); ++i) {
            votes.set_left(i, lease_unknown);
            votes.of[i].latency = {};
            votes.of[i].said = vote::pending;
        }
    }
    for (const std::size_t i : each_of(away)) {
        votes.of[i].said = vote::unreachable;
    }
}

void claim::not_asked(std::size_t master, vote instead) {
    if (instead == vote::granted) {
        votes.note(master, "it was not asked: it had no vote on this lock");
    } else {
        votes.of[master].said = instead;
    }
}

void claim::only_intent(master_set on, time_point until) noexcept {
    drops_intent_ = true;
    expires_at_ = until;
    for (const std::size_t i : each_of(on)) {
        votes.of[i].asked = true;
    }
}

master_set claim::repeats(bool& last, const circumstances& at) {
    removing_state& mine = removing_;
    last = at.now >= expires_at_;
    if (!last && at.now < mine.retry_at) {
        return 0;
    }
    mine.retry_at = forever;
    if (!last) {
        return unsent() & at.up;
    }
    const strays left = left_behind();
    const master_set to = unsent() & at.up & (left.sets | left.heals);
    mine.unconfirmed &= mine.in_flight | to; // the keys of the others have expired
    if (to != 0) {
        more_->left_behind.sets &= ~to;
        more_->left_behind.heals &= ~to;
    }
    return to;
}

std::size_t claim::overdue() const noexcept {
    const strays left = left_behind();
    return static_cast<std::size_t>(std::popcount(
        unsent() & ~(removing_.overdue & removing_.confirmed & (left.sets | left.heals))));
}

time_point claim::executed_by(command_kind kind) const noexcept {
    return kind == command_kind::acquire
               ? vote_by_
               : std::max(believed_until_, vote_by_); // the latter of an attach
}

void claim::note_stray(std::size_t master, command_kind kind, time_point until) {
    strays& left = need_more().left_behind;
    (kind == command_kind::acquire ? left.sets : left.heals) |= set_of(master);
    left.until = std::max(left.until, until);
}

} // namespace redlock::core
