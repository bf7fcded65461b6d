// Things may be destroyed in any order, with operations outstanding: nothing leaks, nothing is
// touched afterwards. Run these with the address and leak sanitizers.
#include "quorum.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <thread>

namespace redlock::test { namespace {

// A context that can be destroyed before everything else, and a manager on it.
struct fragile {
    std::deque<fake_master> masters{3};
    std::unique_ptr<asio::io_context> io = std::make_unique<asio::io_context>();
    std::optional<lock_manager> manager;

    explicit fragile(bool starts = true) {
        config settings;
        settings.protocol = protocol::plain;
        for (const fake_master& master : masters) {
            settings.masters.emplace_back(master.url());
        }
        settings.master_timeout = 1h;
        settings.health_check_interval = 1h;
        manager.emplace(io->get_executor(), std::move(settings));
        if (starts) {
            manager->async_run([](error_code) {});
            run_until(*io, [this] { return manager->get_health().admitted == 3; });
        }
    }
    lock acquired(const std::string& resource) {
        std::optional<lock> result;
        manager->async_acquire(
            resource, once(), [&](error_code, lock l) { result = std::move(l); });
        run_until(*io, [&] { return result.has_value(); });
        return std::move(*result);
    }
    void silence() {
        for (fake_master& master : masters) {
            master.accept_but_say_nothing(true);
        }
    }
    void poll() {
        io->restart();
        io->poll();
    }
    void end() {
        manager.reset();
        io.reset();
    }
};

// A handler that is seen to be destroyed, and that owns what can cancel it, as those of coroutines
// do.
struct held_by_handler {
    asio::cancellation_signal signal;
    bool* called;
};
auto owning_handler(std::vector<std::weak_ptr<held_by_handler>>& alive, bool& called) {
    const auto mine = std::make_shared<held_by_handler>();
    mine->called = &called;
    alive.push_back(mine);
    return asio::bind_cancellation_slot(
        mine->signal.slot(), [mine](auto&&...) { *mine->called = true; });
}

std::size_t count_alive(const std::vector<std::weak_ptr<held_by_handler>>& all) {
    std::size_t found = 0;
    for (const auto& one : all) {
        found += one.expired() ? 0U : 1U;
    }
    return found;
}

TEST_CASE("a context that is destroyed destroys handlers that own the lock they wait for") {
    const auto sentinel = std::make_shared<int>(1);
    {
        fragile f;
        const auto owner = [&](const std::string& resource) {
            return std::make_shared<std::pair<lock, std::shared_ptr<int>>>(
                f.acquired(resource), sentinel);
        };
        const auto releasing = owner("a");
        const auto extending = owner("b");
        const auto watching = owner("c");
        f.silence();
        releasing->first.async_release([releasing](error_code, release_result) {});
        extending->first.async_extend(25s, [extending](error_code, extend_result) {});
        watching->first.async_wait_lost([watching](error_code, loss_reason) {});
        f.poll();
        f.manager.reset();
        SECTION("at once") {}
        SECTION("after it has run the end of the manager") {
            f.poll();
        }
        f.io.reset();
    }
    CHECK(sentinel.use_count() == 1);
}

TEST_CASE("a context that is destroyed destroys the handlers of run, ready and close") {
    std::vector<std::weak_ptr<held_by_handler>> alive;
    bool called = false;
    {
        fragile f(false);
        f.silence();
        f.manager->async_run(owning_handler(alive, called));
        f.manager->async_ready(owning_handler(alive, called));
        f.poll();
        SECTION("while it connects") {}
        SECTION("while it closes") {
            f.manager->async_close(owning_handler(alive, called));
        }
        f.end();
    }
    CHECK(count_alive(alive) == 0);
}

TEST_CASE("a context that is destroyed destroys scopes and their work") {
    const auto sentinel = std::make_shared<int>(1);
    const std::weak_ptr<int> watch = sentinel;
    bool resting = false;
    {
        fragile f;
        auto mine = sentinel;
        async_with_lock(
            *f.manager,
            "r",
            patiently(),
            [&resting, mine](lock&) -> asio::awaitable<void> {
                asio::steady_timer never(co_await asio::this_coro::executor, 1h);
                resting = true;
                co_await never.async_wait(asio::use_awaitable);
            },
            [mine](std::exception_ptr) {});
        f.silence();
        async_with_lock(
            *f.manager,
            "s",
            patiently(),
            [mine](lock&) -> asio::awaitable<void> { co_return; },
            [mine](std::exception_ptr) {});
        SECTION("at once") {}
        SECTION("later") {
            for (fake_master& master : f.masters) {
                master.accept_but_say_nothing(false);
            }
            run_until(*f.io, [&] { return resting; });
        }
        f.end();
    }
    CHECK(watch.use_count() == 1); // the test's own
}

TEST_CASE("a context that is destroyed destroys coroutines that wait for two things") {
    const auto sentinel = std::make_shared<int>(1);
    {
        fragile f;
        auto held = std::make_shared<lock>(f.acquired("a"));
        f.silence();
        auto mine = sentinel;
        asio::co_spawn(
            *f.io,
            [&f, held, mine]() -> asio::awaitable<void> {
                using namespace asio::experimental::awaitable_operators;
                asio::steady_timer never(*f.io, 1h);
                const std::chrono::milliseconds ttl = 25s;
                co_await (
                    held->async_wait_lost(asio::use_awaitable)
                    || held->async_extend(ttl, asio::use_awaitable)
                    || never.async_wait(asio::use_awaitable));
            },
            asio::detached);
        f.poll();
        held.reset();
        f.end();
    }
    CHECK(sentinel.use_count() == 1);
}

TEST_CASE("a lock that was granted but not delivered dies with its context") {
    asio::io_context never_run;
    fragile f;
    bool called = false;
    const auto handler = [&called](error_code, lock) { called = true; };
    SECTION("its own") {
        f.manager->async_acquire("r", once(), handler);
    }
    SECTION("another") {
        f.manager->async_acquire(
            "r", once(), asio::bind_executor(never_run.get_executor(), handler));
    }
    // Handler by handler up to the grant: the caller's handler comes after it.
    for (int i = 0; i < 10'000 && f.manager->get_metrics().acquired == 0; ++i) {
        f.io->run_one_for(10ms);
    }
    CHECK(f.manager->get_metrics().acquired == 1);
    CHECK_FALSE(called);
    f.end();
    CHECK_FALSE(called);
}

TEST_CASE("a lock may outlive its manager") {
    started_quorum q;
    lock held = q.acquired_everywhere("r");
    loss_outcome& loss = q.begin_wait_lost(held);
    q.manager.reset();
    CHECK(q.wait(loss).value() == loss_reason::closed);
    CHECK_FALSE(held.held());
    CHECK(held.resource() == "r");
    CHECK(!q.wait(*q.running).error());
    CHECK(q.keys() == 3); // it was not let go: its holder may act until the lease ends
    // Nobody is there any more to ask, and that is said, not thrown.
    q.poll();
    CHECK(q.extend(held, 5s).error() == errc::closed);
    CHECK(!q.release(held).error());
    CHECK(q.wait(q.begin_wait_lost(held)).value() == loss_reason::closed);
}

TEST_CASE("a lock that was released before its manager is destroyed is not lost") {
    started_quorum q;
    lock held = q.acquired_everywhere("r");
    CHECK(q.release(held).value() == release_result::released);
    q.manager.reset();
    CHECK(q.wait(q.begin_wait_lost(held)).error() == errc::released);
    CHECK(q.extend(held, 5s).error() == errc::released);
}

TEST_CASE("a lock that is let go while its manager is destroyed is released") {
    started_quorum q;
    lock held = q.acquired_everywhere("r");
    loss_outcome& loss = q.begin_wait_lost(held);
    q.manager.reset();
    CHECK(q.wait(loss).value() == loss_reason::closed);
    CHECK(q.keys() == 3);
    held = lock();
    q.wait(*q.running);
    CHECK(q.keys() == 0);
}

TEST_CASE("a lock may outlive its context") {
    fragile f;
    lock held = f.acquired("r");
    lock abandoned = f.acquired("s");
    lock moved_from = f.acquired("t");
    f.end();
    CHECK_FALSE(held.held());
    CHECK(held.resource() == "r");
    CHECK(held.remaining() == 0s);
    abandoned.abandon();
    lock last = std::move(moved_from);
}

TEST_CASE("a manager may be destroyed while it runs") {
    started_quorum q;
    acquisition& waiting = q.begin_acquire("r", once());
    nothing& ready = q.begin_ready();
    q.manager.reset();
    CHECK(!q.wait(*q.running).error());
    CHECK(q.wait(waiting).error() == errc::closed);
    q.wait(ready);
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("a manager may be destroyed before it runs, and right after it began to") {
    quorum q;
    SECTION("before") {
        q.manager.reset();
    }
    SECTION("right after") {
        nothing& running = q.begin_run();
        q.manager.reset();
        CHECK(!q.wait(running).error());
    }
    q.poll();
}

TEST_CASE("a lock may be destroyed on another thread") {
    started_quorum q;
    std::vector<lock> locks;
    for (int i = 0; i < 20; ++i) {
        locks.push_back(q.acquired("r" + std::to_string(i)));
    }
    std::thread other([mine = std::move(locks)]() mutable { mine.clear(); });
    q.run_until([&] { return q.keys() == 0 && q.manager->get_metrics().held == 0; });
    other.join();
    q.run_until([&] { return q.manager->get_metrics().released == 20; });
}

TEST_CASE("a master may go while the manager still runs") {
    started_quorum q;
    lock held = q.acquired("r");
    q.masters.pop_back();
    q.run_until([&] { return q.admitted() == 2; });
    CHECK(q.release(held).value() == release_result::released);
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
            q.manager->async_acquire(
                "r", patiently(), [&](error_code e, lock l) { again(e, std::move(l)); });
        });
    };
    q.manager->async_acquire(
        "r", patiently(), [&](error_code e, lock l) { again(e, std::move(l)); });
    q.run_until([&] { return destroyed; });
    CHECK(rounds == 20);
    CHECK(!q.wait(*q.running).error());
    CHECK(q.keys() == 0);
}

TEST_CASE("a manager may be moved") {
    started_quorum q;
    lock held = q.acquired("a");
    lock_manager moved = std::move(*q.manager);
    q.manager.reset(); // what was moved from is empty
    CHECK(held.held());
    CHECK(moved.get_health().ready);
    q.manager.emplace(std::move(moved));
    CHECK(!q.acquire("b").error());
    quorum other;
    other.start();
    *other.manager = lock_manager(other.io.get_executor(), other.settings); // closes the old one
    other.wait(*other.running);
    CHECK(!other.running->error());
}

}} // namespace redlock::test
