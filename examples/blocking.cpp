// For code that blocks: a manager with a thread of its own, and mutexes for the standard guards.
//
//     blocking redis://127.0.0.1:7101 redis://127.0.0.1:7102 redis://127.0.0.1:7103

#include <redlock/blocking.hpp>
#include <redlock/blocking_shared.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <thread>

namespace {

// Blocking work, in steps: it stops when the lock is lost.
void work(const std::stop_token& lost) {
    for (int step = 0; step < 5; ++step) {
        if (lost.stop_requested()) {
            throw std::runtime_error("the lock was lost, the work is not used");
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

void run(redlock::blocking::manager& manager) {
    redlock::acquire_options options;
    options.ttl = std::chrono::seconds(5);
    options.stop_margin = std::chrono::seconds(1); // time to stop in, while the lease still lasts
    redlock::blocking::mutex invoices(manager, "invoices", options);
    redlock::blocking::mutex customers(manager, "customers", options);
    {
        // Waits for options.wait, 10 s, and throws if the lock was not acquired by then. The
        // manager's thread renews it.
        const std::lock_guard guard(invoices);
        work(invoices.lost());
        std::cout << "worked, and " << (invoices.held() ? "still" : "no longer")
                  << " has the lock\n";
    }
    // Unlocking does not fail; the result is reported.
    if (const auto result = invoices.last_release()) {
        std::cout << "the lock was " << to_string(*result) << '\n';
    }
    {
        const std::scoped_lock both(invoices, customers); // in any order, without a deadlock
        std::cout << "both are locked\n";
    }
    if (std::unique_lock guard(invoices, std::chrono::milliseconds(100)); guard) {
        std::cout << "locked within 100 ms\n";
    }
    redlock::blocking::shared_mutex prices(manager, "prices", options);
    {
        const std::shared_lock mine(prices); // together with other readers, here and elsewhere
        const std::shared_lock another(prices);
        std::cout << "two read\n";
    }
    {
        const std::unique_lock alone(prices);
        std::cout << "one writes\n";
    }
    // Any asynchronous function can be waited for.
    const redlock::lock_status status = manager.call(
        [&](auto token) { return manager.async().async_query("invoices", std::move(token)); });
    std::cout << "now it is " << to_string(status.state) << '\n';
}

} // namespace

int main(int argc, char** argv) {
    try {
        redlock::config config;
        config.masters.assign(argv + 1, argv + argc);
        // Use this only if no client can have held a lock before these masters started, as in this
        // example's test, which starts them. In production leave it on.
        config.quarantine = false;

        redlock::blocking::manager manager(config);
        if (!manager.ready(std::chrono::seconds(10))) {
            std::cout << "no quorum within 10 s\n";
            return 1;
        }
        run(manager);
        return 0;
    } catch (const std::exception& error) {
        std::cout << "failed: " << error.what() << '\n';
        return 2;
    }
}
