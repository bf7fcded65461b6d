// Answers follow Redis 7.0 to the letter where a client may look at it: error prefixes, nil for a
// SET that was not done, the order of options.
#include "fake_commands.hpp"

#include "resp_wire.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace redlock::test {
namespace {

constexpr std::string_view syntax_error = "ERR syntax error";
constexpr std::string_view not_an_integer = "ERR value is not an integer or out of range";

std::string hex(const unsigned char* bytes, std::size_t size) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < size; ++i) {
        text += digits[bytes[i] >> 4];
        text += digits[bytes[i] & 15];
    }
    return text;
}

std::string sha1(const std::string& text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1) {
        throw std::runtime_error("EVP_Digest");
    }
    return hex(digest.data(), size);
}

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

std::string random_run_id() {
    std::random_device random;
    std::array<unsigned char, 20> bytes{};
    std::generate(
        bytes.begin(), bytes.end(), [&random] { return static_cast<unsigned char>(random()); });
    return hex(bytes.data(), bytes.size());
}

std::optional<std::int64_t> to_number(const std::string& text) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::string unknown_command(const std::vector<std::string>& args) {
    std::string text = "ERR unknown command '" + args.front() + "', with args beginning with: ";
    for (std::size_t i = 1; i < args.size(); ++i) {
        text += "'" + args[i] + "' ";
    }
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
    return wire::error(text);
}

std::string bulk_or_nil(const std::optional<std::string>& value) {
    return value ? wire::bulk(*value) : wire::nil();
}

// The options of a SET after key and value.
struct set_options {
    bool nx = false;
    bool xx = false;
    bool get = false;
    bool valid = true;
    std::optional<std::chrono::milliseconds> ttl;
    std::optional<std::string> ifeq;
};

set_options parse_set(const std::vector<std::string>& args, bool ifeq_enabled) {
    set_options result;
    for (std::size_t i = 3; i < args.size() && result.valid; ++i) {
        const std::string word = upper(args[i]);
        const bool more = i + 1 < args.size();
        if (word == "NX") {
            result.nx = true;
        } else if (word == "XX") {
            result.xx = true;
        } else if (word == "GET") {
            result.get = true;
        } else if ((word == "PX" || word == "EX") && more) {
            const std::int64_t ttl = to_number(args[++i]).value_or(0);
            result.valid = ttl > 0;
            result.ttl = std::chrono::milliseconds(word == "PX" ? ttl : ttl * 1'000);
        } else if (word == "IFEQ" && more && ifeq_enabled) {
            result.ifeq = args[++i];
        } else {
            result.valid = false;
        }
    }
    result.valid = result.valid && !(result.nx && (result.xx || result.ifeq));
    return result;
}

} // namespace

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    return text;
}

fake_commands::fake_commands(fake_options options, std::uint16_t port)
    : options_(std::move(options)) {
    info_ = {
        {"redis_version", options_.version},
        {"run_id", random_run_id()},
        {"redis_mode", "standalone"},
        {"process_id", "1"},
        {"tcp_port", std::to_string(port)},
        {"uptime_in_seconds", "100000"},
        {"maxmemory", "0"},
        {"maxmemory_policy", "noeviction"},
        {"loading", "0"},
        {"aof_enabled", "0"},
        {"role", "master"},
        {"connected_slaves", "0"},
    };
    for (const auto& [field, value] : options_.info) {
        info_[field] = value;
    }
}

void fake_commands::renew_run_id() {
    info_["run_id"] = random_run_id();
}

const std::map<std::string, fake_commands::command>& fake_commands::table() {
    using self = fake_commands;
    static const std::map<std::string, command> commands = {
        {"PING", {1, &self::ping}},       {"SELECT", {2, &self::ok}},
        {"CLIENT", {2, &self::ok}},       {"INFO", {1, &self::info_text}},
        {"CONFIG", {2, &self::config}},   {"COMMAND", {1, &self::command_info}},
        {"SET", {3, &self::set}},         {"GET", {2, &self::get}},
        {"EXISTS", {2, &self::exists}},   {"PTTL", {2, &self::pttl}},
        {"PEXPIRE", {3, &self::pexpire}}, {"DEL", {2, &self::del}},
        {"UNLINK", {2, &self::del}},      {"DELEX", {4, &self::delex}},
        {"DELIFEQ", {3, &self::delifeq}}, {"FLUSHALL", {1, &self::flushall}},
        {"PUBLISH", {3, &self::publish}}, {"SCRIPT", {2, &self::script}},
        {"EVAL", {3, &self::eval}},       {"EVALSHA", {3, &self::evalsha}},
    };
    return commands;
}

bool fake_commands::enabled(const std::string& name) const {
    return table().count(name) != 0 && (name != "DELEX" || options_.delex)
           && (name != "DELIFEQ" || options_.delifeq);
}

std::string fake_commands::execute(session& who, const words& args) {
    const std::string name = upper(args.front());
    if (name == "AUTH") {
        return auth(who, args);
    }
    if (!options_.requirepass.empty() && !who.authenticated) {
        return wire::error("NOAUTH Authentication required.");
    }
    if (!enabled(name)) {
        return unknown_command(args);
    }
    const command& found = table().at(name);
    if (args.size() < found.words_min) {
        return wire::error("ERR wrong number of arguments for '" + lower(name) + "' command");
    }
    try {
        return (this->*found.run)(args);
    } catch (const std::exception& failure) { // a test's hook
        return wire::error("ERR fake master: " + std::string(failure.what()));
    }
}

std::string fake_commands::auth(session& who, const words& args) const {
    if (args.size() < 2 || (!options_.requirepass.empty() && args.back() != options_.requirepass)) {
        return wire::error("WRONGPASS invalid username-password pair or user is disabled.");
    }
    who.authenticated = true;
    return wire::status("OK");
}

std::string fake_commands::ok(const words&) {
    return wire::status("OK");
}

std::string fake_commands::ping(const words& args) {
    return args.size() > 1 ? wire::bulk(args[1]) : wire::status("PONG");
}

// All sections whatever was asked: a superset does no harm.
std::string fake_commands::info_text(const words&) {
    static const std::map<std::string, std::vector<std::string>> sections = {
        {"Memory", {"maxmemory", "maxmemory_policy"}},
        {"Persistence", {"loading", "aof_enabled"}},
        {"Replication", {"role", "connected_slaves"}},
    };
    std::map<std::string, std::string> rest = info_;
    std::string tail;
    for (const auto& [section, fields] : sections) {
        tail += "\r\n# " + section + "\r\n";
        for (const std::string& field : fields) {
            tail += field + ":" + rest[field] + "\r\n";
            rest.erase(field);
        }
    }
    std::string text = "# Server\r\n";
    for (const auto& [field, value] : rest) {
        text += field + ":" + value + "\r\n";
    }
    return wire::bulk(text + tail);
}

std::string fake_commands::config(const words& args) {
    if (upper(args[1]) != "GET") {
        return wire::status("OK");
    }
    std::vector<std::string> pairs;
    for (std::size_t i = 2; i < args.size(); ++i) {
        const auto found = options_.config.find(lower(args[i]));
        if (found != options_.config.end()) {
            pairs.push_back(wire::bulk(found->first));
            pairs.push_back(wire::bulk(found->second));
        }
    }
    return wire::array(pairs);
}

// COMMAND INFO tells which names exist; every other form is answered with an empty array.
std::string fake_commands::command_info(const words& args) {
    std::vector<std::string> result;
    if (args.size() > 1 && upper(args[1]) == "INFO") {
        for (std::size_t i = 2; i < args.size(); ++i) {
            const std::string one = wire::integer(1);
            result.push_back(
                enabled(upper(args[i])) ? wire::array(
                    {wire::bulk(lower(args[i])), wire::integer(-2), wire::array({}), one, one, one})
                                        : "*-1\r\n");
        }
    }
    return wire::array(result);
}

std::string fake_commands::set(const words& args) {
    const set_options options = parse_set(args, options_.set_ifeq);
    if (!options.valid) {
        return wire::error(syntax_error);
    }
    const std::optional<std::string> before = keys_.get(args[1]);
    const bool allowed = !(options.nx && before) && !(options.xx && !before)
                         && !(options.ifeq && before != options.ifeq);
    if (allowed) {
        keys_.set(args[1], args[2], options.ttl);
    }
    if (options.get) {
        return bulk_or_nil(before);
    }
    return allowed ? wire::status("OK") : wire::nil();
}

std::string fake_commands::get(const words& args) {
    return bulk_or_nil(keys_.get(args[1]));
}

std::string fake_commands::exists(const words& args) {
    return wire::integer(std::count_if(args.begin() + 1, args.end(), [this](const auto& key) {
        return keys_.get(key).has_value();
    }));
}

std::string fake_commands::pttl(const words& args) {
    return wire::integer(keys_.pttl(args[1]));
}

std::string fake_commands::pexpire(const words& args) {
    const auto ttl = to_number(args[2]);
    return ttl ? wire::integer(keys_.expire(args[1], std::chrono::milliseconds(*ttl)) ? 1 : 0)
               : wire::error(not_an_integer);
}

std::string fake_commands::del(const words& args) {
    return wire::integer(std::count_if(
        args.begin() + 1, args.end(), [this](const auto& key) { return keys_.erase(key); }));
}

std::string fake_commands::delex(const words& args) {
    if (args.size() != 4 || upper(args[2]) != "IFEQ") {
        return wire::error(syntax_error);
    }
    return wire::integer(keys_.get(args[1]) == args[3] && keys_.erase(args[1]) ? 1 : 0);
}

std::string fake_commands::delifeq(const words& args) {
    return wire::integer(keys_.get(args[1]) == args[2] && keys_.erase(args[1]) ? 1 : 0);
}

std::string fake_commands::flushall(const words&) {
    keys_.clear();
    return wire::status("OK");
}

std::string fake_commands::publish(const words&) {
    return wire::integer(0);
}

std::string fake_commands::script(const words& args) {
    const std::string what = upper(args[1]);
    if (what == "LOAD" && args.size() == 3) {
        const std::string sha = sha1(args[2]);
        scripts_.insert(sha);
        return wire::bulk(sha);
    }
    if (what == "FLUSH") {
        forget_scripts();
        return wire::status("OK");
    }
    if (what == "EXISTS") {
        std::vector<std::string> known;
        for (std::size_t i = 2; i < args.size(); ++i) {
            known.push_back(wire::integer(scripts_.count(lower(args[i])) != 0 ? 1 : 0));
        }
        return wire::array(known);
    }
    return wire::error(syntax_error);
}

std::string fake_commands::eval(const words& args) {
    scripts_.insert(sha1(args[1]));
    return run_script(args);
}

std::string fake_commands::evalsha(const words& args) {
    if (options_.evalsha_always_unknown || scripts_.count(lower(args[1])) == 0) {
        return wire::error("NOSCRIPT No matching script. Please use EVAL.");
    }
    return run_script(args);
}

// One key and a token: compare and delete. One key, a token and a time: compare and extend.
std::string fake_commands::run_script(const words& args) {
    if (options_.on_eval) {
        std::optional<std::string> reply = options_.on_eval(keys_, args);
        if (reply) {
            return *reply;
        }
    }
    const bool deletes = args.size() == 5;
    if (args[2] != "1" || (!deletes && args.size() != 6)) {
        return wire::error("ERR fake master: this script needs a hook");
    }
    const std::string& key = args[3];
    const std::optional<std::string> holder = keys_.get(key);
    if (holder != args[4]) {
        return wire::integer(holder ? 0 : -1);
    }
    if (deletes) {
        keys_.erase(key);
        return wire::integer(1);
    }
    const auto ttl = to_number(args[5]);
    if (!ttl) {
        return wire::error(not_an_integer);
    }
    keys_.expire(key, std::chrono::milliseconds(*ttl));
    return wire::integer(1);
}

} // namespace redlock::test
