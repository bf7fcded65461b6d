// The removals of claims after their end: sends them, repeats what a master has not confirmed,
// reports each result once it is known, and drops the claim once nothing is pending.
//
// A removal follows the SET on the same connection, whatever the reply to the SET is and without
// waiting for it. If that connection broke, the removal is sent again when the master is back.

#include "core/base/decisions.hpp"
#include "core/locks/removal.hpp"
#include "engine.hpp"

#include <algorithm>

namespace redlock::core {

namespace {

// Longest time that a caller waits for the result, in `master_timeout`.
constexpr int patience = 10;

} // namespace

// Ends a claim. A holder waits for the result; nobody waits for that of a rollback.
void engine::remove(claim& ended, time_point now) {
    wire_.flush_of(ended);
    const master_set may = ended.may_be_on();
    if (wrong::rollback_unordered && may != 0) {
        for (const std::size_t i : each_of(may & masters_.up())) {
            if (ended.said(i) == vote::timed_out) {
                masters_[i].link->closed("the rollback takes another one", now);
            }
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
void engine::removed(const arrival& at, std::span<const frame::item> locks) {
    const auto latency = ballot::latency_of(at.now - at.sent);
    const told from{
        .master = at.master,
        .kind = command_kind::remove,
        .counts = masters_.is_known_member(at.master)};
    const circumstances& now = this->at(at.now);
    std::size_t found = 0;
    for (const frame::item& each : locks) {
        if (claim* const ended = claims_.find(each.claim)) {
            ended->took(at.master, latency);
            const steps what = ended->removed(from, vote::granted, now);
            removal_answered(*ended, at.master, what, at.now);
            ++found;
        }
    }
    masters_.counters(at.master).release_votes[vote::granted] += found;
}

void engine::removal_answered(claim& ended, std::size_t master, steps what, time_point now) {
    if (has(what, steps::landed)) {
        limits_.answered(master, now);
    }
    if (has(what, steps::confirmed)) {
        closing_moved(now);
    }
    counters_.removals_repeated += has(what, steps::repeated) ? 1U : 0U;
    if (ended.result_due(now)) {
        what |= settle(ended, now);
    }
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
        report_removal(ended);
    }
    if (has(what, steps::gone)) {
        timers_.cancel(ended.wake);
        claims_.destroy(ended);
    } else if (has(what, steps::later)) {
        timers_.set_by(ended.wake, ended.next_due(now));
    }
}

void engine::report_removal(claim& ended) {
    switch (ended.result()) {
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
    host_.removed(ended, ended.result());
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
