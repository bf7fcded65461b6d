#include "virtual_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace removal_test { namespace {

using namespace unit;

// A quorum with one lock held, released by the test.
struct held {
    explicit held(std::size_t masters) : it(masters) {
        it.start();
        got = it.acquire_now(once(), 10ms);
    }
    release_result release() {
        it.release(got);
        it.run_while_not([&] { return it.removal_of(got).has_value(); });
        return it.removal_of(got)->what;
    }

    virtual_quorum it;
    answer got;
};

TEST_CASE("a lock that was held to the end is released, everywhere") {
    held one(5);
    CHECK(one.release() == release_result::released);
    one.it.run_for(10ms);
    CHECK(!one.it.has_key());
    CHECK(one.it.idle());
    CHECK(one.it.engine.count().released == 1);
}

TEST_CASE("a release is answered at the deciding vote") {
    held one(5);
    for (virtual_master& server : one.it.masters) {
        server.know(redlock::core::guarded_release);
    }
    for (std::size_t i = 0; i < 5; ++i) {
        one.it.paths[i].back = milliseconds(10 * (i + 1));
    }
    const redlock::time_point began = one.it.now();
    CHECK(one.release() == release_result::released);
    CHECK(one.it.now() == began + 30ms);
}

TEST_CASE("a lock that is gone from a majority was expired, one that is another's was stolen") {
    held gone(3);
    gone.it.masters[0].data.clear();
    gone.it.masters[2].data.clear();
    CHECK(gone.release() == release_result::expired);
    CHECK(gone.it.engine.count().released_late == 1);

    held taken(3);
    taken.it.masters[0].put(taken.it.key(), "other");
    taken.it.masters[1].put(taken.it.key(), "other");
    CHECK(taken.release() == release_result::stolen);
    taken.it.run_for(10ms);
    CHECK(taken.it.masters[0].value_of("p:{r}", taken.it.now()) == "other");
    CHECK(!taken.it.masters[2].value_of("p:{r}", taken.it.now()));
}

TEST_CASE("without a majority of one kind the result of a release is uncertain") {
    held mixed(3);
    mixed.it.masters[0].data.clear();
    mixed.it.masters[1].put(mixed.it.key(), "other");
    CHECK(mixed.release() == release_result::uncertain);

    held errors(3);
    errors.it.masters[0].replies["EVALSHA"] = errors.it.masters[1].replies["EVALSHA"] =
        "-MISCONF cannot persist\r\n";
    CHECK(errors.release() == release_result::uncertain);
    CHECK(errors.it.engine.count().released_uncertain == 1);
}

TEST_CASE("a release that nobody answers is uncertain at master_timeout") {
    held one(3);
    one.it.paths[0].hung = one.it.paths[1].hung = true;
    const redlock::time_point began = one.it.now();
    CHECK(one.release() == release_result::uncertain);
    CHECK(one.it.now() == began + 100ms);
    // The replies of the masters to this, and not to the acquire before.
    const std::vector<vote> expected{vote::timed_out, vote::timed_out, vote::granted};
    CHECK(one.it.removal_of(one.got)->votes == expected);
}

TEST_CASE("a release that is decided names masters that have not replied yet as pending") {
    held one(3);
    for (virtual_master& server : one.it.masters) {
        server.know(redlock::core::guarded_release);
    }
    one.it.paths[1].back = 50ms;
    CHECK(one.release() == release_result::released);
    const std::vector<vote> expected{vote::granted, vote::pending, vote::granted};
    CHECK(one.it.removal_of(one.got)->votes == expected);
}

TEST_CASE("a release with two of three masters down is uncertain at once") {
    held one(3);
    one.it.cut_off(0);
    one.it.cut_off(1);
    const redlock::time_point began = one.it.now();
    CHECK(one.release() == release_result::uncertain);
    CHECK(one.it.now() == began);
    const std::vector<vote> expected{vote::unreachable, vote::unreachable, vote::pending};
    CHECK(one.it.removal_of(one.got)->votes == expected);
}

TEST_CASE("a script that the server has not seen is said in full, and known from then on") {
    held one(3);
    CHECK(one.release() == release_result::released);
    const answer second = one.it.acquire_now(once());
    CHECK(one.it.release_now(second) == release_result::released);
    CHECK(one.it.masters[0].count("EVALSHA remove") == 1);
    CHECK(one.it.masters[0].count("EVAL remove") == 1);
}

TEST_CASE("a server that forgets each script is sent it in full, each time") {
    held one(3);
    for (virtual_master& server : one.it.masters) {
        server.when = [&server](const arguments&) {
            server.forget_scripts();
            return mishap::none;
        };
    }
    CHECK(one.release() == release_result::released);
    one.got = one.it.acquire_now(once());
    one.it.run_for(10ms);
    CHECK(one.release() == release_result::released);
    one.it.run_for(10ms);
    CHECK(one.it.masters[0].count("EVAL remove") == 2);
    CHECK(!one.it.has_key());
}

TEST_CASE("where all ways to remove are forbidden the key is left to its expiry") {
    held one(3);
    for (virtual_master& server : one.it.masters) {
        server.forbidden = {"EVAL", "EVALSHA"};
    }
    CHECK(one.release() == release_result::uncertain);
    one.it.run_for(11s);
    CHECK(!one.it.has_key());
    CHECK(one.it.engine.count().pending_removals == 0);
}

TEST_CASE("a removal that was lost with its connection is paid when the master is back") {
    for (const mishap what : {mishap::break_before, mishap::break_after}) {
        held one(3);
        one.it.masters[1].when = [what](const arguments& words) {
            return words[0].starts_with("EVAL") ? what : mishap::none;
        };
        CHECK(one.release() == release_result::released);
        one.it.run_for(5ms);
        CHECK(one.it.engine.count().pending_removals == 1);
        one.it.masters[1].when = nullptr;
        one.it.run_for(300ms);
        CHECK(!one.it.has_key());
        CHECK(one.it.idle());
        CHECK(one.it.engine.count().removals_repeated == 1);
    }
}

TEST_CASE("a debt is paid to a master that was down all the time") {
    held one(3);
    one.it.cut_off(1);
    CHECK(one.release() == release_result::released);
    CHECK(one.it.engine.count().pending_removals == 1);
    one.it.run_for(3s);
    CHECK(one.it.has_key());
    one.it.paths[1].reachable = true;
    one.it.run_for(3s);
    CHECK(!one.it.has_key());
    CHECK(one.it.engine.count().pending_removals == 0);
}

TEST_CASE("a debt is forgotten when the key must have expired, not before") {
    held one(3);
    one.it.cut_off(1);
    const redlock::time_point asked = one.got.deadline - usable(10s);
    CHECK(one.release() == release_result::released);
    one.it.run_until(asked + 10s + 102ms - 1ns);
    CHECK(one.it.engine.count().pending_removals == 1);
    one.it.run_for(1ns);
    CHECK(one.it.engine.count().pending_removals == 0);
    one.it.paths[1].reachable = true;
    one.it.run_for(10s);
    CHECK(one.it.masters[1].count("EVAL") == 0);
    CHECK(one.it.engine.count().removals_repeated == 0);
}

TEST_CASE("an extension makes a debt live as long as the longer lease") {
    held one(3);
    one.it.extend(one.got, 20s);
    const redlock::time_point extended = one.it.now();
    one.it.run_for(10ms);
    one.it.cut_off(1);
    CHECK(one.release() == release_result::released);
    one.it.run_until(extended + 20s + 202ms - 1ns);
    CHECK(one.it.engine.count().pending_removals == 1);
    one.it.run_for(1ns);
    CHECK(one.it.engine.count().pending_removals == 0);
}

TEST_CASE("a removal that was answered with an error is tried again at the next health check") {
    redlock::core::settings rules = settings_for(3);
    rules.health_check_interval = 1s;
    quorum_with_lock it(rules, once(), 10ms);
    it.masters[1].replies["EVALSHA"] = "-MISCONF cannot persist\r\n";
    const redlock::time_point began = it.now();
    CHECK(it.release_now(it.got) == release_result::released);
    it.run_until(began + 900ms);
    CHECK(it.masters[1].count("EVAL") == 1);
    it.run_until(began + 1100ms);
    CHECK(it.masters[1].count("EVAL") == 2);
    it.masters[1].replies.clear();
    it.run_until(began + 2200ms);
    CHECK(!it.has_key());
    CHECK(it.engine.count().pending_removals == 0);
}

TEST_CASE("a released lock is released once") {
    held one(3);
    one.it.release(one.got);
    one.it.release(one.got, 10ms);
    CHECK(one.it.masters[0].count("EVAL") == 1);
    one.it.release(one.got);
    one.it.engine.abandon(one.got.lease);
    one.it.run_for(10ms);
    CHECK(one.it.engine.count().released == 1);
    CHECK(one.it.idle());
}

TEST_CASE("a key of another type under the lock's name is somebody else's") {
    held one(3);
    for (const std::size_t i : {0U, 1U}) {
        one.it.masters[i].drop(one.it.key());
        one.it.masters[i].run({"HSET", one.it.key(), "field", "value"}, one.it.now());
    }
    CHECK(one.release() == release_result::stolen);
}

TEST_CASE("masters that were never asked are not told to remove anything") {
    virtual_quorum it(3);
    it.paths[2].reachable = false;
    it.start();
    const answer got = it.acquire_now(once());
    it.paths[2].reachable = true;
    it.run_for(3s);
    CHECK(it.release_now(got) == release_result::released);
    CHECK(it.masters[2].count("EVAL") == 0);
    const auto ballots = it.removal_of(got)->ballots;
    CHECK(ballots.text(2) == "it was not asked: it had no vote on this lock");
    CHECK(ballots.text(1).empty());
    CHECK(it.idle());
}

// The SET is in flight when its connection breaks; the server executes it after the removal that
// comes on the next connection.
TEST_CASE("a removal that finds nothing is repeated while a stray SET may still be executed") {
    started_quorum it(3);
    bool broke = false;
    it.masters[1].when = [&broke](const arguments& words) {
        return words[0] == "SET" && !std::exchange(broke, true) ? mishap::break_before
                                                                : mishap::none;
    };
    const redlock::time_point began = it.now();
    const answer got = it.take(once());
    REQUIRE(it.run_while_not([&] { return it.engine.ready() && it.connected(1); }));
    it.run_for(10ms);
    CHECK(it.release_now(got) == release_result::released);
    CHECK(it.masters[1].count("EVAL remove") == 1);
    CHECK(it.engine.count().pending_removals == 0); // it is not waited for
    it.masters[1].put(it.key(), got.token, it.now() + 10s);
    it.run_until(began + 10s + 102ms - 1ns);
    CHECK(it.masters[1].value_of(it.key(), it.now()) == got.token);
    it.run_for(10ms);
    CHECK(!it.has_key());
    CHECK(it.idle());
}

TEST_CASE("what was answered before its connection broke is not waited for") {
    held one(3);
    one.it.disconnect(1, 1s);
    one.it.masters[1].data.clear();
    CHECK(one.release() == release_result::released);
    one.it.run_for(10ms);
    CHECK(one.it.engine.count().pending_removals == 0);
    CHECK(one.it.idle());
}

TEST_CASE("a removal that is repeated is one vote") {
    started_quorum it(5);
    std::vector<int> sets(5, 0);
    for (const std::size_t i : {3U, 4U}) {
        it.masters[i].when = [&sets, i](const arguments& words) {
            return words[0] == "SET" && sets[i]++ == 0 ? mishap::break_before : mishap::none;
        };
    }
    const answer got = it.take(once(), 1s);
    it.paths[0].hung = it.paths[1].hung = it.paths[2].hung = true;
    it.release(got); // absent on two, again and again
    for (int i = 0; i < 3; ++i) {
        it.disconnect(3);
        it.disconnect(4, 20ms);
    }
    it.run_for(1s);
    CHECK(it.removal_of(got)->what == release_result::uncertain);
}

TEST_CASE("each master gets the removal in the variant that it knows") {
    virtual_quorum it(3);
    it.paths[1].reachable = it.paths[2].reachable = false;
    it.masters[0].know(redlock::core::guarded_release);
    it.start();
    for (const std::size_t away : {2U, 1U}) { // first 0 and 1 learn the script, then 2
        it.paths[1].reachable = it.paths[2].reachable = true;
        it.cut_off(away, 3s);
        const answer got = it.take(once());
        CHECK(it.release_now(got) == release_result::released);
    }
    CHECK(it.masters[2].count("EVAL remove") == 1);
    CHECK(it.masters[0].count("EVAL remove") == 1);
    CHECK(it.masters[0].count("EVALSHA remove") == 1);
}

TEST_CASE("a debt that has expired is forgotten while another master still owes its answer") {
    held one(3);
    one.it.cut_off(1);
    one.it.paths[2].hung = true;
    one.it.release(one.got, 200ms);
    CHECK(one.it.removal_of(one.got)->what == release_result::uncertain);
    CHECK(one.it.engine.count().pending_removals == 1);
    one.it.run_until(one.got.deadline + 1s);
    CHECK(one.it.engine.count().pending_removals == 0);
    one.it.resume(2);
    one.it.paths[1].reachable = true;
    one.it.run_for(3s);
    CHECK(one.it.idle());
}

}} // namespace removal_test
