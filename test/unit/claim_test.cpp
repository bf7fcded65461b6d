// A claim that asks: which masters, and what follows from their replies. And its phases, of which
// what only one needs is gone in the next.

#include "claim_site.hpp"

namespace claim_test { namespace {

using namespace redlock::core;
using namespace redlock;
using enum steps;
using enum vote;
using unit::heard;
using kind = command_kind;
using unit::acquired, unit::extended, unit::healed, unit::raised;

constexpr master_set all = 7;
constexpr time_point t0 = unit::claim_site::t0;
constexpr auto usable = unit::usable(10s);

// What follows from the last of these votes, which are in the order of the masters.
struct row {
    std::vector<vote> votes;
    steps last;
    errc why{};
};

// Replies to what was sent before them, and the rule that they show.
struct story {
    const char* rule;
    std::vector<heard> replies;
};

claim_terms wanted(bool fencing = false) {
    return {.fencing = fencing, .ttl = 10s};
}

// An acquire.
struct site : unit::claim_site {
    explicit site(bool fencing = false, std::size_t arbiter = nobody) {
        acquire(wanted(fencing), arbiter);
    }
};

// An attach, also to a lock of more members than this client knows of.
struct attaching : unit::claim_site {
    explicit attaching(bool fencing, std::size_t masters = 3, std::size_t members = 0)
        : claim_site(unit::settings_for(masters)) {
        voters = std::max(masters, members);
        rules.protocol = protocol::guarded;
        attach({.fencing = fencing, .transferable = true, .ttl = 10s});
    }
};

// A lease with the fencing token 9, and with all of the masters.
struct held_by_all : site {
    held_by_all() : site(true) {
        hear({acquired(0, {granted, 9}), acquired(1, {granted, 9}, won)});
        hold(it.lasts_until(at()));
        hear({acquired(2, {granted, 9})});
    }
};

TEST_CASE("claim: each master is asked once, and a majority of the votes decides") {
    const std::vector<row> rows{
        {{granted, held, granted}, counted | won},
        {{granted, granted}, counted | won},
        {{unreachable, granted, granted}, counted | won},
        {{granted, held}, counted},
        {{granted, error}, counted},
        {{held, error}, counted}, // the third tells contention from an outage
        {{held, held}, counted | failed, errc::contended},
        {{granted, held, held}, counted | failed, errc::contended},
        {{held, error, granted}, counted | failed, errc::contended},
        {{unreachable, error}, counted | failed, errc::no_quorum},
        {{granted, unreachable, timed_out}, counted | failed, errc::no_quorum},
    };
    for (const row& the : rows) {
        unit::claim_site one;
        one.begin(wanted());
        CHECK(one.it.may_ask(0));
        CHECK(one.it.ask() == all);
        CHECK(!one.it.may_ask(0));
        CHECK(one.it.ask() == 0);
        one.hear(kind::acquire, the.votes, counted, the.last, the.why);
        CHECK(one.it.raises_to() == 0);
        CHECK(one.it.granted() == one.it.votes.count(granted));
        CHECK(one.it.refusals() == one.it.votes.count(held));
    }

    unit::claim_site outage;
    outage.begin(wanted());
    outage.it.refused(0, quarantined);
    CHECK(outage.vote_of(0) == quarantined);
    CHECK(!outage.it.may_ask(0));
    CHECK(outage.it.is_open());
    outage.it.refused(2, unreachable);
    CHECK(!outage.it.is_open());
    CHECK(outage.it.decide(outage.at()) == failed);
    CHECK(outage.it.why() == errc::no_quorum);
    CHECK(outage.it.ask() == 0b010);
}

TEST_CASE("claim: fenced, a majority is raised to the largest counter") {
    const std::vector<story> stories{
        {"the raise is the second vote", {raised(1, {granted, 9}, won)}},
        {"a late grant is raised as well, in the time that is left",
         {acquired(2, {granted, 3}, raise, 0b100), raised(2, {granted, 9}, won)}},
        {"a late grant with that very counter is a vote", {acquired(2, {granted, 9}, won)}},
        {"a late grant with a larger counter does not count for this token",
         {acquired(2, {granted, 10}, none, "its fencing counter is ahead"),
          raised(1, {granted, 9}, won)}},
        {"where the lock is gone, or the counter ahead, somebody else has it",
         {raised(1, owned_by_other),
          acquired(2, held, failed, errc::contended),
          raised(1, {granted, 9})}}, // it has voted
        {"a raise that is refused is a refusal",
         {raised(1, held, none, "its fencing counter is ahead"),
          acquired(2, held, failed, errc::contended)}},
        {"a raise without a reply does not count",
         {raised(1, unreachable), acquired(2, unreachable, failed, errc::no_quorum)}},
    };
    for (const auto& [rule, replies] : stories) {
        INFO(rule);
        site one(true);
        one.hear({acquired(0, {granted, 9}), acquired(1, {granted, 7}, raise | anew, 0b010)});
        CHECK(one.it.raises_to() == 9);
        CHECK(one.it.decide(one.at()) == none);
        one.hear(replies);
    }
}

TEST_CASE("claim: fenced, counters that agree are not raised, nor is a master that has gone away") {
    site one(true);
    one.hear({acquired(0, {granted, 1})});
    SECTION("they agree") {
        one.hear({acquired(1, {granted, 1}, won)});
        CHECK(one.it.raises_to() == 1);
        one.hold(t0 + usable);
        CHECK(one.it.fencing_token() == 1);
    }
    SECTION("its grant is lost") {
        one.up = 0b110;
        one.hear({acquired(1, {granted, 2})}); // the third may still grant
        CHECK(one.vote_of(0) == unreachable);
        one.hear({acquired(2, {granted, 2}, won)});
    }
}

TEST_CASE("claim: a handoff with fencing is won by a raise to the next number") {
    held_by_all one;
    const auto hand_off = [&] { return one.it.hand_to({}, wanted(), one.at()); };
    CHECK(one.it.fencing_token() == 9);
    one.now += 1s;

    SECTION("a majority gives it, and the next time to one more") {
        CHECK(hand_off() == raise);
        CHECK(one.it.to() == all);
        CHECK(one.it.raises_to() == 10);
        CHECK(one.it.began() == one.now);
        CHECK(one.it.asked_at() == t0);
        one.hear({raised(0, {granted, 10}), raised(1, {granted, 10}, won)});
        one.hold(t0 + usable);
        CHECK(one.it.fencing_token() == 10);
        one.up = 0b110;
        CHECK(hand_off() == raise);
        CHECK(one.it.to() == 0b110);
    }
    SECTION("where the key is gone it was deleted, and no extension heals") {
        one.rules.protocol = protocol::guarded;
        hand_off();
        one.hear(
            {raised(0, {granted, 10}), raised(1, owned_by_other), raised(2, {granted, 10}, won)});
        CHECK(one.until(1) == never);
        one.hold(t0 + usable);
        one.extend(10s);
        one.hear(
            kind::extend, {granted, absent, error}, counted | later, counted | later | round_over);
    }
    SECTION("a reply to the previous owner does not count") {
        one.extend(10s);
        hand_off();
        CHECK(!one.it.extending());
        for (const kind of : {kind::acquire, kind::raise}) {
            for (const std::uint16_t epoch : {0, 2}) {
                const told other{.kind = of, .epoch = epoch};
                CHECK(one.it.answered(other, unit::said(granted, 10), one.at()) == none);
                CHECK(one.vote_of(0) == pending);
                CHECK(!one.it.may_send(of, epoch, t0));
            }
            CHECK(one.it.may_send(of, 1, t0));
        }
        CHECK(one.it.epoch_of(kind::raise) == 1);
    }
    SECTION("only where the lock lasts and the master is up it is asked for") {
        one.it.votes.of[0].forget();
        one.it.votes.of[0].confirm(one.now);
        one.up = 0b101;
        CHECK(hand_off() == (raise | failed));
        CHECK(one.it.to() == 0b100);
        CHECK(one.vote_of(0) == unreachable);
        CHECK(one.it.why() == errc::no_quorum);
    }
    SECTION("what has refused the owner before says so still") {
        one.it.votes.of[0] = {};
        one.it.votes.of[0].said = held;
        hand_off();
        CHECK(one.vote_of(0) == held);
        one.hear({raised(1, owned_by_other, failed, errc::contended)});
    }
    SECTION("it is not too slow as an acquire is: the lease lasts until its deadline") {
        hand_off();
        master_set silent = 0;
        CHECK(one.it.out_of_time(all, silent, one.at(t0 + usable)) == failed);
        CHECK(one.it.why() == errc::no_quorum);
        CHECK(silent == all);
    }
}

TEST_CASE("claim: an attach is won where a majority has the lock, and lost where none can") {
    const std::vector<row> rows{
        {{granted, absent, granted}, counted | won},
        {{granted, granted}, counted | won},
        {{absent, owned_by_other}, counted | failed, errc::lost},
        {{unreachable, absent}, counted}, // the third tells which it is
        {{unreachable, absent, error}, counted | failed, errc::no_quorum},
        {{absent, error, granted}, counted | failed, errc::no_quorum},
    };
    for (const row& the : rows) {
        attaching one(false);
        CHECK(one.it.attaches());
        CHECK(one.it.expires_at() == one.it.vote_by() + 30s + one.rules.drift.of(30s));
        one.hear(kind::extend, the.votes, counted, the.last, the.why);
        for (std::size_t i = 0; i < the.votes.size(); ++i) {
            CHECK((one.until(i) == one.now + usable) == (the.votes[i] == granted));
            CHECK(one.it.votes.of[i].unvouched);
        }
        one.hear({extended(0, held)});
        CHECK(one.vote_of(0) == the.votes[0]); // it has voted
    }
    attaching late(false);
    CHECK(late.it.sets_natively()); // it is not known how the key was set
    late.hear(kind::extend, {granted, pending, granted}, counted, counted | won);
    late.hold(t0 + usable);
    late.hear({extended(1, granted, later)});
    CHECK(late.until(1) == t0 + usable);

    for (const vote gone : {absent, owned_by_other}) { // from where it may have been lost
        attaching one(false);
        one.hear(kind::extend, 0, {.said = gone, .forgot = true});
        CHECK(one.vote_of(0) == quarantined);
        const told in_quarantine{.master = 1, .kind = kind::extend, .quarantined = true};
        one.it.answered(in_quarantine, unit::said(gone), one.at());
        CHECK(one.vote_of(1) == quarantined);
    }
}

TEST_CASE("claim: an attach heals where half of the members have the lock, and nobody else can") {
    struct row {
        std::size_t members;
        bool fencing;
        std::vector<vote> votes;
        steps then;
        master_set connected = 0;
        vote healed = pending;
        steps last = none;
    };
    const std::vector<row> rows{
        {4, false, {granted, absent, granted, absent}, counted | mend, 0b0011, granted, won},
        // It is not lost: its owner may still act.
        {4,
         false,
         {granted, absent, granted, owned_by_other},
         counted | mend,
         0b1111,
         quarantined,
         failed},
        {4, false, {granted, absent, granted, error}, counted | mend, 0b1111, absent, failed},
        {4, false, {granted, absent, granted, error}, counted | mend}, // HEAL cannot be sent
        {4, false, {granted, absent, granted}, counted},               // the fourth may have it
        {4, false, {granted, absent, error}, counted},
        {4, false, {granted, granted, error, error}, counted | failed},
        {4, true, {granted, absent, granted, absent}, counted | failed},  // it has no counter there
        {5, false, {granted, absent, granted, absent}, counted | failed}, // the others' majority
    };
    for (const row& the : rows) {
        attaching one(the.fencing, 4, the.members);
        one.hear(kind::extend, the.votes, counted, the.then, errc::no_quorum);
        if (the.connected != 0) {
            CHECK(one.it.mend(the.connected, one.at()) == heal);
            CHECK(one.it.to() == 0b010);
            CHECK(one.it.decide(one.at()) == none);
            one.hear({healed(1, the.healed, the.last, errc::no_quorum)});
        } else if (has(the.then, mend)) {
            CHECK(one.it.mend(0, one.at()) == failed);
            CHECK(one.it.why() == errc::no_quorum);
        }
    }

    attaching half(false, 4); // half may be on a master that does not reply
    half.hear(kind::extend, {granted, absent, absent}, counted, counted);
    master_set silent = 0;
    CHECK(half.it.out_of_time(0, silent, half.at(half.it.vote_by())) == failed);
    CHECK(silent == 0b1000);
    CHECK(half.it.why() == errc::no_quorum);
    half.it.votes.of[3].said = absent;
    CHECK(half.it.decide(half.at()) == failed);
    CHECK(half.it.why() == errc::lost); // less than half have it
}

TEST_CASE("claim: a fenced attach reads the counters, and goes one further") {
    const std::vector<story> stories{
        {"a majority at that number wins", {raised(2, {granted, 7}, won)}},
        {"a counter that is ahead, or missing, does not count",
         {raised(1, {held, 8}, none, "its fencing counter is ahead"),
          raised(
              2,
              {granted, 0},
              failed,
              {errc::no_quorum, "it has no fencing counter for this lock"})}},
        {"if the lock is gone by then it is lost",
         {raised(1, owned_by_other), raised(2, owned_by_other, failed, errc::lost)}},
    };
    for (const auto& [rule, replies] : stories) {
        INFO(rule);
        attaching one(true);
        const master_set first_two = 0b011;
        one.hear({extended(0, granted), extended(1, granted, raise | anew, first_two)});
        CHECK(one.it.raises_to() == 0); // to nothing: that reads them
        one.hear(
            {extended(2, granted, raise, 0b100), // late: as well
             raised(0, {held, 6}),
             raised(1, {held, 4}, raise | anew, first_two)});
        CHECK(one.it.raises_to() == 7);
        one.hear(
            {raised(2, {held, 5}, raise, 0b100), // it was slow
             raised(0, {granted, 7})});
        one.hear(replies);
    }

    attaching gone(true);
    gone.hear({extended(0, granted)});
    gone.up = 0b110;
    gone.hear({extended(1, granted, raise | anew, 0b010)});
    CHECK(gone.vote_of(0) == unreachable);
}

TEST_CASE("claim: what is cut off shows contention, an outage, or slow masters") {
    const claim_terms until_5ms{.ttl = 10s, .patience = t0 + 5ms};
    const claim_terms within_8ms{.ttl = 10s, .min_validity = 9'890ms};
    struct row {
        const char* rule;
        claim_terms wanted;
        std::size_t arbiter;
        vote first; // the reply of the first master
        std::chrono::milliseconds after;
        master_set slow;
        errc why;
        master_set silent = 0;
    };
    const std::vector<row> rows{
        {"nobody replies", until_5ms, nobody, held, 5ms, 0, errc::no_quorum},
        {"one alone may", until_5ms, nobody, pending, 5ms, 0b001, errc::no_quorum},
        {"two may", until_5ms, nobody, pending, 5ms, 0b011, errc::wait_timed_out},
        {"it has voted already", until_5ms, nobody, held, 5ms, 0b001, errc::no_quorum},
        {"a majority may still", until_5ms, nobody, held, 5ms, 0b010, errc::wait_timed_out},
        {"one shows no outage", until_5ms, 1, pending, 5ms, 0, errc::wait_timed_out},
        {"too slow", within_8ms, nobody, granted, 8ms, 0b010, errc::validity_exhausted},
        {"nobody replies", within_8ms, nobody, granted, 8ms, 0, errc::no_quorum},
        {"they had their time", within_8ms, nobody, granted, 100ms, 0, errc::no_quorum, 0b110},
        {"early", within_8ms, nobody, granted, 7ms, all, errc::no_quorum, 0b110},
        {"at its end", wanted(), nobody, held, 100ms, 0, errc::no_quorum, 0b110},
    };
    for (const row& the : rows) {
        INFO(the.rule);
        unit::claim_site one;
        one.acquire(the.wanted, the.arbiter);
        if (the.first != pending) {
            one.hear({acquired(0, the.first)});
        }
        master_set silent = 0;
        CHECK(one.it.out_of_time(the.slow, silent, one.at(t0 + the.after)) == failed);
        CHECK(one.it.why() == the.why);
        CHECK(silent == the.silent);
        CHECK(one.it.votes.count(timed_out) == (the.silent != 0 ? 2 : 0));
        CHECK(one.vote_of(0) == the.first);
        CHECK(one.it.is_open() == (the.silent == 0));
    }
}

TEST_CASE("claim: it goes from asking to held, to lost, to removed") {
    attaching one(false);
    const auto phase = [&] {
        const claim& it = one.it;
        return std::string(
                   it.is_asking()   ? "asking"
                   : it.is_ending() ? "ending"
                                    : "")
               + (it.is_held()   ? "held"
                  : it.is_lost() ? "lost"
                                 : "")
               + (it.attaches() ? ", attaches" : "") + (it.acts() ? ", acts" : "")
               + (it.ended() ? ", ended" : "");
    };
    const time_point now = one.now;
    CHECK(phase() == "asking, attaches");

    one.it.votes.of[0].confirm(now + 9s);
    one.it.votes.of[1].confirm(now + 9s);
    one.it.votes.of[2].confirm(now + 8s);
    one.it.hold({.stop_margin = 1s, .renew = false}, now + 9s, forever, one.at());
    one.hear({raised(0, owned_by_other, deadline | later)});
    CHECK(phase() == "held, acts");
    CHECK(one.it.held_until() == now + 7s);
    CHECK(one.it.acts_until() == now + 8s);

    one.it.lose();
    CHECK(phase() == "lost, acts, ended");
    CHECK(one.it.acts_until() == now + 9s); // its holder was shown that
    CHECK(one.it.next_due(now) == now + 9s);

    SECTION("it is removed") {
        one.it.remove(all, 0, one.at());
        CHECK(phase() == "ending, ended");
        CHECK(one.it.result_wanted());
    }
    SECTION("it is handed off, and without fencing the next owner has won") {
        CHECK(one.it.hand_to({3, 1}, {.ttl = 5s}, one.at(now + 1s)) == won);
        CHECK(!one.it.left_to_expire()); // that owner does not pass its secret on
        CHECK(phase() == "asking");
        CHECK(one.it.wanted_by == handle<acquire_call>{3, 1});
        CHECK(one.it.ttl() == 5s);
        CHECK(one.it.began() == now + 1s);
    }
}

TEST_CASE("claim: of one that is used again nothing is known") {
    site one;
    one.rules.protocol = protocol::guarded;
    one.hold(t0 + 8s);
    one.it.votes.of[0].confirm(t0 + 9s);
    one.it.votes.of[1].confirm(t0 + 9s);
    one.extend(10s);
    one.hear({extended(2, absent, deadline | later), raised(1, owned_by_other, later)});
    one.it.note_stray(1, kind::acquire, t0 + 5s);
    one.it.votes.set_counter(0, 7);
    one.it.queued_in = 7;
    one.it.remove(0b110, 0b001, one.at());
    one.it.reset();
    CHECK(one.it.is_asking());
    CHECK(!one.it.attaches());
    CHECK(one.it.raises_to() == 0);
    CHECK(one.it.epoch_of(kind::extend) == 0);
    CHECK(!one.it.extending());
    CHECK(one.it.believed_until() == never);
    CHECK(one.it.votes.counter(0) == 0);
    CHECK(one.it.queued_in == 0);
    one.acquire(wanted());
    one.hear({acquired(0, granted), acquired(1, granted, won)});
    one.hold(t0 + usable);
    one.extend(10s); // no key was deleted, so it heals
    one.hear(kind::extend, {granted, error, absent}, counted | later, counted | later | mend);
    one.it.remove(all, 0, one.at());
    one.hear({{kind::remove, 1, absent, counted | confirmed}}); // no stray may follow

    held_by_all fenced;
    fenced.it.hand_to({}, wanted(), fenced.at());
    fenced.it.reset();
    CHECK(fenced.it.fencing_token() == 0);
    CHECK(fenced.it.epoch_of(kind::acquire) == 0);
    fenced.acquire(wanted(true));
    fenced.hear({acquired(1, {granted, 9}), acquired(0, {granted, 7}, raise | anew, 0b001)});
    CHECK(fenced.vote_of(0) == pending);
}

}} // namespace claim_test
