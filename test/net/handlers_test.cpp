// What Asio promises of a handler: called once, never from inside the function that began the
// operation, on its associated executor, which has work until then.
#include "quorum.hpp"

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <thread>

namespace redlock::test { namespace {

// With a lock that is held, and one that was released.
struct lock_quorum : started_quorum {
    lock_quorum() { release(released); }

    lock held = acquired("a");
    lock released = acquired("b");
};

// Begins every operation there is with handlers that `make` makes, in an order that keeps each
// from disturbing the next; gives how many. Some fail at once, some are answered by the masters.
template <typename Make>
int begin_all(lock_quorum& q, Make make) {
    q.manager->async_acquire("", once(), make());      // refused at once
    q.manager->async_acquire("fresh", once(), make()); // asks the masters
    q.manager->async_query("", make());
    q.manager->async_query("r", make());
    q.manager->async_ready(make());   // is ready already
    q.manager->async_run(make());     // runs already
    q.held.async_extend(0ms, make()); // refused at once
    q.held.async_extend(25s, make());
    q.held.async_wait_lost(make());
    q.released.async_extend(25s, make()); // fails at once
    q.released.async_release(make());     // is released already
    q.released.async_wait_lost(make());   // likewise
    q.held.async_release(make());
    q.manager->async_close(make());
    return 14;
}

// The same on a manager that is closed: all of them complete at once.
template <typename Make>
int begin_all_closed(quorum& q, lock& held, Make make) {
    q.manager->async_acquire("r", once(), make());
    q.manager->async_query("r", make());
    q.manager->async_ready(make());
    q.manager->async_run(make());
    q.manager->async_close(make());
    held.async_extend(25s, make());
    held.async_wait_lost(make());
    held.async_release(make());
    return 8;
}

template <typename Value>
struct counting_allocator {
    using value_type = Value;
    std::shared_ptr<std::ptrdiff_t[]> counts; // allocated in all, alive

    explicit counting_allocator(std::shared_ptr<std::ptrdiff_t[]> numbers)
        : counts(std::move(numbers)) {}
    template <typename Other>
    counting_allocator(const counting_allocator<Other>& other) : counts(other.counts) {}
    Value* allocate(std::size_t size) {
        ++counts[0];
        ++counts[1];
        return std::allocator<Value>().allocate(size);
    }
    void deallocate(Value* memory, std::size_t size) {
        --counts[1];
        std::allocator<Value>().deallocate(memory, size);
    }
    template <typename Other>
    bool operator==(const counting_allocator<Other>& other) const {
        return counts == other.counts;
    }
};

TEST_CASE("a handler never runs inside the function that began the operation") {
    int calls = 0;
    int inside_calls = 0;
    bool inside = false;
    const auto make = [&] {
        return [&](auto&&...) {
            ++calls;
            inside_calls += inside ? 1 : 0;
        };
    };
    lock_quorum q;
    lock also_held = q.acquired("c");
    int expected = 0;
    // Even if the caller is on the manager's own executor.
    asio::post(q.io, [&] {
        inside = true;
        expected = begin_all(q, make);
        inside = false;
    });
    q.run_until([&] { return expected > 0 && calls == expected; });
    q.wait(*q.running);
    inside = true;
    const int more = begin_all_closed(q, also_held, make);
    inside = false;
    q.run_until([&] { return calls == expected + more; });
    q.poll();
    CHECK(calls == expected + more); // each once
    CHECK(inside_calls == 0);
}

TEST_CASE("a handler without an executor of its own runs on the manager's") {
    int calls = 0;
    int elsewhere = 0;
    lock_quorum q;
    const int expected = begin_all(q, [&] {
        return [&](auto&&...) {
            ++calls;
            elsewhere += q.io.get_executor().running_in_this_thread() ? 0 : 1;
        };
    });
    q.run_until([&] { return calls == expected; });
    CHECK(elsewhere == 0);
}

TEST_CASE("a handler runs on the context it is bound to, which has work until then") {
    asio::io_context other;
    int calls = 0;
    int elsewhere = 0;
    lock_quorum q;
    q.when("SET", fake_action::hang(), 1);
    const int expected = begin_all(q, [&] {
        return asio::bind_executor(other.get_executor(), [&](auto&&...) {
            ++calls;
            elsewhere += other.get_executor().running_in_this_thread() ? 0 : 1;
        });
    });
    other.poll();
    CHECK_FALSE(other.stopped()); // it would be, without work
    for (int i = 0; calls < expected && i < 10'000; ++i) {
        q.poll();
        other.run_one_for(1ms);
        q.each(&fake_master::release_hung);
    }
    CHECK(calls == expected);
    CHECK(elsewhere == 0);
    q.poll();
    other.poll();
    CHECK(other.stopped()); // and no work afterwards
    CHECK(calls == expected);
}

TEST_CASE("a handler runs on the strand it is bound to") {
    lock_quorum q;
    auto strand = asio::make_strand(q.io);
    int calls = 0;
    int elsewhere = 0;
    const int expected = begin_all(q, [&] {
        return asio::bind_executor(strand, [&](auto&&...) {
            ++calls;
            elsewhere += strand.running_in_this_thread() ? 0 : 1;
        });
    });
    q.run_until([&] { return calls == expected; });
    CHECK(elsewhere == 0);
}

TEST_CASE("a handler runs on the thread pool it is bound to") {
    asio::thread_pool pool(2);
    std::atomic<int> calls{0};
    std::atomic<int> elsewhere{0};
    lock_quorum q;
    const int expected = begin_all(q, [&] {
        return asio::bind_executor(pool.get_executor(), [&](auto&&...) {
            elsewhere += pool.get_executor().running_in_this_thread() ? 0 : 1;
            ++calls;
        });
    });
    q.run_until([&] { return calls == expected; });
    pool.join();
    CHECK(calls == expected);
    CHECK(elsewhere == 0);
}

TEST_CASE("with_lock keeps to the executor of its handler, and is never inline") {
    asio::io_context other;
    int calls = 0;
    bool right = true;
    bool inside = true;
    quorum q;
    const auto work = [](lock&) -> boost::asio::awaitable<void> { co_return; };
    const auto make = [&] {
        return asio::bind_executor(other.get_executor(), [&](std::exception_ptr) {
            ++calls;
            right = right && !inside && other.get_executor().running_in_this_thread();
        });
    };
    async_with_lock(*q.manager, "r", once(), work, make()); // does not run yet: fails at once
    inside = false;
    q.start();
    inside = true;
    async_with_lock(*q.manager, "r", once(), work, make());
    inside = false;
    other.poll();
    CHECK_FALSE(other.stopped());
    for (int i = 0; calls < 2 && i < 10'000; ++i) {
        q.poll();
        other.run_one_for(1ms);
    }
    CHECK(calls == 2);
    CHECK(right);
}

TEST_CASE("a handler may be movable only") {
    int calls = 0;
    lock_quorum q;
    const int expected = begin_all(q, [&] {
        return [mine = std::make_unique<int>(1), &calls](auto&&...) { calls += *mine; };
    });
    q.run_until([&] { return calls == expected; });
    CHECK(calls == expected);
}

TEST_CASE("the memory of a handler comes from its allocator, and goes back") {
    const bool diagnosed = GENERATE(false, true);
    diagnostics why;
    const std::shared_ptr<std::ptrdiff_t[]> counts(new std::ptrdiff_t[2]{0, 0});
    int calls = 0;
    {
        lock_quorum q;
        const auto handler = [&] {
            return asio::bind_allocator(
                counting_allocator<char>(counts), [&](auto&&...) { ++calls; });
        };
        const int expected = diagnosed
                                 ? begin_all(q, [&] { return with_diagnostics(why, handler()); })
                                 : begin_all(q, handler);
        q.run_until([&] { return calls == expected; });
    }
    CHECK(counts[0] > 0);
    CHECK(counts[1] == 0);
}

TEST_CASE("operations that are made of others keep the allocator of the handler") {
    const std::shared_ptr<std::ptrdiff_t[]> counts(new std::ptrdiff_t[2]{0, 0});
    int calls = 0;
    started_quorum q;
    const reentrant_owner owner;
    reentrant_mutex mutex(*q.manager, "mutex", once());
    election leaders(*q.manager, "leaders");
    // Begins one operation and waits for it. A handler within another is a second allocation.
    const auto check = [&](const char* name, std::ptrdiff_t at_least, auto begin) {
        INFO(name);
        counts[0] = 0;
        const int before = calls;
        begin([&](auto take) {
            return asio::bind_allocator(
                counting_allocator<char>(counts), [&calls, take](auto&&... results) mutable {
                    take(std::forward<decltype(results)>(results)...);
                    ++calls;
                });
        });
        q.run_until([&] { return calls > before; });
        CHECK(calls == before + 1);
        CHECK(counts[0] >= at_least);
        CHECK(counts[1] == 0);
    };
    const auto ignore = [](auto&&...) {};
    lock term;
    check("campaign", 1, [&](auto handler) {
        leaders.async_campaign(handler(
            [&](error_code error, lock taken) { term = error ? lock() : std::move(taken); }));
    });
    CHECK(term.held());
    check("observe", 2, [&](auto handler) { leaders.async_observe(handler(ignore)); });
    check("wait for a change", 1, [&](auto handler) {
        leaders.async_wait_change("somebody", handler(ignore));
    });
    check("release", 1, [&](auto handler) { term.async_release(handler(ignore)); });
    check("lead", 1, [&](auto handler) {
        leaders.async_lead([](lock&) -> asio::awaitable<void> { co_return; }, handler(ignore));
    });
    check("with_lock", 1, [&](auto handler) {
        async_with_lock(
            *q.manager,
            "work",
            once(),
            [](lock&) -> asio::awaitable<void> { co_return; },
            handler(ignore));
    });
    reentrant_hold first;
    check("enter", 1, [&](auto handler) {
        mutex.async_acquire(owner, handler([&](error_code error, reentrant_hold hold) {
                                first = error ? reentrant_hold() : std::move(hold);
                            }));
    });
    CHECK(first.held());
    reentrant_hold second;
    check("enter again", 1, [&](auto handler) {
        mutex.async_acquire(owner, handler([&](error_code error, reentrant_hold hold) {
                                second = error ? reentrant_hold() : std::move(hold);
                            }));
    });
    CHECK(second.held());
    check("leave", 1, [&](auto handler) { second.async_release(handler(ignore)); });
    check("leave as the last", 2, [&](auto handler) { first.async_release(handler(ignore)); });
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

TEST_CASE("diagnostics are filled before the handler runs") {
    started_quorum q;
    diagnostics why;
    std::size_t votes_seen = 0;
    bool done = false;
    q.manager->async_acquire("r", once(), with_diagnostics(why, [&](error_code, lock) {
                                 votes_seen = why.votes.size();
                                 done = true;
                             }));
    q.run_until([&] { return done; });
    CHECK(votes_seen == 3);
    CHECK(why.attempts == 1);
    CHECK(why.message.empty());
}

}} // namespace redlock::test
