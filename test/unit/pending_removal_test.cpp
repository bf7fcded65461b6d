// What a claim owes the masters after its end, and the ledger of all of that: without an engine.

#include "core/base/pool.hpp"
#include "core/locks/claim_record.hpp"
#include "core/locks/removal.hpp"
#include "core/locks/removal_limits.hpp"
#include "support/test.hpp"

namespace pending_removal_test { namespace {

using namespace redlock::core;
using namespace redlock;

constexpr time_point now{1000s};
constexpr time_point decide_by = now + 1s;
constexpr time_point expires_at = now + 10s;
constexpr auto pause = 5s;
constexpr time_point retry_at = now + pause;

// Of three masters; it is sent to those that are up.
removal removal_of(std::vector<bool> up, bool late = false, time_point result_by = decide_by) {
    removal made(late, result_by);
    const master_set reachable = set_where(up.size(), [&](std::size_t i) { return up[i]; });
    made.begin(set_where(up.size(), [](std::size_t) { return true; }), reachable);
    CHECK(made.sent(reachable) == reachable);
    return made;
}

// The record of the claim.
claim_record owing(const strays& left = {}) {
    claim_record mine;
    mine.expires_at = expires_at;
    mine.need_more().left_behind = left;
    return mine;
}

removal::receipt
answer(removal& to, std::size_t master, vote what, const strays& left = {}, time_point at = now) {
    return to.answered(owing(left), master, what, at, pause);
}

std::optional<removal::result> decide(removal& one, std::size_t quorum, time_point at) {
    return one.decided(quorum, at) ? std::optional(one.decide(quorum)) : std::nullopt;
}

std::optional<release_result>
result_of(const std::vector<vote>& answers, bool late = false, time_point at = now) {
    removal one = removal_of({true, true, true}, late);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        answer(one, i, answers[i]);
    }
    const auto got = decide(one, 2, at);
    return got ? std::optional(got->what) : std::nullopt;
}

struct debtor {
    handle self;
    bool owes = true;
    void reset() {}
};

TEST_CASE("a removal is decided when a majority says the same, or none can any more") {
    using enum vote;
    CHECK(!result_of({granted}));
    CHECK(result_of({granted, granted}) == release_result::released);
    CHECK(result_of({absent, absent}) == release_result::expired);
    CHECK(result_of({owned_by_other, error, owned_by_other}) == release_result::stolen);
    CHECK(!result_of({granted, absent}));
    CHECK(result_of({granted, absent, owned_by_other}) == release_result::uncertain);
    CHECK(result_of({error, unreachable}) == release_result::uncertain);
    CHECK(!result_of({error, owned_by_other}));
}

TEST_CASE("a key that is removed after the lease had ended is a leftover") {
    using enum vote;
    CHECK(result_of({granted, granted}, true) == release_result::expired);
    CHECK(result_of({granted, absent}, true) == release_result::expired);
    CHECK(result_of({owned_by_other, owned_by_other}, true) == release_result::stolen);
}

TEST_CASE("a removal that is not answered is uncertain in time, and names the silent masters") {
    removal one = removal_of({true, true, false});
    answer(one, 0, vote::granted);
    CHECK(one.next_due(owing(), now) == decide_by);
    CHECK(!decide(one, 2, decide_by - 1ns));
    const auto got = decide(one, 2, decide_by);
    REQUIRE(got);
    CHECK(got->what == release_result::uncertain);
    CHECK(got->silent == set_of(1));
    CHECK(!one.wanted());
    CHECK(!one.settled());
    CHECK(!decide(one, 2, decide_by)); // once
    CHECK(one.next_due(owing(), now) == expires_at);
}

TEST_CASE("the result of a removal is put off only while it can still be decided") {
    removal one = removal_of({true, true, true});
    CHECK(!one.is_due(decide_by - 1ns));
    CHECK(one.is_due(decide_by));
    CHECK(one.may_wait(2, 0b011));
    CHECK(!one.may_wait(2, 0b100));
    answer(one, 0, vote::granted);
    CHECK(one.may_wait(2, 0b100));
    CHECK(!one.may_wait(2, 0b001)); // it has replied
    one.wait_until(decide_by + 50ms);
    CHECK(!decide(one, 2, decide_by + 49ms));
    CHECK(decide(one, 2, decide_by + 50ms));
    CHECK(!one.is_due(decide_by + 1h)); // nobody waits for it
}

TEST_CASE("the result of a rollback is not given, and each master settles its own part") {
    removal one = removal_of({true, true, false}, false, forever);
    CHECK(one.sent(set_of(0)) == 0); // in other words
    CHECK(answer(one, 0, vote::granted).confirmed);
    const auto failed = answer(one, 1, vote::error);
    CHECK(failed.in_flight);
    CHECK(!failed.confirmed);
    CHECK(!decide(one, 2, now));
    CHECK(!one.unsent(0));
    CHECK(one.unsent(1));
    CHECK(one.unsent(2));
    claim_record mine = owing();
    CHECK(one.overdue(mine) == (set_of(1) | set_of(2)));
    CHECK(one.next_due(owing(), now) == retry_at);
    CHECK(one.due(mine, ~0U, retry_at - 1ns).to == 0);
    const auto again = one.due(mine, set_of(1), retry_at);
    CHECK(again.to == set_of(1));
    CHECK(!again.last);
    CHECK(one.next_due(owing(), now) == expires_at);
    one.sent(set_of(1));
    one.sent(set_of(2));
    CHECK(answer(one, 1, vote::absent).was_overdue);
    CHECK(!one.settled());
    CHECK(answer(one, 2, vote::owned_by_other).was_overdue);
    CHECK(one.settled());
}

TEST_CASE("a removal waits for room as long as it was not sent to a master that is up") {
    removal one(false, forever);
    one.begin(set_of(0), 0);
    CHECK(!one.waits_for_room());
    one.begin(set_of(0) | set_of(1), set_of(1));
    CHECK(one.waits_for_room());
    one.sent(set_of(1));
    CHECK(!one.waits_for_room());
}

TEST_CASE("an acquire that may still come is removed once more, unless it was executed") {
    const strays left{.sets = set_of(0) | set_of(1), .heals = 0, .until = now + 3s};
    claim_record mine = owing(left);
    removal one = removal_of({true, true}, false, forever);
    answer(one, 0, vote::granted, left);
    CHECK(!one.unsent(0));
    answer(one, 1, vote::absent, left);
    CHECK(one.unsent(1));
    CHECK(one.overdue(mine) == 0); // it is only repeated
    CHECK(one.next_due(owing(), now) == left.until);
    CHECK(one.due(mine, ~0U, left.until).to == set_of(1));
    one.sent(set_of(1));
    CHECK(answer(one, 1, vote::absent, left, left.until).confirmed);
    CHECK(one.settled());
}

TEST_CASE("a heal that may still come is removed once more even if the key was there") {
    const strays left{.sets = 0, .heals = set_of(0), .until = now + 3s};
    removal one = removal_of({true});
    answer(one, 0, vote::granted, left);
    CHECK(one.unsent(0));
    CHECK(decide(one, 1, now)->what == release_result::released);
    CHECK(!one.settled());
}

TEST_CASE("a master that confirms twice is counted once") {
    const strays left{.sets = set_of(0), .heals = 0, .until = now + 500ms};
    removal one = removal_of({true, true, false});
    answer(one, 0, vote::absent, left);
    one.sent(set_of(0));
    answer(one, 0, vote::absent, left);
    CHECK(!decide(one, 2, now));
    CHECK(answer(one, 1, vote::absent).confirmed);
    CHECK(decide(one, 2, now)->what == release_result::expired);
}

TEST_CASE("when the key must have expired nothing is pending but where a stray may set it again") {
    const strays left{.sets = set_of(1), .heals = set_of(2), .until = expires_at};
    claim_record mine = owing(left);
    removal one = removal_of({false, false, false, true}, false, forever);
    const auto last = one.due(mine, set_of(0) | set_of(1), expires_at);
    CHECK(last.to == set_of(1));
    CHECK(last.last);
    CHECK(mine.left_behind().sets == 0);
    CHECK(mine.left_behind().heals == set_of(2));
    CHECK(!one.unsent(0));
    CHECK(one.unsent(1));
    CHECK(!one.unsent(2)); // it is away
    one.sent(set_of(1));
    answer(one, 1, vote::error, left, expires_at);
    CHECK(!one.settled()); // one is in flight
    answer(one, 3, vote::unreachable, left, expires_at);
    CHECK(one.settled());
    CHECK(one.next_due(owing(), expires_at) == forever);
}

TEST_CASE(
    "removals in flight have limited room, and pending ones are sent when half of it is free") {
    removal_limits ledger(2, 4, 3);
    pool<debtor> claims;
    for (int i = 0; i < 6; ++i) {
        claims.create();
    }
    const auto turn = [&] {
        std::size_t sent = 0;
        ledger.clear_due();
        ledger.turn(
            1,
            claims,
            now,
            [](const debtor& one) { return one.owes; },
            [&](debtor& one) {
                one.owes = false;
                ledger.sent(1);
                ++sent;
            });
        return sent;
    };
    CHECK(turn() == 0);
    CHECK(!ledger.under_way());
    ledger.search(1, now);
    CHECK(ledger.due() == now);
    CHECK(turn() == 3); // in one turn
    CHECK(ledger.due() == now);
    CHECK(turn() == 1); // there is no more room
    CHECK(ledger.due() == forever);
    CHECK(!ledger.has_room(1));
    CHECK(ledger.has_room(0));
    ledger.answered(1, now);
    CHECK(ledger.due() == forever);
    ledger.answered(1, now);
    CHECK(ledger.due() == now);
    claims.find({0, 1})->owes = true; // without its knowledge
    ledger.search(1, now);
    CHECK(turn() == 2); // those after
    CHECK(ledger.due() == forever);
    ledger.answered(1, now);
    ledger.answered(1, now);
    CHECK(turn() == 1); // and then from the beginning
    CHECK(ledger.due() == forever);
    ledger.answered(1, now);
    ledger.answered(1, now);
    CHECK(ledger.under_way());
    ledger.answered(1, now);
    CHECK(!ledger.under_way());
}

TEST_CASE("a search that is stopped does not keep a closing waiting") {
    removal_limits ledger(1, 0, 1);
    ledger.search(0, now);
    CHECK(ledger.due() == forever); // there is no room
    CHECK(ledger.under_way());
    ledger.stop_search(0);
    CHECK(!ledger.under_way());
}

}} // namespace pending_removal_test
