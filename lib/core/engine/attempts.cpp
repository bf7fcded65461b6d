// An attempt from its first command to its result: a lease, another attempt, or the end of the
// acquire.

#include "core/base/decisions.hpp"
#include "core/base/hash.hpp"
#include "core/base/histogram_access.hpp"
#include "core/bytes/keys.hpp"
#include "core/masters/admission.hpp"
#include "engine.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace redlock::core {

namespace {

// Connections are made in less; after two seconds without a word a program seems to hang.
constexpr std::chrono::seconds outage_report_after{1};

} // namespace

// `token`: the caller's own; empty: a fresh one.
claim& engine::make_claim(acquire_call& wanted, std::string_view token, time_point now) {
    claim& made = claims_.create();
    lock_form form = wanted.intent != 0 ? lock_form::announced : wanted.form;
    std::string slots;
    if (wanted.search) { // one slot, or several as one lock
        std::vector<std::uint32_t> numbers;
        wanted.search->next(numbers);
        form = assign_slot_keys(slots, wanted.key, numbers);
        made.name_slots(wanted.key, std::move(numbers));
    }
    if (wanted.intent != 0) {
        made.name_intent(wanted.intent);
    }
    std::array<unsigned char, 20> secret{};
    host_.random(secret);
    std::array<char, owned_key::token_size> drawn{};
    write_hex(secret, drawn);
    if (token.empty()) {
        token = {drawn.data(), drawn.size()};
        if (wrong::token_reused && claims_.find(wanted.attempt) != nullptr) {
            token = claims_.find(wanted.attempt)->token_text();
        }
    }
    made.acquire(
        form, owned_key(wanted.search ? slots : wanted.key, token), wanted.terms(), at(now));
    made.wanted_by = wanted.self;
    return made;
}

void engine::begin(acquire_call& wanted, claim& attempt) {
    wanted.stage = acquire_call::phase::attempting;
    wanted.attempt = attempt.self;
    ++wanted.attempts;
    ++counters_.attempts;
    vote_for_unasked(attempt);
}

// The next attempt of an acquire.
void engine::try_it(acquire_call& wanted, time_point now, std::string_view token) {
    if (wanted.search && !wanted.search->has_next()) {
        start_scan(wanted, now);
        return;
    }
    const bool fits = wanted.fit_ttl(masters_.ttl_limit(), rules_.drift);
    claim& attempt = make_claim(wanted, token, now);
    begin(wanted, attempt);
    if (!fits) {
        look_at_limit(now);
        fail(wanted, attempt, errc::invalid_argument, now);
        return;
    }
    wait_queue* const mine = wanted.queue;
    if (!attempt.is_open()) {
        if (mine != nullptr) {
            mine->polls.asked_all(now);
        }
        fail(wanted, attempt, errc::no_quorum, now); // nothing was sent
        return;
    }
    timers_.set(wanted.wake, attempt.begin(at(now)));
    const bool asks_one = wanted.ask_arbiter && wanted.intent == 0
                          && (mine == nullptr || !mine->polls.all_due(rules_.poll_limit, now));
    ask(wanted, attempt, asks_one ? masters_.arbiter_of(attempt.key()) : nobody, now);
    if (!attempt.asked_all()) {
        // The arbiter only saves commands: if it is slow, go on without it.
        timers_.set(wanted.wake, std::min(wanted.wake.due, later(now, 4 * masters_.retry_floor())));
    }
}

// The lock exists if a majority has its token and extends it. A missing key is created only if half
// of the members have the lock: then no other owner can have a majority. It is what is left for
// certain of a majority after one change of the members, so such a lock is never taken for one that
// is gone.
void engine::attach(acquire_call& wanted, std::string_view token, time_point now) {
    claim& attempt = claims_.create();
    attempt.attach(owned_key(wanted.key, token), wanted.terms(), masters_.longest_ttl(), at(now));
    attempt.wanted_by = wanted.self;
    begin(wanted, attempt);
    const master_set to = attempt.ask();
    if (static_cast<std::size_t>(std::popcount(to)) < masters_.majority()) {
        fail(wanted, attempt, errc::no_quorum, now); // nothing was sent
        return;
    }
    timers_.set(wanted.wake, attempt.begin(at(now)));
    wire_.add(attempt, command_kind::extend, to, now);
}

// Sets the votes of the masters to which nothing can be sent.
void engine::vote_for_unasked(claim& attempt) {
    const auto counts =
        attempt.attaches() ? &master_metrics::extend_votes : &master_metrics::acquire_votes;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        const master& one = masters_[i];
        const bool takes = masters_.takes(i, attempt.ttl());
        if ((one.admitted && !one.link->overloaded() && takes) || !attempt.may_ask(i)) {
            continue;
        }
        if (one.admitted) {
            attempt.votes.note(
                i,
                takes ? "too many commands in flight"
                      : too_long_text(attempt.ttl(), one.link->ttl_limit()));
        }
        const vote instead = !one.admitted ? one.otherwise
                             : takes       ? vote::unreachable
                                           : vote::error;
        attempt.refused(i, instead);
        ++(masters_.counters(i).*counts)[instead];
    }
}

// Sends the acquire to the arbiter or, if there is none, to all masters that have not been asked.
void engine::ask(acquire_call& wanted, claim& attempt, std::size_t arbiter, time_point now) {
    const master_set to = attempt.ask(arbiter);
    if (wanted.queue != nullptr && attempt.asked_all()) {
        wanted.queue->polls.asked_all(now);
    }
    wire_.add(attempt, command_kind::acquire, to, now);
}

steps engine::ask_others(claim& attempt, time_point now) {
    acquire_call& wanted = *acquires_.find(attempt.wanted_by);
    timers_.set(wanted.wake, attempt.vote_by());
    vote_for_unasked(attempt);
    ask(wanted, attempt, nobody, now);
    return attempt.decide(at(now));
}

void engine::raise(claim& attempt, bool anew, time_point now) {
    if (anew) {
        counters_.raised += attempt.raises_to() != 0 ? 1U : 0U;
        timers_.set(acquires_.find(attempt.wanted_by)->wake, attempt.raised_by(at(now)));
    }
    for (const std::size_t i : each_of(attempt.to())) {
        if (wrong::raise_accepts_larger && anew && !attempt.attaches()) {
            wire_.repeat_unheard(attempt, i, now);
        }
        wire_.send_alone(attempt, command_kind::raise, i, now);
    }
}

// A mistake of the simulator: a grant for an ended claim counts for the newer attempt.
void engine::count_for_newer(const claim& ended, const told& from, const answer& got) {
    const wait_queue* const mine = queue_of(ended);
    const acquire_call* const newer = mine != nullptr ? mine->front() : nullptr;
    claim* const attempt = newer != nullptr ? claims_.find(newer->attempt) : nullptr;
    if (attempt != nullptr && attempt->is_asking()) {
        told newer = from;
        newer.epoch = attempt->epoch_of(from.kind);
        answered(*attempt, newer, got);
    }
}

// --- Results

void engine::win(acquire_call& wanted, claim& attempt, time_point now) {
    const acquire_options& options = wanted.options;
    const time_point began = attempt.began();
    const time_point hold_limit =
        options.max_hold.count() == 0 ? forever : later(began, options.max_hold);
    const time_point lasts_until = std::min(
        wrong::elapsed_not_subtracted ? guaranteed_until(now, attempt.ttl(), rules_.drift)
        : wrong::handoff_counts_anew  ? guaranteed_until(began, attempt.ttl(), rules_.drift)
                                      : attempt.lasts_until(at(now)),
        hold_limit);
    const auto needed = wrong::handoff_past_deadline && began != attempt.asked_at()
                            ? -wanted.options.ttl
                            : std::max(options.min_validity, stop_margin_of(options));
    if (now + needed >= lasts_until) { // `lasts_until` may be `never`
        fail(wanted, attempt, errc::validity_exhausted, now);
        return;
    }
    // An attempt that asked the arbiter first took two round trips. Under contention there are no
    // others to measure.
    masters_.measured((now - began) / (wanted.ask_arbiter ? 2 : 1));
    here_.retry_floor = masters_.retry_floor();
    attempt.hold(options, lasts_until, hold_limit, at(now));
    timers_.set(attempt.wake, attempt.next_due(now));

    ++counters_.acquired;
    detail::histogram_access::add(counters_.acquire_wait, now - wanted.began);
    wanted.decided_at = now;
    timers_.cancel(wanted.wake);
    if (wait_queue* const waiters = wanted.queue) {
        waiters->holder = waiters->pool ? handle<claim>() : attempt.self;
        leave_queue(*waiters, now); // its ticket is not needed any more
        leave(wanted, now);
        if (attempt.is_slot() && !waiters->empty()) {
            look_on(*waiters, wanted, attempt, now);
        }
    }
    host_.acquired(wanted, attempt);
    acquires_.destroy(wanted);
}

// Rolls the attempt back and goes on with the acquire. Without an error: it was cancelled. A failed
// attach removes nothing: the lock may still have an owner who acts, and keys on less than half of
// the masters exclude nobody.
void engine::fail(acquire_call& wanted, claim& attempt, std::optional<errc> why, time_point now) {
    wanted.outcome = why;
    // For diagnostics, an earlier attempt that found the lock held is kept rather than one refusal
    // of the arbiter.
    const bool says_less = !attempt.asked_all() && wanted.last.count(vote::held) > 0;
    if (!says_less) {
        wanted.last = attempt.votes;
    }
    const bool attaches = attempt.attaches();
    if (host_.logs(log_level::debug)) {
        host_.log(
            log_level::debug,
            attaches ? wanted.key
                           + ": not attached: " + std::to_string(attempt.votes.count(vote::granted))
                           + " of " + std::to_string(masters_.size()) + " have it"
                     : shown(wanted.form, wanted.key, rules_.key_prefix) + ": attempt "
                           + std::to_string(wanted.attempts)
                           + " rolled back: " + std::to_string(attempt.granted()) + " granted, "
                           + std::to_string(attempt.refusals()) + " held");
    }
    if (!attaches) {
        pause_or_finish(wanted, attempt, now);
        return;
    }
    if (wrong::failed_attach_removes && why == errc::lost) {
        remove(attempt, now);
    } else {
        claims_.destroy(attempt);
    }
    finish(wanted, now);
}

// `last`: no attempt of the acquire follows. A rollback is published only if no later one will be:
// it is the last one, or the next attempt may be on another slot. Waiters may have been refused
// because of its keys.
void engine::roll_back(acquire_call& wanted, claim& attempt, bool last, time_point now) {
    if (last || attempt.is_slot()) {
        attempt.publish();
    }
    if (last && attempt.form() == lock_form::announced) {
        attempt.drop_intent();
        wanted.intent = 0;
    }
    remove(attempt, now);
}

// After an attempt: rolls it back, then pauses or ends the acquire.
void engine::pause_or_finish(acquire_call& wanted, claim& attempt, time_point now) {
    if (wanted.search && try_next_slot(wanted, attempt, now)) {
        return;
    }
    const bool again = wanted.outcome == errc::contended || wanted.outcome == errc::no_quorum
                       || wanted.outcome == errc::validity_exhausted;
    const bool outage = wanted.outcome == errc::no_quorum;
    if (wanted.outcome == errc::contended) {
        wanted.wait_again(now);
    }
    // A wait that cannot outlast the quarantine would end without a lock and without a reason.
    const bool in_vain = outage && masters_.quarantined_until(now) > wanted.wait_until;
    const bool waits = again && !closing() && now < wanted.wait_until && !in_vain;
    if (waits && outage && now - wanted.began >= outage_report_after
        && !std::exchange(outage_reported_, true)) {
        log_outage(now);
    }
    const time_point due = waits ? retry_at(wanted, attempt, now) : forever;
    roll_back(wanted, attempt, !waits, now);
    if (waits) {
        pause(wanted, due, now);
    } else {
        finish(wanted, now);
    }
}

} // namespace redlock::core
