// Attempts alone: which masters they ask, and what follows from the replies.

#include "core/locks/attempt.hpp"
#include "virtual_quorum.hpp"

namespace attempt_test { namespace {

using namespace redlock::core;
using namespace redlock;
using kind = attempt::decision::kind;
using origin = attempt::origin;
using limits = attempt::limits;

constexpr time_point t0{1'000'000s};
constexpr master_set all = 7;

constexpr master_set only(std::size_t master) {
    return set_of(master);
}

answer granted(std::uint64_t counter = 0) {
    return {.said = vote::granted, .counter = counter};
}
answer refused(vote how) {
    return {.said = how};
}

// Three masters, and a ttl of 10 s of which 9.898 s can be relied on.
struct site {
    explicit site(origin from = origin::acquire, bool fencing = false) : asking(from, 3, 2) {
        mine.votes.reset(3);
        mine.asked_at = t0;
        mine.ttl = mine.asked_ttl = 10s;
        mine.fencing = fencing;
        mine.vote_by = t0 + 100ms;
    }

    kind acquired(std::size_t master, const answer& got) {
        last = asking.acquired(mine, master, attempt::note(mine, master, got, rules.drift));
        return last.next;
    }
    kind extended(std::size_t master, const answer& got) {
        last = asking.extended(mine, master, got, rules);
        return last.next;
    }
    kind raised(std::size_t master, const answer& got) {
        const bool awaited = asking.awaits(mine, master, mine.handoffs);
        last = awaited ? asking.raised(mine, master, got) : attempt::decision();
        return last.next;
    }
    kind level(master_set up = all) {
        last = asking.level(mine, up, t0, rules);
        return last.next;
    }
    kind decide() {
        last = asking.decide(mine);
        return last.next;
    }
    kind due(time_point now, const limits& caller = {}, master_set slow = 0) {
        last = asking.due(mine, caller, slow, now, rules);
        return last.next;
    }
    /// Whether it is lost, and that for this reason.
    bool lost(errc why) const { return last.next == kind::lost && last.why == why; }
    vote said(std::size_t master) const { return mine.votes.of[master].said; }

    settings rules = unit::settings_for(3);
    claim_record mine;
    attempt asking;
    attempt::decision last;
};

constexpr auto usable = unit::usable(10s);

TEST_CASE("attempt: each master is asked once, and a majority wins") {
    site one;
    CHECK(one.asking.ask(one.mine) == all);
    CHECK(one.asking.ask(one.mine) == 0);
    CHECK(one.acquired(1, granted()) == kind::open);
    CHECK(one.acquired(2, refused(vote::held)) == kind::open);
    CHECK(one.acquired(0, granted()) == kind::won);
    CHECK(one.asking.token() == 0);
}

TEST_CASE("attempt: a grant lasts from before the first byte, and a late one as long") {
    site one;
    CHECK(attempt::note(one.mine, 0, granted(), one.rules.drift) == vote::granted);
    CHECK(one.mine.votes.of[0].until() == t0 + usable);
    one.mine.ttl = 5s; // the next owner's; the master was asked for more
    attempt::note(one.mine, 1, granted(), one.rules.drift);
    CHECK(one.mine.votes.of[1].until() == t0 + usable);
    CHECK(one.said(1) == vote::pending); // whether it counts is another question

    CHECK(
        attempt::note(one.mine, 2, {.said = vote::held, .left = 3s}, one.rules.drift)
        == vote::held);
    CHECK(one.mine.votes.left(2) == 3s);
    CHECK(one.mine.votes.of[2].until() == never);
}

TEST_CASE("attempt: fenced, a grant without a counter does not count") {
    site one(origin::acquire, true);
    CHECK(attempt::note(one.mine, 0, granted(), one.rules.drift) == vote::error);
    CHECK(one.mine.votes.of[0].until() == never);
}

TEST_CASE("attempt: contention and outage are distinguished") {
    site contended;
    contended.asking.ask(contended.mine);
    CHECK(contended.acquired(0, refused(vote::held)) == kind::open);
    contended.acquired(1, refused(vote::held));
    CHECK(contended.lost(errc::contended));

    site outage;
    outage.asking.refused(outage.mine, 0, vote::quarantined);
    outage.asking.refused(outage.mine, 2, vote::unreachable);
    CHECK(outage.said(0) == vote::quarantined);
    outage.decide();
    CHECK(outage.lost(errc::no_quorum));
    CHECK(outage.asking.ask(outage.mine) == only(1));
}

TEST_CASE("attempt: an arbiter that refuses spares the others") {
    site one;
    CHECK(one.asking.ask(one.mine, 2) == only(2));
    CHECK(!one.asking.asked_all());
    one.acquired(2, refused(vote::held));
    CHECK(one.lost(errc::contended));
    CHECK(!one.asking.asked_all());
}

TEST_CASE("attempt: an arbiter that does not refuse is one vote") {
    for (const vote said : {vote::granted, vote::error, vote::unreachable}) {
        site one;
        CHECK(one.asking.ask(one.mine, 2) == only(2));
        CHECK(one.acquired(2, refused(said)) == kind::others);
        CHECK(one.asking.ask(one.mine) == (only(0) | only(1)));
        CHECK(one.asking.asked_all());
        CHECK(one.decide() == kind::open);
        CHECK(one.acquired(0, granted()) == (said == vote::granted ? kind::won : kind::open));
        CHECK(one.acquired(1, granted()) == kind::won);
    }
}

TEST_CASE("attempt: an arbiter that is silent, or cannot be asked, holds nobody up") {
    site silent;
    silent.asking.ask(silent.mine, 2);
    CHECK(silent.due(t0 + 4ms) == kind::others);
    silent.asking.ask(silent.mine);
    CHECK(silent.acquired(0, granted()) == kind::open);
    CHECK(silent.acquired(2, granted()) == kind::won); // its vote counts when it comes

    site away;
    away.asking.refused(away.mine, 2, vote::unreachable);
    CHECK(away.asking.ask(away.mine, 2) == (only(0) | only(1)));
    CHECK(away.asking.asked_all());
}

TEST_CASE("attempt: fenced, counters that agree need no second round") {
    site one(origin::acquire, true);
    one.asking.ask(one.mine);
    CHECK(one.acquired(0, granted(7)) == kind::open);
    CHECK(one.acquired(1, granted(7)) == kind::level);
    CHECK(one.level() == kind::won);
    CHECK(one.asking.token() == 7);
}

TEST_CASE("attempt: fenced, a majority is raised to the largest counter") {
    site one(origin::acquire, true);
    one.asking.ask(one.mine);
    one.acquired(0, granted(9));
    CHECK(one.acquired(1, granted(7)) == kind::level);
    CHECK(one.level() == kind::raise);
    CHECK(one.last.anew);
    CHECK(one.last.masters == only(1));
    CHECK(one.asking.token() == 9);
    CHECK(one.decide() == kind::open);

    SECTION("the raise is the second vote") {
        CHECK(one.raised(1, granted(9)) == kind::won);
    }
    SECTION("a late grant is raised as well, in the time that is left") {
        CHECK(one.acquired(2, granted(3)) == kind::raise);
        CHECK(!one.last.anew);
        CHECK(one.last.masters == only(2));
        CHECK(one.raised(2, granted(9)) == kind::won);
    }
    SECTION("a late grant with that very counter is a vote") {
        CHECK(one.acquired(2, granted(9)) == kind::won);
    }
    SECTION("a late grant with a larger counter does not count for this token") {
        CHECK(one.acquired(2, granted(10)) == kind::open);
        CHECK(one.mine.votes.text(2) == "its fencing counter is ahead");
        CHECK(one.raised(1, granted(9)) == kind::won);
    }
    SECTION("where the lock is gone, or the counter ahead, somebody else has it") {
        CHECK(one.raised(1, refused(vote::owned_by_other)) == kind::open);
        CHECK(one.acquired(2, refused(vote::held)) == kind::lost);
        CHECK(one.lost(errc::contended));
        CHECK(one.raised(1, granted(9)) == kind::open); // it has voted
    }
}

TEST_CASE("attempt: fenced, a grant whose master has gone away is lost") {
    site one(origin::acquire, true);
    one.asking.ask(one.mine);
    one.acquired(0, granted(9));
    one.acquired(1, granted(7));
    CHECK(one.level(all & ~only(1)) == kind::open); // the third may still grant
    CHECK(one.said(1) == vote::unreachable);
    CHECK(one.acquired(2, granted(9)) == kind::won);
}

TEST_CASE("attempt: a hand-off is won by a raise to the next number") {
    site one(origin::acquire, true);
    one.asking = {origin::hand_off, 3, 2};
    one.mine.handoffs = 1;
    one.mine.fencing_token = 9;
    for (ballot& theirs : one.mine.votes.of) {
        theirs.said = vote::granted;
        theirs.confirm(t0 + 5s);
    }

    SECTION("a majority gives it") {
        CHECK(one.level() == kind::raise);
        CHECK(one.last.masters == all);
        CHECK(one.asking.token() == 10);
        CHECK(one.raised(0, granted(10)) == kind::open);
        CHECK(one.raised(1, granted(10)) == kind::won);
    }
    SECTION("a reply to the previous owner does not count") {
        one.level();
        CHECK(!one.asking.awaits(one.mine, 0, 0));
        CHECK(one.asking.awaits(one.mine, 0, 1));
        CHECK(!one.asking.awaits(one.mine, 0, 2));
    }
    SECTION("only where the lock lasts and the master is up it is asked for") {
        one.mine.votes.of[0].forget();
        one.mine.votes.of[0].confirm(t0);
        CHECK(one.level(all & ~only(1)) == kind::raise);
        CHECK(one.last.masters == only(2));
        CHECK(one.said(0) == vote::unreachable);
        CHECK(one.decide() == kind::lost);
        CHECK(one.lost(errc::no_quorum));
    }
    SECTION("what has refused the owner before says so still") {
        one.mine.votes.of[0] = {};
        one.mine.votes.of[0].said = vote::held;
        one.level();
        CHECK(one.said(0) == vote::held);
        CHECK(one.raised(1, refused(vote::owned_by_other)) == kind::lost);
        CHECK(one.lost(errc::contended));
    }
    SECTION("it is not too slow as an acquire is: the lease lasts until its deadline") {
        one.level();
        CHECK(one.due(t0 + usable) == kind::over);
    }
}

TEST_CASE("attempt: an attach is won where a majority has kept the lock") {
    site one(origin::attach);
    CHECK(one.asking.attaches());
    CHECK(one.extended(0, granted()) == kind::open);
    CHECK(one.mine.votes.of[0].until() == t0 + usable);
    CHECK(one.extended(1, refused(vote::absent)) == kind::open);
    CHECK(one.extended(2, granted()) == kind::won);
    CHECK(one.extended(2, refused(vote::absent)) == kind::open); // it has voted
    CHECK(one.said(2) == vote::granted);
}

TEST_CASE("attempt: an attach says lost only where nobody can have a majority any more") {
    site gone(origin::attach);
    gone.extended(0, refused(vote::absent));
    gone.extended(1, refused(vote::owned_by_other));
    CHECK(gone.lost(errc::lost));

    site unknown(origin::attach);
    unknown.asking.refused(unknown.mine, 0, vote::unreachable);
    unknown.extended(1, refused(vote::absent));
    CHECK(unknown.last.next == kind::open); // the third tells which it is
    unknown.extended(2, refused(vote::error));
    CHECK(unknown.lost(errc::no_quorum));
}

TEST_CASE("attempt: an attach heals where half of the members have the lock, and nobody else can") {
    const auto members = [](std::size_t voters, bool fencing) {
        site one(origin::attach, fencing);
        one.mine.votes.reset(4);
        one.asking = {origin::attach, 4, 3, voters};
        one.extended(0, granted());
        one.extended(1, refused(vote::absent));
        one.extended(2, granted());
        CHECK(one.last.next == kind::open); // the fourth may have it
        return one;
    };
    SECTION("it is held with the keys that HEAL creates") {
        site one = members(4, false);
        REQUIRE(one.extended(3, refused(vote::absent)) == kind::heal);
        CHECK(one.asking.heal(one.mine, 0b0011) == 0b0010); // the fourth is not connected
        CHECK(one.asking.decide(one.mine).next == kind::open);
        CHECK(one.extended(1, granted()) == kind::won);
    }
    SECTION("it is not lost where HEAL is refused: its owner may still act") {
        site one = members(4, false);
        REQUIRE(one.extended(3, refused(vote::owned_by_other)) == kind::heal);
        CHECK(one.asking.heal(one.mine, 0b1111) == 0b0010);
        one.extended(1, refused(vote::quarantined));
        CHECK(one.lost(errc::no_quorum));
    }
    SECTION("nor with fencing, whose counters would be missing") {
        site one = members(4, true);
        one.extended(3, refused(vote::absent));
        CHECK(one.lost(errc::no_quorum));
    }
    SECTION("half may be on a master that does not reply") {
        site one(origin::attach);
        one.mine.votes.reset(4);
        one.asking = {origin::attach, 4, 3};
        one.extended(0, granted());
        one.extended(1, refused(vote::absent));
        CHECK(one.extended(2, refused(vote::absent)) == kind::open);
        one.asking.close(one.mine);
        one.decide();
        CHECK(one.lost(errc::no_quorum));
        one.mine.votes.of[3].said = vote::absent;
        one.decide();
        CHECK(one.lost(errc::lost)); // less than half have it
    }
    SECTION("of five members another owner could have the other three") {
        site one = members(5, false);
        one.extended(3, refused(vote::absent));
        CHECK(one.lost(errc::no_quorum)); // the fifth is not in this list of masters
    }
}

TEST_CASE("attempt: a fenced attach reads the counters, and goes one further") {
    site one(origin::attach, true);
    one.extended(0, granted());
    CHECK(one.extended(1, granted()) == kind::level);
    CHECK(one.level() == kind::raise);
    CHECK(one.last.anew);
    CHECK(one.last.masters == (only(0) | only(1)));
    CHECK(one.asking.token() == 0);                   // to nothing: that reads them
    CHECK(one.extended(2, granted()) == kind::raise); // late: it is read as well
    CHECK(one.last.masters == only(2));
    CHECK(one.raised(0, {.said = vote::held, .counter = 4}) == kind::open);
    CHECK(one.raised(1, {.said = vote::held, .counter = 6}) == kind::level);

    CHECK(one.level() == kind::raise);
    CHECK(one.asking.token() == 7);
    CHECK(one.last.masters == (only(0) | only(1)));
    CHECK(one.raised(2, {.said = vote::held, .counter = 5}) == kind::raise); // it was slow
    CHECK(one.last.masters == only(2));
    CHECK(one.raised(0, granted(7)) == kind::open);

    SECTION("a majority at that number wins") {
        CHECK(one.raised(2, granted(7)) == kind::won);
    }
    SECTION("a counter that is ahead, or missing, does not count") {
        CHECK(one.raised(1, {.said = vote::held, .counter = 8}) == kind::open);
        CHECK(one.mine.votes.text(1) == "its fencing counter is ahead");
        one.raised(2, granted(0));
        CHECK(one.mine.votes.text(2) == "it has no fencing counter for this lock");
        CHECK(one.lost(errc::no_quorum));
    }
    SECTION("if the lock is gone by then it is lost") {
        one.raised(1, refused(vote::owned_by_other));
        one.raised(2, refused(vote::owned_by_other));
        CHECK(one.lost(errc::lost));
    }
}

TEST_CASE("attempt: it is given up when nothing can come of it any more") {
    site one;
    const auto by = [&](const limits& caller, time_point now = t0) {
        return attempt::give_up_at(one.mine, caller, now, one.rules);
    };
    CHECK(by({}) == t0 + one.rules.master_timeout);
    CHECK(by({.min_validity = 9'890ms}) == t0 + usable - 9'890ms);
    CHECK(by({.patience = t0 + 3ms}) == t0 + 3ms);
    CHECK(by({}, t0 + 1s) == t0 + 1s + one.rules.master_timeout); // a second round of votes
}

TEST_CASE("attempt: votes that are cut off show contention or an outage") {
    site one;
    one.asking.ask(one.mine);
    one.acquired(0, refused(vote::held));
    const limits caller{.patience = t0 + 5ms};
    CHECK(one.due(t0 + 5ms, caller) == kind::lost);
    CHECK(one.lost(errc::no_quorum));
    CHECK(one.due(t0 + 5ms, caller, only(0)) == kind::lost);
    CHECK(one.lost(errc::no_quorum)); // it has voted already
    one.due(t0 + 5ms, caller, only(1));
    CHECK(one.lost(errc::wait_timed_out)); // a majority may still answer

    site first;
    first.asking.ask(first.mine, 1);
    first.mine.vote_by = t0 + 5ms;
    first.due(t0 + 5ms, caller);
    CHECK(first.lost(errc::wait_timed_out)); // one master alone shows no outage
}

TEST_CASE("attempt: where the masters work, but what they grant is used up, it is too slow") {
    const limits caller{.min_validity = 9'890ms}; // 8 ms for the round
    site one;
    one.asking.ask(one.mine);
    one.acquired(0, granted());
    one.due(t0 + 8ms, caller, only(1));
    CHECK(one.lost(errc::validity_exhausted));
    one.due(t0 + 8ms, caller);
    CHECK(one.lost(errc::no_quorum));
    CHECK(one.due(t0 + one.rules.master_timeout, caller) == kind::over);
    CHECK(one.due(t0 + 7ms, caller, all) == kind::over);
}

TEST_CASE("attempt: at its end a master that has not replied has timed out") {
    site one;
    one.asking.ask(one.mine);
    one.acquired(1, refused(vote::held));
    CHECK(one.due(t0 + one.rules.master_timeout) == kind::over);
    CHECK(one.asking.close(one.mine) == (only(0) | only(2)));
    CHECK(one.said(0) == vote::timed_out);
    CHECK(one.said(1) == vote::held);
    one.decide();
    CHECK(one.lost(errc::no_quorum));
}

}} // namespace attempt_test
