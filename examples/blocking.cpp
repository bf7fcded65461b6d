// For code that blocks: a thread runs the library, this one waits for futures.
//
//     blocking redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/redlock.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <exception>
#include <future>
#include <iostream>
#include <stdexcept>
#include <thread>

namespace asio = boost::asio;

namespace {

void work_under_lock(redlock::lock_manager& manager) {
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(5);
    options.wait = std::chrono::milliseconds(10'000);
    // get() throws boost::system::system_error with the reason when the lock was not to be had.
    redlock::lock lock = manager.async_acquire("invoices", options, asio::use_future).get();

    // Blocking work is fine here: the lock is renewed by the other thread.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!lock.held()) {
        throw std::runtime_error("the lock was lost, the work is not used");
    }
    std::cout << "worked, with " << lock.remaining() / std::chrono::milliseconds(1)
              << " ms of the lease left\n";

    // The destructor would also release, in the background, but could not tell how it went.
    const auto result = lock.async_release(asio::use_future).get();
    std::cout << "the lock was " << to_string(result) << '\n';
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        // Allowed only where nobody can have held a lock before these masters started, as in this
        // example's test, which starts them itself. In production leave it on.
        config.quarantine = redlock::quarantine::off;

        asio::io_context io;
        redlock::lock_manager manager(io.get_executor(), config);
        manager.async_run(asio::detached); // also keeps run() busy until the manager is closed
        const std::jthread library([&io] { io.run(); });
        int status = 0;
        try {
            work_under_lock(manager);
        } catch (const std::exception& error) {
            std::cout << "failed: " << error.what() << '\n';
            status = 1;
        }
        manager.async_close(asio::use_future).get(); // whatever happened, or run() never ends
        return status;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 2;
    }
}
