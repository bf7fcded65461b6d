// An acquire of a caller from its beginning to its end, in as many attempts as it takes
// (attempts.cpp).

#include "core/base/decisions.hpp"
#include "core/bytes/keys.hpp"
#include "engine.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace redlock::core {

handle<acquire_call> engine::acquire(const acquire_request& request, time_point now) {
    acquire_call& wanted = acquires_.create();
    const handle<acquire_call> name = wanted.self;
    wanted.cookie = request.cookie;
    name_keys(wanted, request);
    wanted.options = request.options;
    wanted.options.transferable |= !request.token.empty();
    wanted.default_ttl = request.default_ttl;
    wanted.began = wanted.decided_at = now;
    const auto limit = request.options.wait.limit();
    wanted.wait_until = request.attaches || limit.count() == 0 ? now : later(now, limit);
    std::optional<errc> refused;
    if (!running()) {
        refused = closing() ? errc::closed : errc::not_running;
    } else if (!wanted.fit_ttl(masters_.ttl_limit(), rules_.drift)) {
        refused = errc::invalid_argument;
        introduce_all_again(now);
    }
    if (refused) {
        wanted.outcome = refused;
        finish(wanted, now);
    } else if (request.attaches) {
        attach(wanted, request.token, now);
    } else if (request.options.wait == wait_for::none()) {
        const time_point others_until = yields_until(wanted.form, wanted.key);
        if (now < others_until && request.token.empty()) {
            wanted.stage = acquire_call::phase::paused;
            timers_.set(wanted.wake, others_until);
        } else {
            try_it(wanted, now, request.token);
        }
    } else {
        act(wanted, join(wanted, now), now);
    }
    return name;
}

void engine::name_keys(acquire_call& wanted, const acquire_request& request) const {
    wanted.form = request.form;
    if (request.form == lock_form::all) {
        assign_keys_of(wanted.key, rules_.key_prefix, request.resources);
        return;
    }
    if (request.slots != 0) {
        wanted.search = std::make_unique<slot_search>(request.slots, request.wants);
        assign_pool_key(wanted.key, rules_.key_prefix, request.resource);
    } else {
        assign_lock_key(wanted.key, rules_.key_prefix, request.resource);
    }
}

void engine::act(acquire_call& wanted, next_step next, time_point now) {
    if (next == next_step::ask) {
        try_it(wanted, now);
    } else if (next == next_step::time_out) {
        time_out(wanted, now);
    }
}

void engine::acquire_due(acquire_call& wanted, time_point now) {
    switch (wanted.stage) {
    case acquire_call::phase::finishing:
        finish_if_on_wire(wanted, now);
        return;
    case acquire_call::phase::queued:
        time_out(wanted, now);
        return;
    case acquire_call::phase::ticketed: // no reply: go on without it, it only orders
                                        // attempts
        now < wanted.wait_until ? try_it(wanted, now) : time_out(wanted, now);
        return;
    case acquire_call::phase::paused:
        wanted.queue == nullptr ? try_it(wanted, now) : act(wanted, pause_over(wanted, now), now);
        return;
    case acquire_call::phase::scanning:
        if (wanted.wait_until > wanted.began && now >= wanted.wait_until) {
            time_out(wanted, now);
        } else {
            slots_found(wanted, *scans_.find(wanted.search->scan), now);
        }
        return;
    case acquire_call::phase::attempting:
        break;
    }
    claim& attempt = *claims_.find(wanted.attempt);
    master_set silent = 0;
    const master_set slow = masters_.may_be_slow(attempt.asked_at(), now);
    const steps what = attempt.out_of_time(slow, silent, at(now));
    for (const std::size_t i : each_of(silent)) {
        ++masters_.counters(i).acquire_votes[vote::timed_out];
    }
    // The wait ends during an attempt. An earlier complete result is more useful than incomplete
    // votes.
    if (has(what, steps::failed) && attempt.why() == errc::wait_timed_out && wanted.outcome) {
        roll_back(wanted, attempt, true, now);
        finish(wanted, now);
    } else {
        decided(attempt, what, now);
    }
}

// The wait has ended.
void engine::time_out(acquire_call& wanted, time_point now) {
    if (const wait_queue* const mine = wanted.queue) {
        const acquire_call& first = *mine->front();
        const claim* const attempt =
            first.stage == acquire_call::phase::attempting ? claims_.find(first.attempt) : nullptr;
        const bool outage = attempt != nullptr && attempt->asked_all()
                            && !attempt->works(masters_.may_be_slow(attempt->asked_at(), now));
        mine->time_out(wanted, outage ? &attempt->votes : nullptr, held_here(*mine) != nullptr);
        if (wanted.outcome == errc::contended && wanted.wait_again(now)) {
            if (&first == &wanted) {
                end_scan(wanted);
                pause(wanted, now, now);
            } else {
                wanted.outcome.reset();
                timers_.set(wanted.wake, wanted.wait_until);
            }
            return;
        }
    }
    wanted.decided_at = now;
    finish(wanted, now);
}

bool engine::has_sent_nothing(handle<acquire_call> acquire) const noexcept {
    const acquire_call* const wanted = acquires_.find(acquire);
    if (wanted == nullptr || wanted->attempts != 0) {
        return false;
    }
    // At the front it may have asked for a ticket, or searched a pool.
    return wanted->stage == acquire_call::phase::queued
           || (wanted->stage == acquire_call::phase::paused && !wanted->search
               && (wanted->queue == nullptr || wanted->queue->ticket.waiter.empty()));
}

void engine::cancel(handle<acquire_call> acquire, time_point now) {
    if (acquire_call* const wanted = acquires_.find(acquire)) {
        end(*wanted, std::nullopt, now);
    }
    end_of_event(now);
}

// Without an error it was cancelled.
void engine::end(acquire_call& wanted, std::optional<errc> why, time_point now) {
    if (wanted.stage == acquire_call::phase::attempting) {
        fail(wanted, *claims_.find(wanted.attempt), why, now);
    } else if (wanted.stage != acquire_call::phase::finishing) {
        wanted.outcome = why;
        finish(wanted, now);
    }
}

// An unsuccessful acquire completes when its rollback is on the wire: a caller that goes away after
// that leaves no key. A socket that takes no bytes holds it up for `master_timeout` at most.
void engine::finish(acquire_call& wanted, time_point now) {
    end_scan(wanted);
    drop_intent(wanted, now);
    leave(wanted, now);
    wanted.stage = acquire_call::phase::finishing;
    timers_.set(wanted.wake, later(now, rules_.master_timeout));
    finishing_.push_back(wanted.self);
    finish_if_on_wire(wanted, now);
}

void engine::finish_if_on_wire(acquire_call& wanted, time_point now) {
    const claim* const attempt = claims_.find(wanted.attempt);
    if (attempt != nullptr && now < wanted.wake.due && !on_wire(*attempt)) {
        return;
    }
    std::erase(finishing_, wanted.self);
    timers_.cancel(wanted.wake);
    if (!wanted.outcome) {
        ++counters_.cancelled;
    } else if (*wanted.outcome == errc::contended) {
        ++counters_.contended;
    } else if (*wanted.outcome == errc::no_quorum) {
        ++counters_.no_quorum;
    } else if (*wanted.outcome == errc::validity_exhausted) {
        ++counters_.validity_exhausted;
    } else if (*wanted.outcome == errc::wait_timed_out) {
        ++counters_.wait_timed_out;
    }
    host_.not_acquired(wanted);
    acquires_.destroy(wanted);
}

// Whether each removal of a claim was written, or cannot be sent now.
bool engine::on_wire(const claim& ended) const noexcept {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if (ended.in_flight(i) && masters_[i].link->written_mark() < ended.votes.removal_mark(i)) {
            return false;
        }
    }
    return !ended.waits_for_room();
}

void engine::end_finished(time_point now) {
    const std::vector<handle<acquire_call>> candidates = finishing_;
    for (const handle<acquire_call> name : candidates) {
        if (acquire_call* const wanted = acquires_.find(name)) {
            finish_if_on_wire(*wanted, now);
        }
    }
}

// When a waiter gives up, its intent is removed together with the rollback of its last
// attempt. Between two attempts there is no rollback, so one is made for the intent alone. On a
// master that is down the intent expires.
void engine::drop_intent(acquire_call& wanted, time_point now) {
    if (wanted.intent == 0) {
        return;
    }
    claim& last = make_claim(wanted, {}, now);
    wanted.intent = 0;
    wanted.attempt = last.self;
    last.only_intent(masters_.up(), later(now, rules_.intent_lease()));
    remove(last, now);
}

// --- The slots of a pool: lets an acquire try some of those that are free
//
// A waiter for a slot is in the wait queue of its pool. Only its front differs: it searches first,
// and then makes attempts on slots that were free. The release of any slot is published on the
// channel of the pool.

void engine::start_scan(acquire_call& wanted, time_point now) {
    wanted.stage = acquire_call::phase::scanning;
    if (wanted.queue != nullptr) {
        wanted.queue->polls.asked_all(now);
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
    roll_back(wanted, attempt, false, now);
    // Another client tries the same slots: from now on the arbiter is asked first, and decides
    // between the two.
    wanted.ask_arbiter = true;
    try_it(wanted, now);
    return true;
}

} // namespace redlock::core
