// Fencing counters of the engine: a majority is brought to one number, which is the token, at an
// acquire whose votes came with different ones and at each hand-over.

#include "decisions.hpp"
#include "engine.hpp"
#include "form_command.hpp"

namespace redlock::core {

// A majority granted the lock. The fencing token is the largest of its counters, and is good once a
// majority has it *while the lock there is ours*: the next owner's majority shares a master with
// that one, and counts on from it.
void engine::level(operation& wanted, claim& attempt, time_point now) {
    for (const ballot& one : attempt.votes.of) {
        attempt.raise_to = wrong::token_minimum && attempt.raise_to != 0 && one.counter != 0
                               ? std::min(attempt.raise_to, one.counter)
                               : std::max(attempt.raise_to, one.counter);
    }
    attempt.count = {masters_.size(), rules_.quorum()};
    std::size_t behind = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& one = attempt.votes.of[i];
        if (!wrong::fencing_without_raise && one.said == vote::granted
            && one.counter < attempt.raise_to) {
            if (masters_[i].link->up()) {
                ++behind;
                continue;
            }
            one.said = vote::unreachable;
        }
        if (one.said != vote::pending) {
            attempt.count.add(one.said);
        }
    }
    if (attempt.count.decide() == verdict::open && behind > 0) {
        ++counters_.raised;
        give_up_in_time(wanted, attempt, now);
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            const ballot& one = attempt.votes.of[i];
            if (wrong::deadline_restarted_at_raise && one.until != never) {
                attempt.votes.of[i].until = guaranteed_until(now, attempt.ttl, rules_.drift);
            }
            if (one.said == vote::granted && one.counter < attempt.raise_to) {
                if (wrong::raise_accepts_larger) {
                    write_acquire(attempt, i, rung::eval);
                    send(i, scratch_, {.kind = command_kind::ping, .subject = {}}, now);
                }
                send_raise(attempt, i, way_of(attempt, i, command_kind::raise), now);
            }
        }
    }
    if (wrong::raise_not_awaited && attempt.count.decide() == verdict::open) {
        win(wanted, attempt, now);
        return;
    }
    decide(attempt, now);
}

void engine::send_raise(claim& attempt, std::size_t master, rung how, time_point now) {
    attempt.votes.of[master].said = vote::pending;
    scratch_.clear();
    append_raise(
        scratch_, attempt.form, how, names_of(attempt), fence_of(attempt, attempt.raise_to));
    send(
        master,
        scratch_,
        {.kind = command_kind::raise, .how = how, .form = attempt.form, .subject = attempt.self},
        now);
}

void engine::raise_answered(claim& attempt, std::size_t master, const answer& got, time_point now) {
    ballot& mine = attempt.votes.of[master];
    const bool gone = got.said == vote::foreign;
    if (gone) {
        attempt.removal_seen |= mine.remove(now);
    }
    if (attempt.stage == claim::phase::held) {
        if (gone) {
            move_deadline(attempt, now);
        }
        return;
    }
    if (mine.said != vote::pending) {
        return; // it was counted as timed out
    }
    if (!wrong::any_raise_counts && got.said == vote::granted && got.counter < attempt.raise_to) {
        return; // to what an earlier owner was given; the answer for this one is behind it
    }
    mine.said = got.said;
    if (got.said == vote::held) {
        attempt.votes.note(master, "its fencing counter is ahead");
    }
    attempt.count.add(gone ? vote::held : got.said);
    decide(attempt, now);
}

// The next owner's fencing token must be larger, and good on a majority while the lock there is
// ours: as after an acquire whose counters differ.
void engine::raise_for(operation& next, claim& lease, time_point now) {
    next.stage = operation::phase::attempting;
    ++next.attempts;
    lease.extending.active = false;
    lease.operation = next.self;
    lease.raise_to = lease.fencing_token + 1;
    lease.count = {masters_.size(), rules_.quorum()};
    timers_.cancel(lease.wake);
    timers_.set(
        next.wake,
        std::min({later(now, rules_.master_timeout), lease.held.deadline(), next.wait_until}));
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = lease.votes.of[i];
        if (now < mine.until && masters_[i].link->up()) {
            send_raise(lease, i, way_of(lease, i, command_kind::raise), now);
        } else {
            mine.said = mine.said == vote::granted || mine.said == vote::pending ? vote::unreachable
                                                                                 : mine.said;
            lease.count.add(mine.said);
        }
    }
    if (wrong::hand_over_raise_not_awaited && lease.count.decide() == verdict::open) {
        win(next, lease, now);
        return;
    }
    decide(lease, now);
}

} // namespace redlock::core
