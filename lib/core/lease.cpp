// Held claims of the engine: extension, renewal, loss.
//
// The deadline of a lease is the q-th largest of the moments until which the masters' votes can be
// relied on: a partial renewal moves it as far as some majority reaches and no further. A loss is
// always signalled by the timer at `deadline - stop_margin`; the answers of a renewal only move it.
// While a round of an extension is open, its answers move it forward only; what they take away
// counts once the round is judged (extension_round.hpp).
//
// Nothing of a lease is removed while its holder may still act. After a loss the keys stay until it
// has let go, or until the last deadline that it was ever shown has passed.

#include "decisions.hpp"
#include "engine.hpp"
#include "form_command.hpp"
#include "keys.hpp"

namespace redlock::core {

namespace {

key_state state_of(const answer& got, bool heals) noexcept {
    switch (got.said) {
    case vote::granted:
        return heals ? key_state::healed : key_state::kept;
    case vote::absent:
        return got.forgot ? key_state::quarantined : key_state::missing;
    case vote::foreign:
        return key_state::foreign;
    default:
        return key_state::unknown;
    }
}

} // namespace

void engine::extend(handle name, std::chrono::milliseconds ttl, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || lease->stage != claim::phase::held) {
        return; // the host knows already that it ended
    }
    lease->extensions_wanted.push_back(ttl);
    start_wanted_extension(*lease, now);
    schedule_lease(*lease);
}

void engine::start_wanted_extension(claim& lease, time_point now) {
    if (!lease.extending.active && !lease.extensions_wanted.empty()) {
        const auto ttl = lease.extensions_wanted.front();
        lease.extensions_wanted.erase(lease.extensions_wanted.begin());
        start_extension(lease, ttl, true, now);
    }
}

void engine::start_extension(
    claim& lease, std::chrono::milliseconds ttl, bool asked_for, time_point now) {
    extension& mine = lease.extending;
    mine = {
        .round = static_cast<std::uint16_t>(mine.round + 1),
        .active = true,
        .asked_for = asked_for,
        .sent = now,
        .give_up_at = later(now, rules_.master_timeout),
        .ttl = ttl};
    const time_point executed_by = rules_.guarded() ? lease.deadline : now;
    lease.expires_at = std::max(lease.expires_at, executed_by + ttl + rules_.drift.of(ttl));
    lease.votes.texts.clear();
    std::size_t asked = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& theirs = lease.votes.of[i];
        theirs.latency = {};
        theirs.found = key_state::unknown;
        // A key that is still there is a vote in a quarantine, too: it keeps everybody else out.
        const bool remembers = rules_.guarded() && masters_[i].otherwise == vote::quarantined;
        if (!masters_[i].admitted && !remembers) {
            theirs.said = masters_[i].otherwise;
            ++counters_of(i).extend_votes[theirs.said];
        } else if (theirs.asked || rules_.guarded()) { // a key that is missing may be healed
            ++asked;
            theirs.said = vote::pending;
            theirs.found = key_state::pending;
            // The script never shortens a lease that was given longer before; SET with IFEQ would.
            const bool shortens = ttl < lease.ttl_max && lease.form == lock_form::exclusive;
            send_extend(
                lease,
                i,
                mine.round,
                shortens ? masters_[i].link->commands().extend_script()
                         : way_of(lease, i, command_kind::extend),
                now);
        }
    }
    lease.ttl_max = std::max(lease.ttl_max, ttl);
    if (!asked_for) {
        host_.renewing(lease);
    }
    if (asked < rules_.quorum()) {
        end_extension(lease, false, now);
    }
}

void engine::send_extend(
    claim& lease, std::size_t master, std::uint16_t round, rung how, time_point now) {
    if (lease.stage != claim::phase::held || (!wrong::heal_after_deadline && now >= lease.deadline)
        || round != lease.extending.round) {
        return; // an extension is never sent after the deadline, nor said again for an older round
    }
    scratch_.clear();
    channel_.clear();
    if (rules_.pushes && lease.form == lock_form::shared) {
        assign_channel(channel_, lease.key);
    }
    if (rules_.guarded()) {
        append_extend(
            scratch_,
            lease.form,
            how,
            names_of(lease),
            masters_[master].link->guard_until(lease.deadline),
            lease.extending.ttl,
            fence_of(lease, lease.fencing_token),
            channel_);
    } else {
        append_extend(scratch_, how, lease.key, lease.token_text(), lease.extending.ttl);
    }
    send(
        master,
        scratch_,
        {.kind = command_kind::extend,
         .how = how,
         .form = lease.form,
         .round = round,
         .subject = lease.self},
        now);
}

// Creates the key on a master that misses it. Sent only after the round was judged.
void engine::send_heal(claim& lease, std::size_t master, std::uint16_t round, time_point now) {
    const extension& mine = lease.extending;
    if (lease.stage != claim::phase::held || (!wrong::heal_after_deadline && now >= lease.deadline)
        || round != mine.round || !mine.heals) {
        return;
    }
    ballot& theirs = lease.votes.of[master];
    theirs.asked = true;
    theirs.found = key_state::pending;
    lease.expires_at =
        std::max(lease.expires_at, lease.deadline + mine.ttl + rules_.drift.of(mine.ttl));
    const rung how = way_of(lease, master, command_kind::heal);
    scratch_.clear();
    append_heal(
        scratch_,
        lease.form,
        how,
        names_of(lease),
        masters_[master].link->guard_until(lease.deadline),
        mine.ttl,
        fence_of(lease, lease.fencing_token));
    send(
        master,
        scratch_,
        {.kind = command_kind::heal,
         .how = how,
         .form = lease.form,
         .round = round,
         .subject = lease.self},
        now);
}

void engine::heal_missing(claim& lease, time_point now) {
    lease.extending.heals = true;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if (lease.votes.of[i].found == key_state::missing && masters_[i].link->up()) {
            send_heal(lease, i, lease.extending.round, now);
        }
    }
}

void engine::extend_answered(
    claim& lease, std::size_t master, const ticket& command, const answer& got, time_point now) {
    if (lease.stage == claim::phase::held && now >= lease.lost_at()) {
        // Its answer is not counted: `held()` is false already, and must not become true again.
        lease_due(lease, now);
        return;
    }
    if (lease.stage != claim::phase::held && lease.stage != claim::phase::asking) {
        return;
    }
    extension& mine = lease.extending;
    ballot& theirs = lease.votes.of[master];
    const bool current = command.round == mine.round;
    const bool heals = command.kind == command_kind::heal;
    const key_state found = wrong::any_reply_extends && got.said != vote::unreachable
                                ? key_state::kept
                                : state_of(got, heals);
    if (wrong::late_rollback_to_non_voters && got.healed) {
        scratch_.clear();
        append_guarded_remove(scratch_, rung::eval, names_of(lease), fence_of(lease, 0), {});
        send(master, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
    }
    if (!heals) {
        ++counters_of(master).extend_votes[got.said];
    }
    switch (found) {
    case key_state::kept:
    case key_state::healed:
        if (current && (!heals || mine.heals)) {
            theirs.confirm(guaranteed_until(
                wrong::extension_from_reply ? now : mine.sent, mine.ttl, rules_.drift));
        }
        break;
    case key_state::missing:
    case key_state::foreign:
        // Answers come in the order of the commands, so no later extension has found it.
        lease.removal_seen |= theirs.remove(now);
        break;
    case key_state::quarantined:
        theirs.forget();
        break;
    case key_state::unknown:
    case key_state::pending:
        break;
    }
    if (lease.stage != claim::phase::held) {
        return; // it is being handed over: what the raise answers decides
    }
    if (current) {
        theirs.said = got.said;
        theirs.left = not_told;
        theirs.found = found;
    }
    if (!move_deadline(lease, now) || !current) {
        return;
    }
    if (mine.active) {
        judge_extension(lease, now);
    } else if (mine.confirmed && found == key_state::missing) {
        heal_missing(lease, now); // a straggler, after a majority still had the key
    }
}

// What follows from the answers so far. False when that is the end of the lease.
bool engine::judge_extension(claim& lease, time_point now) {
    extension& mine = lease.extending;
    const std::size_t quorum = rules_.quorum();
    ruling next = mine.rule(lease.votes.of, quorum, lease.removal_seen, now);
    if (next == ruling::heal && rules_.guarded()) {
        mine.healing = true;
        mine.give_up_at = later(now, rules_.master_timeout);
        heal_missing(lease, now);
        next = mine.rule(lease.votes.of, quorum, lease.removal_seen, now);
    }
    if (next == ruling::open) {
        schedule_lease(lease);
        return true;
    }
    const bool extended = next == ruling::won;
    mine.judged = true;
    mine.heals = extended && mine.heals;
    if (!move_deadline(lease, now)) {
        return false; // whoever waits for the extension was told so
    }
    mine.confirmed = extended && rules_.guarded() && !mine.healing;
    if (mine.confirmed) {
        heal_missing(lease, now); // and does not wait for that
    }
    end_extension(lease, extended, now);
    schedule_lease(lease);
    return true;
}

void engine::end_extension(claim& lease, bool extended, time_point now) {
    extension& mine = lease.extending;
    mine.active = false;
    mine.give_up_at = forever;
    ++(extended ? counters_.renewed : counters_.renewals_failed);
    if (extended) {
        lease.renewal_delay.reset();
    }
    const auto error = extended ? std::nullopt : std::optional(errc::no_quorum);
    mine.asked_for ? host_.extended(lease, error) : host_.renewed(lease, error);
    if (lease.renew == renewal::off || lease.deadline >= lease.hold_limit) {
        lease.renew_at = forever;
    } else if (extended) {
        lease.renew_at = renewal_time(mine.sent, lease.ttl);
    } else {
        // Unknown is not lost: try again soon, until the deadline.
        const auto floor =
            std::max<std::chrono::nanoseconds>(rules_.retry_delay_min, masters_.round_trip());
        lease.renew_at = now + lease.renewal_delay.next(floor, lease.ttl / 10, random_);
    }
    start_wanted_extension(lease, now);
}

// Forward only, while the round of an extension is open. False when that is the end of the lease.
bool engine::move_deadline(claim& lease, time_point now) {
    const time_point before = lease.deadline;
    lease.deadline = std::min(
        lease.votes.lasts_until(wrong::extended_without_quorum ? 1 : rules_.quorum()),
        lease.hold_limit);
    if (lease.extending.active && !lease.extending.judged) {
        lease.deadline = std::max(lease.deadline, before);
    }
    lease.believed_until = std::max(lease.believed_until, lease.deadline);
    if (lease.deadline != before && lease.deadline != never) {
        host_.lease_changed(lease);
    }
    if (lease.deadline == never || now >= lease.lost_at()) {
        lose(lease, reason_of(lease, rules_.quorum()), now);
        return false;
    }
    schedule_lease(lease);
    return true;
}

// A third of the ttl after the last extension, or somewhat before: so that locks that were taken
// together are not all renewed together, and yet those that are due within a tick leave in one
// write.
time_point engine::renewal_time(time_point since, std::chrono::milliseconds ttl) noexcept {
    const time_point wanted =
        since + renewal_period(ttl) - random_.between({}, renewal_spread(ttl));
    const auto tick = std::chrono::nanoseconds(ttl) / 100; // of milliseconds there may be none
    return wanted - wanted.time_since_epoch() % tick;
}

void engine::schedule_lease(claim& lease) {
    const time_point next = std::min(
        lease.warn_at, lease.extending.active ? lease.extending.give_up_at : lease.renew_at);
    timers_.set(lease.wake, std::min(lease.lost_at(), next));
}

void engine::lease_due(claim& lease, time_point now) {
    if (now >= lease.lost_at()) {
        const loss_reason reason = reason_of(lease, rules_.quorum());
        // Something was due for it well before, and this process did not run to do it.
        const bool stalled = reason == loss_reason::majority_unreachable
                             && lease.held_until() - lease.wake.due > rules_.master_timeout;
        lose(lease, stalled ? loss_reason::stalled : reason, now);
        return;
    }
    if (now >= lease.warn_at) {
        lease.warn_at = forever;
        host_.held_long(lease);
    }
    if (lease.extending.active && now >= lease.extending.give_up_at) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            ballot& theirs = lease.votes.of[i];
            if (theirs.found == key_state::pending) {
                theirs.found = key_state::unknown;
                theirs.said = vote::timed_out;
                ++counters_of(i).extend_votes[vote::timed_out];
            }
        }
        if (!judge_extension(lease, now)) {
            return;
        }
    }
    if (!lease.extending.active && now >= lease.renew_at) {
        start_extension(lease, lease.ttl, false, now);
    }
    schedule_lease(lease);
}

loss_reason engine::reason_of(const claim& lease, std::size_t quorum) noexcept {
    if (lease.deadline == lease.hold_limit) {
        return loss_reason::renew_limit;
    }
    const std::size_t foreign = lease.votes.count(vote::foreign);
    const std::size_t absent = lease.votes.count(vote::absent);
    if (lease.deadline == never || foreign + absent + quorum > lease.votes.of.size()) {
        return foreign > absent ? loss_reason::foreign : loss_reason::expired;
    }
    return lease.renew == renewal::automatic ? loss_reason::majority_unreachable
                                             : loss_reason::expired;
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
    lease.stage = claim::phase::lost;
    ++lost_;
    if (wrong::removed_at_stop || now >= lease.believed_until) {
        end_lost(lease, now);
        return;
    }
    if (line* const mine = lines_.find(lease.line_form(), lease.line_key());
        mine != nullptr && !mine->pool) {
        mine->holder = lease.self; // there is nothing to ask for until it is removed
    }
    timers_.set(lease.wake, lease.believed_until);
}

// The holder of a lost lease has let go, or must have stopped.
void engine::end_lost(claim& lease, time_point now) {
    --lost_;
    wrong::own_line_not_woken ? void() : wake_line(lease, now);
    begin_removal(lease, now);
}

void engine::end_user_extensions(claim& lease, errc why) {
    if (lease.extending.active && lease.extending.asked_for) {
        host_.extended(lease, why);
        lease.extending.active = false;
    }
    for (std::size_t i = 0; i < lease.extensions_wanted.size(); ++i) {
        host_.extended(lease, why);
    }
    lease.extensions_wanted.clear();
}

} // namespace redlock::core
