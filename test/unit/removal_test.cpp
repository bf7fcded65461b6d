#include "virtual_quorum.hpp"

namespace removal_test { namespace {

using namespace unit;

TEST_CASE("a removal that was lost with its connection is paid when the master is back") {
    for (const mishap what : {mishap::break_before, mishap::break_after}) {
        quorum_with_lock one(3, once(), 10ms);
        one.masters[1].when = [what](const arguments& words) {
            return words[0].starts_with("EVAL") ? what : mishap::none;
        };
        CHECK(one.release_now(one.got) == release_result::released);
        one.run_for(5ms);
        CHECK(one.engine.count().pending_removals == 1);
        one.masters[1].when = nullptr;
        one.run_for(300ms);
        CHECK(!one.has_key());
        CHECK(one.idle());
        CHECK(one.engine.count().removals_repeated == 1);
    }
}

TEST_CASE("a debt is forgotten when the key must have expired, not before") {
    quorum_with_lock one(3, once(), 10ms);
    one.cut_off(1);
    const redlock::time_point asked = one.got.deadline - usable(10s);
    CHECK(one.release_now(one.got) == release_result::released);
    one.run_until(asked + 10s + 102ms - 1ns);
    CHECK(one.engine.count().pending_removals == 1);
    one.run_for(1ns);
    CHECK(one.engine.count().pending_removals == 0);
    one.paths[1].reachable = true;
    one.run_for(10s);
    CHECK(one.masters[1].count("EVAL") == 0);
    CHECK(one.engine.count().removals_repeated == 0);
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
