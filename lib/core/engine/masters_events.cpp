// What comes from the masters: notifications, and changes in which of them may vote.

#include "core/base/decisions.hpp"
#include "core/bytes/keys.hpp"
#include "engine.hpp"

namespace redlock::core {

void engine::clock_stepped(std::size_t master, std::chrono::microseconds by, time_point now) {
    if (wrong::step_ends_quarantine) {
        return;
    }
    if (const auto change = masters_.clock_stepped(master, now)) {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(by);
        log(log_level::warning,
            master,
            "its clock was stepped by " + std::to_string(ms.count())
                + " ms, or this machine's was");
        voters_changed(*change, now);
    }
}

void engine::admission_changed(std::size_t master, time_point now) {
    voters_changed(masters_.admission_changed(master, now), now);
    limits_.stop_search(master);
    if (masters_[master].link->up()) {
        limits_.search(master, now);
        send_pending(master, now);
    } else {
        wire_.drop_unsent(master, now);
    }
}

void engine::voters_changed(const admission_change& change, time_point now) {
    look_around();
    if (change.members) {
        members_changed(now);
    }
    if (change.masters != 0) {
        wire_.listeners().forget(); // their arbiters may be other masters
    }
    for (const std::size_t i : each_of(change.masters)) {
        const master& one = masters_[i];
        if (!one.link->up()) {
            continue;
        }
        if (!wrong::sent_in_quarantine && !one.admitted) {
            wire_.drop_unsent(i, now);
        }
        const bool fault = one.otherwise == vote::duplicate || one.otherwise == vote::error;
        log(fault ? log_level::warning : log_level::info,
            i,
            (one.admitted ? "admitted" : "does not vote: ") + masters_.why_not(i, now));
    }
    if (change.ready) {
        outage_reported_ = false;
        wake_fronts(&wait_queue::outage_over, now);
    }
}

// An attempt ends: a grant of this generation and one of the last are not votes for the same lock.
// A lease keeps its deadline, and its next extension is counted by the present members.
void engine::members_changed(time_point now) {
    const master_set gone = set_where(
        size(), [this](std::size_t i) { return !masters_.members().contains(rules_.members[i]); });
    std::vector<handle<claim>> rounds;
    claims_.for_each([&](claim& one) {
        if (one.is_held()) {
            one.members_changed(gone);
        }
        const bool extends = !wrong::earlier_votes_count && one.is_held() && one.extending();
        if (one.is_asking() || extends) {
            rounds.push_back(one.self);
        }
    });
    for (const handle<claim> name : rounds) {
        claim* const one = claims_.find(name);
        if (one == nullptr) {
            continue;
        }
        acquire_call* const wanted = one->is_asking() ? acquires_.find(one->wanted_by) : nullptr;
        if (wanted != nullptr) {
            fail(*wanted, *one, errc::no_quorum, now);
        } else if (one->is_held() && one->extending()) {
            decided(*one, one->give_up_round(at(now)), now);
        }
    }
    const generation& present = masters_.members();
    host_.members_changed(present);
    log(log_level::info,
        "members of the quorum, generation " + std::to_string(present.number) + ": "
            + shown(present.members));
}

// Another client may have set a longer `max_ttl`.
void engine::look_at_limit(time_point now) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        masters_.introduce_again(i, now);
    }
}

// --- The log

// An acquire has waited for some time, because too few masters vote.
void engine::log_outage(time_point now) const {
    std::string reasons;
    for (std::size_t i = 0; i < size(); ++i) {
        if (!masters_[i].admitted) {
            add_item(reasons, rules_.names[i] + " (" + masters_.why_not(i, now) + ")");
        }
    }
    log(log_level::warning,
        "waiting for a quorum: " + std::to_string(masters_.admitted()) + " of "
            + std::to_string(size()) + " masters vote, " + std::to_string(majority())
            + " are needed" + (reasons.empty() ? "" : ": ") + reasons);
}

// --- Notifications

void engine::publish_refused(std::size_t master, time_point now) {
    log(log_level::warning,
        master,
        "PUBLISH is refused, so releases notify no waiter and waiters poll: "
            + masters_[master].link->unpublished()
            + "; the ACL must allow +publish and the channels &" + rules_.key_prefix + "*");
    notifications_changed(now);
}

// `when` decides for the front of each wait queue.
void engine::wake_fronts(
    time_point (wait_queue::*when)(const wait_view&) const noexcept, time_point now) {
    acquires_.for_each([&](acquire_call& wanted) {
        wait_queue* const mine = wanted.queue;
        if (mine != nullptr && mine->front() == &wanted) {
            wake(*mine, (mine->*when)(view_of(*mine, now)));
        }
    });
}

// If no majority announces releases any more, the waiters poll.
void engine::notifications_changed(time_point now) {
    if (masters_.lost_notifications()) {
        wake_fronts(&wait_queue::poll_soon, now);
    }
}

} // namespace redlock::core
