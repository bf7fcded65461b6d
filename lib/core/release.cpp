// Release, rollback and pending removals: sends the pending removals of claims after
// their end (removal.hpp).
//
// A removal follows the SET on the same connection, whatever the reply to the SET is and without
// waiting for it. If that connection broke, the removal is sent again when the master is back.

#include "decisions.hpp"
#include "engine.hpp"
#include "form_command.hpp"
#include "keys.hpp"

namespace redlock::core {

void engine::release(handle name, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return; // its removal has started
    }
    if (lease->is_lost()) {
        closing_moved(now);
        end_lost(*lease, now);
        finish_closing(now);
        return;
    }
    end_hold(*lease, now);
    end_user_extensions(*lease, errc::released);
    const bool late = now >= lease->held().held_until(); // and the timer has not fired yet
    if (wrong::old_holder_releases) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if (masters_[i].link->up()) {
                std::string bytes;
                append_remove(
                    bytes,
                    command_variant::eval,
                    native_delete::none,
                    lease->key,
                    lease->token_text(),
                    {});
                sender_.send(i, bytes, {.kind = command_kind::ping, .subject = {}}, now);
            }
        }
    }
    if (late || !hand_off_locally(*lease, now)) {
        wrong::own_queue_not_notified ? void() : wake_queue(*lease, now);
        begin_removal(*lease, now);
    }
    finish_closing(now);
}

bool engine::abandon(handle name) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return false;
    }
    lost_ -= lease->is_lost() ? 1U : 0U;
    if (lease->is_held()) {
        end_user_extensions(*lease, errc::released);
    }
    timers_.cancel(lease->wake);
    wait_queue* const mine = queues_.find(lease->waiting_form(), lease->line_key());
    claims_.destroy(*lease);
    if (mine != nullptr) {
        end_queue(*mine);
    }
    if (life_ == life::closing && !waits_to_close()) {
        close_by_ = never; // the next event ends the closing
    }
    return true;
}

void engine::begin_removal(claim& ended, time_point now) {
    sender_.flush_of(ended);
    const bool wanted = ended.acts(); // the result of a rollback is not needed
    const bool late = wanted && (ended.is_lost() || now >= ended.held().held_until());
    ended.operation = {};
    ended.end(
        {now,
         !wrong::released_after_loss && late,
         wanted ? later(now, rules_.master_timeout) : forever,
         ended.expires_at});
    if (wanted) {
        begin_votes_on_removal(ended);
    }
    master_set to = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = ended.votes.of[i];
        if (wrong::no_rollback_when_unknown && ended.believed_until == never
            && mine.said != vote::granted) {
            continue;
        }
        if (mine.asked) {
            const connection& link = *masters_[i].link;
            if (wrong::rollback_unordered && link.up() && mine.said == vote::timed_out) {
                masters_[i].link->closed("the rollback takes another one", now);
            }
            ended.ending().add(i, link.up());
            if (!link.up()) {
                mine.said = vote::unreachable;
            } else if (removals_.has_room(i)) {
                to |= set_of(i);
            } else {
                removals_.search(i, now);
            }
        }
    }
    send_removals(ended, to, now);
    decide_removal(ended, now);
}

// Resets the votes, so that they explain the result of the removal only.
void engine::begin_votes_on_removal(claim& ended) {
    ended.votes.texts.clear();
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = ended.votes.of[i];
        mine.left = lease_unknown;
        mine.latency = {};
        mine.said = mine.asked || masters_[i].admitted ? vote::pending : masters_[i].otherwise;
        if (!mine.asked && masters_[i].admitted) {
            ended.votes.note(i, "it was not asked: it had no vote on this lock");
        }
    }
}

void engine::send_removals(claim& ended, master_set to, time_point now) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((to & set_of(i)) != 0 && ended.ending().sent(i)) {
            removals_.sent(i);
        }
    }
    sender_.remove(ended, to, now);
}

void engine::removal_answered(claim& ended, std::size_t master, vote what, time_point now) {
    ++masters_.counters(master).release_votes[what];
    ended.votes.of[master].said = what;
    const removal::receipt got = ended.ending().answered(
        master,
        what,
        ended.left_behind,
        now,
        later(now, rules_.health_check_interval),
        masters_.is_known_member(master));
    if (got.in_flight) {
        removals_.answered(master, now);
    }
    if (got.confirmed) {
        closing_moved(now);
    }
    counters_.removals_repeated += got.was_overdue ? 1U : 0U;
    decide_removal(ended, now);
}

// Reports the result once it is known; drops the claim once no removal is pending.
void engine::decide_removal(claim& ended, time_point now) {
    if (const auto result = ended.ending().decide(masters_.needed(), now)) {
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            if ((result->silent & set_of(i)) != 0) {
                ended.votes.of[i].said = vote::timed_out;
            }
        }
        switch (result->what) {
        case release_result::released:
            ++counters_.released;
            break;
        case release_result::expired:
        case release_result::stolen:
            ++counters_.released_late;
            break;
        case release_result::uncertain:
            ++counters_.released_uncertain;
            break;
        }
        host_.removed(ended, result->what);
    }
    if (ended.ending().settled()) {
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    } else {
        timers_.set_by(ended.wake, ended.ending().next_due(now));
    }
}

void engine::removal_due(claim& ended, time_point now) {
    const removal::repeat again = ended.ending().due(now, masters_.up(), ended.left_behind);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if ((again.to & set_of(i)) == 0) {
            continue;
        }
        if (again.last || removals_.has_room(i)) {
            send_removals(ended, set_of(i), now);
        } else {
            removals_.search(i, now);
        }
    }
    decide_removal(ended, now);
}

void engine::send_pending_removals(std::size_t master, time_point now) {
    removals_.turn(
        master,
        claims_,
        now,
        [&](const claim& ended) { return ended.is_ending() && ended.ending().unsent(master); },
        [&](claim& ended) { send_removals(ended, set_of(master), now); });
}

} // namespace redlock::core
