#include "removals.hpp"

#include "decisions.hpp"

#include <algorithm>

namespace redlock::core {

void removals::begin(claim& ended, time_point now) {
    sender_.flush_of(ended);
    const bool wanted = ended.acts(); // the result of a rollback is not needed
    const bool late = wanted && (ended.is_lost() || now >= ended.held().held_until());
    ended.asked_at = now;
    ended.end(
        {!wrong::released_after_loss && late,
         wanted ? later(now, rules_.master_timeout) : forever});
    if (wanted) {
        begin_votes(ended);
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
            } else if (limits_.has_room(i)) {
                to |= set_of(i);
            } else {
                limits_.search(i, now);
            }
        }
    }
    send(ended, to, now);
    if (!decide(ended, now)) {
        schedule(ended, now);
    }
}

// Resets the votes, so that they explain the result of the removal only.
void removals::begin_votes(claim& ended) {
    ended.votes.clear_texts();
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = ended.votes.of[i];
        ended.votes.set_left(i, lease_unknown);
        mine.latency = {};
        mine.said = mine.asked || masters_[i].admitted ? vote::pending : masters_[i].otherwise;
        if (!mine.asked && masters_[i].admitted) {
            ended.votes.note(i, "it was not asked: it had no vote on this lock");
        }
    }
}

void removals::send(claim& ended, master_set to, time_point now) {
    for (const std::size_t i : each_of(to)) {
        if (ended.ending().sent(i)) {
            limits_.sent(i);
        }
    }
    sender_.remove(ended, to, now);
}

bool removals::answered(claim& ended, const arrival& at, vote what) {
    ++masters_.counters(at.master).release_votes[what];
    ended.votes.of[at.master].said = what;
    const removal::receipt got = ended.ending().answered(
        ended,
        at.master,
        what,
        at.now,
        later(at.now, rules_.health_check_interval),
        masters_.is_known_member(at.master));
    if (got.in_flight) {
        limits_.answered(at.master, at.now);
    }
    counters_.removals_repeated += got.was_overdue ? 1U : 0U;
    if (!decide(ended, at.now) && got.pending) {
        schedule(ended, at.now);
    }
    return got.confirmed;
}

void removals::handed_off(const claim& lease) {
    ++counters_.released;
    host_.removed(lease, release_result::released);
}

void removals::again(claim& ended, const arrival& at, bool alone) {
    if (sender_.shares_calls(ended, command_kind::remove)) {
        sender_.queue(ended, command_kind::remove, set_of(at.master), at.now, alone);
    } else {
        send(ended, set_of(at.master), at.now);
    }
}

void removals::connection_changed(std::size_t master, time_point now) {
    limits_.stop_search(master);
    if (masters_[master].link->up()) {
        limits_.search(master, now);
        send_pending(master, now);
    }
}

void removals::time_passed(time_point now) {
    if (now >= limits_.due()) {
        limits_.clear_due();
        for (std::size_t i = 0; i < masters_.size(); ++i) {
            send_pending(i, now);
        }
    }
}

bool removals::on_wire(const claim& ended) const noexcept {
    const removal& left = ended.ending();
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if (left.in_flight(i) && masters_[i].link->written_mark() < ended.votes.removal_mark(i)) {
            return false;
        }
    }
    return !left.waits_for_room();
}

// Reports the result once it is known. Drops the claim once no removal is pending; then it returns
// true.
bool removals::decide(claim& ended, time_point now) {
    if (const auto result = ended.ending().decide(masters_.needed(), now)) {
        for (const std::size_t i : each_of(result->silent)) {
            ended.votes.of[i].said = vote::timed_out;
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
    const bool settled = ended.ending().settled();
    if (settled) {
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    }
    return settled;
}

void removals::due(claim& ended, time_point now) {
    const removal::repeat again = ended.ending().due(ended, masters_.up(), now);
    for (const std::size_t i : each_of(again.to)) {
        if (again.last || limits_.has_room(i)) {
            send(ended, set_of(i), now);
        } else {
            limits_.search(i, now);
        }
    }
    if (!decide(ended, now)) {
        schedule(ended, now);
    }
}

void removals::send_pending(std::size_t master, time_point now) {
    limits_.turn(
        master,
        claims_,
        now,
        [&](const claim& ended) { return ended.is_ending() && ended.ending().unsent(master); },
        [&](claim& ended) { send(ended, set_of(master), now); });
}

} // namespace redlock::core
