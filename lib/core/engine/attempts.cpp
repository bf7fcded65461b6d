#include "attempts.hpp"

#include "core/base/decisions.hpp"
#include "core/base/hex.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/keys.hpp"
#include "core/masters/reasons.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string>

namespace redlock::core {

namespace {

attempt::limits limits_of(const operation& wanted) noexcept {
    return {
        wanted.options.min_validity,
        wanted.wait_until > wanted.began ? wanted.wait_until : forever};
}

// Sets the target of the next attempt: one slot, or several as one lock. Returns its key.
std::string name_slots(claim& attempt, operation& wanted) {
    std::vector<std::uint32_t>& numbers = attempt.need_more().numbers;
    wanted.search->next(numbers);
    attempt.more->pool_key = wanted.key;
    std::string key;
    attempt.form = assign_slot_keys(key, wanted.key, numbers);
    return key;
}

} // namespace

claim& attempts::create(operation& wanted, std::string_view token, time_point now) {
    claim& attempt = claims_.create();
    attempt.wake.owner = timer_owner::claim;
    attempt.wake.subject = attempt.self.index;
    std::string slots;
    if (wanted.search) {
        slots = name_slots(attempt, wanted);
    } else {
        attempt.form = wanted.form;
    }
    if (wanted.intent != 0) {
        attempt.need_more().intent = wanted.intent;
    }
    attempt.fencing = wanted.options.fencing;
    attempt.transferable =
        rules_.guarded() && wanted.options.transferable; // else SET is all it has
    std::array<unsigned char, 20> secret{};
    host_.random(secret);
    std::array<char, owned_key::token_size> drawn{};
    write_hex(secret, drawn);
    const claim* const last = wrong::token_reused ? claims_.find(wanted.attempt) : nullptr;
    if (token.empty()) { // else it is one of the caller's own
        token = last != nullptr ? last->token_text() : std::string_view(drawn.data(), drawn.size());
    }
    attempt.key = owned_key(wanted.search ? slots : wanted.key, token);
    attempt.ttl = attempt.ttl_max = attempt.asked_ttl = shortened(wanted.options.ttl);
    attempt.asked_at = now; // before the first byte of it leaves
    attempt.expires_at = now + attempt.ttl + rules_.drift.of(attempt.ttl);
    attempt.ask({attempt::origin::acquire, masters_.size(), masters_.majority()});
    attempt.asking().operation = wanted.self;
    attempt.votes.reset(masters_.size());
    return attempt;
}

// A writer draws the name of its intent with its first attempt.
void attempts::name_intent(operation& wanted) {
    if (wanted.form == lock_form::writer && wanted.intent == 0
        && wanted.wait_until > wanted.began) {
        std::array<unsigned char, sizeof wanted.intent> bytes{};
        host_.random(bytes);
        std::memcpy(&wanted.intent, bytes.data(), bytes.size());
    }
}

attempt::decision attempts::begin(operation& wanted, std::string_view token, time_point now) {
    name_intent(wanted);
    const bool fits = wanted.fit_ttl(masters_.ttl_limit(), rules_.drift);
    claim& attempt = create(wanted, token, now);
    wanted.stage = operation::phase::attempting;
    wanted.attempt = attempt.self;
    ++wanted.attempts;
    ++counters_.attempts;

    refuse_absent(attempt, &master_metrics::acquire_votes);
    if (!fits) {
        sender_.introduce_all_again(now);
        return {attempt::decision::kind::lost, errc::invalid_argument};
    }
    wait_queue* const mine = wanted.queue;
    if (attempt.asking().count().decide() != verdict::open) {
        if (mine != nullptr) {
            mine->asked_all(now);
        }
        return {attempt::decision::kind::lost, errc::no_quorum}; // nothing was sent
    }
    give_up_in_time(wanted, attempt, now);
    attempt.vote_by = wanted.wake.due;
    if (rules_.guarded()) { // the masters may execute the command until then
        attempt.expires_at = wanted.wake.due + attempt.ttl + rules_.drift.of(attempt.ttl);
    }
    const bool asks_one = wanted.ask_arbiter && asks_arbiter(wanted.form)
                          && (mine == nullptr || !mine->all_due({rules_, now}));
    ask_masters(wanted, attempt, asks_one ? masters_.arbiter_of(attempt.key) : nobody, now);
    if (!attempt.asking().asked_all()) {
        // The arbiter only saves commands: if it is slow, go on without it.
        timers_.set(wanted.wake, std::min(wanted.wake.due, later(now, 4 * masters_.retry_floor())));
    }
    return {};
}

// Sets the votes of the masters to which nothing can be sent.
void attempts::refuse_absent(claim& attempt, vote_counts master_metrics::*counts) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        const master& one = masters_[i];
        const bool takes = masters_.takes(i, attempt.ttl);
        if (one.admitted && !one.link->overloaded() && takes) {
            continue;
        }
        const ballot& mine = attempt.votes.of[i];
        if (mine.said != vote::pending || mine.asked) {
            continue;
        }
        if (one.admitted) {
            attempt.votes.note(
                i,
                takes ? "too many commands in flight"
                      : too_long_text(attempt.ttl, one.link->ttl_limit()));
        }
        const vote instead = takes ? vote::unreachable : vote::error;
        attempt.asking().refused(attempt, i, one.admitted ? instead : one.otherwise);
        ++(masters_.counters(i).*counts)[mine.said];
    }
}

// Sends the acquire to the arbiter or, if there is none, to all masters that have not been asked.
void attempts::ask_masters(operation& wanted, claim& attempt, std::size_t arbiter, time_point now) {
    const master_set to = attempt.asking().ask(attempt, arbiter);
    if (wanted.queue != nullptr && attempt.asking().asked_all()) {
        wanted.queue->asked_all(now);
    }
    sender_.acquire(attempt, to, now);
}

void attempts::give_up_in_time(operation& wanted, const claim& attempt, time_point now) {
    timers_.set(wanted.wake, attempt::give_up_at(attempt, limits_of(wanted), now, rules_));
}

// The lock exists if a majority has its token and extends it. No earlier vote is trusted. A missing
// key is created only if half of the members have the lock: then no other owner can have a
// majority. It is what is left for certain of a majority after one change of the members, so such a
// lock is never taken for one that is gone.
attempt::decision attempts::attach(operation& wanted, std::string_view token, time_point now) {
    claim& attempt = claims_.create();
    attempt.wake.owner = timer_owner::claim;
    attempt.wake.subject = attempt.self.index;
    attempt.ask({attempt::origin::attach, masters_.size(), masters_.majority(), masters_.voters()});
    attempt.asking().operation = wanted.self;
    attempt.key = owned_key(wanted.key, token);
    attempt.fencing = wanted.options.fencing;
    attempt.transferable = false; // it is not known how the key was set
    attempt.ttl = shortened(wanted.options.ttl);
    attempt.ttl_max = shortened(masters_.longest_ttl()); // the ttl of the other process is unknown
    attempt.asked_at = now;
    attempt.votes.reset(masters_.size());
    attempt.extending.sent = now; // a reply after the decision counts for an extension
    attempt.extending.ttl = attempt.ttl;
    wanted.attempt = attempt.self;
    ++wanted.attempts;
    ++counters_.attempts;
    refuse_absent(attempt, &master_metrics::extend_votes);
    master_set to = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = attempt.votes.of[i];
        mine.asked = true; // a master that cannot be reached may have the key as well
        mine.unvouched = true;
        to |= mine.said == vote::pending ? set_of(i) : 0U;
    }
    if (static_cast<std::size_t>(std::popcount(to)) < masters_.majority()) {
        return {attempt::decision::kind::lost, errc::no_quorum}; // nothing was sent
    }
    give_up_in_time(wanted, attempt, now);
    attempt.vote_by = wanted.wake.due;
    attempt.expires_at = wanted.wake.due + attempt.ttl_max + rules_.drift.of(attempt.ttl_max);
    sender_.queue(attempt, command_kind::extend, to, now);
    return {};
}

attempt::decision attempts::answered(claim& attempt, const arrival& at, const answer& got) {
    const command_kind kind = at.command.kind;
    return kind == command_kind::acquire ? acquired(attempt, at, got)
           : kind == command_kind::raise ? raised(attempt, at, got)
                                         : extended(attempt, at, got);
}

attempt::decision attempts::acquired(claim& attempt, const arrival& at, const answer& got) {
    const auto& [master, command, sent, now] = at;
    if (!attempt.asking().awaits(attempt, master, command.round)) {
        return {}; // it was counted as timed out, or belongs to the previous owner
    }
    if (wrong::t0_after_sends && attempt.asking().count().granted() == 0) {
        attempt.asked_at = now;
    }
    const vote what = attempt::note(attempt, master, got, rules_.drift);
    ++masters_.counters(master).acquire_votes[what];
    if (wrong::set_then_pexpire && what == vote::granted) {
        const std::string ttl = std::to_string(attempt.ttl.count());
        sender_.send(master, {"PEXPIRE", attempt.key, ttl}, {.kind = command_kind::ping}, now);
    }
    return attempt.asking().acquired(attempt, master, what);
}

attempt::decision attempts::raised(claim& attempt, const arrival& at, const answer& got) {
    if (got.said == vote::owned_by_other) {
        attempt.removal_seen |= attempt.votes.of[at.master].remove(at.now);
    }
    const std::uint16_t counts = wrong::any_raise_counts ? attempt.handoffs : at.command.round;
    return attempt.asking().awaits(attempt, at.master, counts)
               ? attempt.asking().raised(attempt, at.master, got)
               : attempt::decision{};
}

attempt::decision attempts::extended(claim& attempt, const arrival& at, const answer& got) {
    if (at.command.kind != command_kind::heal) {
        ++masters_.counters(at.master).extend_votes[got.said];
    }
    answer vouched = got;
    const bool gone = got.said == vote::absent || got.said == vote::owned_by_other;
    if (gone && (got.forgot || masters_[at.master].link->quarantined(at.now))) {
        vouched.said = vote::quarantined; // it may have had the key, and lost it
    }
    return attempt.asking().extended(attempt, at.master, vouched, rules_);
}

attempt::decision
attempts::accept(operation& next, claim& lease, time_point deadline, time_point now) {
    next.stage = operation::phase::attempting;
    ++next.attempts;
    lease.extending.active = false;
    timers_.cancel(lease.wake);
    timers_.set(
        next.wake, std::min({later(now, rules_.master_timeout), deadline, next.wait_until}));
    ++lease.handoffs;
    return follow(next, lease, lease.asking().level(lease, masters_.up(), now, rules_), now);
}

attempt::decision attempts::due(operation& wanted, claim& attempt, time_point now) {
    return follow(
        wanted,
        attempt,
        attempt.asking().due(
            attempt, limits_of(wanted), masters_.may_be_slow(attempt.asked_at, now), now, rules_),
        now);
}

void attempts::again(claim& attempt, const arrival& at, bool alone) {
    const auto& [master, command, sent, now] = at;
    const command_kind kind = command.kind;
    if (command.asks() && command.round != attempt.handoffs) {
        return; // an earlier attempt on this claim
    }
    if (sender_.shares_calls(attempt, kind)) { // as do all extensions of an attach
        sender_.queue(attempt, kind, set_of(master), now, alone);
    } else {
        sender_.send_alone(attempt, kind, master, command.round, now);
    }
}

attempt::decision
attempts::follow(operation& wanted, claim& attempt, attempt::decision next, time_point now) {
    using kind = attempt::decision::kind;
    class attempt& asking = attempt.asking();
    for (;;) {
        switch (next.next) {
        case kind::open:
        case kind::won:
        case kind::lost:
            return next;
        case kind::others:
            timers_.set(wanted.wake, attempt.vote_by);
            refuse_absent(attempt, &master_metrics::acquire_votes);
            ask_masters(wanted, attempt, nobody, now);
            next = asking.decide(attempt);
            break;
        case kind::level:
            next = asking.level(attempt, masters_.up(), now, rules_);
            break;
        case kind::raise:
            next = raise(wanted, attempt, next, now);
            break;
        case kind::heal: {
            const master_set to =
                rules_.guarded() ? asking.heal(attempt, masters_.taking(attempt.ttl)) : 0;
            for (const std::size_t i : each_of(to)) {
                sender_.send_alone(attempt, command_kind::heal, i, attempt.extending.round, now);
            }
            next = to == 0 ? attempt::decision{kind::lost, errc::no_quorum} : attempt::decision{};
            break;
        }
        case kind::over: {
            for (const std::size_t i : each_of(asking.close(attempt))) {
                ++masters_.counters(i).acquire_votes[vote::timed_out];
            }
            next = asking.decide(attempt);
            break;
        }
        }
    }
}

attempt::decision
attempts::raise(operation& wanted, claim& attempt, const attempt::decision& what, time_point now) {
    const class attempt& asking = attempt.asking();
    const bool hands_off = asking.from() == attempt::origin::hand_off;
    const bool levels = what.anew && asking.from() == attempt::origin::acquire;
    if (what.anew && !hands_off) {
        counters_.raised += asking.token() != 0 ? 1U : 0U;
        give_up_in_time(wanted, attempt, now);
    }
    for (const std::size_t i : each_of(what.masters)) {
        if (wrong::raise_accepts_larger && levels) {
            outbox::command again = sender_.command_for(attempt, command_kind::acquire, set_of(i));
            again.item = {}; // its reply is ignored
            sender_.calls().add(again, true, now);
            sender_.flush(); // before the raise
        }
        sender_.send_alone(attempt, command_kind::raise, i, attempt.handoffs, now);
    }
    const bool open = asking.count().decide() == verdict::open;
    if (wrong::raise_not_awaited && levels && open) {
        return {attempt::decision::kind::won};
    }
    if (wrong::handoff_raise_not_awaited && hands_off && what.anew && open) {
        return {attempt::decision::kind::won};
    }
    return asking.decide(attempt);
}

} // namespace redlock::core
