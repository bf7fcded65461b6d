// The promise to a waiter: with a majority admitted, and without an order of arrival, an attempt on
// all masters begins within 2 s while the lock is free, whatever became of the notifications.

#include "core/base/backoff.hpp"
#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

namespace polling_test { namespace {

using namespace unit;
namespace core = redlock::core;

// For an hour somebody has the locks `r` and `r2`, the pool `r` of two slots, and locks of other
// names.
struct held_quorum : started_quorum {
    explicit held_quorum(std::size_t count, const std::vector<std::string>& others = {})
        : started_quorum(guarded(rules_for(count))) {
        for (const std::string& name : others) {
            held.push_back(key(name));
        }
        for (virtual_master& server : masters) {
            for (const std::string& one : held) {
                server.put(one, "somebody", now() + 1h);
            }
        }
    }

    // A connection that is lost stays so.
    static core::settings rules_for(std::size_t count) {
        core::settings rules = rules_with(count, 0ms, true);
        rules.reconnect_delay_min = rules.reconnect_delay_max = 1h;
        return rules;
    }

    // Everywhere but on that master.
    void release(std::size_t except = core::nobody) {
        for (const std::string& one : held) {
            for (std::size_t i = 0; i < masters.size(); ++i) {
                if (i != except) {
                    masters[i].drop(one);
                }
            }
        }
    }

    // How long after now the waiter has the lock.
    nanoseconds time_to_win(std::uint64_t waiter) {
        const redlock::time_point began = now();
        REQUIRE(awaited(waiter).won);
        return answered(waiter).at - began;
    }

    // The master that is asked first.
    std::size_t arbiter() {
        each([](virtual_master& server) { server.seen.clear(); });
        REQUIRE(run_while_not([&] { return asked() > 0; }));
        const auto first = std::ranges::find_if(
            masters, [](const virtual_master& server) { return server.count("SET") > 0; });
        return static_cast<std::size_t>(first - masters.begin());
    }

    std::vector<std::string> held{key(), key("r2"), slot_key(0), slot_key(1)};
};

// The moments of a release, against a poll that comes each second or two.
const std::array<milliseconds, 12> moments{
    0ms, 50ms, 170ms, 290ms, 410ms, 600ms, 750ms, 900ms, 1'100ms, 1'400ms, 1'700ms, 1'950ms};

TEST_CASE("a free lock, or slot, is found within 2 s though nobody tells of it") {
    const milliseconds moment = GENERATE(from_range(moments));
    using enum core::lock_form;
    const auto form =
        GENERATE(as<std::optional<core::lock_form>>{}, exclusive, all, shared, std::nullopt);
    const std::size_t masters = GENERATE(1U, 3U, 5U);
    held_quorum q(masters);
    const std::uint64_t waiter =
        form ? q.acquire_form(*form, waiting(), "r") : q.acquire_slot(waiting(), 2);
    q.run_for(3s + moment);
    REQUIRE(q.answer_to(waiter) == nullptr);
    REQUIRE(q.engine.count().notification_connections == masters);
    q.release();
    CHECK(q.time_to_win(waiter) < 2s);
}

TEST_CASE("a free lock is found within 2 s though the master that is asked first denies it") {
    const milliseconds moment = GENERATE(from_range(moments));
    const std::size_t masters = GENERATE(3U, 5U);
    held_quorum q(masters);
    const std::uint64_t waiter = q.acquire(waiting(), 500ms); // all of them were asked
    const std::size_t first = q.arbiter();
    q.run_for(3s + moment);
    REQUIRE(q.answer_to(waiter) == nullptr);
    q.release(first);
    SECTION("and nothing else happens") {
        CHECK(q.time_to_win(waiter) < 2s);
    }
    SECTION("and notifications of others ask it again and again") {
        for (int i = 0; i < 300; ++i) {
            q.at(q.now() + i * 7ms, [&q, first, masters, i] {
                q.push((first + 1) % masters, channel, "release-" + std::to_string(i));
            });
        }
        CHECK(q.time_to_win(waiter) < 2s);
    }
}

TEST_CASE("a lock that is held costs a waiter little") {
    held_quorum q(5);
    q.acquire(waiting(), 1s);
    const std::size_t before = q.asked();
    q.run_for(100s);
    // All five every 1.4 to 1.95 s, and in between one alone.
    CHECK(q.asked() - before <= 100 * 10 / 14 * 6);
    CHECK(q.asked() - before >= 100 * 10 / 20 * 6 - 6);
}

TEST_CASE(
    "waiters of a lock that this process holds poll as well, as it may be released elsewhere") {
    held_quorum q(3);
    q.release();
    const std::uint64_t first = q.acquire(waiting());
    const std::uint64_t next = q.acquire(waiting(), 1s);
    REQUIRE(q.answer_to(first) != nullptr);
    const std::size_t before = q.asked();
    q.run_for(60s);
    CHECK(q.answer_to(next) == nullptr);
    CHECK(q.asked() - before >= 3 * 30);
    CHECK(q.asked() - before <= 3 * 60); // half of them ask the arbiter alone
}

TEST_CASE("a waiter whose notifications end begins to poll") {
    held_quorum q(3);
    const std::uint64_t waiter = q.acquire(waiting(), 1'500ms);
    const std::size_t before = q.asked();
    SECTION("those of a minority do not matter") {
        q.cut_off(3, 300ms);
        CHECK(q.asked() - before <= 4);
    }
    SECTION("those of a majority do") {
        REQUIRE(q.run_while_not([&] { return q.asked() >= before + 3; }));
        q.run_for(150ms); // all were polled, and neither a poll nor another timer is near
        q.cut_off(3);
        q.cut_off(4);
        q.run_for(1s);
        CHECK(q.asked() - before >= 3 + 12);
        q.release();
        CHECK(q.time_to_win(waiter) <= 450ms); // retry_delay_max, twice
    }
    SECTION("even if the connections are there and silent") {
        q.paths[3].hung = q.paths[4].hung = true;
        // Only the health check finds out, which these settings hardly have.
        q.release();
        CHECK(q.time_to_win(waiter) < 2s);
    }
}

TEST_CASE(
    "a waiter where releases are announced already may have missed one, and asks again soon") {
    const std::vector<std::string> names{"a", "b", "c", "d", "e", "f", "g", "h"};
    held_quorum q(3, names);
    for (const std::string& name : names) {
        q.engine.listen(name, q.now());
    }
    q.run_for(50ms);
    for (const std::string& name : names) {
        q.acquire(waiting(), name);
    }
    q.run_for(1ms);
    CHECK(q.asked() == 8 * 3);
    q.run_for(2'200us);
    CHECK(q.asked() < 8 * 4); // not all at once
    q.run_for(7ms);
    CHECK(q.asked() == 8 * 4);
    q.run_for(500ms);
    CHECK(q.asked() == 8 * 4);
}

TEST_CASE("a waiter for several resources subscribes to each, and to nothing else") {
    held_quorum q(3);
    q.acquire_form(core::lock_form::all, waiting(), "r");
    q.run_for(50ms);
    for (const virtual_master& server : q.masters) {
        CHECK(server.count("SUBSCRIBE p:{r}:free") == 1);
        CHECK(server.count("SUBSCRIBE p:{r2}:free") == 1);
        CHECK(server.count("SUBSCRIBE") == 2);
    }
}

}} // namespace polling_test
