// Cancelling at any moment: a cancelled acquire leaves no key.
#include "quorum_fixture.hpp"

#include <random>

namespace redlock::test { namespace {

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

TEST_CASE("an acquire of a free lock may be cancelled at any moment") {
    quorum_fixture site(5);
    cancel_at_random(site, once(), 200);
    check_nothing_left(site);
}

TEST_CASE("an acquire that waits for a holder may be cancelled at any moment") {
    quorum_fixture site(3);
    client holder(site.io, config_for(site.masters.urls()), 3);
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

}} // namespace redlock::test
