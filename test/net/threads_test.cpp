// Several threads at once, for ThreadSanitizer: one manager on a context that several threads run,
// used by a pool of others. Threads count; the test's thread asserts.
#include "quorum.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <future>
#include <thread>

namespace redlock::test { namespace {

// Runs a context on several threads as long as it lives.
class crew {
public:
    crew(asio::io_context& io, std::size_t threads) : guard_(asio::make_work_guard(io)) {
        io.restart();
        for (std::size_t i = 0; i < threads; ++i) {
            threads_.emplace_back([&io] { io.run(); });
        }
    }
    ~crew() {
        guard_.reset();
        for (std::thread& one : threads_) {
            one.join();
        }
    }

private:
    asio::executor_work_guard<asio::io_context::executor_type> guard_;
    std::vector<std::thread> threads_;
};

struct tally {
    std::atomic<int> acquired{0};
    std::atomic<int> refused{0};
    std::atomic<int> strange{0};
};

// One worker: acquires, uses and releases locks, some of which other workers want as well.
void work(lock_manager& manager, std::size_t me, int rounds, tally& count) {
    acquire_options options = once(20s);
    options.wait = wait_for::forever();
    for (int round = 0; round < rounds; ++round) {
        const bool shared = round % 3 == 0;
        const std::string name =
            shared ? "shared" + std::to_string(me % 3) : "own" + std::to_string(me);
        try {
            lock held = manager.async_acquire(name, options, asio::use_future).get();
            count.acquired += held.held() ? 1 : 0;
            count.strange += held.resource() == name && held.secret().size() == 40 ? 0 : 1;
            if (round % 2 == 0) {
                held.async_extend(25s, asio::use_future).get();
            }
            static_cast<void>(manager.get_health());
            static_cast<void>(manager.get_metrics());
            static_cast<void>(held.remaining());
            if (round % 4 == 3) {
                continue; // the destructor releases it
            }
            const release_result result = held.async_release(asio::use_future).get();
            count.strange += result == release_result::released ? 0 : 1;
        } catch (const boost::system::system_error&) {
            ++count.refused;
        }
    }
}

TEST_CASE("many threads share a manager whose context several threads run") {
    constexpr std::size_t workers = 8;
    constexpr int rounds = 25;
    started_quorum q;
    tally count;
    {
        const crew running(q.io, 4);
        asio::thread_pool pool(workers);
        for (std::size_t i = 0; i < workers; ++i) {
            asio::post(pool, [&, i] { work(*q.manager, i, rounds, count); });
        }
        pool.join();
        q.manager->async_close(asio::use_future).get();
    }
    CHECK(count.acquired == static_cast<int>(workers) * rounds);
    CHECK(count.refused == 0);
    CHECK(count.strange == 0);
    CHECK(q.keys() == 0);
    q.wait(*q.running);
}

TEST_CASE("an observer is called by one thread at a time, and for a start by the caller's") {
    static thread_local std::size_t caller = 0;
    struct watcher : observer {
        void started(const operation_start& what) override {
            enter();
            if (what.kind == operation_kind::acquire) {
                wrong += what.resource == "own" + std::to_string(caller) ? 0 : 1;
                ++starts;
            }
            --inside;
        }
        void ended(const operation_end&, const diagnostics&) override {
            enter();
            --inside;
        }
        void enter() {
            wrong += ++inside == 1 ? 0 : 1;
            static_cast<void>(manager->get_metrics());
        }

        lock_manager* manager = nullptr;
        std::atomic<int> inside{0};
        std::atomic<int> wrong{0};
        int starts = 0;
    };
    const auto seen = std::make_shared<watcher>();
    constexpr std::size_t workers = 8;
    constexpr int rounds = 25;
    quorum q(3, [&](config& settings) { settings.observer = seen; });
    seen->manager = &*q.manager;
    q.start();
    {
        const crew running(q.io, 4);
        asio::thread_pool pool(workers);
        for (std::size_t i = 1; i <= workers; ++i) {
            asio::post(pool, [&, i] {
                caller = i;
                for (int round = 0; round < rounds; ++round) {
                    const lock held =
                        q.manager
                            ->async_acquire(
                                "own" + std::to_string(i), patiently(20s), asio::use_future)
                            .get();
                }
            });
        }
        pool.join();
        q.manager->async_close(asio::use_future).get();
    }
    q.wait(*q.running);
    CHECK(seen->wrong == 0);
    CHECK(seen->starts == static_cast<int>(workers) * rounds);
}

TEST_CASE("locks that are renewed, lost and released by several threads stay whole") {
    started_quorum q;
    std::atomic<int> losses{0};
    std::atomic<int> results{0};
    constexpr int workers = 8;
    {
        const crew running(q.io, 4);
        asio::thread_pool pool(workers);
        for (int i = 0; i < workers; ++i) {
            asio::post(pool, [&, i] {
                acquire_options options = once(300ms);
                options.wait = wait_for::forever();
                options.renew = renewal::automatic;
                options.max_hold = 500ms;
                for (int round = 0; round < 3; ++round) {
                    lock held =
                        q.manager->async_acquire("r" + std::to_string(i), options, asio::use_future)
                            .get();
                    auto lost = held.async_wait_lost(asio::use_future);
                    if (round < 2) {
                        q.masters[0].drop_connections();
                        held.async_release(asio::use_future).get();
                    }
                    try {
                        losses += lost.get() != loss_reason::none ? 1 : 0;
                    } catch (const boost::system::system_error&) {
                        ++results; // released
                    }
                }
            });
        }
        pool.join();
        q.manager->async_close(asio::use_future).get();
    }
    CHECK(losses + results == workers * 3);
    CHECK(losses >= workers);
    q.wait(*q.running);
}

TEST_CASE("acquires are cancelled on the strands of their handlers while others go on") {
    constexpr int operations = 200;
    started_quorum q;
    std::atomic<int> ended{0};
    std::atomic<int> strange{0};
    {
        const crew running(q.io, 4);
        struct attempt {
            explicit attempt(asio::io_context& io) : strand(asio::make_strand(io)) {}
            asio::strand<asio::io_context::executor_type> strand;
            asio::cancellation_signal signal;
        };
        std::vector<std::shared_ptr<attempt>> all;
        for (int i = 0; i < operations; ++i) {
            auto one = std::make_shared<attempt>(q.io);
            all.push_back(one);
            asio::post(one->strand, [&, one, i] {
                q.manager->async_acquire(
                    "r" + std::to_string(i % 10),
                    patiently(),
                    asio::bind_cancellation_slot(
                        one->signal.slot(),
                        asio::bind_executor(one->strand, [&, one](error_code error, lock held) {
                            const bool mine = one->strand.running_in_this_thread();
                            const bool fine =
                                error ? error == asio::error::operation_aborted : held.valid();
                            strange += mine && fine ? 0 : 1;
                            ++ended;
                        })));
            });
        }
        for (const auto& one : all) {
            asio::post(one->strand, [one] { one->signal.emit(asio::cancellation_type::terminal); });
        }
        while (ended < operations) {
            std::this_thread::yield();
        }
        q.manager->async_close(asio::use_future).get();
    }
    CHECK(strange == 0);
    CHECK(ended == operations);
    CHECK(q.keys() == 0);
    q.wait(*q.running);
}

TEST_CASE("a manager is destroyed while several threads run its context") {
    constexpr int operations = 20;
    for (int round = 0; round < 10; ++round) {
        started_quorum q;
        std::atomic<int> granted{0};
        std::atomic<int> closed{0};
        {
            const crew running(q.io, 4);
            for (int i = 0; i < operations; ++i) {
                // What was granted is let go at once: a lock that is kept keeps its key. It is
                // valid, although closing may have ended it.
                q.manager->async_acquire(
                    "r" + std::to_string(i % 5),
                    patiently(),
                    [&](error_code error, const lock& held) {
                        granted += held.valid() ? 1 : 0;
                        closed += error == errc::closed ? 1 : 0;
                    });
            }
            q.manager.reset();
        }
        CHECK(granted + closed == operations);
        CHECK(q.running->done());
        CHECK(q.keys() == 0);
    }
}

}} // namespace redlock::test
