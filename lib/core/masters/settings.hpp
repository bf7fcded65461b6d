// The validated configuration that the core needs.

#pragma once

#include "core/base/decisions.hpp"
#include "core/base/validity.hpp"
#include "member_list.hpp"

#include <redlock/protocol.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

/// Why a master cannot vote, before its first connection.
inline constexpr std::string_view not_connected_yet = "not connected yet";

/// Login, database and name of a connection.
struct credentials {
    std::string username;
    std::string password;
    int database = 0;
    std::string client_name;
    bool tls = false;
};

struct settings {
    std::vector<credentials> masters;
    std::vector<std::string> names; // of the masters, for log lines
    member_names members;           // names of the masters (membership.hpp); empty: any may vote
    bool founds = true;             // whether it founds the quorum
    bool replaces = false; // at once, a list that is not final; an operator's command does so
    bool unused = false;   // no lock can have been on the masters when the quorum is founded
    redlock::protocol protocol = protocol::plain;
    std::string key_prefix;
    std::string record_key;
    std::chrono::milliseconds max_ttl{};                // 0: the quorum's (guarded)
    std::chrono::milliseconds founding_max_ttl{30'000}; // of a quorum that it founds without one
    drift_bound drift;
    std::chrono::milliseconds clock_offset_bound{};
    bool quarantine = true;
    std::chrono::milliseconds connect_timeout{};
    std::chrono::milliseconds master_timeout{};
    std::chrono::milliseconds reconnect_delay_min{};
    std::chrono::milliseconds reconnect_delay_max{};
    std::chrono::milliseconds health_check_interval{};
    /// Interval at which a connected master is asked whether it is still fit to vote: short
    /// compared with a lease.
    std::chrono::milliseconds fitness_interval = std::chrono::hours(1);
    std::chrono::milliseconds retry_delay_min{};
    std::chrono::milliseconds retry_delay_max{};
    /// Maximum time between two attempts of a waiter on all masters, with or without notifications.
    std::chrono::milliseconds poll_limit{2'000};
    std::chrono::milliseconds local_handoff_time{}; // 0: every release goes to the masters
    bool pushes = false;                            // releases are published, and waiters subscribe
    std::chrono::milliseconds held_warning{};       // 0: none
    std::size_t contention_warning = 0;             // 0: none

    /// Maximum number of timers per call of `time_passed`, and of pending removals that it sends to
    /// one master. The rest follows in the next turn of the event loop.
    std::size_t turn_max = 64;
    /// Removals in flight to one master; further ones wait. A burst of them must not keep the
    /// master from answering anything else within `master_timeout`.
    std::size_t removals_max = 4'096;

    std::size_t size() const noexcept { return masters.size(); }
    /// A majority of the configured masters. Votes are counted by `membership::quorum`.
    std::size_t quorum() const noexcept {
        return wrong::quorum_half ? std::max<std::size_t>(masters.size() / 2, 1)
                                  : quorum_of(masters.size());
    }

    bool guarded() const noexcept { return protocol == protocol::guarded; }

    /// Maximum error of a clock after `span`, because clocks run at different rates.
    std::chrono::nanoseconds rate_error(std::chrono::nanoseconds span) const noexcept {
        return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(
            2 * drift.factor * static_cast<double>(span.count())));
    }

    /// Duration of a quarantine: longer, on the master's clock and on ours, than any lease that it
    /// may have lost. Guarded: plus twice the maximum offset between clocks, because a fencing
    /// counter may start that far ahead of one master's clock, and be lost where it then starts
    /// from another clock that is as far behind.
    std::chrono::nanoseconds quarantine_of(std::chrono::milliseconds longest) const noexcept {
        const std::chrono::nanoseconds offsets = (wrong::offset_counted_once ? 1
                                                  : guarded()                ? 2
                                                                             : 0)
                                                 * clock_offset_bound;
        return wrong::half_quarantine ? longest / 2
                                      : longest + rate_error(longest) + drift.margin + offsets;
    }
    /// The one that this client asks for. 0: none of its own, it takes the quorum's.
    std::chrono::microseconds quarantine_time() const noexcept {
        return quarantine ? asked_quarantine() : std::chrono::microseconds(0);
    }
    /// The same, to be recorded even if it is off for this client.
    std::chrono::microseconds asked_quarantine() const noexcept {
        return max_ttl.count() == 0 ? std::chrono::microseconds(0) : recorded_quarantine(max_ttl);
    }
    /// That of a quorum which it founds.
    std::chrono::microseconds founding_quarantine() const noexcept {
        return recorded_quarantine(max_ttl.count() != 0 ? max_ttl : founding_max_ttl);
    }
    /// Without a recorded quarantine, the longest ttl of this client.
    std::chrono::milliseconds usual_max_ttl() const noexcept {
        return max_ttl.count() != 0 ? max_ttl
               : quarantine         ? std::chrono::milliseconds(0)
                                    : founding_max_ttl;
    }
    /// As it stands in a memory record.
    std::chrono::microseconds
    recorded_quarantine(std::chrono::milliseconds longest) const noexcept {
        return std::chrono::ceil<std::chrono::microseconds>(quarantine_of(longest));
    }
    /// The longest lease that is over after a quarantine: the inverse of `recorded_quarantine`.
    std::chrono::milliseconds ttl_within(std::chrono::microseconds quarantine) const noexcept {
        // One step of the search for each bit of a day.
        std::chrono::milliseconds out{0};
        for (std::chrono::milliseconds bit{1 << 26}; bit.count() != 0; bit /= 2) {
            const bool fits = out + bit <= ttl_max && recorded_quarantine(out + bit) <= quarantine;
            out += fits ? bit : std::chrono::milliseconds(0);
        }
        return out;
    }

    /// Maximum step of a master's clock that the quarantine tolerates. A larger one starts a new
    /// quarantine.
    std::chrono::milliseconds step_margin() const noexcept {
        return clock_offset_bound + drift.margin;
    }

    /// Lease of a ticket in the fair queue, or of an intent: longer than an attempt with its raise.
    /// A ticket is renewed after a quarter of it; a waiter with an intent retries after half of it.
    std::chrono::milliseconds ticket_lease() const noexcept {
        return std::max<std::chrono::milliseconds>(std::chrono::seconds(2), 4 * master_timeout);
    }

    /// Expiry of an unused fencing counter. It must outlive the lease; a missing counter starts
    /// again from the clock.
    static std::chrono::milliseconds fence_ttl(std::chrono::milliseconds lease) noexcept {
        return std::max<std::chrono::milliseconds>(std::chrono::hours(24), 2 * lease);
    }
};

} // namespace redlock::core
