#include "examine.hpp"

#include "admin/connection.hpp"
#include "hints.hpp"

#include <redlock/clock.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <random>
#include <sstream>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

namespace cli {
namespace {

using redlock::core::reply_type;
using redlock::detail::connection;
using redlock::detail::connection_error;
using redlock::detail::refused_error;
using redlock::detail::reply;

constexpr int pings = 9;
constexpr int clock_samples = 9;

using us = std::chrono::microseconds;

std::map<std::string, std::string> fields_of(std::string_view text) {
    std::map<std::string, std::string> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
            out.emplace(line.substr(0, colon), line.substr(colon + 1));
        }
    }
    return out;
}

bool forbidden(const reply& answer) {
    return answer.failed()
           && (answer.text.starts_with("NOPERM") || answer.text.starts_with("ERR unknown "));
}

bool is_ok(const reply& answer) {
    return !answer.failed() && answer.text == "OK";
}

class examination {
public:
    examination(const redlock::endpoint& where, const redlock::config& how, facts& out)
        : how_(how),
          out_(out),
          master_(where, how) {
        out_.certificate_left = master_.certificate_left();
        read_info();
        // One name, one server: a proxy that distributes its connections shows here.
        connection other(where, how);
        const reply server = info_of(other, {"INFO", "server"});
        out_.run_id_of_other_connection = fields_of(server.text)["run_id"];
        if (out_.is_sentinel()) {
            return; // it has none of what follows
        }
        out_.record = redlock::detail::keys_of(how, "").record;
        if (how.protocol == redlock::protocol::guarded) {
            read_record(other);
        }
        read_configuration();
        for (int i = 0; i < pings; ++i) {
            const auto before = std::chrono::steady_clock::now();
            master_.ask({"PING"});
            out_.round_trips.push_back(
                std::chrono::duration_cast<us>(std::chrono::steady_clock::now() - before));
        }
        std::sort(out_.round_trips.begin(), out_.round_trips.end());
        try_permissions(other);
        look_at_clock();
    }

    // The best of several: the shorter the round trip, the more exact the time of the reading.
    void look_at_clock() {
        if (out_.is_sentinel()) {
            return;
        }
        std::optional<clock_sample> best;
        for (int i = 0; i < clock_samples; ++i) {
            const auto before = redlock::clock::now();
            const auto wall = std::chrono::system_clock::now();
            const reply time = master_.ask({"TIME"});
            const auto took = redlock::clock::now() - before;
            if (!understood("TIME", time, time.items.size() == 2) || time.failed()) {
                return;
            }
            const us theirs(
                std::strtoll(time.items[0].text.c_str(), nullptr, 10) * 1'000'000
                + std::strtoll(time.items[1].text.c_str(), nullptr, 10));
            const us ours = std::chrono::duration_cast<us>((wall + took / 2).time_since_epoch());
            const us uncertain = std::chrono::duration_cast<us>(took / 2);
            if (!best || uncertain < best->uncertain) {
                best = {(before + took / 2).time_since_epoch(), theirs - ours, uncertain};
            }
        }
        out_.clock.push_back(*best);
    }

private:
    // A server that refuses INFO, and does not forbid it, refuses everything.
    reply info_of(connection& from, const std::vector<std::string_view>& words) {
        reply info = from.ask(words);
        if (info.failed() && !forbidden(info)) {
            out_.wants_password = info.text.starts_with("NOAUTH");
            throw refused_error(info.text);
        }
        return info;
    }

    void read_info() {
        const reply info = info_of(master_, {"INFO"});
        if (info.failed()) {
            out_.permissions.push_back({"+info", "", info.text});
        }
        out_.info = fields_of(info.text);
    }

    void read_configuration() {
        // No lock needs it, and it would show passwords, so the user may lack the permission.
        for (const char* name : {"appendfsync", "min-replicas-to-write"}) {
            const reply answer = master_.ask({"CONFIG", "GET", name});
            // Servers of Redis' kind have no value for a parameter that they lack.
            const bool known = answer.items.size() == 2;
            const bool lacks = answer.type == reply_type::array && answer.items.empty();
            if (understood("CONFIG GET", answer, known || lacks) && known) {
                out_.configuration[name] = answer.items[1].text;
            }
        }
    }

    // On keys of a lock of its own: they have the same form as all others.
    void try_permissions(connection& other) {
        std::random_device random;
        const std::string name = fmt::format("redlock-doctor-{:08x}{:08x}", random(), random());
        const redlock::detail::lock_keys keys = redlock::detail::keys_of(how_, name);
        const auto& [lock, fence] = std::tie(keys.lock, keys.fence);
        const reply set = attempt("+set", "", {"SET", lock, "doctor", "NX", "PX", "2000"});
        understood("SET", set, is_ok(set));
        if (set.failed() && !forbidden(set)) {
            out_.write_refusal = set.text;
        }
        const reply value = attempt("+get", "", {"GET", lock});
        const bool expired = value.type == reply_type::nil; // on a slow master
        understood("GET", value, expired || value.text == "doctor");
        number_of("PTTL", attempt("+pttl", "", {"PTTL", lock}));
        number_of("PEXPIRE", attempt("+pexpire", "", {"PEXPIRE", lock, "2000"}));
        const bool guarded = how_.protocol == redlock::protocol::guarded;
        std::vector<std::string_view> script{"EVAL", "return 1", "1", lock};
        if (guarded) {
            attempt("+time", "", {"TIME"});
            script = {"EVAL", "return 1", "3", lock, fence, out_.record};
        }
        const reply ran = attempt("+eval", "", script);
        number_of("EVAL", ran);
        if (ran.failed() && !forbidden(ran)) {
            out_.script_refusal = ran.text;
        }
        attempt("+evalsha", "speed", {"EVALSHA", std::string(40, '0'), "1", lock});
        const reply pong = attempt("+ping", "noticing that it hangs", {"PING"});
        understood("PING", pong, pong.text == "PONG");
        const reply named = attempt(
            "+client|setname", "names in CLIENT LIST", {"CLIENT", "SETNAME", "redlock-doctor"});
        understood("CLIENT SETNAME", named, is_ok(named));
        try_forms(lock, is_ok(set));
        if (how_.release_notifications) {
            const std::string use = "notification of waiters, which poll without";
            number_of("PUBLISH", attempt("+publish", use, {"PUBLISH", keys.channel, "doctor"}));
            try { // no other command may follow on a connection that is subscribed
                attempt("+subscribe", use, {"SUBSCRIBE", keys.channel}, &other);
                attempt("+unsubscribe", use, {"UNSUBSCRIBE", keys.channel}, &other);
            } catch (const connection_error& error) { // a proxy that cannot
                out_.permissions.push_back({"+subscribe", use, error.what()});
            }
        }
        number_of("DEL", attempt("+del", "", {"DEL", lock, fence}));
    }

    // What some locks need. The key is a string, if it is there, so that none of these writes.
    void try_forms(std::string_view key, bool is_there) {
        const bool guarded = how_.protocol == redlock::protocol::guarded;
        const std::string ordered = guarded ? "--shared and --fifo" : "--fifo";
        attempt("+zadd", ordered, {"ZADD", key, "XX", "0", "doctor"});
        attempt("+zscore", ordered, {"ZSCORE", key, "doctor"});
        attempt("+zrange", ordered, {"ZRANGE", key, "0", "0"});
        attempt("+zrem", ordered, {"ZREM", key, "doctor"});
        attempt("+zrank", "--fifo", {"ZRANK", key, "doctor"});
        if (guarded) {
            attempt("+zremrangebyscore", "--shared", {"ZREMRANGEBYSCORE", key, "0", "0"});
            attempt("+zcard", "status of readers", {"ZCARD", key});
        }
        attempt("+mget", guarded ? "status of --slots" : "status", {"MGET", key});
        if (is_there) {
            attempt("+incr", "--fencing", {"INCR", key});
        }
    }

    // "4 RUN-ID PROMOTED-FROM BORN QUARANTINE ID"
    void read_record(connection& other) {
        reply kept;
        try {
            kept = other.ask({"GET", out_.record});
        } catch (const connection_error&) { // larger than a reply may be
            out_.foreign_record = true;
            return;
        }
        if (kept.failed()) { // an error of another kind is judged elsewhere
            out_.foreign_record = kept.text.starts_with("WRONGTYPE");
            return;
        }
        if (kept.type == reply_type::nil) {
            return;
        }
        std::istringstream words(kept.text);
        std::string format;
        std::string run_id;
        std::string promoted_from;
        std::uint64_t born = 0;
        std::uint64_t quarantine = 0;
        std::string id;
        words >> format >> run_id >> promoted_from >> born >> quarantine >> id;
        out_.foreign_record = format != "4" || words.fail();
        if (!out_.foreign_record) {
            out_.record_quarantine =
                std::chrono::duration_cast<milliseconds>(us(static_cast<us::rep>(quarantine)));
        }
    }

    reply attempt(
        const std::string& rule,
        const std::string& use,
        const std::vector<std::string_view>& words,
        connection* by = nullptr) {
        reply answer = (by == nullptr ? master_ : *by).ask(words);
        out_.permissions.push_back({rule, use, forbidden(answer) ? answer.text : ""});
        return answer;
    }

    // Whether the reply is an error, which is judged elsewhere, or fits the command.
    bool understood(std::string_view command, const reply& answer, bool fits) {
        if (answer.failed() || fits) {
            return true;
        }
        if (std::ranges::find(out_.not_understood, command) == out_.not_understood.end()) {
            out_.not_understood.emplace_back(command);
        }
        return false;
    }

    void number_of(std::string_view command, const reply& answer) {
        understood(command, answer, answer.type == reply_type::integer);
    }

    const redlock::config& how_;
    facts& out_;
    connection master_;
};

} // namespace

std::string facts::operator[](const std::string& field) const {
    const auto found = info.find(field);
    return found == info.end() ? "" : found->second;
}

std::string facts::parameter(const std::string& name) const {
    const auto found = configuration.find(name);
    return found == configuration.end() ? "" : found->second;
}

bool facts::is_sentinel() const {
    // Of Valkey, the second.
    return (*this)["redis_mode"] == "sentinel" || (*this)["server_mode"] == "sentinel";
}

bool facts::keeps_locks() const {
    return (*this)["aof_enabled"] == "1" && parameter("appendfsync") == "always";
}

std::vector<facts> examine(const redlock::config& how, milliseconds apart) {
    std::vector<facts> out(how.masters.size());
    std::vector<std::future<void>>
        all; // at once, so that several silent masters cost the time of one
    for (std::size_t i = 0; i < out.size(); ++i) {
        all.push_back(std::async(std::launch::async, [&, i] {
            out[i].endpoint = to_string(how.masters[i]);
            try {
                examination it(how.masters[i], how, out[i]);
                std::this_thread::sleep_for(apart);
                it.look_at_clock();
            } catch (const refused_error& error) {
                out[i].refused = true;
                out[i].unreachable = error.what();
            } catch (const connection_error& error) {
                out[i].unreachable = error.what();
            }
        }));
    }
    for (std::future<void>& one : all) {
        one.get();
    }
    std::vector<std::size_t> unreachable;
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (!out[i].unreachable.empty()) {
            unreachable.push_back(i);
        }
    }
    for (const std::size_t one : masters_without_tls(how, unreachable)) {
        out[one].without_tls = true;
    }
    return out;
}

} // namespace cli
