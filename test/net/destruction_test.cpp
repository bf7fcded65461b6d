// Things may be destroyed in any order, with operations outstanding: nothing leaks, nothing is
// touched afterwards. Run these with the address and leak sanitizers. A context that is destroyed
// during an operation: operations_test.cpp.
#include "quorum.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace redlock::test { namespace {

// The context goes before the test's own objects.
void end(quorum& q) {
    q.manager.reset();
    q.context.reset();
}

TEST_CASE("a context that is destroyed destroys handlers that own the lock they wait for") {
    const auto sentinel = std::make_shared<int>(1);
    {
        started_quorum q;
        const auto owner = [&](const std::string& resource) {
            return std::make_shared<std::pair<lock, std::shared_ptr<int>>>(
                q.acquired(resource), sentinel);
        };
        const auto releasing = owner("a");
        const auto extending = owner("b");
        const auto watching = owner("c");
        q.when("*", fake_action::hang());
        releasing->first.async_release([releasing](error_code, release_result) {});
        extending->first.async_extend(25s, [extending](error_code, extend_result) {});
        watching->first.async_wait_lost([watching](error_code, loss_reason) {});
        q.poll();
        q.manager.reset();
        SECTION("at once") {}
        SECTION("after it has run the end of the manager") {
            q.poll();
        }
        end(q);
    }
    CHECK(sentinel.use_count() == 1);
}

TEST_CASE("a context that is destroyed destroys the handlers of run, ready and close") {
    const auto sentinel = std::make_shared<int>(1);
    quorum q;
    const auto handler = [sentinel](error_code) {};
    q.when("*", fake_action::hang());
    q.manager->async_run(handler);
    q.manager->async_ready(handler);
    q.poll();
    SECTION("while it connects") {}
    SECTION("while it closes") {
        q.manager->async_close(handler);
    }
    end(q);
    CHECK(sentinel.use_count() == 2); // the handler here has one
}

TEST_CASE("a context that is destroyed destroys scopes and their work") {
    const auto sentinel = std::make_shared<int>(1);
    bool resting = false;
    started_quorum q;
    std::size_t working = 0;
    std::size_t ended = 0; // and their coroutines wait for more work
    const auto together = [&working](lock&) -> asio::awaitable<void> {
        ++working;
        while (working < 2) {
            co_await asio::post(asio::use_awaitable);
        }
    };
    for (const char* resource : {"a", "b"}) {
        async_with_lock(
            *q.manager, resource, patiently(), together, [&ended](std::exception_ptr) { ++ended; });
    }
    SECTION("the first") {}
    SECTION("later ones") {
        q.run_until([&] { return ended == 2; });
    }
    async_with_lock(
        *q.manager,
        "r",
        patiently(),
        [&resting, mine = sentinel](lock&) -> asio::awaitable<void> {
            asio::steady_timer never(co_await asio::this_coro::executor, 1h);
            resting = true;
            co_await never.async_wait(asio::use_awaitable);
        },
        [mine = sentinel](std::exception_ptr) {});
    q.run_until([&] { return resting; });
    end(q);
    CHECK(sentinel.use_count() == 1);
}

TEST_CASE("a lock that was granted but not delivered dies with its context") {
    asio::io_context never_run;
    started_quorum q;
    bool called = false;
    const auto handler = [&called](error_code, lock) { called = true; };
    SECTION("its own") {
        q.manager->async_acquire("r", once(), handler);
    }
    SECTION("another") {
        q.manager->async_acquire(
            "r", once(), asio::bind_executor(never_run.get_executor(), handler));
    }
    // Handler by handler up to the grant: the caller's handler comes after it.
    for (int i = 0; i < 10'000 && q.manager->get_metrics().acquired == 0; ++i) {
        q.io.run_one_for(10ms);
    }
    CHECK(q.manager->get_metrics().acquired == 1);
    CHECK_FALSE(called);
    end(q);
    CHECK_FALSE(called);
}

TEST_CASE("a lock may outlive its manager: it is lost then, and released when it is let go") {
    started_quorum q;
    lock released = q.acquired_everywhere("released");
    CHECK(q.release(released).value() == release_result::released);
    q.run_until([&] { return q.keys() == 0; });
    lock kept = q.acquired("kept");
    lock dropped = q.acquired("dropped");
    q.run_until([&] { return q.keys() == 6; });
    loss_outcome& loss = q.begin_wait_lost(kept);
    q.manager.reset();
    CHECK(q.wait(loss).value() == loss_reason::closed);
    CHECK_FALSE(kept.held());
    CHECK(kept.resource() == "kept");
    CHECK(q.keys() == 6); // their holder may act until the leases end
    dropped = lock();
    q.run_until([&] { return q.keys() == 3; });
    // One that was released before is not lost.
    CHECK(q.wait(q.begin_wait_lost(released)).error() == errc::released);
    CHECK(q.extend(released, 5s).error() == errc::released);
    kept = lock();
    CHECK(!q.wait(*q.running).error());
    CHECK(q.keys() == 0);
}

TEST_CASE("a lock that outlives what its manager ran on says that it is closed") {
    started_quorum q(3, [](config& c) { c.master_timeout = 100ms; });
    lock held = q.acquired_everywhere("r");
    lock abandoned = q.acquired("s");
    lock released = q.acquired("t");
    q.release(released);
    acquire_options shortly = once();
    shortly.max_hold = 10ms;
    lock lost = q.acquired("u", shortly);
    q.wait(q.begin_wait_lost(lost));
    q.manager.reset();
    q.wait(*q.running);
    CHECK(q.keys() >= 5);
    q.poll();
    CHECK(q.extend(held, 5s).error() == errc::closed);
    CHECK(!q.release(held).error());
    CHECK(q.wait(q.begin_wait_lost(held)).value() == loss_reason::closed);
    CHECK(q.wait(q.begin_wait_lost(lost)).value() == loss_reason::max_hold_reached);
    error_code refused;
    released.async_downgrade([&](error_code error) { refused = error; });
    q.run_until([&] { return refused.failed(); });
    CHECK(refused == errc::released);
    q.context.reset();
    CHECK_FALSE(held.held());
    CHECK(held.resource() == "r");
    CHECK(held.remaining() == 0s);
    abandoned.abandon();
    lock last = std::move(held);
}

TEST_CASE("a manager may be destroyed right after it began to run") {
    quorum q;
    nothing& running = q.begin_run();
    q.manager.reset();
    CHECK(!q.wait(running).error());
    q.poll();
}

TEST_CASE("a handler may begin the next operation, and destroy the manager") {
    started_quorum q;
    int rounds = 0;
    bool destroyed = false;
    std::function<void(error_code, lock)> again = [&](error_code error, lock held) {
        if (error || ++rounds == 20) {
            q.manager.reset();
            destroyed = true;
            return;
        }
        auto shared = std::make_shared<lock>(std::move(held));
        shared->async_release([&, shared](error_code, release_result) {
            q.manager->async_acquire("r", patiently(), again);
        });
    };
    q.manager->async_acquire("r", patiently(), again);
    q.run_until([&] { return destroyed; });
    CHECK(rounds == 20);
    CHECK(!q.wait(*q.running).error());
    CHECK(q.keys() == 0);
}

TEST_CASE("a manager that is assigned to is closed, and what was moved from is empty") {
    started_quorum q;
    lock held = q.acquired("a");
    lock_manager moved = std::move(*q.manager);
    q.manager.reset();
    CHECK(held.held());
    CHECK(moved.get_health().ready);
    moved = lock_manager(q.io.get_executor(), q.settings);
    CHECK_FALSE(held.held());
    held = lock();
    CHECK(!q.wait(*q.running).error());
}

}} // namespace redlock::test
