// What a claim does in every phase.

#include "removal.hpp"

#include <algorithm>
#include <memory>

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
    announced_ = drops_intent_ = removal_seen_ = false;
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

} // namespace redlock::core
