// Servers that misbehave, are broken or hostile. Each is a vote with a text, or an error within its
// time, and sends a bounded number of bytes. None is an exception or a hang, or in the way of the
// others. test/cli/hostile_test.py does the same with the commands that ask masters themselves.
#include "quorum.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

namespace redlock::test { namespace {

using Catch::Matchers::ContainsSubstring;

struct hostility {
    std::string name;
    fake_action action;
    std::string text = {}; // a part of what the vote says, where that is known
    redlock::vote vote = vote::unreachable;
};

// Longer than any reply may be, and what the library reads at once.
constexpr std::size_t flood = 2'000'000;
constexpr std::size_t received_max = 1'000'000;

hostility says(std::string name, std::string raw) {
    return {std::move(name), fake_action::reply(std::move(raw))};
}

hostility repeats(std::string name, std::string begin, const std::string& more) {
    begin.reserve(begin.size() + flood + more.size());
    while (begin.size() < flood) {
        begin += more;
    }
    return says(std::move(name), std::move(begin));
}

hostility error(const std::string& text) {
    return {text, fake_action::reply("-" + text + "\r\n"), text, vote::error};
}

const std::vector<hostility>& hostilities() {
    using namespace std::string_literals;
    const auto closed = "closed the connection";
    static const std::vector<hostility> all{
        // more than was asked for
        repeats("a string that never ends", "$999999999999\r\n", "x"),
        repeats("a line that never ends", "+", "x"),
        repeats("an error that never ends", "-ERR ", "x"),
        repeats("a number that never ends", ":", "9"),
        repeats("a length that never ends", "$", "9"),
        repeats("lists in lists that never end", "", "*1\r\n"),
        repeats("messages that never end", "", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"),
        repeats("errors that never end", "", "-ERR\r\n"),
        says("a string that is announced and not sent", "$999999999999\r\n"),
        says("a list of two thousand million", "*2147483647\r\n"),
        says("a map of two thousand million", "%2147483647\r\n"),
        says("a set of two thousand million", "~2147483647\r\n"),
        says("lists in lists of many", "*60000\r\n*60000\r\n*60000\r\n*60000\r\n*60000\r\n"),
        {"a string of two megabytes",
         fake_action::reply("$2000000\r\n" + std::string(flood, 'x') + "\r\n"),
         "larger than"},
        {"two replies", fake_action::reply("-ERR one\r\n+OK\r\n+OK\r\n"), "ERR one", vote::error},
        // less
        {"nothing", fake_action::hang()},
        {"the end of the connection", fake_action::close_before_reply(), closed},
        {"the end of the connection after execution", fake_action::execute_then_close(), closed},
        {"half a reply, and the end", fake_action::close_mid_reply(1), closed},
        says("half a string", "$100\r\nabc"),
        says("half a list", "*3\r\n:1\r\n"),
        // something else
        says("no RESP", "HTTP/1.1 400 Bad Request\r\n\r\n"),
        {"noise", fake_action::reply("\0\xff?neither RESP nor text\x01\r\n\r\n"s), "malformed"},
        {"a number", fake_action::reply(":7\r\n"), "unexpected", vote::error},
        {"a list", fake_action::reply("*1\r\n+OK\r\n"), "unexpected", vote::error},
        says("a negative length", "$-7\r\n"),
        says("a negative count", "*-7\r\n"),
        says("a length that is not a number", "$many\r\n"),
        says("letters for a number", ":many\r\n"),
        says("a number of a hundred digits", ":" + std::string(100, '9') + "\r\n"),
        says("a string without its end", "$3\r\nabcdefgh\r\n"),
        says("a push that nobody asked for", ">2\r\n+message\r\n+x\r\n"),
        says("an attribute", "|1\r\n+key\r\n+value\r\n+OK\r\n"),
        // errors
        error("NOAUTH Authentication required."),
        error("LOADING Redis is loading the dataset in memory"),
        error("READONLY You can't write against a read only replica."),
        error("OOM command not allowed when used memory > 'maxmemory'."),
        error("BUSY Redis is busy running a script."),
        says("NOSCRIPT, also to a script", "-NOSCRIPT No matching script.\r\n"),
        says("MOVED", "-MOVED 3999 127.0.0.1:1\r\n"),
        says("an empty error", "-\r\n"),
        says("an error with zeros, and no UTF-8", std::string("-ERR \0\xff\xfe\r\n", 10)),
    };
    return all;
}

TEST_CASE("one master of three that misbehaves does not matter, and two are votes with a text") {
    for (const hostility& one : hostilities()) {
        if (one.text.empty()) {
            continue;
        }
        INFO(one.name);
        {
            started_quorum q;
            q.masters[0].when("SET", one.action, 1);
            lock held = q.acquired("r");
            CHECK(held.held());
            CHECK(q.release(held).value() == release_result::released);
            q.run_until([&] { return q.keys() == 0; }); // also what was granted before it broke
        }
        started_quorum q;
        q.masters[0].when("SET", one.action, 1);
        q.masters[1].when("SET", one.action, 1);
        acquisition& refused = q.acquire("r");
        CHECK(refused.error() == errc::no_quorum);
        CHECK(refused.error() == condition::unavailable);
        for (const std::size_t master : {0U, 1U}) {
            CHECK(refused.vote_of(master).vote == one.vote);
            CHECK_THAT(refused.vote_of(master).text, ContainsSubstring(one.text));
            CHECK_THAT(to_string(refused.why()), ContainsSubstring(one.text));
        }
        // Whatever it was, it passes, and nothing remains.
        q.run_until([&] { return q.keys() == 0 && q.admitted() == 3; });
        CHECK(!q.acquire("r").error());
    }
}

TEST_CASE("each operation ends with an error, and reads a bounded reply, whatever a server sends") {
    for (const hostility& one : hostilities()) {
        INFO(one.name);
        started_quorum q(1, [](config& c) {
            c.master_timeout = 100ms;
            c.connect_timeout = 1s;
            c.health_check_interval = 100ms; // then a silent connection is dropped
        });
        lock extended = q.acquired("extended");
        lock released = q.acquired("released");
        const auto under_attack = [&](const std::string& what, auto&& succeeds) {
            INFO(what);
            fake_master& master = q.masters[0];
            q.run_until([&] { return q.admitted() == 1; });
            const master_metrics before = q.manager->get_metrics().masters[0];
            master.when("*", one.action);
            CHECK_FALSE(succeeds());
            const master_metrics after = q.manager->get_metrics().masters[0];
            CHECK(
                after.bytes_received - before.bytes_received
                < received_max * (1 + after.connects - before.connects));
            master.clear_rules();
            master.release_hung();
        };
        under_attack("acquire", [&] { return !q.acquire("r").error(); });
        under_attack("query", [&] {
            query_outcome& asked = q.query("r");
            return asked.error() || asked.value().state != lock_state::undecided;
        });
        under_attack("extend", [&] { return !q.extend(extended, 25s).error(); });
        under_attack(
            "release", [&] { return q.release(released).value() == release_result::released; });
        under_attack("slot", [&] { return !q.acquire(redlock::slots("pool", 3)).error(); });
        under_attack("attach", [&] {
            acquisition& attached = q.begin<acquisition>([&](auto token) {
                q.manager->async_attach("r", std::string(40, 'a'), once(), std::move(token));
            });
            return !q.wait(attached).error();
        });
        // It passes, and nothing remains of it.
        q.run_until([&] { return q.admitted() == 1; });
        CHECK(!q.acquire("afterwards").error());
    }
}

TEST_CASE("a server that is hostile from the first reply on never votes, and says why") {
    for (const protocol spoken : {protocol::plain, protocol::guarded}) {
        for (const hostility& one : hostilities()) {
            INFO(one.name << ", " << to_string(spoken));
            quorum q(1, [&](config& c) {
                c.protocol = spoken;
                c.master_timeout = 50ms;
                c.connect_timeout = 100ms;
                c.reconnect_delay_max = 1h;
            });
            q.masters[0].when("*", one.action);
            q.start(0);
            q.run_until([&] {
                return q.health_of(0).state == master_state::down
                       && q.health_of(0).text != "not connected yet";
            });
            CHECK(!q.health_of(0).text.empty());
            CHECK(q.acquire("r").error() == errc::no_quorum);
            CHECK(q.manager->get_metrics().masters[0].bytes_received < received_max);
        }
    }
}

}} // namespace redlock::test
