// The lock as a scope: work that is cancelled when the lock is lost, and a lock that is released
// however the work ends.
//
//     with_lock redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

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

namespace {

// Each co_await in here is a point where a loss of the lock ends the work, as an exception.
asio::awaitable<void> work(redlock::lock& lock, std::chrono::milliseconds step) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (int i = 1; i <= 5; ++i) {
        timer.expires_after(step);
        co_await timer.async_wait(asio::use_awaitable);
        // Nothing interrupts this between two co_awaits: check before what must not be done twice.
        if (lock.held()) {
            std::cout << "step " << i << '\n';
        }
    }
}

asio::awaitable<void> run(redlock::lock_manager& manager) {
    // Made before the statement with co_await: g++ 12 destroys what a lambda in it has captured
    // twice.
    redlock::locked_work short_work = [](redlock::lock& lock) {
        return work(lock, std::chrono::milliseconds(20));
    };
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(1);
    co_await redlock::async_with_lock(manager, "crawler", options, short_work, asio::use_awaitable);
    std::cout << "all steps done, the lock is released\n";

    // The same work, but slower, and with a lock that must not be kept for longer than half a
    // second. It is lost in the middle.
    redlock::locked_work long_work = [](redlock::lock& lock) {
        return work(lock, std::chrono::milliseconds(200));
    };
    options.max_hold = std::chrono::milliseconds(500);
    try {
        co_await redlock::async_with_lock(
            manager, "crawler", options, long_work, asio::use_awaitable);
    } catch (const boost::system::system_error& error) {
        std::cout << (error.code() == redlock::errc::lost ? "stopped: " : "failed: ")
                  << error.code().message() << '\n';
    }
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        config.max_ttl = std::chrono::seconds(1);

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, run(manager), [&](const std::exception_ptr& error) {
            status = error ? 1 : 0;
            manager.async_close(asio::detached); // run() returns when all is closed
        });
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
