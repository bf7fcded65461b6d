// The parts of the engine, each without the others and without an engine.

#include "core/engine/acquires.hpp"
#include "core/engine/attempts.hpp"
#include "core/engine/fair_queue.hpp"
#include "core/engine/holders.hpp"
#include "core/engine/leases.hpp"
#include "core/engine/masters_report.hpp"
#include "core/engine/queries.hpp"
#include "core/engine/removals.hpp"
#include "core/engine/replies.hpp"
#include "core/engine/slot_scans.hpp"
#include "core/engine/waiting.hpp"
#include "parts_site.hpp"
#include "take_timer.hpp"

namespace parts_test { namespace {

using namespace redlock::core;
using namespace redlock;
using unit::parts_site;
using lines = std::vector<std::string>;

/// All acquires, and the parts that they are made of.
struct acquires_site {
    explicit acquires_site(parts_site& it)
        : tries(it.with),
          queues(it.with, it),
          scans(it.with, it),
          held(it.with),
          ended(it.with),
          all(it.with, tries, queues, scans, held, ended) {}

    attempts tries;
    waiting queues;
    slot_scans scans;
    leases held;
    removals ended;
    acquires all;
};

/// A lease at the beginning of its first renewal.
claim& begin_renewal(parts_site& it, leases& all) {
    claim& lease = it.granted("p:{r}");
    all.begin(lease, {}, it.now + unit::usable(10s), forever, it.now);
    it.now = it.due.next();
    CHECK(!all.due(lease, it.now));
    return lease;
}

operation waiting_for(std::string_view key, std::uint64_t cookie) {
    operation out;
    out.cookie = cookie;
    out.key = key;
    out.options = unit::patient();
    return out;
}

TEST_CASE("queries: each is reported once, when all masters have replied or its time is up") {
    parts_site it(3);
    queries asked(it.with);
    asked.ask(1, "r", it.now);
    it.disconnect(2);
    it.talk_all();
    REQUIRE(it.host.statuses.size() == 1);
    CHECK(it.host.statuses[0].state == lock_state::free);
    CHECK(it.host.statuses[0].masters[2].vote == vote::unreachable);
    CHECK(unit::take_timer(it.due, forever) == nullptr);

    asked.ask(2, "r", it.now);
    const timer* const late = unit::take_timer(it.due, it.now + it.rules.master_timeout);
    REQUIRE(late != nullptr);
    asked.due(late->subject);
    CHECK(it.host.statuses.size() == 2);
}

TEST_CASE("slot scans: the status of a pool is reported, the scan of an acquire returned") {
    parts_site it(3);
    slot_scans scans(it.with, it);
    slot_scan* found = nullptr;
    it.on_reply = [&](const arrival& at, const reply* got) {
        slot_scan* const decided = scans.answered(at, got);
        found = decided != nullptr ? decided : found;
    };
    scans.ask(1, "r", 3, it.now);
    it.talk_all();
    REQUIRE(it.host.pools.size() == 1);
    CHECK(found == nullptr);

    const slot_scan& mine = scans.start({1, 1}, "p:{r}:slot", 3, 1, it.now);
    it.talk_all();
    REQUIRE(found == &mine);
    CHECK(mine.found.found() == 3);
    CHECK(it.host.pools.size() == 1);
}

TEST_CASE("replies: each is an answer for a claim, also the one that a broken connection keeps") {
    struct heard final : reply_events {
        void answered(claim&, const arrival& at, const answer& got) override {
            said.at(at.master) = got.said;
        }
        void removed(const arrival& at, std::span<const batch::item>) override {
            said.at(at.master) = vote::granted;
        }
        void again(claim&, const arrival&, const answer& got) override {
            repeats += got.use_eval ? 1 : 0;
        }
        void voters_changed(const admission_change&, redlock::time_point) override {}
        std::vector<vote> said = std::vector(3, vote::pending);
        int repeats = 0;
    } events;
    parts_site it(3);
    replies all(it.with, it.heard, events);
    it.on_reply = [&](const arrival& at, const reply* got) { all.replied(at, got); };
    it.on_grant = [&](const arrival& at, std::uint64_t locks) { all.granted(at, locks); };
    claim& mine = it.granted("p:{r}");
    it.servers[0].drop("p:{r}");
    mine.ask({attempt::origin::acquire, 3, 2});
    it.commands.acquire(mine, 0b111, it.now);
    it.commands.flush();
    it.disconnect(2);
    it.talk_all();
    CHECK(events.said == std::vector{vote::granted, vote::held, vote::unreachable});
    CHECK(mine.left_behind().sets == 0b100);

    reply refusal;
    refusal.type = reply_type::error;
    refusal.text = "NOSCRIPT No matching script";
    const sent_command removing{.kind = command_kind::remove, .subject = mine.self};
    all.replied({0, removing, it.now, it.now}, &refusal);
    CHECK(events.repeats == 1);
}

TEST_CASE(
    "removals: the result is known by a majority, and the rest is sent once a master is back") {
    parts_site it(3);
    removals all(it.with);
    it.on_reply = [&](const arrival& at, const reply* got) {
        if (claim* const ended =
                it.claims.find(at.command.shared ? it.host.won : at.command.subject)) {
            all.answered(*ended, at, got != nullptr ? vote::granted : vote::unreachable);
        }
    };
    claim& lease = it.granted("p:{r}");
    it.host.won = lease.self;
    lease.hold({{}, it.now, it.now + 9s, forever});
    it.disconnect(2);
    all.begin(lease, it.now);
    it.talk_all();
    CHECK(it.host.taken() == lines{"released"});
    CHECK(it.claims.size() == 1);
    CHECK(!all.under_way());

    it.reconnect(2);
    all.connection_changed(2, it.now);
    it.talk_all();
    CHECK(it.claims.size() == 0);
    CHECK(it.host.taken().empty());
    CHECK(it.counters.removals_repeated == 1);
}

TEST_CASE("leases: one is renewed in time, and its loss returned when no master answers") {
    parts_site it(3);
    leases all(it.with);
    claim& lease = begin_renewal(it, all);
    CHECK(it.host.taken() == lines{"renewing"});
    const sent_command command{
        .kind = command_kind::extend, .round = lease.extending.round, .subject = lease.self};
    CHECK(!all.answered(
        lease, {.master = 0, .command = command, .now = it.now}, {.said = vote::granted}));
    CHECK(!all.answered(
        lease, {.master = 1, .command = command, .now = it.now}, {.said = vote::granted}));
    CHECK(it.host.taken() == lines{"changed", "renewed"});

    it.now = lease.held().held_until();
    const leases::loss lost = all.due(lease, it.now);
    REQUIRE(lost);
    all.lose(lease, *lost, it.now);
    CHECK(it.host.taken().back() == "lost");
    CHECK(lease.is_lost());
}

TEST_CASE("the fair queue: a turn comes at once to the first, and none is asked without an order") {
    parts_site it(3);
    wait_queues queues(it.masters);
    wait_queue& mine = queues.create(lock_form::exclusive, "p:{r}");
    fair_queue turns(it.with, it);
    fair_queue::turn turn;
    it.on_reply = [&](const arrival& at, const reply* got) {
        turn = turns.answered(&mine, at, got);
    };
    acquire_options options;
    CHECK(!turns.ask(mine, options, it.now));
    options.order = fairness::fifo;
    CHECK(turns.ask(mine, options, it.now));
    it.talk_all();
    CHECK(turn.next == fair_queue::turn::what::come);

    turns.leave(mine, it.now);
    CHECK(turns.leaving());
    it.talk_all();
    CHECK(!turns.leaving());
}

TEST_CASE("attempts: one is open until a majority has answered") {
    parts_site it(3);
    attempts tries(it.with);
    using kind = attempt::decision::kind;
    operation wanted = waiting_for("p:{r}", 1);
    CHECK(tries.begin(wanted, {}, it.now).next == kind::open);
    claim& mine = *it.claims.find(wanted.attempt);
    CHECK(it.said(0) == lines{"SET p:{r} " + std::string(mine.token_text()) + " NX PX 10000"});
    const sent_command command{.kind = command_kind::acquire, .subject = mine.self};
    const auto told = [&](std::size_t master, vote what) {
        const auto next = tries.answered(
            mine, {.master = master, .command = command, .now = it.now}, {.said = what});
        return tries.follow(wanted, mine, next, it.now);
    };
    CHECK(told(0, vote::granted).next == kind::open);
    CHECK(told(1, vote::held).next == kind::open);
    CHECK(told(2, vote::granted).next == kind::won);
    it.due.cancel(wanted.wake);
}

TEST_CASE("waiting: only the front asks, and the next one is woken when it leaves") {
    parts_site it(3);
    waiting all(it.with, it);
    operation first = waiting_for("p:{r}", 1);
    operation second = waiting_for("p:{r}", 2);
    CHECK(all.join(first, it.now) == waiting::step::ask);
    CHECK(all.join(second, it.now) == waiting::step::wait);
    operation third = waiting_for("p:{r}", 3);
    all.join(third, it.now);
    all.leave(third, it.now);
    CHECK(third.key == "p:{r}"); // for its result: only the front keeps one
    CHECK(unit::take_timer(it.due, forever) == nullptr);
    all.leave(first, it.now);
    it.now = it.due.next();
    CHECK(unit::take_timer(it.due, it.now) == &second.wake);
    CHECK(all.due(second, it.now) == waiting::step::ask);
    all.leave(second, it.now);
    CHECK(all.queues().find(lock_form::exclusive, "p:{r}") == nullptr);
}

TEST_CASE("leases: an extension that is open at a local handoff goes on for the next owner") {
    parts_site it(3);
    leases all(it.with);
    claim& lease = begin_renewal(it, all);
    const auto given_up_at = it.now + it.rules.master_timeout;

    it.now += 1ms;
    lease.ask(attempt::accept(3, 2, it.now));
    all.begin(lease, {}, lease.votes.lasts_until(2), forever, it.now);
    CHECK(lease.held().next_due(lease) == given_up_at);
    CHECK(!all.due(lease, given_up_at));
    CHECK(it.host.taken() == lines{"renewing", "not renewed"});
    CHECK(!lease.extending.active);
    CHECK(lease.held().next_due(lease) > given_up_at);
}

TEST_CASE("acquires: one gets the lock, and hands it off to the next") {
    parts_site it(3);
    it.rules.local_handoff_time = 1s;
    acquires_site parts(it);
    acquires& all = parts.all;
    const auto begin = [&](std::uint64_t cookie) {
        return all.begin(
            {.cookie = cookie, .resource = "r", .options = unit::patient()}, {}, it.now);
    };
    const operation& first = *all.find(begin(1));
    claim& lease = *it.claims.find(first.attempt);
    begin(2);
    const sent_command command{.kind = command_kind::acquire, .subject = lease.self};
    for (const std::size_t master : {0U, 1U}) {
        all.answered(
            lease, {.master = master, .command = command, .now = it.now}, {.said = vote::granted});
    }
    CHECK(it.host.taken() == lines{"acquired 1"});
    CHECK(all.hand_off(lease, it.now));
    CHECK(it.host.taken() == lines{"released", "acquired 2"});
    CHECK(!all.hand_off(lease, it.now));
    CHECK(all.size() == 0);

    all.begin({.cookie = 3, .resource = "s", .options = unit::patient()}, errc::closed, it.now);
    CHECK(it.host.taken() == lines{"not acquired 3"});
}

TEST_CASE("holders: the keys of a lost lease stay until its holder must have stopped") {
    parts_site it(3);
    acquires_site parts(it);
    holders all(it.with, parts.all, parts.queues, parts.held, parts.ended);
    const auto begin = [&]() -> claim& {
        claim& made = it.granted("p:{r}");
        parts.held.begin(made, {}, it.now + 9s, forever, it.now);
        made.believed_until = it.now + 9s;
        return made;
    };
    claim& lease = begin();
    all.lose_if(lease, {}, it.now);
    CHECK(it.host.taken().empty());
    all.lose_if(lease, loss_reason::owned_by_other, it.now);
    CHECK(it.host.taken() == lines{"p:{r}: lost: owned_by_other", "lost"});
    CHECK(all.lost() == 1);
    CHECK(it.said(0).empty());
    CHECK(lease.wake.due == lease.believed_until);
    SECTION("released before") {
        all.release(lease, it.now);
    }
    SECTION("never released") {
        all.end_lost(lease, lease.wake.due);
    }
    SECTION("abandoned") {
        all.abandon(lease);
        CHECK(it.claims.size() == 0);
        CHECK(unit::take_timer(it.due, forever) == nullptr);
        it.commands.flush();
        CHECK(it.said(0).empty());
        all.release(begin(), it.now); // a lock that is held
    }
    CHECK(all.lost() == 0);
    it.commands.flush();
    CHECK(it.said(0).size() == 1);
}

TEST_CASE("the log of the masters: each line names its master and says what happened") {
    parts_site it(3);
    const master_log log(it.with);
    log.noted(0, "has no EVALSHA");
    log.clock_stepped(1, -1500ms);
    log.clocks_stepped(2);
    log.voter_changed(1, it.now);
    it.disconnect(2);
    log.voter_changed(2, it.now);
    log.members_changed();
    CHECK(
        it.host.taken()
        == lines{
            "m0: has no EVALSHA",
            "m1: its clock was stepped by -1500 ms, or this machine's was",
            "the clocks of 2 masters seem to have been stepped at once: taken for a step of this "
            "machine's clock",
            "m1: admitted",
            "m2: does not vote: reset",
            "members of the quorum, generation 0: "});
    log.publish_refused(0);
    CHECK(it.host.taken().front().starts_with("m0: PUBLISH is refused"));
}

TEST_CASE("a report describes votes, and counts claims by their phase") {
    parts_site it(3);
    claim& lease = it.granted("p:{r}");
    lease.hold({{}, it.now, it.now + 9s, forever});
    lease.votes.of[1].said = vote::held;
    const auto votes = describe(lease.votes, it.rules, it.masters, it.now);
    REQUIRE(votes.size() == 3);
    CHECK(votes[1].vote == vote::held);
    CHECK(count(it.counters, it.claims, it.rules, it.masters).held == 1);
    CHECK(examine(it.rules, it.masters, true, it.now).ready);
    CHECK(!examine(it.rules, it.masters, false, it.now).ready);
}

}} // namespace parts_test
