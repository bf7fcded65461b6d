#include "virtual_quorum.hpp"

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

TEST_CASE("the result of a release is what a majority of the masters reports, and when it does") {
    const auto other = [](virtual_master& one) { one.put("p:{r}", "other"); };
    const auto hash = [](virtual_master& one) {
        one.drop("p:{r}");
        one.run({"HSET", "p:{r}", "field", "value"}, {});
    };
    const auto fails = [](virtual_master& one) { one.replies["EVALSHA"] = "-MISCONF\r\n"; };
    using enum release_result;
    using votes = std::vector<vote>;
    const struct {
        const char* rule;
        std::function<void(virtual_quorum&)> before;
        release_result result;
        milliseconds after = 1ms;
        votes seen = {};
    } rows[] = {
        {"held", [&](auto&) {}, released},
        {"at the deciding vote",
         [&](auto& it) { it.paths[1].back = it.paths[0].back = 50ms; },
         released,
         50ms},
        {"without those that have not replied",
         [&](auto& it) { it.paths[1].back = 50ms; },
         released,
         1ms,
         {vote::granted, vote::pending, vote::granted}},
        {"gone",
         [&](auto& it) { it.masters[0].data.clear(), it.masters[2].data.clear(); },
         expired},
        {"another owner's", [&](auto& it) { other(it.masters[0]), other(it.masters[1]); }, stolen},
        {"a key of another type",
         [&](auto& it) { hash(it.masters[0]), hash(it.masters[1]); },
         stolen},
        {"of each kind one",
         [&](auto& it) { it.masters[0].data.clear(), other(it.masters[1]); },
         uncertain},
        {"errors", [&](auto& it) { fails(it.masters[0]), fails(it.masters[1]); }, uncertain},
        {"silent until master_timeout", // these are the replies to the release
         [&](auto& it) { it.paths[0].hung = it.paths[1].hung = true; },
         uncertain,
         100ms,
         {vote::timed_out, vote::timed_out, vote::granted}},
        {"down",
         [&](auto& it) { it.cut_off(0), it.cut_off(1); },
         uncertain,
         0ms,
         {vote::unreachable, vote::unreachable, vote::pending}},
    };
    for (const auto& [rule, before, result, after, seen] : rows) {
        INFO(rule);
        held one(3);
        for (virtual_master& server : one.it.masters) {
            server.know(redlock::core::guarded_release);
        }
        before(one.it);
        const redlock::time_point began = one.it.now();
        CHECK(one.release() == result);
        CHECK(one.it.now() == began + after);
        CHECK((seen.empty() || one.it.removal_of(one.got)->votes == seen));
        one.it.run_for(60ms);
        const redlock::metrics counted = one.it.engine.count();
        CHECK(counted.released == (result == released ? 1 : 0));
        CHECK(counted.released_late == (result == expired || result == stolen ? 1 : 0));
        CHECK(counted.released_uncertain == (result == uncertain ? 1 : 0));
        for (virtual_master& server : one.it.masters) {
            CHECK((result == uncertain || server.value_of("p:{r}", one.it.now()) != one.got.token));
        }
        CHECK((result != released || one.it.idle()));
    }
}

TEST_CASE("a script that the server has not seen is said in full, and known from then on") {
    held one(3);
    CHECK(one.release() == release_result::released);
    const answer second = one.it.acquire_now(once());
    CHECK(one.it.release_now(second) == release_result::released);
    CHECK(one.it.masters[0].count("EVALSHA remove") == 1);
    CHECK(one.it.masters[0].count("EVAL remove") == 1);
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

}} // namespace removal_test
