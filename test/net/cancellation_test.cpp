// Every operation can be cancelled at every point, completes once, and leaves no key.
#include "quorum.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace redlock::test { namespace {

const error_code aborted = asio::error::operation_aborted;

asio::cancellation_type any_type() {
    return GENERATE(
        asio::cancellation_type::terminal,
        asio::cancellation_type::partial,
        asio::cancellation_type::total);
}

// Total cancellation promises that there was no effect: an operation that has one ignores it.
asio::cancellation_type any_type_with_effects() {
    return GENERATE(asio::cancellation_type::terminal, asio::cancellation_type::partial);
}

// Nothing comes after it: the handler was called once, the manager is idle, no key is left.
void check_gone(quorum& q, const acquisition& cancelled) {
    CHECK(cancelled.error() == aborted);
    q.each(&fake_master::release_hung);
    q.run_until([&] { return q.keys() == 0; });
    q.poll();
    CHECK(cancelled.calls() == 1);
    CHECK(q.manager->get_metrics().waiting == 0);
    CHECK(q.manager->get_metrics().held == 0);
    CHECK(q.manager->get_metrics().cancelled == 1);
}

TEST_CASE("an acquire is cancelled before the manager runs") {
    const auto type = any_type();
    quorum q;
    acquisition& early = q.begin_acquire("r", patiently());
    early.cancel(type);
    q.wait(early);
    CHECK((early.error() == aborted || early.error() == errc::not_running));
    q.poll();
    CHECK(early.calls() == 1);
    CHECK(q.manager->get_metrics().waiting == 0);
}

TEST_CASE("an acquire is cancelled while its SET is unanswered") {
    const auto type = any_type_with_effects();
    const auto action = GENERATE(fake_action::hang(), fake_action::execute_then_hang());
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.when("SET", action, 1);
    acquisition& waiting = q.asked_for("r");
    CHECK_FALSE(waiting.done());
    waiting.cancel(type);
    q.wait(waiting); // although nobody has answered yet
    for (fake_master& master : q.masters) {
        master.wait_for_command("EVAL"); // on the wire: no loop is needed
    }
    check_gone(q, waiting);
}

TEST_CASE("an acquire is cancelled after a part of its votes has come") {
    const auto type = any_type_with_effects();
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.masters[0].when("SET", fake_action::hang(), 1);
    q.masters[1].when("SET", fake_action::hang(), 1);
    acquisition& waiting = q.begin_acquire("r", patiently());
    q.run_until(
        [&] { return q.manager->get_metrics().masters[2].acquire_votes[vote::granted] == 1; });
    q.run_until([&] { return q.count("SET") == 3; });
    waiting.cancel(type);
    q.wait(waiting);
    CHECK(waiting.vote_of(2).vote == vote::granted);
    CHECK(waiting.vote_of(0).vote == vote::pending);
    check_gone(q, waiting);
}

TEST_CASE("an acquire is cancelled again while it rolls back") {
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.when("SET", fake_action::execute_then_hang(), 1);
    acquisition& waiting = q.asked_for("r");
    waiting.cancel(asio::cancellation_type::partial);
    waiting.cancel(asio::cancellation_type::partial);
    waiting.cancel(asio::cancellation_type::terminal);
    q.wait(waiting);
    check_gone(q, waiting);
}

TEST_CASE("total cancellation ends an acquire only while nothing was sent for it") {
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.when("SET", fake_action::hang(), 1);
    acquisition& front = q.begin_acquire("r", patiently());
    acquisition& behind = q.asked_for("r");
    front.cancel(asio::cancellation_type::total);
    behind.cancel(asio::cancellation_type::total);
    CHECK(q.wait(behind).error() == aborted);
    q.poll();
    CHECK_FALSE(front.done());
    q.each(&fake_master::release_hung);
    CHECK(!q.wait(front).error());
    CHECK(front.value().held());
    // While a lease that was handed off is held, the first waiter has not asked either.
    acquisition& next = q.begin_acquire("r", patiently());
    q.release(front.value());
    CHECK(!q.wait(next).error());
    acquisition& first = q.begin_acquire("r", patiently());
    first.cancel(asio::cancellation_type::total);
    CHECK(q.wait(first).error() == aborted);
}

TEST_CASE("total cancellation ends no operation that has effects") {
    started_quorum q;
    lock held = q.acquired_everywhere("r");
    q.when("EVAL", fake_action::hang(), 1);
    extend_outcome& extended = q.begin_extend(held, 25s);
    q.run_until([&] { return q.count("EVAL") == 3; });
    q.running->cancel(asio::cancellation_type::total);
    extended.cancel(asio::cancellation_type::total);
    q.poll();
    CHECK_FALSE(q.running->done());
    CHECK_FALSE(extended.done());
    q.each(&fake_master::release_hung);
    CHECK(!q.wait(extended).error());
    release_outcome& released = q.begin_release(held);
    released.cancel(asio::cancellation_type::total);
    CHECK(q.wait(released).value() == release_result::released);
    nothing& closing = q.begin_close();
    closing.cancel(asio::cancellation_type::total);
    CHECK(!q.wait(closing).error());
    CHECK(!q.wait(*q.running).error());
}

TEST_CASE("a cancellation after the end changes nothing") {
    const auto type = any_type();
    started_quorum q;
    acquisition& taken = q.acquire("r");
    REQUIRE(!taken.error());
    taken.cancel(type);
    q.poll();
    CHECK(taken.calls() == 1);
    CHECK(taken.value().held());
    CHECK(q.manager->get_metrics().cancelled == 0);
}

// As many steps of the loop as it takes until the lock is there: whatever the cancellation meets,
// the caller has either the lock or `operation_aborted`, and never a key without a lock.
TEST_CASE("an acquire is cancelled after each step of the loop") {
    started_quorum q;
    bool acquired = false;
    std::size_t aborts = 0;
    for (std::size_t steps = 0; !acquired && steps < 1000; ++steps) {
        acquisition& one = q.begin_acquire("r", patiently());
        q.io.restart();
        for (std::size_t i = 0; i < steps && !one.done(); ++i) {
            q.io.run_one_for(1s);
        }
        const bool before = one.done();
        one.cancel();
        q.wait(one);
        CHECK(one.calls() == 1);
        if (!one.error()) {
            CHECK(one.value().held());
            CHECK(q.release(one.value()).value() == release_result::released);
            acquired = before;
        } else {
            CHECK(one.error() == aborted);
            ++aborts;
        }
        q.run_until([&] { return q.keys() == 0; });
    }
    CHECK(acquired);
    CHECK(aborts >= 1);
    CHECK(q.manager->get_metrics().waiting == 0);
    CHECK(q.manager->get_metrics().held == 0);
}

TEST_CASE("one of many acquires is cancelled and the others are not") {
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.when("SET", fake_action::hang(), 1);
    acquisition& first = q.begin_acquire("a", patiently());
    acquisition& second = q.begin_acquire("b", patiently());
    acquisition& third = q.begin_acquire("c", patiently());
    q.run_until([&] { return q.count("SET") == 9; });
    second.cancel();
    CHECK(q.wait(second).error() == aborted);
    CHECK_FALSE(first.done());
    q.each(&fake_master::release_hung);
    CHECK(!q.wait(first).error());
    CHECK(!q.wait(third).error());
    q.run_until([&] { return q.keys() == 6; });
}

TEST_CASE("a cancelled extension ends the waiting only") {
    const auto type = any_type_with_effects();
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    lock held = q.acquired("r", once(10s));
    const time_point before = held.deadline();
    q.when("EVAL", fake_action::hang(), 1);
    extend_outcome& first = q.begin_extend(held, 25s);
    extend_outcome& second = q.begin_extend(held, 26s);
    q.run_until([&] { return q.count("EVAL") == 3; });
    second.cancel(type);
    first.cancel(type);
    q.wait(first);
    q.wait(second);
    CHECK(first.error() == aborted);
    CHECK(second.error() == aborted);
    CHECK(held.held());
    q.each(&fake_master::release_hung);
    q.run_until([&] { return held.deadline() > before; }); // it was sent, and takes its course
    extend_outcome& third = q.extend(held, 27s);
    CHECK(!third.error());
    CHECK(first.calls() == 1);
    CHECK(second.calls() == 1);
}

TEST_CASE("a cancelled release still releases") {
    const auto type = any_type_with_effects();
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    lock held = q.acquired_everywhere("r");
    q.when("EVAL", fake_action::hang(), 1);
    release_outcome& released = q.begin_release(held);
    q.run_until([&] { return q.count("EVAL") == 3; });
    released.cancel(type);
    CHECK(q.wait(released).error() == aborted);
    CHECK_FALSE(held.held());
    q.each(&fake_master::release_hung);
    q.run_until([&] { return q.keys() == 0; });
    CHECK(q.release(held).value() == release_result::released);
    CHECK(released.calls() == 1);
}

TEST_CASE("a cancelled wait for the loss leaves the lock held") {
    const auto type = any_type();
    started_quorum q;
    lock held = q.acquired("r");
    loss_outcome& first = q.begin_wait_lost(held);
    loss_outcome& second = q.begin_wait_lost(held);
    q.poll();
    first.cancel(type);
    CHECK(q.wait(first).error() == aborted);
    CHECK_FALSE(second.done());
    CHECK(held.held());
    q.release(held);
    CHECK(q.wait(second).error() == errc::released);
    CHECK(first.calls() == 1);
}

TEST_CASE("a cancelled wait for readiness ends at once") {
    const auto type = any_type();
    quorum q;
    q.each(&fake_master::refuse_connections, true);
    q.start(0);
    nothing& first = q.begin_ready();
    nothing& second = q.begin_ready();
    q.poll();
    first.cancel(type);
    CHECK(q.wait(first).error() == aborted);
    CHECK_FALSE(second.done());
    q.each(&fake_master::refuse_connections, false);
    CHECK(!q.wait(second).error());
    CHECK(first.calls() == 1);
}

TEST_CASE("a cancelled run closes the manager") {
    const auto type = any_type_with_effects();
    started_quorum q;
    lock held = q.acquired_everywhere("r");
    loss_outcome& loss = q.begin_wait_lost(held);
    q.running->cancel(type);
    CHECK(q.wait(loss).value() == loss_reason::closed);
    CHECK(q.release(held).value() == release_result::expired);
    q.wait(*q.running);
    CHECK(q.running->error() == aborted);
    CHECK(q.keys() == 0);
    CHECK(q.acquire("r").error() == errc::closed);
    CHECK(q.running->calls() == 1);
}

TEST_CASE("a run that is cancelled before it has connected ends") {
    quorum q;
    nothing& running = q.begin_run();
    running.cancel();
    CHECK(q.wait(running).error() == aborted);
    CHECK(running.calls() == 1);
}

TEST_CASE("a run that was refused because there is one is cancelled without harm to that") {
    started_quorum q;
    nothing& second = q.begin_run();
    second.cancel();
    CHECK(q.wait(second).error() == asio::error::already_started);
    q.poll();
    CHECK_FALSE(q.running->done());
    CHECK(!q.acquire("r").error());
}

TEST_CASE("a cancelled close ends the waiting, not the closing") {
    const auto type = any_type_with_effects();
    started_quorum q(3, [](config& c) { c.master_timeout = 300ms; });
    lock held = q.acquired("r");
    q.each(&fake_master::accept_but_say_nothing, true);
    nothing& closing = q.begin_close();
    closing.cancel(type);
    CHECK(q.wait(closing).error() == aborted);
    CHECK(!q.wait(*q.running).error());
    CHECK(closing.calls() == 1);
}

TEST_CASE("a coroutine gives up by a timer next to the acquire") {
    started_quorum q;
    q.hold_elsewhere("r");
    bool timer_was_first = false;
    redlock::test::run(q.io, [&]() -> asio::awaitable<void> {
        using namespace asio::experimental::awaitable_operators;
        const acquire_options options = patiently();
        asio::steady_timer timer(q.io, 50ms);
        std::string name = "r";
        auto result = co_await (
            q.manager->async_acquire(std::move(name), options, asio::use_awaitable)
            || timer.async_wait(asio::use_awaitable));
        timer_was_first = result.index() == 1;
    });
    CHECK(timer_was_first);
    q.run_until([&] { return q.keys() == 2; });
    CHECK(q.manager->get_metrics().waiting == 0);
    CHECK(q.manager->get_metrics().cancelled == 1);
}

TEST_CASE("a coroutine that waits for the loss during its work learns of neither too late") {
    started_quorum q;
    lock held = q.acquired("r", once(300ms));
    bool loss_was_first = false;
    redlock::test::run(q.io, [&]() -> asio::awaitable<void> {
        using namespace asio::experimental::awaitable_operators;
        asio::steady_timer work(q.io, 1h);
        auto result = co_await (
            held.async_wait_lost(asio::use_awaitable) || work.async_wait(asio::use_awaitable));
        loss_was_first = result.index() == 0;
    });
    CHECK(loss_was_first);
}

}} // namespace redlock::test
