// What becomes of a lost lease's keys: they stay until its holder has let go, or until the last
// deadline that it was ever shown has passed. And removals that are sent once more,
// and the end of all: close.

#include "waiters.hpp"

namespace letting_go_test { namespace {

using namespace unit;

std::size_t keys_of(virtual_quorum& it, const answer& lease) {
    std::size_t found = 0;
    for (virtual_master& server : it.masters) {
        found += server.value_of(it.key(), it.now()) == lease.token ? 1U : 0U;
    }
    return found;
}

acquire_options with_margin(acquire_options options, milliseconds margin) {
    options.stop_margin = margin;
    return options;
}

TEST_CASE("a lost lease whose secret was passed on expires, unless its holder lets it go") {
    acquire_options options = with_margin(once(), 2s);
    options.transferable = true;
    for (const milliseconds margin : {0ms, 2'000ms}) {
        options.stop_margin = margin;
        quorum_with_lock it(3, options);
        const std::uint64_t next = it.acquire(waiting());
        it.run_until(it.got.deadline);
        REQUIRE(it.lost_at(it.got));
        CHECK(it.logged(": lost: expired") == 1);
        CHECK(it.removed_as(it.got) == release_result::expired);
        it.release(it.got, 20ms); // too late
        CHECK(keys_of(it, it.got) == 3);
        CHECK(it.answer_to(next) == nullptr);
        it.run_for(1s);
        CHECK(it.answered(next).won);
        CHECK(it.engine.count().released[release_result::expired] == 1);
    }
    quorum_with_lock it(3, options);
    it.run_until(it.got.held_until + 1ms);
    REQUIRE(it.lost_at(it.got));
    it.release(it.got, 20ms);
    CHECK(!it.has_key());
    CHECK(it.idle());
}

TEST_CASE("a deadline that is moved back does not bring the removal forward") {
    quorum_with_lock it(5, once(), 10ms);
    const redlock::time_point extended = it.now();
    it.extend(it.got, 20s, 1s);
    REQUIRE(it.deadline_of(it.got) == extended + usable(20s));
    for (std::size_t i = 0; i < 3; ++i) {
        it.masters[i].forget();
    }
    it.extend(it.got, 10s, 10ms);
    REQUIRE(it.lost_at(it.got)); // the holder was shown 20 s
    CHECK(keys_of(it, it.got) == 2);
    it.run_until(extended + usable(20s) - 1ns);
    CHECK(keys_of(it, it.got) == 2);
    it.run_for(5ms);
    CHECK(!it.has_key());
    CHECK(it.idle());
}

TEST_CASE("a waiter of the same process is served when the holder has let go, not at the loss") {
    quorum_with_lock it(rules_with(3, 1h, true), with_margin(once(), 2s));
    const std::uint64_t next = it.acquire(waiting());
    it.run_until(it.got.held_until + 700ms);
    REQUIRE(it.lost_at(it.got));
    CHECK(it.answer_to(next) == nullptr);
    CHECK(keys_of(it, it.got) == 3);
    it.release(it.got, 20ms);
    CHECK(it.answered(next).won);
    CHECK(it.answered(next).token != it.got.token);
    CHECK(it.engine.count().local_handoffs == 0);
}

TEST_CASE("an acquire after a handoff does not wait for a holder whose keys are gone") {
    quorum_with_lock it(rules_with(3, 1h, false));
    const std::uint64_t second = it.acquire(waiting(), 5ms);
    it.release(it.got);
    const answer held = it.answered(second);
    it.each(&virtual_master::forget);
    it.extend(held, 10s, 5ms);
    REQUIRE(it.lost_at(held));
    const std::uint64_t third = it.acquire(waiting(), 2s); // another process could have it as well
    CHECK(it.answered(third).won);
}

TEST_CASE("a lost lease that is abandoned keeps its keys to the end of its ttl") {
    started_quorum it(3);
    const redlock::time_point began = it.now();
    const answer got = it.acquire_now(with_margin(once(), 2s));
    it.run_until(got.held_until);
    REQUIRE(it.lost_at(got));
    CHECK(it.engine.abandon(got.lease));
    CHECK(it.idle());
    it.run_until(began + 10s - 1ms);
    CHECK(keys_of(it, got) == 3);
    CHECK(it.masters[0].count("EVAL") == 0);
    CHECK(!it.removed_as(got));
    CHECK(!it.engine.abandon(got.lease));
    it.close();
    CHECK(it.closings == 1); // nobody is left to let go
}

TEST_CASE("closing takes no lock away: what is not let go stays until its ttl") {
    started_quorum it(3);
    const answer kept = it.acquire_now(renewed());
    const answer gone = it.acquire_now(renewed(), "gone");
    const redlock::time_point began = it.now();
    it.close();
    REQUIRE(it.lost_at(kept));
    REQUIRE(it.lost_at(gone));
    CHECK(it.lost_at(kept) == began);
    it.run_for(50ms);
    CHECK(!it.engine.closed_down()); // its holders have time to let go
    it.release(gone, 10ms);
    CHECK(!it.has_key("gone"));
    it.run_until(began + 150ms); // master_timeout after the last progress
    CHECK(!it.engine.closed_down());
    it.run_until(began + 1s);
    CHECK(it.engine.closed_down());
    CHECK(keys_of(it, kept) == 3);
    CHECK(it.removed_as(kept) == release_result::uncertain);
    it.release(kept); // too late: nobody is there to say it
    it.run_for(5s);
    CHECK(keys_of(it, kept) == 3);
}

TEST_CASE(
    "a lock that is let go after held() has turned false, and before its timer, is late as well") {
    quorum_with_lock it(3);
    it.at(it.got.held_until, [&] { it.release(it.got); }); // before the timers of that moment
    it.run_until(it.got.held_until + 50ms);
    CHECK(it.removed_as(it.got) != release_result::released);
    CHECK(it.engine.count().released[release_result::released] == 0);
    CHECK(!it.lost_at(it.got)); // its holder needs no notification
}

TEST_CASE("replies that a process finds when it goes on are in the result of a release") {
    quorum_with_lock it(3);
    it.hang();
    it.release(it.got, 1ns);
    for (std::size_t i = 0; i < 3; ++i) {
        const auto removal = virtual_master::take_command(it.paths[i].inbox);
        it.engine.received(i, it.masters[i].execute(*removal, it.now()), it.now() + 1s);
    }
    it.run_for(1s);
    CHECK(it.removed_as(it.got) == release_result::released);
}

// Very many locks, whose masters then execute one call each, with up to 64 removals, every 60 ms.
struct many_locks {
    explicit many_locks(std::size_t count) : it(3) { // master_timeout is 100 ms
        it.start();
        for (std::size_t i = 0; i < count; ++i) {
            held.push_back(it.acquire_now(renewed(), "r" + std::to_string(i)));
        }
        for (std::size_t i = 0; i < 3; ++i) {
            it.masters[i].when = [this, i](const arguments&) {
                return budget[i]-- > 0 ? mishap::none : mishap::hang_before;
            };
        }
        began = it.now();
        for (int i = 1; i <= 3'000; ++i) {
            it.at(began + i * 60ms, [this] {
                for (std::size_t master = 0; master < 3; ++master) {
                    if (it.connected(master)) {
                        budget[master] = 1;
                        it.resume(master);
                    }
                }
            });
        }
        for (const answer& one : held) {
            it.release(one);
        }
    }
    std::size_t results(release_result what) {
        return static_cast<std::size_t>(std::ranges::count_if(held, [&](const answer& one) {
            return it.removed_as(one).has_value() && it.removed_as(one) == what;
        }));
    }

    virtual_quorum it;
    std::vector<answer> held;
    std::vector<int> budget = std::vector<int>(3, 0);
    redlock::time_point began;
};

TEST_CASE("a release in a queue is not late while the masters reply to those before it") {
    many_locks all(900); // 15 calls
    all.it.run_until(all.began + 850ms);
    CHECK(all.results(release_result::released) >= 700);
    CHECK(all.results(release_result::uncertain) == 0);
    SECTION("within ten times master_timeout") {
        all.it.run_until(all.began + 1s);
    }
    SECTION("and ends soon after they fall silent") {
        all.it.hang();
        all.it.run_until(all.began + 960ms);
    }
    CHECK(all.results(release_result::released) + all.results(release_result::uncertain) == 900);
}

TEST_CASE("a removal that was lost with its connection is paid when the master is back") {
    for (const mishap what : {mishap::break_before, mishap::break_after}) {
        quorum_with_lock one(3, once(), 10ms);
        one.masters[1].when = [what](const arguments& words) {
            return words[0].starts_with("EVAL") ? what : mishap::none;
        };
        CHECK(one.release_now(one.got) == release_result::released);
        one.run_for(5ms);
        CHECK(one.engine.count().pending_removals == 1);
        one.masters[1].when = nullptr;
        one.run_for(300ms);
        CHECK(!one.has_key());
        CHECK(one.idle());
        CHECK(one.engine.count().removals_repeated == 1);
    }
}

// The SET is in flight when its connection breaks; the server executes it after the removal that
// comes on the next connection.
TEST_CASE("a removal that finds nothing is repeated while a stray SET may still be executed") {
    started_quorum it(3);
    bool broke = false;
    it.masters[1].when = [&broke](const arguments& words) {
        return words[0] == "SET" && !std::exchange(broke, true) ? mishap::break_before
                                                                : mishap::none;
    };
    const redlock::time_point began = it.now();
    const answer got = it.take(once());
    REQUIRE(it.run_while_not([&] { return it.engine.ready() && it.connected(1); }));
    it.run_for(10ms);
    CHECK(it.release_now(got) == release_result::released);
    CHECK(it.masters[1].count("EVAL remove") == 1);
    CHECK(it.engine.count().pending_removals == 0); // it is not waited for
    it.masters[1].put(it.key(), got.token, it.now() + 10s);
    it.run_until(began + 10s + 102ms - 1ns);
    CHECK(it.masters[1].value_of(it.key(), it.now()) == got.token);
    it.run_for(10ms);
    CHECK(!it.has_key());
    CHECK(it.idle());
}

TEST_CASE("each master gets the removal in the variant that it knows") {
    virtual_quorum it(3);
    it.paths[1].reachable = it.paths[2].reachable = false;
    it.masters[0].know(redlock::core::guarded_release);
    it.start();
    for (const std::size_t away : {2U, 1U}) { // first 0 and 1 learn the script, then 2
        it.paths[1].reachable = it.paths[2].reachable = true;
        it.cut_off(away, 3s);
        const answer got = it.take(once());
        CHECK(it.release_now(got) == release_result::released);
    }
    CHECK(it.masters[2].count("EVAL remove") == 1);
    CHECK(it.masters[0].count("EVAL remove") == 1);
    CHECK(it.masters[0].count("EVALSHA remove") == 1);
}

TEST_CASE("close tells holders and waiters, and is done when all is let go and answered") {
    started_quorum it(3);
    const answer lock = it.acquire_now(renewed(), "held");
    const answer passed = it.acquire_now(renewed(), "passed on");
    it.masters[0].put(it.key(), "somebody");
    it.masters[1].put(it.key(), "somebody");
    const std::uint64_t waiting = it.acquire(patient(), 5ms);
    it.extend(lock, 10s);
    const redlock::time_point began = it.now();
    it.close();
    CHECK(it.engine.closing());
    it.close();
    CHECK(it.lost_at(lock) == began);
    CHECK(it.lost_by(lock) == loss_reason::closed);
    CHECK(it.extensions_of(lock) == errors{errc::closed});
    it.release(lock, 20ms);
    CHECK(!it.engine.closed_down());
    it.engine.abandon(passed.lease);
    it.run_for(5ms);
    CHECK(it.engine.closed_down());
    CHECK(it.closings == 1);
    CHECK(it.has_key("passed on"));
    CHECK(it.answered(waiting).why == errc::closed);
    CHECK(it.removed_as(lock) == release_result::expired);
    CHECK(!it.masters[2].value_of(it.key("held"), it.now()));
    CHECK(!it.masters[2].value_of(it.key(), it.now()));
    CHECK(it.engine.next_due() == redlock::core::forever);
    CHECK(it.engine.count().held == 0);
    CHECK(it.engine.count().waiting == 0);
    for (std::size_t link = 0; link < it.paths.size(); ++link) {
        CHECK(!it.connected(link));
    }
}

TEST_CASE("close is bounded by master_timeout") {
    started_quorum it(3);
    const answer lock = it.acquire_now(once());
    it.paths[0].hung = it.paths[1].hung = true;
    const redlock::time_point began = it.now();
    it.close();
    it.run_until(began + 100ms - 1ns);
    CHECK(!it.engine.closed_down());
    it.run_for(1ns);
    CHECK(it.engine.closed_down());
    CHECK(it.closings == 1);
    CHECK(it.removed_as(lock) == release_result::uncertain);
    CHECK(it.engine.next_due() == redlock::core::forever);
}

TEST_CASE("a failed acquire completes at the end of the closing at the latest") {
    started_quorum it(3);
    it.paths[2].takes_bytes = false;
    const std::uint64_t name = it.acquire(patient(), 100us);
    it.cancel(name, 10ms);
    it.close();
    CHECK(it.answer_to(name) == nullptr);
    it.engine.cancel({}, it.now() + 1h); // an event that comes before the timers that are due
    CHECK(it.closings == 1);
    CHECK(it.answer_to(name) != nullptr);
}

}} // namespace letting_go_test
