// Tutorial, page 2: what happens when the lock is lost.
//
//     report_2 redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

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
using namespace std::chrono_literals;

namespace {

void tell_loss(redlock::error_code error, redlock::loss_reason reason) {
    if (!error) { // otherwise it was released, not lost
        std::cout << "the lock is lost: " << to_string(reason) << std::endl;
    }
}

// If the lock is lost, the operation that this awaits throws operation_aborted.
asio::awaitable<void> make_report(redlock::lock& lock) {
    lock.async_wait_lost(tell_loss);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (int step = 1; step <= 10; ++step) {
        timer.expires_after(400ms);
        co_await timer.async_wait(asio::use_awaitable);
        // Nothing interrupts this between two co_awaits: check before each step.
        if (!lock.held()) {
            co_return;
        }
        std::cout << "step " << step << " of 10" << std::endl;
    }
}

asio::awaitable<void> run(redlock::lock_manager& manager) {
    redlock::acquire_options options;
    options.ttl = 2s;
    options.stop_margin = 500ms; // what make_report needs to stop
    options.wait = redlock::wait_for::forever();
    const redlock::locked_work work = make_report;
    co_await redlock::async_with_lock(manager, "reports/daily", options, work, asio::use_awaitable);
    std::cout << "done, and the lock is released" << std::endl;
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        config.max_ttl = 5s;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, run(manager), [&](const std::exception_ptr& error) {
            manager.async_close(asio::detached);
            try {
                if (error) {
                    std::rethrow_exception(error);
                }
            } catch (const boost::system::system_error& failure) {
                std::cout << "stopped: " << failure.code().message() << std::endl;
                status = failure.code() == redlock::errc::lost ? 3 : 1;
            }
        });
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
