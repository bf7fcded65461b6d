// What the end of a lease of this process means to its waiters, and to those of other processes.

#include "core/base/decisions.hpp"
#include "core/base/hash.hpp"
#include "engine.hpp"

namespace redlock::core {

// A process that has just released a lock for which others wait pauses first. The notification of
// another release ends the pause. The one of its own release may arrive during the pause as well.
next_step engine::yield(acquire_call& front, time_point now) {
    wait_queue& mine = *front.queue;
    const time_point until = yields_until(mine.form, mine.key);
    if (now >= until) {
        return next_step::ask;
    }
    front.stage = acquire_call::phase::paused; // no attempt of it is under way
    const std::uint64_t lock = hash_of_key(mine.key);
    mine.released(wire_.heard().own_release(lock), never, until, view_of(mine, now));
    mine.others_first = wire_.heard().others(lock);
    mine.asked_all(now);
    watch(mine, now);
    front.ask_arbiter = true;
    pause(front, until, now);
    return next_step::wait;
}

time_point engine::yields_until(lock_form form, std::string_view key) noexcept {
    const audience& heard = wire_.heard();
    return !wrong::releaser_asks_at_once && heard.yields() && form == lock_form::exclusive
               ? heard.yields_until(hash_of_key(key))
               : never;
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
    end_if_unused(*mine);
}

} // namespace redlock::core
