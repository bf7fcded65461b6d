// A claim that asks the masters to extend a lock that exists already.
//
// If exactly half of them have its key, nobody else can have a majority, and the others get it.
// That happens after a change of the members: a majority of those before may be only half of those
// after.

#include "claim.hpp"

#include <algorithm>
#include <utility>

namespace redlock::core {

// No earlier vote is trusted. A reply after the decision counts for an extension.
void claim::attach(
    owned_key key,
    const claim_terms& wanted,
    std::chrono::milliseconds longest,
    const circumstances& at) {
    acquire(lock_form::exclusive, std::move(key), wanted, at);
    asking_.from = claim_origin::attach;
    asking_.voters = static_cast<std::uint16_t>(at.voters);
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
    const bool may_be_half = granted + pending + quorum > asking_.voters;
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
    to_ = 0;
    for (std::size_t i = 0; i < votes.of.size(); ++i) {
        if (votes.of[i].said == vote::granted) {
            const bool asked = (at.up & set_of(i)) != 0;
            votes.of[i].said = asked ? vote::pending : vote::unreachable;
            to_ |= asked ? set_of(i) : 0U;
        }
    }
    return steps::raise | steps::anew | decide_attach(at);
}

} // namespace redlock::core
