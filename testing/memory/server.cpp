// The simulated process: command table, scripts and INFO. Commands on keys are in
// data_commands.cpp.
#include "server.hpp"

#include "arguments.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <stdexcept>

namespace redlock { inline namespace REDLOCK_ABI { namespace testing { namespace memory {

std::string lower_case(std::string_view text) {
    std::string out(text);
    std::ranges::transform(
        out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

struct server::command_entry {
    std::string_view name;
    int arity; // like Redis: with the name; negative: at least
    bool in_scripts;
    answer (server::*execute)(words);
    enum class use : std::uint8_t { reads, frees, grows } memory = use::reads; // of a write
};

const server::command_entry* server::find_command(std::string_view name) const {
    using use = command_entry::use;
    // The most frequent first.
    static constexpr command_entry table[] = {
        {"EVALSHA", -3, false, &server::evaluate},
        {"EVAL", -3, false, &server::evaluate},
        {"SET", -3, true, &server::set, use::grows},
        {"GET", 2, true, &server::get},
        {"INCR", 2, true, &server::incr, use::grows},
        {"PTTL", 2, true, &server::pttl},
        {"TIME", 1, true, &server::time},
        {"HMGET", -3, true, &server::hmget},
        {"HSET", -4, true, &server::hset, use::grows},
        {"DEL", -2, true, &server::del, use::frees},
        {"PEXPIRE", -3, true, &server::pexpire, use::frees},
        {"EXISTS", -2, true, &server::exists},
        {"PING", -1, true, &server::ping},
        {"HGET", 3, true, &server::hget},
        {"INFO", -1, true, &server::info},
        {"FLUSHALL", -1, true, &server::flushall},
        {"FLUSHDB", -1, true, &server::flushall}, // all databases are one here
        {"SCRIPT", -2, false, &server::script},
        {"AUTH", -2, false, &server::auth},
        {"SELECT", 2, true, &server::select},
        {"CLIENT", -2, false, &server::client},
        {"CONFIG", -2, false, &server::config},
        {"DEBUG", -2, false, &server::debug},
        {"PUBLISH", 3, true, &server::publish},
        {"MGET", -2, true, &server::mget},
        {"ZADD", -4, true, &server::zadd, use::grows},
        {"ZSCORE", 3, true, &server::zscore},
        {"ZRANK", 3, true, &server::zrank},
        {"ZCARD", 2, true, &server::zcard},
        {"ZREM", -3, true, &server::zrem, use::frees},
        {"ZRANGE", -4, true, &server::zrange},
        {"ZREMRANGEBYSCORE", 4, true, &server::zremrangebyscore, use::frees},
    };
    for (const command_entry& one : table) {
        if (same(name, one.name)) {
            return &one;
        }
    }
    return nullptr;
}

answer server::execute(words command, std::int64_t wall_us) {
    now_us_ = wall_us;
    has_written_ = false;
    ++executed;
    return dispatch(command);
}

answer server::dispatch(words command) {
    const command_entry* const found = find_command(command[0]);
    if (found == nullptr) {
        std::string text =
            "ERR unknown command '" + std::string(command[0]) + "', with args beginning with: ";
        for (const std::string_view word : command.subspan(1)) {
            text += "'" + std::string(word) + "' ";
        }
        std::ranges::replace_if(
            text, [](char c) { return c == '\r' || c == '\n'; }, ' ');
        return answer::error(text);
    }
    const auto size = static_cast<int>(command.size());
    if (found->arity > 0 ? size != found->arity : size < -found->arity) {
        return answer::error(
            "ERR wrong number of arguments for '" + lower_case(found->name) + "' command");
    }
    // Redis refuses what needs memory, except after the first write of a script.
    if (full && !has_written_ && found->memory == command_entry::use::grows) {
        return answer::error("OOM command not allowed when used memory > 'maxmemory'.");
    }
    has_written_ = has_written_ || found->memory != command_entry::use::reads;
    answer said = (this->*found->execute)(command);
    // Counted when it is done, as Redis does: INFO in a script does not see itself.
    const auto count =
        std::ranges::find(calls_, found, &std::pair<const command_entry*, std::uint64_t>::first);
    if (count == calls_.end()) {
        calls_.emplace_back(found, 1);
    } else {
        ++count->second;
    }
    return said;
}

answer server::from_script(words command) {
    const command_entry* const found = find_command(command[0]);
    if (found == nullptr) {
        return answer::error("ERR Unknown Redis command called from script");
    }
    const auto size = static_cast<int>(command.size());
    if (found->arity > 0 ? size != found->arity : size < -found->arity) {
        return answer::error("ERR Wrong number of args calling Redis command from script");
    }
    if (!found->in_scripts) {
        return answer::error("ERR This Redis command is not allowed from script");
    }
    if (declared_keys_only && !has_declared(command)) {
        return answer::error("ERR Script attempted to access a key that it did not declare");
    }
    return dispatch(command);
}

// As a node of a cluster requires, and some forks of Redis.
bool server::has_declared(words command) const {
    constexpr std::string_view without_keys[] = {"TIME", "PING", "INFO", "SELECT", "PUBLISH"};
    constexpr std::string_view all_keys[] = {"DEL", "EXISTS", "MGET"};
    const auto is_one_of = [&](std::span<const std::string_view> names) {
        return std::ranges::any_of(
            names, [&](std::string_view name) { return same(command[0], name); });
    };
    if (command.size() < 2 || is_one_of(without_keys)) {
        return true;
    }
    const words keys = command.subspan(1, is_one_of(all_keys) ? command.size() - 1 : 1);
    return std::ranges::all_of(keys, [&](std::string_view key) {
        return std::ranges::find(declared_, key) != declared_.end();
    });
}

std::uint64_t server::calls(std::string_view name) const {
    for (const auto& [command, count] : calls_) {
        if (same(name, command->name)) {
            return count;
        }
    }
    return 0;
}

void server::restart(std::string id, std::int64_t wall_us, store kept) {
    run_id = std::move(id);
    started_us = wall_us;
    data = std::move(kept);
    former_replication_id.clear();
    scripts_.clear();
    calls_.clear();
    evicted_keys = 0;
    reset_stats_ = false;
}

void server::promote(std::string id, std::int64_t began_us, store kept) {
    std::string before = run_id;
    restart(std::move(id), began_us, std::move(kept));
    former_replication_id = std::move(before);
}

void server::know(const lua_machine::script& one) {
    if (std::ranges::find(scripts_, &one) == scripts_.end()) {
        scripts_.push_back(&one);
    }
}

answer server::evaluate(words command) {
    const bool by_digest = same(command[0], "EVALSHA");
    const std::optional<std::int64_t> count = integer_in(command[2]);
    if (!count) {
        return answer::error(not_integer);
    }
    if (*count > static_cast<std::int64_t>(command.size()) - 3) {
        return answer::error("ERR Number of keys can't be greater than number of args");
    }
    if (*count < 0) {
        return answer::error("ERR Number of keys can't be negative");
    }
    const lua_machine::script* what = nullptr;
    if (by_digest) {
        for (const lua_machine::script* const one : scripts_) {
            what = one->sha1 == command[1] ? one : what;
        }
        if (what == nullptr && lower_case(command[1]) != command[1]) {
            for (const lua_machine::script* const one : scripts_) {
                what = one->sha1 == lower_case(command[1]) ? one : what;
            }
        }
        if (what == nullptr) {
            return answer::error("NOSCRIPT No matching script. Please use EVAL.");
        }
    } else {
        what = &lua_->compile(command[1]);
        if (what->error.empty()) {
            know(*what);
        }
    }
    const auto keys = static_cast<std::size_t>(*count);
    declared_ = command.subspan(3, keys);
    const lua_machine::executor execute = [this](words inner) { return from_script(inner); };
    return lua_->run(*what, command.subspan(3, keys), command.subspan(3 + keys), execute);
}

answer server::time(words) {
    return answer::array(
        {answer::bulk(std::to_string(now_us_ / 1'000'000)),
         answer::bulk(std::to_string(now_us_ % 1'000'000))});
}

answer server::ping(words command) {
    if (command.size() > 2) {
        return answer::error("ERR wrong number of arguments for 'ping' command");
    }
    return command.size() == 2 ? answer::bulk(command[1]) : answer::status("PONG");
}

answer server::script(words command) {
    if (same(command[1], "LOAD") && command.size() == 3) {
        const lua_machine::script& made = lua_->compile(command[2]);
        if (!made.error.empty()) {
            return answer::error(made.error);
        }
        know(made);
        return answer::bulk(made.sha1);
    }
    if (!same(command[1], "FLUSH") || command.size() > 3) {
        return answer::error(
            "ERR unknown subcommand '" + std::string(command[1]) + "'. Try SCRIPT HELP.");
    }
    scripts_.clear();
    return answer::ok();
}

answer server::publish(words command) {
    if (refuses_publish) {
        return answer::error("NOPERM this user has no permissions to run the 'publish' command");
    }
    return answer::integer(tell ? tell(command[1], command[2]) : 0);
}

answer server::info(words command) {
    if (command.size() > 1 && same(command[1], "COMMANDSTATS")) {
        std::string text = "# Commandstats\r\n";
        for (const auto& [what, count] : calls_) {
            // Redis 7 counts the commands of a container each by itself.
            const std::string_view rest = what->name == "CONFIG"   ? "|get"
                                          : what->name == "CLIENT" ? "|setname"
                                                                   : "";
            text += "cmdstat_" + lower_case(what->name) + std::string(rest)
                    + ":calls=" + std::to_string(count)
                    + ",usec=1,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n";
        }
        if (reset_stats_) {
            text += "cmdstat_config|resetstat:calls=1,usec=1,usec_per_call=1.00,rejected_calls=0,"
                    "failed_calls=0\r\n";
        }
        return answer::bulk(text);
    }
    std::string text;
    text.reserve(768);
    text += "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:";
    text += run_id;
    text += "\r\nserver_time_usec:" + std::to_string(now_us_) + "\r\nuptime_in_seconds:";
    // The difference of two times in whole seconds, as in Redis.
    text += std::to_string(now_us_ / 1'000'000 - started_us / 1'000'000);
    text += "\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\r\n"
            "# Persistence\r\nloading:0\r\nasync_loading:0\r\naof_enabled:";
    text += appends ? '1' : '0';
    text += "\r\n\r\n# Stats\r\nevicted_keys:" + std::to_string(evicted_keys);
    text += "\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
            "master_failover_state:no-failover\r\nmaster_replid:";
    text += run_id;
    text += "\r\nmaster_replid2:";
    text += former_replication_id.empty() ? "0000000000000000000000000000000000000000"
                                          : former_replication_id;
    text += "\r\nmaster_repl_offset:0\r\nsecond_repl_offset:";
    text += former_replication_id.empty() ? "-1\r\n" : "1\r\n";
    for (const auto& [field, value] : info_overrides) {
        const std::size_t line = text.find("\r\n" + field + ":");
        if (line == std::string::npos) {
            text.insert(text.find('\n') + 1, field + ":" + value + "\r\n");
        } else {
            const std::size_t from = line + field.size() + 3;
            text.replace(from, text.find('\r', from) - from, value);
        }
    }
    return answer::bulk(text);
}

answer server::auth(words command) {
    if (command.size() > 3) {
        return answer::error("ERR syntax error");
    }
    if (!password.empty() && command.back() == password) {
        return answer::ok();
    }
    if (command.size() == 3 || !password.empty()) {
        return answer::error("WRONGPASS invalid username-password pair or user is disabled.");
    }
    return answer::error("ERR AUTH <password> called without any password configured for the "
                         "default user. Are you sure your configuration is correct?");
}

// All databases are one here: no test simulates two.
answer server::select(words command) {
    const std::optional<std::int64_t> index = integer_in(command[1]);
    if (!index) {
        return answer::error(not_integer);
    }
    return *index < 0 || *index > 15 ? answer::error("ERR DB index is out of range") : answer::ok();
}

answer server::client(words command) {
    if (same(command[1], "SETNAME") && command.size() == 3) {
        return answer::ok();
    }
    return answer::error(
        "ERR unknown subcommand '" + std::string(command[1]) + "'. Try CLIENT HELP.");
}

// Does nothing: the simulator (test/simulation) changes the data itself.
answer server::debug(words) {
    return answer::ok();
}

answer server::config(words command) {
    if (same(command[1], "RESETSTAT") && command.size() == 2) {
        calls_.clear();
        evicted_keys = 0;
        reset_stats_ = true;
        return answer::ok();
    }
    if (!same(command[1], "GET") || command.size() != 3) {
        return answer::error(
            "ERR unknown subcommand '" + std::string(command[1]) + "'. Try CONFIG HELP.");
    }
    if (!same(command[2], "APPENDFSYNC")) {
        return answer::array({});
    }
    return answer::array({answer::bulk("appendfsync"), answer::bulk(appendfsync)});
}

bool take_command(std::string_view bytes, std::size_t& at, std::vector<std::string_view>& words) {
    constexpr std::size_t line_max = 32;
    std::size_t place = at;
    const auto require = [&](bool sound) {
        if (!sound) {
            throw std::runtime_error(
                "not a command: " + std::string(bytes.substr(place, line_max)));
        }
    };
    const auto number_after = [&](char mark, std::size_t& number) {
        require(bytes[place] == mark);
        const std::size_t end = bytes.find("\r\n", place);
        if (end == std::string_view::npos) {
            require(bytes.size() - place <= line_max);
            return false;
        }
        const char* const first = bytes.data() + place + 1;
        const auto [stop, error] = std::from_chars(first, bytes.data() + end, number);
        require(error == std::errc() && stop == bytes.data() + end);
        place = end + 2;
        return true;
    };
    words.clear();
    std::size_t count = 0;
    if (place >= bytes.size() || !number_after('*', count)) {
        return false;
    }
    require(count > 0);
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t size = 0;
        if (place >= bytes.size() || !number_after('$', size) || bytes.size() - place < 2
            || bytes.size() - place - 2 < size) {
            return false;
        }
        words.push_back(bytes.substr(place, size));
        place += size;
        require(bytes.substr(place, 2) == "\r\n");
        place += 2;
    }
    at = place;
    return true;
}

}}}} // namespace redlock::REDLOCK_ABI::testing::memory
