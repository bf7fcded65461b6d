// What comes from the masters: answers to commands of claims, notifications, and changes in which
// of them may vote.

#include "core/base/decisions.hpp"
#include "core/bytes/keys.hpp"
#include "engine.hpp"

#include <vector>

namespace redlock::core {

void engine::clock_stepped(std::size_t master, std::chrono::microseconds by, time_point now) {
    if (wrong::step_ends_quarantine) {
        return;
    }
    if (const auto change = masters_.clock_stepped(master, now)) {
        sender_.write_soon();
        log_.clock_stepped(master, by);
        voters_changed(*change, now);
    }
}

void engine::admission_changed(std::size_t master, time_point now) {
    voters_changed(masters_.admission_changed(master, now), now);
    sender_.write_soon(); // handshakes that the record of this master has made useful
    removals_.connection_changed(master, now);
    if (!masters_[master].link->up()) {
        replies_.drop_unsent(master, now);
    }
}

void engine::voters_changed(const admission_change& change, time_point now) {
    if (change.members) {
        members_changed(now);
    }
    if (change.masters != 0) {
        audience_.forget(); // their arbiters may be other masters
    }
    for (const std::size_t i : each_of(change.masters)) {
        const master& one = masters_[i];
        if (!one.link->up()) {
            continue;
        }
        if (!wrong::sent_in_quarantine && !one.admitted) {
            replies_.drop_unsent(i, now);
        }
        log_.voter_changed(i, now);
    }
    if (change.ready) {
        acquires_.outage_over(now);
    }
}

// An attempt ends: a grant of this generation and one of the last are not votes for the same lock.
// A lease keeps its deadline, and its next extension is counted by the present members.
void engine::members_changed(time_point now) {
    std::vector<handle> rounds;
    claims_.for_each([&](claim& one) {
        if (one.is_held()) {
            leases_.members_changed(one);
        }
        const bool extends = !wrong::earlier_votes_count && one.is_held() && one.extending.active;
        if (one.is_asking() || extends) {
            rounds.push_back(one.self);
        }
    });
    for (const handle name : rounds) {
        claim* const one = claims_.find(name);
        if (one == nullptr) {
            continue;
        }
        if (one->is_asking()) {
            acquires_.break_off(*one, now);
        } else if (one->is_held() && one->extending.active) {
            leases_.break_off(*one, now);
        }
    }
    host_.members_changed(masters_.members());
    log_.members_changed();
}

void engine::publish_refused(std::size_t master, time_point now) {
    log_.publish_refused(master);
    notifications_changed(now);
}

void engine::notifications_changed(time_point now) {
    if (masters_.lost_notifications()) {
        acquires_.poll_soon(now);
    }
}

// `release` was announced by a master; if it is empty, a release may have been missed.
void engine::release_notified(
    std::size_t master, std::string_view channel, std::string_view release, time_point now) {
    const std::string_view lock_key = lock_of_channel(channel);
    if (waiting_.queues().has_listener(lock_key)) {
        host_.heard(lock_key);
    }
    acquires_.notified(lock_key, master, release, now);
}

void engine::again(claim& owner, const arrival& at, const answer& got) {
    const auto& [master, command, sent, now] = at;
    if (command.kind == command_kind::remove) {
        closing_moved(now); // it continues in another variant
        removals_.again(owner, at, got.for_one);
        return;
    }
    const bool grants = command.kind != command_kind::raise;
    const bool asks = command.kind == command_kind::acquire;
    if (grants && !masters_.takes(master, asks ? owner.asked_ttl : owner.extending.ttl)) {
        answered(owner, at, {.said = vote::error}); // the limit was lowered since
        return;
    }
    if (command.asks() || (owner.is_asking() && owner.asking().attaches())) {
        attempts_.again(owner, at, got.for_one);
    } else {
        leases_.again(owner, at, got.for_one);
    }
}

void engine::answered(claim& owner, const arrival& at, const answer& got) {
    switch (at.command.kind) {
    case command_kind::acquire:
        if (wrong::older_grant_counted && owner.ended()) {
            acquires_.count_for_newer(owner, at, got);
        } else if (owner.is_held()) {
            holders_.lose_if(owner, leases_.granted_late(owner, at, got), at.now);
        } else {
            acquires_.answered(owner, at, got);
        }
        break;
    case command_kind::raise:
        if (owner.is_held()) {
            holders_.lose_if(owner, leases_.raised_late(owner, at, got), at.now);
        } else {
            acquires_.answered(owner, at, got);
        }
        break;
    case command_kind::remove:
        if (removals_.answered(owner, at, got.said)) {
            closing_moved(at.now);
        }
        break;
    case command_kind::extend:
    case command_kind::heal:
        if (owner.is_asking() && owner.asking().attaches()) {
            acquires_.answered(owner, at, got);
        } else {
            holders_.lose_if(owner, leases_.answered(owner, at, got), at.now);
        }
        break;
    default:
        break;
    }
}

} // namespace redlock::core
