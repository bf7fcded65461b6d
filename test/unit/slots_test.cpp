// The slots of a pool on a virtual clock: what an acquire does with what a scan has found, how a
// pool stands, and waiting for any slot.

#include "core/waiting/slot_search.hpp"
#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace slots_test { namespace {

using namespace unit;
namespace core = redlock::core;
using redlock::lock_state;

TEST_CASE("a slot that somebody else took since the scan costs one attempt") {
    started_quorum it(3);
    std::string taken;
    for (virtual_master& server : it.masters) {
        server.when = [&](const arguments& words) {
            if (words[0] == "SET" && taken.empty()) {
                taken = words[1];
                it.hold_everywhere(taken);
            }
            return mishap::none;
        };
    }
    const answer mine = it.acquire_slot_now(once(), 3);
    REQUIRE(mine.won);
    CHECK(mine.attempts == 2);
    CHECK(slot_key(mine.slots.at(0)) != taken);
    CHECK(it.asked("MGET") == 3);
}

TEST_CASE("without a majority there is no scan") {
    virtual_quorum it(3);
    it.paths[0].reachable = it.paths[1].reachable = false;
    it.start();
    const answer none = it.acquire_slot_now(once(), 3);
    CHECK(none.why == errc::no_quorum);
    CHECK(none.votes[0] == vote::unreachable);
    CHECK(it.asked("MGET") == 0);
    CHECK(it.engine.count().waiting == 0);
}

TEST_CASE("after an attempt without a majority a pool is searched again") {
    started_quorum it(3);
    it.masters[0].replies["SET"] = it.masters[1].replies["SET"] = "-OOM command not allowed\r\n";
    it.acquire_slot(waiting(), 3, 1s);
    CHECK(it.asked("SET") > 9);
    CHECK(it.asked("MGET") == it.asked("SET"));
}

TEST_CASE(
    "a master that is silent holds a scan up for its time only, and only if nothing is found") {
    started_quorum it(3);
    it.paths[1].hung = true;
    const time_point began = it.now();
    const answer mine = it.acquire_slot_now(once(), 3);
    REQUIRE(mine.won);
    CHECK(it.now() < began + 100ms);

    started_quorum full(3);
    full.hold_everywhere(slot_key(0));
    full.paths[1].hung = true;
    const time_point then = full.now();
    const answer none = full.acquire_slot_now(once(), 1);
    CHECK(none.why == errc::contended);
    CHECK(full.now() == then + 100ms);
    CHECK(none.votes == std::vector<vote>{vote::held, vote::timed_out, vote::held});
}

TEST_CASE(
    "the status of a pool asks all connected masters, and only those that vote show a free slot") {
    virtual_quorum it(5);
    it.masters[1].run_id = it.masters[0].run_id; // a duplicate would tell the same twice
    it.masters[2].info_overrides["role"] = "slave";
    it.paths[3].reachable = false;
    it.start();
    it.hold_everywhere(slot_key(1));
    it.engine.query(1, "r", 2, it.now());
    REQUIRE(it.run_while_not([&] { return it.pools.size() == 1; }));
    const std::array said{vote::held, vote::duplicate, vote::held, vote::unreachable, vote::held};
    for (std::size_t i = 0; i < said.size(); ++i) {
        CHECK(it.pools[0].masters.at(i).vote == said[i]);
    }
    CHECK(it.pools[0].slots.at(0).state == lock_state::undecided);
    CHECK(it.pools[0].slots.at(1).state == lock_state::held);
}

TEST_CASE("an acquire that finds a pool full learns where slots are free, though too few are") {
    started_quorum it(3);
    it.hold_everywhere(slot_key(0));
    it.hold_everywhere(slot_key(1));
    it.masters[2].drop(slot_key(1));
    const answer none = it.acquire_slot_now(once(), 2);
    CHECK(none.why == errc::contended);
    CHECK(none.ballots.text(0).empty());
    CHECK(none.ballots.text(2) == "1 of 2 slots are free there");
}

// The slots whose removal notifies the pool's waiters.
std::set<std::string> told_free(const virtual_quorum& it) {
    std::set<std::string> out;
    for (const virtual_master& server : it.masters) {
        std::string removed; // the removal before: its key, a ttl and the token
        for (const std::string& line : server.seen) {
            const std::size_t key = line.find("p:{r}:slot:");
            if (line.find(" remove 1 ") != line.npos) {
                removed = line.substr(key);
            } else if (line.starts_with("PUBLISH p:{r}:slot:free ")) {
                CHECK(removed.find(line.substr(24)) != removed.npos);
                out.insert(removed.substr(0, removed.find(' ')));
            }
        }
    }
    return out;
}

TEST_CASE("the release of any slot wakes a waiter for one") {
    started_quorum it(rules_without_polling(3));
    for (std::uint32_t i = 0; i < 4; ++i) {
        it.hold_everywhere(slot_key(i));
    }
    const auto name = it.acquire_slot(waiting(), 4, 1s);
    CHECK(it.asked("SET") == 0);
    CHECK(!it.has_sent_nothing(name)); // it has searched
    const std::size_t scans = it.asked("MGET");
    CHECK(scans <= 3 * 3); // at first, and when the subscriptions were confirmed
    it.run_for(100s);
    CHECK(it.asked("MGET") == scans);
    it.free_everywhere(slot_key(2));
    it.push_everywhere("p:{r}:slot:free", "one");
    CHECK(it.awaited(name).slots.at(0) == 2);
    it.release(it.answered(name));
    CHECK(it.idle());
    CHECK(it.asked("UNSUBSCRIBE p:{r}:slot:free") == 3);
}

TEST_CASE("a slot that is handed off costs the masters nothing") {
    started_quorum it(rules_without_polling(3, 1h));
    answer mine = it.acquire_slot_now(waiting(), 1);
    std::vector<std::uint64_t> names;
    for (int i = 0; i < 5; ++i) {
        names.push_back(it.acquire_slot(waiting(), 1));
    }
    it.run_for(1s);
    const std::size_t scans = it.asked("MGET");
    for (const auto name : names) {
        it.release(mine, 10ms);
        mine = it.answered(name);
    }
    CHECK(it.asked("MGET") == scans);
    CHECK(it.asked("SET") == 3);
}

TEST_CASE("a slot that a handoff has made needless is announced to other processes") {
    started_quorum it(rules_without_polling(3, 1h));
    const answer mine = it.acquire_slot_now(waiting(), 2);
    const std::uint32_t other = 1 - mine.slots.at(0);
    it.hold_everywhere(slot_key(other));
    const auto name = it.acquire_slot(waiting(), 2, 1s);
    it.free_everywhere(slot_key(other));
    it.push_everywhere("p:{r}:slot:free", "one");
    // The masters have given it the other slot, and it has not heard of that.
    REQUIRE(it.run_while_not([&] { return it.asked("SET " + slot_key(other)) == 3; }, 1s));
    REQUIRE(it.answer_to(name) == nullptr);
    it.release(mine);
    CHECK(it.answered(name).slots == mine.slots);
    it.run_for(10ms);
    CHECK(told_free(it) == std::set<std::string>{slot_key(other)});
}

TEST_CASE("an acquire that had a part of a slot, and looks for another, notifies other processes") {
    const bool has_part = GENERATE(true, false);
    started_quorum it(rules_without_polling(3));
    std::map<std::string, std::size_t> firsts; // its voters; elsewhere a thief was faster
    for (std::size_t i = 0; i < 3; ++i) {
        it.masters[i].when = [&, i](const arguments& words) {
            if (words[0] == "SET"
                && (firsts.emplace(words[1], i).first->second != i || !has_part)) {
                it.masters[i].put(words[1], "thief");
            }
            return mishap::none;
        };
    }
    const auto name = it.acquire_slot(waiting(), core::slot_search::tries_max, 1s);
    CHECK(it.answer_to(name) == nullptr);
    CHECK(firsts.size() == core::slot_search::tries_max);
    // Of the first, one vote was open. The arbiter alone has refused the others.
    CHECK(told_free(it).size() == (has_part ? core::slot_search::tries_max : 1));
}

TEST_CASE("a lock that is named like a pool's slot is not handed off as a slot") {
    core::settings rules = rules_with(3, 1h, true);
    rules.key_prefix.clear();
    started_quorum it(rules);
    const answer mine = it.acquire_now(waiting(), "{r}:slot");
    it.hold_everywhere("{r}:slot:0");
    const auto other = it.acquire_slot(waiting(), 1, 50ms);
    it.release(mine, 5s);
    CHECK(it.answer_to(other) == nullptr);
}

}} // namespace slots_test
