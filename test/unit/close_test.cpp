#include "waiters.hpp"

namespace close_test {

using namespace unit;
using redlock::core::forever;

TEST_CASE("close tells holders and waiters, and is done when all is let go and answered") {
    started_quorum it(3);
    const answer lock = it.acquire_now(renewed(), "held");
    it.masters[0].put(it.key(), "somebody");
    it.masters[1].put(it.key(), "somebody");
    const std::uint64_t waiting = it.acquire(patient(), 5ms);
    it.extend(lock, 10s);
    const redlock::time_point began = it.now();
    it.close();
    CHECK(it.engine.closing());
    it.close();
    CHECK(it.lost_at(lock) == began);
    CHECK(it.lost_by(lock) == loss_reason::closed);
    CHECK(it.extensions_of(lock) == errors{errc::closed});
    it.release(lock, 20ms);
    CHECK(it.engine.closed_down());
    CHECK(it.closings == 1);
    CHECK(it.answered(waiting).why == errc::closed);
    CHECK(it.removed_as(lock) == release_result::expired);
    CHECK(!it.masters[2].value_of(it.key("held"), it.now()));
    CHECK(!it.masters[2].value_of(it.key(), it.now()));
    CHECK(it.engine.next_due() == forever);
    CHECK(it.engine.count().held == 0);
    CHECK(it.engine.count().waiting == 0);
    for (std::size_t link = 0; link < it.paths.size(); ++link) {
        CHECK(!it.connected(link));
    }
}

TEST_CASE("close is bounded by master_timeout") {
    started_quorum it(3);
    const answer lock = it.acquire_now(once());
    it.paths[0].hung = it.paths[1].hung = true;
    const redlock::time_point began = it.now();
    it.close();
    it.run_until(began + 100ms - 1ns);
    CHECK(!it.engine.closed_down());
    it.run_for(1ns);
    CHECK(it.engine.closed_down());
    CHECK(it.closings == 1);
    CHECK(it.removed_as(lock) == release_result::uncertain);
    CHECK(it.engine.next_due() == forever);
}

TEST_CASE("close ends an acquire in the middle of an attempt and undoes it") {
    started_quorum it(3);
    it.delay_replies(20ms);
    const std::uint64_t name = it.acquire(once(), 5ms);
    it.close(60ms);
    CHECK(it.answered(name).why == errc::closed);
    CHECK(it.engine.closed_down());
    CHECK(!it.has_key());
}

TEST_CASE("close undoes nothing twice of an acquire that pauses") {
    started_quorum it(3);
    it.hold_everywhere();
    for (virtual_master& server : it.masters) {
        server.know(redlock::core::guarded_release);
    }
    const std::uint64_t name = it.acquire(patient(10s));
    it.paths[2].back = 20ms;
    it.run_while_not([&] { return it.masters[0].count("EVAL remove") == 1; });
    it.close(); // the rollback is under way
    it.run_for(200ms);
    CHECK(it.answered(name).why == errc::closed);
    CHECK(it.closings == 1);
    for (const virtual_master& server : it.masters) {
        CHECK(server.count("EVAL") == server.count("SET"));
    }
}

TEST_CASE("a failed acquire completes at the end of the closing at the latest") {
    started_quorum it(3);
    it.paths[2].takes_bytes = false;
    const std::uint64_t name = it.acquire(patient(), 100us);
    it.cancel(name, 10ms);
    it.close();
    CHECK(it.answer_to(name) == nullptr);
    it.engine.cancel({}, it.now() + 1h); // an event that comes before the timers that are due
    CHECK(it.closings == 1);
    CHECK(it.answer_to(name) != nullptr);
}

} // namespace close_test
