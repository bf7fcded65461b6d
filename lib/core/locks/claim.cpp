// What a claim does in every phase, and the rarer events of its removal (removal.hpp).

#include "removal.hpp"

namespace redlock::core {

steps claim::answered(const told& from, const answer& got, const circumstances& at) {
    switch (from.kind) {
    case command_kind::acquire:
        return is_held() ? granted_late(from, got, at) : acquire_answered(from, got, at);
    case command_kind::raise:
        return is_held() ? raised_late(from, got, at) : raise_answered(from, got, at);
    case command_kind::remove:
        return removed(from, got.said, at);
    default: // extend, heal
        return attaches() ? attach_answered(from, got, at) : extend_answered(from, got, at);
    }
}

bool claim::may_send(command_kind kind, std::uint16_t epoch, time_point now) const noexcept {
    if (kind == command_kind::acquire || kind == command_kind::raise) {
        return epoch == handoffs_; // else it is of an earlier attempt on this claim
    }
    if (attaches() || kind == command_kind::remove) {
        return true;
    }
    return is_held() && (wrong::heal_after_deadline || now < held_.deadline)
           && epoch == extending_.round && (kind != command_kind::heal || extending_.heals);
}

time_point claim::next_due(time_point now) const noexcept {
    switch (phase_) {
    case phase::held:
        return std::min({lost_at(), warn_at(), held_.next_at});
    case phase::lost:
        return believed_until_;
    case phase::removing:
        return std::min(
            {removing_.decide_by, removing_.retry_at, now < expires_at_ ? expires_at_ : forever});
    case phase::asking:
        break;
    }
    return forever;
}

void claim::reset() {
    phase_ = phase::asking;
    std::construct_at(&asking_);
    key_ = {};
    form_ = lock_form::exclusive;
    publishes_ = drops_intent_ = removal_seen_ = false;
    more_.reset();
    fencing_token_ = 0;
    handoffs_ = 0;
    queued_in = 0;
    believed_until_ = never;
    if (!fencing_) { // else each vote has a counter
        votes.clear_details();
    }
    extending_ = {};
}

// --- Its removal

master_set claim::may_be_on() const noexcept {
    const master_set asked =
        set_where(votes.of.size(), [this](std::size_t i) { return votes.of[i].asked; });
    return wrong::no_rollback_when_unknown && believed_until_ == never
               ? asked & votes.with(vote::granted)
               : asked;
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
            .late = !wrong::released_after_loss && late});
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
