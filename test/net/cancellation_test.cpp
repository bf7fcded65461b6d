// What a cancellation ends and what it does not, by its type. That each operation can be cancelled
// and completes once: operations_test.cpp.
#include "quorum.hpp"

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

TEST_CASE("an acquire that is cancelled during its attempt ends at once, and is rolled back") {
    const auto type = any_type_with_effects();
    const auto action = GENERATE(fake_action::hang(), fake_action::execute_then_hang());
    const bool third_votes = GENERATE(false, true);
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    q.masters[0].when("SET", action, 1);
    q.masters[1].when("SET", action, 1);
    q.masters[2].when("SET", third_votes ? fake_action::obey() : action, 1);
    acquisition& waiting = q.asked_for("r");
    q.run_until([&] {
        const metrics now = q.manager->get_metrics();
        return now.masters[2].acquire_votes[vote::granted] == (third_votes ? 1U : 0U);
    });
    CHECK_FALSE(waiting.done());
    waiting.cancel(type);
    waiting.cancel(type); // while it is rolled back
    CHECK(q.wait(waiting).error() == aborted);
    CHECK(waiting.vote_of(0).vote == vote::pending);
    CHECK(waiting.vote_of(2).vote == (third_votes ? vote::granted : vote::pending));
    for (fake_master& master : q.masters) {
        master.wait_for_command("EVAL"); // on the wire: no loop is needed
    }
    q.each(&fake_master::release_hung);
    q.run_until([&] { return q.keys() == 0; });
    q.poll();
    CHECK(waiting.calls() == 1);
    CHECK(q.manager->get_metrics().waiting == 0);
    CHECK(q.manager->get_metrics().held == 0);
    CHECK(q.manager->get_metrics().cancelled == 1);
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

TEST_CASE("a cancellation of an extension, a release or a close ends the waiting only") {
    const auto type = any_type();
    const bool ends = type != asio::cancellation_type::total;
    started_quorum q(3, [](config& c) { c.master_timeout = 1h; });
    const auto cancel = [&](auto& begun) {
        begun.cancel(type);
        q.poll();
        CHECK(begun.done() == ends);
        CHECK((!ends || begun.error() == aborted));
        q.each(&fake_master::release_hung);
        q.wait(begun);
    };
    lock held = q.acquired_everywhere("r", once(10s));
    lock kept = q.acquired("s");
    const time_point before = held.deadline();
    q.when("EVAL", fake_action::hang(), 1);
    extend_outcome& extended = q.begin_extend(held, 25s);
    q.run_until([&] { return q.count("EVAL") == 3; });
    cancel(extended);
    CHECK(held.held());
    q.run_until([&] { return held.deadline() > before; }); // it was sent, and takes its course
    CHECK(!q.extend(held, 26s).error());
    CHECK(extended.calls() == 1);

    q.each(&fake_master::clear_log);
    q.when("EVAL", fake_action::hang(), 1);
    release_outcome& released = q.begin_release(held);
    q.run_until([&] { return q.count("EVAL") == 3; });
    cancel(released);
    CHECK_FALSE(held.held());
    q.run_until([&] { return q.keys() == 3; });
    CHECK(q.release(held).value() == release_result::released);
    CHECK(released.calls() == 1);

    nothing& closing = q.begin_close();
    nothing& other = q.begin_close();
    q.running->cancel(asio::cancellation_type::total);
    closing.cancel(type);
    q.poll();
    CHECK(closing.done() == ends);
    CHECK_FALSE(other.done());
    q.release(kept);
    CHECK(!q.wait(other).error());
    CHECK(q.wait(closing).error() == (ends ? aborted : error_code()));
    CHECK(!q.wait(*q.running).error());
    CHECK(closing.calls() == 1);
}

TEST_CASE("a cancelled wait for the loss or for readiness ends at once, and no other one") {
    const auto type = any_type();
    started_quorum q;
    quorum away;
    lock held = q.acquired("r");
    loss_outcome& loss = q.begin_wait_lost(held);
    loss_outcome& other_loss = q.begin_wait_lost(held);
    away.each(&fake_master::refuse_connections, true);
    away.start(0);
    nothing& ready = away.begin_ready();
    nothing& other_ready = away.begin_ready();
    q.poll();
    away.poll();
    loss.cancel(type);
    ready.cancel(type);
    CHECK(q.wait(loss).error() == aborted);
    CHECK(away.wait(ready).error() == aborted);
    CHECK_FALSE(other_loss.done());
    CHECK_FALSE(other_ready.done());
    CHECK(held.held());
    q.release(held);
    away.each(&fake_master::refuse_connections, false);
    CHECK(q.wait(other_loss).error() == errc::released);
    CHECK(!away.wait(other_ready).error());
    CHECK(loss.calls() == 1);
    CHECK(ready.calls() == 1);
}

TEST_CASE("a cancelled run closes the manager, also before it has connected") {
    const auto type = any_type_with_effects();
    started_quorum q;
    lock held = q.acquired_everywhere("r");
    loss_outcome& loss = q.begin_wait_lost(held);
    q.running->cancel(type);
    q.running->cancel(type);
    CHECK(q.wait(loss).value() == loss_reason::closed);
    CHECK(q.release(held).value() == release_result::expired);
    q.wait(*q.running);
    CHECK(q.running->error() == aborted);
    CHECK(q.keys() == 0);
    CHECK(q.acquire("r").error() == errc::closed);
    CHECK(q.running->calls() == 1);
    quorum early;
    nothing& running = early.begin_run();
    running.cancel(type);
    CHECK(early.wait(running).error() == aborted);
    CHECK(running.calls() == 1);
}

}} // namespace redlock::test
