// A claim and its phases: one at a time, and what only one needs is gone in the next.

#include "core/locks/claim.hpp"
#include "support/test.hpp"

namespace claim_test { namespace {

using namespace redlock::core;
using redlock::time_point;

constexpr time_point now{1000s};

TEST_CASE("a claim goes from attempt to lease, to loss, to removal") {
    claim one;
    CHECK(one.is_asking());
    one.ask({attempt::origin::attach, 3, 2});
    CHECK(one.is_asking());
    CHECK(one.asking().attaches());
    CHECK(!one.acts());
    CHECK(!one.ended());

    one.believed_until = now + 9s;
    one.hold(lease({.stop_margin = 1s}, now, now + 8s, now + 3s));
    CHECK(!one.is_asking());
    CHECK(one.is_held());
    CHECK(one.held().held_until() == now + 7s);
    CHECK(one.acts_until() == now + 8s);
    CHECK(one.acts());
    CHECK(!one.ended());

    one.lose();
    CHECK(!one.is_held());
    CHECK(one.is_lost());
    CHECK(one.acts_until() == now + 9s); // its holder was shown that
    CHECK(one.acts());
    CHECK(one.ended());

    one.end({true, now + 10s});
    CHECK(one.is_ending());
    CHECK(one.ending().wanted());
    CHECK(!one.acts());
    CHECK(one.ended());
}

TEST_CASE("a lease that is handed off is an attempt again") {
    claim one;
    one.hold(lease({}, now, now + 8s, now + 3s));
    one.ask({attempt::origin::hand_off, 3, 2});
    CHECK(one.is_asking());
    CHECK(one.asking().from() == attempt::origin::hand_off);
    CHECK(!one.acts());
}

TEST_CASE("a claim that is used again is an attempt that nothing is known of") {
    claim one;
    one.fencing_token = 7;
    one.need_more().left_behind.sets = set_of(1);
    one.end({false, forever});
    one.reset();
    CHECK(one.is_asking());
    CHECK(!one.asking().attaches());
    CHECK(one.fencing_token == 0);
    CHECK(one.left_behind().sets == 0);
}

}} // namespace claim_test
