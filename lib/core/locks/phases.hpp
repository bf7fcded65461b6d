// What a claim has while it is in one phase, and what few claims have.

#pragma once

#include "core/base/backoff.hpp"
#include "core/base/validity.hpp"
#include "tally.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/errc.hpp>
#include <redlock/options.hpp>
#include <redlock/outcome.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace redlock::core {

/// How a claim began.
enum class claim_origin : std::uint8_t { acquire, attach, hand_off };
/// Of a claim that asks: an attach heals, and with fencing first reads the counters.
enum class asking_stage : std::uint8_t { votes, heals, reads, raises };

inline constexpr std::uint32_t all_asked = ~std::uint32_t{0};

struct asking_state {
    tally count;
    std::uint16_t voters = 0;
    claim_origin from = claim_origin::acquire;
    asking_stage at = asking_stage::votes;
    errc why = errc::contended;
    std::uint32_t arbiter = all_asked; // the one master that was asked so far
    short_ttl min_validity{};
    std::uint64_t raise_to = 0;
    time_point accepted_at = never; // of a local handoff
    time_point patience = forever;
};
struct held_state {
    renewal renew = renewal::automatic;
    loss_reason loss = loss_reason::none;
    bool extended = false;       // the result of the last round
    bool margin_follows = false; // the ttl of the last extension
    short_ttl stop_margin{};
    time_point since = never;
    time_point deadline = never;
    time_point next_at = forever; // an open extension is given up, else the next renewal
};
struct removing_state {
    time_point decide_by = forever; // when the result is due; `forever`: nobody waits for it
    time_point retry_at = forever;
    master_set unconfirmed = 0;
    master_set in_flight = 0;
    master_set overdue = 0;
    master_set awaited = 0;   // reachable at the start, without a reply
    master_set confirmed = 0; // by a reply that was counted
    bool late = false;        // the lease had ended already: removing the key is not a release
    std::uint8_t pending = 0; // replies awaited
    std::uint8_t removed = 0; // by result, the replies that confirmed it
    std::uint8_t absent = 0;  // or removed too late
    std::uint8_t foreign = 0;
    release_result result = release_result::uncertain;

    std::size_t most_alike() const noexcept { return std::max({removed, absent, foreign}); }
};

/// Commands that set a key and were in flight on a broken connection: the server may have them
/// in a buffer, and read them after those of the next connection.
struct strays {
    master_set sets = 0;      // acquires
    master_set heals = 0;     // commands that create the key again
    time_point until = never; // afterwards they are refused, or the key has expired

    /// Whether one may still set the key after a removal with this reply. An acquire sets the
    /// key once: if the removal found the key, that acquire has been executed.
    bool may_follow(std::size_t master, vote what) const noexcept {
        return ((heals | (what == vote::granted ? 0U : sets)) & set_of(master)) != 0;
    }
};
/// What few claims have.
struct particulars {
    // Of slots.
    std::string pool_key;
    std::vector<std::uint32_t> numbers; // ascending; empty: it is a lock
    time_point handed_since = never;

    std::uint64_t intent = 0; // name of the intent that the attempt announces; 0: none
    strays left_behind;

    // Of a lease.
    time_point hold_limit = forever; // the deadline is never later than this
    time_point warn_at = forever;    // report that it is held for long
    time_point kept = never;         // what earlier members have granted
    backoff renewal_delay;           // after an extension that failed
    std::vector<std::chrono::milliseconds> wanted;
};

} // namespace redlock::core
