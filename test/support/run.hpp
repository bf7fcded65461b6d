// Runs an io_context on behalf of a test until something has happened, and fails instead of
// hanging: every coroutine of the tests goes through here.
//
// With g++ 12, name what carries a string or a capture before the statement that co_awaits it.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

namespace redlock::test {

inline constexpr std::chrono::seconds time_limit(30);

// Runs a coroutine (an awaitable, or a function object that returns one; what it returns in turn is
// ignored) on the context until it ends, whatever other work there is. Rethrows its exception.
// Throws std::runtime_error after the limit; the coroutine is then left to the context.
template <class Awaitable>
void run(boost::asio::io_context& io, Awaitable coroutine) {
    struct outcome {
        bool ended = false;
        std::exception_ptr error;
    };
    const auto result = std::make_shared<outcome>();
    const auto deadline = std::chrono::steady_clock::now() + time_limit;
    boost::asio::co_spawn(io, std::move(coroutine), [result](std::exception_ptr error, auto&&...) {
        result->ended = true;
        result->error = std::move(error);
    });
    io.restart();
    while (!result->ended) {
        if (io.run_one_until(deadline) == 0) {
            throw std::runtime_error("time limit: the coroutine has not ended");
        }
    }
    if (result->error) {
        std::rethrow_exception(result->error);
    }
}

// Runs the context until the predicate holds. It is asked after every handler, and now and then
// besides, since what it looks at may be changed by another thread.
template <class Predicate>
void run_until(boost::asio::io_context& io, Predicate predicate) {
    constexpr std::chrono::milliseconds glance_interval(10);
    const auto guard = boost::asio::make_work_guard(io);
    const auto deadline = std::chrono::steady_clock::now() + time_limit;
    io.restart();
    while (!predicate()) {
        const auto now = std::chrono::steady_clock::now();
        if (now >= deadline) {
            throw std::runtime_error("time limit: the condition has not come true");
        }
        io.run_one_until(std::min(deadline, now + glance_interval));
    }
}

} // namespace redlock::test
