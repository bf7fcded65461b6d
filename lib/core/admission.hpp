// Whether a master may vote: reads what a server says about itself (INFO) and judges it.
//
// A master counts only when it has been known to remember for `max_ttl`: one that restarted may
// have granted a lock before, forgotten it, and would grant it again (the "delayed restart" of the
// Redis page). Replicas, loading servers and servers that may evict keys do not remember either. In
// the plain protocol that is judged here, once for each connection: by the server's uptime, or,
// where that says nothing of its data, by how long this client has known it. In the guarded one the
// master's own record says it, at the handshake and at each grant. That a server is configured
// twice is seen where all of them are known, in the engine.

#pragma once

#include "command.hpp"
#include "settings.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlock::core {

/// The part of INFO that matters.
struct server_info {
    std::string run_id;
    std::string version; // "redis 7.0.15", "valkey 8.1.1"
    std::string role;
    std::string eviction_policy;
    std::chrono::seconds uptime{0};
    bool loading = false;
    bool memory_limited = false;
    /// The replication id that it had as a replica, with another's data, in the life of this
    /// process; empty: none. A server that has no replicas for long forgets it.
    std::string promoted_from;
    ladder commands;
};

/// Reads an INFO text. Empty when it lacks what is needed: no server of Redis' kind, or a proxy.
std::optional<server_info> parse_info(std::string_view text);

/// The judgement on one master, apart from its being configured twice.
struct fitness {
    bool fit = true;               // may vote at or after `votes_from`
    std::string text;              // why not
    time_point votes_from = never; // the end of its quarantine
};

/// `now` is a moment after the server wrote `info`. `since` is the earliest moment from which this
/// client knows that the server has kept its data; `never`: its uptime says that.
fitness
judge(const server_info& info, const settings& rules, time_point now, time_point since = never);

} // namespace redlock::core
