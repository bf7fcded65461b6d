// Two managers of one quorum, which is what two processes are to the masters.
#pragma once

#include "guarded_quorum.hpp"
#include "quorum_fixture.hpp"

#include <boost/asio/use_future.hpp>

#include <future>
#include <thread>

namespace redlock::test {

/// A waiter is woken, or waits without end.
inline void woken_or_never(config& c) {
    guarded(c);
    c.retry_delay_min = 5ms;
    c.retry_delay_max = 1h;
}

/// A site with a second process.
struct two_processes : quorum_fixture {
    explicit two_processes(std::size_t n = 3, const std::function<void(config&)>& change = guarded)
        : quorum_fixture(n, change),
          other(io, changed(change), n) {}
    client other;
};

/// Two that run, on two threads.
class managers_on_threads {
public:
    explicit managers_on_threads(const config& settings)
        : one(io_.get_executor(), settings),
          two(io_.get_executor(), settings) {
        for (int i = 0; i < 2; ++i) {
            threads_.emplace_back([this] { io_.run(); });
        }
        for (lock_manager* const each : {&one, &two}) {
            each->async_run([](error_code) {});
            each->async_ready(asio::use_future).get();
        }
    }
    managers_on_threads(const managers_on_threads&) = delete;
    managers_on_threads& operator=(const managers_on_threads&) = delete;
    ~managers_on_threads() {
        io_.stop();
        for (std::thread& each : threads_) {
            each.join();
        }
    }

    void close() {
        one.async_close(asio::use_future).get();
        two.async_close(asio::use_future).get();
    }

private:
    asio::io_context io_;
    asio::executor_work_guard<asio::io_context::executor_type> busy_{io_.get_executor()};

public:
    lock_manager one;
    lock_manager two;

private:
    std::vector<std::thread> threads_;
};

} // namespace redlock::test
