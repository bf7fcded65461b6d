// Several threads at once, for ThreadSanitizer: one manager on a context that several threads run,
// used by a pool of others. Threads count; the test's thread asserts.
#include "quorum.hpp"
#include "support/error_of.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
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

// Each worker has a thread of its own. Afterwards the manager is closed.
void with_workers(quorum& q, std::size_t workers, const std::function<void(std::size_t)>& work) {
    {
        const crew running(q.io, 4);
        asio::thread_pool pool(workers);
        for (std::size_t i = 0; i < workers; ++i) {
            asio::post(pool, [&work, i] { work(i); });
        }
        pool.join();
        q.manager->async_close(asio::use_future).get();
    }
    q.wait(*q.running);
}

constexpr std::size_t workers = 8;

// Called by one thread at a time, and for the start of an acquire by the one that begins it.
struct watcher : observer {
    void started(const operation& what) override {
        enter();
        if (what.kind == operation_kind::acquire) {
            wrong += what.resource == begun ? 0 : 1;
            ++starts;
        }
        --inside;
    }
    void ended(const operation&, const error_code&, const diagnostics&) override {
        enter();
        --inside;
    }
    void enter() {
        wrong += ++inside == 1 ? 0 : 1;
        static_cast<void>(manager->get_metrics());
    }

    static thread_local std::string begun; // by this thread
    lock_manager* manager = nullptr;
    std::atomic<int> inside{0};
    std::atomic<int> wrong{0};
    std::size_t starts = 0;
};
thread_local std::string watcher::begun;

TEST_CASE("many threads share an observed manager whose context several threads run") {
    constexpr int rounds = 25;
    const auto seen = std::make_shared<watcher>();
    quorum q(3, [&](config& settings) { settings.observer = seen; });
    seen->manager = &*q.manager;
    q.start();
    std::atomic<std::size_t> acquired{0};
    std::atomic<int> strange{0};
    with_workers(q, workers, [&](std::size_t me) {
        for (int round = 0; round < rounds; ++round) {
            const bool shared = round % 3 == 0;
            const std::string name =
                shared ? "shared" + std::to_string(me % 3) : "own" + std::to_string(me);
            watcher::begun = name;
            try {
                lock held = q.manager->async_acquire(name, patiently(), asio::use_future).get();
                acquired += held.held() ? 1 : 0;
                strange += held.resource() == name && held.secret().size() == 40 ? 0 : 1;
                if (round % 2 == 0) {
                    held.async_extend(25s, asio::use_future).get();
                }
                static_cast<void>(q.manager->get_health());
                static_cast<void>(q.manager->get_metrics());
                static_cast<void>(held.remaining());
                if (round % 4 == 3) {
                    continue; // the destructor releases it
                }
                const release_result result = held.async_release(asio::use_future).get();
                strange += result == release_result::released ? 0 : 1;
            } catch (const boost::system::system_error&) {
                ++strange;
            }
        }
    });
    CHECK(acquired == workers * rounds);
    CHECK(strange == 0);
    CHECK(q.keys() == 0);
    CHECK(seen->wrong == 0);
    CHECK(seen->starts == workers * rounds);
}

TEST_CASE("locks that are renewed, lost and released by several threads stay whole") {
    started_quorum q;
    std::atomic<std::size_t> losses{0};
    std::atomic<std::size_t> results{0};
    acquire_options options = patiently(300ms);
    options.renew = true;
    options.max_hold = 500ms;
    with_workers(q, workers, [&](std::size_t me) {
        const std::string name = "r" + std::to_string(me);
        for (int round = 0; round < 3; ++round) {
            lock held = q.manager->async_acquire(name, options, asio::use_future).get();
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
    CHECK(losses + results == workers * 3);
    CHECK(losses >= workers);
}

TEST_CASE("acquires are cancelled on the strands of their handlers while others go on") {
    constexpr int operations = 200;
    started_quorum q;
    std::atomic<int> ended{0};
    std::atomic<int> strange{0};
    std::deque<asio::cancellation_signal> signals(operations);
    std::vector<asio::strand<asio::io_context::executor_type>> strands(
        operations, asio::make_strand(q.io));
    {
        const crew running(q.io, 4);
        for (int i = 0; i < operations; ++i) {
            strands[i] = asio::make_strand(q.io);
            const auto note = [&, i](error_code error, const lock& held) {
                const bool fine = error ? error == asio::error::operation_aborted : held.valid();
                strange += fine && strands[i].running_in_this_thread() ? 0 : 1;
                ++ended;
            };
            asio::post(strands[i], [&, i, note] {
                q.manager->async_acquire(
                    "r" + std::to_string(i % 10),
                    patiently(),
                    asio::bind_cancellation_slot(
                        signals[i].slot(), asio::bind_executor(strands[i], note)));
            });
        }
        for (int i = 0; i < operations; ++i) {
            asio::post(strands[i], [&, i] { signals[i].emit(asio::cancellation_type::terminal); });
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

TEST_CASE("threads that wait for each other at a mutex end with the manager") {
    quorum q;
    const crew running(q.io, 1);
    std::optional<blocking::manager> goes(std::in_place, q.settings);
    blocking::mutex m(*goes, "r", patiently());
    m.lock();
    error_code waited;
    error_code tried;
    std::thread waits([&] { waited = error_of([&] { m.lock(); }); });
    std::thread tries([&] { tried = error_of([&] { static_cast<void>(m.try_lock_for(1h)); }); });
    goes.reset();
    waits.join();
    tries.join();
    CHECK(waited == errc::closed);
    CHECK(tried == errc::closed);
    m.unlock();
}

TEST_CASE("each of many threads is woken for its own result") {
    quorum q;
    const crew running(q.io, 1);
    blocking::manager shared(q.settings);
    std::atomic<int> held{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 300; ++i) { // more than have a bit of their own
        threads.emplace_back([&, i] {
            blocking::mutex mine(shared, std::to_string(i), patiently());
            const std::scoped_lock guard(mine);
            held += mine.held() ? 1 : 0;
        });
    }
    threads.clear();
    CHECK(held == 300);
}
TEST_CASE("the work of a scope runs on a strand, whatever ran there before") {
    constexpr std::size_t rounds = 25;
    started_quorum q;
    std::atomic<std::size_t> right{0};
    with_workers(q, workers, [&](std::size_t me) {
        for (std::size_t round = 0; round < rounds; ++round) {
            const auto steps = std::make_shared<std::size_t>(0); // which is not atomic
            const auto work = [&, steps](lock&) -> asio::awaitable<void> {
                const auto strand = co_await asio::this_coro::executor;
                for (std::size_t i = 0; i < 3; ++i) {
                    asio::post(strand, [steps] { ++*steps; });
                    ++*steps;
                    co_await asio::post(asio::use_awaitable);
                }
                right += *steps == 6 ? 1 : 0;
            };
            const std::string name = "own" + std::to_string(me);
            async_with_lock(*q.manager, name, patiently(), work, asio::use_future).get();
        }
    });
    CHECK(right == workers * rounds);
}

}} // namespace redlock::test
