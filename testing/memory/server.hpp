// One simulated Redis process with its memory: executes commands on its store. It has no time of
// its own; whoever asks says what its wall clock shows, and that stands still while a script runs.

#pragma once

#include "answer.hpp"
#include "lua_machine.hpp"
#include "store.hpp"

#include <cstdint>
#include <functional>
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

    /// Another process takes the place of this one: with no memory but `data`.
    void restart(std::string run_id, std::int64_t wall_us, store data);
    /// The same, but the process started at `started_us` and was a replica of this one until now.
    void promote(std::string run_id, std::int64_t started_us, store data);

    /// Commands that only some servers have.
    enum class dialect : std::uint8_t { redis_7_0, valkey_8_1, valkey_9_0, redis_8_4 };

    store data;
    std::string run_id = "0000000000000000000000000000000000000000";
    std::string former_replication_id; // not empty: it was a replica in its present life
    std::int64_t started_us = 0;
    dialect speaks = dialect::redis_7_0;
    bool refuses_publish = false; // as an ACL does
    bool appends = false;
    std::string appendfsync = "everysec";
    /// Tells who listens, and how many they were; without one, nobody does.
    std::function<std::int64_t(std::string_view channel, std::string_view text)> tell;
    std::uint64_t executed = 0; // commands, those in scripts not counted

    /// How often a command was executed in this process, in scripts or outside.
    std::uint64_t calls(std::string_view name) const;

private:
    struct command_entry;
    const command_entry* find_command(std::string_view name) const;

    answer dispatch(words command);
    answer from_script(words command);
    answer evaluate(words command);
    answer set(words command);
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
    answer delifeq(words command);
    answer delex(words command);
    answer delete_if_equal(std::string_view key, std::string_view value);
    answer zadd(words command);
    answer zscore(words command);
    answer zrem(words command);
    answer zrange(words command);
    answer zremrangebyscore(words command);
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
    std::vector<const lua_machine::script*> scripts_; // what EVALSHA finds
    std::vector<std::pair<const command_entry*, std::uint64_t>> calls_;
    bool reset_stats_ = false;
};

std::string lower_case(std::string_view text);

/// Takes one complete command from `bytes`, beginning at `at`, which moves behind it. The words lie
/// in `bytes`. False when more is needed; throws std::runtime_error on what is no command.
bool take_command(std::string_view bytes, std::size_t& at, std::vector<std::string_view>& words);

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
