// What a first user writes: it needs no server, only that the library is found, compiles and links.
#include <redlock/redlock.hpp>

#include <boost/asio/io_context.hpp>

#include <iostream>
#include <mutex>

int main() {
    redlock::config config;
    config.masters = {"redis://127.0.0.1:1", "redis://127.0.0.1:2", "redis://127.0.0.1:3"};

    redlock::validate(config);

    boost::asio::io_context io;
    redlock::lock_manager manager(io.get_executor(), config);

    // The same for code that blocks, with the standard guards.
    redlock::blocking::manager masters(config);
    redlock::blocking::mutex mutex(masters, "resource");
    const std::unique_lock guard(mutex, std::defer_lock);
    std::cout << "redlock " << REDLOCK_VERSION_STRING << '\n';
}
