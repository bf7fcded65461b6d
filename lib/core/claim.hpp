// A claim: it begins as an attempt to take a lock, becomes a lease when a majority grants it, and
// ends as removals that are owed to the masters until each has confirmed its own or the key must
// have expired. Every attempt is a claim of its own, so an answer can never be counted for another
// attempt.
//
// A lease that is lost is not removed yet: its holder may act until it has let go or until the last
// deadline that it was ever shown.

#pragma once

#include "claim_record.hpp"
#include "lease.hpp"
#include "pool.hpp"
#include "removal.hpp"
#include "round.hpp"
#include "timers.hpp"

#include <cstddef>
#include <cstdint>

namespace redlock::core {

/// How far a claim has come that takes over a lock which is there already.
enum class adoption : std::uint8_t {
    none,   // it is no such claim
    lasts,  // a majority is asked to keep the lock
    counts, // ... and what the fencing counters are
    raises, // ... and to raise them to a token that is new
};

struct claim : claim_record {
    enum class phase : std::uint8_t {
        asking,
        held,
        lost, // its holder was told so, and may act until it lets go or until `believed_until`
        removing,
    };
    static constexpr std::size_t nobody = core::nobody;

    handle self;
    timer wake;
    phase stage = phase::asking;

    // while asking
    round count;
    handle operation;
    time_point vote_by = never;   // a grant that would be cast later must not be
    time_point given_at = never;  // by the holder before, if there is one in this process
    std::size_t arbiter = nobody; // the one master that was asked so far, and must answer first
    std::uint64_t raise_to = 0;   // what the counters of a majority are being brought to
    adoption adopts = adoption::none;

    lease held;  // while it is
    removal end; // once it has ended

    /// Until when the holder may act, unless it lets go before.
    time_point acts_until() const noexcept {
        return stage == phase::lost ? believed_until : held.deadline();
    }
    /// Somebody has it, or may act as if.
    bool acts() const noexcept { return stage == phase::held || stage == phase::lost; }
    bool ended() const noexcept { return stage == phase::lost || stage == phase::removing; }

    void reset() {
        claim_record::reset();
        operation = {};
        arbiter = nobody;
        adopts = adoption::none;
        raise_to = 0;
        given_at = never;
        held = {};
        end = {};
    }
};

} // namespace redlock::core
