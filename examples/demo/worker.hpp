// A worker: increments the counters, each increment under a lock. Runs in a process of its own,
// with a lock manager and connections of its own.
#pragma once

#include "board.hpp"
#include "settings.hpp"

#include <redlock/redlock.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace demo {

// The resource that guards a counter.
std::string counter_name(std::size_t index);

class worker {
public:
    worker(
        board& shared,
        std::size_t index,
        const settings& chosen,
        const std::vector<std::string>& urls);

    // Works until the board's flag to stop is set. Returns the exit status of its process.
    int run();

private:
    boost::asio::awaitable<void> work();
    boost::asio::awaitable<void> turn();
    boost::asio::awaitable<void> increment(redlock::lock& lock, guarded_counter& counter);
    boost::asio::awaitable<void> sleep(std::chrono::microseconds duration);
    boost::asio::awaitable<void> stop_requested();

    void publish(const redlock::error_code& error, const redlock::diagnostics& diagnostics);
    std::chrono::microseconds
    between(std::chrono::microseconds low, std::chrono::microseconds high);
    std::chrono::microseconds work_time();

    boost::asio::io_context io_{1};
    board& board_;
    worker_slot& slot_;
    std::size_t index_;
    bool unlocked_;
    redlock::lock_manager manager_;
    redlock::acquire_options options_;
    std::mt19937_64 random_;
};

} // namespace demo
