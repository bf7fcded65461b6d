// Threads of two processes that read and write by the standard guards. What one thread sees is in
// memory, in the suite `net`.
#include "blocking_site.hpp"
#include "guarded_quorum.hpp"

#include <redlock/blocking_shared.hpp>
#include <redlock/observer.hpp>

#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <latch>
#include <mutex>
#include <shared_mutex>

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
    shared_mutex mine{*one, "r", waiting(60s)};
    shared_mutex theirs{*two, "r", waiting(60s)};
};

} // namespace

TEST_CASE("a manager that goes while threads lock ends what they have begun") {
    static thread_local bool locks = false;
    struct watcher : observer {
        void started(const operation& what) override {
            elsewhere += what.kind == operation_kind::acquire && !locks ? 1 : 0;
        }
        std::atomic<int> elsewhere = 0;
    };
    const auto seen = GENERATE(false, true) ? std::make_shared<watcher>() : nullptr;
    site here(3, [&](config& settings) { settings.observer = seen; });
    std::unique_ptr<blocking::manager> manager = here.client();
    std::latch busy(8);
    std::vector<std::jthread> threads;
    std::atomic<int> closed = 0;
    for (int i = 0; i < 8; ++i) {
        threads.emplace_back(
            [&, m = std::make_unique<blocking::mutex>(*manager, std::to_string(i), waiting(60s))] {
                locks = true;
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
    CHECK((!seen || seen->elsewhere == 0)); // where a span of the caller is active
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

} // namespace redlock::test::blocking_use
