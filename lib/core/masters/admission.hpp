// Decides whether a master may vote, by what its server reports about itself (INFO).
//
// A master votes only after it has kept its data for a quarantine, which is longer than any lease.
// A restarted master may have granted a lock before and lost it, and would grant it again (the
// Redis page on distributed locks calls the remedy "delayed restarts"). Replicas, loading servers
// and servers that may evict keys may lack locks as well. With the plain protocol this is judged
// here, at each introduction: by the server's uptime, or by how long this client has known it if
// the uptime says nothing about its data. With the guarded protocol the master's own memory record
// decides, at the handshake and at each grant. Duplicate servers are detected by `masters`,
// which knows all of them.

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

/// \name Texts for the reasons why a master does not vote
/// \{
/// Of a master that has recorded too short a quarantine for this ttl.
inline std::string too_long_text(std::chrono::milliseconds ttl, std::chrono::milliseconds limit) {
    if (limit.count() == 0) {
        return "clock_offset_bound leaves no ttl within the recorded quarantine: use that of the "
               "other clients";
    }
    return "ttl is " + std::to_string(ttl.count()) + " ms; allowed: up to the quorum's max_ttl, "
           + std::to_string(limit.count()) + " ms";
}

/// The text of an error of a server, which may have none or a page.
inline std::string_view text_of_error(std::string_view text) {
    constexpr std::size_t length_max = 240;
    return text.empty() ? "an error without a text" : text.substr(0, length_max);
}

/// Whether a server's text may show a part of `secret`: Redis shortens what it repeats of a command
/// that it does not understand, and writes a space for a line break.
bool may_show(std::string_view text, std::string_view secret);

/// The server's error when it refuses `command`, or only its first word if it may show `secret`.
inline std::string
refusal_of(std::string_view command, std::string_view words, std::string_view secret) {
    if (!may_show(words, secret)) {
        return std::string(text_of_error(words));
    }
    return std::string(words.substr(0, words.find(' '))) + " " + std::string(command)
           + " was refused";
}

/// The error of the parser, after the first bytes that a server sent. They show which protocol it
/// speaks. `secret`: a password that must not be shown.
inline std::string
not_redis_text(std::string_view error, std::string_view bytes, std::string_view secret) {
    if (bytes.starts_with("\x15\x03")) { // an alert
        return "the server replied in TLS: a TLS port needs rediss://";
    }
    constexpr std::size_t length_max = 60;
    const std::string_view line = bytes.substr(0, bytes.find_first_of("\r\n"));
    return std::string(error).append(
        may_show(bytes, secret) ? "" : ", in '" + std::string(line.substr(0, length_max)) + "'");
}

/// Of a master whose memory record does not have the format of this version.
inline std::string other_record_text(const settings& rules) {
    return "its memory record '" + rules.record_key
           + "' is of another version of redlock, or damaged: stop all clients of another version, "
             "then delete the record";
}

/// Of a master that refuses the script that introduces it: its error, and the remedy.
inline std::string refusal_text(std::string_view error, const settings& rules) {
    // "... to access one of the keys ..." (Redis 7.0), "... to access a key" (7.2)
    const bool forbidden = error.starts_with("NOPERM");
    const bool keys = forbidden && error.find("access") != std::string_view::npos;
    const bool cluster = error.starts_with("CLUSTERDOWN") || error.starts_with("MOVED");
    std::string out(text_of_error(error));
    return out
           + (keys        ? ": the ACL must allow the keys " + rules.key_prefix + "*"
              : cluster   ? ": it is a node of a cluster: use servers with cluster-enabled no"
              : forbidden ? ": redlock needs EVAL and EVALSHA: the ACL must allow them"
              : error.starts_with("ERR unknown")
                  ? ": redlock needs EVAL and EVALSHA: use servers that run scripts"
                  : "");
}
/// \}

} // namespace redlock::core
