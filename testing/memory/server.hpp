// One simulated Redis process with its memory: executes commands on its store. It has no clock of
// its own: the caller passes the time of its wall clock, which stands still while a script runs.

#pragma once

#include "answer.hpp"
#include "lua_machine.hpp"
#include "store.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

class server {
public:
    using words = std::span<const std::string_view>;

    explicit server(lua_machine& lua) : lua_(&lua) {}

    answer execute(words command, std::int64_t wall_us);

    /// Simulates a restart of the process with `data`.
    void restart(std::string run_id, std::int64_t wall_us, store data);
    /// Same as `restart`, but the process started at `started_us` and was a replica until now.
    void promote(std::string run_id, std::int64_t started_us, store data);

    store data;
    std::string run_id = "0000000000000000000000000000000000000000";
    std::string former_replication_id; // not empty: this process was a replica before
    std::int64_t started_us = 0;
    std::string password; // as `requirepass`; empty: none
    /// Fields of INFO to replace or add.
    std::map<std::string, std::string> info_overrides;
    std::uint64_t evicted_keys = 0;
    bool refuses_publish = false;    // like an ACL without PUBLISH
    bool full = false;               // `maxmemory` is reached, with the policy noeviction
    bool declared_keys_only = false; // refuses scripts that use other keys than KEYS
    bool appends = false;
    std::string appendfsync = "everysec";
    /// Sends a message to the listeners of a channel and returns their number. Empty: there are no
    /// listeners.
    std::function<std::int64_t(std::string_view channel, std::string_view text)> tell;
    std::uint64_t executed = 0; // commands, without those in scripts

    /// Returns how often a command was executed in this process, in scripts or outside.
    std::uint64_t calls(std::string_view name) const;

private:
    struct command_entry;
    const command_entry* find_command(std::string_view name) const;

    void know(const lua_machine::script& one);
    answer dispatch(words command);
    answer from_script(words command);
    bool has_declared(words command) const;
    answer evaluate(words command);
    answer set(words command);
    answer incr(words);
    answer mget(words);
    answer get(words command);
    answer del(words command);
    answer exists(words command);
    answer pttl(words command);
    answer pexpire(words command);
    answer hset(words command);
    answer hget(words command);
    answer hmget(words command);
    answer flushall(words command);
    answer time(words command);
    answer ping(words command);
    answer publish(words command);
    answer script(words command);
    answer zadd(words command);
    answer zscore(words command);
    answer zrank(words command);
    answer zrem(words command);
    answer zrange(words command);
    answer zremrangebyscore(words command);
    answer zcard(words command);
    entry* sorted_set(std::string_view key, bool& wrong);
    answer info(words command);
    answer auth(words command);
    answer select(words command);
    answer client(words command);
    answer config(words command);
    answer debug(words command);

    std::int64_t now_ms() const noexcept { return now_us_ / 1000; }

    lua_machine* lua_;
    std::int64_t now_us_ = 0;
    words declared_;                                  // keys of the script that runs
    std::vector<const lua_machine::script*> scripts_; // scripts known to EVALSHA
    std::vector<std::pair<const command_entry*, std::uint64_t>> calls_;
    bool reset_stats_ = false;
    bool has_written_ = false; // the current command, or script
};

std::string lower_case(std::string_view text);

/// Parses one complete command from `bytes`, beginning at `at`, and moves `at` to its end. The
/// words refer into `bytes`. Returns false if the command is incomplete. Throws std::runtime_error
/// if the bytes are not a command.
bool take_command(std::string_view bytes, std::size_t& at, std::vector<std::string_view>& words);

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
