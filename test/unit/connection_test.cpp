#include "core/connection.hpp"
#include "virtual_master.hpp"
#include "virtual_quorum.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

using namespace redlock::core;
using namespace std::chrono_literals;
using redlock::time_point;
using unit::virtual_master;

namespace {

// One connection, and a record of what it wanted. The test plays the socket and the server.
struct harness final : connection_events {
    explicit harness(settings with) : rules(std::move(with)) { server.run_id = "abc"; }
    harness() : harness(unit::settings_for(1)) {}

    void open(std::size_t) override { ++opens; }
    void close(std::size_t) override { ++closes; }
    void standing_changed(std::size_t, time_point) override { ++changes; }
    void
    replied(std::size_t, const ticket& command, const reply& answer, time_point sent, time_point)
        override {
        replies.emplace_back(command.subject.index, std::string(answer.text));
        sent_at.push_back(sent);
    }
    void dropped(std::size_t, const ticket& command, time_point) override {
        up_when_dropped = up_when_dropped || link.up();
        drops.push_back(command.subject.index);
    }
    void noted(std::size_t, std::string_view text) override { notes.emplace_back(text); }

    /// The commands in the output, which is taken as written.
    std::vector<std::string> written() {
        std::vector<std::string> lines;
        link.written(link.output().size());
        std::string bytes = std::exchange(link.output(), {});
        while (const auto words = virtual_master::take_command(bytes)) {
            std::string line;
            for (const std::string& word : *words) {
                line += (line.empty() ? "" : " ") + word;
            }
            lines.push_back(line);
        }
        return lines;
    }
    void hear(const std::string& bytes) { link.received({bytes.data(), bytes.size()}, now); }
    void wait(std::chrono::nanoseconds span) {
        now += span;
        link.time_passed(now);
    }
    /// Opened, and every command of the introduction answered by `server`.
    void introduce() {
        link.opened(now);
        std::string bytes = std::exchange(link.output(), {});
        link.written(bytes.size());
        while (const auto words = virtual_master::take_command(bytes)) {
            hear(server.execute(*words, now));
        }
    }
    void bring_up() {
        link.start(now);
        introduce();
    }
    void send(std::uint32_t name) {
        link.send(
            "*1\r\n$4\r\nWHAT\r\n", {.kind = command_kind::acquire, .subject = {name, 1}}, now);
    }

    /// The server will not have a command said this way.
    void refuse(command_kind kind, rung how) {
        redlock::core::reply refusal;
        refusal.type = redlock::core::reply_type::error;
        refusal.text = "NOPERM this user has no permissions";
        const ticket command{.kind = kind, .how = how, .subject = {}};
        link.learn(command, refusal, redlock::core::read_remove(refusal, how));
    }

    settings rules;
    virtual_master server;
    jitter random{1};
    time_point now{1'000s};
    int opens = 0;
    int closes = 0;
    int changes = 0;
    bool up_when_dropped = false;
    std::vector<std::pair<std::uint32_t, std::string>> replies;
    std::vector<time_point> sent_at;
    std::vector<std::uint32_t> drops;
    std::vector<std::string> notes;
    connection link{0, rules, *this, random};
};

settings with_credentials(std::string user, std::string password, int database, std::string name) {
    settings rules = unit::settings_for(1);
    rules.masters[0] = {std::move(user), std::move(password), database, std::move(name)};
    return rules;
}

settings checked_each_second() {
    settings rules = unit::settings_for(1);
    rules.health_check_interval = 1s;
    return rules;
}

using lines = std::vector<std::string>;

} // namespace

TEST_CASE("a connection does nothing before it is started, and opens once") {
    harness it;
    CHECK(it.link.next_due() == forever);
    CHECK(it.opens == 0);
    it.link.start(it.now);
    it.link.start(it.now);
    CHECK(it.opens == 1);
    CHECK(it.link.connecting());
    CHECK(!it.link.up());
    CHECK(it.link.why_down() == "not connected yet");
}

TEST_CASE("a connection introduces itself in one piece, then is up") {
    harness it;
    it.link.start(it.now);
    it.link.opened(it.now);
    CHECK(!it.link.up());
    CHECK(it.written() == lines{"CONFIG GET appendfsync", "INFO"});
    it.hear(it.server.execute({"CONFIG", "GET", "appendfsync"}, it.now));
    CHECK(!it.link.up());
    it.hear(it.server.execute({"INFO"}, it.now));
    CHECK(it.link.up());
    CHECK(!it.link.connecting());
    CHECK(it.link.why_down().empty());
    CHECK(it.link.info().run_id == "abc");
    CHECK(it.changes == 1);
    CHECK(it.link.counters().connects == 1);
    CHECK(it.link.counters().disconnects == 0);
}

TEST_CASE("user, password, database and name come before everything else") {
    const lines rest{"CONFIG GET appendfsync", "INFO"};
    const auto introduction = [&](const settings& rules) {
        harness it(rules);
        it.link.start(it.now);
        it.link.opened(it.now);
        return it.written();
    };
    CHECK(introduction(with_credentials("", "pw", 0, "")) == lines{"AUTH pw", rest[0], rest[1]});
    CHECK(
        introduction(with_credentials("me", "pw", 0, "")) == lines{"AUTH me pw", rest[0], rest[1]});
    CHECK(
        introduction(with_credentials("me", "pw", 7, "app"))
        == lines{"AUTH me pw", "SELECT 7", "CLIENT SETNAME app", rest[0], rest[1]});
    CHECK(introduction(with_credentials("", "", 15, "")) == lines{"SELECT 15", rest[0], rest[1]});
}

TEST_CASE(
    "a refused password, database or INFO takes the connection down with the server's words") {
    struct {
        std::string command;
        std::string error;
    } const refusals[] = {
        {"AUTH", "WRONGPASS invalid username-password pair or user is disabled."},
        {"SELECT", "ERR DB index is out of range"},
        {"INFO", "NOAUTH Authentication required."},
        {"INFO", "NOPERM this user has no permissions to run the 'info' command"},
        {"INFO", "LOADING Redis is loading the dataset in memory"},
    };
    for (const auto& one : refusals) {
        CAPTURE(one.command, one.error);
        harness it(with_credentials("me", "pw", 3, "app"));
        it.server.password = "pw";
        it.server.replies[one.command] = "-" + one.error + "\r\n";
        it.bring_up();
        CHECK(!it.link.up());
        CHECK(it.link.refused());
        CHECK(it.link.why_down() == one.error);
        CHECK(it.closes == 1);
        CHECK(it.changes == 1);
        CHECK(it.drops.empty());
        CHECK(it.link.next_due() > it.now);
        CHECK(it.link.next_due() <= it.now + 150ms);
    }
}

TEST_CASE("neither a refused name nor a refused CONFIG GET matters") {
    for (const std::string command : {"CLIENT", "CONFIG"}) {
        harness it(with_credentials("", "", 0, "app"));
        it.server.replies[command] = "-NOPERM no permissions\r\n";
        it.server.appends = true;
        it.bring_up();
        CHECK(it.link.up());
        CHECK(!it.link.info().fsyncs_always);
    }
}

TEST_CASE("appendfsync always is believed when an append-only file is kept") {
    settings rules = unit::settings_for(1);
    rules.quarantine = true;
    for (const std::string policy : {"always", "everysec", "no"}) {
        harness it(rules);
        it.server.started = it.now;
        it.server.appends = true;
        it.server.appendfsync = policy;
        it.bring_up();
        CHECK(it.link.info().fsyncs_always == (policy == "always"));
        CHECK((it.link.judgement().votes_from == never) == (policy == "always"));
    }
}

TEST_CASE("an INFO that is no server's takes the connection down") {
    for (const std::string text : {"+OK\r\n", "$5\r\nhello\r\n", ":1\r\n", "*0\r\n", "$-1\r\n"}) {
        CAPTURE(text);
        harness it;
        it.server.replies["INFO"] = text;
        it.bring_up();
        CHECK(!it.link.up());
        CHECK(it.link.refused());
        CHECK(it.link.why_down().find("not a Redis server") != std::string::npos);
    }
}

TEST_CASE("connecting and introducing must end within connect_timeout") {
    for (const bool opened : {false, true}) {
        harness it;
        it.link.start(it.now);
        CHECK(it.link.next_due() == it.now + 2s);
        it.wait(1s);
        if (opened) {
            it.link.opened(it.now);
            CHECK(it.link.next_due() == it.now + 1s); // one deadline for both
        }
        it.wait(1s - 1ns);
        CHECK(it.closes == 0);
        it.wait(1ns);
        CHECK(it.closes == 1);
        CHECK(!it.link.refused());
        CHECK(it.link.why_down().find("connect_timeout") != std::string::npos);
        CHECK(it.link.counters().disconnects == (opened ? 1U : 0U));
    }
}

TEST_CASE("a lost connection is opened again after a delay that grows within its bounds") {
    harness it;
    it.link.start(it.now);
    std::chrono::nanoseconds before = 50ms;
    std::chrono::nanoseconds largest{};
    for (int i = 1; i <= 60; ++i) {
        REQUIRE(it.opens == i);
        it.link.closed("connection refused", it.now);
        const std::chrono::nanoseconds delay = it.link.next_due() - it.now;
        REQUIRE(delay >= 50ms);
        REQUIRE(delay <= std::min<std::chrono::nanoseconds>(2s, 3 * before));
        before = delay;
        largest = std::max(largest, delay);
        it.wait(delay - 1ns);
        REQUIRE(it.opens == i);
        it.wait(1ns);
    }
    CHECK(largest == 2s);
    CHECK(it.link.counters().connects == 0);
    CHECK(it.link.counters().disconnects == 0);
    for (std::chrono::nanoseconds delay{}; delay < 2s; it.wait(delay)) {
        it.link.closed("connection refused", it.now);
        delay = it.link.next_due() - it.now;
    }
    it.introduce();
    it.link.closed("reset", it.now);
    CHECK(it.link.next_due() - it.now <= 150ms); // it worked: small again
}

TEST_CASE("news of a socket that is closed already changes nothing") {
    harness it;
    it.link.closed("early", it.now);
    it.link.opened(it.now);
    CHECK(it.changes == 0);
    it.bring_up();
    it.link.closed("reset", it.now);
    const int changes = it.changes;
    it.link.closed("again", it.now);
    it.link.opened(it.now);
    it.hear("+OK\r\n");
    CHECK(it.changes == changes);
    CHECK(it.link.why_down() == "reset");
    CHECK(it.link.output().empty());
}

TEST_CASE("replies match commands first in, first out") {
    harness it;
    it.bring_up();
    for (std::uint32_t name = 0; name < 5; ++name) {
        it.send(name);
        it.now += 1ms;
    }
    it.hear("+a\r\n+b\r\n-c");
    it.hear("\r\n$1\r\nd\r\n$1\r\ne\r\n");
    using answers = std::vector<std::pair<std::uint32_t, std::string>>;
    CHECK(it.replies == answers{{0, "a"}, {1, "b"}, {2, "c"}, {3, "d"}, {4, "e"}});
    CHECK(it.sent_at[4] - it.sent_at[0] == 4ms);
}

TEST_CASE("a reply that nobody asked for takes the connection down") {
    harness it;
    it.bring_up();
    it.hear("+surprise\r\n");
    CHECK(!it.link.up());
    CHECK(it.link.refused());
    CHECK(it.link.why_down() == "a reply that nobody asked for");
    CHECK(it.replies.empty());
}

TEST_CASE("garbage takes the connection down, and what it owed is unknown") {
    harness it;
    it.bring_up();
    it.send(1);
    it.send(2);
    it.hear("+OK\r\ngarbage\r\n");
    CHECK(!it.link.up());
    CHECK(it.link.why_down().starts_with("malformed reply"));
    CHECK(it.replies.size() == 1);
    CHECK(it.drops == std::vector<std::uint32_t>{2});
    it.wait(2s);
    it.introduce();
    CHECK(it.link.up()); // nothing of the garbage is left
}

TEST_CASE(
    "commands in flight are reported dropped exactly once, in order, by a link that is down") {
    harness it;
    it.bring_up();
    for (std::uint32_t name = 0; name < 4; ++name) {
        it.send(name);
    }
    it.hear("+OK\r\n");
    it.link.closed("reset", it.now);
    CHECK(it.drops == std::vector<std::uint32_t>{1, 2, 3});
    CHECK(!it.up_when_dropped);
    it.link.closed("reset", it.now);
    it.link.stop("stopped", it.now);
    CHECK(it.drops.size() == 3);
    CHECK(it.link.output().empty());
    CHECK(it.link.next_due() == forever);
    CHECK(it.link.why_down() == "stopped");
}

TEST_CASE("a command's mark is passed when its last byte is written") {
    harness it;
    it.bring_up();
    const std::uint64_t first = it.link.send("1234", {.subject = {1, 1}}, it.now);
    const std::uint64_t second = it.link.send("567", {.subject = {2, 1}}, it.now);
    CHECK(second - first == 3);
    CHECK(it.link.written_mark() < first);
    it.link.written(3);
    CHECK(it.link.written_mark() < first);
    it.link.written(1);
    CHECK(it.link.written_mark() == first);
    it.link.written(3);
    CHECK(it.link.written_mark() == second);
}

TEST_CASE("a master that does not answer within master_timeout is silent, then dropped") {
    harness it(checked_each_second());
    it.bring_up();
    it.wait(10ms);
    it.send(1);
    CHECK(it.link.next_due() == it.now + 100ms);
    it.wait(100ms - 1ns);
    CHECK(!it.link.silent());
    it.wait(1ns);
    CHECK(it.link.silent());
    CHECK(it.link.up());
    CHECK(it.drops.empty());
    CHECK(it.link.next_due() == it.now + 1s);
    it.wait(1s - 1ns);
    CHECK(it.link.up());
    it.wait(1ns);
    CHECK(!it.link.up());
    CHECK(!it.link.silent());
    CHECK(!it.link.refused());
    CHECK(it.link.why_down().find("silent") != std::string::npos);
    CHECK(it.drops == std::vector<std::uint32_t>{1});
}

TEST_CASE("a silent master that has caught up is silent no more") {
    harness it(checked_each_second());
    it.bring_up();
    it.send(1);
    it.wait(60ms);
    it.send(2);
    it.wait(40ms);
    REQUIRE(it.link.silent());
    it.wait(61ms);
    it.hear("+OK\r\n");
    CHECK(it.link.silent()); // its next answer is late already
    it.hear("+OK\r\n");
    CHECK(!it.link.silent());
    CHECK(it.link.up());
    CHECK(it.replies.size() == 2);
}

TEST_CASE("an idle connection is checked with PING, and a busy one is not") {
    harness it(checked_each_second());
    it.bring_up();
    CHECK(it.link.next_due() == it.now + 1s);
    it.wait(500ms);
    it.send(1);
    it.hear("+OK\r\n");
    it.written();
    it.wait(999ms);
    CHECK(it.written().empty());
    it.wait(1ms);
    CHECK(it.written() == lines{"PING"});
    it.wait(1ms);
    it.hear("+PONG\r\n");
    CHECK(it.link.up());
    CHECK(it.replies.size() == 1); // nobody is told of it
    CHECK(it.link.next_due() == it.now + 1s);
}

TEST_CASE("a PING that is not answered makes the master silent") {
    harness it(checked_each_second());
    it.bring_up();
    it.wait(1s);
    it.wait(100ms);
    CHECK(it.link.silent());
    it.hear("-LOADING any answer will do\r\n");
    CHECK(!it.link.silent());
}

TEST_CASE("an unfit master is asked again at each check, and is fit once it says so") {
    harness it(checked_each_second());
    it.server.role = "slave";
    it.bring_up();
    CHECK(it.link.up());
    CHECK(!it.link.judgement().fit);
    it.written();
    it.wait(1s);
    CHECK(it.written() == lines{"INFO"});
    it.hear(it.server.execute({"INFO"}, it.now));
    CHECK(!it.link.judgement().fit);
    it.wait(1s);
    CHECK(it.written() == lines{"INFO"});
    it.server.role = "master";
    const int changes = it.changes;
    it.hear(it.server.execute({"INFO"}, it.now));
    CHECK(it.link.judgement().fit);
    CHECK(it.changes == changes + 1);
    it.wait(1s);
    CHECK(it.written() == lines{"PING"});
}

TEST_CASE("an unfit master is asked again also while other commands keep it busy") {
    harness it(checked_each_second());
    it.server.role = "slave";
    it.bring_up();
    it.written();
    bool asked = false;
    for (int i = 0; i < 10 && !asked; ++i) { // a query each 500 ms
        it.send(1);
        it.hear("$-1\r\n");
        it.wait(500ms);
        for (const std::string& line : it.written()) {
            asked = asked || line == "INFO";
        }
    }
    CHECK(asked);
}

TEST_CASE("a master is asked to introduce itself again once, however many errors say so") {
    harness it;
    it.bring_up();
    it.written();
    it.link.introduce_again(it.now);
    it.link.introduce_again(it.now);
    CHECK(it.written() == lines{"INFO"});
    it.server.loading = true;
    it.hear(it.server.execute({"INFO"}, it.now));
    CHECK(it.link.up());
    CHECK(!it.link.judgement().fit);
    it.link.introduce_again(it.now);
    CHECK(it.written() == lines{"INFO"});
}

TEST_CASE("a step that was taken down stays taken until the connection is a new one") {
    harness it;
    it.server.version = "8.4.0";
    it.bring_up();
    CHECK(it.link.commands().delete_command == native_delete::delex);
    CHECK(it.link.commands().set_ifeq);
    it.refuse(command_kind::remove, rung::native);
    CHECK(it.link.commands().delete_command == native_delete::none);
    CHECK(it.link.commands().set_ifeq);
    it.refuse(command_kind::extend, rung::native);
    CHECK(!it.link.commands().set_ifeq);
    CHECK(it.link.commands().evalsha);
    it.refuse(command_kind::remove, rung::evalsha);
    CHECK(!it.link.commands().evalsha);
    it.link.introduce_again(it.now);
    it.hear(it.server.execute({"INFO"}, it.now));
    CHECK(it.link.commands().delete_command == native_delete::none);
    CHECK(!it.link.commands().evalsha);
    it.link.closed("reset", it.now);
    it.wait(2s);
    it.introduce();
    CHECK(it.link.commands().delete_command == native_delete::delex);
    CHECK(it.link.commands().evalsha);
}

TEST_CASE("counters add up over connections") {
    harness it;
    it.bring_up();
    it.send(1);
    it.hear("+OK\r\n");
    const auto written = it.link.output().size();
    it.link.written(written);
    CHECK(it.link.counters().commands == 3);
    CHECK(it.link.counters().writes == 2);
    CHECK(it.link.counters().bytes_received > 0);
    it.link.closed("reset", it.now);
    CHECK(it.link.counters().disconnects == 1);
    it.wait(2s);
    it.introduce();
    CHECK(it.link.counters().connects == 2);
    CHECK(it.link.counters().commands == 5);
}

TEST_CASE("a master that lags too far behind is overloaded") {
    harness it;
    it.bring_up();
    for (std::size_t i = 0; i < connection::in_flight_max; ++i) {
        REQUIRE(!it.link.overloaded());
        it.send(1);
    }
    CHECK(it.link.overloaded());
    it.hear("+OK\r\n");
    CHECK(!it.link.overloaded());
}

TEST_CASE("no password and no reply of AUTH is noted") {
    harness it(with_credentials("me", "s3cret", 0, ""));
    it.server.password = "another";
    it.bring_up();
    for (const std::string& note : it.notes) {
        CHECK(note.find("s3cret") == std::string::npos);
    }
    CHECK(it.link.why_down().find("s3cret") == std::string::npos);
}
