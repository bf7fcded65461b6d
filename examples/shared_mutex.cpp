// Readers and a writer: a catalogue that many read and one replaces. The writer goes on as a reader
// without letting another writer in between.
//
//     shared_mutex redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <iostream>

namespace asio = boost::asio;

namespace {

asio::awaitable<void> work(redlock::lock_manager& manager) {
    redlock::acquire_options reads; // wait for up to 10 s
    reads.mode = redlock::lock_mode::shared;
    redlock::lock one = co_await manager.async_acquire("catalogue", reads, asio::use_awaitable);
    redlock::lock two = co_await manager.async_acquire("catalogue", reads, asio::use_awaitable);
    std::cout << "two read\n";
    co_await one.async_release(asio::use_awaitable);
    co_await two.async_release(asio::use_awaitable);

    redlock::acquire_options writes;
    writes.mode = redlock::lock_mode::exclusive;
    writes.fencing = true; // so that the store can refuse a writer whose time is over
    redlock::lock writer = co_await manager.async_acquire("catalogue", writes, asio::use_awaitable);
    std::cout << "one writes, with token " << writer.fencing_token() << '\n';

    co_await writer.async_downgrade(asio::use_awaitable);
    redlock::lock beside = co_await manager.async_acquire("catalogue", reads, asio::use_awaitable);
    std::cout << "it reads on, together with another one\n";
    co_await beside.async_release(asio::use_awaitable);
    co_await writer.async_release(asio::use_awaitable);
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        // Use this only if no client can have held a lock before these masters started, as in this
        // example's test, which starts them. In production leave it on.
        config.quarantine = false;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached);
        int status = 0;
        asio::co_spawn(io, work(manager), [&](const std::exception_ptr& error) {
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
