// A claim: begins as an attempt to acquire a lock, becomes a lease when a majority grants it, and
// ends as removals. These are pending until each master has confirmed its own or the key must have
// expired. Every attempt is a claim of its own, so a reply never counts for another attempt.
//
// A lost lease is not removed yet: its holder may act until it ends the lease, or until the last
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
        lost, // the holder was signalled, and may act until it ends the lease or until
              // `believed_until`
        removing,
    };
    static constexpr std::size_t nobody = core::nobody;

    handle self;
    timer wake;
    phase stage = phase::asking;

    handle operation;            // of the acquire
    time_point given_at = never; // by the previous holder, if it was in this process

    attempt asking; // until it is decided
    lease held;     // while it is
    removal end;    // after its end

    /// Until when the holder may act, unless it ends the lease earlier.
    time_point acts_until() const noexcept {
        return stage == phase::lost ? believed_until : held.deadline();
    }
    /// An owner holds the lock, or may still act as if.
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
