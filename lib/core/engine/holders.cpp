// A lease from its grant to its end: extensions, an abandonment, and a loss; a release is in
// releases.cpp. After a loss the holder may still act, so the keys stay until it releases the
// lease, or until the last deadline that it was shown.

#include "core/base/decisions.hpp"
#include "core/base/histogram_access.hpp"
#include "core/bytes/keys.hpp"
#include "engine.hpp"

#include <algorithm>
#include <bit>

namespace redlock::core {

// --- Extensions

void engine::extend(handle<claim> name, std::chrono::milliseconds ttl, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease != nullptr && lease->is_held()) { // else its end has been reported
        lease->want(ttl);
        start_wanted(*lease, now);
        timers_.set(lease->wake, lease->next_due(now));
    }
}

void engine::start_wanted(claim& lease, time_point now) {
    for (auto ttl = lease.next_wanted(); ttl.count() != 0; ttl = lease.next_wanted()) {
        if (start_extension(lease, ttl, true, now)) {
            return;
        }
        lease.give_up_round(at(now));
        report_round(lease);
    }
}

// Asks all that can be asked. Returns false if they are too few for a majority.
bool engine::start_extension(
    claim& lease, std::chrono::milliseconds ttl, bool asked_for, time_point now) {
    if (const auto limit = masters_.renewal_limit(); !asked_for && limit.count() != 0) {
        ttl = std::min(ttl, limit); // it was lowered since
    }
    lease.extend(ttl, asked_for, at(now));
    master_set to = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        const master& one = masters_[i];
        // A master in quarantine is asked as well: a key that is still there excludes all other
        // owners.
        const bool remembers = rules_.guarded() && one.otherwise == vote::quarantined;
        const bool takes = masters_.takes(i, ttl);
        if ((!one.admitted && !remembers) || !takes) {
            const vote instead = takes ? one.otherwise : vote::error;
            lease.skip(i, instead, one.is_fit());
            ++masters_.counters(i).extend_votes[instead];
        } else if (lease.extends_on(i, rules_.guarded())) {
            to |= set_of(i);
        }
    }
    if (lease.may_send(command_kind::extend, lease.epoch_of(command_kind::extend), now)) {
        wire_.add(lease, command_kind::extend, to, now);
    }
    if (!asked_for) {
        host_.renewing(lease);
    }
    return static_cast<std::size_t>(std::popcount(to)) >= masters_.majority();
}

void engine::report_round(claim& lease) {
    ++(lease.extended() ? counters_.renewed : counters_.renewals_failed);
    const auto error = lease.extended() ? std::nullopt : std::optional(errc::no_quorum);
    lease.asked_for() ? host_.extended(lease, error) : host_.renewed(lease, error);
}

void engine::end_extensions(claim& lease, errc why) {
    for (std::size_t left = lease.drop_wanted(); left > 0; --left) {
        host_.extended(lease, why);
    }
}

bool engine::may_downgrade(handle<claim> name) const {
    const claim* const lease = claims_.find(name);
    return lease != nullptr && lease->is_held() && lease->form() == lock_form::exclusive
           && !lease->is_slot() && rules_.guarded();
}

// From now on the lease counts as a reader's, whatever the masters reply. Each master converts the
// key at the next extension, of which the first is sent now. Until then the exclusive key counts as
// the reader's vote, because it also excludes all others.
void engine::downgrade(handle<claim> name, time_point now) {
    if (!may_downgrade(name)) {
        return; // its end has been reported
    }
    claim& lease = *claims_.find(name);
    lease_ended(lease, now); // its waiters have to ask
    if (wait_queue* const waiters = queue_of(lease)) {
        waiters->forget(); // its token is published again later
    }
    lease.downgrade();
    extend(name, lease.ttl(), now);
}

// --- The end

// Another process may release it at any time. The front of its waiters asks at once: it is refused,
// so it subscribes and learns how long the lease lasts.
bool engine::abandon(handle<claim> name) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return false;
    }
    if (lease->is_held()) {
        end_extensions(*lease, errc::released);
    } else {
        --lost_;
    }
    timers_.cancel(lease->wake);
    wait_queue* const mine = queue_of(*lease);
    claims_.destroy(*lease);
    if (mine != nullptr) {
        mine->handed_since = never;
        if (mine->empty()) {
            if (mine->lingers) {
                timers_.set(mine->wake, never);
            }
            end_if_unused(*mine);
        } else if (mine->front()->stage == acquire_call::phase::paused) {
            wake(*mine, never);
        }
    }
    if (life_ == life::closing && !waits_to_close()) {
        close_by_ = never; // the next event ends the closing
    }
    return true;
}

void engine::lose(claim& lease, time_point now) {
    const loss_reason reason = lease.loss();
    ++counters_.lost[reason];
    detail::histogram_access::add(counters_.hold, now - lease.held_since());
    log(log_level::error,
        shown(lease.form(), lease.key(), rules_.key_prefix)
            + ": lost: " + std::string(to_string(reason)));
    host_.lease_lost(lease, reason);
    end_extensions(lease, reason == loss_reason::closed ? errc::closed : errc::lost);
    lease.lose();
    ++lost_;
    if (wrong::removed_at_stop) {
        end_lost(lease, now);
        return;
    }
    if (now >= lease.believed_until()) {
        end_late(lease, now);
        return;
    }
    // Waiters wait for its removal, but its keys may be gone earlier.
    wait_queue* const mine = queue_of(lease);
    if (mine != nullptr && !mine->pool) {
        mine->holder = lease.self;
        acquire_call* const front = mine->front();
        if (front != nullptr && front->stage == acquire_call::phase::paused) {
            watch(*mine, now);
            pause(*front, lease.acts_until(), now);
        }
    }
    timers_.set(lease.wake, lease.next_due(now));
}

// After the last deadline of a lost lease its holder must have stopped. Another process that got
// the secret may be late, so its keys are left to expire.
void engine::end_late(claim& lease, time_point now) {
    if (!lease.left_to_expire()) {
        end_lost(lease, now);
        return;
    }
    --lost_;
    ++counters_.released[release_result::expired];
    lease_ended(lease, now);
    host_.removed(lease, release_result::expired);
    timers_.cancel(lease.wake);
    claims_.destroy(lease);
}

// The holder of a lost lease has ended it, or must have stopped.
void engine::end_lost(claim& lease, time_point now) {
    --lost_;
    wrong::own_queue_not_notified ? void() : lease_ended(lease, now);
    remove(lease, now);
}

} // namespace redlock::core
