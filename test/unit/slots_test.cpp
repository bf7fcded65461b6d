// The slots of a pool on a virtual clock: what an acquire does with what a scan has found, and
// how a pool stands.

#include "core/waiting/slot_search.hpp"
#include "waiters.hpp"

namespace slots_test {

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
    it.hold_everywhere(slot_key(0));
    it.hold_everywhere(slot_key(1));
    it.masters[2].drop(slot_key(1));
    const answer none = it.acquire_slot_now(once(), 2);
    CHECK(none.why == errc::contended);
    CHECK(none.ballots.text(0).empty());
    CHECK(none.ballots.text(2) == "1 of 2 slots are free there");
}

} // namespace slots_test
