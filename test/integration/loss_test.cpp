// How a held lock is lost, and that its holder is notified in time and with the reason.
#include "quorum_fixture.hpp"

#include <thread>

using namespace redlock;
using namespace redlock::test;

namespace {

const loss& await_loss(quorum_fixture& site, const std::shared_ptr<loss>& watched) {
    run_until(site.io, [&] { return watched->signalled; });
    INFO(watched->error.message() << " | " << to_string(watched->why));
    CHECK(!watched->error);
    return *watched;
}

std::chrono::steady_clock::time_point now() {
    return std::chrono::steady_clock::now();
}

} // namespace

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
    CHECK(site.me.count().lost == 1);
    // Lost is lost: nothing has taken the lock again.
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

TEST_CASE("a minority that was flushed changes nothing") {
    quorum_fixture site(5);
    lock mine = site.take_everywhere("r", once(3s));
    site.masters[0].command({"FLUSHALL"});
    site.masters[1].command({"FLUSHALL"});
    CHECK(site.eventually([&] { return site.me.count().renewed >= 1; }));
    CHECK(mine.held());
    // An extension never creates a key.
    CHECK(site.masters[0].keys().empty());
    CHECK(site.masters[1].keys().empty());
}

TEST_CASE("keys overwritten on a majority are a loss to somebody foreign, and are left alone") {
    quorum_fixture site(5);
    lock mine = site.take_everywhere("r", once(3s));
    const auto watched = site.me.watch(mine);
    for (std::size_t i = 1; i < 4; ++i) {
        CHECK(site.masters[i].command({"SET", "redlock:{r}", "thief", "PX", "60000"}) == "OK");
    }
    const loss& lost = await_loss(site, watched);
    CHECK(lost.reason == loss_reason::owned_by_other);
    CHECK(count_votes(lost.why, vote::owned_by_other) >= 3);
    CHECK(site.settled());
    CHECK(site.eventually([&] { return site.masters.total_keys() == 3; }));
    CHECK(site.masters[1].command({"GET", "redlock:{r}"}) == "thief");
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
    CHECK(site.me.count().lost == 1);
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].resume();
    }
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

TEST_CASE("when a majority is killed, the lock is held until its deadline and then lost") {
    quorum_fixture site(5);
    lock mine = site.take_everywhere("r", once(2s));
    const auto watched = site.me.watch(mine);
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].kill();
    }
    run_until(site.io, [&] { return site.me.count().renewals_failed >= 1 || watched->signalled; });
    CHECK((mine.held() || mine.deadline() <= clock::now())); // unknown is not lost
    CHECK(await_loss(site, watched).reason == loss_reason::majority_unreachable);
    CHECK(mine.deadline() <= clock::now());
}

TEST_CASE("a holder whose io_context was blocked past the cut-off loses the lock as stalled") {
    std::vector<std::string> errors;
    quorum_fixture site(3, [&](config& c) {
        c.master_timeout = 100ms;
        c.log.level = log_level::error;
        c.log.write = [&](log_level, std::string_view line) { errors.emplace_back(line); };
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
    CHECK(site.me.count().lost_by[loss_reason::stalled] == 1);
    CHECK(site.me.release(mine) != release_result::released);
    REQUIRE(errors.size() == 1);
    CHECK(contains(errors[0], "lost: stalled"));
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

TEST_CASE("a majority that hangs for less than the lease loses nothing") {
    quorum_fixture site(3, [](config& c) { c.master_timeout = 200ms; });
    lock mine = site.take_everywhere("r", once(6s));
    const auto watched = site.me.watch(mine);
    site.pass(10ms);
    site.masters[0].hang();
    site.masters[1].hang();
    CHECK(site.eventually([&] { return site.me.count().renewals_failed >= 1; }));
    CHECK(mine.held());
    site.masters[0].resume();
    site.masters[1].resume();
    const auto renewed = site.me.count().renewed;
    CHECK(site.eventually([&] { return site.me.count().renewed > renewed; }));
    CHECK(mine.held());
    CHECK_FALSE(watched->signalled);
}

TEST_CASE("a lock is not held for longer than max_hold, however often it is renewed") {
    quorum_fixture site(3);
    acquire_options options = once(1'500ms);
    options.max_hold = 2'500ms;
    const time_point before = clock::now();
    lock mine = site.take_everywhere("r", options);
    const time_point after = clock::now();
    const auto watched = site.me.watch(mine);
    run_until(site.io, [&] {
        CHECK(mine.deadline() <= after + 2'500ms);
        return watched->signalled;
    });
    CHECK(await_loss(site, watched).reason == loss_reason::max_hold_reached);
    CHECK(clock::now() >= before + 2'500ms);
    CHECK(site.me.count().renewed >= 1);
    CHECK(site.settled());
    CHECK(site.no_key_left());
}

TEST_CASE("the holder is signalled to stop before the lease ends, by the margin it asked for") {
    quorum_fixture site(3);
    acquire_options options = once_unrenewed(20s);
    options.stop_margin = 19s;
    lock mine = site.take_everywhere("r", options);
    CHECK(mine.remaining() < 1s);
    const time_point deadline = mine.deadline();
    const auto watched = site.me.watch(mine);
    CHECK(await_loss(site, watched).reason == loss_reason::expired);
    CHECK_FALSE(mine.held());
    CHECK(clock::now() >= deadline - 19s);
    CHECK(clock::now() < deadline); // there is time to stop
    CHECK(site.no_key_left());
}

TEST_CASE("a loss is an error in the log and a count in the metrics") {
    std::vector<std::string> errors;
    quorum_fixture site(3, [&](config& c) {
        c.log.level = log_level::error;
        c.log.write = [&](log_level, std::string_view line) { errors.emplace_back(line); };
    });
    lock mine = site.take_everywhere("r", once(2s));
    const std::string token(mine.token());
    const auto watched = site.me.watch(mine);
    site.everywhere({"FLUSHALL"});
    await_loss(site, watched);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].find("lost: expired") != std::string::npos);
    CHECK(errors[0].find(token) == std::string::npos);
    CHECK(to_string(watched->why).find(token) == std::string::npos);
    CHECK(site.me.count().lost == 1);
}
