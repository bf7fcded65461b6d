// Releasing: the result reports what was found, and an owner that has the lock by then keeps it.
#include "quorum_fixture.hpp"

#include <thread>

using namespace redlock;
using namespace redlock::test;

TEST_CASE("released after it has expired, a lock is expired") {
    quorum_fixture site(3);
    lock mine = site.me.take("r", once_unrenewed(300ms));
    std::this_thread::sleep_for(400ms); // as a paused process: nothing runs
    diagnostics why;
    CHECK(site.me.release(mine, &why) == release_result::expired);
    CHECK(count_votes(why, vote::absent) >= 2);
    CHECK(site.me.count().released_late == 1);
}

TEST_CASE("released after somebody else took it, a lock is stolen, and he keeps it") {
    quorum_fixture site(3);
    asio::io_context elsewhere;
    client other(elsewhere, config_for(site.masters.urls()), 3);
    lock mine = site.me.take("r", once_unrenewed(300ms));
    std::this_thread::sleep_for(400ms);
    lock theirs = other.take("r", once(20s));
    const auto all_theirs = [&] {
        return std::ranges::all_of(site.masters, [&](const master_process& master) {
            return master.command({"GET", "redlock:{r}"}) == theirs.secret();
        });
    };
    CHECK(site.eventually(all_theirs));
    diagnostics why;
    CHECK(site.me.release(mine, &why) == release_result::stolen);
    CHECK(count_votes(why, vote::owned_by_other) >= 2);
    CHECK(site.settled());
    CHECK(all_theirs());
    CHECK(theirs.held());
    CHECK(other.release(theirs) == release_result::released);
}

TEST_CASE("a majority that has removed the lock is enough, and the hung rest follows") {
    quorum_fixture site(5);
    lock mine = site.take_everywhere("r");
    site.masters[0].hang();
    site.masters[1].hang();
    CHECK(site.me.release(mine) == release_result::released);
    site.masters[0].resume();
    site.masters[1].resume();
    CHECK(site.no_key_left());
    CHECK(site.settled());
}

TEST_CASE("what a master that is down still has is owed to it, and paid when it is back") {
    quorum_fixture site(
        5, [](config&) {}, fsyncing_always());
    lock mine = site.take_everywhere("r", once(30s));
    site.masters[0].kill();
    site.masters[1].kill();
    site.me.until_admitted(3);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.me.count().pending_removals == 2);
    CHECK(site.me.count().removals_repeated == 0);
    site.masters[0].restart();
    site.masters[1].restart();
    CHECK(site.masters.total_keys() == 2);
    CHECK(site.no_key_left());
    CHECK(site.settled());
    CHECK(site.eventually([&] { return site.me.count().removals_repeated == 2; }));
}
