// A lease without an engine: its deadline, what is due for it, its extensions and why it is lost.

#include "core/locks/lease.hpp"
#include "support/test.hpp"

namespace deadline_test { namespace {

using namespace redlock::core;
using namespace redlock;

constexpr time_point now{1000s};
constexpr std::size_t quorum = 2;

// A lease of 9 s on three masters, of which the second has voted until `now + 8s`.
struct site {
    explicit site(const lease::terms& how = {}, bool guarded = true)
        : it(how, now, now + 8s, now + 3s) {
        rules.protocol = guarded ? redlock::protocol::guarded : redlock::protocol::plain;
        rules.master_timeout = 100ms;
        rules.drift = {0.0, 1s};
        mine.ttl = mine.ttl_max = 9s;
        mine.votes.reset(3);
        mine.votes.of[0].confirm(now + 9s);
        mine.votes.of[1].confirm(now + 8s);
        mine.votes.of[0].asked = mine.votes.of[1].asked = true;
        mine.believed_until = now + 8s;
    }

    // An extension that is under way to all.
    void extend(time_point at = now) {
        it.extend(mine, 9s, false, at, rules);
        for (ballot& one : mine.votes.of) {
            one.found = key_state::pending;
        }
    }
    lease::next answer(std::size_t master, key_state found, vote said, time_point at = now) {
        const auto round = mine.extending.round;
        mine.removal_seen |= mine.extending.count(
            mine.votes.of[master], found, round, found == key_state::healed, at, rules.drift);
        return lease::answered(mine, master, said, found, round);
    }
    lease::next keeps(std::size_t master) { return answer(master, key_state::kept, vote::granted); }
    lease::next misses(std::size_t master, time_point at = now) {
        return answer(master, key_state::missing, vote::absent, at);
    }
    ruling judge(time_point at = now) {
        return it.judge(mine, mine.votes.of.size(), quorum, at, rules);
    }
    void end(bool extended, time_point at) { it.end_extension(mine, extended, at, 5ms, random); }

    settings rules;
    claim_record mine;
    lease it;
    jitter random{1};
};

TEST_CASE("a lease lasts as long as a majority of the votes, and no longer than its limit") {
    site one;
    CHECK(!one.it.move_deadline(one.mine, quorum));
    one.mine.votes.of[2].confirm(now + 10s);
    CHECK(one.it.move_deadline(one.mine, quorum));
    CHECK(one.it.deadline() == now + 9s);
    CHECK(one.mine.believed_until == now + 9s);
    one.mine.votes.of[2].remove(now);
    CHECK(one.it.move_deadline(one.mine, quorum));
    CHECK(one.it.deadline() == now + 8s);
    CHECK(one.mine.believed_until == now + 9s); // its holder was shown that

    site limited({.hold_limit = now + 4s});
    CHECK(limited.it.move_deadline(limited.mine, quorum));
    CHECK(limited.it.deadline() == now + 4s);
    CHECK(limited.it.reason(limited.mine, quorum) == loss_reason::max_hold_reached);
}

TEST_CASE("while a round is open its answers move the deadline forward only") {
    site one;
    one.extend();
    one.misses(0);
    CHECK(!one.it.move_deadline(one.mine, quorum));
    CHECK(one.it.deadline() == now + 8s);
    one.misses(1);
    one.misses(2);
    CHECK(one.judge() == ruling::failed);
    CHECK(one.it.move_deadline(one.mine, quorum));
    CHECK(one.it.deadline() == never);
    CHECK(one.it.lost(one.mine, now));
    CHECK(one.mine.believed_until == now + 8s);
    CHECK(one.it.reason(one.mine, quorum) == loss_reason::expired);
}

TEST_CASE("votes from before the members changed do not count, and the deadline stays") {
    site one;
    one.extend();
    const auto round = one.mine.extending.round;
    one.it.members_changed(one.mine);
    one.mine.votes.of[0].forget_all(); // it was removed from the quorum
    one.end(false, now);
    CHECK(!one.it.move_deadline(one.mine, quorum));
    CHECK(one.it.deadline() == now + 8s);
    const extension& mine = one.mine.extending;
    for (const std::size_t master : {0U, 2U}) {
        ballot& theirs = one.mine.votes.of[master];
        CHECK(!mine.count(theirs, key_state::kept, round, false, now, one.rules.drift));
        CHECK(theirs.until() == never);
        CHECK(
            lease::answered(one.mine, master, vote::granted, key_state::kept, round)
            == lease::next::nothing);
    }
    CHECK(!one.it.move_deadline(one.mine, quorum));
    CHECK(one.it.deadline() == now + 8s);
}

TEST_CASE("a lease is lost before its deadline by the stop margin") {
    site one({.stop_margin = 1s});
    CHECK(one.it.held_until() == now + 7s);
    CHECK(!one.it.lost(one.mine, now + 7s - 1ns));
    CHECK(one.it.lost(one.mine, now + 7s));
    CHECK(one.it.due(one.mine, now + 7s) == lease::event::stop);
}

TEST_CASE("what is due for a lease is due in order, and a warning is given once") {
    site one({.warn_at = now + 2s});
    CHECK(one.it.next_due(one.mine) == now + 2s);
    CHECK(one.it.due(one.mine, now + 2s - 1ns) == lease::event::none);
    CHECK(one.it.due(one.mine, now + 3s) == lease::event::warn);
    CHECK(one.it.next_due(one.mine) == now + 3s);
    CHECK(one.it.due(one.mine, now + 3s) == lease::event::renew);
    one.extend(now + 3s);
    CHECK(one.it.due(one.mine, now + 3s) == lease::event::none);
    CHECK(one.it.next_due(one.mine) == now + 3s + 100ms);
    CHECK(one.it.due(one.mine, now + 3s + 100ms) == lease::event::give_up);
    CHECK(lease::give_up(one.mine) == (set_of(0) | set_of(1) | set_of(2)));
    CHECK(one.mine.votes.count(vote::timed_out) == 3);
    CHECK(lease::give_up(one.mine) == 0);
    CHECK(one.judge(now + 4s) == ruling::failed);
}

TEST_CASE(
    "an extension that a majority confirms is won, and the next is due a third of the ttl on") {
    site one;
    one.extend(now + 1s);
    CHECK(one.keeps(0) == lease::next::judge);
    CHECK(one.judge() == ruling::open);
    one.keeps(2);
    CHECK(one.judge() == ruling::won);
    CHECK(one.it.move_deadline(one.mine, quorum));
    CHECK(one.it.deadline() == now + 9s);
    one.end(true, now + 1050ms);
    const time_point next = one.it.next_due(one.mine);
    CHECK(next <= now + 4s);
    CHECK(next > now + 3s);
    CHECK(one.keeps(1) == lease::next::nothing);
    CHECK(one.mine.votes.of[1].until() == now + 9s); // it counts all the same
}

TEST_CASE("after an extension that failed the next comes soon, later each time") {
    site one;
    one.extend();
    one.end(false, now);
    const auto first = one.it.next_due(one.mine) - now;
    CHECK(first >= 5ms);
    CHECK(first <= 15ms);
    auto longest = first;
    for (int i = 0; i < 50; ++i) {
        one.end(false, now);
        longest = std::max(longest, one.it.next_due(one.mine) - now);
    }
    CHECK(longest > 15ms);
    CHECK(longest <= 900ms);
}

TEST_CASE("a lease that nobody renews, or not for longer, is not extended by itself") {
    site off({.renew = renewal::off});
    off.extend();
    off.end(true, now);
    CHECK(off.it.next_due(off.mine) == off.it.deadline());
    CHECK(off.it.reason(off.mine, quorum) == loss_reason::expired);
    site limited({.hold_limit = now + 8s});
    limited.extend();
    limited.end(true, now);
    CHECK(limited.it.next_due(limited.mine) == now + 8s);
}

TEST_CASE("a key that was never there is healed, in time or as that of a straggler") {
    site one;
    one.extend();
    one.keeps(0);
    one.answer(1, key_state::unknown, vote::error);
    one.misses(2);
    CHECK(one.judge() == ruling::heal);
    CHECK(one.it.next_due(one.mine) == now + 100ms);
    one.it.heal(one.mine, 2, one.rules.drift);
    CHECK(one.mine.votes.of[2].asked);
    CHECK(one.mine.expires_at == now + 18s); // it may be executed until the deadline
    CHECK(one.judge() == ruling::open);
    one.answer(2, key_state::healed, vote::granted);
    CHECK(one.judge() == ruling::won);
    CHECK(!one.mine.extending.confirmed); // it has healed

    site late;
    late.extend();
    late.keeps(0);
    late.keeps(1);
    CHECK(late.judge() == ruling::won);
    CHECK(late.mine.extending.confirmed);
    late.end(true, now);
    CHECK(late.misses(2) == lease::next::heal);
}

TEST_CASE("where a key was deleted the round is not won by a heal, but one that is won heals") {
    site one;
    one.mine.votes.of[2].confirm(now + 8s);
    one.extend();
    one.keeps(0);
    one.answer(1, key_state::unknown, vote::error);
    one.misses(2);
    CHECK(one.mine.removal_seen);
    CHECK(one.judge() == ruling::failed); // the kept keys may be gone, and both another owner's

    site won;
    won.extend();
    won.keeps(0);
    won.misses(1);
    CHECK(won.judge() == ruling::open);
    won.keeps(2);
    CHECK(won.mine.removal_seen);
    CHECK(won.judge() == ruling::won);
    CHECK(won.mine.extending.confirmed); // it keeps others out
}

TEST_CASE("in the plain protocol nothing is healed") {
    site one({}, false);
    one.extend();
    one.keeps(0);
    one.answer(1, key_state::unknown, vote::error);
    one.misses(2);
    CHECK(one.judge() == ruling::failed);
    CHECK(one.mine.expires_at == now + 10s);
}

TEST_CASE(
    "a reply to an earlier round does not count in this one, but a key that is gone is gone") {
    site one;
    one.extend();
    const auto before = one.mine.extending.round;
    one.extend();
    one.mine.extending.count(one.mine.votes.of[2], key_state::kept, before, false, now, {});
    CHECK(one.mine.votes.of[2].until() == never);
    CHECK(
        one.mine.extending.count(one.mine.votes.of[1], key_state::missing, before, false, now, {}));
    CHECK(one.mine.votes.of[1].until() == never);
    CHECK(
        lease::answered(one.mine, 1, vote::absent, key_state::missing, before)
        == lease::next::nothing);
    CHECK(one.mine.votes.of[1].found == key_state::pending);
    CHECK(!one.it.may_send(one.mine, before, now));
    CHECK(one.it.may_send(one.mine, one.mine.extending.round, now + 8s - 1ns));
    CHECK(!one.it.may_send(one.mine, one.mine.extending.round, now + 8s));
}

TEST_CASE("extensions that the holder wants come one at a time, and none after the end") {
    site one;
    CHECK(!one.it.next_wanted(one.mine));
    one.it.want(5s);
    one.it.want(12s);
    one.it.want(7s);
    const auto first = one.it.next_wanted(one.mine);
    REQUIRE(first);
    CHECK(*first == 5s);
    one.it.extend(one.mine, *first, true, now, one.rules); // for less than before
    CHECK(!one.it.next_wanted(one.mine));
    one.end(true, now);
    one.it.extend(one.mine, *one.it.next_wanted(one.mine), true, now, one.rules);
    CHECK(one.mine.ttl_max == 12s);
    CHECK(one.it.drop_wanted(one.mine) == 2); // with the one under way
    CHECK(!one.mine.extending.active);
    CHECK(one.it.drop_wanted(one.mine) == 0);
    one.extend(); // a renewal, for which nobody waits
    CHECK(one.it.drop_wanted(one.mine) == 0);
    CHECK(one.mine.extending.active);
}

TEST_CASE("a loss is explained with the votes of the masters") {
    site one;
    CHECK(one.it.reason(one.mine, quorum) == loss_reason::majority_unreachable);
    one.mine.votes.of[0].said = one.mine.votes.of[1].said = vote::owned_by_other;
    CHECK(one.it.reason(one.mine, quorum) == loss_reason::owned_by_other);
    one.mine.votes.of[1].said = vote::absent;
    CHECK(one.it.reason(one.mine, quorum) == loss_reason::expired);
}

}} // namespace deadline_test
