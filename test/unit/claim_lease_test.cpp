// A claim that is held: its deadline, what is due, its extensions and why it is lost.

#include "claim_site.hpp"

namespace claim_lease_test { namespace {

using namespace redlock::core;
using namespace redlock;
using enum steps;
using enum vote;
using kind = command_kind;
using unit::acquired, unit::extended, unit::healed, unit::raised;

constexpr master_set all = 7;
constexpr time_point t0 = unit::claim_site::t0;
constexpr steps over = round_over | later;

struct terms {
    acquire_options how = {};
    time_point limit = forever;
    std::chrono::milliseconds held_warning{};
    bool guarded = true;
    std::chrono::milliseconds asked_ttl = 9s;
};

// A lease of 9 s, of which 8 s can be relied on, since t0: the first master has voted for 9 s, the
// second for 8 s, and the third not yet.
struct site : unit::claim_site {
    explicit site(const terms& with = {}) {
        rules.drift = {0.0, 1s};
        rules.protocol = with.guarded ? protocol::guarded : protocol::plain;
        rules.held_warning = with.held_warning;
        it.acquire(lock_form::exclusive, {}, {.ttl = with.asked_ttl}, at());
        for (const std::size_t i : {0U, 1U}) {
            it.votes.of[i].asked = true;
            it.votes.of[i].said = granted;
            it.votes.of[i].confirm(i == 0 ? t0 + 9s : t0 + 8s);
        }
        acquire_options how = with.how;
        if (how.stop_margin == redlock::default_stop_margin) {
            how.stop_margin = {};
        }
        it.hold(how, t0 + 8s, with.limit, at());
    }

    void replies(const std::vector<vote>& votes, steps last) {
        hear(kind::extend, votes, counted | later, counted | last);
    }
    steps due(time_point when) {
        silent = 0;
        return it.due(silent, at(when));
    }
    master_set silent = 0;
};

TEST_CASE("lease: it lasts as long as a majority of the votes, and no longer than its limit") {
    site one({.asked_ttl = 11s});
    one.hear({raised(2, owned_by_other, later), acquired(2, held)});
    CHECK(one.it.deadline() == t0 + 8s);
    one.hear({acquired(2, granted, deadline | later)}); // for 10 s
    CHECK(one.it.deadline() == t0 + 9s);
    CHECK(one.it.believed_until() == t0 + 9s);
    one.hear({raised(2, granted), raised(2, owned_by_other, deadline | later)});
    CHECK(one.it.deadline() == t0 + 8s);
    CHECK(one.it.believed_until() == t0 + 9s); // its holder was shown that
    one.now = t0 + 8s;
    one.hear({acquired(2, granted), raised(2, owned_by_other, stop)});

    site same; // the third vote for no longer than that of the second
    same.hear({acquired(2, granted)});

    site limited({.limit = t0 + 4s});
    limited.hear({raised(2, owned_by_other, deadline | later)});
    CHECK(limited.it.deadline() == t0 + 4s);
    CHECK(limited.due(t0 + 4s) == stop);
    CHECK(limited.it.loss() == loss_reason::max_hold_reached);
}

TEST_CASE("lease: a reader's vote by a SET without a certificate counts after the quarantine") {
    const auto extended_on_0 = [](site& one, bool quarantined) {
        one.it.extend(9s, false, one.at());
        const told from{
            .master = 0,
            .kind = kind::extend,
            .epoch = one.it.epoch_of(kind::extend),
            .quarantined = quarantined};
        one.it.answered(from, {.said = granted}, one.at());
        one.it.give_up_round(one.at());
        return one.it.votes.of[0].found;
    };
    site late;
    site known;
    for (site* const one : {&late, &known}) {
        one->it.votes.of[0].unvouched = true;
        one->it.downgrade();
    }
    CHECK(extended_on_0(late, true) == key_state::quarantined);
    CHECK(extended_on_0(known, false) == key_state::kept);
    CHECK(extended_on_0(known, true) == key_state::kept); // as a certificate would show
}

TEST_CASE("lease: what a reply to an extension shows of the key") {
    struct row {
        vote said;
        key_state found;
        told with = {};
        bool forgot = false;
        bool guarded = true;
    };
    const std::vector<row> rows{
        {granted, key_state::kept},
        {granted, key_state::kept, {.fit = false}},
        {granted, key_state::healed, {.kind = kind::heal}},
        {granted, key_state::quarantined, {.kind = kind::heal, .quarantined = true}},
        {absent, key_state::missing},
        {absent, key_state::quarantined, {}, true},
        {absent, key_state::quarantined, {.quarantined = true}},
        {absent, key_state::missing, {.quarantined = true}, false, false},
        {vote::quarantined, key_state::quarantined},
        {owned_by_other, key_state::owned_by_other},
        {error, key_state::unknown},
        {unreachable, key_state::unknown},
        {error, key_state::ineligible, {.fit = false}},
    };
    for (const row& the : rows) {
        site one({.guarded = the.guarded});
        one.it.votes.note(2, "of the acquire");
        one.it.votes.set_left(2, 3s);
        one.it.votes.of[2].latency = 1ms;
        one.it.votes.of[2].said = held;
        one.it.votes.of[2].found = key_state::missing;
        one.it.extend(9s, false, one.at());
        CHECK(one.it.votes.text(2).empty());
        CHECK(one.it.votes.of[2].latency == 0ms);
        CHECK(one.it.votes.of[2].found == key_state::unknown);
        CHECK(!one.it.extends_on(2, false)); // it was not asked for the key
        CHECK(one.it.extends_on(0, false));
        CHECK(one.it.extends_on(2, true)); // guarded, it may be healed
        CHECK(one.vote_of(2) == pending);
        CHECK(one.it.votes.of[2].found == key_state::pending);

        told from = the.with;
        from.master = 2;
        from.kind = from.kind == kind::heal ? kind::heal : kind::extend;
        from.epoch = one.it.epoch_of(kind::extend);
        one.it.answered(from, {.said = the.said, .forgot = the.forgot}, one.at());
        CHECK(one.vote_of(2) == the.said);
        CHECK(one.it.votes.of[2].found == the.found);
        CHECK(one.it.votes.left(2) == lease_unknown);
    }

    site one; // and what one that is not asked shows
    for (const bool fit : {true, false}) {
        one.it.skip(1, unreachable, fit);
        CHECK(one.vote_of(1) == unreachable);
        CHECK(one.it.votes.of[1].found == (fit ? key_state::unknown : key_state::ineligible));
    }
}

TEST_CASE("lease: while a round is open its replies move the deadline forward only") {
    site one;
    one.extend(9s);
    one.replies({absent, absent}, later);
    CHECK(one.it.deadline() == t0 + 8s);
    one.hear({extended(2, absent, later | stop)});
    CHECK(one.it.deadline() == never);
    CHECK(one.it.believed_until() == t0 + 8s);
    CHECK(one.it.loss() == loss_reason::expired);
}

TEST_CASE("lease: votes from before the members changed do not count, and the deadline stays") {
    site one;
    one.extend(9s);
    const auto before = one.it.epoch_of(kind::extend);
    one.it.members_changed(set_of(0)); // it was removed from the quorum
    CHECK(one.it.give_up_round(one.at()) == over);
    CHECK(!one.it.extended());
    for (const std::size_t master : {0U, 2U}) {
        const told late{.master = master, .kind = kind::extend, .epoch = before};
        CHECK(one.it.answered(late, unit::said(granted), one.at()) == (counted | later));
        CHECK(one.until(master) == never);
        CHECK(one.it.deadline() == t0 + 8s);
    }

    one.extend(3s); // by the new members
    one.replies({granted, pending, granted}, deadline | mend | over);
    CHECK(one.it.deadline() == t0 + 2s);
    CHECK(one.it.may_send(kind::heal, one.it.epoch_of(kind::heal), t0));
    one.it.members_changed(0);
    CHECK(!one.it.may_send(kind::heal, one.it.epoch_of(kind::heal), t0));
}

TEST_CASE("lease: what is due is due in order, and a warning is given once") {
    site one({.held_warning = 2s});
    CHECK(one.it.next_due(t0) == t0 + 2s);
    CHECK(one.due(t0 + 2s - 1ns) == later);
    CHECK(one.due(t0 + 2s) == warn);
    const time_point renewal = one.it.next_due(t0);
    CHECK(renewal <= t0 + 3s); // a third of the ttl
    CHECK(renewal > t0 + 2'160ms);
    CHECK(renewal.time_since_epoch() % 90ms == 0ns); // so that renewals of several share a write
    CHECK(one.due(renewal - 1ns) == later);
    CHECK(one.due(renewal) == renew);
    one.now = t0 + 3s;
    one.extend(9s);
    CHECK(one.due(one.now) == later);
    CHECK(one.it.next_due(one.now) == one.now + 100ms);
    CHECK(one.due(one.now + 100ms) == over);
    CHECK(one.silent == all);
    CHECK(one.it.votes.count(timed_out) == 3);
    CHECK(one.due(one.now + 100ms) == later);
    CHECK(one.silent == 0);
}

TEST_CASE("lease: after an extension that was won the next is due a third of the ttl on") {
    site one;
    one.now = t0 + 1s;
    one.extend(9s);
    one.replies({granted, pending, granted}, deadline | mend | over);
    CHECK(one.it.deadline() == t0 + 9s);
    CHECK(one.it.next_due(one.now) <= t0 + 4s);
    CHECK(one.it.next_due(one.now) > t0 + 3'160ms);
    one.hear({extended(1, granted, later)});
    CHECK(one.until(1) == t0 + 9s); // it counts all the same

    site off({.how = {.renew = false}});
    site limited({.limit = t0 + 8s});
    for (site* const last : {&off, &limited}) { // nobody renews it, or not for longer
        last->extend(9s);
        last->replies({granted, pending, granted}, mend | over);
        CHECK(last->it.next_due(last->now) == t0 + 8s);
        CHECK(!last->it.ends_early(last->rules.drift));
        last->extend(12s);
        CHECK(last->it.ends_early(last->rules.drift) == (last == &limited));
    }
}

TEST_CASE("lease: after an extension that failed the next comes soon, later each time") {
    site one;
    one.extend(9s);
    const auto delay = [&] {
        one.it.give_up_round(one.at());
        return one.it.next_due(t0) - t0;
    };
    const auto first = delay();
    CHECK(first >= 5ms);
    CHECK(first <= 15ms);
    auto longest = first;
    for (int i = 0; i < 500; ++i) {
        longest = std::max(longest, delay());
    }
    CHECK(longest == 900ms); // a tenth of the ttl
}

TEST_CASE("lease: HEAL is sent where the key is missing, and its reply is a vote of the round") {
    site one;
    one.extend(9s);
    one.now += 1ms;
    one.replies({granted, error, absent}, later | mend);
    CHECK(one.it.next_due(one.now) == t0 + 101ms);
    SECTION("it wins the round") {
        CHECK(one.it.mend(all, one.at()) == (heal | later));
        CHECK(one.it.to() == set_of(2));
        CHECK(one.it.votes.of[2].asked);
        CHECK(one.it.held_since() == t0);
        CHECK(one.it.expires_at() == t0 + 18s); // it may be executed until the deadline
        one.hear({healed(2, granted, over)});   // nothing is left to mend
        CHECK(one.it.extended());
        CHECK(one.it.mend(0, one.at()) == none);
        CHECK(one.it.to() == 0);
    }
    SECTION("it cannot be sent") {
        CHECK(one.it.mend(all & ~set_of(2), one.at()) == over);
        CHECK(!one.it.extended());
    }
}

TEST_CASE("lease: a reply to an earlier round does not count, but a key that is gone is gone") {
    site one;
    one.extend(9s);
    const auto before = one.it.epoch_of(kind::extend);
    one.it.give_up_round(one.at());
    one.extend(9s);
    const auto hear_late = [&](std::size_t master, vote what) {
        const told late{.master = master, .kind = kind::extend, .epoch = before};
        CHECK(one.it.answered(late, unit::said(what), one.at()) == (counted | later));
        CHECK(one.until(master) == never);
        CHECK(one.it.votes.of[master].found == key_state::pending);
    };
    hear_late(2, granted);
    hear_late(1, absent);
    one.replies({granted, pending, granted}, mend | over);
    hear_late(1, absent); // it does not heal
    CHECK(!one.it.may_send(kind::extend, before, t0));
    const auto present = one.it.epoch_of(kind::extend);
    CHECK(one.it.may_send(kind::extend, present, t0 + 8s - 1ns));
    CHECK(!one.it.may_send(kind::extend, present, t0 + 8s));
}

TEST_CASE("lease: a loss is explained with the votes of the masters") {
    struct row {
        vote first;
        vote second;
        loss_reason why;
        acquire_options how = {};
        std::chrono::nanoseconds timer = 0ns; // it was due that long before the end
        bool renewed = false;                 // for a ttl that ends before the lease
        std::chrono::milliseconds master_timeout = 100ms;
    };
    const std::vector<row> rows{
        {granted, granted, loss_reason::majority_unreachable},
        {granted, owned_by_other, loss_reason::majority_unreachable},
        {owned_by_other, owned_by_other, loss_reason::owned_by_other},
        {owned_by_other, absent, loss_reason::expired},
        {granted, granted, loss_reason::expired, {.renew = false}},
        {granted, granted, loss_reason::majority_unreachable, {}, 100ms},
        {granted, granted, loss_reason::stalled, {}, 100ms + 1ns}, // this process did not run
        {absent, absent, loss_reason::expired, {}, 1s},
        {granted, granted, loss_reason::expired, {}, 100ms, true},
        {granted, granted, loss_reason::stalled, {}, 100ms + 1ns, true},
        {granted, granted, loss_reason::majority_unreachable, {}, 3s, false, 10s},
        {granted, granted, loss_reason::stalled, {}, 3s + 1ns, false, 10s},
    };
    for (const row& the : rows) {
        site one({.how = the.how});
        one.rules.master_timeout = the.master_timeout;
        if (the.renewed) {
            one.extend(2s);
            one.replies({granted, granted}, mend | over);
        }
        one.it.votes.of[0].said = the.first;
        one.it.votes.of[1].said = the.second;
        one.it.wake.due = t0 + 8s - the.timer;
        CHECK(one.due(t0 + 8s) == stop);
        CHECK(one.it.loss() == the.why);
    }
}

}} // namespace claim_lease_test
