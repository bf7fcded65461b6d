// The lock as the scope of a coroutine.
#include "quorum.hpp"
#include "support/error_of.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

namespace redlock::test { namespace {

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
    std::string text() const {
        try {
            std::rethrow_exception(thrown);
        } catch (const std::exception& failure) {
            return failure.what();
        }
    }
    bool done() const { return calls > 0; }
    error_code error() const { return error_of(thrown); }
};

// A scope of the resource "r" in a quorum, and the work in it.
template <typename Work>
void begin_scope(
    quorum& q, scope_outcome& scope, Work work, const acquire_options& options = patiently()) {
    async_with_lock(*q.manager, "r", options, std::move(work), scope.handler());
}

asio::awaitable<void> pause_for(std::chrono::milliseconds span) {
    asio::steady_timer timer(co_await asio::this_coro::executor, span);
    co_await timer.async_wait(asio::use_awaitable);
}

// Work that ends with its scope only.
struct rest {
    bool resting = false;
    bool interrupted = false;

    asio::awaitable<void> for_ever() {
        resting = true;
        try {
            co_await pause_for(1h);
        } catch (const boost::system::system_error&) {
            interrupted = true;
            throw;
        }
    }
    auto work() {
        return [this](lock&) { return for_ever(); };
    }
};

TEST_CASE("work runs while the lock is held, which is released before its value is there") {
    started_quorum q;
    std::size_t calls = 0;
    std::unique_ptr<int> got; // which can only be moved
    const auto seven = [](lock& mine) -> asio::awaitable<std::unique_ptr<int>> {
        co_await pause_for(1ms);
        co_return std::make_unique<int>(mine.held() && mine.resource() == "r" ? 7 : 0);
    };
    async_with_lock(
        *q.manager, "r", patiently(), seven, [&](std::exception_ptr, std::unique_ptr<int> value) {
            ++calls;
            got = std::move(value);
        });
    CHECK(calls == 0);
    q.run_until([&] { return calls > 0; });
    CHECK(q.manager->get_metrics().released[release_result::released] == 1);
    REQUIRE(got);
    CHECK(*got == 7);
    q.run_until([&] { return q.keys() == 0; });
    CHECK(calls == 1);
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

TEST_CASE("work is cancelled with its scope, and when the lock is lost") {
    struct ending {
        const char* what;
        std::function<void(quorum&, scope_outcome&)> cause;
        error_code error;
    };
    const auto cancel = [](asio::cancellation_type type) {
        return [type](quorum&, scope_outcome& scope) { scope.signal.emit(type); };
    };
    const auto flush = [](quorum& q, scope_outcome&) { q.each(&fake_master::flush_keys); };
    const auto close = [](quorum& q, scope_outcome&) { q.begin_close(); };
    for (const ending& one : {
             ending{"terminal", cancel(asio::cancellation_type::terminal), ended_early},
             ending{"partial", cancel(asio::cancellation_type::partial), ended_early},
             ending{"flush", flush, errc::lost},
             ending{"close", close, errc::lost},
         }) {
        INFO(one.what);
        rest idle;
        scope_outcome scope;
        started_quorum q;
        acquire_options options = once(1500ms);
        options.renew = true;
        begin_scope(q, scope, idle.work(), options);
        q.run_until([&] { return idle.resting && q.keys() == 3; });
        one.cause(q, scope);
        CHECK(q.wait(scope).error() == one.error);
        CHECK(idle.interrupted);
        CHECK(
            (one.what != std::string("flush")
             || scope.text().find("'r': lost: expired, 2 of 3 votes needed: ") == 0));
        q.run_until([&] { return q.keys() == 0; });
        CHECK(scope.calls == 1);
    }
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
            while (mine.held()) {
                co_await pause_for(1ms);
            }
            done = true;
        },
        once(100ms));
    CHECK(q.wait(scope).error() == errc::lost);
    CHECK(done);
}

TEST_CASE("an exception of the work is passed on, and the lock is released") {
    const auto at_once = [](lock&) -> asio::awaitable<int> {
        throw std::domain_error("of the work");
        co_return 7;
    };
    const auto later = [](lock&) -> asio::awaitable<int> {
        co_await pause_for(1ms);
        throw std::domain_error("of the work");
    };
    const auto not_as_a_coroutine = [](lock&) -> asio::awaitable<int> {
        throw std::domain_error("of the work");
    };
    using work = std::function<asio::awaitable<int>(lock&)>;
    for (const work& one : {work(at_once), work(later), work(not_as_a_coroutine)}) {
        started_quorum q;
        scope_outcome scope;
        async_with_lock(*q.manager, "r", patiently(), one, [&](std::exception_ptr error, int got) {
            ++scope.calls;
            scope.thrown = std::move(error);
            CHECK(got == 0);
        });
        REQUIRE(q.wait(scope).thrown);
        CHECK_THROWS_AS(std::rethrow_exception(scope.thrown), std::domain_error);
        q.run_until([&] { return q.keys() == 0; });
        CHECK(q.manager->get_metrics().held == 0);
    }
}

TEST_CASE("work that gave its lock away has lost it, and what its handler throws leaves the loop") {
    for (const bool moves : {false, true}) {
        started_quorum q;
        lock taken;
        scope_outcome scope;
        async_with_lock(
            *q.manager,
            "r",
            patiently(),
            [&](lock& mine) -> asio::awaitable<void> {
                taken = moves ? std::move(mine) : lock();
                co_return;
            },
            [&](std::exception_ptr error) {
                scope.thrown = std::move(error);
                throw std::domain_error("of the handler");
            });
        CHECK_THROWS_AS(q.run_until([] { return false; }), std::domain_error);
        CHECK(moves == (scope.error() == errc::lost));
        CHECK(
            (!moves || scope.text().starts_with("lost: when the work returned, it had released")));
    }
}
TEST_CASE(
    "what another handler on the strand of the work throws leaves the loop, and work goes on") {
    started_quorum q;
    scope_outcome scope;
    begin_scope(q, scope, [](lock&) -> asio::awaitable<void> {
        asio::post(co_await asio::this_coro::executor, [] { throw std::domain_error("of it"); });
        co_await asio::post(asio::use_awaitable);
    });
    CHECK_THROWS_AS(q.run_until([&] { return scope.calls > 0; }), std::domain_error);
    CHECK(q.wait(scope).error() == error_code());
}

TEST_CASE("without the lock the work does not run") {
    bool ran = false;
    diagnostics why;
    scope_outcome refused;
    scope_outcome cancelled;
    started_quorum q;
    q.hold_elsewhere("r");
    const auto work = [&](lock&) -> asio::awaitable<void> {
        ran = true;
        co_return;
    };
    async_with_lock(*q.manager, "r", once(), work, with_diagnostics(why, refused.handler()));
    CHECK(q.wait(refused).error() == errc::contended);
    CHECK(why.votes.size() == 3);
    begin_scope(q, cancelled, work);
    q.run_until([&] { return q.manager->get_metrics().attempts >= 3; });
    cancelled.signal.emit(asio::cancellation_type::terminal);
    CHECK(q.wait(cancelled).error() == ended_early);
    CHECK_FALSE(ran);
    q.run_until([&] { return q.keys() == 2; });
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
        CHECK(q.wait(scope).error() == ended_early);
        CHECK(idle.interrupted == idle.resting);
        q.run_until([&] { return q.keys() == 0; });
    }
}

// One coroutine runs the work of one scope after the other.
TEST_CASE("a scope is not touched by the one before it") {
    started_quorum q;
    lock taken;
    rest resting;
    const auto return_at_once = [](lock&) -> asio::awaitable<void> { co_return; };
    const auto fail = [](lock&) -> asio::awaitable<void> {
        throw std::domain_error("of the work");
        co_return;
    };
    const auto turn_deaf = [](lock&) -> asio::awaitable<void> {
        co_await asio::this_coro::throw_if_cancelled(false);
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    };
    const auto take = [&](lock& mine) -> asio::awaitable<void> {
        taken = std::move(mine);
        co_return;
    };
    using work = std::function<asio::awaitable<void>(lock&)>;
    for (const work& one :
         {work(return_at_once), work(fail), work(turn_deaf), work(take), work(resting.work())}) {
        scope_outcome before;
        begin_scope(q, before, one, once(200ms));
        q.run_until([&] { return before.calls > 0 || resting.resting; });
        before.signal.emit(asio::cancellation_type::terminal);
        q.wait(before);
        rest idle;
        scope_outcome scope;
        async_with_lock(*q.manager, "s", patiently(), idle.work(), scope.handler());
        q.run_until([&] { return idle.resting && !taken.held(); });
        q.poll();
        CHECK_FALSE(idle.interrupted);
        scope.signal.emit(asio::cancellation_type::terminal);
        CHECK(q.wait(scope).error() == ended_early);
        CHECK(idle.interrupted);
        taken = {};
    }
}

TEST_CASE("scopes have a strand of their own while they work, and give it on") {
    started_quorum q;
    std::vector<asio::any_io_executor> strands;
    const auto inner = [&](lock&) -> asio::awaitable<void> {
        strands.push_back(co_await asio::this_coro::executor);
    };
    const auto outer = [&](lock&) -> asio::awaitable<void> {
        strands.push_back(co_await asio::this_coro::executor);
        co_await async_with_lock(*q.manager, "inner", inner);
        co_await async_with_lock(*q.manager, "inner", inner);
        strands.push_back(co_await asio::this_coro::executor);
    };
    scope_outcome scope;
    begin_scope(q, scope, outer);
    CHECK(q.wait(scope).error() == error_code());
    REQUIRE(strands.size() == 4);
    CHECK(strands[1] != strands[0]);
    CHECK(strands[2] == strands[1]);
    CHECK(strands[3] == strands[0]);
}

}} // namespace redlock::test
