// Tutorial, page 3: the store refuses a late write.
//
//     report_3 DATA MASTER...
//     report_3 redis://127.0.0.1:7200 redis://127.0.0.1:7101 redis://127.0.0.1:7102 ...
//
// DATA is the Redis server that the report is stored in.

#include "store.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

void tell_loss(redlock::error_code error, redlock::loss_reason reason) {
    if (!error) {
        std::cout << "the lock is lost: " << to_string(reason) << std::endl;
    }
}

// In one piece: nothing can end it when the lock is lost.
std::string render() {
    std::cout << "rendering" << std::endl;
    std::this_thread::sleep_for(2s);
    return "rendered";
}

asio::awaitable<void> make_report(redlock::lock& lock, store& data) {
    const std::uint64_t token = lock.fencing_token();
    std::cout << "my token is " << token << std::endl;
    lock.async_wait_lost(tell_loss);
    asio::steady_timer timer(co_await asio::this_coro::executor);
    timer.expires_after(400ms);
    co_await timer.async_wait(asio::use_awaitable);
    if (!lock.held()) {
        co_return;
    }
    const std::string report = render();
    // However long that took: the store refuses this write if a later owner has written.
    data.save(token, report);
    std::cout << "stored" << std::endl;
}

asio::awaitable<void> run(redlock::lock_manager& manager, store& data) {
    redlock::acquire_options options;
    options.ttl = 5s;
    options.stop_margin = 500ms;
    options.wait = redlock::wait_for::forever();
    options.fencing = true;
    const redlock::locked_work work = [&data](redlock::lock& lock) {
        return make_report(lock, data);
    };
    co_await redlock::async_with_lock(manager, "reports/daily", options, work, asio::use_awaitable);
    std::cout << "done, and the lock is released" << std::endl;
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 3) {
            throw std::invalid_argument("usage: report_3 DATA MASTER...");
        }
        store data{redlock::endpoint(argv[1])};
        redlock::config config;
        config.masters.assign(argv + 2, argv + argc);
        config.max_ttl = 5s;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, run(manager, data), [&](const std::exception_ptr& error) {
            manager.async_close(asio::detached);
            try {
                if (error) {
                    std::rethrow_exception(error);
                }
            } catch (const redlock::stale_token_error& refused) {
                std::cout << "refused: " << refused.what() << std::endl;
                status = 4;
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
