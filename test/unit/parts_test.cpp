// What the engine keeps apart because it has data of its own, and the wire: each without an engine.

#include "core/engine/engine_callbacks.hpp"
#include "core/engine/fair_queue.hpp"
#include "core/engine/masters_report.hpp"
#include "core/engine/queries.hpp"
#include "core/engine/slot_scans.hpp"
#include "quorum_site.hpp"
#include "take_timer.hpp"

namespace parts_test { namespace {

using namespace redlock::core;
using namespace redlock;

struct reports_noted final : engine_callbacks {
    void open(std::size_t) override {}
    void close(std::size_t) override {}
    void closed() override {}
    void random(std::span<unsigned char> out) override { std::ranges::fill(out, 1); }
    bool logs(log_level) const override { return true; }
    void log(log_level, std::string_view line) override { lines.emplace_back(line); }
    void acquired(const acquire_call&, const claim&) override {}
    void not_acquired(const acquire_call&) override {}
    void lease_changed(const claim&) override {}
    void lease_lost(const claim&, loss_reason) override {}
    void extended(const claim&, std::optional<errc>) override {}
    void removed(const claim&, release_result) override {}
    void queried(std::uint64_t, lock_status&& found) override {
        statuses.push_back(std::move(found));
    }

    std::vector<std::string> lines;
    std::vector<lock_status> statuses;
};

// The votes that arrive for the claim.
struct votes_noted final : wire_events {
    void answered(claim&, const arrival& at, const answer& got) override {
        said.at(at.master) = got.said;
    }
    void removed(const arrival& at, std::span<const frame::item>) override {
        said.at(at.master) = vote::granted;
    }
    void again(claim&, const arrival&, bool) override { ++repeats; }
    void voters_changed(const admission_change&, time_point) override {}

    std::vector<vote> said = std::vector(3, vote::pending);
    int repeats = 0;
};

struct parts_site : unit::quorum_site {
    parts_site() : quorum_site(3) { bring_up(); }

    /// All masters answer what was sent.
    void talk_all() {
        commands.flush();
        for (std::size_t i = 0; i < masters.size(); ++i) {
            talk(i);
        }
    }
    void disconnect(std::size_t master) { masters.closed(master, "reset", now); }
    circumstances at() { return {now, rules, 2, 3, masters.up(), 5ms, chance}; }
    /// A claim that all masters may grant.
    claim& asking(std::string_view key) {
        claim& made = claims.create();
        const owned_key mine(key, std::string(owned_key::token_size, 't'));
        made.acquire(lock_form::exclusive, mine, {.ttl = 10s}, at());
        made.ask();
        return made;
    }

    reports_noted host;
    votes_noted events;
    timers due;
    pool<claim> claims;
    wire commands{rules, masters, claims, events};
    tools with{rules, masters, commands, due, host};
};

TEST_CASE("queries: each is reported once, when all masters have replied or its time is up") {
    parts_site it;
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
    parts_site it;
    slot_scans scans(it.with, it);
    slot_scan* found = nullptr;
    it.on_reply = [&](const arrival& at, const reply* got) {
        slot_scan* const decided = scans.answered(at, got);
        found = decided != nullptr ? decided : found;
    };
    scans.ask(1, "r", 3, it.now);
    it.talk_all();
    REQUIRE(it.host.statuses.size() == 1);
    CHECK(found == nullptr);

    const slot_scan& mine = scans.start({1, 1}, "p:{r}:slot", 3, 1, it.now);
    it.talk_all();
    REQUIRE(found == &mine);
    CHECK(mine.found.found() == 3);
    CHECK(it.host.statuses.size() == 1);
}

TEST_CASE("replies: each is an answer for a claim, also the one that a broken connection keeps") {
    parts_site it;
    const std::string key = "p:{r}";
    it.servers[1].put(key, "another owner's");
    claim& mine = it.asking(key);
    it.commands.add(mine, command_kind::acquire, 0b111, it.now);
    it.commands.flush();
    it.disconnect(2);
    it.talk_all();
    CHECK(it.events.said == std::vector{vote::granted, vote::held, vote::unreachable});

    mine.remove(0b011, 0b100, it.at());
    it.events.said.assign(3, vote::pending);
    it.commands.remove(mine, 0b011, it.now);
    it.talk_all();
    CHECK(it.events.said[0] == vote::granted);
    it.servers[1].forget_scripts();
    it.commands.remove(mine, 0b010, it.now);
    it.talk_all();
    CHECK(it.events.repeats == 1);
    for (const std::size_t i : {1U, 2U}) { // the acquire of the third may still come
        const steps next = mine.answered(
            {.master = i, .kind = command_kind::remove}, {.said = vote::absent}, it.at());
        CHECK(has(next, steps::later) == (i == 2));
    }
}

TEST_CASE("the fair queue: a ticket is first at once, and none is asked for without an order") {
    parts_site it;
    wait_queues queues(it.masters);
    wait_queue& mine = queues.create(lock_form::exclusive, "p:{r}");
    fair_queue tickets(it.with, it);
    fair_queue::meaning said;
    it.on_reply = [&](const arrival& at, const reply* got) {
        said = tickets.answered(&mine, at, got);
    };
    acquire_options options;
    CHECK(!tickets.ask(mine, options, it.now));
    options.order = fairness::fifo;
    CHECK(tickets.ask(mine, options, it.now));
    it.talk_all();
    CHECK(said.next == fair_queue::meaning::what::come);

    tickets.leave(mine, it.now);
    CHECK(tickets.leaving());
    it.talk_all();
    CHECK(!tickets.leaving());
}

TEST_CASE("the log of the masters: each line names its master and says what happened") {
    parts_site it;
    const master_log log(it.with);
    log.noted(0, "has no EVALSHA");
    log.clock_stepped(1, -1500ms);
    log.clocks_stepped(2);
    log.voter_changed(1, it.now);
    it.disconnect(2);
    log.voter_changed(2, it.now);
    log.members_changed();
    CHECK(
        it.host.lines
        == std::vector<std::string>{
            "m0: has no EVALSHA",
            "m1: its clock was stepped by -1500 ms, or this machine's was",
            "the clocks of 2 masters seem to have been stepped at once: taken for a step of this "
            "machine's clock",
            "m1: admitted",
            "m2: does not vote: reset",
            "members of the quorum, generation 0: "});
    log.publish_refused(0);
    CHECK(it.host.lines.back().starts_with("m0: PUBLISH is refused"));
}

TEST_CASE("a report describes votes, and counts claims by their phase") {
    parts_site it;
    claim& lease = it.asking("p:{r}");
    lease.hold({.stop_margin = {}, .renew = renewal::off}, it.now + 9s, forever, it.at());
    lease.votes.of[1].said = vote::held;
    const auto votes = describe(lease.votes, it.rules, it.masters, it.now);
    REQUIRE(votes.size() == 3);
    CHECK(votes[1].vote == vote::held);
    CHECK(count({}, it.claims, it.rules, it.masters).held == 1);
    CHECK(examine(it.rules, it.masters, true, it.now).ready);
    CHECK(!examine(it.rules, it.masters, false, it.now).ready);
}

}} // namespace parts_test
