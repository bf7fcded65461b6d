// A lock as the scope of a coroutine: cancelled into it on loss, released however it ends.
#include "quorum_fixture.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/matchers/catch_matchers.hpp>

using namespace redlock;
using namespace redlock::test;

namespace {

asio::awaitable<void> sleep_for(milliseconds time) {
    const auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor, time);
    co_await timer.async_wait(asio::use_awaitable);
}

// Runs the scope to its end and gives what it ended with.
std::exception_ptr
with_lock(quorum_fixture& site, const acquire_options& options, locked_work work) {
    const auto state = std::make_shared<std::optional<std::exception_ptr>>();
    async_with_lock(
        site.me.manager(), "r", options, std::move(work), [state](std::exception_ptr error) {
            *state = std::move(error);
        });
    run_until(site.io, [&] { return state->has_value(); });
    return **state;
}

error_code code_of(const std::exception_ptr& error) {
    if (!error) {
        return {};
    }
    try {
        std::rethrow_exception(error);
    } catch (const boost::system::system_error& system) {
        return system.code();
    }
}

asio::awaitable<void> note_held(lock& mine, bool& held) {
    held = mine.held();
    co_await sleep_for(10ms);
    held = held && mine.held();
}

asio::awaitable<void> fail(lock&) {
    co_await sleep_for(1ms);
    throw std::runtime_error("the work's own");
}

asio::awaitable<void> sleep_long(lock&, bool& cancelled) {
    try {
        co_await sleep_for(60s);
    } catch (const boost::system::system_error& error) {
        cancelled = error.code() == asio::error::operation_aborted;
        throw;
    }
}

} // namespace

TEST_CASE("the work runs while the lock is held, and the lock is released after it") {
    quorum_fixture site(3);
    bool held = false;
    const auto error =
        with_lock(site, once(), [&held](lock& mine) { return note_held(mine, held); });
    CHECK(!error);
    CHECK(held);
    CHECK(site.me.count().released == 1);
    CHECK(site.no_key_left());
}

TEST_CASE("the work's exception comes out, and the lock is released") {
    quorum_fixture site(3);
    const auto error = with_lock(site, once(), [](lock& mine) { return fail(mine); });
    CHECK_THROWS_WITH(std::rethrow_exception(error), "the work's own");
    CHECK(site.no_key_left());
    CHECK(site.settled());
}

TEST_CASE("a lock that cannot be had is an error, and the work never runs") {
    quorum_fixture site(3);
    client other(site.io, config_for(site.masters.urls()));
    other.until_admitted(3);
    lock theirs = other.take("r");
    bool held = false;
    const auto error =
        with_lock(site, once(), [&held](lock& mine) { return note_held(mine, held); });
    CHECK(code_of(error) == errc::contended);
    CHECK_FALSE(held);
}

TEST_CASE("the work is cancelled when the lock is lost") {
    quorum_fixture site(3);
    bool cancelled = false;
    const auto state = std::make_shared<std::optional<std::exception_ptr>>();
    async_with_lock(
        site.me.manager(),
        "r",
        once(2s),
        [&cancelled](lock& mine) { return sleep_long(mine, cancelled); },
        [state](std::exception_ptr error) { *state = std::move(error); });
    run_until(site.io, [&] { return site.me.count().held == 1; });
    site.everywhere({"FLUSHALL"});
    run_until(site.io, [&] { return state->has_value(); });
    CHECK(cancelled);
    CHECK(code_of(**state) == errc::lost);
    CHECK(site.settled());
}

TEST_CASE("cancelling the scope cancels the work, and the lock is released") {
    quorum_fixture site(3);
    bool cancelled = false;
    asio::cancellation_signal cancel;
    const auto state = std::make_shared<std::optional<std::exception_ptr>>();
    async_with_lock(
        site.me.manager(),
        "r",
        once(30s),
        [&cancelled](lock& mine) { return sleep_long(mine, cancelled); },
        asio::bind_cancellation_slot(
            cancel.slot(), [state](std::exception_ptr error) { *state = std::move(error); }));
    run_until(site.io, [&] { return site.me.count().held == 1; });
    site.pass(20ms);
    cancel.emit(asio::cancellation_type::terminal);
    run_until(site.io, [&] { return state->has_value(); });
    CHECK(cancelled);
    CHECK(code_of(**state) == asio::error::operation_aborted);
    CHECK(site.no_key_left());
    CHECK(site.settled());
}
