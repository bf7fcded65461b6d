// Waiting on a virtual clock: which waiter of a queue is next, and what is handed off.

#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace waiting_test { namespace {

using namespace unit;
namespace core = redlock::core;

TEST_CASE("a local handoff sends nothing to the masters, and the lease stays whole") {
    started_quorum it(rules_with(3, 1h, false));
    std::vector<std::uint64_t> names;
    for (int i = 0; i < 100; ++i) {
        names.push_back(it.acquire(waiting()));
    }
    it.run_for(10ms);
    const std::size_t before = it.asked();
    for (std::size_t i = 0; i < 99; ++i) {
        it.release(it.answered(names[i]));
        CHECK(it.answered(names[i + 1]).deadline == it.answered(names[0]).deadline);
        CHECK(it.answered(names[i + 1]).token == it.answered(names[0]).token);
        CHECK(it.removed_as(it.answered(names[i])) == release_result::released);
    }
    CHECK(it.asked() == before);
    CHECK(it.masters[0].count("EVAL") == 0);
    CHECK(it.engine.count().local_handoffs == 99);
    it.release(it.answered(names[99]));
    CHECK(it.idle());
    CHECK(!it.has_key());
}

TEST_CASE("a lease that is handed off all the time is renewed all the same") {
    started_quorum it(rules_with(3, 1h, false));
    std::uint64_t holder = it.acquire(waiting(), 5ms);
    for (int i = 0; i < 30'000; ++i) {
        const std::uint64_t next = it.acquire(waiting());
        it.release(it.answered(holder));
        REQUIRE(it.answered(next).won);
        REQUIRE(it.answered(next).deadline > it.now() + 5s);
        holder = next;
        it.run_for(1ms);
    }
    CHECK(it.engine.count().local_handoffs == 30'000);
    CHECK(it.engine.count().lost.total() == 0);
    CHECK(it.engine.count().renewed >= 9);
    CHECK(it.engine.count().renewed <= 15);
}

TEST_CASE(
    "hand-offs last for eight round trips, if that is longer, and begin anew after a release") {
    started_quorum it(rules_with(3, 1ms, false));
    std::uint64_t holder = it.acquire(waiting(), 10ms);
    for (const std::uint64_t handed_off : {8U, 16U}) { // a round trip takes 1 ms
        std::uint64_t next = it.acquire(waiting());
        for (int i = 0; i < 8; ++i, next = it.acquire(waiting())) {
            it.release(it.answered(holder));
            REQUIRE(it.answer_to(next) != nullptr);
            holder = next;
            it.run_for(1ms);
        }
        CHECK(it.engine.count().local_handoffs == handed_off);
        it.release(it.answered(holder));
        CHECK(it.answer_to(next) == nullptr);
        it.awaited(next);
        holder = next;
    }
    CHECK(it.engine.count().local_handoffs == 16);
}

TEST_CASE("a grant of before the handoff lasts for the ttl that it was asked with") {
    started_quorum it(rules_with(3, 1h, false));
    it.paths[2].back = 30ms;
    const redlock::time_point began = it.now();
    const answer first = it.acquire_now(once());
    acquire_options wants = waiting();
    wants.ttl = 15s;
    const std::uint64_t second = it.acquire(wants);
    it.cut_off(1);
    it.paths[2].there = 1h; // only one master extends it
    it.release(first);
    const answer held = it.answered(second);
    it.run_for(50ms); // master 2 says that it has granted it to the first
    it.extend(held, 15s, 20s);
    REQUIRE(it.lost_at(held));
    CHECK(it.lost_at(held) <= began + usable(10s)); // from then on the others may grant it
}

TEST_CASE("the next of a queue has the lock soon after it is free, however the lease left") {
    const bool pushes = GENERATE(false, true);
    started_quorum it(rules_with(3, 1h, pushes));
    // Both begin at once: the second is queued after the first, and has never asked.
    const std::uint64_t first = it.acquire(waiting());
    const std::uint64_t second = it.acquire(waiting(), 100ms);
    const answer holder = it.answered(first);
    REQUIRE(it.engine.count().subscriptions == 0);
    const auto follows = [&](redlock::time_point freed, milliseconds within) {
        CHECK(it.awaited(second).won);
        CHECK(it.now() < freed + within);
    };
    const milliseconds soon = pushes ? 20ms : 2s;
    // The process that was given the token releases the lock.
    const auto released_elsewhere = [&] {
        it.free_everywhere();
        if (pushes) {
            it.push_everywhere(channel, holder.token.substr(0, core::release_name_size));
        }
        follows(it.now(), soon);
    };
    SECTION("it is abandoned, and released elsewhere") {
        it.engine.abandon(holder.lease);
        it.run_for(GENERATE(as<milliseconds>{}, 10ms, 3s));
        released_elsewhere();
    }
    SECTION("it is abandoned, and expires") {
        it.engine.abandon(holder.lease);
        follows(holder.deadline + (10s - usable(10s)), 200ms);
    }
    SECTION("it is released elsewhere, and this process still believes that it has the lock") {
        it.run_for(2s); // the front has polled, and is subscribed
        released_elsewhere();
    }
    SECTION("it is lost, and the keys go later") {
        it.engine.extend(holder.lease, 10s, it.now());
        it.free_everywhere();
        it.run_for(5ms);
        REQUIRE(it.lost_at(holder));
        follows(it.now(), soon);
    }
}

TEST_CASE("a process that releases a lock for which others wait lets them go first") {
    const bool waits = GENERATE(true, false);
    started_quorum it(rules_with(3, 1ms, true));
    const acquire_options again = waits ? waiting() : once();
    // A waiter in another process listens.
    it.each([](virtual_master& server) { server.tell = [](auto, auto) { return 1; }; });
    const answer mine = it.acquire_now(again);
    it.release(mine, 1ms); // a round trip, so that the count is known
    const std::size_t before = it.asked();
    const redlock::time_point released = it.now();
    const std::uint64_t next = it.acquire(again);
    SECTION("they take it") {
        it.run_for(1ms);
        it.hold_everywhere();
        it.run_for(50ms);
        CHECK((it.answer_to(next) == nullptr) == waits);
        CHECK((waits || it.answered(next).why == errc::contended));
    }
    SECTION("they do not, and it waits for a moment only") {
        it.run_for(1ms);
        CHECK(it.asked() == before);
        CHECK(it.awaited(next).won);
        CHECK(it.now() < released + 20ms);
    }
    SECTION("it is notified of its own release, and that of another ends the pause") {
        it.run_for(1ms); // it is subscribed
        const auto announced = [&](std::string_view release) {
            it.push_everywhere(channel, release);
            it.run_for(1ms);
            return it.asked() > before;
        };
        CHECK(!announced(mine.token.substr(0, core::release_name_size)));
        CHECK(announced("0123456789abcdef") == waits);
    }
}

TEST_CASE("only the arbiter tells that no other process waits for a lock") {
    std::size_t yields = 0;
    for (const std::size_t first : {0U, 1U, 2U}) {
        started_quorum it(rules_with(3, 1ms, true));
        it.masters[first].tell = [](auto, auto) { return 1; };
        it.delay_replies(2ms);
        it.paths[first].back = 1ms;
        it.release(it.acquire_now(once()), 3ms);
        const std::size_t before = it.asked();
        it.acquire(once(), 1ns);
        yields += it.asked() == before ? 1U : 0U;
    }
    CHECK(yields == 1);
}

TEST_CASE("a process that takes turns with another one hears of each release") {
    started_quorum it(rules_with(3, 1ms, true));
    // One of those that listen is the process itself.
    it.each([](virtual_master& server) { server.tell = [](auto, auto) { return 2; }; });
    it.release(it.acquire_now(waiting()), 1ms);
    const answer mine = it.awaited(it.acquire(waiting()));
    REQUIRE(it.engine.count().subscriptions == 1);
    SECTION("it asks again at once, and has missed nothing") {
        it.release(mine, 1ms);
        const std::size_t before = it.asked();
        const std::uint64_t next = it.acquire(waiting());
        it.push_everywhere(channel, "0123456789abcdef");
        it.run_for(1ms);
        CHECK(it.asked() > before);
        CHECK(it.awaited(next).won);
        it.run_for(1s); // longer than it would have let others go first
        CHECK(it.asked("SUBSCRIBE") == 3);
        CHECK(it.asked("UNSUBSCRIBE") == 0);
    }
    SECTION("it gives up while it lets the others go first") {
        it.release(mine, 1ms);
        const std::uint64_t next = it.acquire(waiting(1ms), 50ms);
        CHECK(it.answered(next).why == errc::wait_timed_out); // it has not asked since
        CHECK(it.engine.count().subscriptions == 0);
    }
    SECTION("it does not, and lets go of the channel") {
        if (GENERATE(true, false)) {
            it.release(mine);
        } else {
            it.engine.abandon(mine.lease);
        }
        it.run_for(50ms);
        CHECK(it.engine.count().subscriptions == 0);
        CHECK(it.asked("UNSUBSCRIBE") == 3);
    }
}

TEST_CASE("an acquire that lets others go first is refused once, whatever its own release tells") {
    redlock::core::settings rules = rules_with(3, 0ms, true);
    rules.retry_delay_min = 20ms;
    rules.retry_delay_max = 1h;
    started_quorum it(rules);
    it.each([](virtual_master& server) { server.tell = [](auto, auto) { return 1; }; });
    it.release(it.take(once()), 2ms);
    it.hold_everywhere();
    const std::size_t before = it.asked();
    it.acquire(waiting(), 55ms);
    CHECK(it.asked() == before + 1);
}

TEST_CASE("a waiter whose votes were split is subscribed, so that others let it go first") {
    started_quorum it(rules_with(3, 1ms, true));
    it.masters[1].put("p:{r}", "another");
    it.masters[2].put("p:{r}", "another");
    it.acquire(waiting(), 2ms);
    CHECK(it.asked() == 4); // its subscription counts as a notification of the arbiter
    CHECK(it.engine.count().subscriptions == 1);
}

TEST_CASE("a wait for contention goes on while others hold the lock, and ends in an outage") {
    const bool here = GENERATE(false, true); // the holder is in this process
    started_quorum it(rules_with(3, 1h, false));
    std::optional<answer> holder;
    if (here) {
        holder = it.acquire_now(renewed());
    } else {
        it.hold_everywhere();
    }
    const auto wait = redlock::wait_for::contention(1s);
    const std::uint64_t first = it.acquire(waiting(wait));
    const std::uint64_t second = it.acquire(waiting(wait));
    it.run_for(20s);
    CHECK(it.logged("waiting for a quorum") == 0);
    CHECK(it.answer_to(first) == nullptr);
    CHECK(it.answer_to(second) == nullptr);
    SECTION("a release") {
        here ? it.release(*holder) : it.free_everywhere();
        CHECK(it.awaited(first).won);
        it.run_for(5s);
        CHECK(it.answer_to(second) == nullptr);
        it.release(it.answered(first));
        CHECK(it.awaited(second).won);
    }
    SECTION("an outage") {
        const redlock::time_point began = it.now();
        it.cut_off(0);
        it.cut_off(1);
        it.run_for(15s); // a lease that was held here is lost
        for (const std::uint64_t one : {first, second}) {
            REQUIRE(it.answer_to(one) != nullptr);
            CHECK(it.answered(one).why == errc::no_quorum);
            CHECK(it.answered(one).at >= began);
        }
    }
    SECTION("none") {
        const std::uint64_t once =
            it.acquire(waiting(redlock::wait_for::contention(redlock::wait_for::none())));
        it.run_for(1s);
        CHECK(it.answered(once).why == errc::contended);
    }
}

TEST_CASE("that more wait than the limit is reported when it happens") {
    core::settings rules = rules_with(3, 0ms, true);
    rules.contention_warning = 2;
    started_quorum it(rules);
    it.hold_everywhere();
    it.acquire(waiting());
    it.acquire(waiting());
    CHECK(it.contentions.empty());
    it.acquire(waiting());
    it.acquire(waiting());
    CHECK(it.contentions == std::vector<std::pair<std::string, std::size_t>>{{"p:{r}", 3}});
}

}} // namespace waiting_test
