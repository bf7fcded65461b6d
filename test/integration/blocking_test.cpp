// Blocking use, as a program with plain threads does it: the standard guards, stop tokens, loss.
#include "blocking_site.hpp"
#include "guarded_quorum.hpp"

#include <boost/asio/post.hpp>

#include <atomic>
#include <concepts>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <stop_token>

// In a namespace of its own: short names, in what may be compiled as one with other files.
namespace redlock::test::blocking_use {

namespace {

template <typename T>
concept basic_lockable = requires(T it) {
    it.lock();
    { it.unlock() }
    noexcept;
};
template <typename T>
concept lockable = basic_lockable<T> && requires(T it) {
    { it.try_lock() } -> std::same_as<bool>;
};
template <typename T>
concept timed_lockable = lockable<T> && requires(
    T it, std::chrono::nanoseconds span, std::chrono::system_clock::time_point end) {
    { it.try_lock_for(span) } -> std::same_as<bool>;
    { it.try_lock_until(end) } -> std::same_as<bool>;
};
static_assert(timed_lockable<blocking::mutex>);
static_assert(std::is_nothrow_destructible_v<blocking::manager>);

} // namespace

TEST_CASE("a call returns the value of the operation, or throws its error") {
    site here(3);
    const auto manager = here.client();
    CHECK(manager->ready(10s));
    redlock::lock mine = manager->call(
        [&](auto token) { return manager->async().async_acquire("r", once(), std::move(token)); });
    CHECK(mine.held());
    CHECK(
        error_of([&] {
            static_cast<void>(manager->call([&](auto token) {
                return manager->async().async_acquire("r", once(), std::move(token));
            }));
        })
        == errc::contended);
    manager->call([&](auto token) { return mine.async_extend(20s, std::move(token)); });
    const release_result result =
        manager->call([&](auto token) { return mine.async_release(std::move(token)); });
    CHECK(result == release_result::released);
}

TEST_CASE("what a beginning throws comes out of the call") {
    site here(1);
    const auto manager = here.client();
    redlock::lock empty;
    CHECK_THROWS_AS(
        manager->call([&](auto token) { return empty.async_extend(1s, std::move(token)); }),
        std::logic_error);
}

TEST_CASE("a blocking call on the manager's own thread is refused before anything is begun") {
    site here(1);
    const auto manager = here.client();
    blocking::mutex m(*manager, "r", patient());
    std::promise<std::pair<error_code, error_code>> seen;
    asio::post(manager->async().get_executor(), [&] {
        const error_code locked = error_of([&] { m.lock(); });
        seen.set_value({locked, error_of([&] { manager->ready(1s); })});
    });
    const auto [locked, ready] = seen.get_future().get();
    CHECK(locked == errc::would_deadlock);
    CHECK(locked == std::errc::resource_deadlock_would_occur);
    CHECK(ready == errc::would_deadlock);
    CHECK(manager->async().get_metrics().attempts == 0);
    m.lock();
    std::promise<void> unlocked;
    asio::post(manager->async().get_executor(), [&] {
        m.unlock(); // does not wait, and does not fail
        unlocked.set_value();
    });
    unlocked.get_future().get();
    CHECK(!m.held());
    CHECK(!m.last_release());
    m.lock();
    m.unlock();
    CHECK(m.last_release() == release_result::released);
}

TEST_CASE("a quorum that does not come is waited for no longer than was said") {
    site here(1);
    here.masters[0].kill();
    blocking::manager manager(here.settings);
    CHECK(!manager.ready(20ms));
    std::stop_source stop;
    std::jthread stopper([&] { stop.request_stop(); });
    CHECK(
        error_of([&] { manager.ready(60s, stop.get_token()); }) == asio::error::operation_aborted);
    blocking::mutex m(manager, "r", once());
    CHECK(error_of([&] { m.lock(); }) == errc::no_quorum);
    CHECK(
        error_of([&] { static_cast<void>(m.try_lock()); })
        == errc::no_quorum); // not false: this is an outage
    CHECK(m.last_attempt().votes.at(0).vote == vote::unreachable);
}

TEST_CASE("the standard guards lock and unlock, in one thread after the other") {
    site here(3);
    const auto manager = here.client();
    blocking::mutex m(*manager, "r", patient());
    int counter = 0; // protected by the mutex alone
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (int round = 0; round < 10; ++round) {
                const std::scoped_lock guard(m);
                ++counter;
            }
        });
    }
    threads.clear();
    CHECK(counter == 40);
    {
        std::unique_lock guard(m, std::defer_lock);
        CHECK(guard.try_lock_for(1s));
        CHECK(m.held());
        CHECK(m.remaining() > 1s);
        guard.unlock();
        CHECK(guard.try_lock_until(std::chrono::system_clock::now() + 1s));
    }
    CHECK(m.last_release() == release_result::released);
    CHECK(here.masters.total_keys("*{r}") == 0);
}

TEST_CASE("somebody else's lock is false to try_lock, and lock waits for it") {
    site here(3);
    const auto mine = here.client();
    const auto theirs = here.client();
    blocking::mutex m(*mine, "r", waiting(50ms));
    blocking::mutex n(*theirs, "r");
    n.lock();
    CHECK(!m.try_lock());
    CHECK(!m.try_lock_for(1s));
    CHECK(!m.try_lock_for(-1s));
    CHECK(!m.try_lock_until(std::chrono::steady_clock::now() + 1s));
    CHECK(count_votes(m.last_attempt(), vote::held) >= 2);
    const auto attempts = [&] { return mine->async().get_metrics().attempts; };
    const auto before = attempts();
    std::jthread waits([&] { m.lock(); });
    CHECK(soon([&] { return attempts() >= before + 5; })); // far more than 50 ms
    n.unlock();
    waits.join();
    CHECK(m.held());
    m.unlock();
    CHECK(m.try_lock_for(std::chrono::hours::max()));
    // Another thread of this process finds the object taken, whatever the masters reply.
    bool again = true;
    std::jthread([&] { again = m.try_lock(); }).join();
    CHECK(!again);
    m.unlock();
}

TEST_CASE("a thread that locks a mutex twice gets an error at once, and keeps its lock") {
    site here(3);
    const auto manager = here.client();
    blocking::mutex m(*manager, "r", patient());
    m.lock();
    const std::uint64_t attempts = manager->async().get_metrics().attempts;
    const auto begun = std::chrono::steady_clock::now();
    CHECK(error_of([&] { m.lock(); }) == std::errc::resource_deadlock_would_occur);
    CHECK(contains(m.last_attempt().message, "this thread"));
    CHECK(!m.try_lock());
    CHECK(!m.try_lock_for(60s));
    CHECK(std::chrono::steady_clock::now() - begun < 30s);
    CHECK(manager->async().get_metrics().attempts == attempts);
    CHECK(m.held());
    const auto elsewhere = [](auto f) { std::jthread(f).join(); };
    elsewhere([&] { m.unlock(); });
    CHECK(m.last_release() == release_result::released);
    elsewhere([&] { m.lock(); }); // and ends: its number may be that of the next thread
    bool taken = true;
    elsewhere([&] { taken = m.try_lock_for(1ms); });
    CHECK(!taken);
    CHECK(contains(m.last_attempt().message, "another thread"));
    m.unlock();
    CHECK(m.try_lock());
    m.unlock();
    CHECK(here.masters.total_keys("*{r}") == 0);
}

TEST_CASE("two threads with two managers take two mutexes in opposite orders") {
    constexpr int rounds = 10;
    site here(3);
    const auto first = here.client();
    const auto second = here.client();
    std::atomic<int> inside = 0;
    std::atomic<int> failures = 0;
    const auto work = [&](blocking::manager& manager, const char* one, const char* other) {
        blocking::mutex m(manager, one, patient());
        blocking::mutex n(manager, other, patient());
        for (int round = 0; round < rounds; ++round) {
            try {
                const std::scoped_lock guard(m, n);
                failures += inside.fetch_add(1) == 0 ? 0 : 1;
                inside.fetch_sub(1);
            } catch (const std::exception&) {
                ++failures;
            }
        }
    };
    std::jthread a([&] { work(*first, "a", "b"); });
    std::jthread b([&] { work(*second, "b", "a"); });
    a.join();
    b.join();
    CHECK(failures == 0);
    CHECK(here.masters.total_keys("*{?}") == 0);
}

TEST_CASE("a condition variable gives the mutex up while it waits") {
    site here(3);
    const auto manager = here.client();
    blocking::mutex m(*manager, "r", patient());
    std::condition_variable_any changed;
    bool ready = false; // protected by the mutex
    std::jthread waiter([&] {
        std::unique_lock guard(m);
        changed.wait(guard, [&] { return ready; });
        ready = false;
    });
    {
        const std::scoped_lock guard(m);
        ready = true;
    }
    changed.notify_all();
    waiter.join();
    const std::scoped_lock guard(m);
    CHECK(!ready);
}

TEST_CASE("a wait that is stopped leaves no keys, and the next one succeeds") {
    site here(3);
    const auto mine = here.client();
    const auto theirs = here.client();
    blocking::mutex m(*mine, "r", patient());
    blocking::mutex n(*theirs, "r");
    n.lock();
    std::stop_source stop;
    error_code error;
    std::jthread waiter([&] { error = error_of([&] { m.lock(stop.get_token()); }); });
    while (mine->async().get_metrics().attempts == 0) {
        std::this_thread::yield();
    }
    stop.request_stop();
    waiter.join();
    CHECK(error == asio::error::operation_aborted);
    CHECK(!m.held());
    n.unlock();
    CHECK(m.try_lock());
    // A waiter for another thread of the process is stopped as well.
    std::stop_source again;
    std::jthread second([&] { error = error_of([&] { m.lock(again.get_token()); }); });
    again.request_stop();
    second.join();
    CHECK(error == asio::error::operation_aborted);
    m.unlock();
    CHECK(here.masters.total_keys("*{r}") == 0);
}

TEST_CASE("a stop that comes at any moment gives the lock or nothing, never a lost one") {
    site here(3);
    const auto manager = here.client();
    blocking::mutex m(*manager, "r", patient());
    int got = 0;
    for (int round = 0; round < 50; ++round) {
        std::stop_source stop;
        std::latch both(2);
        std::jthread stopper([&] {
            both.arrive_and_wait();
            for (int i = 0; i < 200 * round; ++i) {
                std::atomic_signal_fence(std::memory_order_seq_cst);
            }
            stop.request_stop();
        });
        both.arrive_and_wait();
        const error_code error = error_of([&] { m.lock(stop.get_token()); });
        CHECK((!error || error == asio::error::operation_aborted));
        CHECK(m.held() == !error);
        got += error ? 0 : 1;
        m.unlock();
    }
    INFO(got);
    CHECK(m.try_lock());
    m.unlock();
    CHECK(here.masters.total_keys("*{r}") == 0);
}

TEST_CASE("a loss stops the token while the lease still lasts, and unlock does not throw") {
    site here(3);
    const auto manager = here.client();
    acquire_options options = once_unrenewed(2s);
    options.stop_margin = 1500ms;
    blocking::mutex m(*manager, "r", options);
    m.lock();
    const std::stop_token lost = m.lost();
    const time_point deadline = m.deadline();
    std::promise<time_point> when;
    const std::stop_callback told(lost, [&] { when.set_value(clock::now()); });
    CHECK(when.get_future().get() < deadline);
    CHECK(!m.held());
    m.unlock();
    CHECK(m.last_release().has_value());
    m.lock();
    CHECK(!m.lost().stop_requested());
    m.unlock();
    CHECK(!m.lost().stop_requested()); // it was released
}

TEST_CASE("after a loss the mutex is still this thread's to unlock, and others keep their lock") {
    site here(3);
    const auto mine = here.client();
    const auto theirs = here.client();
    blocking::mutex m(*mine, "r", once_unrenewed(200ms));
    blocking::mutex n(*theirs, "r", patient());
    m.lock();
    n.lock(); // waits for the end of the lease
    CHECK(!m.held());
    CHECK(soon([&] { return m.lost().stop_requested(); })); // by a timer of the other manager
    m.unlock();                                             // late
    m.unlock();                                             // and again
    CHECK(m.last_release().has_value());
    CHECK(n.held());
    CHECK(!m.try_lock());
    n.unlock();
    CHECK(n.last_release() == release_result::released);
}

TEST_CASE("a late unlock, and one again, finds the lock stolen and leaves it to its new owner") {
    site here(3);
    const auto mine = here.client();
    const auto theirs = here.client();
    blocking::mutex m(*mine, "r", once_unrenewed(20s));
    blocking::mutex n(*theirs, "r", patient());
    m.lock();
    for (const master_process& master : here.masters) {
        master.command({"DEL", lock_key("r")}); // as if it had expired in a pause
    }
    n.lock();
    m.unlock();
    CHECK(m.last_release() == release_result::stolen);
    m.unlock();
    CHECK(n.held());
    CHECK(!m.try_lock());
    n.unlock();
    CHECK(n.last_release() == release_result::released);
}

TEST_CASE("fencing tokens increase from owner to owner") {
    site here(3, guarded);
    const auto manager = here.client();
    acquire_options options = patient();
    options.fencing = true;
    blocking::mutex m(*manager, "r", options);
    CHECK_THROWS_AS(m.fencing_token(), std::logic_error);
    std::uint64_t before = 0;
    for (int i = 0; i < 3; ++i) {
        const std::scoped_lock guard(m);
        CHECK(m.fencing_token() > before);
        before = m.fencing_token();
    }
}

TEST_CASE("what was lost before it was unlocked or released was not released") {
    site here(3);
    const auto manager = here.client();
    acquire_options options = patient();
    options.ttl = 20s;
    options.stop_margin = 19s; // lost after a second, and kept until it is let go
    blocking::mutex m(*manager, "r", options);
    m.lock();
    blocking::lock other = manager->acquire("s", options);
    while (m.held() || other.held()) {
        std::this_thread::sleep_for(10ms);
    }
    m.unlock();
    CHECK(m.last_release() == release_result::expired);
    CHECK(other.release() == release_result::expired);
    CHECK(here.masters.total_keys("*{?}") == 0);
    CHECK(manager->async().get_metrics().released == 0);
}

TEST_CASE("a mutex that goes releases its lock, and a manager that goes takes none away") {
    site here(3);
    auto manager = here.client();
    {
        blocking::mutex m(*manager, "r", patient());
        m.lock();
    }
    redlock::lock left = manager->call(
        [&](auto token) { return manager->async().async_acquire("s", once(), std::move(token)); });
    manager.reset();
    CHECK(!left.held());
    CHECK(here.masters.total_keys("*{r}") == 0);
    CHECK(here.masters.total_keys("*{s}") == 3); // its holder may still act
}

TEST_CASE("what is locked through a manager that goes first is lost, and can be unlocked") {
    site here(3);
    auto manager = here.client();
    blocking::mutex left(*manager, "q", patient());
    blocking::mutex m(*manager, "r", patient());
    left.lock();
    {
        const std::scoped_lock guard(m);
        const std::stop_token lost = m.lost();
        manager.reset();
        CHECK(!m.held());
        CHECK(lost.stop_requested());
        CHECK(error_of([&] { m.lock(); }) == errc::would_deadlock);
    }
    CHECK(!m.last_release()); // not by a master
    CHECK(error_of([&] { m.lock(); }) == errc::closed);
    CHECK(error_of([&] { static_cast<void>(m.try_lock_for(60s)); }) == errc::closed);
}

} // namespace redlock::test::blocking_use
