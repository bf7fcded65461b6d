// The lock as the scope of a coroutine.
#include "quorum.hpp"

#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

namespace redlock::test { namespace {

using Catch::Matchers::StartsWith;

const error_code ended_early = asio::error::operation_aborted;

// What a scope ended with.
struct scope_outcome {
    asio::cancellation_signal signal;
    std::size_t calls = 0;
    std::exception_ptr thrown;

    auto handler() {
        return asio::bind_cancellation_slot(signal.slot(), [this](std::exception_ptr error) {
            ++calls;
            thrown = std::move(error);
        });
    }
    error_code error() const {
        try {
            if (thrown) {
                std::rethrow_exception(thrown);
            }
        } catch (const boost::system::system_error& failure) {
            return failure.code();
        }
        return {};
    }
    std::string text() const {
        try {
            std::rethrow_exception(thrown);
        } catch (const std::exception& failure) {
            return failure.what();
        }
    }
};

asio::awaitable<void> rest_for_ever(bool& resting, bool& interrupted) {
    asio::steady_timer never(co_await asio::this_coro::executor, 1h);
    resting = true;
    try {
        co_await never.async_wait(asio::use_awaitable);
    } catch (const boost::system::system_error&) {
        interrupted = true;
        throw;
    }
}

// A scope of the resource "r" in a quorum, and the work in it.
template <typename Work>
void begin_scope(
    quorum& q, scope_outcome& scope, Work work, const acquire_options& options = patiently()) {
    async_with_lock(*q.manager, "r", options, std::move(work), scope.handler());
}

// Work that ends with its scope only.
struct rest {
    bool resting = false;
    bool interrupted = false;

    auto work() {
        return [this](lock&) { return rest_for_ever(resting, interrupted); };
    }
};

TEST_CASE("work runs while the lock is held, which is released after it") {
    scope_outcome scope;
    started_quorum q;
    bool held_within = false;
    begin_scope(q, scope, [&](lock& mine) -> asio::awaitable<void> {
        asio::steady_timer pause(co_await asio::this_coro::executor, 1ms);
        co_await pause.async_wait(asio::use_awaitable);
        held_within = mine.held() && mine.resource() == "r";
    });
    CHECK(scope.calls == 0);
    q.run_until([&] { return scope.calls > 0; });
    CHECK(!scope.error());
    CHECK(held_within);
    CHECK(q.manager->get_metrics().released == 1); // before it completed
    q.run_until([&] { return q.keys() == 0; });
    CHECK(scope.calls == 1);
}

// g++ 12 destroys the captures of a lambda twice if it is written within the statement that has the
// `co_await`. include/redlock/with_lock.hpp names these forms.
TEST_CASE("work is passed to co_await in forms that every compiler compiles rightly") {
    const auto captured = std::make_shared<int>();
    int ran = 0;
    started_quorum q;
    const auto check = [&](auto form) {
        redlock::test::run(q.io, form);
        CHECK(captured.use_count() == 1); // no more and no fewer were destroyed than made
    };
    const acquire_options options = patiently();
    // named before the statement
    check([&]() -> asio::awaitable<void> {
        const locked_work work = [&ran, captured = captured](lock&) -> asio::awaitable<void> {
            ++ran;
            co_return;
        };
        co_await async_with_lock(*q.manager, "r", options, work);
    });
    // captures by reference only
    check([&]() -> asio::awaitable<void> {
        co_await async_with_lock(*q.manager, "r", options, [&](lock&) -> asio::awaitable<void> {
            ++ran;
            co_return;
        });
    });
    // bound to a lambda without captures
    check([&]() -> asio::awaitable<void> {
        constexpr auto work = [](int& runs, const auto&, lock&) -> asio::awaitable<void> {
            ++runs;
            co_return;
        };
        co_await async_with_lock(
            *q.manager, "r", options, std::bind_front(work, std::ref(ran), captured));
    });
    // started in a statement before
    check([&]() -> asio::awaitable<void> {
        auto begun = async_with_lock(
            *q.manager, "r", options, [&ran, captured = captured](lock&) -> asio::awaitable<void> {
                ++ran;
                co_return;
            });
        co_await std::move(begun);
    });
    // that can only be moved, and with the default options
    check([&]() -> asio::awaitable<void> {
        auto work = [&ran, owned = std::make_unique<int>(1)](lock&) -> asio::awaitable<int> {
            ran += *owned;
            co_return *owned;
        };
        const int got = co_await async_with_lock(*q.manager, "r", std::move(work));
        CHECK(got == 1);
    });
    CHECK(ran == 5);
}

TEST_CASE("work is cancelled when the lock is lost") {
    rest idle;
    scope_outcome scope;
    started_quorum q;
    acquire_options options = once(1500ms);
    options.renew = renewal::automatic;
    begin_scope(q, scope, idle.work(), options);
    q.run_until([&] { return idle.resting; });
    q.run_until([&] { return q.keys() == 3; });
    q.masters[0].flush_keys();
    q.masters[1].flush_keys();
    q.run_until([&] { return scope.calls > 0; });
    CHECK(idle.interrupted);
    CHECK(scope.error() == errc::lost);
    CHECK_THAT(scope.text(), StartsWith("'r': lost: expired, 2 of 3 votes needed: "));
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("work that ends well after the loss gets the loss") {
    bool done = false;
    scope_outcome scope;
    started_quorum q;
    begin_scope(
        q,
        scope,
        [&](lock& mine) -> asio::awaitable<void> {
            co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
            asio::steady_timer pause(co_await asio::this_coro::executor);
            while (mine.held()) {
                pause.expires_after(1ms);
                co_await pause.async_wait(asio::use_awaitable);
            }
            done = true;
        },
        once(100ms));
    q.run_until([&] { return scope.calls > 0; });
    CHECK(done);
    CHECK(scope.error() == errc::lost);
}

TEST_CASE("an exception of the work is passed on, and the lock is released") {
    scope_outcome scope;
    started_quorum q;
    const bool at_once = GENERATE(true, false);
    begin_scope(q, scope, [&](lock&) -> asio::awaitable<void> {
        if (!at_once) {
            asio::steady_timer pause(co_await asio::this_coro::executor, 1ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
        throw std::domain_error("of the work");
    });
    q.run_until([&] { return scope.calls > 0; });
    REQUIRE(scope.thrown);
    CHECK_THROWS_AS(std::rethrow_exception(scope.thrown), std::domain_error);
    q.run_until([&] { return q.keys() == 0; });
    CHECK(q.manager->get_metrics().held == 0);
}

TEST_CASE("work that throws before it is a coroutine is a failure of the scope") {
    scope_outcome scope;
    started_quorum q;
    begin_scope(
        q, scope, [](lock&) -> asio::awaitable<void> { throw std::domain_error("of the work"); });
    try {
        q.run_until([&] { return scope.calls > 0; });
    } catch (const std::domain_error&) {
        FAIL("the exception came out of the io_context");
    }
    CHECK(scope.thrown);
    q.run_until([&] { return q.keys() == 0; });
}

TEST_CASE("without the lock the work does not run") {
    bool ran = false;
    diagnostics why;
    scope_outcome scope;
    started_quorum q;
    q.hold_elsewhere("r");
    async_with_lock(
        *q.manager,
        "r",
        once(),
        [&](lock&) -> asio::awaitable<void> {
            ran = true;
            co_return;
        },
        with_diagnostics(why, scope.handler()));
    q.run_until([&] { return scope.calls > 0; });
    CHECK(scope.error() == errc::contended);
    CHECK(why.votes.size() == 3);
    CHECK_FALSE(ran);
}

TEST_CASE("a scope is cancelled from outside while it acquires") {
    bool ran = false;
    scope_outcome scope;
    started_quorum q;
    q.hold_elsewhere("r");
    begin_scope(q, scope, [&](lock&) -> asio::awaitable<void> {
        ran = true;
        co_return;
    });
    q.run_until([&] { return q.manager->get_metrics().attempts >= 2; });
    scope.signal.emit(asio::cancellation_type::terminal);
    q.run_until([&] { return scope.calls > 0; });
    CHECK(scope.error() == ended_early);
    CHECK_FALSE(ran);
    q.run_until([&] { return q.keys() == 2; });
}

TEST_CASE("a scope is cancelled from outside while it works") {
    const auto type = GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial);
    rest idle;
    scope_outcome scope;
    started_quorum q;
    begin_scope(q, scope, idle.work());
    q.run_until([&] { return idle.resting; });
    scope.signal.emit(type);
    q.run_until([&] { return scope.calls > 0; });
    CHECK(idle.interrupted);
    CHECK(scope.error() == ended_early);
    q.run_until([&] { return q.keys() == 0; });
    CHECK(scope.calls == 1);
}

TEST_CASE("a scope is cancelled after each step of the loop") {
    started_quorum q;
    for (std::size_t steps = 0; steps < 60; ++steps) {
        rest idle;
        scope_outcome scope;
        begin_scope(q, scope, idle.work());
        q.io.restart();
        for (std::size_t i = 0; i < steps && !idle.resting; ++i) {
            q.io.run_one_for(1s);
        }
        scope.signal.emit(asio::cancellation_type::terminal);
        q.run_until([&] { return scope.calls > 0; });
        CHECK(scope.error() == ended_early);
        CHECK(idle.interrupted == idle.resting);
        q.run_until([&] { return q.keys() == 0; });
    }
}

TEST_CASE("a scope ends when the manager is closed") {
    rest idle;
    scope_outcome scope;
    started_quorum q;
    begin_scope(q, scope, idle.work());
    q.run_until([&] { return idle.resting; });
    q.close();
    q.run_until([&] { return scope.calls > 0; });
    CHECK(idle.interrupted);
    CHECK(scope.error() == errc::lost);
    CHECK(q.keys() == 0);
}

TEST_CASE("work may return a value") {
    started_quorum q;
    std::unique_ptr<int> got; // which can only be moved
    const auto seven = [](lock&) -> asio::awaitable<std::unique_ptr<int>> {
        co_return std::make_unique<int>(7);
    };
    std::exception_ptr thrown;
    asio::cancellation_signal signal;
    std::size_t calls = 0;
    async_with_lock(
        *q.manager,
        "r",
        patiently(),
        seven,
        asio::bind_cancellation_slot(
            signal.slot(), [&](std::exception_ptr error, std::unique_ptr<int> value) {
                ++calls;
                thrown = std::move(error);
                got = std::move(value);
            }));
    q.run_until([&] { return calls > 0; });
    REQUIRE(got);
    CHECK(*got == 7);
    CHECK(!thrown);

    bool resting = false;
    bool interrupted = false;
    async_with_lock(
        *q.manager,
        "r",
        patiently(),
        [&](lock&) -> asio::awaitable<int> {
            co_await rest_for_ever(resting, interrupted);
            co_return 7;
        },
        asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr error, int value) {
            ++calls;
            thrown = std::move(error);
            CHECK(value == 0);
        }));
    q.run_until([&] { return resting; });
    signal.emit(asio::cancellation_type::terminal);
    q.run_until([&] { return calls > 1; });
    CHECK(interrupted);
    CHECK(thrown);

    int result = 0;
    asio::co_spawn(
        q.io,
        [&]() -> asio::awaitable<void> {
            const auto work = [](lock& mine) -> asio::awaitable<int> {
                co_return mine.held() ? 42 : 0;
            };
            result = co_await async_with_lock(*q.manager, "r", patiently(), work);
        },
        asio::detached);
    q.run_until([&] { return result != 0; });
    CHECK(result == 42);
}

}} // namespace redlock::test
