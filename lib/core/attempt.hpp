// An attempt: the state of a claim until a majority has decided it.
//
// There are three kinds. An acquire asks for the lock, all masters at once or the arbiter first,
// whose refusal spares the others. An attach asks the masters to extend an existing lock. A local
// handoff has the lock already: the next owner of this process gets it with its fencing token. With
// fencing, a majority that granted is raised to one number before the attempt is won. The masters'
// counters are raised *while the lock there is ours*, so the next owner's majority shares a master
// with this one and counts on from it.
//
// This type counts the votes and decides. Its owner sends the commands, reports masters that cannot
// be reached, and sets a timer. The votes are in the claim's record.

#pragma once

#include "answer.hpp"
#include "claim_record.hpp"
#include "round.hpp"
#include "settings.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/errc.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

class attempt {
public:
    enum class origin : std::uint8_t { acquire, attach, hand_off };

    /// What follows from the replies so far.
    struct decision {
        enum class kind : std::uint8_t {
            open,   // undecided
            others, // the arbiter does not refuse: the others are asked (`ask`)
            level,  // a majority granted, and its fencing counters may differ (`level`)
            raise,  // the counters of `masters` are to be raised, and then `decide`
            over,   // no further reply is expected (`close`)
            won,
            lost,
        };
        kind next = kind::open;
        errc why = errc::contended; // of a lost attempt
        master_set masters = 0;
        bool anew = false; // to raise: it begins, and has as much time as the attempt had
    };

    /// The limits of the caller.
    struct limits {
        std::chrono::milliseconds min_validity{};
        time_point patience = forever;
    };

    attempt() noexcept = default;
    attempt(origin from, std::size_t masters, std::size_t quorum) noexcept
        : count_(masters, quorum),
          from_(from) {}

    origin from() const noexcept { return from_; }
    bool attaches() const noexcept { return from_ == origin::attach; }
    /// The value to which the fencing counters are raised; 0: not known yet.
    std::uint64_t token() const noexcept { return raise_to_; }
    /// All masters were asked, not the arbiter alone.
    bool asked_all() const noexcept { return arbiter_ == nobody; }
    const round& count() const noexcept { return count_; }

    /// \name Who is asked
    /// \{
    /// This master is not asked, or cannot be any more: that is its vote.
    void refused(claim_record& mine, std::size_t master, vote what) noexcept {
        mine.votes.of[master].said = what;
        count_.add(what);
    }
    /// The masters to ask now: the arbiter if it has no vote yet, or all without a vote.
    master_set ask(claim_record& mine, std::size_t arbiter = nobody) noexcept;
    /// \}

    /// \name What was answered
    /// \{
    /// Notes an answer to the acquire, also one that comes after the decision. Returns the vote.
    static vote note(claim_record& mine, std::size_t master, const answer& got, drift_bound drift);
    /// Whether a reply to a command of that epoch is a vote: the master has not voted yet.
    bool awaits(const claim_record& mine, std::size_t master, std::uint16_t epoch) const noexcept {
        return epoch == mine.epoch && mine.votes.of[master].said == vote::pending;
    }
    /// The vote of a reply to the acquire. Requires `awaits`.
    decision acquired(claim_record& mine, std::size_t master, vote what);
    /// A reply to the extension of an attach.
    decision extended(
        claim_record& mine, std::size_t master, const answer& got, const settings& rules) noexcept;
    /// A reply to a raise, or its broken connection. Requires `awaits`.
    decision raised(claim_record& mine, std::size_t master, const answer& got);
    /// \}

    decision decide(const claim_record& mine) const noexcept;
    /// Only masters that are `up` can be raised; the votes of the others are lost.
    decision level(claim_record& mine, master_set up, time_point now, const settings& rules);

    /// \name Time
    /// \{
    /// The limit of an attempt that starts, or starts to raise: when the masters should have
    /// replied, the rest of the lease would be too short, or the caller stops waiting.
    static time_point give_up_at(
        const claim_record& mine, const limits& caller, time_point now, const settings& rules);
    /// What follows at that moment, or if the arbiter has not replied. `slow`: the masters that may
    /// still reply.
    decision
    due(const claim_record& mine,
        const limits& caller,
        master_set slow,
        time_point now,
        const settings& rules) const noexcept;
    /// Whether the votes so far show a working quorum: a majority has voted, or is only slow.
    bool works(const claim_record& mine, master_set slow, std::size_t quorum) const noexcept;
    /// Counts masters without a reply as timed out, and returns them.
    master_set close(claim_record& mine) noexcept;
    /// \}

private:
    enum class stage : std::uint8_t { votes, reads, raises };

    decision decide_attach(const claim_record& mine) const noexcept;
    decision level_attach(claim_record& mine, master_set up) noexcept;
    decision read_or_raised(claim_record& mine, std::size_t master, const answer& got);
    decision accept_handoff(claim_record& mine, master_set up, time_point now) noexcept;
    static decision lost(errc why) noexcept { return {decision::kind::lost, why}; }
    /// Raises the counter of one master after those of the others.
    static decision raise_late(claim_record& mine, std::size_t master) noexcept {
        mine.votes.of[master].said = vote::pending;
        return {.next = decision::kind::raise, .masters = set_of(master)};
    }

    round count_;
    origin from_ = origin::acquire;
    stage stage_ = stage::votes;
    std::size_t arbiter_ = nobody; // the one master that was asked so far
    std::uint64_t raise_to_ = 0;
};

} // namespace redlock::core
