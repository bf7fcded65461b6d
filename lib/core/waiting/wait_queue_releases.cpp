// What a wait queue does when a lock may be free: after a notification of a master, and after a
// release in this process.

#include "core/base/decisions.hpp"
#include "wait_queue.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace redlock::core {

time_point wait_queue::notified(
    std::size_t master, std::string_view release, bool granted, const wait_view& at) {
    if (release.empty() && at.now < yields_until && front_->stage == acquire_call::phase::paused) {
        return forever; // a new subscription, and the release that it may have missed is our own
    }
    const std::uint32_t teller = 1U << master;
    // A nameless notification may belong to the release that other masters reported, unless that
    // release has already caused an attempt.
    const bool nameless = release.empty() || news_.release.empty();
    const bool joins =
        !news_.acted_on && nameless && (news_.release.empty() || (news_.heard & teller) == 0);
    if (joins) {
        news_.release += release;
    } else if (news_.release != release || (news_.heard & teller) != 0) {
        news_.release = release;
        news_.heard = 0;
        news_.whole = news_.whole && release.empty(); // which tells nothing that is newer
        news_.acted_on = false; // it can still serve what the current attempt missed
    }
    news_.heard |= teller;
    acquire_call& front = *front_;
    const bool was_split = std::exchange(front.splits, 0) != 0 || front.unsure;
    const bool asks = front.stage == acquire_call::phase::attempting;
    // The notification does not name the slot, and earlier findings may be incomplete.
    if (pool && (asks || front.stage == acquire_call::phase::scanning)) {
        news_.again = true;
        return forever;
    }
    // This master has granted the lock after the release. A vote that is still outstanding may be
    // older, because votes and notifications use different connections.
    if (asks && granted) {
        return forever;
    }
    // The arbiter's notification is enough. Without it, a majority is needed, and then all masters
    // are asked. Any one will do if neither is possible. A slot is searched on all masters, so it
    // always needs a majority.
    const bool by_arbiter = !pool && (master == at.arbiter || at.arbiter == nobody);
    // A lone waiter asks all masters at once, which saves it a round trip. It waits for the
    // majority a little, because the other masters may not have executed the release yet.
    const bool alone = !pool && !crowded && at.arbiter != nobody && !release.empty()
                       && front.stage == acquire_call::phase::paused;
    const auto told = static_cast<std::size_t>(std::popcount(news_.heard));
    const bool decides = alone ? told >= at.majority : by_arbiter;
    if (!decides && told < at.majority) {
        if (front.stage != acquire_call::phase::paused || news_.acted_on) {
            return forever;
        }
        const bool soon = alone && (news_.heard >> at.arbiter & 1U) != 0;
        front.ask_arbiter = !soon;
        const auto patience = soon ? at.round_trip / 4 : 2 * at.round_trip;
        return std::min(front.wake.due, later(at.now, patience));
    }
    // The arbiter's notification still counts after a majority's: the attempt may have reached the
    // arbiter before the release.
    const bool own = at.now < yields_until;
    if (news_.acted_on && (own || !(by_arbiter && told > at.majority))) {
        // It may also have reached the other masters before the release. A majority has it now.
        if (by_arbiter || told != at.majority) {
            return forever;
        }
        news_.whole = !was_split || front.stage != acquire_call::phase::paused;
        return news_.whole ? forever : std::min(front.wake.due, at.now);
    }
    news_.acted_on = true;
    others_first -= others_first > 0 ? 1U : 0U;
    news_.again = wrong::notification_dropped ? news_.again : news_.again || asks;
    if (front.stage == acquire_call::phase::ticketed) {
        ticket.again = true; // the reply may be older
    }
    if (front.stage != acquire_call::phase::paused) {
        return forever;
    }
    const bool at_once = decides || pool;
    front.ask_arbiter = at_once && !alone;
    // Without the arbiter's notification, wait for it, and let other clients go first. Those that
    // waited at the last release of this process, and have not had the lock since, go first as
    // well.
    const auto chance = others_first > 0 ? at.retry_floor() : at.round_trip;
    return std::min(front.wake.due, at_once && others_first == 0 ? at.now : later(at.now, chance));
}

// This queue knows of the release. It lets other clients go first after a full series of local
// handoffs, or if they waited at the last release.
time_point wait_queue::released(
    std::string_view release, time_point since, time_point others_until, const wait_view& at) {
    const bool yields = (since != never && others_are_next(since, at)) || at.now < others_until;
    yields_until = others_until;
    others_first = 0;
    handed_since = never;
    holder = {};
    news_.release.assign(release);
    news_.acted_on = true; // this is that release
    news_.again = false;
    if (length_ == 0) {
        return forever;
    }
    if (front_->stage == acquire_call::phase::ticketed) {
        ticket.again = true;
    } else if (front_->stage != acquire_call::phase::paused) {
        news_.again =
            pool || front_->stage == acquire_call::phase::attempting; // that key may refuse it
    }
    if (front_->stage != acquire_call::phase::paused) {
        return forever;
    }
    front_->ask_arbiter = yields;
    // Wait for one notification and one command of another client: half a round trip each, doubled.
    const auto chance = 2 * (at.rules.pushes ? at.round_trip : at.retry_floor());
    return std::min(
        front_->wake.due, yields ? std::max(later(at.now, chance), others_until) : at.now);
}

} // namespace redlock::core
