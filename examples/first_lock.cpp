// The first program: acquires a lock on a majority of the masters, works, and releases it.
//
//     g++ -std=c++20 first_lock.cpp $(pkg-config --cflags --libs redlock) -o first_lock
//     ./first_lock redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

#include <boost/asio.hpp>

#include <exception>
#include <iostream>

namespace asio = boost::asio;

asio::awaitable<void> first_lock(redlock::lock_manager& manager) {
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(5);   // renewed as long as `lock` lives
    options.wait = std::chrono::seconds(20); // at most: for masters, and for a release
    redlock::lock lock = co_await manager.async_acquire("reports/daily", options); // throws
    if (lock.held()) { // check again before each step that must not be done twice
        std::cout << "got it: " << lock.resource() << '\n';
    }
    co_await lock.async_release();
    co_await manager.async_close(); // ends async_run, and so the program
}

int main(int argc, char** argv) try {
    redlock::config config;
    config.masters.assign(argv + 1, argv + argc);
    // The longest lease of all your programs. Masters that restarted less than this ago do not
    // vote, so with new masters the program begins by waiting for as long.
    config.max_ttl = std::chrono::seconds(5);
    config.log = redlock::log_to_stderr(); // says what is waited for, after a second

    asio::io_context io;
    redlock::lock_manager manager(io, config); // throws if the config is wrong
    manager.async_run(asio::detached);
    asio::co_spawn(io, first_lock(manager), [](std::exception_ptr error) {
        if (error) {
            std::rethrow_exception(error);
        }
    });
    io.run();
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n'; // with the vote of each master
    return 1;
}
