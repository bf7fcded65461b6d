// Self-tests: each promise can be found broken, by the judge alone and in whole runs.

#include "checker.hpp"
#include "profiles.hpp"
#include "support/test.hpp"
#include "world.hpp"

#include <catch2/generators/catch_generators.hpp>

using namespace simulation;

namespace {

checker strict() {
    return {{.exclusion = true, .order = true, .bounds = true}, 2};
}

bool found(const checker& judge, promise what) {
    return judge.found() && judge.found()->broken == what;
}

} // namespace

TEST_CASE("two holders at once are found") {
    checker judge = strict();
    judge.takes(10, 0, 0, 0, 100);
    judge.takes(20, 1, 1, 0, 100); // another resource
    CHECK_FALSE(judge.found());
    judge.takes(99, 1, 0, 0, 200);
    CHECK(found(judge, promise::exclusion));
    CHECK(judge.overlaps() == 1);
}

TEST_CASE("one holder after the other is fine") {
    checker judge = strict();
    judge.takes(10, 0, 0, 0, 100);
    judge.takes(100, 1, 0, 0, 200);
    const auto third = judge.takes(200, 2, 0, 0, 300);
    judge.lets_go(210, third);
    const auto fourth = judge.takes(210, 3, 0, 0, 300);
    CHECK_FALSE(judge.found());
    SECTION("until one is extended when it is over") {
        judge.acts_until(220, third, 230);
        CHECK_FALSE(judge.found()); // it has let go: it does not act any more
        judge.acts_until(220, fourth, 400);
        judge.takes(390, 0, 0, 0, 500);
        CHECK(found(judge, promise::exclusion));
    }
}

TEST_CASE("a holder that acts again is found") {
    checker judge = strict();
    const auto first = judge.takes(10, 0, 0, 0, 100);
    judge.acts_until(99, first, 150);
    CHECK_FALSE(judge.found());
    judge.acts_until(150, first, 200);
    CHECK(found(judge, promise::sane));
}

TEST_CASE("where the order of tokens is not demanded, a token that is given twice is found") {
    checker judge({.exclusion = false, .order = false, .unique = true, .bounds = false}, 2);
    judge.takes(10, 0, 0, 7, 20);
    judge.takes(30, 1, 0, 6, 40);
    judge.takes(30, 1, 1, 7, 40); // another resource
    CHECK_FALSE(judge.found());
    judge.takes(50, 2, 0, 7, 60);
    CHECK(found(judge, promise::order));
}

TEST_CASE("where exclusion is not demanded, overlaps are counted") {
    checker judge({.exclusion = false, .order = false, .bounds = false}, 1);
    judge.takes(10, 0, 0, 0, 100);
    judge.takes(20, 1, 0, 0, 100);
    CHECK_FALSE(judge.found());
    CHECK(judge.overlaps() == 1);
}

TEST_CASE("a fencing token that does not increase is found") {
    checker judge = strict();
    judge.takes(10, 0, 0, 7, 20);
    SECTION("the same again") {
        judge.takes(30, 1, 0, 7, 40);
        CHECK(found(judge, promise::order));
    }
    SECTION("a smaller one") {
        judge.takes(30, 1, 0, 6, 40);
        CHECK(found(judge, promise::order));
    }
    SECTION("a larger one is fine, and so is another resource's") {
        judge.takes(30, 1, 0, 8, 40);
        judge.takes(30, 1, 1, 3, 40);
        CHECK_FALSE(judge.found());
    }
}

TEST_CASE("the fenced store refuses an older owner, and is found out when it can't") {
    checker judge({.exclusion = true, .order = true, .bounds = true}, 1);
    const auto older = judge.takes(10, 0, 0, 7, 20);
    const auto newer = judge.takes(30, 1, 0, 8, 40);
    judge.write(35, newer);
    judge.write(50, older);
    CHECK_FALSE(judge.found());
    CHECK(judge.refused_writes() == 1);
    CHECK(judge.accepted_writes() == 1);
    SECTION("with equal tokens") {
        checker other({.exclusion = true, .order = true, .bounds = true}, 1);
        const auto first = other.takes(10, 0, 0, 7, 20);
        const auto second = other.takes(30, 1, 0, 7, 40);
        other.write(35, second);
        other.write(50, first);
        // The order is what is broken first; the write on top of it is accepted, wrongly.
        CHECK(found(other, promise::order));
        CHECK(other.accepted_writes() == 2);
        CHECK(other.inversions() == 1);
    }
}

TEST_CASE("a release that is said to have been in time and was not is found") {
    checker judge = strict();
    const auto first = judge.takes(10, 0, 0, 0, 100);
    judge.lets_go(50, first);
    judge.takes(50, 1, 0, 0, 150);
    judge.released(60, first);
    CHECK_FALSE(judge.found());
    SECTION("when the lock had been lost") {
        judge.loses(first);
        judge.released(60, first);
        CHECK(found(judge, promise::truth));
    }
    SECTION("when somebody else had it before it was let go") {
        checker other({.exclusion = true, .order = false, .bounds = false}, 1);
        const auto reader = other.takes(10, 0, 0, 0, 100, taking::reading);
        other.takes(20, 1, 0, 0, 100, taking::reading);
        other.lets_go(50, reader);
        other.released(60, reader);
        CHECK_FALSE(other.found()); // readers may meet
        checker again = strict();
        const auto one = again.takes(10, 0, 0, 0, 100);
        again.takes(20, 1, 1, 0, 100);
        again.takes(100, 1, 0, 0, 200);
        again.lets_go(110, one);
        again.released(120, one);
        CHECK_FALSE(again.found()); // it had stopped when its lease was over
        const auto two = again.takes(200, 0, 0, 0, 300);
        again.takes(250, 1, 0, 0, 300);
        again.lets_go(260, two);
        again.released(270, two);
        CHECK(found(again, promise::exclusion)); // which is broken first
    }
}

TEST_CASE("a lock that goes on after another owner has had it is found") {
    checker judge = strict();
    const auto first = judge.takes(10, 0, 0, 0, 100);
    judge.takes(10, 0, 1, 0, 100);
    judge.goes_on(90, first);
    CHECK_FALSE(judge.found());
    judge.takes(170, 1, 0, 0, 180, GENERATE(taking::one, taking::reading));
    judge.goes_on(190, first);
    CHECK(found(judge, promise::truth));
}

TEST_CASE("a holder that is extended after another owner had its lock is found") {
    checker judge({.exclusion = false, .order = false, .bounds = false, .yields = 100}, 1);
    const auto older = judge.takes(10, 0, 0, 0, 120);
    const auto newer = judge.takes(50, 1, 0, 0, 150);
    judge.acts_until(60, older, 150); // what was under way
    judge.acts_until(60, newer, 400);
    CHECK_FALSE(judge.found());
    SECTION("by more than was under way") {
        judge.acts_until(70, older, 151);
        CHECK(found(judge, promise::exclusion));
    }
    SECTION("also when it was passed on") {
        judge.lets_go(70, older);
        const auto next = judge.takes(70, 0, 0, 0, 150, taking::one, 10);
        judge.acts_until(80, newer, 500);
        CHECK_FALSE(judge.found());
        judge.acts_until(80, next, 171);
        CHECK(found(judge, promise::exclusion));
    }
}

TEST_CASE("a key that stays too long is found") {
    checker judge = strict();
    judge.key_stays(10, 0, 100, 100);
    CHECK_FALSE(judge.found());
    judge.key_stays(10, 0, 101, 100);
    CHECK(found(judge, promise::no_orphan));
    checker other = strict();
    other.key_stays(10, 0, no_time, 100);
    CHECK(found(other, promise::no_orphan));
}

TEST_CASE("a loss that is signalled late is found, unless the client was paused") {
    checker judge = strict();
    judge.loss_told(10, 0, 0, false);
    judge.loss_told(10, 0, 5 * ms, true);
    CHECK_FALSE(judge.found());
    judge.loss_told(10, 0, 5 * ms, false);
    CHECK(found(judge, promise::loss_told));
}

TEST_CASE("a waiter that is overtaken by one that came later is found") {
    checker judge = strict();
    judge.joins(0, 0, 1);
    judge.joins(0, 0, 2);
    judge.joins(0, 1, 3);
    judge.joins(1, 0, 1);
    judge.served(10, 0, 3); // of another resource
    judge.served(10, 1, 1); // another client's line
    SECTION("in turn is fine") {
        judge.served(20, 0, 1);
        judge.served(30, 0, 2);
        CHECK_FALSE(judge.found());
    }
    SECTION("and so is a waiter that had given up before, and learns so later") {
        judge.served(20, 0, 2);
        judge.leaves(0, 1, 20);
        CHECK_FALSE(judge.found());
    }
    SECTION("and so are those that are gone with their client") {
        judge.served(20, 0, 2);
        judge.all_leave(0);
        CHECK_FALSE(judge.found());
    }
    SECTION("when it is served") {
        judge.served(20, 0, 2);
        judge.served(30, 0, 1);
        CHECK(found(judge, promise::turn));
    }
    SECTION("when it gives up") {
        judge.served(20, 0, 2);
        judge.leaves(0, 1, 30);
        CHECK(found(judge, promise::turn));
    }
}

TEST_CASE("a majority of masters that never comes back prevents progress") {
    lua_machine lua;
    plan what = make_plan(3, *find_profile("calm"));
    what.progress_bound = sec;
    for (std::size_t i = 0; i < what.masters.size(); ++i) {
        fault one{.kind = fault_kind::stall};
        one.at = what.faults_end - 10 * ms;
        one.span = 100 * sec; // longer than it says
        one.master = static_cast<int>(i);
        what.faults.push_back(one);
    }
    const outcome ended = run(what, lua);
    REQUIRE(ended.broken);
    CHECK(ended.broken->broken == promise::progress);
}

TEST_CASE("a violation can be shrunk, and the small plan still shows it") {
    lua_machine lua;
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
        plan what = make_plan(seed, *find_profile("network"));
        make_mistake(what, mistake::fewer_masters);
        if (!run(what, lua).broken) {
            continue;
        }
        const plan small = shrink(what, lua, promise::exclusion);
        CHECK(small.size() < what.size());
        const outcome again = run(small, lua, true);
        REQUIRE(again.broken);
        CHECK(again.broken->broken == promise::exclusion);
        CHECK(again.story.find("HOLDS") != std::string::npos);
        return;
    }
    FAIL("no violation to shrink");
}

TEST_CASE("the same seed gives the same run") {
    lua_machine lua;
    lua_machine other;
    for (const char* const name : {"all", "guarded-all", "mixed-all"}) {
        const plan what = make_plan(7, *find_profile(name));
        CHECK(run(what, lua, true).story == run(what, other, true).story);
    }
}
