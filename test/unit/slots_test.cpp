// The slots of a pool on a virtual clock: what an acquire does with what a scan has found, and
// how a pool stands.

#include "core/engine/slot_scans.hpp"
#include "slot_keys.hpp"

namespace slots_test {

using namespace unit;
namespace core = redlock::core;
using redlock::lock_state;

TEST_CASE("the slots of a pool are taken one each, and then it is full") {
    started_quorum it(3);
    std::set<std::uint32_t> numbers;
    std::vector<answer> held;
    for (int i = 0; i < 5; ++i) {
        held.push_back(it.acquire_slot_now(once(), 5));
        REQUIRE(held.back().won);
        numbers.insert(held.back().slots.at(0));
        for (virtual_master& server : it.masters) {
            CHECK(
                server.value_of(slot_key(held.back().slots.at(0)), it.now()) == held.back().token);
        }
    }
    CHECK(numbers == std::set<std::uint32_t>{0, 1, 2, 3, 4});
    const answer none = it.acquire_slot_now(once(), 5);
    CHECK(none.why == errc::contended);
    CHECK(none.votes == std::vector<vote>(3, vote::held));
    it.release(held[3]);
    const answer again = it.acquire_slot_now(once(), 5);
    REQUIRE(again.won);
    CHECK(again.slots.at(0) == held[3].slots.at(0));
    held[3] = again;
    for (const answer& one : held) {
        it.release(one);
    }
    CHECK(it.idle());
    CHECK(!has_slot_key(it));
}

TEST_CASE("a slot that somebody else took since the scan costs one attempt") {
    started_quorum it(3);
    std::string taken;
    for (virtual_master& server : it.masters) {
        server.when = [&](const arguments& words) {
            if (words[0] == "SET" && taken.empty()) {
                taken = words[1];
                for (virtual_master& each : it.masters) {
                    each.put(taken, "somebody");
                }
            }
            return mishap::none;
        };
    }
    const answer mine = it.acquire_slot_now(once(), 3);
    REQUIRE(mine.won);
    CHECK(mine.attempts == 2);
    CHECK(slot_key(mine.slots.at(0)) != taken);
    CHECK(asked(it, "MGET") == 3);
}

TEST_CASE("without a majority there is no scan") {
    virtual_quorum it(3);
    it.paths[0].reachable = it.paths[1].reachable = false;
    it.start();
    const answer none = it.acquire_slot_now(once(), 3);
    CHECK(none.why == errc::no_quorum);
    CHECK(none.votes[0] == vote::unreachable);
    CHECK(asked(it, "MGET") == 0);
    CHECK(it.engine.count().waiting == 0);
}

TEST_CASE(
    "a master that is silent holds a scan up for its time only, and only if nothing is found") {
    started_quorum it(3);
    it.paths[1].hung = true;
    const time_point began = it.now();
    const answer mine = it.acquire_slot_now(once(), 3);
    REQUIRE(mine.won);
    CHECK(it.now() < began + 100ms);

    virtual_quorum full(3);
    full.start();
    hold(full, 0);
    full.paths[1].hung = true;
    const time_point then = full.now();
    const answer none = full.acquire_slot_now(once(), 1);
    CHECK(none.why == errc::contended);
    CHECK(full.now() == then + 100ms);
    CHECK(none.votes == std::vector<vote>{vote::held, vote::timed_out, vote::held});
}

TEST_CASE("two masters that break during a scan are an outage") {
    started_quorum it(3);
    for (const std::size_t i : {0U, 2U}) {
        it.masters[i].when = [](const arguments& words) {
            return words[0] == "MGET" ? mishap::break_before : mishap::none;
        };
    }
    const answer none = it.acquire_slot_now(once(), 3);
    CHECK(none.why == errc::no_quorum);
    CHECK(none.votes[0] == vote::unreachable);
    CHECK(none.votes[2] == vote::unreachable);
}

TEST_CASE("a manager that is closed ends scans, and waits for slots") {
    started_quorum it(rules_with(3, 0ms, true));
    hold(it, 0);
    const auto waits = it.acquire_slot(waiting(), 1, 1s);
    const auto looks = it.acquire_slot(once(), 2);
    it.engine.query_slots(1, "r", 2, it.now());
    it.close(1s);
    CHECK(it.answered(waits).why == errc::closed);
    CHECK(it.answered(looks).why == errc::closed);
    CHECK(it.pools.size() == 1);
    CHECK(it.closings == 1);
}

TEST_CASE("the status of a pool reports the owner of each slot") {
    started_quorum it(3);
    const answer mine = it.acquire_slot_now(once(), 600);
    it.masters[1].put(slot_key(mine.slots.at(0) == 7 ? 8 : 7), "left over");
    it.paths[2].hung = true;
    it.engine.query_slots(1, "r", 600, it.now());
    REQUIRE(it.run_while_not([&] { return !it.pools.empty(); }));
    const redlock::lock_status& found = it.pools[0];
    CHECK(found.state == lock_state::free);
    CHECK(found.masters.at(0).vote == vote::held);
    CHECK(found.masters.at(2).vote == vote::timed_out);
    CHECK(found.masters.at(2).endpoint == it.engine.rules().names[2]);
    REQUIRE(found.slots.size() == 600);
    CHECK(found.count(lock_state::held) == 1);
    CHECK(found.count(lock_state::undecided) == 1);
    CHECK(found.count(lock_state::free) == 598);
    CHECK(found.slots[mine.slots.at(0)].state == lock_state::held);
    CHECK(found.slots[mine.slots.at(0)].owner_digest.size() == 16);
}

TEST_CASE(
    "the status of a pool asks all connected masters, and only those that vote show a free slot") {
    virtual_quorum it(5);
    it.masters[1].run_id = it.masters[0].run_id; // a duplicate would tell the same twice
    it.masters[2].info_overrides["role"] = "slave";
    it.paths[3].reachable = false;
    it.start();
    hold(it, 1);
    it.engine.query_slots(1, "r", 2, it.now());
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
    hold(it, 0);
    hold(it, 1);
    it.masters[2].drop(slot_key(1));
    const answer none = it.acquire_slot_now(once(), 2);
    CHECK(none.why == errc::contended);
    CHECK(none.ballots.text(0).empty());
    CHECK(none.ballots.text(2) == "1 of 2 slots are free there");
}

} // namespace slots_test
