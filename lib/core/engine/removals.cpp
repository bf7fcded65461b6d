#include "removals.hpp"

#include "core/base/decisions.hpp"

#include <algorithm>

namespace redlock::core {

// A reply, or the break of its connection. Returns whether it confirms the removal.
inline bool removals::settle(claim& ended, const arrival& at, vote what, bool counts) {
    ended.votes.of[at.master].said = what;
    const removal::receipt got = ended.ending().answered(
        ended, at.master, what, at.now, rules_.health_check_interval, counts);
    if (got.in_flight) {
        limits_.answered(at.master, at.now);
    }
    counters_.removals_repeated += got.was_overdue ? 1U : 0U;
    if (!decide(ended, at.now) && got.pending) {
        schedule(ended, at.now);
    }
    return got.confirmed;
}

// Reports the result once it is known. Drops the claim once no removal is pending; then it returns
// true.
inline bool removals::decide(claim& ended, time_point now) {
    if (ended.ending().is_due(now)) {
        wait_for_active(ended, now);
    }
    if (ended.ending().decided(masters_.majority(), now)) {
        report(ended);
    }
    if (!ended.ending().settled()) {
        return false;
    }
    timers_.cancel(ended.wake);
    claims_.destroy(ended);
    return true;
}

// Very many removals take longer than `master_timeout` before they leave, and before a master comes
// to them. None is late while its commands leave and its masters reply to those before.
void removals::wait_for_active(claim& ended, time_point now) {
    const time_point limit = later(ended.asked_at, removal::patience * rules_.master_timeout);
    time_point until = limit;
    master_set active = 0;
    for (std::size_t i = 0; now < limit && i < masters_.size(); ++i) {
        const connection& link = *masters_[i].link;
        const time_point silent_at = later(link.active_at(), rules_.master_timeout);
        if (link.up() && now < silent_at) {
            active |= set_of(i);
            until = std::min(until, silent_at);
        }
    }
    if (ended.ending().may_wait(masters_.majority(), active)) {
        ended.ending().wait_until(until);
    }
}

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
    master_set masters = 0;
    master_set reachable = 0;
    master_set to = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& mine = ended.votes.of[i];
        if (!mine.asked) {
            continue;
        }
        if (wrong::no_rollback_when_unknown && ended.believed_until == never
            && mine.said != vote::granted) {
            continue;
        }
        if (wrong::rollback_unordered && masters_[i].link->up() && mine.said == vote::timed_out) {
            masters_[i].link->closed("the rollback takes another one", now);
        }
        masters |= set_of(i);
        if (!masters_[i].link->up()) {
            mine.said = vote::unreachable;
            continue;
        }
        reachable |= set_of(i);
        if (limits_.has_room(i)) {
            to |= set_of(i);
        } else {
            limits_.search(i, now);
        }
    }
    ended.ending().begin(masters, reachable);
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
        mine.said = vote::pending;
        if (mine.asked) {
            continue;
        }
        if (masters_[i].admitted) {
            ended.votes.note(i, "it was not asked: it had no vote on this lock");
        } else {
            mine.said = masters_[i].otherwise;
        }
    }
}

void removals::send(claim& ended, master_set to, time_point now) {
    for (const std::size_t i : each_of(ended.ending().sent(to))) {
        limits_.sent(i);
    }
    sender_.remove(ended, to, now);
}

bool removals::answered(claim& ended, const arrival& at, vote what) {
    ++masters_.counters(at.master).release_votes[what];
    return settle(ended, at, what, masters_.is_known_member(at.master));
}

bool removals::removed(const arrival& at, std::span<const batch::item> locks) {
    const auto latency = ballot::latency_of(at.now - at.sent);
    const bool counts = masters_.is_known_member(at.master);
    std::size_t found = 0;
    for (const batch::item& each : locks) {
        if (claim* const ended = claims_.find(each.claim)) {
            ended->votes.of[at.master].latency = latency;
            settle(*ended, at, vote::granted, counts);
            ++found;
        }
    }
    masters_.counters(at.master).release_votes[vote::granted] += found;
    return found > 0;
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

void removals::report(claim& ended) {
    const removal::result known = ended.ending().decide(masters_.majority());
    for (const std::size_t i : each_of(known.silent)) {
        ended.votes.of[i].said = vote::timed_out;
    }
    switch (known.what) {
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
    host_.removed(ended, known.what);
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
