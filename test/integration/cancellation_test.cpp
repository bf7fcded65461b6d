// Cancelling at any moment: a cancelled acquire leaves no key.
#include "quorum_fixture.hpp"

#include <random>

using namespace redlock;
using namespace redlock::test;

namespace {

constexpr unsigned seed = 20'240'607;

void check_nothing_left(quorum_fixture& site) {
    CHECK(site.settled());
    CHECK(site.no_key_left());
    CHECK(site.me.count().waiting == 0);
    CHECK(site.me.count().pending_removals == 0);
}

// Begins acquires and cancels each after a random moment; one that was faster gives its lock up.
void cancel_at_random(quorum_fixture& site, const acquire_options& options, int rounds) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> microseconds(0, 3'000);
    std::size_t cancelled = 0;
    for (int round = 0; round < rounds; ++round) {
        INFO("seed " << seed << ", round " << round);
        const acquisition_ptr begun = site.me.begin("r", options);
        const auto end = std::chrono::steady_clock::now()
                         + std::chrono::microseconds(round % 4 == 0 ? 0 : microseconds(random));
        while (std::chrono::steady_clock::now() < end) {
            site.io.restart();
            site.io.poll_one();
        }
        begun->cancel.emit(
            round % 2 == 0 ? asio::cancellation_type::terminal : asio::cancellation_type::partial);
        site.me.finish(begun);
        INFO(begun->explained());
        if (begun->error == asio::error::operation_aborted) {
            ++cancelled;
            CHECK_FALSE(begun->lock.valid());
        } else {
            CHECK(
                (!begun->error || begun->error == errc::contended
                 || begun->error == errc::no_quorum));
        }
    }
    CHECK(cancelled >= 1);
    CHECK(site.me.count().cancelled == cancelled);
}

} // namespace

TEST_CASE("an acquire of a free lock may be cancelled at any moment") {
    quorum_fixture site(5);
    cancel_at_random(site, once(), 200);
    check_nothing_left(site);
}

TEST_CASE("an acquire that waits for a holder may be cancelled at any moment") {
    quorum_fixture site(3);
    client holder(site.io, config_for(site.masters.urls()));
    holder.until_admitted(3);
    lock theirs = holder.take("r", once(30s));
    cancel_at_random(site, waiting(30s), 100);
    CHECK(site.settled());
    CHECK(theirs.held());
    CHECK(holder.release(theirs) == release_result::released);
    check_nothing_left(site);
}

TEST_CASE("an acquire that waits through an outage may be cancelled at any moment") {
    quorum_fixture site(3);
    site.masters[0].kill();
    site.masters[1].kill();
    site.me.until_admitted(1);
    cancel_at_random(site, waiting(30s), 50);
    check_nothing_left(site);
}

TEST_CASE("an acquire may be cancelled at any moment while a minority hangs") {
    quorum_fixture site(3);
    site.masters[0].hang();
    cancel_at_random(site, once(), 100);
    site.masters[0].resume();
    check_nothing_left(site);
}

TEST_CASE("cancelled before any master has replied, an acquire is undone after its SETs") {
    quorum_fixture site(3);
    for (master_process& master : site.masters) {
        master.hang();
    }
    const acquisition_ptr begun = site.me.begin("r", waiting(30s, 30s));
    run_until(site.io, [&] { return site.me.count().attempts == 1; });
    site.pass(50ms);
    begun->cancel.emit(asio::cancellation_type::terminal);
    site.me.finish(begun); // when the removals are on the wire: nobody needs to answer
    CHECK(begun->error == asio::error::operation_aborted);
    CHECK(site.me.count().waiting == 0);
    for (master_process& master : site.masters) {
        master.resume();
    }
    CHECK(site.settled());
    CHECK(site.no_key_left()); // long before the ttl is over
}

TEST_CASE("cancelling after the end does nothing") {
    quorum_fixture site(3);
    const acquisition_ptr got = site.me.acquire("r");
    REQUIRE(!got->error);
    got->cancel.emit(asio::cancellation_type::terminal);
    site.pass(20ms);
    CHECK(got->lock.held());
    CHECK(site.me.count().cancelled == 0);
}

TEST_CASE("cancelling the waiting for a release does not cancel the release") {
    quorum_fixture site(3);
    lock mine = site.me.take("r");
    asio::cancellation_signal cancel;
    std::optional<error_code> ended;
    mine.async_release(asio::bind_cancellation_slot(
        cancel.slot(), [&](error_code error, release_result) { ended = error; }));
    cancel.emit(asio::cancellation_type::terminal);
    run_until(site.io, [&] { return ended.has_value(); });
    CHECK((ended == error_code() || ended == asio::error::operation_aborted));
    check_nothing_left(site);
}

TEST_CASE("cancelling the waiting for an extension, a loss or readiness ends just the waiting") {
    quorum_fixture site(3);
    lock mine = site.me.take("r", once(20s));
    for (master_process& master : site.masters) {
        master.hang();
    }
    asio::cancellation_signal extending;
    asio::cancellation_signal losing;
    asio::cancellation_signal querying;
    std::vector<error_code> ended;
    mine.async_extend(
        30s, asio::bind_cancellation_slot(extending.slot(), [&](error_code error, extend_result) {
            ended.push_back(error);
        }));
    mine.async_wait_lost(asio::bind_cancellation_slot(
        losing.slot(), [&](error_code error, loss_reason) { ended.push_back(error); }));
    site.me.manager().async_query(
        "r", asio::bind_cancellation_slot(querying.slot(), [&](error_code error, lock_status) {
            ended.push_back(error);
        }));
    site.pass(20ms);
    CHECK(ended.empty());
    for (asio::cancellation_signal* one : {&extending, &losing, &querying}) {
        one->emit(asio::cancellation_type::terminal);
    }
    run_until(site.io, [&] { return ended.size() == 3; });
    for (const error_code& error : ended) {
        CHECK(error == asio::error::operation_aborted);
    }
    CHECK(mine.held());
    for (master_process& master : site.masters) {
        master.resume();
    }
    CHECK(site.me.release(mine) == release_result::released);
    check_nothing_left(site);
}

TEST_CASE("cancelling async_run closes the manager, and leaves no key of what is let go") {
    quorum_of_masters masters(3);
    asio::io_context io;
    lock_manager manager(io.get_executor(), config_for(masters.urls()));
    asio::cancellation_signal cancel;
    std::optional<error_code> ended;
    manager.async_run(
        asio::bind_cancellation_slot(cancel.slot(), [&](error_code error) { ended = error; }));
    run_until(io, [&] { return manager.get_health().admitted == 3; });
    std::optional<lock> mine;
    manager.async_acquire("r", once(30s), [&](error_code error, lock held) {
        CHECK(!error);
        mine = std::move(held);
    });
    run_until(io, [&] { return mine.has_value(); });
    mine->async_wait_lost([&](error_code, loss_reason reason) {
        CHECK(reason == loss_reason::closed);
        CHECK_FALSE(mine->held());
        mine.reset();
    });
    cancel.emit(asio::cancellation_type::terminal);
    run_until(io, [&] { return ended.has_value(); });
    CHECK(ended == asio::error::operation_aborted);
    CHECK_FALSE(mine);
    CHECK(masters.total_keys() == 0);
}
