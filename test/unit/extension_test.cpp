#include "core/locks/extension.hpp"
#include "support/test.hpp"

namespace extension_test { namespace {

using namespace redlock::core;
using redlock::time_point;
using enum key_state;
using enum ruling;

constexpr time_point now{1000s};
constexpr time_point lasts = now + 3s;

struct master : vote_term {
    // What it confirmed before this round lasts until then.
    master(key_state of_key, time_point until = lasts) : found(of_key) {
        confirm(until);
        forget(); // it blocks all the same
    }
    key_state found;
};

struct row {
    std::vector<master> masters;
    ruling then;
    std::size_t voters = 0; // 0: as many as there are masters
};

void check(const std::vector<row>& rows, const extension& round, bool removal_seen = false) {
    for (const row& the : rows) {
        INFO("row " << &the - rows.data());
        const std::size_t voters = the.voters == 0 ? the.masters.size() : the.voters;
        CHECK(round.rule(the.masters, voters, quorum_of(voters), removal_seen, now) == the.then);
    }
}

TEST_CASE(
    "extension: a majority that has the key wins, else HEAL goes where nobody else can have it") {
    check(
        {
            {{kept, kept, pending}, won},
            {{kept, kept, ineligible}, won},
            {{kept, pending, pending}, open},
            {{kept, missing, pending}, open},
            {{kept, quarantined, pending}, open},
            {{kept, missing, missing}, failed},
            {{kept, missing, owned_by_other}, failed},
            {{kept, missing, quarantined}, heal},
            {{missing, quarantined, quarantined}, heal},
            {{kept, quarantined, quarantined}, failed}, // there is nothing to heal
            {{unknown, unknown, unknown}, failed},
            {{missing, missing, unknown}, failed},
            // An ineligible master does not block, as its vote may be another owner's.
            {{kept, missing, ineligible}, failed},
            // One that is silent blocks as long as what it confirmed lasts.
            {{kept, missing, {unknown, lasts}}, heal},
            {{kept, missing, {unknown, now + 1ns}}, heal},
            {{kept, missing, {unknown, now}}, failed},
            {{kept, missing, {unknown, never}}, failed},
            // Half of an even number blocks, unless there are other members.
            {{kept, kept, missing, missing}, heal},
            {{kept, missing, missing, missing}, failed},
            {{kept, kept, missing, missing}, failed, 5},
        },
        {.active = true});
}

TEST_CASE("extension: the replies to HEAL decide the round") {
    check(
        {
            {{kept, healed, pending}, won},
            {{kept, pending, unknown}, open},
            {{kept, missing, quarantined}, failed}, // it is not healed twice
            {{kept, unknown, quarantined}, failed},
        },
        {.active = true, .healing = true});
}

TEST_CASE("extension: after a removal from outside only a majority that has the key wins") {
    check(
        {{{kept, kept, pending}, won},
         {{kept, pending, quarantined}, open},
         {{kept, missing, quarantined}, failed}},
        {.active = true},
        true);
    check(
        {{{kept, healed, pending}, won}, {{kept, pending, quarantined}, failed}},
        {.active = true, .healing = true},
        true);
}

TEST_CASE("extension: a vote that may be lost blocks until its end, and what is removed does not") {
    vote_term one;
    CHECK(one.until() == never);
    one.confirm(lasts);
    one.confirm(lasts - 1s);
    CHECK(one.until() == lasts);
    one.forget();
    CHECK(one.until() == never);
    CHECK(one.blocks_until() == lasts);
    one.confirm(now + 1s);
    CHECK(one.until() == now + 1s);
    CHECK(one.remove(now)); // something outside of the protocol did it
    CHECK(one.blocks_until() == never);
    CHECK(!one.remove(now));
    one.confirm(now);
    CHECK(!one.remove(now)); // it has expired
}

}} // namespace extension_test
