// The release of a lease by its holder, and what the end of a lease means to waiters: a local
// handoff, or a removal and the next attempt of the front. And the removals of all claims after
// their end.

#include "core/base/decisions.hpp"
#include "core/base/hash.hpp"
#include "core/base/histogram_access.hpp"
#include "core/locks/removal.hpp"
#include "engine.hpp"

#include <algorithm>

namespace redlock::core {

void engine::release(handle<claim> name, time_point now) {
    claim* const lease = claims_.find(name);
    if (lease == nullptr || !lease->acts()) {
        return; // its removal has started
    }
    if (lease->is_lost()) {
        closing_moved(now);
        end_lost(*lease, now);
    } else {
        release_held(*lease, now);
    }
    finish_closing(now);
}

void engine::release_held(claim& lease, time_point now) {
    detail::histogram_access::add(counters_.hold, now - lease.held_since());
    end_extensions(lease, errc::released);
    const bool late = now >= lease.held_until(); // and the timer has not fired yet
    if (wrong::old_holder_releases && !late) {   // so the key is still its own
        for (const std::size_t i : each_of(masters_.up())) {
            wire_.send(i, {"DEL", lease.key()}, {.kind = command_kind::ping}, now);
        }
    }
    if (late || !hand_off(lease, now)) {
        wrong::own_queue_not_notified ? void() : lease_ended(lease, now);
        remove(lease, now);
    }
}

// The keys of a released lease stay for the next waiter of this process. Returns false if nobody
// gets it.
bool engine::hand_off(claim& lease, time_point now) {
    acquire_call* const chosen = closing() ? nullptr : next_owner(lease, now);
    if (chosen == nullptr) {
        return false;
    }
    acquire_call& next = *chosen;
    if (next.stage == acquire_call::phase::attempting) {
        roll_back(next, *claims_.find(next.attempt), false, now);
    }
    end_scan(next);
    ++counters_.local_handoffs;
    ++counters_.released[release_result::released];
    host_.removed(lease, release_result::released);
    const time_point deadline = lease.deadline();
    const steps what = lease.hand_to(next.self, next.terms(), at(now));
    next.attempt = lease.self;
    if (what != steps::won) { // a raise
        next.stage = acquire_call::phase::attempting;
        ++next.attempts;
        timers_.cancel(lease.wake);
        timers_.set(
            next.wake, std::min({later(now, rules_.master_timeout), deadline, next.wait_until}));
    }
    decided(lease, what, now);
    return true;
}

acquire_call* engine::next_owner(claim& lease, time_point now) {
    wait_queue* const mine = queue_of(lease);
    if (mine == nullptr || mine->empty()) {
        return nullptr;
    }
    time_point& since = lease.is_slot() ? lease.handed_since() : mine->handed_since;
    offered_lease offer{
        .lasts_until = lease.lasts_until(at(now)),
        .ttl = lease.ttl(),
        .fencing = lease.fencing(),
        .transferable = !rules_.guarded() || !lease.sets_natively(),
        .handed_since = since};
    if (lease.is_slot()) {
        offer.slots = static_cast<std::uint32_t>(lease.slots().size());
        offer.highest = lease.slots().back();
    }
    acquire_call* const chosen = mine->hand(offer, view_of(*mine, now));
    if (chosen != nullptr) {
        since = since == never ? now : since;
    }
    return chosen;
}

void engine::lease_ended(const claim& lease, time_point now) {
    const std::string_view release = lease.token_text().substr(0, release_name_size);
    time_point others_until = yields_until(lease.form(), lease.key());
    if (others_until != never) { // the count of this release arrives with its reply
        others_until = later(now, masters_.round_trip() + masters_.yield());
        const std::uint64_t lock = hash_of_key(lease.key());
        wire_.listeners().others_wait(
            lock, others_until, release, wire_.listeners().waited(lock)->others);
    }
    wait_queue* const mine = queue_of(lease);
    if (mine == nullptr) {
        return;
    }
    const time_point since = lease.is_slot() ? lease.handed_since() : mine->handed_since;
    wake(*mine, mine->released(release, since, others_until, view_of(*mine, now)));
    if (mine->lingers) {
        timers_.set(mine->wake, others_until);
    }
    end_if_unused(*mine);
}

// --- Removals: sends them, repeats what a master has not confirmed, reports each result once it is
// known, and drops the claim once nothing is pending
//
// A removal follows the SET on the same connection, whatever the reply to the SET is and without
// waiting for it. If that connection broke, the removal is sent again when the master is back.

namespace {

// Longest time that a caller waits for the result, in `master_timeout`.
constexpr int patience = 10;

} // namespace

// Ends a claim. A holder waits for the result; nobody waits for that of a rollback.
void engine::remove(claim& ended, time_point now) {
    wire_.flush_of(ended);
    const master_set may = ended.may_be_on();
    if (wrong::rollback_unordered) {
        const master_set slow = ended.votes.with(vote::timed_out);
        for (const std::size_t i : each_of(may & slow & masters_.up())) {
            masters_[i].link->closed("the rollback takes another one", now);
        }
    }
    const master_set there = may & masters_.up();
    ended.remove(there, may & ~there, at(now));
    for (std::size_t i = 0; ended.result_wanted() && i < masters_.size(); ++i) {
        if ((may & set_of(i)) == 0) {
            ended.not_asked(i, masters_[i].otherwise);
        }
    }
    master_set to = 0;
    for (const std::size_t i : each_of(there)) {
        if (limits_.has_room(i)) {
            to |= set_of(i);
        } else {
            limits_.search(i, now);
        }
    }
    send_removal(ended, to, now);
    settled(ended, settle(ended, now) | steps::later, now);
}

void engine::send_removal(claim& ended, master_set to, time_point now) {
    for (const std::size_t i : each_of(ended.sent(to))) {
        limits_.sent(i);
    }
    wire_.remove(ended, to, now);
}

// What a master that comes back has missed, within the limits.
void engine::send_pending(std::size_t master, time_point now) {
    limits_.turn(
        master,
        claims_,
        now,
        [&](const claim& ended) { return ended.is_ending() && ended.unsent(master); },
        [&](claim& ended) { send_removal(ended, set_of(master), now); });
}

// The most frequent reply, in one pass.
void engine::removed(const told& from, std::span<const frame::item> locks) {
    const auto latency = ballot::latency_of(from.now - from.sent);
    const circumstances& here = at(from.now);
    std::size_t found = 0;
    for (const frame::item& each : locks) {
        if (claim* const ended = claims_.find(each.claim)) {
            ended->took(from.master, latency);
            const steps what = ended->removed(from, vote::granted, here);
            removal_answered(*ended, from.master, what, from.now);
            ++found;
        }
    }
    masters_.counters(from.master).release_votes[vote::granted] += found;
}

void engine::removal_answered(claim& ended, std::size_t master, steps what, time_point now) {
    if (has(what, steps::landed)) {
        limits_.answered(master, now);
    }
    if (has(what, steps::confirmed)) {
        closing_moved(now);
    }
    counters_.removals_repeated += has(what, steps::repeated) ? 1U : 0U;
    if (has(what, steps::known | steps::gone | steps::later)) {
        settled(ended, what, now);
    }
}

// Very many removals take longer than `master_timeout` before they leave, and before a master comes
// to them. None is late while its commands leave and its masters reply to those before.
steps engine::settle(claim& ended, time_point now) {
    const time_point limit = later(ended.asked_at(), patience * rules_.master_timeout);
    time_point until = limit;
    master_set active = 0;
    const bool due = ended.result_due(now) && now < limit;
    for (std::size_t i = 0; due && i < masters_.size(); ++i) {
        const connection& link = *masters_[i].link;
        const time_point silent_at = later(link.active_at(), rules_.master_timeout);
        if (link.up() && now < silent_at) {
            active |= set_of(i);
            until = std::min(until, silent_at);
        }
    }
    return ended.settle(active, until, at(now));
}

// Reports the result once it is known. Drops the claim once no removal is pending.
void engine::settled(claim& ended, steps what, time_point now) {
    if (has(what, steps::known)) {
        const release_result result = ended.result();
        ++counters_.released[result];
        host_.removed(ended, result);
    }
    if (has(what, steps::gone)) {
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    } else if (has(what, steps::later)) {
        timers_.set_by(ended.wake, ended.next_due(now));
    }
}

void engine::removal_due(claim& ended, time_point now) {
    bool last = false;
    for (const std::size_t i : each_of(ended.repeats(last, at(now)))) {
        if (last || limits_.has_room(i)) {
            send_removal(ended, set_of(i), now);
        } else {
            limits_.search(i, now);
        }
    }
    settled(ended, settle(ended, now) | steps::later, now);
}

} // namespace redlock::core
