// What a claim owes the masters after its end. And the limits of all removals together.

#include "claim_site.hpp"
#include "core/locks/removal.hpp"
#include "core/locks/removal_limits.hpp"

namespace claim_removal_test { namespace {

using namespace redlock::core;
using namespace redlock;
using enum steps;
using enum vote;
using kind = command_kind;

constexpr time_point t0 = unit::claim_site::t0;
constexpr time_point decide_by = t0 + 1s; // the result is due
constexpr time_point expires_at = t0 + 10s;
constexpr steps removed = counted | landed | confirmed;
constexpr steps owed = counted | landed | later; // it must be sent again

enum ending : unsigned char { release, late, rollback };

// A claim that may be on all of the masters. The removal is sent to those that are up.
struct site : unit::claim_site {
    explicit site(
        master_set there,
        ending how = release,
        std::size_t masters = 3,
        const std::vector<std::pair<std::size_t, kind>>& strays = {},
        time_point strays_until = expires_at)
        : claim_site(unit::settings_for(masters)) {
        rules.drift = {0.0, 1s};
        rules.master_timeout = 1s;
        rules.health_check_interval = 5s;
        it.acquire(lock_form::exclusive, {}, {.ttl = 10s}, at(t0 - 1s));
        it.begin(at(t0 - 1s));
        it.ask();
        it.votes.note(0, "of the acquire");
        it.votes.set_left(0, 3s);
        it.votes.of[0].latency = 1ms;
        it.votes.of[0].said = granted;
        if (how != rollback) {
            it.hold({.stop_margin = {}, .renew = false}, t0 + 8s, forever, at());
        }
        if (how == late) {
            it.lose();
        }
        for (const auto& [master, what] : strays) {
            it.note_stray(master, what, strays_until);
        }
        up = there;
        it.remove(there, ((1U << masters) - 1) & ~there, at());
        CHECK(it.sent(there) == there);
        CHECK(it.asked_at() == t0);
        CHECK(it.expires_at() == expires_at);
        // They explain the result of the removal, or why the attempt failed.
        const bool explains = how == rollback;
        CHECK(it.votes.text(0).empty() == !explains);
        CHECK(it.votes.left(0) == (explains ? 3s : lease_unknown));
        CHECK(it.votes.of[0].latency == (explains ? 1ms : 0ms));
        CHECK((vote_of(0) == granted) == (explains && (there & 1) != 0));
        it.votes.note(0, "");
    }

    void answer(std::size_t master, vote what, steps then) {
        hear({{kind::remove, master, what, then}});
    }
    steps settle(time_point when = t0, master_set active = 0, time_point until = forever) {
        return it.settle(active, until, at(when));
    }
    master_set unsent() const {
        return set_where(rules.size(), [this](std::size_t i) { return it.unsent(i); });
    }
    master_set repeats(time_point when) { return it.repeats(last, at(when)); }

    bool last = false;
};

struct debtor {
    handle<claim> self;
    bool owes = true;
    void reset() {}
};

TEST_CASE("removal: it is decided when a majority says the same, or none can any more") {
    using enum release_result;
    struct row {
        std::vector<vote> votes;
        steps last = none; // of what follows
        release_result result = uncertain;
        ending how = release;
    };
    const std::vector<row> rows{
        {{granted}},
        {{granted, granted}, known, released},
        {{absent, absent}, known, expired},
        {{owned_by_other, error, owned_by_other}, known, stolen},
        {{granted, absent}},
        {{granted, absent, owned_by_other}, known | gone, uncertain},
        {{error, unreachable}, known, uncertain},
        {{error, owned_by_other}},
        // The key is a leftover if the lease had ended.
        {{granted, granted}, known, expired, late},
        {{granted, absent}, known, expired, late},
        {{owned_by_other, owned_by_other}, known, stolen, late},
        {{granted, granted, granted}, gone, uncertain, rollback}, // nobody waits for it
    };
    for (const row& the : rows) {
        site one(0b111, the.how);
        for (std::size_t i = 0; i < the.votes.size(); ++i) {
            const steps then = confirms_removal(the.votes[i]) ? removed : owed;
            one.answer(i, the.votes[i], i + 1 == the.votes.size() ? then | the.last : then);
        }
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(one.vote_of(i) == (i < the.votes.size() ? the.votes[i] : pending));
        }
        CHECK(one.it.result() == the.result);
        CHECK(one.it.result_wanted() == (the.last == none));
    }

    site other(0b111); // the first is not a member any more
    other.it.answered({.kind = kind::remove, .counts = false}, unit::said(granted), other.at());
    other.answer(1, granted, removed);
    other.answer(2, granted, removed | known | gone);
}

TEST_CASE(
    "removal: a result that is not known in time is uncertain, and names the silent masters") {
    site one(0b011);
    one.answer(0, granted, removed);
    CHECK(one.it.next_due(t0) == decide_by);
    CHECK(one.settle(decide_by - 1ns) == none);
    CHECK(one.settle(decide_by) == known);
    CHECK(one.it.result() == release_result::uncertain);
    CHECK(one.vote_of(1) == timed_out);
    CHECK(one.vote_of(2) == unreachable);
    CHECK(!one.it.result_wanted());
    CHECK(one.settle(decide_by) == none); // once
    CHECK(one.it.next_due(t0) == expires_at);
}

TEST_CASE("removal: its result is put off only while it can still be decided") {
    struct row {
        bool replied; // the first master
        master_set active;
        bool waits;
    };
    for (const row& the :
         {row{false, 0b011, true},
          {false, 0b100, false},
          {true, 0b100, true},
          {true, 0b001, false}}) {
        site one(0b111);
        if (the.replied) {
            one.answer(0, granted, removed);
        }
        CHECK(!one.it.result_due(decide_by - 1ns));
        CHECK(one.settle(decide_by - 1ns, the.active, decide_by + 50ms) == none);
        CHECK(one.it.next_due(t0) == decide_by);
        CHECK(one.it.result_due(decide_by));
        CHECK(one.settle(decide_by, the.active, decide_by + 50ms) == (the.waits ? none : known));
        if (the.waits) {
            CHECK(one.settle(decide_by + 49ms) == none);
            CHECK(one.settle(decide_by + 50ms) == known);
        }
        CHECK(!one.it.result_due(decide_by + 1h)); // nobody waits for it
    }
    site late(0b111); // a reply that comes when it is due leaves that to its owner
    late.answer(0, granted, removed);
    late.now = decide_by;
    late.answer(1, granted, removed);
    CHECK(late.settle(decide_by) == known);
}

TEST_CASE("removal: an acquire that may still come is removed once more, unless it was executed") {
    const time_point until = t0 + 3s;
    site one(0b11, rollback, 2, {{0, kind::acquire}, {1, kind::acquire}}, until);
    one.answer(0, granted, removed);
    one.answer(1, absent, removed | later);
    CHECK(one.unsent() == 0b010);
    CHECK(one.it.overdue() == 0); // it is only repeated
    CHECK(one.it.next_due(t0) == until);
    CHECK(one.repeats(until) == 0b010);
    one.it.sent(0b010);
    one.now = until;
    one.answer(1, absent, removed | repeated | gone);
}

TEST_CASE("removal: a HEAL that may still come is removed once more even if the key was there") {
    site one(0b1, release, 1, {{0, kind::heal}}, t0 + 3s);
    one.answer(0, granted, removed | later | known);
    CHECK(one.unsent() == 0b001);
    CHECK(one.it.result() == release_result::released);

    site twice(0b011, release, 3, {{0, kind::acquire}}, t0 + 500ms); // is counted once
    twice.answer(0, absent, removed | later);
    twice.it.sent(0b001);
    twice.answer(0, absent, removed | later);
    twice.answer(1, absent, removed | known);
    CHECK(twice.it.result() == release_result::expired);
}

TEST_CASE("removal: until when a stray is executed, and when an intent expires") {
    site rolled_back(0b111, rollback);
    CHECK(rolled_back.it.executed_by(kind::acquire) == rolled_back.it.vote_by());
    CHECK(rolled_back.it.executed_by(kind::heal) == rolled_back.it.vote_by());
    site released(0b111);
    CHECK(released.it.executed_by(kind::acquire) == released.it.vote_by());
    CHECK(released.it.executed_by(kind::heal) == t0 + 8s); // its deadline

    unit::claim_site one;
    one.begin({.ttl = 10s});
    one.it.only_intent(0b110, t0 + 2s);
    CHECK(one.it.may_be_on() == 0b110);
    CHECK(one.it.expires_at() == t0 + 2s);
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
            t0,
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
    ledger.search(1, t0);
    CHECK(ledger.due() == t0);
    CHECK(turn() == 3); // in one turn
    CHECK(ledger.due() == t0);
    CHECK(turn() == 1); // there is no more room
    CHECK(ledger.due() == forever);
    CHECK(!ledger.has_room(1));
    CHECK(ledger.has_room(0));
    ledger.answered(1, t0);
    CHECK(ledger.due() == forever);
    ledger.answered(1, t0);
    CHECK(ledger.due() == t0);
    claims.find({0, 1})->owes = true; // which nobody has told it
    ledger.search(1, t0);
    CHECK(turn() == 2); // those after
    CHECK(ledger.due() == forever);
    ledger.answered(1, t0);
    ledger.answered(1, t0);
    CHECK(turn() == 1); // and then from the beginning
    CHECK(ledger.due() == forever);
    ledger.answered(1, t0);
    ledger.answered(1, t0);
    CHECK(ledger.under_way());
    ledger.answered(1, t0);
    CHECK(!ledger.under_way());
}

}} // namespace claim_removal_test
