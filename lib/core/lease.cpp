// Held claims of the engine: extension, renewal, loss.
//
// The deadline of a lease is the q-th largest of the moments until which the masters' votes can be
// relied on: a partial renewal moves it as far as some majority reaches and no further. A loss is
// always signalled by the timer at `deadline - stop_margin`; the answers of a renewal only move it.
//
// Nothing of a lease is removed while its holder may still act. After a loss the keys stay until it
// has let go, or until the last deadline that it was ever shown has passed.

#include "engine.hpp"
#include "form_command.hpp"
#include "keys.hpp"

namespace redlock::core {

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
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& theirs = lease.votes.of[i];
        theirs.latency = {};
        if (!masters_[i].admitted) {
            theirs.said = masters_[i].otherwise;
            ++counters_of(i).extend_votes[theirs.said];
        } else if (theirs.asked || rules_.guarded()) {
            theirs.asked = true; // where the key is missing it is put back
            ++mine.pending;
            theirs.said = vote::pending;
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
    if (mine.pending < rules_.quorum()) {
        end_extension(lease, now);
    }
}

void engine::send_extend(
    claim& lease, std::size_t master, std::uint16_t round, rung how, time_point now) {
    if (lease.stage != claim::phase::held || now >= lease.deadline
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

void engine::extend_answered(
    claim& lease, std::size_t master, std::uint16_t round, const answer& got, time_point now) {
    if (lease.stage != claim::phase::held) {
        return;
    }
    const vote what = got.said;
    ++counters_of(master).extend_votes[what];
    if (now >= lease.held_until()) {
        // Nor is its answer counted: `held()` is false already, and must not become true again.
        lease_due(lease, now);
        return;
    }
    extension& mine = lease.extending;
    ballot& theirs = lease.votes.of[master];
    const bool current = round == mine.round;
    if (what == vote::foreign || what == vote::absent) {
        // Answers come in the order of the commands, so no later extension has put it back.
        theirs.said = what;
        theirs.until = never;
    } else if (current) {
        theirs.said = what;
        theirs.left = not_told;
        if (what == vote::granted) {
            theirs.until =
                std::max(theirs.until, guaranteed_until(mine.sent, mine.ttl, rules_.drift));
        }
    }
    if (!move_deadline(lease, now)) {
        return; // lost: whoever waits for the extension was told so
    }
    if (current && mine.active) {
        --mine.pending;
        mine.granted += what == vote::granted ? 1U : 0U;
        if (mine.granted >= rules_.quorum() || mine.granted + mine.pending < rules_.quorum()) {
            end_extension(lease, now);
            schedule_lease(lease);
        }
    }
}

void engine::end_extension(claim& lease, time_point now) {
    extension& mine = lease.extending;
    const bool extended = mine.granted >= rules_.quorum();
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
        const auto floor = std::max<std::chrono::nanoseconds>(rules_.retry_delay_min, round_trip_);
        lease.renew_at = now + lease.renewal_delay.next(floor, lease.ttl / 10, random_);
    }
    start_wanted_extension(lease, now);
}

// False when that is the end of the lease.
bool engine::move_deadline(claim& lease, time_point now) {
    const time_point before = lease.deadline;
    lease.deadline = std::min(lease.votes.lasts_until(rules_.quorum()), lease.hold_limit);
    lease.believed_until = std::max(lease.believed_until, lease.deadline);
    if (lease.deadline != before && lease.deadline != never) {
        host_.lease_changed(lease);
    }
    if (lease.deadline == never || now >= lease.held_until()) {
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
    timers_.set(lease.wake, std::min(lease.held_until(), next));
}

void engine::lease_due(claim& lease, time_point now) {
    if (now >= lease.held_until()) {
        lose(lease, reason_of(lease, rules_.quorum()), now);
        return;
    }
    if (now >= lease.warn_at) {
        lease.warn_at = forever;
        host_.held_long(lease);
    }
    if (lease.extending.active && now >= lease.extending.give_up_at) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (lease.votes.of[i].said == vote::pending) {
                lease.votes.of[i].said = vote::timed_out;
                ++counters_of(i).extend_votes[vote::timed_out];
            }
        }
        end_extension(lease, now);
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
    lease.late = true;
    lease.stage = claim::phase::lost;
    ++lost_;
    if (now >= lease.believed_until) {
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
    closing_moved(now);
    wake_line(lease, now);
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
