// The waiters of this process: executes what their queues decide (wait_queue.hpp), with a timer for
// each front.
//
// A front makes an attempt after a release notification, or when the lease that the votes reported
// must have ended. Waiters that are notified of the same release first ask one and the same master,
// the arbiter. Its reply costs the losers one command; only the winner sends commands to the other
// masters.

#include "core/base/decisions.hpp"
#include "core/base/hash.hpp"
#include "core/bytes/keys.hpp"
#include "engine.hpp"

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
        .majority = masters_.majority(),
        .random = random_};
}

// The lease of this process that a queue waits for, or null. A lost lease counts until its holder
// has released it or must have stopped.
const claim* engine::held_here(const wait_queue& waiters) {
    const claim* const holder = claims_.find(waiters.holder);
    return holder != nullptr && holder->acts() ? holder : nullptr;
}

void engine::wake(const wait_queue& waiters, time_point due) {
    if (due != forever) {
        waiters.front()->hurried = true;
        timers_.set(waiters.front()->wake, due);
    }
}

next_step engine::join(acquire_call& wanted, time_point now) {
    wait_queue* const found = queues_.find(wanted.form, wanted.key);
    wait_queue& mine = found != nullptr ? *found : queues_.create(wanted.form, wanted.key);
    mine.pool = wanted.search != nullptr;
    mine.lingers = false;
    timers_.cancel(mine.wake); // it may linger again before that time has come
    const bool is_front = mine.join(wanted);
    if (rules_.contention_warning != 0 && mine.length() == rules_.contention_warning + 1) {
        host_.contention(shown(mine.form, mine.key, rules_.key_prefix), mine.length());
    }
    if (!is_front) {
        std::string().swap(wanted.key); // there may be very many
        timers_.set(wanted.wake, wanted.wait_until);
    } else if (!take_ticket(wanted, now)) {
        const claim* const holder = held_here(mine);
        if (holder == nullptr) {
            return ask_or_yield(wanted, now);
        }
        pause(wanted, holder->acts_until(), now);
    }
    return next_step::wait;
}

// A process that has just released a lock for which others wait pauses first. The notification of
// another release ends the pause. The one of its own release may arrive during the pause as well.
next_step engine::ask_or_yield(acquire_call& front, time_point now) {
    wait_queue& mine = *front.queue;
    const time_point until = yields_until(mine.form, mine.key);
    if (now >= until) {
        return next_step::ask;
    }
    front.stage = acquire_call::phase::paused; // no attempt of it is under way
    const audience::note& last = *wire_.listeners().waited(hash_of_key(mine.key));
    mine.released(last.release, never, until, view_of(mine, now));
    mine.others_first = last.others;
    mine.crowded = mine.others_first > 1;
    mine.polls.asked_all(now);
    watch(mine, now);
    front.ask_arbiter = true;
    pause(front, until, now);
    return next_step::wait;
}

time_point engine::yields_until(lock_form form, std::string_view key) noexcept {
    const bool may = !wrong::releaser_asks_at_once && form == lock_form::exclusive;
    const audience::note* const last =
        may && wire_.listeners().yields() ? wire_.listeners().waited(hash_of_key(key)) : nullptr;
    return last != nullptr ? last->until : never;
}

void engine::leave(acquire_call& wanted, time_point now) {
    wait_queue* const mine = wanted.queue;
    if (mine == nullptr) {
        return;
    }
    const auto name = [&](acquire_call& one) {
        if (one.key.empty()) {
            one.key = mine->key;
        }
    };
    name(wanted);
    const bool was_front = mine->leave(wanted);
    if (mine->empty()) {
        leave_queue(*mine, now);
        const claim* const won = claims_.find(wanted.attempt);
        if (mine->watched && won != nullptr && won->is_held() && mine->handed_since == never
            && yields_until(mine->form, mine->key) != never) {
            mine->reset();
            mine->lingers = true;
        } else if (mine->watched) {
            queues_.unwatch(*mine, now);
        }
        end_if_unused(*mine);
    } else if (!wrong::leaver_blocks_its_queue && was_front) {
        acquire_call& next = *mine->front();
        name(next);
        if (!next.options.fifo) {
            leave_queue(*mine, now);
        }
        pause(next, mine->promoted(view_of(*mine, now)), now);
    }
}

// An empty queue stays while a lease is held that it handed off: the next waiter waits for that
// lease, and the series of local handoffs continues. It also stays where processes take turns: if
// this one asks again as soon as it has released the lock, it must not miss the next release.
void engine::end_if_unused(wait_queue& waiters) {
    if (waiters.empty() && !waiters.lingers
        && (waiters.handed_since == never || held_here(waiters) == nullptr)) {
        queues_.destroy(waiters);
    }
}

next_step engine::pause_over(acquire_call& front, time_point now) {
    if (take_ticket(front, now)) {
        return next_step::wait;
    }
    return front.queue->due(view_of(*front.queue, now));
}

void engine::pause(acquire_call& front, time_point until, time_point now) {
    if (front.search) {
        front.search->stop();
    }
    wait_queue& mine = *front.queue;
    timers_.set(front.wake, mine.pause(until, view_of(mine, now)));
}

// --- After an attempt ----------------------------------------------------------------------------

time_point engine::retry_at(acquire_call& front, const claim& attempt, time_point now) {
    wait_queue& mine = *front.queue;
    if (front.outcome != errc::contended) {
        leave_queue(mine, now); // so that other processes do not wait for it
    }
    // The arbiter, if that refused.
    std::size_t refuser = nobody;
    for (const std::size_t i : each_of(attempt.votes.with(vote::held) & masters_.up())) {
        if (refuser == nobody || i == masters_.arbiter_of(attempt.key())) {
            refuser = i;
        }
    }
    if (front.outcome == errc::contended) {
        ask_holder(command_kind::get, front, refuser, now);
    }
    const bool full = attempt.asked_all();
    const std::optional<time_point> due =
        mine.failed(full, attempt.granted(), attempt.votes, view_of(mine, now));
    if (due) {
        if (front.splits > 0) {
            watch(mine, now); // a process that releases the lock yields to subscribers only
        }
        return *due;
    }
    const bool missed = watch(mine, now);
    if (!missed && attempt.sets_natively()) {
        ask_holder(command_kind::pttl, front, refuser, now);
    }
    return mine.refused(missed, attempt.votes, view_of(mine, now));
}

// Returns true if a notification may have been missed.
bool engine::watch(wait_queue& waiters, time_point now) {
    return rules_.pushes && !waiters.watched && queues_.watch(waiters, now);
}

// The reply to a script contains the remaining lease, and that to a SET does not. Neither tells
// whether readers hold the lock.
void engine::ask_holder(
    command_kind what, const acquire_call& front, std::size_t who, time_point now) {
    if (who == nobody || front.queue->form != lock_form::exclusive || front.queue->pool) {
        return;
    }
    if (what == command_kind::get && (!rules_.guarded() || front.intent != 0)) {
        return;
    }
    wire_.send(
        who,
        {what == command_kind::get ? "GET" : "PTTL", front.key},
        {.kind = what, .to = this, .subject = front.self},
        now);
}

void engine::holder_told(acquire_call* wanted, const arrival& at, const reply* answered) {
    if (answered == nullptr || wanted == nullptr || wanted->queue == nullptr
        || wanted->queue->front() != wanted || wanted->stage != acquire_call::phase::paused) {
        return;
    }
    if (at.command.kind == command_kind::get) {
        if (answered->text == held_by_readers && wanted->intent == 0) {
            wanted->intent = drawn();
            wake(*wanted->queue, at.now); // to announce it
        }
        return;
    }
    const auto left = read_lease_left(*answered);
    const auto due =
        left ? wanted->queue->told_left(at.master, *left, view_of(*wanted->queue, at.now))
             : std::nullopt;
    if (due && !wanted->hurried) { // a release may be newer than this reply
        pause(*wanted, *due, at.now);
    }
}

// --- Masters -------------------------------------------------------------------------------------

// `release` was announced by a master; if it is empty, a release may have been missed.
void engine::release_notified(
    std::size_t master, std::string_view channel, std::string_view release, time_point now) {
    const std::string_view lock_key = lock_of_channel(channel);
    if (queues_.has_listener(lock_key)) {
        host_.heard(lock_key);
    }
    for (wait_queue* const one : queues_.waiting_for(lock_key)) {
        if (one->empty()) {
            continue;
        }
        wait_queue& mine = *one;
        acquire_call& front = *mine.front();
        const claim* const attempt = claims_.find(front.attempt);
        const bool granted = attempt != nullptr && attempt->said(master) == vote::granted;
        const time_point due = mine.notified(master, release, granted, view_of(mine, now));
        wake(mine, due);
        if (wrong::notification_is_grant && due != forever && mine.acts()) {
            claim& given = make_claim(front, {}, now);
            front.attempt = given.self;
            given.believe_granted(at(now));
            win(front, given, now);
        }
    }
}

// A caller waits for releases without an acquire.
void engine::listen(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    if (queues_.listen(key) && rules_.pushes && running()) {
        queues_.subscribe(key, now);
    }
}

void engine::unlisten(std::string_view resource, time_point now) {
    std::string key;
    assign_lock_key(key, rules_.key_prefix, resource);
    queues_.unlisten(key, now);
}

} // namespace redlock::core
