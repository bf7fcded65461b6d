// Waiting: the lines of the engine. Who waits for a lock stands in line with the others of this
// process, and the head of the line makes the attempts. It makes one when a push says that the lock
// may be free, or, behind that, when the lease that the votes told of must have ended. A lease that
// is let go here passes to the next of the line without being given up.
//
// Contenders that were told by the same release first ask one and the same master, the arbiter,
// whose answer costs the losers one command; only the winner goes on to the others.

#include "decisions.hpp"
#include "engine.hpp"

namespace redlock::core {

void engine::join(operation& wanted, time_point now) {
    line* found = lines_.find(wanted.form, wanted.key);
    line& mine = found != nullptr ? *found : lines_.create(wanted.form, wanted.key);
    mine.pool = wanted.slots != 0;
    wanted.line = mine.self;
    wanted.before = mine.tail;
    if (operation* const last = operations_.find(mine.tail)) {
        last->behind = wanted.self;
    } else {
        mine.head = wanted.self;
    }
    mine.tail = wanted.self;
    ++mine.length;
    if (mine.head != wanted.self) {
        wanted.stage = operation::phase::queued;
        timers_.set(wanted.wake, wanted.wait_until);
    } else if (!take_turn(wanted, now)) {
        if (const claim* const holder = held_here(mine)) {
            pause(wanted, holder->acts_until(), now);
        } else {
            start_attempt(wanted, now);
        }
    }
    if (rules_.contention_warning != 0 && mine.length == rules_.contention_warning + 1) {
        host_.contention(shown(mine.form, mine.key), mine.length);
    }
}

// Out of the line, from whatever place. The next becomes its head, and goes on where this one was.
void engine::leave(operation& wanted, time_point now) {
    line* const mine = lines_.find(wanted.line);
    if (mine == nullptr) {
        return;
    }
    operation* const before = operations_.find(wanted.before);
    operation* const behind = operations_.find(wanted.behind);
    (before != nullptr ? before->behind : mine->head) = wanted.behind;
    (behind != nullptr ? behind->before : mine->tail) = wanted.before;
    --mine->length;
    wanted.line = wanted.before = wanted.behind = {};
    if (mine->length == 0) {
        leave_queue(*mine, now);
        unwatch(*mine, now);
        end_line(*mine);
    } else if (!wrong::leaver_blocks_its_line && before == nullptr) {
        const claim* const holder = held_here(*mine);
        if (operations_.find(mine->head)->options.order == fairness::fifo) {
            promote(*mine, now, now); // its place in the queue, which is the line's, is to be kept
        } else {
            leave_queue(*mine, now);
            promote(
                *mine, holder != nullptr ? holder->acts_until() : later(now, retry_floor()), now);
        }
    }
}

// An empty line stays while a lease is held that it handed over: whoever comes next has that to
// wait for, and the time of the hand-overs in a row goes on.
void engine::end_line(line& waiters) {
    if (waiters.length == 0 && (waiters.handed_since == never || held_here(waiters) == nullptr)) {
        lines_.destroy(waiters);
    }
}

// The end of its wait, without an attempt of its own being under way. What the line has found out
// stands for it: the attempt of its head that is under way, if that shows an outage, or the latest
// that is over.
void engine::time_out(operation& wanted, time_point now) {
    if (const line* const mine = lines_.find(wanted.line); !wanted.outcome && mine != nullptr) {
        const operation* const first = operations_.find(mine->head);
        const claim* const attempt =
            first != nullptr && first->stage == operation::phase::attempting
                ? claims_.find(first->attempt)
                : nullptr;
        if (attempt != nullptr && attempt->asking.asked_all() && !works(*attempt, now)) {
            wanted.outcome = errc::no_quorum;
            wanted.last = attempt->votes;
        } else {
            wanted.outcome = mine->outcome                 ? *mine->outcome
                             : held_here(*mine) != nullptr ? errc::contended
                                                           : errc::timed_out;
            wanted.last = mine->last;
        }
    }
    wanted.decided_at = now;
    finish(wanted, now);
}

// The lease of this process that a line waits for, or null. One that is lost counts until its
// holder has let go or must have stopped.
const claim* engine::held_here(const line& waiters) {
    const claim* const holder = claims_.find(waiters.holder);
    return holder != nullptr && holder->acts() ? holder : nullptr;
}

// The pause of a head is over. While the lock is held in this process there is nothing to ask.
void engine::head_due(operation& wanted, time_point now) {
    if (take_turn(wanted, now)) {
        return;
    }
    const claim* const holder = held_here(*lines_.find(wanted.line));
    if (holder == nullptr || now >= holder->acts_until()) {
        start_attempt(wanted, now);
    } else if (now < wanted.wait_until) {
        timers_.set(wanted.wake, std::min(holder->acts_until(), wanted.wait_until));
    } else {
        time_out(wanted, now);
    }
}

// The head of the line tries at `due`, or earlier if a push comes or the lock is let go here.
void engine::promote(line& waiters, time_point due, time_point now) {
    operation& next = *operations_.find(waiters.head);
    if (next.last.of.empty()) {
        next.last = waiters.last;
        next.outcome = waiters.outcome;
    }
    pause(next, due, now);
}

std::chrono::nanoseconds engine::retry_floor() const noexcept {
    return std::max<std::chrono::nanoseconds>(rules_.retry_delay_min, masters_.round_trip());
}

// Whether other processes have their chance now, after hand-overs in a row. Not before eight round
// trips: going back to the masters then costs a fifth of the time at most.
bool engine::others_are_next(time_point handed_since, time_point now) const noexcept {
    const std::chrono::milliseconds limit = rules_.local_handoff_time;
    return limit.count() == 0
           || (handed_since != never
               && now >= later(
                      handed_since,
                      std::max<std::chrono::nanoseconds>(limit, 8 * masters_.round_trip())));
}

// A lease that is let go passes to the head of its line: the masters are not told, and the next
// holder has what is left of it. Not for ever, as the lines of other processes have no part in it.
bool engine::hand_over(claim& lease, time_point now) {
    line* const mine = lines_.find(lease.line_form(), lease.line_key());
    if (mine == nullptr || mine->length == 0 || closing()) {
        return false;
    }
    time_point& since = lease.is_slot() ? lease.slots->handed_since : mine->handed_since;
    if (others_are_next(since, now)) {
        return false;
    }
    operation& next = *operations_.find(wrong::hand_over_to_the_last ? mine->tail : mine->head);
    const acquire_options& wants = next.options;
    const auto needed = wrong::hand_over_past_deadline
                            ? -lease.ttl
                            : std::max({wants.min_validity, wants.stop_margin, wants.ttl / 2});
    if (lease.is_slot()
        && (lease.slots->numbers.size() != next.wants
            || lease.slots->numbers.back() >= next.slots)) {
        return false; // it wants more, or its pool ends before that one
    }
    if (!lease.is_slot() && next.slots != 0) {
        return false; // without a prefix a lock may have the name of a pool
    }
    if (wants.fencing != lease.fencing || !may_hand_over(next, *mine, now)
        || now >= lease.votes.lasts_until(rules_.quorum()) - needed) {
        return false;
    }
    if (next.stage == operation::phase::attempting) {
        claim& attempt = *claims_.find(next.attempt);
        // Of another slot than that which it has now.
        attempt.announced = attempt.is_slot() && attempt.votes.may_be_set();
        begin_removal(attempt, now);
    }
    end_survey(next);
    mine->look_at = next.stage == operation::phase::paused ? next.wake.due : now;
    since = since == never ? now : since;
    ++counters_.hand_overs;
    ++counters_.released;
    host_.removed(lease, release_result::released);
    lease.ttl = wants.ttl;
    lease.ttl_max = std::max(lease.ttl_max, wants.ttl);
    lease.given_at = now;
    lease.stage = claim::phase::asking; // an attempt of the next one, to whose end nobody listens
    next.attempt = lease.self;
    if (!wrong::hand_over_without_raise && lease.fencing) {
        hand_on(next, lease, now);
    } else {
        win(next, lease, now);
    }
    return true;
}

// A lease of this process has ended without being handed over. Its line, if there is one, need not
// wait for a push; but after hand-overs for so long others come first.
void engine::wake_line(const claim& ended, time_point now) {
    line* const mine = lines_.find(ended.line_form(), ended.line_key());
    if (mine == nullptr) {
        return;
    }
    const time_point since = ended.is_slot() ? ended.slots->handed_since : mine->handed_since;
    const bool yields = since != never && others_are_next(since, now);
    mine->handed_since = never;
    mine->holder = {};
    mine->latest.release.assign(ended.token_text().substr(0, release_name_size));
    mine->latest.acted_on = true; // this is that push
    mine->latest.again = false;
    if (mine->length == 0) {
        end_line(*mine);
        return;
    }
    operation& next = *operations_.find(mine->head);
    if (next.stage == operation::phase::paused) {
        next.ask_arbiter = yields;
        // Others hear of the release after one way, and their wish arrives after another.
        const auto chance = 2 * (rules_.pushes ? masters_.round_trip() : retry_floor());
        timers_.set(next.wake, std::min(next.wake.due, yields ? later(now, chance) : now));
    } else if (next.stage == operation::phase::turning) {
        mine->turn.again = true;
    } else if (mine->pool) {
        mine->latest.again = true;
    }
}

// After an attempt: rolls it back, and ends the operation or has it wait.
void engine::pause_or_finish(operation& wanted, claim& attempt, time_point now) {
    if (wanted.slots != 0 && try_next_slot(wanted, attempt, now)) {
        return;
    }
    const bool again = wanted.outcome == errc::contended || wanted.outcome == errc::no_quorum
                       || wanted.outcome == errc::too_slow;
    // The last attempt needs time for its round trip, or it is not worth its pause.
    const bool waits = again && !closing() && wanted.wait_until > later(now, 2 * retry_floor());
    const time_point due = waits ? next_try(wanted, attempt, now) : forever;
    // Who goes on will either have the lock, and release it, or end here. Who ends, or may have
    // another slot next, and may have had a part of this tells those whom that part kept out.
    const bool leaves = !waits || attempt.is_slot();
    attempt.announced = attempt.announced || (leaves && attempt.votes.may_be_set());
    if (!waits) {
        attempt.drops_intent = std::exchange(wanted.intent, 0) != 0;
    }
    begin_removal(attempt, now);
    if (waits) {
        pause(wanted, std::min(due, look_again(*lines_.find(wanted.line), now)), now);
    } else {
        finish(wanted, now);
    }
}

void engine::pause(operation& wanted, time_point until, time_point now) {
    wanted.candidates.clear(); // what was free then
    wanted.tries = 0;
    wanted.stage = operation::phase::paused;
    const time_point last_chance =
        wanted.wait_until == forever ? forever : wanted.wait_until - 2 * retry_floor();
    timers_.set(
        wanted.wake,
        std::min(
            {until, last_chance, wrong::sleeps_beside_free_lock ? forever : poll_by(wanted, now)}));
}

// When the head of a line tries again even if nothing notifies it. A lock that is held in this
// process needs no poll, and a place in a queue is renewed more often.
time_point engine::poll_by(const operation& wanted, time_point now) {
    const line* const mine = lines_.find(wanted.line);
    if (mine == nullptr || mine->turn.keeper != claim::nobody || held_here(*mine) != nullptr) {
        return forever;
    }
    const bool one_first = wanted.ask_arbiter && asks_arbiter(wanted.form)
                           && masters_.arbiter_of(mine->key) != claim::nobody;
    return std::max(
        later(now, retry_floor()), mine->polls.next(rules_.poll_limit, one_first, random_));
}

// No majority notifies any more: the lines that relied on it poll from now on.
void engine::poll_again(time_point now) {
    operations_.for_each([&](operation& wanted) {
        const line* const mine = lines_.find(wanted.line);
        if (wanted.stage == operation::phase::paused && mine != nullptr && mine->watched
            && held_here(*mine) == nullptr) {
            const auto soon = wanted.delay.next(retry_floor(), rules_.retry_delay_max, random_);
            timers_.set(wanted.wake, std::min(wanted.wake.due, later(now, soon)));
        }
    });
}

// When the head of a line asks again, if nothing tells it before.
time_point engine::next_try(operation& wanted, const claim& attempt, time_point now) {
    line& mine = *lines_.find(wanted.line);
    const bool full = attempt.asking.asked_all();
    if (full) {
        mine.outcome = wanted.outcome;
        mine.last = attempt.votes;
    }
    const auto floor = retry_floor();
    // The first to ask a master is the first there: who lost asks the arbiter first, so that the
    // next vote is not split. But an arbiter that alone says no is not believed for ever.
    wanted.ask_arbiter = full && wanted.outcome == errc::contended;
    if (wanted.outcome != errc::contended) {
        leave_queue(mine, now); // who cannot have it keeps nobody waiting
        return later(now, wanted.delay.next(floor, rules_.retry_delay_max, random_));
    }
    if (std::exchange(mine.latest.again, false)) {
        wanted.ask_arbiter = true;
        return now;
    }
    if (attempt.asking.count().granted() > 0) {
        // Split: those who got the least wait the longest.
        const auto missing =
            static_cast<std::int64_t>(rules_.quorum() - attempt.asking.count().granted());
        return later(now, random_.between(missing * floor, (missing + 1) * floor));
    }
    std::chrono::milliseconds left = not_told;
    for (const ballot& one : attempt.votes.of) {
        // Of a pool that is the rest of one slot, and others were free.
        if (!mine.pool && one.said == vote::held && one.left != not_told
            && (left == not_told || one.left < left)) {
            left = one.left;
        }
    }
    if (watch(mine, now)) {
        return later(now, random_.between(floor, 2 * floor));
    }
    const auto delay = wanted.delay.next(floor, rules_.retry_delay_max, random_);
    const auto due = left != not_told && masters_.hears_a_quorum() ? left + delay : delay;
    if (wanted.form == lock_form::writer) { // that it waits must not be forgotten
        return later(now, std::min<std::chrono::nanoseconds>(due, rules_.intent_lease() / 2));
    }
    return later(now, due);
}

// The masters are back: whoever waited for that need not wait out its pause. Spread over a moment,
// so that all the waiters of all processes do not collide.
void engine::retry_after_outage(time_point now) {
    operations_.for_each([&](operation& wanted) {
        if (wanted.stage == operation::phase::paused && wanted.outcome == errc::no_quorum) {
            const auto soon = random_.between({}, rules_.retry_delay_min);
            timers_.set(wanted.wake, std::min(wanted.wake.due, later(now, soon)));
        }
    });
}

} // namespace redlock::core
