// Tutorial, page 4: waiting for the lock, in turns, for as long as one likes, until Ctrl-C.
//
//     report_4 WAIT JOBS DATA MASTER...
//     report_4 forever 2 redis://127.0.0.1:7200 redis://127.0.0.1:7101 redis://127.0.0.1:7102 ...
//
// WAIT is "forever" or a number of seconds, JOBS how many reports this process makes.

#include "store.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

asio::awaitable<void> make_report(redlock::lock& lock, store& data) {
    const std::uint64_t token = lock.fencing_token();
    std::cout << "my token is " << token << std::endl;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(3s);
    co_await timer.async_wait(asio::use_awaitable);
    if (!lock.held()) {
        co_return;
    }
    data.save(token, "rendered");
    std::cout << "stored" << std::endl;
}

asio::awaitable<void> run(redlock::lock_manager& manager, store& data, redlock::wait_for wait) {
    redlock::acquire_options options;
    options.ttl = 2s;
    options.stop_margin = 500ms;
    options.wait = wait;
    options.fifo = true;
    options.fencing = true;
    const redlock::locked_work work = [&data](redlock::lock& lock) {
        return make_report(lock, data);
    };
    std::cout << "waiting" << std::endl;
    co_await redlock::async_with_lock(manager, "reports/daily", options, work, asio::use_awaitable);
}

redlock::wait_for wait_of(const std::string& text) {
    return text == "forever" ? redlock::wait_for::forever()
                             : redlock::wait_for(std::chrono::seconds(std::stoi(text)));
}

int status_of(const std::exception_ptr& error) {
    try {
        if (error) {
            std::rethrow_exception(error);
        }
        return 0;
    } catch (const redlock::stale_token_error& refused) {
        std::cout << "refused: " << refused.what() << std::endl;
        return 4;
    } catch (const boost::system::system_error& failure) {
        std::cout << "stopped: " << failure.code().message() << std::endl;
        return failure.code() == redlock::errc::lost ? 3 : 1;
    }
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 5) {
            throw std::invalid_argument("usage: report_4 WAIT JOBS DATA MASTER...");
        }
        store data{redlock::endpoint(argv[3])};
        redlock::config config;
        config.masters.assign(argv + 4, argv + argc);
        config.max_ttl = 5s;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);

        // A signal for each job, as a cancellation slot is for one operation.
        std::vector<asio::cancellation_signal> cancel(std::stoul(argv[2]));
        asio::signal_set interrupt(io, SIGINT, SIGTERM);
        interrupt.async_wait([&](redlock::error_code error, int) {
            for (asio::cancellation_signal& one : cancel) {
                if (!error) {
                    one.emit(asio::cancellation_type::terminal);
                }
            }
        });
        int status = 0;
        std::size_t left = cancel.size();
        for (asio::cancellation_signal& one : cancel) {
            asio::co_spawn(
                io,
                run(manager, data, wait_of(argv[1])),
                asio::bind_cancellation_slot(one.slot(), [&](const std::exception_ptr& error) {
                    status = std::max(status, status_of(error));
                    if (--left == 0) {
                        interrupt.cancel();
                        manager.async_close(asio::detached);
                    }
                }));
        }
        io.run();
        std::cout << "handed off in this process: " << manager.get_metrics().local_handoffs
                  << std::endl;
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
