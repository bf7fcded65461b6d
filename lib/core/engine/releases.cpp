// The release of a lease by its holder, and what the end of a lease means to waiters: a local
// handoff, or a removal and the next attempt of the front.

#include "core/base/decisions.hpp"
#include "core/base/hash.hpp"
#include "core/base/histogram_access.hpp"
#include "engine.hpp"

#include <algorithm>

namespace redlock::core {

void engine::release(handle<claim> name, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return; // its removal has started
    }
    if (lease->is_lost()) {
        closing_moved(now);
        end_lost(*lease, now);
    } else {
        release(*lease, now);
    }
    finish_closing(now);
}

void engine::release(claim& lease, time_point now) {
    detail::histogram_access::add(counters_.hold, now - lease.held_since());
    end_extensions(lease, errc::released);
    const bool late = now >= lease.held_until(); // and the timer has not fired yet
    if (wrong::old_holder_releases && !late) {   // so the key is still its own
        for (const std::size_t i : each_of(masters_.up())) {
            wire_.send(i, {"DEL", lease.key()}, {.kind = command_kind::ping}, now);
        }
    }
    if (late || !hand_off(lease, now)) {
        wrong::own_queue_not_notified ? void() : lease_ended(lease, now);
        remove(lease, now);
    }
}

// The keys of a released lease stay for the next waiter of this process. Returns false if nobody
// gets it.
bool engine::hand_off(claim& lease, time_point now) {
    acquire_call* const chosen = closing() ? nullptr : next_owner(lease, now);
    if (chosen == nullptr) {
        return false;
    }
    acquire_call& next = *chosen;
    if (next.stage == acquire_call::phase::attempting) {
        claim& attempt = *claims_.find(next.attempt);
        if (attempt.is_slot()) {
            attempt.announce(); // it may have the key of another slot
        }
        remove(attempt, now);
    }
    end_scan(next);
    ++counters_.local_handoffs;
    ++counters_.released;
    host_.removed(lease, release_result::released);
    const time_point deadline = lease.deadline();
    const steps what = lease.hand_to(
        next.self,
        {.transferable = next.options.transferable,
         .ttl = next.options.ttl,
         .min_validity = next.options.min_validity,
         .patience = next.wait_until > next.began ? next.wait_until : forever},
        at(now));
    next.attempt = lease.self;
    if (what != steps::won) { // a raise
        next.stage = acquire_call::phase::attempting;
        ++next.attempts;
        timers_.cancel(lease.wake);
        timers_.set(
            next.wake, std::min({later(now, rules_.master_timeout), deadline, next.wait_until}));
    }
    decided(lease, what, now);
    return true;
}

acquire_call* engine::next_owner(claim& lease, time_point now) {
    wait_queue* const mine = queue_of(lease);
    if (mine == nullptr || mine->empty()) {
        return nullptr;
    }
    time_point& since = lease.is_slot() ? lease.handed_since() : mine->handed_since;
    offered_lease offer{
        .lasts_until = lease.lasts_until(at(now)),
        .ttl = lease.ttl(),
        .fencing = lease.fencing(),
        .transferable = !rules_.guarded() || !lease.sets_natively(),
        .handed_since = since};
    if (lease.is_slot()) {
        offer.slots = static_cast<std::uint32_t>(lease.slots().size());
        offer.highest = lease.slots().back();
    }
    acquire_call* const chosen = mine->hand(offer, view_of(*mine, now));
    if (chosen != nullptr) {
        since = since == never ? now : since;
    }
    return chosen;
}

void engine::lease_ended(const claim& lease, time_point now) {
    const std::string_view release = lease.token_text().substr(0, release_name_size);
    time_point others_until = yields_until(lease.form(), lease.key());
    if (others_until != never) { // the count of this release arrives with its reply
        others_until = later(now, masters_.round_trip() + masters_.yield());
        const std::uint64_t lock = hash_of_key(lease.key());
        wire_.heard().others_wait(lock, others_until, release, wire_.heard().others(lock));
    }
    wait_queue* const mine = queue_of(lease);
    if (mine == nullptr) {
        return;
    }
    const time_point since = lease.is_slot() ? lease.handed_since() : mine->handed_since;
    wake(*mine, mine->released(release, since, others_until, view_of(*mine, now)));
    if (mine->lingers) {
        timers_.set(mine->wake, others_until);
    }
    end_if_unused(*mine);
}

} // namespace redlock::core
