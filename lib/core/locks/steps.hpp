// The events of a claim, and what follows from each.

#pragma once

#include "core/base/backoff.hpp"
#include "core/base/validity.hpp"
#include "core/bytes/command.hpp"
#include "core/masters/settings.hpp"

#include <redlock/diagnostics.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace redlock::core {

/// What holds at one moment.
struct circumstances {
    time_point now;
    const settings& rules;
    std::size_t majority; // votes that are needed
    std::size_t voters;   // members, of which some may not be configured
    master_set up;        // masters to which commands can be sent
    std::chrono::nanoseconds retry_floor;
    jitter& random;
};

/// What follows from an event, a bit each.
enum class steps : std::uint32_t {
    none = 0,
    counted = 1U << 0U,    // the reply is a vote, for the metrics
    ask_others = 1U << 1U, // the arbiter did not refuse: `refused` and `ask` for the other masters
    raise = 1U << 2U,      // send a raise to `to()`
    anew = 1U << 3U,       // that raise has a new time limit
    mend = 1U << 4U,       // keys may be missing: call `mend`, which creates them if it may
    heal = 1U << 5U,       // send HEAL to `to()`
    won = 1U << 6U,        // call `hold`
    failed = 1U << 7U,     // because of `why()`
    deadline = 1U << 8U,   // it moved
    round_over = 1U << 9U, // of an extension, with the result `extended()`
    warn = 1U << 10U,      // it has been held for long
    renew = 1U << 11U,     // start an extension
    stop = 1U << 12U,      // the lease is lost because of `loss()`
    landed = 1U << 13U,    // one removal less is in flight
    confirmed = 1U << 14U, // a master has confirmed the removal
    repeated = 1U << 15U,  // after it had been sent again
    known = 1U << 16U,     // `result()` of the removal
    gone = 1U << 17U,      // nothing is left on any master
    later = 1U << 18U,     // set the timer to `next_due()`
};
constexpr steps operator|(steps a, steps b) noexcept {
    return static_cast<steps>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr steps& operator|=(steps& a, steps b) noexcept {
    return a = a | b;
}
constexpr bool has(steps all, steps one) noexcept {
    return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}

/// Whether this reply to a removal shows that the master did not have our key after it.
constexpr bool confirms_removal(vote what) noexcept {
    return what == vote::granted || what == vote::absent || what == vote::owned_by_other;
}

/// What its owner wants of a claim.
struct claim_terms {
    bool fencing = false;
    bool transferable = false; // no command that sets its key may be executed late
    std::chrono::milliseconds ttl{};
    std::chrono::milliseconds min_validity{};
    time_point patience = forever; // when the owner stops to wait
};

/// The reply to a command of a claim, or the break of its connection.
struct told {
    std::size_t master = 0;
    command_kind kind = command_kind::acquire;
    std::uint16_t epoch = 0;  // of the command: that of an older one never counts
    bool fit = true;          // the master may vote, apart from a quarantine
    bool quarantined = false; // by the clock of this client
    bool counts = true;       // the master is a member
    time_point sent = never;
    time_point now = never;
};

} // namespace redlock::core
