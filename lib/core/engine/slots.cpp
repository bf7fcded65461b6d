// The slots of a pool: lets an acquire try some of those that are free.
//
// A waiter for a slot is in the wait queue of its pool. Only its front differs: it searches first,
// and then makes attempts on slots that were free. The release of any slot is published on the
// channel of the pool.

#include "engine.hpp"

#include <algorithm>
#include <utility>

namespace redlock::core {

void engine::start_scan(acquire_call& wanted, time_point now) {
    wanted.stage = acquire_call::phase::scanning;
    if (wanted.queue != nullptr) {
        wanted.queue->asked_all(now);
    }
    slot_scan& asking = scans_.start(wanted, now);
    wanted.search->scan = asking.self;
    if (asking.found.over()) { // nothing was sent
        slots_found(wanted, asking, now);
    } else {
        const time_point impatient = wanted.wait_until > wanted.began ? wanted.wait_until : forever;
        timers_.set(wanted.wake, std::min(later(now, rules_.master_timeout), impatient));
    }
}

void engine::end_scan(acquire_call& wanted) {
    slot_scan* const asking = wanted.search ? scans_.find(wanted.search->scan) : nullptr;
    if (asking != nullptr) {
        scans_.end(*asking);
    }
}

// Ends a scan: starts an attempt on a free slot, or ends this search.
void engine::slots_found(acquire_call& wanted, slot_scan& asking, time_point now) {
    const slot_tally& found = asking.found;
    if (wanted.search->scanned(found, random_)) {
        end_scan(wanted);
        try_it(wanted, now);
        return;
    }
    wanted.outcome = found.complete() >= masters_.majority() ? errc::contended : errc::no_quorum;
    if (masters_.ready()) {
        asking.explain();
    }
    std::swap(wanted.last, asking.votes);
    wanted.decided_at = now;
    end_scan(wanted);
    if (wanted.queue == nullptr || closing() || now >= wanted.wait_until) {
        finish(wanted, now);
    } else {
        act(wanted, no_slot(wanted, now), now);
    }
}

// A search found no slot: the next step is to search again, or it pauses.
next_step engine::no_slot(acquire_call& front, time_point now) {
    wait_queue& mine = *front.queue;
    mine.found(front.outcome, front.last);
    front.search->stop();
    if (front.outcome == errc::contended) {
        if (mine.take_notified()) {
            return next_step::ask;
        }
        watch(mine, now);
    }
    pause(front, mine.no_slot(view_of(mine, now), random_), now);
    return next_step::wait;
}

// The front got a slot, and the next waiter becomes the front. After a local handoff all slots are
// held, so it waits until the planned search. Otherwise it continues with the other free slots of
// the last scan.
void engine::look_on(wait_queue& waiters, acquire_call& served, const claim& won, time_point now) {
    acquire_call& next = *waiters.front();
    if (won.handed_since() != never && !waiters.take_notified()) {
        pause(next, waiters.search_at(), now);
        return;
    }
    pause(next, now, now);
    if (next.search) {
        next.search->take_over(*served.search);
    }
}

// An attempt on one slot has failed: tries another if this search has one left. Returns false if it
// has ended.
bool engine::try_next_slot(acquire_call& wanted, claim& attempt, time_point now) {
    if (wanted.outcome != errc::contended || !wanted.search->refused() || closing()
        || (wanted.wait_until > wanted.began
            && wanted.wait_until <= later(now, 2 * masters_.retry_floor()))) {
        return false;
    }
    attempt.announce();
    remove(attempt, now);
    // Another client tries the same slots: from now on the arbiter is asked first, and decides
    // between the two.
    wanted.ask_arbiter = true;
    try_it(wanted, now);
    return true;
}

} // namespace redlock::core
