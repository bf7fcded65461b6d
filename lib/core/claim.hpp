// A claim: it begins as an attempt to take a lock, becomes a lease when a majority grants it, and
// ends as removals that are owed to the masters until each has confirmed its own or the key must
// have expired. Every attempt is a claim of its own, so an answer can never be counted for another
// attempt.
//
// A lease that is lost is not removed yet: its holder may act until it has let go or until the last
// deadline that it was ever shown.

#pragma once

#include "attempt.hpp"
#include "claim_record.hpp"
#include "lease.hpp"
#include "pool.hpp"
#include "removal.hpp"
#include "timers.hpp"

#include <cstddef>
#include <cstdint>

namespace redlock::core {

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

    handle operation;            // that asks
    time_point given_at = never; // by the holder before, if there is one in this process

    attempt asking; // until it is decided
    lease held;     // while it is
    removal end;    // once it has ended

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
        given_at = never;
        asking = {};
        held = {};
        end = {};
    }
};

} // namespace redlock::core
