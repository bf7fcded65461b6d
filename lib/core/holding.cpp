// Held claims of the engine: sends the extensions of leases, and executes their decisions
// (lease.hpp).
//
// No key of a lease is removed while its holder may act. After a loss the keys stay until the
// holder ends the lease, or until the last deadline that it was ever shown.

#include "decisions.hpp"
#include "engine.hpp"
#include "form_command.hpp"
#include "keys.hpp"

#include <bit>

namespace redlock::core {

namespace {

key_state state_of(const answer& got, bool heals) noexcept {
    switch (got.said) {
    case vote::granted:
        return heals ? key_state::healed : key_state::kept;
    case vote::absent:
        return got.forgot ? key_state::quarantined : key_state::missing;
    case vote::quarantined:
        return key_state::quarantined;
    case vote::owned_by_other:
        return key_state::owned_by_other;
    default:
        return key_state::unknown;
    }
}

} // namespace

void engine::extend(handle name, std::chrono::milliseconds ttl, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->is_held()) {
        return; // its end has been reported
    }
    lease->held().want(ttl);
    start_wanted_extension(*lease, now);
    schedule_lease(*lease);
}

void engine::start_wanted_extension(claim& lease, time_point now) {
    if (const auto ttl = lease.held().next_wanted(lease)) {
        start_extension(lease, *ttl, true, now);
    }
}

void engine::start_extension(
    claim& lease, std::chrono::milliseconds ttl, bool asked_for, time_point now) {
    // A shorter ttl needs the script, which never shortens a lease. SET with IFEQ would.
    const bool shortens = lease.held().extend(lease, ttl, asked_for, now, rules_)
                          && lease.form == lock_form::exclusive;
    master_set to = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& theirs = lease.votes.of[i];
        theirs.latency = {};
        theirs.found = key_state::unknown;
        // A master in quarantine is asked as well: a key that is still there excludes all other
        // owners.
        const bool remembers = rules_.guarded() && masters_[i].otherwise == vote::quarantined;
        if (!masters_[i].admitted && !remembers) {
            theirs.said = masters_[i].otherwise;
            ++masters_.counters(i).extend_votes[theirs.said];
        } else if (theirs.asked || rules_.guarded()) { // a key that is missing may be healed
            to |= set_of(i);
            theirs.said = vote::pending;
            theirs.found = key_state::pending;
        }
    }
    sender_.extend(lease, to, shortens, now);
    if (!asked_for) {
        host_.renewing(lease);
    }
    if (static_cast<std::size_t>(std::popcount(to)) < masters_.needed()) {
        end_extension(lease, false, now);
    }
}

// Creates the key on a master without it. Sent only after the round was judged.
void engine::send_heal(claim& lease, std::size_t master, std::uint16_t round, time_point now) {
    if (!lease.is_held() || !lease.held().may_send(lease, round, now) || !lease.extending.heals) {
        return;
    }
    lease.held().heal(lease, master, rules_.drift);
    sender_.heal(lease, master, round, now);
}

void engine::heal_missing(claim& lease, time_point now) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        const connection& link = *masters_[i].link;
        if (lease.votes.of[i].found == key_state::missing && link.up() && !link.quarantined(now)) {
            send_heal(lease, i, lease.extending.round, now);
        }
    }
}

void engine::extend_answered(
    claim& lease,
    std::size_t master,
    const sent_command& command,
    const answer& got,
    time_point now) {
    if (lease.is_held() && now >= lease.held().lost_at(lease)) {
        // Its reply does not count: `held()` is false already, and must not become true again.
        lease_due(lease, now);
        return;
    }
    if (!lease.is_held() && !lease.is_asking()) {
        return;
    }
    const bool heals = command.kind == command_kind::heal;
    key_state found = wrong::any_reply_extends && got.said != vote::unreachable
                          ? key_state::kept
                          : state_of(got, heals);
    // The script used the master's clock, which may have been stepped. So our own count of the
    // quarantine applies.
    if (rules_.guarded() && masters_[master].link->quarantined(now)
        && (found == key_state::missing || found == key_state::healed)) {
        found = key_state::quarantined;
    }
    if (wrong::late_rollback_to_non_voters && got.healed) {
        std::string bytes;
        append_remove(
            bytes, command_variant::eval, native_delete::none, lease.key, lease.token_text(), {});
        sender_.send(master, bytes, {.kind = command_kind::ping, .subject = {}}, now);
    }
    if (!heals) {
        ++masters_.counters(master).extend_votes[got.said];
    }
    lease.removal_seen |= lease.extending.count(
        lease.votes.of[master], found, command.round, heals, now, rules_.drift);
    if (!lease.is_held()) {
        return; // during a local handoff only the replies to the raise decide
    }
    const auto next = lease::answered(lease, master, got.said, found, command.round);
    if (!move_deadline(lease, now)) {
        return;
    }
    if (next == lease::next::judge) {
        judge_extension(lease, now);
    } else if (next == lease::next::heal) {
        heal_missing(lease, now);
    }
}

// What follows from the replies so far. Returns false at the end of the lease.
bool engine::judge_extension(claim& lease, time_point now) {
    ruling next = lease.held().judge(lease, masters_.voters(), masters_.needed(), now, rules_);
    if (next == ruling::heal) {
        heal_missing(lease, now);
        next = lease.held().judge(lease, masters_.voters(), masters_.needed(), now, rules_);
    }
    if (next == ruling::open) {
        schedule_lease(lease);
        return true;
    }
    if (!move_deadline(lease, now)) {
        return false; // the waiting extensions have failed
    }
    if (lease.extending.confirmed) {
        heal_missing(lease, now); // without waiting for the replies
    }
    end_extension(lease, next == ruling::won, now);
    schedule_lease(lease);
    return true;
}

void engine::end_extension(claim& lease, bool extended, time_point now) {
    lease.held().end_extension(lease, extended, now, retry_floor(), random_);
    ++(extended ? counters_.renewed : counters_.renewals_failed);
    const auto error = extended ? std::nullopt : std::optional(errc::no_quorum);
    lease.extending.asked_for ? host_.extended(lease, error) : host_.renewed(lease, error);
    start_wanted_extension(lease, now);
}

// Forward only, while the round of an extension is open. Returns false at the end of the lease.
bool engine::move_deadline(claim& lease, time_point now) {
    if (lease.held().move_deadline(lease, masters_.needed()) && lease.held().deadline() != never) {
        host_.lease_changed(lease);
    }
    if (lease.held().lost(lease, now)) {
        lose(lease, lease.held().reason(lease, masters_.needed()), now);
        return false;
    }
    schedule_lease(lease);
    return true;
}

void engine::schedule_lease(claim& lease) {
    timers_.set(lease.wake, lease.held().next_due(lease));
}

void engine::lease_due(claim& lease, time_point now) {
    for (;;) {
        switch (lease.held().due(lease, now)) {
        case lease::event::stop: {
            const loss_reason reason = lease.held().reason(lease, masters_.needed());
            // The timer was due much earlier: this process did not run.
            const bool stalled =
                reason == loss_reason::majority_unreachable
                && lease.held().held_until() - lease.wake.due > rules_.master_timeout;
            lose(lease, stalled ? loss_reason::stalled : reason, now);
            return;
        }
        case lease::event::warn:
            host_.held_long(lease);
            break;
        case lease::event::give_up:
            for (master_set silent = lease::give_up(lease); silent != 0; silent &= silent - 1) {
                const auto master = static_cast<std::size_t>(std::countr_zero(silent));
                ++masters_.counters(master).extend_votes[vote::timed_out];
            }
            if (!judge_extension(lease, now)) {
                return;
            }
            break;
        case lease::event::renew:
            start_extension(lease, lease.ttl, false, now);
            schedule_lease(lease);
            return;
        case lease::event::none:
            schedule_lease(lease);
            return;
        }
    }
}

void engine::lose(claim& lease, loss_reason reason, time_point now) {
    ++counters_.lost;
    ++counters_.lost_by[reason];
    end_hold(lease, now);
    if (host_.logs(log_level::error)) {
        host_.log(
            log_level::error,
            shown(lease.form, lease.key) + ": lost: " + std::string(to_string(reason)));
    }
    host_.lease_lost(lease, reason);
    end_user_extensions(lease, reason == loss_reason::closed ? errc::closed : errc::lost);
    lease.lose();
    ++lost_;
    if (wrong::removed_at_stop || now >= lease.believed_until) {
        end_lost(lease, now);
        return;
    }
    if (wait_queue* const mine = queues_.find(lease.waiting_form(), lease.line_key());
        mine != nullptr && !mine->pool) {
        mine->holder = lease.self; // waiters wait for the removal of this lease
    }
    timers_.set(lease.wake, lease.believed_until);
}

// The holder of a lost lease has ended it, or must have stopped.
void engine::end_lost(claim& lease, time_point now) {
    --lost_;
    wrong::own_queue_not_notified ? void() : wake_queue(lease, now);
    removals_.begin(lease, now);
}

void engine::end_user_extensions(claim& lease, errc why) {
    for (std::size_t left = lease.held().drop_wanted(lease); left > 0; --left) {
        host_.extended(lease, why);
    }
}

} // namespace redlock::core
