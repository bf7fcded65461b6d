// One attempt of an acquire, of which each is a claim of its own: who is asked, the deciding vote,
// and what it makes of the claim.

#include "decisions.hpp"
#include "engine.hpp"
#include "form_command.hpp"
#include "keys.hpp"

#include <cstring>

namespace redlock::core {

namespace {

// Of each byte its two digits.
constexpr auto hex_digits = [] {
    constexpr std::string_view digits = "0123456789abcdef";
    std::array<std::array<char, 2>, 256> pairs{};
    for (std::size_t byte = 0; byte < pairs.size(); ++byte) {
        pairs[byte] = {digits[byte >> 4U], digits[byte & 15U]};
    }
    return pairs;
}();

// Printable, so that the token can be handed to a script or a person.
void write_hex(std::span<const unsigned char> bytes, std::span<char> out) noexcept {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        std::memcpy(&out[2 * i], hex_digits[bytes[i]].data(), 2);
    }
}

} // namespace

claim& engine::new_claim(operation& wanted, time_point now, std::string_view token) {
    claim& attempt = claims_.create();
    attempt.wake.owner = timer_owner::claim;
    attempt.wake.subject = attempt.self;
    attempt.stage = claim::phase::asking;
    attempt.operation = wanted.self;
    if (wanted.slots != 0) {
        name_slots(attempt, wanted);
    } else {
        attempt.form = wanted.form;
        attempt.key = wanted.key;
        attempt.fence_key = wanted.fence_key;
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
    attempt.count = {masters_.size(), rules_.quorum()};
    attempt.votes.reset(masters_.size());
    return attempt;
}

void engine::start_attempt(operation& wanted, time_point now, std::string_view token) {
    if (wanted.slots != 0 && wanted.candidates.size() < wanted.wants) {
        start_survey(wanted, now);
        return;
    }
    name_intent(wanted);
    claim& attempt = new_claim(wanted, now, token);
    wanted.stage = operation::phase::attempting;
    wanted.attempt = attempt.self;
    ++wanted.attempts;
    ++counters_.attempts;

    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if (!masters_[i].admitted) {
            attempt.votes.of[i].said = masters_[i].otherwise;
            attempt.count.add(masters_[i].otherwise);
            ++counters_of(i).acquire_votes[masters_[i].otherwise];
        } else if (masters_[i].link->overloaded()) {
            attempt.votes.of[i].said = vote::unreachable;
            attempt.votes.note(i, "too many commands in flight");
            attempt.count.add(vote::unreachable);
            ++counters_of(i).acquire_votes[vote::unreachable];
        }
    }
    line* const mine = lines_.find(wanted.line);
    if (attempt.count.decide() != verdict::open) {
        if (mine != nullptr) {
            mine->polls.asked_all(now);
        }
        fail(wanted, attempt, errc::no_quorum, now); // nothing was sent
        return;
    }
    give_up_in_time(wanted, attempt, now);
    attempt.vote_by = wanted.wake.due;
    if (rules_.guarded()) { // it may be executed until then
        attempt.expires_at = attempt.vote_by + attempt.ttl + rules_.drift.of(attempt.ttl);
    }
    const bool asks_one = wanted.ask_arbiter && asks_arbiter(wanted.form)
                          && (mine == nullptr || !mine->polls.all_due(rules_.poll_limit, now));
    const std::size_t arbiter = asks_one ? masters_.arbiter_of(attempt.key) : claim::nobody;
    if (arbiter == claim::nobody || attempt.votes.of[arbiter].said != vote::pending) {
        ask_everybody(attempt, now);
        return;
    }
    attempt.arbiter = arbiter;
    attempt.votes.of[arbiter].asked = true;
    send_acquire(attempt, arbiter, way_of(attempt, arbiter, command_kind::acquire), now);
    // It is asked so as to save the others' time, not to make them depend on it.
    timers_.set(wanted.wake, std::min(attempt.vote_by, later(now, 4 * retry_floor())));
}

// All that were not asked yet.
void engine::ask_everybody(claim& attempt, time_point now) {
    attempt.arbiter = claim::nobody;
    const operation* const wanted = operations_.find(attempt.operation);
    if (line* const mine = wanted != nullptr ? lines_.find(wanted->line) : nullptr) {
        mine->polls.asked_all(now);
    }
    bool written = false;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = attempt.votes.of[i];
        if (mine.said != vote::pending || mine.asked) {
            continue;
        }
        if (masters_[i].admitted) {
            mine.asked = true;
            const rung how = way_of(attempt, i, command_kind::acquire);
            if (!written || rules_.guarded()) { // SET is the same for everybody
                write_acquire(attempt, i, how);
                written = true;
            }
            send_written_acquire(attempt, i, how, now);
        } else { // since the arbiter was asked
            mine.said = masters_[i].otherwise;
            attempt.count.add(mine.said);
            ++counters_of(i).acquire_votes[mine.said];
        }
    }
}

// An attempt ends when the masters should have answered, when what is left of the lease is not
// worth having, or when the caller waits no longer.
void engine::give_up_in_time(operation& wanted, const claim& attempt, time_point now) {
    const time_point worthless =
        guaranteed_until(attempt.asked_at, attempt.ttl, rules_.drift) - wanted.options.min_validity;
    const time_point impatient = wanted.wait_until > wanted.began ? wanted.wait_until : forever;
    timers_.set(wanted.wake, std::min({later(now, rules_.master_timeout), worthless, impatient}));
}

void engine::send_acquire(claim& attempt, std::size_t master, rung how, time_point now) {
    write_acquire(attempt, master, how);
    send_written_acquire(attempt, master, how, now);
}

void engine::write_acquire(const claim& attempt, std::size_t master, rung how) {
    scratch_.clear();
    if (rules_.guarded()) {
        append_acquire(
            scratch_,
            attempt.form,
            how,
            names_of(attempt),
            masters_[master].link->guard_until(attempt.vote_by),
            attempt.asked_ttl,
            fence_of(attempt, 0),
            intent_of(attempt));
    } else {
        append_set(scratch_, attempt.key, attempt.token_text(), attempt.asked_ttl);
    }
}

void engine::send_written_acquire(claim& attempt, std::size_t master, rung how, time_point now) {
    send(
        master,
        scratch_,
        {.kind = command_kind::acquire,
         .how = rules_.guarded() ? how : rung::native,
         .form = attempt.form,
         .subject = attempt.self},
        now);
}

void engine::acquire_answered(
    claim& attempt, std::size_t master, const answer& got, time_point now) {
    ballot& mine = attempt.votes.of[master];
    const bool uncounted = attempt.fencing && got.said == vote::granted && got.counter == 0;
    const vote what = uncounted ? vote::error : got.said; // no server of ours answers so
    const bool straggles = attempt.stage == claim::phase::held;
    if (!straggles && mine.said != vote::pending) {
        return; // it was counted as timed out
    }
    ++counters_of(master).acquire_votes[what];
    if (wrong::t0_after_sends && !straggles && attempt.count.granted() == 0) {
        attempt.asked_at = now;
    }
    if (what == vote::granted) {
        mine.confirm(guaranteed_until(
            attempt.asked_at,
            wrong::late_grant_lasts_anew ? attempt.ttl : attempt.asked_ttl,
            rules_.drift));
        mine.counter = got.counter;
    }
    if (wrong::set_then_pexpire && what == vote::granted) {
        scratch_.clear();
        append_extend(scratch_, rung::eval, attempt.key, attempt.token_text(), attempt.ttl);
        send(master, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
    }
    mine.left = got.left.value_or(not_told);
    if (straggles) {
        // What is pending now may be the answer to an extension.
        if (mine.said == vote::pending && !attempt.extending.active) {
            mine.said = what;
        }
        if (mine.until > attempt.held.deadline() && now < attempt.held.held_until()) {
            move_deadline(attempt, now); // a majority can use it
        }
        return;
    }
    mine.said = what;
    if (attempt.arbiter == master) {
        if (what == vote::held) {
            attempt.count.add(what);
            fail(*operations_.find(attempt.operation), attempt, errc::contended, now);
            return;
        }
        timers_.set(operations_.find(attempt.operation)->wake, attempt.vote_by);
        ask_everybody(attempt, now);
    }
    if (what == vote::granted && mine.counter < attempt.raise_to) {
        send_raise(attempt, master, way_of(attempt, master, command_kind::raise), now);
    } else {
        // A counter beyond the token is no vote for it: this grant came after it was chosen.
        const bool ahead =
            what == vote::granted && attempt.raise_to != 0 && mine.counter > attempt.raise_to;
        if (ahead) {
            attempt.votes.note(master, "its fencing counter is ahead");
        }
        attempt.count.add(ahead ? vote::held : what);
        decide(attempt, now);
    }
}

void engine::decide(claim& attempt, time_point now) {
    if (attempt.adopts != adoption::none) {
        decide_adoption(attempt, now);
        return;
    }
    operation* const wanted = operations_.find(attempt.operation);
    if (wanted == nullptr) {
        return;
    }
    switch (attempt.count.decide()) {
    case verdict::open:
        break;
    case verdict::won:
        if (attempt.fencing && attempt.raise_to == 0) {
            level(*wanted, attempt, now);
        } else {
            win(*wanted, attempt, now);
        }
        break;
    case verdict::contended:
        fail(*wanted, attempt, errc::contended, now);
        break;
    case verdict::no_quorum:
        fail(*wanted, attempt, errc::no_quorum, now);
        break;
    }
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
        : wrong::hand_over_counts_anew
            ? guaranteed_until(attempt.given_at, attempt.ttl, rules_.drift)
            : attempt.votes.lasts_until(rules_.quorum()),
        hold_limit);
    const auto needed = wrong::hand_over_past_deadline && attempt.given_at != attempt.asked_at
                            ? -attempt.ttl
                            : std::max(options.min_validity, options.stop_margin);
    if (now >= lasts_until - needed) {
        fail(wanted, attempt, errc::too_slow, now);
        return;
    }
    // One that asks the arbiter first takes two. Where everybody does, there is nothing else to
    // measure.
    masters_.measured((now - attempt.given_at) / (wanted.ask_arbiter ? 2 : 1));

    attempt.stage = claim::phase::held;
    attempt.announced = true;
    attempt.drops_intent = attempt.intent != 0; // where it was not granted it is still there
    attempt.operation = {};
    attempt.fencing_token = attempt.raise_to;
    attempt.believed_until = lasts_until;
    const time_point renewed_at =
        attempt.votes.lasts_until(rules_.quorum()) - (attempt.ttl - rules_.drift.of(attempt.ttl));
    attempt.held = {
        {.renew = options.renew,
         .stop_margin = options.stop_margin,
         .hold_limit = hold_limit,
         .warn_at = rules_.held_warning.count() == 0 ? forever : later(now, rules_.held_warning)},
        now,
        lasts_until,
        options.renew == renewal::automatic ? lease::renewal_time(renewed_at, attempt.ttl, random_)
                                            : forever};
    schedule_lease(attempt);

    ++counters_.acquired;
    counters_.acquire_wait.add(now - wanted.began);
    wanted.decided_at = now;
    timers_.cancel(wanted.wake);
    if (line* const waiters = lines_.find(wanted.line)) {
        waiters->holder = waiters->pool ? handle() : attempt.self;
        const handle place = wanted.line;
        leave_queue(*waiters, now);
        leave(wanted, now);
        if (attempt.is_slot()) {
            look_on(place, wanted, attempt, now);
        }
    }
    host_.acquired(wanted, attempt);
    operations_.destroy(wanted);
}

// Rolls the attempt back and goes on with the operation. Without an error: it was cancelled.
void engine::fail(operation& wanted, claim& attempt, std::optional<errc> why, time_point now) {
    if (attempt.adopts != adoption::none) {
        end_adoption(wanted, attempt, why, now);
        return;
    }
    wanted.outcome = why;
    wanted.decided_at = now;
    // One master's word says less than the round before, unless that failed for another reason.
    const bool says_less = attempt.arbiter != claim::nobody && wanted.last.count(vote::held) > 0;
    if (!says_less) {
        wanted.last = attempt.votes;
    }
    if (host_.logs(log_level::debug)) {
        host_.log(
            log_level::debug,
            shown(wanted.form, wanted.key) + ": attempt " + std::to_string(wanted.attempts)
                + " rolled back: " + std::to_string(attempt.count.granted()) + " granted, "
                + std::to_string(attempt.count.held()) + " held");
    }
    pause_or_finish(wanted, attempt, now);
}

} // namespace redlock::core
