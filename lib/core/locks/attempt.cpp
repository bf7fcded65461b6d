#include "attempt.hpp"

#include "core/base/decisions.hpp"

#include <algorithm>

namespace redlock::core {

namespace {

// Calls f(master, its ballot) for each.
template <typename F>
void for_each_ballot(claim_record& mine, F f) {
    for (std::size_t i = 0; i < mine.votes.of.size(); ++i) {
        f(i, mine.votes.of[i]);
    }
}

} // namespace

master_set attempt::ask(claim_record& mine, std::size_t arbiter) noexcept {
    arbiter_ = arbiter != nobody && mine.votes.of[arbiter].said == vote::pending
                   ? static_cast<std::uint32_t>(arbiter)
                   : all_asked;
    const master_set of = asked_all() ? ~master_set{0} : set_of(arbiter_);
    master_set to = 0;
    for_each_ballot(mine, [&](std::size_t i, ballot& theirs) {
        if (theirs.said == vote::pending && !theirs.asked && (of & set_of(i)) != 0) {
            theirs.asked = true;
            to |= set_of(i);
        }
    });
    return to;
}

attempt::decision attempt::extended(
    claim_record& mine, std::size_t master, const answer& got, const settings& rules) noexcept {
    ballot& theirs = mine.votes.of[master];
    if (theirs.said != vote::pending) {
        return {}; // it was counted as timed out
    }
    theirs.said = got.said;
    if (got.said == vote::granted) {
        theirs.confirm(guaranteed_until(mine.asked_at, mine.ttl, rules.drift));
        if (stage_ >= stage::reads) { // the other masters are in a later stage
            return raise_late(mine, master);
        }
    }
    return decide(mine);
}

attempt::decision attempt::raised(claim_record& mine, std::size_t master, const answer& got) {
    if (attaches()) {
        return read_or_raised(mine, master, got);
    }
    mine.votes.of[master].said = got.said;
    if (got.said == vote::held) {
        mine.votes.note(master, "its fencing counter is ahead");
    }
    count_.add(got.said == vote::owned_by_other ? vote::held : got.said);
    return decide(mine);
}

// A raise to 0 only reads the counter. So a majority first reports its counters, which are then all
// raised to one more than the largest: the fencing token distinguishes this owner from the one
// before, as after a handoff.
attempt::decision
attempt::read_or_raised(claim_record& mine, std::size_t master, const answer& got) {
    ballot& theirs = mine.votes.of[master];
    if (got.said != vote::granted && got.said != vote::held) {
        theirs.said = got.said;
    } else if (got.counter == 0) {
        theirs.said = vote::error;
        mine.votes.note(master, "it has no fencing counter for this lock");
    } else if (stage_ == stage::reads || got.counter == raise_to_) {
        theirs.said = vote::granted;
        mine.votes.set_counter(master, got.counter);
    } else if (got.counter < raise_to_) { // it reported its counter late
        return raise_late(mine, master);
    } else {
        theirs.said = vote::error;
        mine.votes.note(master, "its fencing counter is ahead");
    }
    return decide(mine);
}

attempt::decision attempt::decide_attach(const claim_record& mine) const noexcept {
    const std::size_t quorum = count_.quorum();
    const std::size_t granted = mine.votes.count(vote::granted);
    const std::size_t pending = mine.votes.count(vote::pending);
    const std::size_t absent = mine.votes.count(vote::absent);
    const std::size_t gone = absent + mine.votes.count(vote::owned_by_other);
    if (granted >= quorum) {
        const bool levels = mine.fencing && stage_ != stage::raises;
        return {levels ? decision::kind::level : decision::kind::won};
    }
    if (granted + pending >= quorum) {
        return {};
    }
    // Not lost with half of the members: that may be all that a majority before the last change of
    // the members has become.
    if (gone >= quorum) {
        return lost(errc::lost);
    }
    const bool may_be_half = granted + pending + quorum > voters_;
    if (pending > 0 && (gone + pending >= quorum || may_be_half)) {
        return {};
    }
    // With half of the members no other owner can have a majority. Fencing counters would be
    // missing as well.
    const bool heals = may_be_half && stage_ == stage::votes && absent > 0 && !mine.fencing;
    return heals ? decision{decision::kind::heal} : lost(errc::no_quorum);
}

master_set attempt::heal(claim_record& mine, master_set up) noexcept {
    stage_ = stage::heals;
    master_set to = 0;
    for_each_ballot(mine, [&](std::size_t i, ballot& theirs) {
        if (theirs.said == vote::absent && (up & set_of(i)) != 0) {
            theirs.said = vote::pending;
            to |= set_of(i);
        }
    });
    return to;
}

attempt::decision
attempt::level(claim_record& mine, master_set up, time_point now, const settings& rules) {
    if (attaches()) {
        return level_attach(mine, up);
    }
    if (from_ == origin::hand_off) {
        return accept_handoff(mine, up, now);
    }
    for (std::size_t i = 0; i < mine.votes.of.size(); ++i) {
        const std::uint64_t counter = mine.votes.counter(i);
        raise_to_ = wrong::token_minimum && raise_to_ != 0 && counter != 0
                        ? std::min(raise_to_, counter)
                        : std::max(raise_to_, counter);
    }
    count_ = {mine.votes.of.size(), count_.quorum()};
    decision next{.next = decision::kind::raise, .anew = true};
    for_each_ballot(mine, [&](std::size_t i, ballot& theirs) {
        if (!wrong::fencing_without_raise && theirs.said == vote::granted
            && mine.votes.counter(i) < raise_to_) {
            if ((up & set_of(i)) != 0) {
                next.masters |= set_of(i);
                return;
            }
            theirs.said = vote::unreachable;
        }
        if (theirs.said != vote::pending) {
            count_.add(theirs.said);
        }
    });
    if (next.masters == 0 || count_.decide() != verdict::open) {
        return decide(mine);
    }
    for_each_ballot(mine, [&](std::size_t i, ballot& theirs) {
        if (wrong::deadline_restarted_at_raise && theirs.until() != never) {
            theirs.confirm(guaranteed_until(now, mine.ttl, rules.drift));
        }
        if ((next.masters & set_of(i)) != 0) {
            theirs.said = vote::pending;
        }
    });
    return next;
}

attempt::decision attempt::level_attach(claim_record& mine, master_set up) noexcept {
    if (stage_ < stage::reads) {
        stage_ = stage::reads;
    } else {
        stage_ = stage::raises;
        for (std::size_t i = 0; i < mine.votes.of.size(); ++i) {
            raise_to_ = std::max(raise_to_, mine.votes.counter(i) + 1);
        }
    }
    decision next{.next = decision::kind::raise, .anew = true};
    for_each_ballot(mine, [&](std::size_t i, ballot& theirs) {
        if (theirs.said == vote::granted) {
            const bool asked = (up & set_of(i)) != 0;
            theirs.said = asked ? vote::pending : vote::unreachable;
            next.masters |= asked ? set_of(i) : 0U;
        }
    });
    return next;
}

// The next owner's token must be larger, and a majority must store it while the lock there is ours.
attempt::decision
attempt::accept_handoff(claim_record& mine, master_set up, time_point now) noexcept {
    raise_to_ = mine.fencing_token + 1;
    decision next{.next = decision::kind::raise, .anew = true};
    for_each_ballot(mine, [&](std::size_t i, ballot& theirs) {
        if (now < theirs.until() && (up & set_of(i)) != 0) {
            theirs.said = vote::pending;
            next.masters |= set_of(i);
        } else {
            const bool open = theirs.said == vote::granted || theirs.said == vote::pending;
            refused(mine, i, open ? vote::unreachable : theirs.said);
        }
    });
    return next;
}

time_point attempt::give_up_at(
    const claim_record& mine, const limits& caller, time_point now, const settings& rules) {
    return std::min(
        {later(now, rules.master_timeout),
         guaranteed_until(mine.asked_at, mine.ttl, rules.drift) - caller.min_validity,
         caller.patience});
}

attempt::decision attempt::due(
    const claim_record& mine,
    const limits& caller,
    master_set slow,
    time_point now,
    const settings& rules) const noexcept {
    if (!asked_all() && now < mine.vote_by) {
        return {decision::kind::others};
    }
    const bool working = works(mine, slow, count_.quorum());
    if (now >= caller.patience) {
        return lost(asked_all() && !working ? errc::no_quorum : errc::wait_timed_out);
    }
    // Checked for acquires only: a handoff just raises counters, and an attach takes whatever lease
    // is left.
    const bool used_up =
        from_ == origin::acquire
        && now >= guaranteed_until(mine.asked_at, mine.ttl, rules.drift) - caller.min_validity;
    if (used_up && (working || now < later(mine.asked_at, rules.master_timeout))) {
        return lost(working ? errc::validity_exhausted : errc::no_quorum);
    }
    return {decision::kind::over};
}

bool attempt::works(const claim_record& mine, master_set slow, std::size_t quorum) const noexcept {
    std::size_t working = count_.granted() + count_.held();
    for (std::size_t i = 0; i < mine.votes.of.size(); ++i) {
        const bool open = mine.votes.of[i].said == vote::pending;
        working += open && (slow & set_of(i)) != 0 ? 1U : 0U;
    }
    return working >= quorum;
}

master_set attempt::close(claim_record& mine) noexcept {
    master_set silent = 0;
    for_each_ballot(mine, [&](std::size_t i, ballot& theirs) {
        if (theirs.said == vote::pending) {
            theirs.said = vote::timed_out;
            silent |= set_of(i);
        }
    });
    count_.close();
    return silent;
}

} // namespace redlock::core
