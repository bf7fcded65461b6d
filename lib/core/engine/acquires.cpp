#include "acquires.hpp"

#include "core/base/decisions.hpp"
#include "core/bytes/keys.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace redlock::core {

handle
acquires::begin(const acquire_request& request, std::optional<errc> refused, time_point now) {
    operation& wanted = operations_.create();
    const handle name = wanted.self;
    wanted.wake.owner = timer_owner::operation;
    wanted.wake.subject = name.index;
    wanted.cookie = request.cookie;
    name_keys(wanted, request);
    wanted.options = request.options;
    wanted.options.transferable |= !request.token.empty();
    wanted.default_ttl = request.default_ttl;
    wanted.began = wanted.decided_at = now;
    const auto limit = request.options.wait.limit();
    wanted.wait_until = request.attaches || limit.count() == 0 ? now : later(now, limit);
    if (!refused && !wanted.fit_ttl(masters_.ttl_limit(), rules_.drift)) {
        refused = errc::invalid_argument;
        sender_.introduce_all_again(now);
    }
    if (refused) {
        wanted.outcome = refused;
        finish(wanted, now);
    } else if (request.attaches) {
        wanted.stage = operation::phase::attempting;
        act(wanted, attempts_.attach(wanted, request.token, now), now);
    } else if (request.options.wait == wait_for::none()) {
        const time_point others_until = waiting_.yields_until(wanted.form, wanted.key);
        if (now < others_until && request.token.empty()) {
            wanted.stage = operation::phase::paused;
            timers_.set(wanted.wake, others_until);
        } else {
            try_it(wanted, now, request.token);
        }
    } else {
        act(wanted, waiting_.join(wanted, now), now);
    }
    return name;
}

void acquires::name_keys(operation& wanted, const acquire_request& request) const {
    wanted.form = request.form;
    if (request.form == lock_form::all) {
        assign_keys_of(wanted.key, rules_.key_prefix, request.resources);
        return;
    }
    wanted.slots = request.slots;
    wanted.wants = request.wants;
    if (wanted.slots != 0) {
        wanted.search = std::make_unique<slot_search>(wanted.slots, wanted.wants);
        assign_pool_key(wanted.key, rules_.key_prefix, request.resource);
    } else {
        assign_lock_key(wanted.key, rules_.key_prefix, request.resource);
    }
}

void acquires::try_it(operation& wanted, time_point now, std::string_view token) {
    if (wanted.search && !wanted.search->has_next()) {
        start_scan(wanted, now);
    } else {
        act(wanted, attempts_.begin(wanted, token, now), now);
    }
}

void acquires::answered(claim& attempt, const arrival& at, const answer& got) {
    const auto next = attempts_.answered(attempt, at, got);
    if (next.next == attempt::decision::kind::open) {
        return;
    }
    if (operation* const wanted = operations_.find(attempt.asking().operation)) {
        act(*wanted, attempts_.follow(*wanted, attempt, next, at.now), at.now);
    }
}

void acquires::count_for_newer(const claim& ended, const arrival& at, const answer& got) {
    const wait_queue* const mine = waiting_.find(ended);
    const operation* const newer = mine != nullptr ? waiting::front_of(*mine) : nullptr;
    claim* const attempt = newer != nullptr ? claims_.find(newer->attempt) : nullptr;
    if (attempt != nullptr && attempt->is_asking()) {
        sent_command command = at.command;
        command.round = attempt->handoffs;
        answered(*attempt, {at.master, command, at.sent, at.now}, got);
    }
}

void acquires::break_off(claim& attempt, time_point now) {
    if (operation* const wanted = operations_.find(attempt.asking().operation)) {
        fail(*wanted, attempt, errc::no_quorum, now);
    }
}

void acquires::act(operation& wanted, const attempt::decision& what, time_point now) {
    if (what.next == attempt::decision::kind::open) {
        return;
    }
    claim& attempt = *claims_.find(wanted.attempt);
    if (what.next == attempt::decision::kind::won) {
        win(wanted, attempt, now);
    } else {
        fail(wanted, attempt, what.why, now);
    }
}

void acquires::act(operation& wanted, waiting::step next, time_point now) {
    switch (next) {
    case waiting::step::ask:
        try_it(wanted, now);
        break;
    case waiting::step::wait:
        break;
    case waiting::step::time_out:
        time_out(wanted, now);
        break;
    }
}

void acquires::replied(const arrival& at, const reply* got) {
    if (at.command.kind == command_kind::lease_left) {
        waiting_.lease_left(operations_.find(at.command.subject), at, got);
    } else if (at.command.kind == command_kind::scan_slots) {
        if (slot_scan* const found = scans_.answered(at, got)) {
            slots_found(*found, at.now);
        }
    } else if (const auto [front, next] = waiting_.turn_answered(at, got); front != nullptr) {
        act(*front, next, at.now);
    }
}

void acquires::time_out(operation& wanted, time_point now) {
    waiting_.time_out(wanted, now);
    wanted.decided_at = now;
    finish(wanted, now);
}

// An unsuccessful acquire completes when its rollback is on the wire: a caller that goes away after
// that leaves no key. A socket that takes no bytes holds it up for `master_timeout` at most.
void acquires::finish(operation& wanted, time_point now) {
    end_scan(wanted);
    drop_intent(wanted, now);
    waiting_.leave(wanted, now);
    wanted.stage = operation::phase::finishing;
    timers_.set(wanted.wake, later(now, rules_.master_timeout));
    finishing_.push_back(wanted.self);
    finish_if_on_wire(wanted, now);
}

void acquires::finish_if_on_wire(operation& wanted, time_point now) {
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

// When a writer stops waiting, its intent is removed together with the rollback of its last
// attempt. Between two attempts there is no rollback, so one is made for the intent alone. On a
// master that is down the intent expires.
void acquires::drop_intent(operation& wanted, time_point now) {
    if (wanted.intent == 0) {
        return;
    }
    claim& last = attempts_.create(wanted, {}, now);
    wanted.intent = 0;
    wanted.attempt = last.self;
    last.drops_intent = true;
    last.expires_at = later(now, rules_.intent_lease());
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        last.votes.of[i].asked = masters_[i].link->up();
    }
    removals_.begin(last, now);
}

void acquires::end_finished(time_point now) {
    const std::vector<handle> candidates = finishing_;
    for (const handle name : candidates) {
        if (operation* const wanted = operations_.find(name)) {
            finish_if_on_wire(*wanted, now);
        }
    }
}

void acquires::due(std::uint32_t index, time_point now) {
    operation* const found = operations_.find(index);
    if (found == nullptr) {
        return;
    }
    operation& wanted = *found;
    switch (wanted.stage) {
    case operation::phase::finishing:
        finish_if_on_wire(wanted, now);
        return;
    case operation::phase::queued:
        time_out(wanted, now);
        return;
    case operation::phase::turning: // no reply: go on without a turn, which only orders attempts
        now < wanted.wait_until ? try_it(wanted, now) : time_out(wanted, now);
        return;
    case operation::phase::paused:
        wanted.queue == nullptr ? try_it(wanted, now) : act(wanted, waiting_.due(wanted, now), now);
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
    const attempt::decision next = attempts_.due(wanted, attempt, now);
    // The wait ends during an attempt. An earlier complete result is more useful than incomplete
    // votes.
    if (next.next == attempt::decision::kind::lost && next.why == errc::wait_timed_out
        && wanted.outcome) {
        attempt.announced = attempt.votes.may_be_set();
        attempt.drops_intent = std::exchange(wanted.intent, 0) != 0;
        removals_.begin(attempt, now);
        finish(wanted, now);
    } else {
        act(wanted, next, now);
    }
}

bool acquires::has_sent_nothing(handle name) const noexcept {
    const operation* const wanted = operations_.find(name);
    return wanted != nullptr && wanted->stage == operation::phase::queued && wanted->attempts == 0;
}

void acquires::cancel(handle name, time_point now) {
    operation* const wanted = operations_.find(name);
    if (wanted == nullptr || wanted->stage == operation::phase::finishing) {
        return;
    }
    if (wanted->stage == operation::phase::attempting) {
        fail(*wanted, *claims_.find(wanted->attempt), std::nullopt, now);
    } else {
        wanted->outcome.reset();
        finish(*wanted, now);
    }
}

void acquires::close(time_point now) {
    closing_ = true;
    operations_.for_each([&](operation& wanted) {
        if (wanted.stage == operation::phase::finishing) {
            return;
        }
        if (wanted.stage == operation::phase::attempting) {
            fail(wanted, *claims_.find(wanted.attempt), errc::closed, now);
        } else {
            wanted.outcome = errc::closed;
            finish(wanted, now);
        }
    });
}

void acquires::notified(
    std::string_view lock_key, std::size_t master, std::string_view release, time_point now) {
    for (wait_queue* const one : waiting_.queues().waiting_for(lock_key)) {
        if (one->empty()) {
            continue;
        }
        const bool acts = waiting_.notified(*one, master, release, now);
        if (wrong::notification_is_grant && acts) {
            operation& next = *waiting::front_of(*one);
            claim& given = attempts_.create(next, {}, now);
            next.attempt = given.self;
            for (ballot& theirs : given.votes.of) {
                theirs.asked = true;
                theirs.confirm(guaranteed_until(now, given.ttl, rules_.drift));
            }
            win(next, given, now);
        }
    }
}

template <typename F>
void acquires::for_each_front(F f) {
    operations_.for_each([&](operation& wanted) {
        if (wanted.queue != nullptr && wanted.queue->front() == &wanted) {
            f(wanted);
        }
    });
}

void acquires::poll_soon(time_point now) {
    for_each_front([&](operation& front) { waiting_.poll_soon(front, now); });
}

void acquires::outage_over(time_point now) {
    outage_reported_ = false;
    for_each_front([&](operation& front) { waiting_.outage_over(front, now); });
}

} // namespace redlock::core
