// A batch that several instances work through together: each account is billed once, at most K at a
// time and at most R in any second, by all instances taken together. Everything is locks, many at
// once, over one connection to each master.
//
//     rate_limited_batch ACCOUNTS K R DIRECTORY MASTER...
//     rate_limited_batch 1000 8 50 /srv/bills redis://127.0.0.1:7101 redis://127.0.0.1:7102 ...
//
// Bills account-1 to account-ACCOUNTS, each into a file of the directory that all instances share.

#include <redlock/lock_manager.hpp>
#include <redlock/slot_pool.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

class batch {
public:
    batch(redlock::lock_manager& manager, fs::path out, int accounts, int at_once, int per_second)
        : manager_(manager),
          out_(std::move(out)),
          accounts_(accounts),
          places_(manager, "bills/at-once", static_cast<std::size_t>(at_once)),
          turns_(manager, "bills/per-second", static_cast<std::size_t>(per_second)) {}

    // One of several that take the next account until there is none.
    asio::awaitable<void> work() {
        while (next_ <= accounts_) {
            const std::string account = "account-" + std::to_string(next_++);
            if (fs::exists(out_ / account)) {
                ++skipped_; // saves the locks; what counts is the look under the lock
            } else {
                co_await bill(account);
            }
        }
    }

    void report() const {
        std::cout << "billed " << billed_ << ", skipped " << skipped_ << ", left " << left_
                  << std::endl;
    }
    bool complete() const { return left_ == 0; }

private:
    asio::awaitable<void> bill(std::string account) {
        redlock::acquire_options options;
        options.ttl = 2s;
        options.wait = redlock::wait_for::forever();
        redlock::slot place = co_await places_.async_acquire(options, asio::use_awaitable);

        auto token = asio::as_tuple(asio::use_awaitable);
        options.wait = redlock::wait_for::none(); // who has it is billing it
        auto taken = co_await manager_.async_acquire("accounts/" + account, options, token);
        auto& [error, lock] = taken;
        if (error || fs::exists(out_ / account)) {
            ++(error && error != redlock::errc::contended ? left_ : skipped_);
        } else {
            co_await wait_for_turn();
            if (place.held() && lock.held()) {
                co_await write_bill(account);
                ++billed_;
            } else {
                ++left_;
            }
        }
        if (lock.valid()) {
            co_await lock.async_release(token);
        }
        co_await place.async_release(token);
    }

    // A rate limit is a pool whose slots nobody gives back: each is taken for its ttl, so that no
    // more than R are handed out in any second, whoever asks.
    asio::awaitable<void> wait_for_turn() {
        redlock::acquire_options options;
        options.ttl = 1s;
        options.renew = redlock::renewal::off;
        options.wait = redlock::wait_for::forever();
        redlock::slot turn = co_await turns_.async_acquire(options, asio::use_awaitable);
        turn.abandon();
    }

    // Stands for the call of a service that allows so many at a time and so many in a second.
    asio::awaitable<void> write_bill(std::string account) {
        using std::chrono::steady_clock;
        const auto begin = steady_clock::now().time_since_epoch().count();
        asio::steady_timer call(co_await asio::this_coro::executor, 20ms);
        co_await call.async_wait(asio::use_awaitable);
        std::ofstream bill(out_ / account, std::ios::app);
        bill << begin << ' ' << steady_clock::now().time_since_epoch().count() << std::endl;
    }

    redlock::lock_manager& manager_;
    const fs::path out_;
    const int accounts_;
    redlock::slot_pool places_;
    redlock::slot_pool turns_;
    int next_ = 1;
    int billed_ = 0;
    int skipped_ = 0; // had a bill, or another instance was at it
    int left_ = 0;    // no quorum, or the lock was lost: for the next run
};

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 6) {
            throw std::invalid_argument(
                "usage: rate_limited_batch ACCOUNTS K R DIRECTORY MASTER...");
        }
        const int at_once = std::stoi(argv[2]);
        redlock::config config;
        config.masters.assign(argv + 5, argv + argc);
        config.max_ttl = 2s;
        // Releases are asked for rather than listened to: that would be a second connection.
        config.wake_ups = redlock::wake_up::poll;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        batch bills(manager, argv[4], std::stoi(argv[1]), at_once, std::stoi(argv[3]));
        manager.async_run(asio::detached);
        int status = 0;
        int workers = at_once; // this instance may have to do it alone
        const auto ended = [&](const std::exception_ptr& error) {
            try {
                if (error) {
                    std::rethrow_exception(error);
                }
            } catch (const std::exception& why) {
                std::cerr << "rate_limited_batch: " << why.what() << '\n';
                status = 1;
            }
            if (--workers == 0) {
                manager.async_close(asio::detached);
            }
        };
        for (int i = 0; i < at_once; ++i) {
            asio::co_spawn(io, bills.work(), ended);
        }
        io.run();
        bills.report();
        return bills.complete() ? status : 1;
    } catch (const std::exception& error) {
        std::cerr << "rate_limited_batch: " << error.what() << '\n';
        return 2;
    }
}
