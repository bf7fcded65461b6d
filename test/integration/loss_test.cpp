// How a held lock is lost, and that its holder is notified in time and with the reason.
#include "quorum_fixture.hpp"

#include <thread>

namespace redlock::test { namespace {

const loss& await_loss(quorum_fixture& site, const std::shared_ptr<loss>& watched) {
    run_until(site.io, [&] { return watched->signalled; });
    INFO(watched->error.message() << " | " << to_string(watched->why));
    CHECK(!watched->error);
    return *watched;
}

std::chrono::steady_clock::time_point now() {
    return std::chrono::steady_clock::now();
}

TEST_CASE("FLUSHALL under a holder is noticed at the next renewal, and called expired") {
    quorum_fixture site(5);
    lock mine = site.take_everywhere("r", once(4s));
    const auto watched = site.me.watch(mine);
    const time_point deadline = mine.deadline();
    site.everywhere({"FLUSHALL"});
    const loss& lost = await_loss(site, watched);
    CHECK(lost.reason == loss_reason::expired);
    CHECK(count_votes(lost.why, vote::absent) >= 3);
    CHECK_FALSE(mine.held());
    CHECK(mine.remaining() == 0ns);
    CHECK(clock::now() < deadline); // the renewal told it, long before the lease would have ended
    CHECK(site.me.count().lost.total() == 1);
    // Lost is lost: nothing has taken the lock again.
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

TEST_CASE("when a majority hangs, the lock is lost before its keys have expired") {
    quorum_fixture site(5, [](config& c) { c.master_timeout = 300ms; });
    lock mine = site.take_everywhere("r", once(3s));
    const auto watched = site.me.watch(mine);
    // Nothing runs before the masters hang, so there is no renewal: this is when the keys go.
    REQUIRE(site.me.count().renewed == 0);
    std::vector<std::chrono::steady_clock::time_point> gone;
    for (std::size_t i = 0; i < 3; ++i) {
        const auto asked = now();
        const long left = std::stol(site.masters[i].command({"PTTL", "redlock:{r}"}));
        gone.push_back(asked + milliseconds(left));
        site.masters[i].hang();
    }
    const auto first_gone = *std::min_element(gone.begin(), gone.end());

    run_until(site.io, [&] { return site.me.count().renewals_failed >= 1 || watched->signalled; });
    CHECK((clock::now() + (first_gone - now())) > mine.deadline());
    const loss& lost = await_loss(site, watched);
    CHECK(lost.reason == loss_reason::majority_unreachable);
    CHECK(count_votes(lost.why, vote::granted) <= 2);
    CHECK_FALSE(mine.held());
    CHECK(site.me.count().lost.total() == 1);
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].resume();
    }
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

TEST_CASE("a holder whose io_context was blocked past the cut-off loses the lock as stalled") {
    std::vector<std::string> errors;
    quorum_fixture site(3, [&](config& c) {
        c.master_timeout = 100ms;
        keep_log(c, log_level::error, errors);
    });
    acquire_options options = once(2s);
    options.stop_margin = 500ms;
    lock mine = site.take_everywhere("r", options);
    const auto watched = site.me.watch(mine);
    // A handler of the program that does not return: no renewal, and no timer of the library.
    std::this_thread::sleep_until(mine.deadline() - 500ms + 1ms);
    CHECK_FALSE(mine.held()); // before the loop runs again
    CHECK(mine.remaining() == 0ns);
    const loss& lost = await_loss(site, watched);
    CHECK(lost.reason == loss_reason::stalled);
    CHECK(site.me.count().lost[loss_reason::stalled] == 1);
    CHECK(site.me.release(mine) != release_result::released);
    REQUIRE(errors.size() == 1);
    CHECK(contains(errors[0], "lost: stalled"));
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

}} // namespace redlock::test
