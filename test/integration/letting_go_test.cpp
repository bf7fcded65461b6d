// A lost lock stays with its holder until that has let go, or must have stopped: seen by another
// process that waits for it.
#include "two_managers.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace redlock::test { namespace {

acquire_options told_early() {
    acquire_options options = once(20s);
    options.stop_margin = 19s; // `held()` turns false a second after the acquire
    return options;
}

TEST_CASE("nobody gets a lock between its loss and the moment in which its holder lets go") {
    const protocol speaks = GENERATE(protocol::guarded, protocol::plain);
    two_processes site(3, [speaks](config& c) { c.protocol = speaks; });
    acquire_options options = told_early();
    const bool by_max_hold = GENERATE(false, true);
    options.renew = by_max_hold ? renewal::automatic : renewal::off;
    options.max_hold = by_max_hold ? 19'500ms : 0ms; // before the first lease ends
    lock mine = site.take_everywhere("r", options);
    const auto watched = site.me.watch(mine);
    const acquisition_ptr here = site.me.begin("r", waiting(10s));
    const acquisition_ptr there = site.other.begin("r", waiting(10s));
    run_until(site.io, [&] { return watched->signalled; });
    CHECK(watched->reason == (by_max_hold ? loss_reason::max_hold_reached : loss_reason::expired));
    CHECK_FALSE(mine.held());
    site.pass(500ms);
    const bool taken = here->done || there->done;
    const auto keys = site.masters.total_keys(lock_key("r"));
    const bool in_time = clock::now() < mine.deadline();
    CHECK((!taken || !in_time));
    CHECK((keys == 3 || !in_time));

    diagnostics why;
    CHECK(site.me.release(mine, &why) == release_result::expired);
    CHECK(why.votes.size() == 3);
    run_until(site.io, [&] { return here->done || there->done; });
    const acquisition_ptr first = here->done ? here : there;
    CHECK(!first->error);
    CHECK(site.me.count().released == 0);
    CHECK(site.me.count().released_late == 1);
    first->lock = lock();
    run_until(site.io, [&] { return here->done && there->done; });
}

TEST_CASE("a lost lock whose handle is dropped, or reassigned, is free at once") {
    two_processes site(3);
    lock mine = site.take_everywhere("r", told_early());
    const auto watched = site.me.watch(mine);
    const acquisition_ptr there = site.other.begin("r", waiting(10s));
    run_until(site.io, [&] { return watched->signalled; });
    const time_point deadline = mine.deadline();
    SECTION("dropped") {
        const lock gone = std::move(mine);
    }
    SECTION("reassigned") {
        mine = lock();
    }
    run_until(site.io, [&] { return there->done; });
    CHECK(!there->error);
    CHECK(clock::now() < deadline);
}

TEST_CASE("a lost lock that is abandoned stays to the end of its ttl") {
    quorum_fixture site(3);
    lock mine = site.take_everywhere("r", told_early());
    const auto watched = site.me.watch(mine);
    run_until(site.io, [&] { return watched->signalled; });
    mine.abandon();
    site.pass(200ms);
    site.me.close();
    CHECK(site.masters.total_keys(lock_key("r")) == 3);
}

}} // namespace redlock::test
