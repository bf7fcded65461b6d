// Acquires, each in as many attempts as it takes: their beginning, their deadlines, their end and
// their cancellation.

#include "engine.hpp"

namespace redlock::core {

handle engine::acquire(const acquire_request& request, time_point now) {
    operation& wanted = operations_.create();
    const handle name = wanted.self;
    wanted.wake.owner = timer_owner::operation;
    wanted.wake.subject = name;
    wanted.cookie = request.cookie;
    name_keys(wanted, request);
    wanted.options = request.options;
    wanted.began = wanted.decided_at = now;
    const auto limit = request.options.wait.limit();
    wanted.wait_until = limit.count() == 0 ? now : later(now, limit);
    if (life_ != life::running) {
        wanted.outcome = closing() ? errc::closed : errc::not_running;
        finish(wanted, now);
    } else if (request.options.wait == wait_for::none()) {
        start_attempt(wanted, now, request.token);
    } else {
        join(wanted, now);
    }
    return name;
}

// An unsuccessful acquire completes when its rollback is on the wire: a caller that goes away after
// that leaves no key. A socket that takes no bytes holds it up for `master_timeout` at most.
void engine::finish(operation& wanted, time_point now) {
    end_scan(wanted);
    drop_intent(wanted, now);
    leave(wanted, now);
    wanted.stage = operation::phase::finishing;
    timers_.set(wanted.wake, later(now, rules_.master_timeout));
    finishing_.push_back(wanted.self);
    finish_if_on_wire(wanted, now);
}

void engine::finish_if_on_wire(operation& wanted, time_point now) {
    const claim* const attempt = claims_.find(wanted.attempt);
    if (attempt != nullptr && now < wanted.wake.due && !removals_.on_wire(*attempt)) {
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
    operations_.destroy(wanted);
}

void engine::operation_due(operation& wanted, time_point now) {
    switch (wanted.stage) {
    case operation::phase::finishing:
        finish_if_on_wire(wanted, now);
        return;
    case operation::phase::queued:
        time_out(wanted, now);
        return;
    case operation::phase::turning: // no reply: go on without a turn, which only orders attempts
        now < wanted.wait_until ? start_attempt(wanted, now) : time_out(wanted, now);
        return;
    case operation::phase::paused:
        front_due(wanted, now);
        return;
    case operation::phase::scanning:
        if (wanted.wait_until > wanted.began && now >= wanted.wait_until) {
            time_out(wanted, now);
        } else {
            slots_found(wanted, *scans_.find(wanted.search->scan), now);
        }
        return;
    case operation::phase::attempting:
        break;
    }
    claim& attempt = *claims_.find(wanted.attempt);
    const attempt::decision next = attempt.asking().due(
        attempt, limits_of(wanted), masters_.may_be_slow(attempt.asked_at, now), now, rules_);
    // The wait ends during an attempt. An earlier complete result is more useful than incomplete
    // votes.
    if (next.next == attempt::decision::kind::lost && next.why == errc::wait_timed_out
        && wanted.outcome) {
        attempt.announced = attempt.votes.may_be_set();
        attempt.drops_intent = std::exchange(wanted.intent, 0) != 0;
        removals_.begin(attempt, now);
        finish(wanted, now);
    } else {
        follow(attempt, next, now);
    }
}

bool engine::has_sent_nothing(handle acquire) const noexcept {
    const operation* const wanted = operations_.find(acquire);
    return wanted != nullptr && wanted->stage == operation::phase::queued && wanted->attempts == 0;
}

void engine::cancel(handle acquire, time_point now) {
    operation* const wanted = operations_.find(acquire);
    if (wanted == nullptr || wanted->stage == operation::phase::finishing) {
        return;
    }
    if (wanted->stage == operation::phase::attempting) {
        fail(*wanted, *claims_.find(wanted->attempt), std::nullopt, now);
    } else {
        wanted->outcome.reset();
        finish(*wanted, now);
    }
    finish_closing(now);
}

} // namespace redlock::core
