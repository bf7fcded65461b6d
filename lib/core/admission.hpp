// Whether a master may vote: reads what a server says about itself (INFO) and judges it.
//
// A master counts only when it has been known to remember for `max_ttl`: one that restarted may
// have granted a lock before, forgotten it, and would grant it again (the "delayed restart" of the
// Redis page). Replicas, loading servers and servers that may evict keys do not remember either. In
// the plain protocol that is judged here, once for each connection, by the server's uptime; in the
// guarded one the master's own record says it, at the handshake and at each grant. That a server is
// configured twice is seen where all of them are known, in the engine.

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
    bool appends = false;       // an append-only file is kept
    bool fsyncs_always = false; // and each write is on disk before it is answered
    std::int64_t clock_us = 0;  // its wall clock; 0: it does not say
    bool promoted = true;       // may have been a replica, with another's data
    ladder commands;

    /// A restart loses nothing.
    bool durable() const noexcept { return appends && fsyncs_always; }
    /// When the process began, by its wall clock, in us; 0 if that cannot be told, or says nothing
    /// of its data.
    std::int64_t began_us() const noexcept;
};

/// Reads an INFO text. Empty when it lacks what is needed: no server of Redis' kind, or a proxy.
std::optional<server_info> parse_info(std::string_view text);

/// The judgement on one master, apart from its being configured twice.
struct fitness {
    bool fit = true;               // may vote at or after `votes_from`
    std::string text;              // why not
    time_point votes_from = never; // the end of its quarantine
};

/// `now` is a moment after the server wrote `info`.
fitness judge(const server_info& info, const settings& rules, time_point now);

} // namespace redlock::core
