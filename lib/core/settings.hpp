// The configuration after validation, as far as it decides anything.

#pragma once

#include "decisions.hpp"
#include "validity.hpp"

#include <redlock/protocol.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace redlock::core {

/// How a connection introduces itself to one master.
struct credentials {
    std::string username;
    std::string password;
    int database = 0;
    std::string client_name;
};

struct settings {
    std::vector<credentials> masters;
    std::vector<std::string> names; // of the masters, for log lines
    redlock::protocol protocol = protocol::plain;
    std::string key_prefix;
    std::string epoch_key;
    std::chrono::milliseconds max_ttl{};
    drift_bound drift;
    std::chrono::milliseconds clock_offset_bound{};
    bool quarantine = true;
    std::chrono::milliseconds connect_timeout{};
    std::chrono::milliseconds master_timeout{};
    std::chrono::milliseconds reconnect_delay_min{};
    std::chrono::milliseconds reconnect_delay_max{};
    std::chrono::milliseconds health_check_interval{};
    std::chrono::milliseconds retry_delay_min{};
    std::chrono::milliseconds retry_delay_max{};
    /// Maximum time between two attempts of a waiter on all masters, whatever notifies it.
    std::chrono::milliseconds poll_limit{2'000};
    std::chrono::milliseconds local_handoff_time{}; // 0: every release goes to the masters
    bool pushes = false;                            // releases are published, and waiters subscribe
    std::chrono::milliseconds held_warning{};       // 0: none
    std::size_t contention_warning = 0;             // 0: none

    /// Timers that one call of `time_passed` handles, and owed removals that it sends to one
    /// master: the rest is due at once, after what others have to do.
    std::size_t turn_max = 256;
    /// Removals in flight to one master; further ones wait. A burst of them must not keep the
    /// master from answering anything else within `master_timeout`.
    std::size_t removals_max = 4'096;

    std::size_t size() const noexcept { return masters.size(); }
    std::size_t quorum() const noexcept {
        return wrong::quorum_half ? std::max<std::size_t>(masters.size() / 2, 1)
                                  : quorum_of(masters.size());
    }

    bool guarded() const noexcept { return protocol == protocol::guarded; }

    /// How far a clock that is read after `span` may be ahead of where it should be.
    std::chrono::nanoseconds rate_error(std::chrono::nanoseconds span) const noexcept {
        return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(
            2 * drift.factor * static_cast<double>(span.count())));
    }

    /// How long a master that restarted stays out: longer, on its clock and on ours, than any lease
    /// it may have lost. In the guarded protocol also longer than the masters' clocks are apart,
    /// because a lost fencing counter starts again from the master's own.
    std::chrono::nanoseconds quarantine_time() const noexcept {
        const std::chrono::nanoseconds offsets =
            guarded() ? clock_offset_bound : std::chrono::milliseconds(0);
        return wrong::half_quarantine ? max_ttl / 2
                                      : max_ttl + rate_error(max_ttl) + drift.margin + offsets;
    }

    /// By more than this no clock of a master is stepped within a lease: what the quarantine has
    /// room for.
    std::chrono::milliseconds step_margin() const noexcept {
        return clock_offset_bound + drift.margin;
    }

    /// How long a place in the queue for a lock is kept without being renewed: longer than an
    /// attempt, with its fencing, takes. It is renewed four times as often.
    std::chrono::milliseconds place_lease() const noexcept {
        return std::max<std::chrono::milliseconds>(std::chrono::seconds(2), 4 * master_timeout);
    }

    /// How long a writer that met readers keeps new ones out without asking again: longer than an
    /// attempt takes. It asks again after half of it.
    std::chrono::milliseconds intent_lease() const noexcept { return place_lease(); }

    /// How long a fencing counter is kept without being used. Its expiry breaks nothing, as a
    /// missing counter starts again from the clock; it must only outlive the lease.
    std::chrono::milliseconds fence_ttl() const noexcept {
        return std::max<std::chrono::milliseconds>(std::chrono::hours(24), 2 * max_ttl);
    }
};

} // namespace redlock::core
