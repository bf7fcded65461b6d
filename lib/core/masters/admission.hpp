// Decides whether a master may vote, by what its server reports about itself (INFO).
//
// A master votes only after it has kept its data for a quarantine, which is longer than any lease.
// A restarted master may have granted a lock before and lost it, and would grant it again (the
// Redis page on distributed locks calls the remedy "delayed restarts"). Replicas, loading servers
// and servers that may evict keys may lack locks as well. With the plain protocol this is judged
// here, at each introduction: by the server's uptime, or by how long this client has known it if
// the uptime says nothing about its data. With the guarded protocol the master's own memory record
// decides, at the handshake and at each grant. Duplicate servers are detected in the quorum, which
// knows all masters.

#pragma once

#include "core/bytes/command.hpp"
#include "settings.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::core {

/// The relevant part of INFO.
struct server_info {
    std::string run_id;
    std::uint64_t run_id_hash = 0; // arbiters are looked for too often to hash it each time
    std::string version;           // "redis 7.0.15", "valkey 8.1.1"
    std::string role;
    std::string eviction_policy;
    std::chrono::seconds uptime{0};
    bool loading = false;
    bool memory_limited = false;
    std::uint64_t evicted_keys = 0; // since the server started, or its statistics were reset
    /// Replication id that the server had as a replica of another master (master_replid2). Empty:
    /// none. A server without replicas drops it after some time.
    std::string promoted_from;
    server_capabilities commands;

    bool may_evict() const noexcept { return memory_limited && eviction_policy != "noeviction"; }
    /// What the memory record says of a memory that is not as old as the process: the promotion,
    /// and the number of evicted keys. "-": nothing. If it changes, a new memory begins.
    std::string losses() const;
};

/// Reads an INFO text. Empty if required fields are missing: not a Redis-compatible server, or a
/// proxy.
std::optional<server_info> parse_info(std::string_view text);

/// The judgement on one master, except for duplicates.
struct eligibility {
    bool fit = true;               // may vote when it is not `quarantined`
    std::string text;              // why not
    time_point votes_from = never; // the end of its quarantine
    bool confirmed = true;         // a handshake after that end found its clock as it was before

    bool quarantined(time_point now) const noexcept { return now < votes_from || !confirmed; }
    std::chrono::nanoseconds left(time_point now) const noexcept {
        return now < votes_from ? votes_from - now : std::chrono::nanoseconds(0);
    }
};

/// `now` is a moment after the server wrote `info`. `since` is the earliest moment from which this
/// client knows that the server has kept its data; `never`: use its uptime.
eligibility
judge(const server_info& info, const settings& rules, time_point now, time_point since = never);

} // namespace redlock::core
