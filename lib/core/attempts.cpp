// Attempts of acquires and handoffs: sends their commands, and executes their decisions
// (attempt.hpp).

#include "decisions.hpp"
#include "engine.hpp"
#include "form_command.hpp"
#include "hex.hpp"
#include "keys.hpp"
#include "lock_keys.hpp"

namespace redlock::core {

claim& engine::new_claim(operation& wanted, time_point now, std::string_view token) {
    claim& attempt = claims_.create();
    attempt.wake.owner = timer_owner::claim;
    attempt.wake.subject = attempt.self;
    attempt.operation = wanted.self;
    if (wanted.search) {
        name_slots(attempt, wanted);
    } else {
        attempt.form = wanted.form;
        attempt.key = wanted.key;
    }
    attempt.intent = wanted.intent;
    attempt.fencing = wanted.options.fencing;
    std::array<unsigned char, 20> secret{};
    host_.random(secret);
    write_hex(secret, attempt.token);
    if (wrong::token_reused && claims_.find(wanted.attempt) != nullptr) {
        attempt.token = claims_.find(wanted.attempt)->token;
    }
    token.copy(attempt.token.data(), attempt.token.size()); // one of the caller's own
    attempt.ttl = attempt.ttl_max = attempt.asked_ttl = wanted.options.ttl;
    attempt.asked_at = now; // before the first byte of it leaves
    attempt.expires_at = now + attempt.ttl + rules_.drift.of(attempt.ttl);
    attempt.ask({attempt::origin::acquire, masters_.size(), masters_.needed()});
    attempt.votes.reset(masters_.size());
    return attempt;
}

void engine::start_attempt(operation& wanted, time_point now, std::string_view token) {
    if (wanted.search && !wanted.search->has_next()) {
        start_scan(wanted, now);
        return;
    }
    name_intent(wanted);
    claim& attempt = new_claim(wanted, now, token);
    wanted.stage = operation::phase::attempting;
    wanted.attempt = attempt.self;
    ++wanted.attempts;
    ++counters_.attempts;

    refuse_absent(attempt);
    wait_queue* const mine = wanted.queue;
    if (attempt.asking().count().decide() != verdict::open) {
        if (mine != nullptr) {
            mine->asked_all(now);
        }
        fail(wanted, attempt, errc::no_quorum, now); // nothing was sent
        return;
    }
    give_up_in_time(wanted, attempt, now);
    attempt.vote_by = wanted.wake.due;
    if (rules_.guarded()) { // the masters may execute the command until then
        attempt.expires_at = wanted.wake.due + attempt.ttl + rules_.drift.of(attempt.ttl);
    }
    const bool asks_one = wanted.ask_arbiter && asks_arbiter(wanted.form)
                          && (mine == nullptr || !mine->all_due({rules_, now}));
    ask_masters(attempt, asks_one ? masters_.arbiter_of(attempt.key) : nobody, now);
    if (!attempt.asking().asked_all()) {
        // The arbiter only saves commands: if it is slow, go on without it.
        timers_.set(wanted.wake, std::min(wanted.wake.due, later(now, 4 * masters_.retry_floor())));
    }
}

// Sets the votes of the masters to which nothing can be sent.
void engine::refuse_absent(claim& attempt) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        const member& one = masters_[i];
        const ballot& mine = attempt.votes.of[i];
        if (mine.said != vote::pending || mine.asked || (one.admitted && !one.link->overloaded())) {
            continue;
        }
        if (one.admitted) {
            attempt.votes.note(i, "too many commands in flight");
        }
        attempt.asking().refused(attempt, i, one.admitted ? vote::unreachable : one.otherwise);
        ++masters_.counters(i).acquire_votes[mine.said];
    }
}

// Sends the acquire to the arbiter or, if there is none, to all masters that have not been asked.
void engine::ask_masters(claim& attempt, std::size_t arbiter, time_point now) {
    const master_set to = attempt.asking().ask(attempt, arbiter);
    const operation* const wanted = operations_.find(attempt.operation);
    wait_queue* const mine = wanted != nullptr ? wanted->queue : nullptr;
    if (mine != nullptr && attempt.asking().asked_all()) {
        mine->asked_all(now);
    }
    sender_.acquire(attempt, to, now);
}

attempt::limits engine::limits_of(const operation& wanted) noexcept {
    return {
        wanted.options.min_validity,
        wanted.wait_until > wanted.began ? wanted.wait_until : forever};
}

void engine::give_up_in_time(operation& wanted, const claim& attempt, time_point now) {
    timers_.set(wanted.wake, attempt::give_up_at(attempt, limits_of(wanted), now, rules_));
}

void engine::acquire_answered(
    claim& attempt, std::size_t master, std::uint16_t handoffs, const answer& got, time_point now) {
    if (!attempt.asking().awaits(attempt, master, handoffs)) {
        return; // it was counted as timed out, or belongs to the previous owner
    }
    if (wrong::t0_after_sends && attempt.asking().count().granted() == 0) {
        attempt.asked_at = now;
    }
    const vote what = attempt::note(attempt, master, got, rules_.drift);
    ++masters_.counters(master).acquire_votes[what];
    if (wrong::set_then_pexpire && what == vote::granted) {
        std::string bytes;
        append_extend(bytes, command_variant::eval, attempt.key, attempt.token_text(), attempt.ttl);
        sender_.send(master, bytes, {.kind = command_kind::ping, .subject = {}}, now);
    }
    follow(attempt, attempt.asking().acquired(attempt, master, what), now);
}

void engine::raise_answered(
    claim& attempt, std::size_t master, std::uint16_t handoffs, const answer& got, time_point now) {
    if (got.said == vote::owned_by_other) {
        attempt.removal_seen |= attempt.votes.of[master].remove(now);
    }
    const std::uint16_t counts = wrong::any_raise_counts ? attempt.handoffs : handoffs;
    if (attempt.asking().awaits(attempt, master, counts)) {
        follow(attempt, attempt.asking().raised(attempt, master, got), now);
    }
}

// A local handoff: a new attempt on the same claim.
void engine::accept_handoff(operation& next, claim& lease, time_point deadline, time_point now) {
    next.stage = operation::phase::attempting;
    ++next.attempts;
    lease.extending.active = false;
    lease.operation = next.self;
    timers_.cancel(lease.wake);
    timers_.set(
        next.wake, std::min({later(now, rules_.master_timeout), deadline, next.wait_until}));
    ++lease.handoffs;
    follow(lease, lease.asking().level(lease, masters_.up(), now, rules_), now);
}

// Does what an attempt has decided.
void engine::follow(claim& attempt, const attempt::decision& next, time_point now) {
    using kind = attempt::decision::kind;
    operation* const wanted =
        next.next == kind::open ? nullptr : operations_.find(attempt.operation);
    if (wanted == nullptr) {
        return;
    }
    class attempt& asking = attempt.asking();
    switch (next.next) {
    case kind::open:
        break;
    case kind::others:
        timers_.set(wanted->wake, attempt.vote_by);
        refuse_absent(attempt);
        ask_masters(attempt, nobody, now);
        follow(attempt, asking.decide(attempt), now);
        break;
    case kind::level:
        follow(attempt, asking.level(attempt, masters_.up(), now, rules_), now);
        break;
    case kind::raise:
        raise(*wanted, attempt, next, now);
        break;
    case kind::heal: {
        const master_set to = rules_.guarded() ? asking.heal(attempt, masters_.up()) : 0;
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if ((to & set_of(i)) != 0) {
                sender_.heal(attempt, i, attempt.extending.round, now);
            }
        }
        to == 0 ? fail(*wanted, attempt, errc::no_quorum, now) : void();
        break;
    }
    case kind::over: {
        const master_set silent = asking.close(attempt);
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            masters_.counters(i).acquire_votes[vote::timed_out] +=
                (silent & set_of(i)) != 0 ? 1U : 0U;
        }
        follow(attempt, asking.decide(attempt), now);
        break;
    }
    case kind::won:
        win(*wanted, attempt, now);
        break;
    case kind::lost:
        fail(*wanted, attempt, next.why, now);
        break;
    }
}

void engine::raise(
    operation& wanted, claim& attempt, const attempt::decision& what, time_point now) {
    const class attempt& asking = attempt.asking();
    const bool hands_off = asking.from() == attempt::origin::hand_off;
    const bool levels = what.anew && asking.from() == attempt::origin::acquire;
    if (what.anew && !hands_off) {
        counters_.raised += asking.token() != 0 ? 1U : 0U;
        give_up_in_time(wanted, attempt, now);
    }
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((what.masters & set_of(i)) == 0) {
            continue;
        }
        if (wrong::raise_accepts_larger && levels) {
            outbox::command again = sender_.command_for(attempt, command_kind::acquire, set_of(i));
            again.item = {}; // its reply is ignored
            sender_.calls().add(again, true, now);
            sender_.flush(); // before the raise
        }
        sender_.raise(attempt, i, now);
    }
    const bool open = asking.count().decide() == verdict::open;
    if (wrong::raise_not_awaited && levels && open) {
        win(wanted, attempt, now);
        return;
    }
    if (wrong::handoff_raise_not_awaited && hands_off && what.anew && open) {
        win(wanted, attempt, now);
        return;
    }
    follow(attempt, asking.decide(attempt), now);
}

void engine::win(operation& wanted, claim& attempt, time_point now) {
    const acquire_options& options = wanted.options;
    if (attempt.given_at == never) {
        attempt.given_at = attempt.asked_at;
    }
    const time_point hold_limit =
        options.max_hold.count() == 0 ? forever : later(attempt.given_at, options.max_hold);
    const time_point lasts_until = std::min(
        wrong::elapsed_not_subtracted ? guaranteed_until(now, attempt.ttl, rules_.drift)
        : wrong::handoff_counts_anew ? guaranteed_until(attempt.given_at, attempt.ttl, rules_.drift)
                                     : attempt.votes.lasts_until(masters_.needed()),
        hold_limit);
    const auto needed = wrong::handoff_past_deadline && attempt.given_at != attempt.asked_at
                            ? -attempt.ttl
                            : std::max(options.min_validity, options.stop_margin);
    if (now + needed >= lasts_until) { // `lasts_until` may be `never`
        fail(wanted, attempt, errc::validity_exhausted, now);
        return;
    }
    // An attempt that asked the arbiter first took two round trips. Under contention there are no
    // others to measure.
    masters_.measured((now - attempt.given_at) / (wanted.ask_arbiter ? 2 : 1));

    attempt.announced = true;
    attempt.drops_intent = attempt.intent != 0; // a master that did not grant still has the intent
    attempt.operation = {};
    if (attempt.asking().token() != 0) { // 0: without fencing
        attempt.fencing_token = attempt.asking().token();
    }
    leases_.begin(attempt, options, lasts_until, hold_limit, now);

    ++counters_.acquired;
    counters_.acquire_wait.add(now - wanted.began);
    wanted.decided_at = now;
    timers_.cancel(wanted.wake);
    if (wait_queue* const waiters = wanted.queue) {
        waiters->holder = waiters->pool ? handle() : attempt.self;
        leave_queue(*waiters, now);
        leave(wanted, now);
        if (attempt.is_slot() && !waiters->empty()) {
            look_on(*waiters, wanted, attempt, now);
        }
    }
    host_.acquired(wanted, attempt);
    operations_.destroy(wanted);
}

// Rolls the attempt back and goes on with the operation. Without an error: it was cancelled.
void engine::fail(operation& wanted, claim& attempt, std::optional<errc> why, time_point now) {
    if (attempt.asking().attaches()) {
        end_attach(wanted, attempt, why, now);
        return;
    }
    wanted.outcome = why;
    wanted.decided_at = now;
    // For diagnostics, an earlier attempt that found the lock held is kept rather than one refusal
    // of the arbiter.
    const bool says_less = !attempt.asking().asked_all() && wanted.last.count(vote::held) > 0;
    if (!says_less) {
        wanted.last = attempt.votes;
    }
    if (host_.logs(log_level::debug)) {
        host_.log(
            log_level::debug,
            shown(wanted.form, wanted.key, rules_.key_prefix) + ": attempt "
                + std::to_string(wanted.attempts)
                + " rolled back: " + std::to_string(attempt.asking().count().granted())
                + " granted, " + std::to_string(attempt.asking().count().held()) + " held");
    }
    pause_or_finish(wanted, attempt, now);
}

} // namespace redlock::core
