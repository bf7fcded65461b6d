#include "virtual_master.hpp"

#include "core/turn_scripts.hpp"

#include <algorithm>
#include <stdexcept>

namespace unit {

namespace core = redlock::core;
using std::chrono::milliseconds;

namespace {

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string integer(std::int64_t value) {
    return ":" + std::to_string(value) + "\r\n";
}

std::string triple(std::int64_t status, std::int64_t value, std::int64_t rank) {
    return "*3\r\n" + integer(status) + integer(value) + integer(rank);
}

const std::string nil = "$-1\r\n";
const std::string ok = "+OK\r\n";

struct named_script {
    core::script script;
    std::string name;
};

const named_script* script_of(std::string_view text_or_digest) {
    static const std::vector<named_script> known = {
        {core::compare_and_delete, "remove"},
        {core::compare_and_extend, "extend"},
        {core::turn_take, "turn"},
        {core::turn_leave, "leave"}};
    const auto found = std::find_if(known.begin(), known.end(), [&](const named_script& one) {
        return text_or_digest == one.script.text || text_or_digest == one.script.sha1;
    });
    return found == known.end() ? nullptr : &*found;
}

} // namespace

std::optional<arguments> virtual_master::take_command(std::string& bytes) {
    std::size_t at = 0;
    const auto number_after = [&](char mark) -> std::optional<std::size_t> {
        const std::size_t end = bytes.find("\r\n", at);
        if (end == std::string::npos) {
            return std::nullopt;
        }
        if (bytes[at] != mark) {
            throw std::runtime_error("the engine wrote no RESP: " + bytes.substr(at, 20));
        }
        const std::size_t value = std::stoul(bytes.substr(at + 1, end - at - 1));
        at = end + 2;
        return value;
    };
    if (bytes.empty()) {
        return std::nullopt;
    }
    const auto count = number_after('*');
    arguments words;
    for (std::size_t i = 0; count && i < *count; ++i) {
        const auto size = at < bytes.size() ? number_after('$') : std::nullopt;
        if (!size || bytes.size() < at + *size + 2) {
            return std::nullopt;
        }
        words.push_back(bytes.substr(at, *size));
        at += *size + 2;
    }
    if (!count) {
        return std::nullopt;
    }
    bytes.erase(0, at);
    return words;
}

std::string virtual_master::execute(const arguments& words, time_point now) {
    std::string line;
    for (const std::string& word : words) {
        const named_script* const known = script_of(word);
        line += (line.empty() ? "" : " ") + (known != nullptr ? known->name : word);
    }
    seen.push_back(line);
    const std::string& name = words.at(0);
    // What is said to EVALSHA is said to EVAL, too.
    for (const std::string& key : {name, name == "EVAL" ? std::string("EVALSHA") : name}) {
        if (const auto found = replies.find(key); found != replies.end()) {
            return found->second;
        }
    }
    if (unknown.contains(name)) {
        return "-ERR unknown command '" + name + "', with args beginning with: \r\n";
    }
    if (forbidden.contains(name)) {
        return "-NOPERM this user has no permissions to run the '" + name + "' command\r\n";
    }
    if (name == "PING") {
        return "+PONG\r\n";
    }
    if (name == "AUTH") {
        return words.back() == password ? ok : "-WRONGPASS invalid username-password pair\r\n";
    }
    if (name == "SELECT" || name == "CLIENT" || name == "PUBLISH") {
        return ok;
    }
    if (name == "SUBSCRIBE" || name == "UNSUBSCRIBE") {
        const std::string what = name == "SUBSCRIBE" ? "subscribe" : "unsubscribe";
        return "*3\r\n" + bulk(what) + bulk(words.at(1)) + integer(1);
    }
    if (name == "INFO") {
        return bulk(info(now));
    }
    if (loading) {
        return "-LOADING Redis is loading the dataset in memory\r\n";
    }
    if (name == "SET") {
        return set(words, now);
    }
    if (name == "EVAL" || name == "EVALSHA") {
        return evaluate(words, now);
    }
    if (name == "DELIFEQ" || name == "DELEX") {
        return remove_if(words.at(1), words.back(), false, now);
    }
    if (name == "GET") {
        const entry* const found = find(words.at(1), now);
        return found == nullptr ? nil : bulk(found->value);
    }
    if (name == "MGET") {
        std::string values = "*" + std::to_string(words.size() - 1) + "\r\n";
        for (std::size_t i = 1; i < words.size(); ++i) {
            const entry* const found = find(words[i], now);
            values += found == nullptr ? nil : bulk(found->value);
        }
        return values;
    }
    if (name == "EXISTS") {
        return integer(find(words.at(1), now) == nullptr ? 0 : 1);
    }
    if (name == "PTTL") {
        const entry* const found = find(words.at(1), now);
        if (found == nullptr) {
            return integer(-2);
        }
        return integer(
            found->expires == core::forever
                ? -1
                : std::chrono::ceil<milliseconds>(found->expires - now).count());
    }
    return "-ERR unknown command '" + name + "'\r\n";
}

virtual_master::entry* virtual_master::find(const std::string& key, time_point now) {
    const auto found = keys.find(key);
    if (found == keys.end()) {
        return nullptr;
    }
    if (found->second.expires <= now) {
        keys.erase(found);
        return nullptr;
    }
    return &found->second;
}

std::optional<std::string> virtual_master::value_of(const std::string& key, time_point now) {
    const entry* const found = find(key, now);
    return found == nullptr ? std::nullopt : std::optional(found->value);
}

std::size_t virtual_master::count(std::string_view start) const {
    std::size_t found = 0;
    for (const std::string& line : seen) {
        found += line.starts_with(start) ? 1U : 0U;
    }
    return found;
}

std::string virtual_master::info(time_point now) const {
    const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(now - started);
    std::string text = "# Server\r\nredis_version:" + version + "\r\n";
    if (!valkey_version.empty()) {
        text += "valkey_version:" + valkey_version + "\r\n";
    }
    return text + "redis_mode:standalone\r\nrun_id:" + run_id + "\r\nuptime_in_seconds:"
           + std::to_string(uptime.count()) + "\r\n\r\n# Memory\r\nmaxmemory:" + maxmemory
           + "\r\nmaxmemory_policy:" + eviction_policy + "\r\n\r\n# Persistence\r\nloading:"
           + (loading ? "1" : "0") + "\r\naof_enabled:0\r\n\r\n# Replication\r\nrole:" + role
           + "\r\nconnected_slaves:0\r\nmaster_replid2:"
           + (promoted_from.empty() ? std::string(40, '0') : promoted_from) + "\r\n";
}

// SET key value NX PX ms, or SET key value IFEQ value PX ms.
std::string virtual_master::set(const arguments& words, time_point now) {
    entry* const found = find(words.at(1), now);
    const bool only_if_equal = words.at(3) == "IFEQ";
    if (only_if_equal && unknown.contains("IFEQ")) {
        return "-ERR syntax error\r\n";
    }
    if (only_if_equal ? found == nullptr || found->value != words.at(4) : found != nullptr) {
        return nil;
    }
    keys[words.at(1)] = {words.at(2), now + milliseconds(std::stoll(words.back()))};
    return ok;
}

// EVAL text 1 key token [ttl], or with the digest.
std::string virtual_master::evaluate(const arguments& words, time_point now) {
    const named_script* const what = script_of(words.at(1));
    if (what == nullptr) {
        throw std::runtime_error("the engine sent a script that is not known here");
    }
    const std::string digest(what->script.sha1);
    if (words.at(0) == "EVAL") {
        scripts.insert(digest);
    } else if (!scripts.contains(digest)) {
        return "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
    if (what->name == "remove") {
        const std::string removed = remove_if(words.at(3), words.at(4), true, now);
        const bool refused = words.size() > 5 && forbidden.contains("PUBLISH");
        return refused && removed == integer(1) ? integer(2) : removed;
    }
    if (what->name == "turn") {
        return take_turn(words, now);
    }
    if (what->name == "leave") {
        return leave_queue(words);
    }
    entry* const found = find(words.at(3), now);
    if (found == nullptr) {
        return integer(-1);
    }
    if (found->value != words.at(4)) {
        return integer(0);
    }
    found->expires = std::max(found->expires, now + milliseconds(std::stoll(words.at(5))));
    return integer(1);
}

// EVAL text 3 lock queue places waiter ms, or with the digest.
std::string virtual_master::take_turn(const arguments& words, time_point now) {
    auto& queue = queues[words.at(4)];
    const std::string& waiter = words.at(6);
    const auto is_waiter = [&](const auto& place) { return place.first == waiter; };
    auto mine = std::find_if(queue.begin(), queue.end(), is_waiter);
    if (mine == queue.end()) {
        mine = queue.insert(queue.end(), {waiter, now});
    }
    mine->second = now + milliseconds(std::stoll(words.at(7)));
    while (queue.front().second <= now) {
        queue.erase(queue.begin());
    }
    mine = std::find_if(queue.begin(), queue.end(), is_waiter);
    if (mine != queue.begin()) {
        const auto left = std::chrono::ceil<milliseconds>(queue.front().second - now);
        return triple(0, left.count(), mine - queue.begin());
    }
    const entry* const found = find(words.at(3), now);
    if (found == nullptr) {
        return triple(1, 0, 0);
    }
    const bool for_good = found->expires == core::forever;
    return triple(
        0, for_good ? -1 : std::chrono::ceil<milliseconds>(found->expires - now).count(), 0);
}

// EVAL text 3 lock queue places waiter channel, or with the digest.
std::string virtual_master::leave_queue(const arguments& words) {
    auto& queue = queues[words.at(4)];
    return triple(
        static_cast<std::int64_t>(
            std::erase_if(queue, [&](const auto& place) { return place.first == words.at(6); })),
        0,
        0);
}

std::string virtual_master::remove_if(
    const std::string& key, const std::string& token, bool script, time_point now) {
    const entry* const found = find(key, now);
    if (found == nullptr) {
        return integer(script ? -1 : 0);
    }
    if (found->value != token) {
        return integer(0);
    }
    keys.erase(key);
    return integer(1);
}

} // namespace unit
