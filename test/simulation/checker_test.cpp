// Self-tests: what neither a wrong variant (variants_test.cpp) nor a right run shows of the judge.

#include "checker.hpp"
#include "profiles.hpp"
#include "support/test.hpp"
#include "world.hpp"

using namespace simulation;

namespace {

checker strict() {
    return {{.exclusion = true, .order = true, .bounds = true}, 2};
}

bool found(const checker& judge, promise what) {
    return judge.found() && judge.found()->broken == what;
}

} // namespace

TEST_CASE("a holder that acts again is found") {
    checker judge = strict();
    const auto first = judge.takes(10, 0, 0, 0, 100);
    judge.acts_until(99, first, 150);
    CHECK_FALSE(judge.found());
    judge.acts_until(150, first, 200);
    CHECK(found(judge, promise::sane));
}

TEST_CASE("the fenced store refuses an older owner, and is found out when it can't") {
    for (const bool differ : {true, false}) {
        checker judge({.order = differ}, 1);
        const auto older = judge.takes(10, 0, 0, 7, 20);
        const auto newer = judge.takes(30, 1, 0, differ ? 8U : 7U, 40);
        judge.write(newer);
        judge.write(older);
        CHECK_FALSE(judge.found());
        CHECK(judge.refused_writes() == (differ ? 1U : 0U));
        CHECK(judge.accepted_writes() == (differ ? 1U : 2U));
        CHECK(judge.inversions() == (differ ? 0U : 1U));
    }
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

TEST_CASE("a waiter that gives up when it was overtaken by one that came later is found") {
    checker judge = strict();
    judge.joins(0, 0, 1);
    judge.joins(0, 0, 2);
    judge.served(20, 0, 2);
    SECTION("but not when it had given up before, and learns so later") {
        judge.leaves(0, 1, 20);
        CHECK_FALSE(judge.found());
    }
    SECTION("as it gives up only then") {
        judge.leaves(0, 1, 30);
        CHECK(found(judge, promise::turn));
    }
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
