#include "leases.hpp"

#include "core/base/decisions.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/keys.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace redlock::core {

namespace {

key_state state_of(const answer& got, bool heals) noexcept {
    switch (got.said) {
    case vote::granted:
        return heals ? key_state::healed : key_state::kept;
    case vote::absent:
        return got.forgot ? key_state::quarantined : key_state::missing;
    case vote::quarantined:
        return key_state::quarantined;
    case vote::owned_by_other:
        return key_state::owned_by_other;
    default:
        return key_state::unknown;
    }
}

} // namespace

void leases::begin(
    claim& won,
    const acquire_options& options,
    time_point deadline,
    time_point limit,
    time_point now) {
    won.believed_until = deadline;
    time_point next_at = forever;
    if (won.extending.active) { // of the owner before a local handoff: it goes on
        next_at = later(won.extending.sent, rules_.master_timeout);
    } else if (options.renew == renewal::automatic) {
        const time_point renewed_at =
            won.votes.lasts_until(masters_.majority()) - (won.ttl - rules_.drift.of(won.ttl));
        next_at = lease::renewal_time(renewed_at, won.ttl, random_);
    }
    won.hold(lease(
        {.renew = options.renew,
         .stop_margin = options.stop_margin,
         .hold_limit = limit,
         .warn_at = rules_.held_warning.count() == 0 ? forever : later(now, rules_.held_warning)},
        now,
        deadline,
        next_at));
    schedule(won);
}

void leases::end(claim& lease, errc why, time_point now) {
    counters_.hold.add(now - lease.held().held_since());
    end_extensions(lease, why);
}

void leases::lose(claim& lease, loss_reason reason, time_point now) {
    ++counters_.lost;
    ++counters_.lost_by[reason];
    counters_.hold.add(now - lease.held().held_since());
    if (host_.logs(log_level::error)) {
        host_.log(
            log_level::error,
            shown(lease.form, lease.key, rules_.key_prefix)
                + ": lost: " + std::string(to_string(reason)));
    }
    host_.lease_lost(lease, reason);
    end_extensions(lease, reason == loss_reason::closed ? errc::closed : errc::lost);
    lease.lose();
}

void leases::end_extensions(claim& lease, errc why) {
    for (std::size_t left = lease.held().drop_wanted(lease); left > 0; --left) {
        host_.extended(lease, why);
    }
}

void leases::extend(claim& lease, std::chrono::milliseconds ttl, time_point now) {
    lease.held().want(ttl);
    start_wanted(lease, now);
    schedule(lease);
}

void leases::start_wanted(claim& lease, time_point now) {
    while (const auto ttl = lease.held().next_wanted(lease)) {
        if (start(lease, *ttl, true, now)) {
            return;
        }
        report_round(lease, false, now);
    }
}

bool leases::start(claim& lease, std::chrono::milliseconds ttl, bool asked_for, time_point now) {
    if (const auto limit = masters_.renewal_limit(); !asked_for && limit.count() != 0) {
        ttl = std::min(ttl, limit); // it was lowered since
        lease.ttl = shortened(ttl);
    }
    lease.held().extend(lease, ttl, asked_for, now, rules_);
    master_set to = 0;
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        ballot& theirs = lease.votes.of[i];
        theirs.latency = {};
        theirs.found = key_state::unknown;
        // A master in quarantine is asked as well: a key that is still there excludes all other
        // owners.
        const bool remembers = rules_.guarded() && masters_[i].otherwise == vote::quarantined;
        const bool takes = masters_.takes(i, ttl);
        if ((!masters_[i].admitted && !remembers) || !takes) {
            theirs.said = takes ? masters_[i].otherwise : vote::error;
            theirs.found = masters_[i].is_fit() ? key_state::unknown : key_state::ineligible;
            ++masters_.counters(i).extend_votes[theirs.said];
        } else if (theirs.asked || rules_.guarded()) { // a key that is missing may be healed
            to |= set_of(i);
            theirs.said = vote::pending;
            theirs.found = key_state::pending;
        }
    }
    sender_.extend(lease, to, now);
    if (!asked_for) {
        host_.renewing(lease);
    }
    return static_cast<std::size_t>(std::popcount(to)) >= masters_.majority();
}

// Creates the key on a master without it. Sent only after the round was judged.
void leases::heal(claim& lease, std::size_t master, std::uint16_t round, time_point now) {
    if (!lease.is_held() || !lease.held().may_send(lease, round, now) || !lease.extending.heals) {
        return;
    }
    lease.held().heal(lease, master, rules_.drift);
    sender_.send_alone(lease, command_kind::heal, master, round, now);
}

void leases::heal_missing(claim& lease, time_point now) {
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        const connection& link = *masters_[i].link;
        if (lease.votes.of[i].found == key_state::missing && link.up() && !link.quarantined(now)
            && masters_[i].is_fit() && masters_.takes(i, lease.extending.ttl)) {
            heal(lease, i, lease.extending.round, now);
        }
    }
}

leases::loss leases::answered(claim& lease, const arrival& at, const answer& got) {
    const auto& [master, command, sent, now] = at;
    if (lease.is_held() && now >= lease.held().lost_at(lease)) {
        // Its reply does not count: `held()` is false already, and must not become true again.
        return due(lease, now);
    }
    if (!lease.is_held() && !lease.is_asking()) {
        return std::nullopt;
    }
    const bool heals = command.kind == command_kind::heal;
    key_state found = wrong::any_reply_extends && got.said != vote::unreachable
                          ? key_state::kept
                          : state_of(got, heals);
    // The script used the master's clock, which may have been stepped. So our own count of the
    // quarantine applies.
    if (rules_.guarded() && masters_[master].link->quarantined(now)
        && (found == key_state::missing || found == key_state::healed)) {
        found = key_state::quarantined;
    }
    if (found == key_state::unknown && !masters_[master].is_fit()) {
        found = key_state::ineligible;
    }
    if (wrong::late_rollback_to_non_voters && got.healed) {
        sender_.send(master, {"DEL", lease.key}, {.kind = command_kind::ping}, now);
    }
    if (!heals) {
        ++masters_.counters(master).extend_votes[got.said];
    }
    lease.removal_seen |= lease.extending.count(
        lease.votes.of[master], found, command.round, heals, now, rules_.drift);
    if (!lease.is_held()) {
        return std::nullopt; // during a local handoff only the replies to the raise decide
    }
    const auto next = lease::answered(lease, master, got.said, found, command.round);
    if (const loss lost = move_deadline(lease, now)) {
        return lost;
    }
    if (next == lease::next::judge) {
        return judge(lease, now);
    }
    if (next == lease::next::heal) {
        heal_missing(lease, now);
    }
    return std::nullopt;
}

leases::loss leases::granted_late(claim& lease, const arrival& at, const answer& got) {
    ballot& theirs = lease.votes.of[at.master];
    const vote what = attempt::note(lease, at.master, got, rules_.drift);
    ++masters_.counters(at.master).acquire_votes[what];
    // During an extension, `pending` is the state of its reply.
    if (theirs.said == vote::pending && !lease.extending.active) {
        theirs.said = what;
    }
    const bool later =
        theirs.until() > lease.held().deadline() && at.now < lease.held().held_until();
    return later ? move_deadline(lease, at.now) : std::nullopt; // a majority can use it
}

leases::loss leases::raised_late(claim& lease, const arrival& at, const answer& got) {
    if (got.said != vote::owned_by_other) {
        return std::nullopt;
    }
    lease.removal_seen |= lease.votes.of[at.master].remove(at.now);
    return move_deadline(lease, at.now);
}

void leases::again(claim& lease, const arrival& at, bool alone) {
    const auto& [master, command, sent, now] = at;
    if (command.kind == command_kind::heal) {
        heal(lease, master, command.round, now);
    } else if (!sender_.shares_calls(lease, command_kind::extend)) {
        sender_.extend(lease, master, command.round, now);
    } else if (lease.is_held() && lease.held().may_send(lease, command.round, now)) {
        sender_.queue(lease, command_kind::extend, set_of(master), now, alone);
    }
}

void leases::members_changed(claim& lease) {
    lease.held().members_changed(lease);
    for (std::size_t i = 0; i < masters_.size(); ++i) {
        if (!masters_.members().contains(rules_.members[i])) {
            lease.votes.of[i].forget_all();
        }
    }
}

void leases::break_off(claim& lease, time_point now) {
    end_round(lease, false, now);
    schedule(lease);
}

// What follows from the replies so far.
leases::loss leases::judge(claim& lease, time_point now) {
    ruling next = lease.held().judge(lease, masters_.voters(), masters_.majority(), now, rules_);
    if (next == ruling::heal) {
        heal_missing(lease, now);
        next = lease.held().judge(lease, masters_.voters(), masters_.majority(), now, rules_);
    }
    if (next == ruling::open) {
        schedule(lease);
        return std::nullopt;
    }
    if (const loss lost = move_deadline(lease, now)) {
        return lost;
    }
    if (lease.extending.confirmed) {
        heal_missing(lease, now); // without waiting for the replies
    }
    end_round(lease, next == ruling::won, now);
    schedule(lease);
    return std::nullopt;
}

void leases::end_round(claim& lease, bool extended, time_point now) {
    report_round(lease, extended, now);
    start_wanted(lease, now);
}

void leases::report_round(claim& lease, bool extended, time_point now) {
    lease.held().end_extension(lease, extended, now, masters_.retry_floor(), random_);
    ++(extended ? counters_.renewed : counters_.renewals_failed);
    const auto error = extended ? std::nullopt : std::optional(errc::no_quorum);
    lease.extending.asked_for ? host_.extended(lease, error) : host_.renewed(lease, error);
}

// Forward only, while the round of an extension is open.
leases::loss leases::move_deadline(claim& lease, time_point now) {
    if (lease.held().move_deadline(lease, masters_.majority())
        && lease.held().deadline() != never) {
        host_.lease_changed(lease);
    }
    if (lease.held().lost(lease, now)) {
        return lease.held().reason(lease, masters_.majority());
    }
    schedule(lease);
    return std::nullopt;
}

leases::loss leases::due(claim& lease, time_point now) {
    for (;;) {
        switch (lease.held().due(lease, now)) {
        case lease::event::stop: {
            const loss_reason reason = lease.held().reason(lease, masters_.majority());
            // The timer was due much earlier: this process did not run.
            const bool stalled =
                reason == loss_reason::majority_unreachable
                && lease.held().held_until() - lease.wake.due > rules_.master_timeout;
            return stalled ? loss_reason::stalled : reason;
        }
        case lease::event::warn:
            host_.held_long(lease);
            break;
        case lease::event::give_up:
            for (const std::size_t i : each_of(lease::give_up(lease))) {
                ++masters_.counters(i).extend_votes[vote::timed_out];
            }
            if (const loss lost = judge(lease, now)) {
                return lost;
            }
            break;
        case lease::event::renew:
            if (!start(lease, lease.ttl, false, now)) {
                end_round(lease, false, now);
            }
            schedule(lease);
            return std::nullopt;
        case lease::event::none:
            schedule(lease);
            return std::nullopt;
        }
    }
}

} // namespace redlock::core
