// An acquire of a caller from its beginning to its end, in as many attempts as it takes
// (attempts.cpp).

#include "core/bytes/keys.hpp"
#include "engine.hpp"

#include <memory>

namespace redlock::core {

handle<acquire_call> engine::acquire(const acquire_request& request, time_point now) {
    acquire_call& wanted = acquires_.create();
    const handle<acquire_call> name = wanted.self;
    wanted.cookie = request.cookie;
    name_keys(wanted, request);
    wanted.options = request.options;
    wanted.options.transferable |= !request.token.empty();
    wanted.default_ttl = request.default_ttl;
    wanted.began = now;
    const auto limit = request.options.wait.limit();
    wanted.wait_until = request.attaches || limit.count() == 0 ? now : later(now, limit);
    if (!running()) {
        wanted.outcome = closing() ? errc::closed : errc::not_running;
    } else if (!wanted.fit_ttl(masters_.ttl_limit(), rules_.drift)) {
        wanted.outcome = errc::invalid_argument;
        look_at_limit(now);
    }
    if (wanted.outcome) {
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
    wanted.decided_at = now;
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
    } else {
        ++counters_.failed[*wanted.outcome];
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
    last.only_intent(masters_.up(), later(now, rules_.ticket_lease()));
    remove(last, now);
}

} // namespace redlock::core
