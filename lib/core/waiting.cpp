// Executes the decisions of the wait queues. A front makes an attempt after a release notification,
// or when the lease that the votes reported must have ended. A lease that is released in this
// process is handed off to the next waiter without removing its keys.
//
// Waiters that are notified of the same release first ask one and the same master, the arbiter. Its
// reply costs the losers one command; only the winner sends commands to the other masters.

#include "decisions.hpp"
#include "engine.hpp"
#include "lock_keys.hpp"

namespace redlock::core {

wait_view engine::view_of(const wait_queue& waiters, time_point now) {
    const claim* const holder = held_here(waiters);
    return {
        .rules = rules_,
        .now = now,
        .round_trip = masters_.round_trip(),
        .arbiter = masters_.arbiter_of(waiters.key),
        .notified = masters_.notified_by_quorum(),
        .ready = masters_.ready(),
        .held_until = holder != nullptr ? std::optional(holder->acts_until()) : std::nullopt,
        .quorum = masters_.needed()};
}

void engine::join(operation& wanted, time_point now) {
    wait_queue* const found = queues_.find(wanted.form, wanted.key);
    wait_queue& mine = found != nullptr ? *found : queues_.create(wanted.form, wanted.key);
    mine.pool = wanted.slots != 0;
    if (!mine.join(wanted)) {
        timers_.set(wanted.wake, wanted.wait_until);
    } else if (!take_turn(wanted, now)) {
        if (const claim* const holder = held_here(mine)) {
            pause(wanted, holder->acts_until(), now);
        } else {
            start_attempt(wanted, now);
        }
    }
    if (rules_.contention_warning != 0 && mine.length() == rules_.contention_warning + 1) {
        host_.contention(shown(mine.form, mine.key, rules_.key_prefix), mine.length());
    }
}

// Removes a waiter from its queue. If it was the front, the next one becomes the front.
void engine::leave(operation& wanted, time_point now) {
    wait_queue* const mine = wanted.queue;
    if (mine == nullptr) {
        return;
    }
    const bool was_front = mine->leave(wanted);
    if (mine->empty()) {
        leave_queue(*mine, now);
        unwatch(*mine, now);
        end_queue(*mine);
    } else if (!wrong::leaver_blocks_its_queue && was_front) {
        operation& next = *front_of(*mine);
        if (next.options.order != fairness::fifo) {
            leave_queue(*mine, now);
        }
        pause(next, mine->promoted(view_of(*mine, now)), now);
    }
}

// An empty queue stays while a lease is held that it handed off: the next waiter waits for that
// lease, and the series of local handoffs continues.
void engine::end_queue(wait_queue& waiters) {
    if (waiters.empty() && (waiters.handed_since == never || held_here(waiters) == nullptr)) {
        queues_.destroy(waiters);
    }
}

void engine::time_out(operation& wanted, time_point now) {
    if (const wait_queue* const mine = wanted.queue) {
        const operation& first = *front_of(*mine);
        const claim* const attempt =
            first.stage == operation::phase::attempting ? claims_.find(first.attempt) : nullptr;
        const bool outage =
            attempt != nullptr && attempt->asking().asked_all() && !works(*attempt, now);
        mine->time_out(wanted, outage ? &attempt->votes : nullptr, held_here(*mine) != nullptr);
    }
    wanted.decided_at = now;
    finish(wanted, now);
}

// The lease of this process that a queue waits for, or null. A lost lease counts until its holder
// has released it or must have stopped.
const claim* engine::held_here(const wait_queue& waiters) {
    const claim* const holder = claims_.find(waiters.holder);
    return holder != nullptr && holder->acts() ? holder : nullptr;
}

void engine::front_due(operation& wanted, time_point now) {
    if (take_turn(wanted, now)) {
        return;
    }
    const next_step next = wanted.queue->due(view_of(*wanted.queue, now));
    switch (next.does) {
    case next_step::what::ask:
        start_attempt(wanted, now);
        break;
    case next_step::what::wait:
        timers_.set(wanted.wake, next.until);
        break;
    case next_step::what::time_out:
        time_out(wanted, now);
        break;
    }
}

void engine::wake(wait_queue& waiters, time_point due) {
    if (due != forever) {
        timers_.set(waiters.front()->wake, due);
    }
}

bool engine::hand_off_locally(claim& lease, time_point now) {
    wait_queue* const mine = queues_.find(lease.waiting_form(), lease.line_key());
    if (mine == nullptr || mine->empty() || closing()) {
        return false;
    }
    time_point& since = lease.is_slot() ? lease.slots->handed_since : mine->handed_since;
    offered_lease offer{
        .lasts_until = lease.votes.lasts_until(masters_.needed()),
        .ttl = lease.ttl,
        .fencing = lease.fencing,
        .handed_since = since};
    if (lease.is_slot()) {
        offer.slots = static_cast<std::uint32_t>(lease.slots->numbers.size());
        offer.highest = lease.slots->numbers.back();
    }
    waiter* const chosen = mine->hand(offer, {rules_, now, masters_.round_trip()});
    if (chosen == nullptr) {
        return false;
    }
    operation& next = static_cast<operation&>(*chosen);
    if (next.stage == operation::phase::attempting) {
        claim& attempt = *claims_.find(next.attempt);
        // The attempt may have the key of another slot, whose removal must be published.
        attempt.announced = attempt.is_slot() && attempt.votes.may_be_set();
        removals_.begin(attempt, now);
    }
    end_scan(next);
    since = since == never ? now : since;
    ++counters_.local_handoffs;
    ++counters_.released;
    host_.removed(lease, release_result::released);
    lease.ttl = next.options.ttl;
    lease.ttl_max = std::max(lease.ttl_max, lease.ttl);
    lease.given_at = now;
    const time_point deadline = lease.held().deadline();
    // From now on the claim is an attempt of the next waiter. No caller waits for its removal.
    lease.ask({attempt::origin::hand_off, masters_.size(), masters_.needed()});
    next.attempt = lease.self;
    if (!wrong::handoff_without_raise && lease.fencing) {
        accept_handoff(next, lease, deadline, now);
    } else {
        win(next, lease, now);
    }
    return true;
}

// A lease of this process has ended without a handoff.
void engine::wake_queue(const claim& ended, time_point now) {
    wait_queue* const mine = queues_.find(ended.waiting_form(), ended.line_key());
    if (mine == nullptr) {
        return;
    }
    const time_point since = ended.is_slot() ? ended.slots->handed_since : mine->handed_since;
    wake(
        *mine,
        mine->released(
            ended.token_text().substr(0, release_name_size),
            since,
            {rules_, now, masters_.round_trip()}));
    end_queue(*mine);
}

// After an attempt: rolls it back, then pauses or ends the acquire.
void engine::pause_or_finish(operation& wanted, claim& attempt, time_point now) {
    if (wanted.search && try_next_slot(wanted, attempt, now)) {
        return;
    }
    const bool again = wanted.outcome == errc::contended || wanted.outcome == errc::no_quorum
                       || wanted.outcome == errc::validity_exhausted;
    const bool waits = again && !closing() && now < wanted.wait_until;
    const time_point due = waits ? next_try(wanted, attempt, now) : forever;
    // Publish this rollback only if no later one will: the acquire ends, or its next attempt may be
    // on another slot. Waiters may have been refused because of its keys.
    const bool leaves = !waits || attempt.is_slot();
    attempt.announced = attempt.announced || (leaves && attempt.votes.may_be_set());
    if (!waits) {
        attempt.drops_intent = std::exchange(wanted.intent, 0) != 0;
    }
    removals_.begin(attempt, now);
    if (waits) {
        // Wake in time to renew the ticket.
        const time_point keep_by =
            wanted.queue->place.keep_by(rules_, later(now, masters_.retry_floor()));
        pause(wanted, std::min(due, keep_by), now);
    } else {
        finish(wanted, now);
    }
}

void engine::pause(operation& wanted, time_point until, time_point now) {
    if (wanted.search) {
        wanted.search->stop();
    }
    wait_queue& mine = *wanted.queue;
    timers_.set(wanted.wake, mine.pause(until, view_of(mine, now), random_));
}

// When the front tries again after an attempt, unless it is notified before.
time_point engine::next_try(operation& wanted, const claim& attempt, time_point now) {
    wait_queue& mine = *wanted.queue;
    if (wanted.outcome != errc::contended) {
        leave_queue(mine, now); // give up the ticket, so that other processes do not wait for it
    }
    const bool full = attempt.asking().asked_all();
    const std::optional<time_point> due = mine.failed(
        full, attempt.asking().count().granted(), attempt.votes, view_of(mine, now), random_);
    if (due) {
        return *due;
    }
    const bool missed = watch(mine, now);
    if (!missed) {
        ask_lease_left(wanted, attempt, now);
    }
    return mine.refused(missed, attempt.votes, view_of(mine, now), random_);
}

// The reply to a script contains the holder's remaining lease, and that to a SET does not. A
// waiter asks one master for it: the arbiter, if that refused.
void engine::ask_lease_left(operation& wanted, const claim& attempt, time_point now) {
    const std::size_t arbiter = masters_.arbiter_of(attempt.key);
    std::size_t who = nobody;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        const bool holds = attempt.votes.of[i].said == vote::held && masters_[i].link->up();
        who = holds && (who == nobody || i == arbiter) ? i : who;
    }
    if (who == nobody || wanted.queue->pool || !sender::sets_natively(attempt)) {
        return;
    }
    sender_.send(
        who,
        {"PTTL", attempt.key},
        {.kind = command_kind::lease_left, .subject = wanted.self},
        now);
}

void engine::lease_left_answered(
    std::size_t master, const sent_command& command, const reply& answered, time_point now) {
    operation* const wanted = operations_.find(command.subject);
    if (wanted == nullptr || wanted->queue == nullptr || wanted->queue->front() != wanted
        || wanted->stage != operation::phase::paused) {
        return;
    }
    const auto left = read_lease_left(answered);
    const auto due =
        left ? wanted->queue->told_left(master, *left, view_of(*wanted->queue, now), random_)
             : std::nullopt;
    if (due) {
        pause(*wanted, *due, now);
    }
}

// No majority announces releases any more.
void engine::poll_again(time_point now) {
    operations_.for_each([&](operation& wanted) {
        if (wait_queue* const mine = wanted.queue; mine != nullptr && mine->front() == &wanted) {
            wake(*mine, mine->poll_soon(view_of(*mine, now), random_));
        }
    });
}

// A majority is admitted again: wakes the waiters that paused because of the outage.
void engine::retry_after_outage(time_point now) {
    operations_.for_each([&](operation& wanted) {
        if (wait_queue* const mine = wanted.queue; mine != nullptr && mine->front() == &wanted) {
            wake(*mine, mine->outage_over({rules_, now}, random_));
        }
    });
}

} // namespace redlock::core
