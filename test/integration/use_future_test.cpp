// Blocking use: plain threads that wait for futures while other threads run the context.
#include "quorum_fixture.hpp"

#include <boost/asio/use_future.hpp>

#include <atomic>
#include <future>
#include <thread>

namespace redlock::test { namespace {

// A context that two threads run.
class running_context {
public:
    running_context() {
        for (int i = 0; i < 2; ++i) {
            threads_.emplace_back([this] { io.run(); });
        }
    }
    ~running_context() {
        guard_.reset();
        for (std::thread& one : threads_) {
            one.join();
        }
    }

    asio::io_context io;

private:
    asio::executor_work_guard<asio::io_context::executor_type> guard_ = asio::make_work_guard(io);
    std::vector<std::thread> threads_;
};

template <class T>
T get(std::future<T> future) {
    if (future.wait_for(30s) != std::future_status::ready) {
        throw time_limit_error("the future is not ready");
    }
    return future.get();
}

TEST_CASE("a plain thread takes, extends and releases a lock by futures") {
    quorum_of_masters masters(3);
    running_context context;
    lock_manager manager(context.io.get_executor(), config_for(masters.urls()));
    auto running = manager.async_run(asio::use_future);
    get(manager.async_ready(asio::use_future));
    lock mine = get(manager.async_acquire("r", waiting(10s), asio::use_future));
    CHECK(mine.held());
    auto lost = mine.async_wait_lost(asio::use_future);
    get(mine.async_extend(20s, asio::use_future));
    CHECK(mine.remaining() > 10s);
    CHECK(get(manager.async_query("r", asio::use_future)).state == lock_state::held);
    CHECK(get(mine.async_release(asio::use_future)) == release_result::released);
    CHECK_THROWS_AS(get(std::move(lost)), boost::system::system_error);
    get(manager.async_close(asio::use_future));
    get(std::move(running));
}

TEST_CASE("eight threads share one manager, and are never in together") {
    constexpr int threads = 8;
    constexpr int rounds = 10;
    quorum_of_masters masters(3);
    running_context context;
    lock_manager manager(context.io.get_executor(), config_for(masters.urls()));
    manager.async_run([](error_code) {});
    get(manager.async_ready(asio::use_future));
    std::atomic<int> inside = 0;
    std::atomic<int> overlaps = 0;
    std::atomic<int> failures = 0;
    int counter = 0; // protected by the lock alone
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] {
            for (int round = 0; round < rounds; ++round) {
                try {
                    lock mine = get(manager.async_acquire("r", waiting(60s), asio::use_future));
                    overlaps += inside.fetch_add(1) == 0 ? 0 : 1;
                    ++counter;
                    inside.fetch_sub(1);
                    get(mine.async_release(asio::use_future));
                } catch (const std::exception&) {
                    ++failures;
                }
            }
        });
    }
    for (std::thread& one : all) {
        one.join();
    }
    CHECK(overlaps == 0);
    CHECK(failures == 0);
    CHECK(counter == threads * rounds);
    get(manager.async_close(asio::use_future));
    CHECK(masters.total_keys() == 0);
}

}} // namespace redlock::test
