// An attempt: the state of a claim until a majority has decided it.
//
// There are three kinds. An acquire sends the command to all masters at once, or first to one of
// them, the *arbiter*, whose refusal ends the attempt without asking the others. An attach asks the
// masters to extend an existing lock. If exactly half of them have its key, nobody else can have a
// majority, and the others get it. That happens after a change of the members: a majority of those
// before may be only half of those after. A local handoff has the lock already: it only needs a new
// fencing token for the next owner. With fencing, the counters of a majority that granted are set
// to one number, the token, before the attempt is won (*raise*). Counters are raised only *while
// the lock there is ours*. The next owner's majority shares a master with this one, whose counter
// is then at least the token.
//
// This type counts the votes and decides. Its owner sends the commands, reports masters that cannot
// be reached, and sets a timer. The votes are in the claim's record.

#pragma once

#include "claim_record.hpp"
#include "core/base/decisions.hpp"
#include "core/base/pool.hpp"
#include "core/bytes/answer.hpp"
#include "core/masters/settings.hpp"
#include "round.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/errc.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

class attempt {
public:
    enum class origin : std::uint8_t { acquire, attach, hand_off };

    /// The decision after the replies so far.
    struct decision {
        enum class kind : std::uint8_t {
            open,   // undecided
            others, // the arbiter did not refuse: call `ask` for the other masters
            level,  // a majority granted, and its fencing counters may differ: call `level`
            raise,  // send a raise to `masters`, then call `decide`
            heal,   // half of the members have the key: call `heal`
            over,   // time is up: call `close`
            won,
            lost,
        };
        kind next = kind::open;
        errc why = errc::contended; // of a lost attempt
        master_set masters = 0;
        bool anew = false; // for `raise`: the raise starts now, with a new time limit
    };

    /// The limits of the caller.
    struct limits {
        std::chrono::milliseconds min_validity{};
        time_point patience = forever;
    };

    handle operation; // the acquire that waits for it

    attempt() noexcept = default;
    attempt(origin from, std::size_t masters, std::size_t quorum) noexcept
        : attempt(from, masters, quorum, masters) {}
    /// `voters`: the number of members, of which some may not be configured.
    attempt(origin from, std::size_t masters, std::size_t quorum, std::size_t voters) noexcept
        : count_(masters, quorum),
          voters_(static_cast<std::uint16_t>(voters)),
          from_(from) {}

    /// A local handoff, at `now`.
    static attempt accept(std::size_t masters, std::size_t quorum, time_point now) noexcept {
        attempt made(origin::hand_off, masters, quorum);
        made.accepted_at_ = now;
        return made;
    }

    origin from() const noexcept { return from_; }
    /// When its owner began: t0, or the local handoff.
    time_point began(const claim_record& mine) const noexcept {
        return from_ == origin::hand_off ? accepted_at_ : mine.asked_at;
    }
    bool attaches() const noexcept { return from_ == origin::attach; }
    /// The value to which the fencing counters are raised; 0: not known yet.
    std::uint64_t token() const noexcept { return raise_to_; }
    /// All masters were asked, not the arbiter alone.
    bool asked_all() const noexcept { return arbiter_ == all_asked; }
    const round& count() const noexcept { return count_; }

    /// \name Masters to ask
    /// \{
    /// Sets the vote of a master to which no command is sent or can be sent any more.
    void refused(claim_record& mine, std::size_t master, vote what) noexcept {
        mine.votes.of[master].said = what;
        count_.add(what);
    }
    /// Returns the masters to ask now: only `arbiter` if it is given and has no vote yet, else all
    /// without a vote.
    master_set ask(claim_record& mine, std::size_t arbiter = nobody) noexcept;
    /// \}

    /// \name What was answered
    /// \{
    /// Records a reply to the acquire, even after the decision. Returns the vote.
    static vote note(claim_record& mine, std::size_t master, const answer& got, drift_bound drift);
    /// Whether a reply counts as a vote: its command was sent after the last local handoff
    /// (`handoffs`), and the master has not voted yet.
    bool
    awaits(const claim_record& mine, std::size_t master, std::uint16_t handoffs) const noexcept {
        return handoffs == mine.handoffs && mine.votes.of[master].said == vote::pending;
    }
    /// The vote of a reply to the acquire. Requires `awaits`.
    decision acquired(claim_record& mine, std::size_t master, vote what);
    /// A reply to the extension of an attach.
    decision extended(
        claim_record& mine, std::size_t master, const answer& got, const settings& rules) noexcept;
    /// Counts the reply to a raise, or the break of its connection. Requires `awaits`.
    decision raised(claim_record& mine, std::size_t master, const answer& got);
    /// \}

    decision decide(const claim_record& mine) const noexcept;
    /// Only masters that are `up` can be raised. A master that is down and whose counter is lower
    /// loses its vote.
    decision level(claim_record& mine, master_set up, time_point now, const settings& rules);

    /// Of an attach: returns the masters to which HEAL is sent, those without the key that are
    /// `up`.
    master_set heal(claim_record& mine, master_set up) noexcept;

    /// \name Time
    /// \{
    /// Returns when an attempt or a raise that starts at `now` is given up: at `master_timeout`,
    /// when too little validity would be left, or when the caller stops waiting.
    static time_point give_up_at(
        const claim_record& mine, const limits& caller, time_point now, const settings& rules);
    /// The decision when the time limit of the attempt, or of the arbiter, has passed. `slow`: the
    /// masters that may still reply.
    decision
    due(const claim_record& mine,
        const limits& caller,
        master_set slow,
        time_point now,
        const settings& rules) const noexcept;
    /// Returns false in an outage. Otherwise a majority has voted, or some of it may only be slow.
    bool works(const claim_record& mine, master_set slow, std::size_t quorum) const noexcept;
    /// Counts masters without a reply as timed out, and returns them.
    master_set close(claim_record& mine) noexcept;
    /// \}

private:
    enum class stage : std::uint8_t { votes, heals, reads, raises };

    decision decide_attach(const claim_record& mine) const noexcept;
    decision level_attach(claim_record& mine, master_set up) noexcept;
    decision read_or_raised(claim_record& mine, std::size_t master, const answer& got);
    decision accept_handoff(claim_record& mine, master_set up, time_point now) noexcept;
    static decision lost(errc why) noexcept { return {decision::kind::lost, why}; }
    /// Decides to raise one more master, whose reply came after the token was chosen.
    static decision raise_late(claim_record& mine, std::size_t master) noexcept {
        mine.votes.of[master].said = vote::pending;
        return {.next = decision::kind::raise, .masters = set_of(master)};
    }

    round count_;
    std::uint16_t voters_ = 0;
    origin from_ = origin::acquire;
    stage stage_ = stage::votes;
    static constexpr std::uint32_t all_asked = ~std::uint32_t{0};
    std::uint32_t arbiter_ = all_asked; // the one master that was asked so far
    std::uint64_t raise_to_ = 0;
    time_point accepted_at_ = never; // of a local handoff
};

// Inline, because each lock calls them for each master.

inline attempt::decision attempt::decide(const claim_record& mine) const noexcept {
    if (attaches()) {
        return decide_attach(mine);
    }
    switch (count_.decide()) {
    case verdict::won:
        return {mine.fencing && raise_to_ == 0 ? decision::kind::level : decision::kind::won};
    case verdict::contended:
        return lost(errc::contended);
    case verdict::no_quorum:
        return lost(errc::no_quorum);
    default:
        return {};
    }
}

inline vote
attempt::note(claim_record& mine, std::size_t master, const answer& got, drift_bound drift) {
    ballot& theirs = mine.votes.of[master];
    mine.votes.set_left(master, got.left.value_or(lease_unknown));
    if (got.said != vote::granted) {
        return got.said;
    }
    if (mine.fencing && got.counter == 0) {
        return vote::error; // no guarded script replies like this
    }
    theirs.confirm(guaranteed_until(
        mine.asked_at, wrong::late_grant_lasts_anew ? mine.ttl : mine.asked_ttl, drift));
    if (mine.fencing) {
        mine.votes.set_counter(master, got.counter);
    }
    return vote::granted;
}

inline attempt::decision attempt::acquired(claim_record& mine, std::size_t master, vote what) {
    ballot& theirs = mine.votes.of[master];
    theirs.said = what;
    const std::uint64_t counter = mine.votes.counter(master);
    if (what == vote::granted && counter < raise_to_) {
        return raise_late(mine, master);
    }
    // A counter beyond the token does not count as a vote for it: this grant came after the choice
    // of the token.
    const bool ahead = what == vote::granted && raise_to_ != 0 && counter > raise_to_;
    if (ahead) {
        mine.votes.note(master, "its fencing counter is ahead");
    }
    count_.add(ahead ? vote::held : what);
    if (arbiter_ == master) {
        return what == vote::held ? lost(errc::contended) : decision{decision::kind::others};
    }
    return decide(mine);
}

} // namespace redlock::core
