// Running with a time limit, tested.
#include "run.hpp"
#include "support/test.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace asio = boost::asio;
using namespace redlock::test;

TEST_CASE("run rethrows, ignores results and does not hang") {
    asio::io_context io;
    CHECK_THROWS_AS(
        run(io,
            []() -> asio::awaitable<void> {
                throw std::logic_error("expected");
                co_return;
            }),
        std::logic_error);
    run(io, []() -> asio::awaitable<int> { co_return 1; });
    asio::steady_timer never(io, asio::steady_timer::time_point::max());
    CHECK_THROWS_AS(
        run(
            io,
            [&never]() -> asio::awaitable<void> { co_await never.async_wait(asio::use_awaitable); },
            1s),
        time_limit_error);
    CHECK_THROWS_AS(
        run_until(
            io, [] { return false; }, 1s),
        time_limit_error);
}
