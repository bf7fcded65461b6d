// The testing kit's virtual time: an ordinary manager over masters in memory, and a clock that the
// test moves.

#include "support/test.hpp"

#include "virtual_world.hpp"

#include <redlock/testing.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace testing_kit_test { namespace {

using namespace redlock;
using testing::virtual_quorum;

TEST_CASE("virtual time: the same test sees the same moments") {
    const auto run = [] {
        virtual_quorum quorum(5);
        lock held;
        std::optional<std::pair<time_point, loss_reason>> lost;
        quorum.manager().async_acquire(
            "r", {.ttl = 3s}, [&](error_code, lock taken) { held = std::move(taken); });
        REQUIRE(quorum.advance_until([&] { return held.held(); }));
        quorum.master(1).hang();
        quorum.master(2).kill();
        quorum.advance(20s);
        quorum.occupy("r", 10s);
        held.async_wait_lost([&](error_code, loss_reason why) { lost.emplace(quorum.now(), why); });
        REQUIRE(quorum.advance_until([&] { return lost.has_value(); }));
        return *lost;
    };
    CHECK(run() == run());
}

TEST_CASE("readiness completes between local handoffs that follow each other") {
    virtual_quorum quorum;
    int left = 100;
    bool ready = false;
    std::function<void(lock)> pass_on = [&](lock mine) {
        if (ready || left-- == 0) {
            return;
        }
        quorum.manager().async_acquire(
            "r", [&](error_code, lock next) { pass_on(std::move(next)); });
        mine = {};
        if (left == 90) {
            quorum.manager().async_ready([&](error_code error) { ready = !error; });
        }
    };
    quorum.manager().async_acquire("r", [&](error_code, lock first) { pass_on(std::move(first)); });
    quorum.advance(1s);
    CHECK(ready);
    CHECK(left > 0);
}

TEST_CASE("virtual time: a master that may have forgotten does not vote") {
    virtual_quorum quorum;
    const auto admitted = [&] { return quorum.manager().get_health().admitted; };
    CHECK(admitted() == 3);
    for (const bool empty : {false, true}) {
        empty ? quorum.master(0).restart_empty() : quorum.master(0).restart();
        quorum.advance(3s);
        CHECK(admitted() == 2);
        quorum.advance(1min);
        CHECK(admitted() == 3);
    }
    quorum.master(1).cut();
    quorum.advance(0s);
    CHECK(admitted() == 2);
    quorum.advance(3s);
    CHECK(admitted() == 3);
}

TEST_CASE("a waiter that is notified goes on in the same turn, without a timer") {
    testing::virtual_world world(3, {});
    lock_manager& mine = world.add_manager();
    lock_manager& other = world.add_manager();
    const auto until = [&](const std::function<bool()>& done) {
        return world.run_until(world.now() + 5s, done);
    };
    lock held;
    std::vector<lock> next; // one waits in this process, the other in another one
    mine.async_acquire("r", [&](error_code, lock taken) { held = std::move(taken); });
    REQUIRE(until([&] { return held.held(); }));
    const auto wait = [&](lock_manager& by) {
        by.async_acquire("r", [&](error_code, lock taken) { next.push_back(std::move(taken)); });
    };
    wait(other);
    wait(mine);
    until([] { return false; }); // the other process has subscribed
    world.late_wakes = 0;
    held = {};
    REQUIRE(until([&] { return next.size() == 1; }));
    next.clear();
    REQUIRE(until([&] { return next.size() == 1; }));
    CHECK(world.late_wakes == 0);
}

TEST_CASE("virtual time: a sleep ends at its moment, or when it is cancelled") {
    virtual_quorum quorum;
    std::optional<error_code> first;
    std::optional<error_code> second;
    boost::asio::cancellation_signal cancel;
    quorum.async_sleep(5s, [&](error_code error) { first = error; });
    quorum.async_sleep(
        5s, boost::asio::bind_cancellation_slot(cancel.slot(), [&](error_code error) {
            second = error;
        }));
    quorum.advance(5s - 1ns);
    CHECK(!first);
    cancel.emit(boost::asio::cancellation_type::terminal);
    quorum.advance(0s);
    CHECK(second == boost::asio::error::operation_aborted);
    quorum.advance(1ns);
    CHECK(first == error_code());
}

TEST_CASE("virtual time: a quorum that ends destroys the sleeps in it") {
    const auto alive = std::make_shared<int>();
    {
        virtual_quorum quorum;
        boost::asio::co_spawn(
            boost::asio::make_strand(quorum.context()),
            [&quorum, alive]() -> boost::asio::awaitable<void> {
                co_await quorum.async_sleep(1h, boost::asio::use_awaitable);
            },
            boost::asio::detached);
        quorum.advance(1s);
        CHECK(alive.use_count() > 1);
    }
    CHECK(alive.use_count() == 1);
}

TEST_CASE("a quorum in memory has 1 to 32 masters") {
    CHECK(virtual_quorum(32).size() == 32);
    CHECK_THROWS_AS(virtual_quorum(0), std::invalid_argument);
    CHECK_THROWS_AS(virtual_quorum(33), std::invalid_argument);
    CHECK_THROWS_AS(virtual_quorum(1).master(0).command({}), std::runtime_error);
}

TEST_CASE("virtual time: time is not moved on from inside a handler") {
    virtual_quorum quorum;
    bool refused = false;
    quorum.async_sleep(1s, [&](error_code) {
        try {
            quorum.advance(1s);
        } catch (const std::logic_error&) {
            refused = true;
        }
    });
    quorum.advance(2s);
    CHECK(refused);
}

TEST_CASE("virtual time: no command overtakes another when a master answers sooner") {
    virtual_quorum quorum(1);
    lock_manager& manager = quorum.manager();
    const acquire_options options{.wait = wait_for::none()};
    std::vector<lock> held(2);
    const auto ask = [&](std::size_t which) {
        manager.async_acquire("r", options, [&, which](error_code error, lock taken) {
            CHECK(!error == (which == 0));
            held[which] = std::move(taken);
        });
        quorum.advance(1ms);
    };
    quorum.answer_after(0, 60ms);
    ask(0);
    quorum.answer_after(0, 1ms);
    ask(1);
    quorum.advance(1s);
    CHECK(held[0].held());
    CHECK(!held[1].valid());
    CHECK(quorum.master(0).command({"GET", "redlock:{r}"}) == held[0].secret());
}

TEST_CASE("virtual time: a blocking call that nothing would end says so") {
    virtual_quorum quorum(1);
    blocking::manager manager = quorum.make_blocking_manager();
    blocking::lock mine = manager.acquire("r");
    CHECK_THROWS_AS(manager.acquire("r", {.wait = wait_for::forever()}), std::logic_error);
    CHECK(mine.held());
}

}} // namespace testing_kit_test
