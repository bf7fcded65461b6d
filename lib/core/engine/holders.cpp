#include "holders.hpp"

#include "core/base/decisions.hpp"

#include <string>

namespace redlock::core {

void holders::release(claim& lease, time_point now) {
    if (lease.is_lost()) {
        end_lost(lease, now);
        return;
    }
    leases_.end(lease, errc::released, now);
    const bool late = now >= lease.held().held_until(); // and the timer has not fired yet
    if (wrong::old_holder_releases && !late) {          // so the key is still its own
        for (const std::size_t i : each_of(masters_.up())) {
            sender_.send(i, {"DEL", lease.key}, {.kind = command_kind::ping}, now);
        }
    }
    if (late || !acquires_.hand_off(lease, now)) {
        wrong::own_queue_not_notified ? void() : waiting_.ended(lease, now);
        removals_.begin(lease, now);
    }
}

void holders::abandon(claim& lease) {
    lost_ -= lease.is_lost() ? 1U : 0U;
    if (lease.is_held()) {
        leases_.end_extensions(lease, errc::released);
    }
    timers_.cancel(lease.wake);
    wait_queue* const mine = waiting_.find(lease);
    claims_.destroy(lease);
    if (mine != nullptr) {
        waiting_.abandoned(*mine);
    }
}

// From now on the lease counts as a reader's, whatever the masters reply. Each master converts the
// key at the next extension, of which the first is sent now. Until then the writer's key counts as
// the reader's vote, because it also excludes other writers.
void holders::downgrade(claim& lease, time_point now) {
    waiting_.downgraded(lease, now);
    lease.form = lock_form::shared;
    leases_.extend(lease, lease.ttl, now);
}

void holders::lose_if(claim& lease, leases::loss lost, time_point now) {
    if (!lost) {
        return;
    }
    leases_.lose(lease, *lost, now);
    ++lost_;
    if (wrong::removed_at_stop || now >= lease.believed_until) {
        end_lost(lease, now);
        return;
    }
    waiting_.lost(lease, now);
    timers_.set(lease.wake, lease.believed_until);
}

void holders::end_lost(claim& lease, time_point now) {
    --lost_;
    wrong::own_queue_not_notified ? void() : waiting_.ended(lease, now);
    removals_.begin(lease, now);
}

} // namespace redlock::core
