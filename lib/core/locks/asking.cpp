// A claim that asks: an acquire or a local handoff, until a majority has decided it. An attach:
// at the end of this file.
//
// An acquire sends the command to all masters at once, or first to one of them, the *arbiter*,
// whose refusal ends it without asking the others.
//
// With fencing, the counters of a majority that granted are set to one number, the token, before
// the claim is held (*raise*). Counters are raised only *while the lock there is ours*. The next
// owner's majority shares a master with this one, whose counter is then at least the token.

#include "claim.hpp"

#include <bit>
#include <cassert>

namespace redlock::core {

void claim::start_asking(claim_origin from, const claim_terms& wanted, const circumstances& at) {
    phase_ = phase::asking;
    std::construct_at(
        &asking_,
        asking_state{
            .count = {at.rules.size(), at.majority},
            .from = from,
            .min_validity = shortened(wanted.min_validity),
            .began = at.now,
            .patience = wanted.patience});
}

void claim::acquire(
    lock_form form, owned_key key, const claim_terms& wanted, const circumstances& at) {
    start_asking(claim_origin::acquire, wanted, at);
    form_ = form;
    key_ = std::move(key);
    fencing_ = wanted.fencing;
    transferable_ = at.rules.guarded() && wanted.transferable; // else SET is all it has
    left_to_expire_ = wanted.transferable;
    ttl_ = ttl_max_ = asked_ttl_ = shortened(wanted.ttl);
    asked_at_ = at.now; // before the first byte of it leaves
    vote_by_ = never;
    expires_at_ = at.now + ttl_ + at.rules.drift.of(ttl_);
    votes.reset(at.rules.size());
}

steps claim::hand_to(
    handle<acquire_call> next, const claim_terms& wanted, const circumstances& at) {
    assert(acts());
    ttl_ = shortened(wanted.ttl);
    ttl_max_ = std::max(ttl_max_, ttl_);
    left_to_expire_ = wanted.transferable;
    if (wrong::late_grant_lasts_anew && ttl_ != asked_ttl_) {
        asked_ttl_ = ttl_;
    }
    wanted_by = next;
    start_asking(claim_origin::hand_off, wanted, at);
    if (wrong::handoff_without_raise || !fencing_) {
        return steps::won;
    }
    extending_.active = false;
    ++handoffs_;
    // A majority must store the larger token while the lock there is ours.
    asking_.raise_to = fencing_token_ + 1;
    to_ = 0;
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        ballot& theirs = votes.of[i];
        if (at.now < theirs.until() && (at.up & set_of(i)) != 0) {
            theirs.said = vote::pending;
            to_ |= set_of(i);
        } else {
            const bool open = theirs.said == vote::granted || theirs.said == vote::pending;
            refused(i, open ? vote::unreachable : theirs.said);
        }
    }
    if (wrong::handoff_raise_not_awaited && is_open()) {
        return steps::raise | steps::won;
    }
    return steps::raise | decide(at);
}

time_point claim::begin(const circumstances& at) noexcept {
    vote_by_ = raised_by(at);
    if (attaches()) {
        expires_at_ = vote_by_ + ttl_max_ + at.rules.drift.of(ttl_max_);
    } else if (at.rules.guarded()) { // the masters may execute the command until then
        expires_at_ = vote_by_ + ttl_ + at.rules.drift.of(ttl_);
    }
    return vote_by_;
}

time_point claim::raised_by(const circumstances& at) const noexcept {
    return std::min(
        {later(at.now, at.rules.master_timeout),
         guaranteed_until(asked_at_, ttl_, at.rules.drift) - asking_.min_validity,
         asking_.patience});
}

master_set claim::ask(std::size_t arbiter) noexcept {
    asking_.arbiter = arbiter != nobody && votes.of[arbiter].said == vote::pending
                          ? static_cast<std::uint32_t>(arbiter)
                          : all_asked;
    const master_set of = asked_all() ? ~master_set{0} : set_of(asking_.arbiter);
    // To an attach, a master that cannot be reached may have the key as well.
    const bool attaching = attaches();
    master_set to = 0;
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        const bool asks = may_ask(i) && (of & set_of(i)) != 0;
        to |= asks ? set_of(i) : 0U;
        if (asks || attaching) {
            votes.of[i].asked = true;
            votes.of[i].unvouched |= attaching;
        }
    }
    return to;
}

// --- Votes

vote claim::note_grant(std::size_t master, const answer& got, const circumstances& at) {
    votes.set_left(master, got.left.value_or(lease_unknown));
    if (got.said == vote::granted) {
        votes.of[master].confirm(guaranteed_until(asked_at_, asked_ttl_, at.rules.drift));
        if (fencing_) {
            votes.set_counter(master, got.counter);
        }
    }
    return got.said;
}

steps claim::acquire_answered(const told& from, const answer& got, const circumstances& at) {
    assert(is_asking());
    ballot& theirs = votes.of[from.master];
    if (from.epoch != handoffs_ || theirs.said != vote::pending) {
        return steps::none; // it was counted as timed out, or belongs to the previous owner
    }
    if (wrong::t0_after_sends && granted() == 0) {
        asked_at_ = at.now;
    }
    const vote what = theirs.said = note_grant(from.master, got, at);
    const std::uint64_t counter = votes.counter(from.master);
    if (what == vote::granted && counter < asking_.raise_to) {
        return steps::counted | raise_late(from.master, at);
    }
    // A counter beyond the token does not count as a vote for it: this grant came after the choice
    // of the token.
    const bool ahead = what == vote::granted && asking_.raise_to != 0 && counter > asking_.raise_to;
    if (ahead) {
        votes.note(from.master, "its fencing counter is ahead");
    }
    asking_.count.add(ahead ? vote::held : what);
    if (asking_.arbiter == from.master) {
        return steps::counted | (what == vote::held ? failed(errc::contended) : steps::ask_others);
    }
    return steps::counted | decide(at);
}

steps claim::raise_answered(const told& from, const answer& got, const circumstances& at) {
    ballot& theirs = votes.of[from.master];
    if (got.said == vote::owned_by_other) {
        removal_seen_ |= theirs.remove(at.now);
    }
    const bool current = wrong::any_raise_counts || from.epoch == handoffs_;
    if (!current || theirs.said != vote::pending) {
        return steps::none;
    }
    if (attaches()) {
        return read_or_raised(from.master, got, at);
    }
    theirs.said = got.said;
    if (got.said == vote::held) {
        votes.note(from.master, "its fencing counter is ahead");
    }
    asking_.count.add(got.said == vote::owned_by_other ? vote::held : got.said);
    return decide(at);
}

// --- Decisions

steps claim::failed(errc why) noexcept {
    asking_.why = why;
    return steps::failed;
}

steps claim::decide(const circumstances& at) {
    if (attaches()) {
        return decide_attach(at);
    }
    switch (asking_.count.decide()) {
    case verdict::won:
        return fencing_ && asking_.raise_to == 0 ? level(at) : steps::won;
    case verdict::contended:
        return failed(errc::contended);
    case verdict::no_quorum:
        return failed(errc::no_quorum);
    default:
        return steps::none;
    }
}

// A majority granted, and its fencing counters may differ. A master that is down and whose counter
// is lower loses its vote.
steps claim::level(const circumstances& at) {
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        const std::uint64_t counter = votes.counter(i);
        asking_.raise_to = wrong::token_minimum && asking_.raise_to != 0 && counter != 0
                               ? std::min(asking_.raise_to, counter)
                               : std::max(asking_.raise_to, counter);
    }
    asking_.count = {votes.of.size(), asking_.count.quorum()};
    to_ = 0;
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        ballot& theirs = votes.of[i];
        if (!wrong::fencing_without_raise && theirs.said == vote::granted
            && votes.counter(i) < asking_.raise_to) {
            if ((at.up & set_of(i)) != 0) {
                to_ |= set_of(i);
                continue;
            }
            theirs.said = vote::unreachable;
        }
        if (theirs.said != vote::pending) {
            asking_.count.add(theirs.said);
        }
    }
    if (to_ == 0 || !is_open()) {
        return decide(at);
    }
    for (ballot& theirs : votes.of) {
        if (wrong::deadline_restarted_at_raise && theirs.until() != never) {
            theirs.confirm(guaranteed_until(at.now, ttl_, at.rules.drift));
        }
    }
    for (const std::size_t i : each_of(to_)) {
        votes.of[i].said = vote::pending;
    }
    const steps rest = wrong::raise_not_awaited ? steps::won : steps::none;
    return steps::raise | steps::anew | rest;
}

// One more master, whose reply came after the token was chosen.
steps claim::raise_late(std::size_t master, const circumstances& at) {
    votes.of[master].said = vote::pending;
    to_ = set_of(master);
    return steps::raise | decide(at);
}

void claim::believe_granted(const circumstances& at) noexcept {
    for (ballot& theirs : votes.of) {
        theirs.asked = true;
        theirs.confirm(guaranteed_until(at.now, ttl_, at.rules.drift));
    }
}

// --- Time

steps claim::out_of_time(master_set slow, master_set& silent, const circumstances& at) {
    if (!asked_all() && at.now < vote_by_) {
        return steps::ask_others;
    }
    const bool working = works(slow);
    if (at.now >= asking_.patience) {
        return failed(asked_all() && !working ? errc::no_quorum : errc::wait_timed_out);
    }
    // Checked for acquires only: a handoff just raises counters, and an attach takes whatever lease
    // is left.
    const bool used_up =
        asking_.from == claim_origin::acquire
        && at.now >= guaranteed_until(asked_at_, ttl_, at.rules.drift) - asking_.min_validity;
    if (used_up && (working || at.now < later(asked_at_, at.rules.master_timeout))) {
        return failed(working ? errc::validity_exhausted : errc::no_quorum);
    }
    const master_set open = votes.with(vote::pending);
    for (const std::size_t i : each_of(open)) {
        votes.of[i].said = vote::timed_out;
    }
    silent |= open;
    asking_.count.close();
    return decide(at);
}

bool claim::works(master_set slow) const noexcept {
    const auto open = static_cast<std::size_t>(std::popcount(votes.with(vote::pending) & slow));
    return granted() + refusals() + open >= asking_.count.quorum();
}

// --- An attach: the masters are asked to extend a lock that exists already
//
// If exactly half of them have its key, nobody else can have a majority, and the others get it.
// That happens after a change of the members: a majority of those before may be only half of those
// after.

// No earlier vote is trusted. A reply after the decision counts for an extension.
void claim::attach(
    owned_key key,
    const claim_terms& wanted,
    std::chrono::milliseconds longest,
    const circumstances& at) {
    acquire(lock_form::exclusive, std::move(key), wanted, at);
    asking_.from = claim_origin::attach;
    transferable_ = false; // it is not known how the key was set
    ttl_max_ = shortened(longest);
    extending_.sent = at.now;
    extending_.ttl = ttl_;
}

// A reply to the extension of an attach, or to HEAL.
steps claim::attach_answered(const told& from, const answer& got, const circumstances& at) {
    const steps counted = from.kind == command_kind::heal ? steps::none : steps::counted;
    ballot& theirs = votes.of[from.master];
    if (theirs.said != vote::pending) {
        return counted; // it was counted as timed out
    }
    const bool gone = got.said == vote::absent || got.said == vote::owned_by_other;
    // It may have had the key, and lost it.
    theirs.said = gone && (got.forgot || from.quarantined) ? vote::quarantined : got.said;
    if (theirs.said == vote::granted) {
        theirs.confirm(guaranteed_until(asked_at_, ttl_, at.rules.drift));
        if (asking_.at >= asking_stage::reads) { // the other masters are in a later stage
            return counted | raise_late(from.master, at);
        }
    }
    return counted | decide(at);
}

// A raise to 0 only reads the counter. So a majority first reports its counters, which are then all
// raised to one more than the largest: the fencing token distinguishes this owner from the one
// before, as after a handoff.
steps claim::read_or_raised(std::size_t master, const answer& got, const circumstances& at) {
    ballot& theirs = votes.of[master];
    if (got.said != vote::granted && got.said != vote::held) {
        theirs.said = got.said;
    } else if (got.counter == 0) {
        theirs.said = vote::error;
        votes.note(master, "it has no fencing counter for this lock");
    } else if (asking_.at == asking_stage::reads || got.counter == asking_.raise_to) {
        theirs.said = vote::granted;
        votes.set_counter(master, got.counter);
    } else if (got.counter < asking_.raise_to) { // it reported its counter late
        return raise_late(master, at);
    } else {
        theirs.said = vote::error;
        votes.note(master, "its fencing counter is ahead");
    }
    return decide(at);
}

steps claim::decide_attach(const circumstances& at) {
    const std::size_t quorum = asking_.count.quorum();
    const std::size_t granted = votes.count(vote::granted);
    const std::size_t pending = votes.count(vote::pending);
    const std::size_t absent = votes.count(vote::absent);
    const std::size_t gone = absent + votes.count(vote::owned_by_other);
    if (granted >= quorum) {
        return fencing_ && asking_.at != asking_stage::raises ? level_attach(at) : steps::won;
    }
    if (granted + pending >= quorum) {
        return steps::none;
    }
    // Not lost with half of the members: that may be all that a majority before the last change of
    // the members has become.
    if (gone >= quorum) {
        return failed(errc::lost);
    }
    const bool may_be_half = granted + pending + quorum > at.voters;
    if (pending > 0 && (gone + pending >= quorum || may_be_half)) {
        return steps::none;
    }
    // With half of the members no other owner can have a majority. Fencing counters would be
    // missing as well.
    const bool mends = may_be_half && asking_.at == asking_stage::votes && absent > 0 && !fencing_;
    return mends ? steps::mend : failed(errc::no_quorum);
}

steps claim::level_attach(const circumstances& at) {
    if (asking_.at < asking_stage::reads) {
        asking_.at = asking_stage::reads;
    } else {
        asking_.at = asking_stage::raises;
        for (std::size_t i = 0; i < votes.of.size(); ++i) {
            asking_.raise_to = std::max(asking_.raise_to, votes.counter(i) + 1);
        }
    }
    const master_set granted = votes.with(vote::granted);
    to_ = granted & at.up;
    for (const std::size_t i : each_of(granted)) {
        votes.of[i].said = (to_ & set_of(i)) != 0 ? vote::pending : vote::unreachable;
    }
    return steps::raise | steps::anew | decide_attach(at);
}

} // namespace redlock::core
