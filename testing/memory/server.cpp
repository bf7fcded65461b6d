#include "server.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <limits>
#include <optional>
#include <stdexcept>

namespace redlock::inline REDLOCK_ABI::testing::memory {

namespace {

constexpr std::string_view wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr std::string_view not_integer = "ERR value is not an integer or out of range";

std::optional<std::int64_t> integer_in(std::string_view text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool exact = error == std::errc() && end == text.data() + text.size() && !text.empty();
    const bool canonical = exact && std::to_string(value) == text;
    return canonical ? std::optional(value) : std::nullopt;
}

std::optional<double> float_in(std::string_view text) {
    if (text == "-inf" || text == "+inf" || text == "inf") {
        const double most = std::numeric_limits<double>::infinity();
        return text[0] == '-' ? -most : most;
    }
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool exact = error == std::errc() && end == text.data() + text.size() && !text.empty();
    return exact ? std::optional(value) : std::nullopt;
}

std::string in_words(double score) {
    char text[64];
    return {text, static_cast<std::size_t>(std::snprintf(text, sizeof text, "%.17g", score))};
}

bool same(std::string_view text, std::string_view upper) {
    return std::ranges::equal(text, upper, [](char a, char b) {
        return std::toupper(static_cast<unsigned char>(a)) == b;
    });
}

} // namespace

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
};

const server::command_entry* server::find_command(std::string_view name) {
    // The most frequent first.
    static constexpr command_entry table[] = {
        {"EVALSHA", -3, false, &server::evaluate},
        {"EVAL", -3, false, &server::evaluate},
        {"SET", -3, true, &server::set},
        {"GET", 2, true, &server::get},
        {"PTTL", 2, true, &server::pttl},
        {"TIME", 1, true, &server::time},
        {"HMGET", -3, true, &server::hmget},
        {"HSET", -4, true, &server::hset},
        {"DEL", -2, true, &server::del},
        {"PEXPIRE", -3, true, &server::pexpire},
        {"EXISTS", -2, true, &server::exists},
        {"PING", -1, true, &server::ping},
        {"HGET", 3, true, &server::hget},
        {"INFO", -1, true, &server::info},
        {"FLUSHALL", -1, true, &server::flushall},
        {"AUTH", -2, false, &server::auth},
        {"SELECT", 2, true, &server::select},
        {"CLIENT", -2, false, &server::client},
        {"CONFIG", -2, false, &server::config},
        {"DEBUG", -2, false, &server::debug},
        {"PUBLISH", 3, true, &server::publish},
        {"MGET", -2, true, &server::mget},
        {"ZADD", -4, true, &server::zadd},
        {"ZSCORE", 3, true, &server::zscore},
        {"ZREM", -3, true, &server::zrem},
        {"ZRANGE", -4, true, &server::zrange},
        {"ZREMRANGEBYSCORE", 4, true, &server::zremrangebyscore},
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
        return answer::error(text);
    }
    const auto size = static_cast<int>(command.size());
    if (found->arity > 0 ? size != found->arity : size < -found->arity) {
        return answer::error(
            "ERR wrong number of arguments for '" + lower_case(found->name) + "' command");
    }
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
    return dispatch(command);
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
    scripts_.clear();
    calls_.clear();
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
        if (what->error.empty() && std::ranges::find(scripts_, what) == scripts_.end()) {
            scripts_.push_back(what);
        }
    }
    const auto keys = static_cast<std::size_t>(*count);
    const lua_machine::executor execute = [this](words inner) { return from_script(inner); };
    return lua_->run(*what, command.subspan(3, keys), command.subspan(3 + keys), execute);
}

answer server::set(words command) {
    bool only_new = false;
    bool only_old = false;
    bool keep_ttl = false;
    std::optional<std::string_view> expiry;
    std::int64_t unit = 1;
    for (std::size_t i = 3; i < command.size(); ++i) {
        const std::string_view word = command[i];
        const bool has_next = i + 1 < command.size();
        if (same(word, "NX") && !only_old) {
            only_new = true;
        } else if (same(word, "XX") && !only_new) {
            only_old = true;
        } else if (same(word, "KEEPTTL") && !expiry) {
            keep_ttl = true;
        } else if ((same(word, "PX") || same(word, "EX")) && !expiry && !keep_ttl && has_next) {
            expiry = command[++i];
            unit = same(word, "EX") ? 1000 : 1;
        } else {
            return answer::error("ERR syntax error");
        }
    }
    std::int64_t expires_ms = entry::no_expiry;
    if (expiry) {
        const std::optional<std::int64_t> given = integer_in(*expiry);
        if (!given) {
            return answer::error(not_integer);
        }
        if (*given <= 0 || *given > (entry::no_expiry - now_ms()) / unit) {
            return answer::error("ERR invalid expire time in 'set' command");
        }
        expires_ms = now_ms() + *given * unit;
    }
    const entry* const found = data.find(command[1], now_ms());
    if ((only_new && found != nullptr) || (only_old && found == nullptr)) {
        return answer::nil();
    }
    if (keep_ttl && found != nullptr) {
        expires_ms = found->expires_ms;
    }
    entry& made = data.put(command[1]);
    made.value = command[2];
    made.expires_ms = expires_ms;
    return answer::ok();
}

answer server::get(words command) {
    const entry* const found = data.find(command[1], now_ms());
    if (found == nullptr) {
        return answer::nil();
    }
    return found->is != entry::type::text ? answer::error(wrong_type) : answer::bulk(found->value);
}

answer server::mget(words command) {
    std::vector<answer> values;
    for (const std::string_view key : command.subspan(1)) {
        const entry* const found = data.find(key, now_ms());
        values.push_back(
            found == nullptr || found->is != entry::type::text ? answer::nil()
                                                               : answer::bulk(found->value));
    }
    return answer::array(std::move(values));
}

answer server::del(words command) {
    std::int64_t removed = 0;
    for (const std::string_view key : command.subspan(1)) {
        if (entry* const found = data.find(key, now_ms())) {
            data.remove(*found);
            ++removed;
        }
    }
    return answer::integer(removed);
}

answer server::exists(words command) {
    std::int64_t there = 0;
    for (const std::string_view key : command.subspan(1)) {
        there += data.find(key, now_ms()) != nullptr ? 1 : 0;
    }
    return answer::integer(there);
}

answer server::pttl(words command) {
    const entry* const found = data.find(command[1], now_ms());
    if (found == nullptr) {
        return answer::integer(-2);
    }
    return answer::integer(
        found->expires_ms == entry::no_expiry ? -1 : found->expires_ms - now_ms());
}

answer server::pexpire(words command) {
    const std::optional<std::int64_t> ttl = integer_in(command[2]);
    if (!ttl) {
        return answer::error(not_integer);
    }
    if (command.size() > 3) {
        return answer::error("ERR Unsupported option " + std::string(command[3]));
    }
    if (*ttl > entry::no_expiry - now_ms()) {
        return answer::error("ERR invalid expire time in 'pexpire' command");
    }
    entry* const found = data.find(command[1], now_ms());
    if (found == nullptr) {
        return answer::integer(0);
    }
    if (*ttl <= 0) {
        data.remove(*found);
    } else {
        found->expires_ms = now_ms() + *ttl;
    }
    return answer::integer(1);
}

answer server::hset(words command) {
    if (command.size() % 2 != 0) {
        return answer::error("ERR wrong number of arguments for 'hset' command");
    }
    entry* hash = data.find(command[1], now_ms());
    if (hash == nullptr) {
        hash = &data.put(command[1]);
        hash->is = entry::type::hash;
    } else if (hash->is != entry::type::hash) {
        return answer::error(wrong_type);
    }
    std::int64_t added = 0;
    for (std::size_t i = 2; i < command.size(); i += 2) {
        const auto field = std::ranges::find(
            hash->fields, command[i], &std::pair<std::string, std::string>::first);
        if (field == hash->fields.end()) {
            hash->fields.emplace_back(command[i], command[i + 1]);
            ++added;
        } else {
            field->second = command[i + 1];
        }
    }
    return answer::integer(added);
}

answer server::hget(words command) {
    answer found = hmget(command);
    return found.is_error() ? found : std::move(found.items.front());
}

answer server::hmget(words command) {
    const entry* const hash = data.find(command[1], now_ms());
    if (hash != nullptr && hash->is != entry::type::hash) {
        return answer::error(wrong_type);
    }
    std::vector<answer> values(command.size() - 2);
    for (std::size_t i = 0; hash != nullptr && i < values.size(); ++i) {
        const auto field = std::ranges::find(
            hash->fields, command[i + 2], &std::pair<std::string, std::string>::first);
        if (field != hash->fields.end()) {
            values[i] = answer::bulk(field->second);
        }
    }
    return answer::array(std::move(values));
}

// Of a sorted set, those members that there are in it; null where the key is of another type.
entry* server::sorted_set(std::string_view key, bool& wrong) {
    entry* const found = data.find(key, now_ms());
    wrong = found != nullptr && found->is != entry::type::sorted_set;
    return wrong ? nullptr : found;
}

// One score and member at a time, which is all that the scripts say.
answer server::zadd(words command) {
    const std::optional<double> score = float_in(command[2]);
    if (command.size() != 4) {
        return answer::error("ERR syntax error");
    }
    if (!score) {
        return answer::error("ERR value is not a valid float");
    }
    bool wrong = false;
    entry* set = sorted_set(command[1], wrong);
    if (wrong) {
        return answer::error(wrong_type);
    }
    if (set == nullptr) {
        set = &data.put(command[1]);
        set->is = entry::type::sorted_set;
    }
    const std::string member(command[3]);
    const auto removed =
        std::erase_if(set->members, [&](const auto& one) { return one.second == member; });
    set->members.emplace_back(*score, member);
    std::ranges::sort(set->members);
    return answer::integer(removed == 0 ? 1 : 0);
}

answer server::zscore(words command) {
    bool wrong = false;
    const entry* const set = sorted_set(command[1], wrong);
    for (std::size_t i = 0; set != nullptr && i < set->members.size(); ++i) {
        if (set->members[i].second == command[2]) {
            return answer::bulk(in_words(set->members[i].first));
        }
    }
    return wrong ? answer::error(wrong_type) : answer::nil();
}

answer server::zrem(words command) {
    bool wrong = false;
    entry* const set = sorted_set(command[1], wrong);
    std::int64_t removed = 0;
    for (std::size_t i = 2; set != nullptr && i < command.size(); ++i) {
        removed += static_cast<std::int64_t>(
            std::erase_if(set->members, [&](const auto& one) { return one.second == command[i]; }));
    }
    if (set != nullptr && set->members.empty()) {
        data.remove(*set);
    }
    return wrong ? answer::error(wrong_type) : answer::integer(removed);
}

answer server::zrange(words command) {
    const std::optional<std::int64_t> first = integer_in(command[2]);
    const std::optional<std::int64_t> last = integer_in(command[3]);
    const bool scores = command.size() == 5 && same(command[4], "WITHSCORES");
    if (command.size() > 5 || (command.size() == 5 && !scores)) {
        return answer::error("ERR syntax error");
    }
    if (!first || !last) {
        return answer::error(not_integer);
    }
    bool wrong = false;
    const entry* const set = sorted_set(command[1], wrong);
    if (wrong) {
        return answer::error(wrong_type);
    }
    std::vector<answer> items;
    const auto size = set == nullptr ? 0 : static_cast<std::int64_t>(set->members.size());
    const auto from = std::max<std::int64_t>(0, *first < 0 ? size + *first : *first);
    const auto to = std::min(size - 1, *last < 0 ? size + *last : *last);
    for (std::int64_t i = from; i <= to; ++i) {
        const auto& [score, member] = set->members[static_cast<std::size_t>(i)];
        items.push_back(answer::bulk(member));
        if (scores) {
            items.push_back(answer::bulk(in_words(score)));
        }
    }
    return answer::array(std::move(items));
}

answer server::zremrangebyscore(words command) {
    const auto bound = [](std::string_view text, bool& open) {
        open = text.starts_with('(');
        return float_in(open ? text.substr(1) : text);
    };
    bool after = false;
    bool before = false;
    const std::optional<double> low = bound(command[2], after);
    const std::optional<double> high = bound(command[3], before);
    if (!low || !high) {
        return answer::error("ERR min or max is not a float");
    }
    bool wrong = false;
    entry* const set = sorted_set(command[1], wrong);
    if (set == nullptr) {
        return wrong ? answer::error(wrong_type) : answer::integer(0);
    }
    const auto removed = std::erase_if(set->members, [&](const auto& one) {
        return (after ? one.first > *low : one.first >= *low)
               && (before ? one.first < *high : one.first <= *high);
    });
    if (set->members.empty()) {
        data.remove(*set);
    }
    return answer::integer(static_cast<std::int64_t>(removed));
}

answer server::flushall(words) {
    data.clear();
    return answer::ok();
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

answer server::publish(words command) {
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
        return answer::bulk(text);
    }
    std::string text;
    text.reserve(768);
    text += "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:";
    text += run_id;
    text += "\r\nserver_time_usec:" + std::to_string(now_us_) + "\r\nuptime_in_seconds:";
    // Whole seconds of one clock taken from whole seconds of the other, as Redis does.
    text += std::to_string(now_us_ / 1'000'000 - started_us / 1'000'000);
    text += "\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\r\n"
            "# Persistence\r\nloading:0\r\nasync_loading:0\r\naof_enabled:";
    text += appends ? '1' : '0';
    text += "\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
            "master_failover_state:no-failover\r\nmaster_replid:";
    text += run_id;
    text += "\r\nmaster_replid2:0000000000000000000000000000000000000000\r\n"
            "master_repl_offset:0\r\nsecond_repl_offset:-1\r\n";
    return answer::bulk(text);
}

answer server::auth(words command) {
    if (command.size() > 3) {
        return answer::error("ERR syntax error");
    }
    if (command.size() == 3) {
        return answer::error("WRONGPASS invalid username-password pair or user is disabled.");
    }
    return answer::error("ERR AUTH <password> called without any password configured for the "
                         "default user. Are you sure your configuration is correct?");
}

// All databases are one here: nobody simulates two.
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

// What it does to the data is done by whoever sends it: see network::replace.
answer server::debug(words) {
    return answer::ok();
}

answer server::config(words command) {
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
    std::size_t place = at;
    const auto number_after = [&](char mark, std::size_t& number) {
        const std::size_t end = bytes.find('\r', place);
        if (end == std::string_view::npos || end + 1 >= bytes.size()) {
            return false;
        }
        const char* const first = bytes.data() + place + 1;
        const auto [stop, error] = std::from_chars(first, bytes.data() + end, number);
        if (bytes[place] != mark || error != std::errc() || stop != bytes.data() + end) {
            throw std::runtime_error("not a command: " + std::string(bytes.substr(place, 32)));
        }
        place = end + 2;
        return true;
    };
    words.clear();
    std::size_t count = 0;
    if (place >= bytes.size() || !number_after('*', count)) {
        return false;
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t size = 0;
        if (place >= bytes.size() || !number_after('$', size) || bytes.size() < place + size + 2) {
            return false;
        }
        words.push_back(bytes.substr(place, size));
        place += size + 2;
    }
    at = place;
    return true;
}

} // namespace redlock::inline REDLOCK_ABI::testing::memory
