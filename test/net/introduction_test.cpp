// How a connection introduces itself, and which masters may vote.
#include "quorum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using namespace redlock;
using namespace redlock::test;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

using words = std::vector<std::string>;

const std::string secret = "open-sesame-7391";

std::vector<words> said_to(const fake_master& master) {
    std::vector<words> result;
    for (const received_command& command : master.commands()) {
        result.push_back(command.args);
    }
    return result;
}

std::vector<fake_options> guarded_by(const std::string& password) {
    fake_options options;
    options.requirepass = password;
    return std::vector<fake_options>(3, options);
}

} // namespace

TEST_CASE("a connection logs in with a password alone") {
    quorum q(guarded_by(secret), [](config& c) { c.password = secret; });
    q.start();
    CHECK(said_to(q.masters[0]).front() == words{"AUTH", secret});
    CHECK(!q.acquire("r").error());
}

TEST_CASE("a connection logs in with user and password") {
    quorum q(guarded_by(secret), [](config& c) {
        c.username = "somebody";
        c.password = secret;
        c.masters[1].username = "alice"; // its own go before
        c.masters[1].password = secret;
    });
    q.start();
    CHECK(said_to(q.masters[0]).front() == words{"AUTH", "somebody", secret});
    CHECK(said_to(q.masters[1]).front() == words{"AUTH", "alice", secret});
}

TEST_CASE("a connection selects its database and says its name before anything else") {
    quorum q(3, [](config& c) {
        c.client_name = "night-shift";
        c.masters[0].database = 3;
    });
    q.start();
    const std::vector<words> said = said_to(q.masters[0]);
    REQUIRE(said.size() >= 2);
    CHECK(said[0] == words{"SELECT", "3"});
    CHECK(said[1] == words{"CLIENT", "SETNAME", "night-shift"});
    CHECK(q.masters[1].count("SELECT") == 0);
    CHECK(q.masters[1].count("AUTH") == 0);
}

TEST_CASE("a connection without a name says none") {
    quorum q(3, [](config& c) { c.client_name.clear(); });
    q.start();
    CHECK(q.count("CLIENT SETNAME") == 0);
}

TEST_CASE("a server that has no names for clients votes all the same") {
    quorum q;
    for (fake_master& master : q.masters) {
        master.when("CLIENT", fake_action::reply("-NOPERM no\r\n"));
    }
    q.start();
    CHECK(!q.acquire("r").error());
}

TEST_CASE("a connection introduces itself again after each reconnection") {
    quorum q(guarded_by(secret), [](config& c) { c.password = secret; });
    q.start();
    q.masters[0].drop_connections();
    q.run_until([&] { return q.masters[0].count("AUTH") == 2 && q.admitted() == 3; });
    CHECK(!q.acquire("r").error());
}

TEST_CASE("a wrong password is reported, but not which") {
    quorum q(guarded_by("another"), [](config& c) {
        c.password = secret;
        c.reconnect_delay_min = c.reconnect_delay_max = 1h;
    });
    q.start(0);
    q.run_until([&] {
        return q.health_of(0).state == master_state::down
               && q.health_of(1).state == master_state::down;
    });
    CHECK_THAT(q.health_of(0).text, ContainsSubstring("WRONGPASS"));
    acquisition& refused = q.acquire("r");
    CHECK(refused.error() == errc::no_quorum);
    CHECK(refused.vote_of(0).vote == vote::error);
    CHECK_THAT(refused.vote_of(0).text, ContainsSubstring("WRONGPASS"));
    CHECK_THAT(q.all_words(refused.why()), !ContainsSubstring(secret));
}

// As a server answers whose AUTH was renamed, or a proxy that does not know it.
TEST_CASE("a server that says the password back does not bring it into log or health") {
    quorum q(3, [](config& c) {
        c.username = "somebody";
        c.password = secret;
        c.reconnect_delay_min = c.reconnect_delay_max = 1h;
    });
    for (fake_master& master : q.masters) {
        master.when(
            "AUTH",
            fake_action::reply(
                "-ERR unknown command 'AUTH', with args beginning with: 'somebody' '" + secret
                + "' \r\n"));
    }
    q.start(0);
    q.run_until([&] { return q.health_of(0).state == master_state::down; });
    CHECK_THAT(q.health_of(0).text, ContainsSubstring("AUTH"));
    CHECK_THAT(q.all_words(q.acquire("r").why()), !ContainsSubstring(secret));
}

TEST_CASE("neither password nor token is in anything that is printed") {
    quorum q(guarded_by(secret), [](config& c) { c.password = secret; });
    q.start();
    lock held = q.acquired("r");
    const std::string token(held.token());
    acquisition& refused = q.acquire("r");
    CHECK(refused.error() == errc::contended);
    loss_outcome& loss = q.begin_wait_lost(held);
    for (fake_master& master : q.masters) {
        master.flush_keys();
    }
    q.extend(held, 20s);
    q.wait(loss);
    for (const std::string& words : {q.all_words(refused.why()), q.all_words(loss.why())}) {
        CHECK_THAT(words, !ContainsSubstring(secret));
        CHECK_THAT(words, !ContainsSubstring(token));
    }
}

TEST_CASE("a server that cannot be trusted with a lock does not vote, and says why") {
    struct fault {
        std::string name;
        std::map<std::string, std::string> info;
        std::string text;
    };
    const auto one = GENERATE(
        fault{"replica", {{"role", "slave"}}, "replica"},
        fault{"loading", {{"loading", "1"}}, "LOADING"},
        fault{
            "evicts",
            {{"maxmemory", "1000000"}, {"maxmemory_policy", "volatile-lru"}},
            "volatile-lru"});
    DYNAMIC_SECTION(one.name) {
        fake_options unfit;
        unfit.info = one.info;
        quorum q({unfit, unfit, fake_options()}, [](config& c) { c.health_check_interval = 20ms; });
        q.start(1);
        q.run_until([&] {
            return q.health_of(0).state == master_state::ineligible
                   && q.health_of(1).state == master_state::ineligible;
        });
        CHECK_THAT(q.health_of(0).text, ContainsSubstring(one.text));
        acquisition& refused = q.acquire("r");
        CHECK(refused.error() == errc::no_quorum);
        CHECK(refused.vote_of(0).vote == vote::error);
        CHECK_THAT(refused.vote_of(0).text, ContainsSubstring(one.text));
        CHECK(q.count("SET") == 0);
        CHECK_THAT(q.all_words(refused.why()), ContainsSubstring("does not vote"));

        // It is looked at again, and votes once it is fit.
        for (const std::size_t master : {0U, 1U}) {
            q.masters[master].set_info("role", "master");
            q.masters[master].set_info("loading", "0");
            q.masters[master].set_info("maxmemory_policy", "noeviction");
        }
        q.run_until([&] { return q.admitted() == 3; });
        CHECK(!q.acquire("r").error());
    }
}

TEST_CASE("a master that becomes a replica is noticed at its first refusal") {
    quorum q;
    q.start();
    q.masters[0].set_info("role", "slave");
    q.masters[0].when("SET", fake_action::reply("-READONLY You can't write\r\n"));
    lock held = q.acquired("r");
    q.run_until([&] { return q.health_of(0).state == master_state::ineligible; });
    CHECK_THAT(q.health_of(0).text, ContainsSubstring("replica"));
}

TEST_CASE("one server under two endpoints votes once") {
    fake_options twin;
    twin.info = {{"run_id", std::string(40, 'a')}};
    quorum q({twin, twin, fake_options()});
    q.start(2);
    q.run_until([&] {
        return q.health_of(0).state == master_state::duplicate
               || q.health_of(1).state == master_state::duplicate;
    });
    const std::size_t second = q.health_of(0).state == master_state::duplicate ? 0 : 1;
    CHECK(q.health_of(1 - second).state == master_state::admitted);
    CHECK_THAT(q.health_of(second).text, ContainsSubstring("same server"));
    lock held = q.acquired("r");
    CHECK(q.masters[second].count("SET") == 0);
    CHECK(q.release(held).value() == release_result::released);

    q.masters[2].set_key("redlock:{r}", "somebody's");
    acquisition& refused = q.acquire("r"); // one grant, one held: a majority of three has answered
    CHECK(refused.error() == errc::contended);
    CHECK(refused.vote_of(second).vote == vote::duplicate);
}

TEST_CASE("a master that is young is quarantined, and the time left is reported") {
    fake_options young;
    young.info = {{"uptime_in_seconds", "5"}};
    quorum q({young, young, fake_options()}, [](config& c) { c.max_ttl = 60s; });
    q.start(1);
    q.run_until([&] {
        return q.health_of(0).state == master_state::quarantined
               && q.health_of(1).state == master_state::quarantined;
    });
    REQUIRE(q.health_of(0).quarantine_left);
    CHECK(*q.health_of(0).quarantine_left <= 60s);
    CHECK(*q.health_of(0).quarantine_left > 20s);
    acquisition& refused = q.acquire("r");
    CHECK(refused.error() == errc::no_quorum);
    CHECK(refused.vote_of(0).vote == vote::quarantined);
    REQUIRE(refused.vote_of(0).time_left);
    CHECK(*refused.vote_of(0).time_left <= 60s);
    CHECK(*refused.vote_of(0).time_left > 20s);
    CHECK_THAT(to_string(refused.why()), ContainsSubstring("quarantined"));
    CHECK_THAT(refused.vote_of(0).text, ContainsSubstring("s left"));
}

TEST_CASE("plain: a promoted server is quarantined, however long it has been up") {
    fake_options promoted;
    promoted.info = {{"master_replid2", "5a49bb1bd1a3e9033a8af5c5ac17f1b18505144c"}};
    quorum q({fake_options(), fake_options(), promoted});
    q.start(2);
    q.run_until([&] { return q.health_of(2).state == master_state::quarantined; });
    CHECK(!q.acquire("r").error());
}

TEST_CASE("an acquire that waits goes through when the quarantine ends") {
    fake_options young;
    young.info = {{"uptime_in_seconds", "0"}};
    quorum q(std::vector<fake_options>(3, young), [](config& c) { c.max_ttl = 500ms; });
    q.start(0);
    nothing& ready = q.begin_ready();
    acquisition& waiting = q.begin_acquire("r", patiently(400ms));
    q.run_until([&] { return q.health_of(0).state != master_state::connecting; });
    CHECK_FALSE(ready.done());
    CHECK(!q.wait(waiting).error());
    CHECK(!q.wait(ready).error());
}

TEST_CASE("with the quarantine off a restarted master votes at once, and that is said loudly") {
    fake_options young;
    young.info = {{"uptime_in_seconds", "0"}};
    quorum q(std::vector<fake_options>(3, young), [](config& c) {
        c.quarantine = quarantine::off;
        c.log.level = log_level::warning;
    });
    q.start();
    CHECK(!q.acquire("r").error());
    CHECK(q.manager->get_health().quarantine_off);
    CHECK_THAT(to_string(q.manager->get_health()), ContainsSubstring("QUARANTINE IS OFF"));
    REQUIRE(!q.log().empty());
    CHECK_THAT(q.log().front(), ContainsSubstring("quarantine is off"));
}

TEST_CASE("what is doubtful in a configuration is in the log when the manager runs") {
    quorum q(std::vector<fake_options>(2), [](config& c) { c.log.level = log_level::warning; });
    q.start();
    REQUIRE(q.log().size() == 1);
    CHECK(q.log().front() == "2 masters tolerate as many failures as 1: use an odd number");
}

TEST_CASE("a second async_run is refused, and the log says that it was one") {
    quorum q;
    q.start();
    nothing& again = q.begin_run();
    q.wait(again);
    CHECK(again.error() == errc::invalid_argument);
    CHECK_THAT(q.log().back(), ContainsSubstring("async_run was called before"));
}

TEST_CASE("a resource's name may be any bytes, and a log line stays one line") {
    quorum q({fake_options(), fake_options(), fake_options()}, [](config& c) {
        c.log.level = log_level::debug;
        c.contention_warning = 1;
    });
    q.start();
    const std::string odd = std::string("a\nb\r\x1b[2J") + '\0';
    lock held = q.acquired(odd);
    CHECK(q.acquire(odd).error() == errc::contended);
    bool seen = false;
    for (const std::string& line : q.log()) {
        seen = seen || line.find("a\\x0ab\\x0d\\x1b[2J\\x00") != std::string::npos;
        for (const char c : line) {
            CHECK(static_cast<unsigned char>(c) >= 0x20);
        }
    }
    CHECK(seen);
}

TEST_CASE("a port that hangs up at the first word may be one for TLS, and that is said") {
    quorum q;
    for (const char* first : {"CLIENT", "INFO"}) {
        q.masters[0].when(first, fake_action::close_before_reply());
    }
    q.masters[1].when("INFO", fake_action::close_before_reply()); // which comes last
    q.start(1);
    q.run_until([&] { return q.health_of(0).text.find("rediss://") != std::string::npos; });
    q.run_until([&] { return q.health_of(1).text.find("closed") != std::string::npos; });
    CHECK_THAT(q.health_of(1).text, !ContainsSubstring("rediss://"));
}

TEST_CASE("a master that restarts empty under a holder does not vote for another") {
    quorum q;
    q.start();
    lock held = q.acquired("r");
    q.run_until([&] { return q.keys() == 3; });
    q.masters[0].restart_empty();
    q.masters[1].restart_empty();
    q.run_until([&] {
        return q.health_of(0).state == master_state::quarantined
               && q.health_of(1).state == master_state::quarantined;
    });
    CHECK(q.acquire("r").error() == errc::no_quorum);
    CHECK(held.held());
}

TEST_CASE("health tells versions and run ids") {
    quorum q;
    q.start();
    CHECK(q.health_of(0).version == "redis 7.0.15");
    CHECK(q.health_of(0).run_id == q.masters[0].run_id());
    CHECK(q.health_of(0).compare_and_delete == "EVALSHA");
    CHECK(q.health_of(0).text.empty());
    CHECK_THAT(to_string(q.manager->get_health()), ContainsSubstring("3 of 3"));
}
