// What becomes of an attempt: a lease, another attempt, or the end of the acquire. And of a
// released lease: a local handoff, without removing its keys.

#include "acquires.hpp"
#include "core/base/decisions.hpp"
#include "core/bytes/keys.hpp"
#include "masters_report.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace redlock::core {

namespace {

// Connections are made in less; after two seconds without a word a program seems to hang.
constexpr std::chrono::seconds outage_report_after{1};

} // namespace

void acquires::win(operation& wanted, claim& attempt, time_point now) {
    const acquire_options& options = wanted.options;
    const time_point began = attempt.asking().began(attempt);
    const time_point hold_limit =
        options.max_hold.count() == 0 ? forever : later(began, options.max_hold);
    const time_point lasts_until = std::min(
        wrong::elapsed_not_subtracted ? guaranteed_until(now, attempt.ttl, rules_.drift)
        : wrong::handoff_counts_anew  ? guaranteed_until(began, attempt.ttl, rules_.drift)
                                      : attempt.votes.lasts_until(masters_.majority()),
        hold_limit);
    const auto needed = wrong::handoff_past_deadline && began != attempt.asked_at
                            ? -wanted.options.ttl
                            : std::max(options.min_validity, options.stop_margin);
    if (now + needed >= lasts_until) { // `lasts_until` may be `never`
        fail(wanted, attempt, errc::validity_exhausted, now);
        return;
    }
    // An attempt that asked the arbiter first took two round trips. Under contention there are no
    // others to measure.
    masters_.measured((now - began) / (wanted.ask_arbiter ? 2 : 1));

    attempt.announced = true;
    attempt.drops_intent =
        attempt.intent() != 0;           // a master that did not grant still has the intent
    if (attempt.asking().token() != 0) { // 0: without fencing
        attempt.fencing_token = attempt.asking().token();
    }
    leases_.begin(attempt, options, lasts_until, hold_limit, now);

    ++counters_.acquired;
    counters_.acquire_wait.add(now - wanted.began);
    wanted.decided_at = now;
    timers_.cancel(wanted.wake);
    if (wait_queue* const waiters = wanted.queue) {
        waiting_.won(wanted, attempt, now);
        if (attempt.is_slot() && !waiters->empty()) {
            look_on(*waiters, wanted, attempt, now);
        }
    }
    host_.acquired(wanted, attempt);
    operations_.destroy(wanted);
}

// Rolls the attempt back and goes on with the operation. Without an error: it was cancelled.
void acquires::fail(operation& wanted, claim& attempt, std::optional<errc> why, time_point now) {
    if (attempt.asking().attaches()) {
        fail_attach(wanted, attempt, why, now);
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

// A failed attach removes nothing: the lock may still have an owner who acts, and keys on less than
// half of the masters exclude nobody.
void acquires::fail_attach(
    operation& wanted, claim& attempt, std::optional<errc> why, time_point now) {
    wanted.outcome = why;
    wanted.decided_at = now;
    wanted.last = attempt.votes;
    if (host_.logs(log_level::debug)) {
        host_.log(
            log_level::debug,
            wanted.key + ": not attached: " + std::to_string(attempt.votes.count(vote::granted))
                + " of " + std::to_string(masters_.size()) + " have it");
    }
    if (wrong::failed_attach_removes && why == errc::lost) {
        removals_.begin(attempt, now);
    } else {
        claims_.destroy(attempt);
    }
    finish(wanted, now);
}

// After an attempt: rolls it back, then pauses or ends the acquire.
void acquires::pause_or_finish(operation& wanted, claim& attempt, time_point now) {
    if (wanted.search && try_next_slot(wanted, attempt, now)) {
        return;
    }
    const bool again = wanted.outcome == errc::contended || wanted.outcome == errc::no_quorum
                       || wanted.outcome == errc::validity_exhausted;
    const bool outage = wanted.outcome == errc::no_quorum;
    // A wait that cannot outlast the quarantine would end without a lock and without a reason.
    const bool in_vain = outage && masters_.quarantined_until(now) > wanted.wait_until;
    const bool waits = again && !closing_ && now < wanted.wait_until && !in_vain;
    if (waits && outage && now - wanted.began >= outage_report_after
        && !std::exchange(outage_reported_, true)) {
        master_log(*this).waits_for_quorum(now);
    }
    const time_point due = waits ? waiting_.failed(wanted, attempt, now) : forever;
    // Publish this rollback only if no later one will: the acquire ends, or its next attempt may be
    // on another slot. Waiters may have been refused because of its keys.
    const bool leaves = !waits || attempt.is_slot();
    attempt.announced = attempt.announced || (leaves && attempt.votes.may_be_set());
    if (!waits) {
        attempt.drops_intent = std::exchange(wanted.intent, 0) != 0;
    }
    removals_.begin(attempt, now);
    if (waits) {
        waiting_.pause(wanted, due, now);
    } else {
        finish(wanted, now);
    }
}

bool acquires::hand_off(claim& lease, time_point now) {
    operation* const chosen = closing_ ? nullptr : waiting_.next_owner(lease, now);
    if (chosen == nullptr) {
        return false;
    }
    operation& next = *chosen;
    if (next.stage == operation::phase::attempting) {
        claim& attempt = *claims_.find(next.attempt);
        // The attempt may have the key of another slot, whose removal must be published.
        attempt.announced = attempt.is_slot() && attempt.votes.may_be_set();
        removals_.begin(attempt, now);
    }
    end_scan(next);
    ++counters_.local_handoffs;
    removals_.handed_off(lease);
    lease.ttl = shortened(next.options.ttl);
    lease.ttl_max = std::max(lease.ttl_max, lease.ttl);
    const time_point deadline = lease.held().deadline();
    // From now on the claim is an attempt of the next waiter. No caller waits for its removal.
    lease.ask(attempt::accept(masters_.size(), masters_.majority(), now));
    lease.asking().operation = next.self;
    next.attempt = lease.self;
    if (!wrong::handoff_without_raise && lease.fencing) {
        act(next, attempts_.accept(next, lease, deadline, now), now);
    } else {
        win(next, lease, now);
    }
    return true;
}

} // namespace redlock::core
