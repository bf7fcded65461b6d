#include "wait_queue.hpp"

#include "core/base/decisions.hpp"

#include <algorithm>
#include <bit>

namespace redlock::core {

namespace {

constexpr int splits_max = 8; // doublings of a delay

/// The shortest remaining lease that a vote reported.
std::chrono::milliseconds shortest_left(const ballots& votes, bool by_holders_only) noexcept {
    std::chrono::milliseconds left = lease_unknown;
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        const std::chrono::milliseconds theirs = votes.left(i);
        if ((!by_holders_only || votes.of[i].said == vote::held) && theirs != lease_unknown
            && (left == lease_unknown || theirs < left)) {
            left = theirs;
        }
    }
    return left;
}

} // namespace

// --- Who waits

bool wait_queue::join(acquire_call& one) noexcept {
    one.queue = this;
    one.before = back_;
    (back_ != nullptr ? back_->behind : front_) = &one;
    back_ = &one;
    ++length_;
    if (front_ != &one) {
        one.stage = acquire_call::phase::queued;
    }
    return front_ == &one;
}

bool wait_queue::leave(acquire_call& one) noexcept {
    const bool was_front = front_ == &one;
    (one.before != nullptr ? one.before->behind : front_) = one.behind;
    (one.behind != nullptr ? one.behind->before : back_) = one.before;
    --length_;
    one.queue = nullptr;
    one.before = one.behind = nullptr;
    return was_front && length_ > 0;
}

time_point wait_queue::promoted(const wait_view& at) {
    if (front_->last.of.empty()) {
        front_->last = last_;
        front_->outcome = outcome_;
    }
    if (front_->options.fifo) {
        return at.now; // the ticket belongs to the queue and must be kept
    }
    return at.held_until.value_or(later(at.now, at.retry_floor()));
}

bool wait_queue::others_are_next(time_point handed_since, const wait_view& at) noexcept {
    const std::chrono::nanoseconds limit = at.rules.local_handoff_time;
    return limit.count() == 0
           || (handed_since != never
               && at.now >= later(handed_since, std::max(limit, 8 * at.round_trip)));
}

// The keys stay, and the next owner gets the rest of the lease. A series of handoffs is limited,
// because waiters of other processes have no part in it. It lasts at least eight round trips: the
// release and the acquire after it cost about two more, a fifth of the time. A waiter that renews
// the lease gets at least half of its ttl, any other gets all but a twentieth of it.
acquire_call* wait_queue::hand(const offered_lease& lease, const wait_view& at) noexcept {
    if (length_ == 0 || others_are_next(lease.handed_since, at)) {
        return nullptr;
    }
    acquire_call& next = wrong::handoff_to_the_last ? *back_ : *front_;
    const acquire_options& wants = next.options;
    const std::chrono::nanoseconds for_ttl =
        wants.renew ? wants.ttl / 2 : wants.ttl - wants.ttl / 20 - at.rules.drift.of(wants.ttl);
    const auto needed = wrong::handoff_past_deadline
                            ? std::chrono::nanoseconds(-lease.ttl)
                            : std::max<std::chrono::nanoseconds>(
                                {wants.min_validity, stop_margin_of(wants), for_ttl});
    // It may want another number of slots, or a smaller pool. Without a prefix a lock may have the
    // name of a pool.
    if (lease.slots != (next.search ? next.search->wants() : 0)
        || (next.search && lease.highest >= next.search->slots())) {
        return nullptr;
    }
    if (wants.transferable && !lease.transferable) {
        return nullptr; // a SET of the owner before may be executed late
    }
    if (wants.fencing != lease.fencing || !ticket.allows(wants, at.rules, at.now)
        || at.now + needed >= lease.lasts_until) { // `lasts_until` may be `never`
        return nullptr;
    }
    search_at_ = next.stage == acquire_call::phase::paused ? next.wake.due : at.now;
    return &next;
}

void wait_queue::time_out(acquire_call& one, const ballots* outage, bool held_here) const {
    if (one.outcome) {
        return; // it has tried
    }
    one.outcome = outage != nullptr ? errc::no_quorum
                  : outcome_        ? *outcome_
                  : held_here       ? errc::contended
                                    : errc::wait_timed_out;
    one.last = outage != nullptr ? *outage : last_;
}

// --- Attempts of the front

std::optional<time_point>
wait_queue::failed(bool full, std::size_t granted, const ballots& votes, const wait_view& at) {
    acquire_call& front = *front_;
    if (full) {
        found(front.outcome, votes);
    }
    // The first client that asks a master wins there. A loser asks the arbiter first, so that the
    // next vote is not split. But an arbiter that alone refuses is not trusted indefinitely.
    front.ask_arbiter = full && front.outcome == errc::contended;
    crowded =
        crowded || (front.hurried && !news_.release.empty() && front.outcome == errc::contended);
    front.unsure = full && at.arbiter < votes.of.size() && votes.of[at.arbiter].said != vote::held;
    const auto floor = at.retry_floor();
    const time_point yields = std::exchange(yields_until, never); // it has asked since its release
    if (front.outcome != errc::contended) {
        return later(at.now, at.next(front.delay));
    }
    if (take_notified()) {
        front.ask_arbiter = true;
        return std::max(at.now, yields);
    }
    if (std::exchange(news_.whole, false) && (granted > 0 || front.unsure)) {
        return at.now;
    }
    if (granted > 0) {
        // Split: the waiters with the fewest votes wait the longest. If it stays split, an owner
        // holds only a majority, for example since another master has returned.
        const auto missing = static_cast<std::int64_t>(at.majority - granted);
        const auto once = at.random.between(missing * floor, (missing + 1) * floor);
        const std::chrono::nanoseconds longest = at.rules.retry_delay_max;
        const auto delay = std::max(once, std::min(once * (1 << front.splits), longest));
        front.splits = std::min(front.splits + 1, splits_max);
        return later(at.now, delay);
    }
    return std::nullopt;
}

time_point wait_queue::refused(bool missed, const ballots& votes, const wait_view& at) {
    acquire_call& front = *front_;
    front.splits = 0;
    if (missed) {
        return later(at.now, at.random.between(at.retry_floor(), 2 * at.retry_floor()));
    }
    // For a pool this would be the lease of one slot only.
    const auto left = pool ? lease_unknown : shortest_left(votes, true);
    const auto delay = at.next(front.delay);
    return later(at.now, left != lease_unknown && at.notified ? left + delay : delay);
}

std::optional<time_point>
wait_queue::told_left(std::size_t master, std::chrono::milliseconds left, const wait_view& at) {
    if (master < front_->last.of.size() && left.count() != 0) {
        front_->last.set_left(master, left);
    }
    if (left.count() != 0 && !at.notified) {
        return std::nullopt;
    }
    return later(at.now, left + at.random.between(at.retry_floor(), 2 * at.retry_floor()));
}

time_point wait_queue::no_slot(const wait_view& at) noexcept {
    acquire_call& front = *front_;
    const bool taken = front.outcome == errc::contended;
    const auto left = taken ? shortest_left(front.last, false) : lease_unknown;
    front.ask_arbiter = front.ask_arbiter || taken; // others want the same slot
    const auto delay = at.next(front.delay);
    return later(at.now, left != lease_unknown && at.notified ? left + delay : delay);
}

time_point wait_queue::pause(time_point until, const wait_view& at) noexcept {
    acquire_call& front = *front_;
    front.stage = acquire_call::phase::paused;
    front.hurried = false;
    // The last attempt must start two retry floors before the end. After it only a notification
    // starts another.
    const time_point last_chance = front.wait_until == forever || at.held_until
                                       ? front.wait_until
                                       : front.wait_until - 2 * at.retry_floor();
    if (at.now >= last_chance) {
        return front.wait_until;
    }
    const time_point keep_by = ticket.keep_by(at.rules, later(at.now, at.retry_floor()));
    const time_point poll = wrong::sleeps_while_free ? forever : poll_by(at);
    const time_point announce =
        front.intent == 0 ? forever : later(at.now, at.rules.ticket_lease() / 2);
    return std::min({until, last_chance, keep_by, poll, announce});
}

// When the front retries without a notification, even if a lease of this process has the lock:
// another process may have released that lease by its token. A ticket of the fair queue is renewed
// more often.
time_point wait_queue::poll_by(const wait_view& at) const noexcept {
    if (wrong::own_lease_trusted && at.held_until) {
        return forever;
    }
    if (ticket.queue_master != nobody) {
        return forever;
    }
    const bool one_first = front_->ask_arbiter && front_->intent == 0 && at.arbiter != nobody;
    return std::max(
        later(at.now, at.retry_floor()), polls.next(at.rules.poll_limit, one_first, at.random));
}

next_step wait_queue::due(const wait_view& at) const noexcept {
    const bool has_outcome = front_->outcome || (at.held_until && at.now < *at.held_until);
    return has_outcome && at.now >= front_->wait_until ? next_step::time_out : next_step::ask;
}

time_point wait_queue::poll_soon(const wait_view& at) const noexcept {
    if (front_->stage != acquire_call::phase::paused || !watched) {
        return forever;
    }
    return std::min(front_->wake.due, later(at.now, at.next(front_->delay)));
}

// Spread over a moment, so that the waiters of all processes do not collide.
time_point wait_queue::outage_over(const wait_view& at) const noexcept {
    if (front_->stage != acquire_call::phase::paused || front_->outcome != errc::no_quorum) {
        return forever;
    }
    const auto soon = at.random.between({}, at.rules.retry_delay_min);
    return std::min(front_->wake.due, later(at.now, soon));
}

// --- The fair queue

next_step
wait_queue::must_wait(std::uint64_t before, std::chrono::milliseconds left, const wait_view& at) {
    acquire_call& front = *front_;
    const bool outage = front.outcome == errc::no_quorum;
    if (outage && !at.ready) {
        return next_step::wait; // the queue does not show whether the lock is held
    }
    front.outcome = errc::contended;
    if (front.last.of.empty() || outage) {
        front.last.reset(at.rules.size());
        front.last.of[ticket.queue_master].said = vote::held;
        if (before == 0) {
            front.last.set_left(ticket.queue_master, left);
        } else {
            front.last.note(
                ticket.queue_master, std::to_string(before) + " before it in the queue");
        }
    }
    if (ticket.again) {
        return next_step::ask;
    }
    if (front.wait_until <= later(at.now, 2 * at.retry_floor())) {
        return next_step::time_out; // there is no time for an attempt
    }
    return next_step::wait;
}

time_point wait_queue::ticket_by(std::chrono::milliseconds left, const wait_view& at) noexcept {
    time_point due = ticket.keep_by(at.rules, later(at.now, at.retry_floor()));
    if (!at.notified) {
        due = std::min(due, later(at.now, at.next(front_->delay)));
    }
    // `left`: the remaining lease of the lock on that master, or of the first ticket.
    return left == lease_unknown
               ? due
               : std::min(due, later(at.now, left + std::chrono::milliseconds(1)));
}

void wait_queue::reset() {
    front_ = back_ = nullptr;
    length_ = 0;
    lingers = false;
    holder = {};
    handed_since = yields_until = never;
    others_first = 0;
    crowded = false;
    news_.release.clear();
    news_.heard = 0;
    news_.acted_on = news_.again = news_.whole = false;
    outcome_.reset();
    polls.reset();
    ticket.reset();
    last_.clear();
}

// --- A lock may be free: after a notification of a master, or a release in this process

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
