// A master that misbehaves is a vote, with a text that says how; never an exception or a hang, and
// never in the way of the others. An attempt that did not succeed leaves no key.
#include "quorum.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace redlock::test { namespace {

using Catch::Matchers::ContainsSubstring;

struct misbehaviour {
    std::string name;
    fake_action action;
    redlock::vote vote;
    std::string text; // a part of it
};

std::vector<misbehaviour> misbehaviours() {
    const auto error = [](const std::string& text) {
        return misbehaviour{text, fake_action::reply("-" + text + "\r\n"), vote::error, text};
    };
    return {
        {"closes before the reply",
         fake_action::close_before_reply(),
         vote::unreachable,
         "closed the connection"},
        {"closes in the middle of the reply",
         fake_action::close_mid_reply(2),
         vote::unreachable,
         "closed the connection"},
        {"closes after executing",
         fake_action::execute_then_close(),
         vote::unreachable,
         "closed the connection"},
        {"answers garbage", fake_action::garbage(), vote::unreachable, "malformed"},
        {"answers too much", fake_action::too_large(4'000'000), vote::unreachable, "larger than"},
        {"answers with a number", fake_action::reply(":7\r\n"), vote::error, "unexpected"},
        {"answers with an array", fake_action::reply("*1\r\n+OK\r\n"), vote::error, "unexpected"},
        {"answers twice",
         fake_action::reply("-ERR one\r\n+OK\r\n+OK\r\n+OK\r\n"),
         vote::error,
         "ERR one"},
        error("LOADING Redis is loading the dataset in memory"),
        error("READONLY You can't write against a read only replica."),
        error("NOAUTH Authentication required."),
        error("MISCONF Redis is configured to save RDB snapshots"),
        error("OOM command not allowed when used memory > 'maxmemory'."),
        error("NOPERM this user has no permissions to run the 'set' command"),
        error("BUSY Redis is busy running a script."),
    };
}

TEST_CASE("one master of three that misbehaves does not keep the lock from its taker") {
    for (const misbehaviour& one : misbehaviours()) {
        DYNAMIC_SECTION(one.name) {
            started_quorum q;
            q.masters[0].when("SET", one.action, 1);
            lock held = q.acquired("r");
            CHECK(held.held());
            release_outcome& released = q.release(held);
            CHECK(!released.error());
            CHECK(released.value() == release_result::released);
            q.run_until([&] { return q.keys() == 0; }); // also what was granted before it broke
        }
    }
}

TEST_CASE("two masters of three that misbehave are two votes with a text") {
    for (const misbehaviour& one : misbehaviours()) {
        DYNAMIC_SECTION(one.name) {
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
}

TEST_CASE("a master that stays silent is dropped and connected again") {
    started_quorum q(3, [](config& c) {
        c.master_timeout = 50ms;
        c.health_check_interval = 50ms;
    });
    q.masters[0].accept_but_say_nothing(true);
    q.run_until([&] { return q.masters[0].connections_accepted() >= 2; });
    q.masters[0].accept_but_say_nothing(false);
    // The new connection may have waited for its introduction: on it or the next it succeeds.
    q.run_until([&] { return q.admitted() == 3; });
    CHECK(q.manager->get_metrics().masters[0].disconnects >= 1);
}

TEST_CASE("replies that come byte by byte are put together") {
    quorum q;
    q.when("*", fake_action::split_bytes());
    q.start();
    lock held = q.acquired("r");
    CHECK(!q.extend(held, 25s).error());
    CHECK(q.query("r").value().state == lock_state::held);
    CHECK(q.release(held).value() == release_result::released);
}

TEST_CASE("a refused connection is a vote, and is tried again") {
    quorum q(3, [](config& c) { c.reconnect_delay_min = c.reconnect_delay_max = 1h; });
    q.masters[0].refuse_connections(true);
    q.masters[1].refuse_connections(true);
    q.start(1);
    q.run_until([&] {
        return q.health_of(0).state == master_state::down
               && q.health_of(1).state == master_state::down;
    });
    CHECK_FALSE(q.manager->get_health().ready);
    acquisition& refused = q.acquire("r");
    CHECK(refused.error() == errc::no_quorum);
    for (const std::size_t master : {0U, 1U}) {
        CHECK(refused.vote_of(master).vote == vote::unreachable);
        CHECK_THAT(refused.vote_of(master).text, ContainsSubstring("refused"));
    }
    CHECK(q.count("SET") == 0); // nobody was asked: it could not be won

    quorum patient;
    patient.masters[0].refuse_connections(true);
    patient.masters[1].refuse_connections(true);
    patient.start(1);
    acquisition& waiting = patient.begin_acquire("r", patiently());
    patient.run_until(
        [&] { return waiting.done() || patient.manager->get_metrics().attempts > 2; });
    CHECK_FALSE(waiting.done());
    patient.masters[0].refuse_connections(false);
    CHECK(!patient.wait(waiting).error());
}

TEST_CASE("a master that never introduces itself is given up after connect_timeout") {
    quorum q(3, [](config& c) {
        c.connect_timeout = 100ms;
        c.reconnect_delay_min = c.reconnect_delay_max = 1h;
    });
    q.masters[0].accept_but_say_nothing(true);
    q.start(2);
    q.run_until([&] { return q.health_of(0).state == master_state::down; });
    CHECK_THAT(q.health_of(0).text, ContainsSubstring("connect_timeout"));
    CHECK(!q.acquire("r").error());
}

TEST_CASE("a master that breaks off its introduction is connected again") {
    const auto action = GENERATE(
        fake_action::close_before_reply(),
        fake_action::close_mid_reply(10),
        fake_action::garbage(),
        fake_action::too_large(4'000'000),
        fake_action::reply("-ERR not now\r\n"),
        fake_action::reply("$5\r\nhello\r\n"));
    quorum q;
    q.masters[0].when("INFO", action, 2);
    q.start();
    CHECK(q.masters[0].connections_accepted() == 3);
}

bool is_removal(const received_command& command) {
    const std::string name = command.name();
    return (name == "EVALSHA" || name == "EVAL") && command.args.size() == 7;
}

// Of a SET or of a compare-and-delete by script.
std::string token_of(const received_command& command) {
    return command.name() == "SET" ? command.args.at(2) : command.args.at(5);
}

// The first removal of what a SET may have left, or null.
const received_command* removal_of(const received_command& set, const fake_master::log& log) {
    const auto found = std::find_if(log.begin(), log.end(), [&](const received_command& one) {
        return is_removal(one) && token_of(one) == token_of(set);
    });
    return found == log.end() ? nullptr : &*found;
}

TEST_CASE("the rollback of a SET that hangs comes after it on the same connection") {
    started_quorum q(3, [](config& c) { c.master_timeout = 150ms; });
    q.masters[0].when("SET", fake_action::hang(), 1);
    q.masters[1].when("SET", fake_action::hang(), 1);
    CHECK(q.acquire("r").error() == errc::no_quorum);
    for (const std::size_t master : {0U, 1U}) {
        // On the wire when the acquire completes, so it needs no loop to arrive.
        q.masters[master].wait_for(
            [](const auto& log) { return std::any_of(log.begin(), log.end(), is_removal); });
        const auto sets = q.masters[master].commands("SET");
        REQUIRE(sets.size() == 1);
        const auto log = q.masters[master].commands();
        const received_command* const removal = removal_of(sets[0], log);
        REQUIRE(removal != nullptr);
        CHECK(removal->connection == sets[0].connection);
        CHECK(removal->sequence > sets[0].sequence);
        CHECK(q.masters[master].keys().empty());
        q.masters[master].release_hung();
    }
    // The SET has been executed now, later than anybody wants it.
    q.run_until([&] { return q.keys() == 0 && q.admitted() == 3; });
    CHECK(!q.acquire("r").error());
}

}} // namespace redlock::test
