// Threads of two processes that lock by the standard guards. What one thread sees is in memory, in
// the suite `net`.
#include "blocking_site.hpp"
#include "guarded_quorum.hpp"

#include <redlock/blocking_shared.hpp>

#include <atomic>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <shared_mutex>
#include <stop_token>

// In a namespace of its own: short names, in what may be compiled as one with other files.
namespace redlock::test::blocking_use {

namespace {

using blocking::shared_mutex;

struct readers_and_writers : site {
    readers_and_writers() : site(3, guarded_and_brisk) {}

    // An unlock does not wait for the slowest master.
    bool clean() {
        return soon([this] {
            return masters.total_keys(lock_key("r"))
                       + masters.total_keys(lock_key("r") + ":readers")
                   == 0;
        });
    }

    std::unique_ptr<blocking::manager> one = client();
    std::unique_ptr<blocking::manager> two = client();
    shared_mutex mine{*one, "r", patient()};
    shared_mutex theirs{*two, "r", patient()};
};

} // namespace

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

TEST_CASE("a manager that goes while threads lock ends what they have begun") {
    site here(3);
    std::unique_ptr<blocking::manager> manager = here.client();
    std::latch busy(8);
    std::vector<std::jthread> threads;
    std::atomic<int> closed = 0;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back(
            [&, m = std::make_unique<blocking::mutex>(*manager, std::to_string(i), patient())] {
                m->lock();
                busy.count_down();
                closed += error_of([&] {
                              for (;;) {
                                  m->unlock();
                                  m->lock();
                              }
                          })
                          == errc::closed;
            });
    }
    busy.wait();
    manager.reset();
    threads.clear();
    CHECK(closed == 8);
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

TEST_CASE("blocking shared mutex: a thread that would wait for itself gets an error at once") {
    readers_and_writers here;
    const auto deadlocks = [&](auto f) {
        const auto begun = std::chrono::steady_clock::now();
        CHECK(error_of(f) == std::errc::resource_deadlock_would_occur);
        CHECK(std::chrono::steady_clock::now() - begun < 30s);
    };
    here.mine.lock();
    deadlocks([&] { here.mine.lock(); });
    deadlocks([&] { here.mine.lock_shared(); });
    CHECK(!here.mine.try_lock_shared_for(60s));
    here.mine.unlock();
    here.mine.lock_shared();
    deadlocks([&] { here.mine.lock(); });
    CHECK(!here.mine.try_lock_for(60s));
    here.mine.lock_shared(); // no writer waits
    here.mine.unlock_shared();
    error_code ended = errc::closed;
    std::jthread writer([&] {
        ended = error_of([&] { here.mine.lock(); });
        here.mine.unlock();
    });
    bool waits = false;
    std::jthread([&] {
        waits = soon([&] {
            const std::shared_lock reader(here.mine, std::try_to_lock);
            return !reader.owns_lock();
        });
    }).join();
    CHECK(waits);
    deadlocks([&] { here.mine.lock_shared(); });
    CHECK(!here.mine.try_lock_shared_for(60s));
    here.mine.unlock_shared();
    writer.join();
    CHECK(!ended);
    CHECK(here.clean());
}

TEST_CASE("blocking shared mutex: readers and writers of many threads are never in together") {
    readers_and_writers here;
    std::atomic<int> reading = 0;
    std::atomic<int> writing = 0;
    std::atomic<int> together = 0;
    std::atomic<int> failures = 0;
    const auto work = [&](shared_mutex& mutex, bool writes) {
        for (int round = 0; round < 10; ++round) {
            try {
                if (writes) {
                    const std::unique_lock guard(mutex);
                    together += writing++ + reading;
                    std::this_thread::yield();
                    together += reading;
                    --writing;
                } else {
                    const std::shared_lock guard(mutex);
                    ++reading;
                    together += writing;
                    std::this_thread::yield();
                    together += writing;
                    --reading;
                }
            } catch (const std::exception&) {
                ++failures;
            }
        }
    };
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
        threads.emplace_back([&, i] { work(i % 2 == 0 ? here.mine : here.theirs, i % 3 == 0); });
    }
    threads.clear();
    CHECK(failures == 0);
    CHECK(together == 0);
    CHECK(here.clean());
}

TEST_CASE("blocking shared mutex: readers that always overlap do not starve a writer") {
    readers_and_writers here;
    std::atomic<bool> over = false;
    std::atomic<int> failures = 0;
    std::promise<void> both_read;
    std::atomic<int> reads = 0;
    const auto read = [&] {
        while (!over) {
            try {
                const std::shared_lock guard(here.mine);
                const int mine = ++reads;
                if (mine == 2) {
                    both_read.set_value();
                }
                // Until another has come in, or is kept out: there is always somebody in.
                const auto end = std::chrono::steady_clock::now() + 300ms;
                while (!over && reads == mine && std::chrono::steady_clock::now() < end) {
                    std::this_thread::sleep_for(1ms);
                }
            } catch (const std::exception&) {
                ++failures;
            }
        }
    };
    std::jthread first(read);
    std::jthread second(read);
    both_read.get_future().get();
    const bool got = here.theirs.try_lock_for(60s); // elsewhere
    here.theirs.unlock();
    const bool here_too = here.mine.try_lock_for(60s); // and in the same object
    over = true;
    here.mine.unlock();
    first.join();
    second.join();
    CHECK(got);
    CHECK(here_too);
    CHECK(failures == 0);
}

} // namespace redlock::test::blocking_use
