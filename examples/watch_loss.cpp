// Being told when a lock is lost: async_wait_lost ends at the latest when the lease does, less the
// stop margin, whether or not a master can be reached.
//
//     watch_loss redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103
//
// While it holds the lock, kill or stop two of three masters, or remove the key: it will tell why
// the lock is gone. Without that it gives the lock up after ten seconds.

#include <redlock/redlock.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <exception>
#include <iostream>

namespace asio = boost::asio;

namespace {

asio::awaitable<void> lead(redlock::lock_manager& manager) {
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(2);
    options.wait = redlock::wait_for::forever();
    options.max_hold = std::chrono::seconds(10);
    // Time to put the work down before somebody else can take it up.
    options.stop_margin = std::chrono::milliseconds(200);
    redlock::lock lock = co_await manager.async_acquire("leader", options, asio::use_awaitable);
    std::cout << "leading" << std::endl;

    redlock::diagnostics last_votes;
    auto loss = co_await lock.async_wait_lost(last_votes, asio::as_tuple(asio::use_awaitable));
    auto& [error, reason] = loss;
    // There is no error here: nobody has released the lock. Still 200 ms of the lease are left.
    std::cout << "lost: " << to_string(reason) << "\nlast votes: " << to_string(last_votes) << '\n';
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        config.max_ttl = std::chrono::seconds(2);

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, lead(manager), [&](const std::exception_ptr& error) {
            status = error ? 1 : 0;
            manager.async_close(asio::detached);
        });
        io.run();
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
