// Tutorial, page 1: one service, one lock.
//
//     report_1 redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// Stands for work that takes a while.
asio::awaitable<void> make_report() {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (int step = 1; step <= 10; ++step) {
        timer.expires_after(400ms);
        co_await timer.async_wait(asio::use_awaitable);
        std::cout << "step " << step << " of 10" << std::endl;
    }
}

asio::awaitable<void> run(redlock::lock_manager& manager) {
    std::cout << "waiting until a majority of the masters may vote" << std::endl;
    co_await manager.async_ready(asio::use_awaitable);

    redlock::acquire_options options;
    options.ttl = 2s;                         // renewed for as long as `lock` lives
    options.wait = redlock::wait_for::none(); // one attempt, even if another owner holds the lock
    redlock::diagnostics votes;
    auto result = co_await manager.async_acquire(
        "reports/daily",
        options,
        redlock::with_diagnostics(votes, asio::as_tuple(asio::use_awaitable)));
    auto& [error, lock] = result;
    std::cout << to_string(votes) << std::endl;
    if (error == redlock::condition::not_acquired) {
        std::cout << "another one makes the report" << std::endl;
        co_return;
    }
    if (error) { // not contention: an outage, or a shutdown
        throw boost::system::system_error(error);
    }
    co_await make_report();
    const redlock::release_result result_of_release =
        co_await lock.async_release(asio::use_awaitable);
    std::cout << "done, and the lock was " << to_string(result_of_release) << std::endl;
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        config.max_ttl = 5s; // the longest ttl of all programs that use these masters

        asio::io_context io;
        redlock::lock_manager manager(io, config); // throws if the config is wrong
        manager.async_run(asio::detached);         // keeps the connections
        int status = 0;
        asio::co_spawn(io, run(manager), [&](const std::exception_ptr& error) {
            manager.async_close(asio::detached); // ends async_run, and so io.run()
            try {
                if (error) {
                    std::rethrow_exception(error);
                }
            } catch (const std::exception& failure) {
                std::cout << "failed: " << failure.what() << std::endl;
                status = 1;
            }
        });
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
