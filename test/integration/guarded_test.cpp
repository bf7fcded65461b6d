// The guarded protocol on real servers: what it leaves there, what it says, what it needs.
#include "guarded_quorum.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("guarded: a lock is taken, extended and released, and leaves the keys that it should") {
    quorum_fixture site(3, guarded);
    lock mine = site.take_everywhere("r", with_token());
    CHECK(mine.held());
    for (const master_process& master : site.masters) {
        CHECK(master.command({"GET", lock_key("r")}) == mine.secret());
        CHECK(counter_on(master, "r") > 0);
        CHECK(exists(master, record_key));
        CHECK(master.keys().size() == 3);
        const int pttl = std::stoi(master.command({"PTTL", lock_key("r")}));
        CHECK(pttl > 0);
        CHECK(pttl <= 10'000);
    }
    const time_point before = mine.deadline();
    site.pass(20ms);
    CHECK(site.me.extend(mine, 10s) == error_code());
    CHECK(mine.deadline() > before);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.removed("r"));
    CHECK(site.settled());
    CHECK(site.masters.total_keys() == 6); // a counter and a record each
}

TEST_CASE("guarded: scripts are sent by digest, and in full again when a server forgets them") {
    quorum_fixture site(3, guarded);
    const auto round = [&] {
        lock mine = site.take_everywhere("r");
        CHECK(site.me.extend(mine, 10s) == error_code());
        CHECK(site.me.release(mine) == release_result::released);
        CHECK(site.removed("r"));
        CHECK(site.settled());
    };
    round();
    const std::uint64_t in_full = calls_of(site.masters[0], "eval");
    round();
    CHECK(calls_of(site.masters[0], "eval") == in_full);
    for (int i = 0; i < 2; ++i) {
        site.everywhere({"SCRIPT", "FLUSH"});
        round();
    }
    CHECK(calls_of(site.masters[0], "eval") > in_full);
    // Also with the second round trip of an acquire: no two masters share a counter. (Below the
    // time in microseconds an acquire would begin anew with that, on two of them in the same one.)
    for (std::size_t turn = 0; turn < 2; ++turn) {
        site.everywhere({"SCRIPT", "FLUSH"});
        for (std::size_t at = 0; at < site.masters.size(); ++at) {
            site.masters[at].command(
                {"SET",
                 fence_key_of("s"),
                 std::to_string(8'000'000'000'000'000 + turn * 10'000 + at * 1'000)});
        }
        const std::uint64_t raised = site.me.count().raised;
        lock mine = site.me.take("s", with_token());
        CHECK(site.me.count().raised == raised + 1);
        CHECK(site.me.release(mine) == release_result::released);
        CHECK(site.removed("s"));
    }
    // Between an acquire and what follows it.
    lock mine = site.me.take("r", with_token());
    site.everywhere({"SCRIPT", "FLUSH"});
    CHECK(site.me.extend(mine, 10s) == error_code());
    site.everywhere({"SCRIPT", "FLUSH"});
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.removed("r"));
}

TEST_CASE(
    "guarded: a counter of another type prevents the vote, and leaves no half-acquired lock") {
    quorum_fixture site(3, guarded);
    for (std::size_t i = 0; i < 2; ++i) {
        site.masters[i].command({"LPUSH", fence_key_of("r"), "a", "b"});
    }
    const acquisition_ptr refused = site.me.acquire("r", with_token());
    INFO(refused->explained());
    CHECK(refused->error);
    // The script that finds the counter removes the lock again: no client sees it.
    for (std::size_t i = 0; i < 2; ++i) {
        CHECK(!exists(site.masters[i], lock_key("r")));
        CHECK(site.masters[i].command({"LLEN", fence_key_of("r")}) == "2");
    }
    CHECK(site.removed("r"));
    // A minority of them costs nothing.
    site.masters[0].command({"DEL", fence_key_of("r")});
    lock mine = site.me.take("r", with_token());
    CHECK(site.me.release(mine) == release_result::released);
    // Nor does it matter to a client that wants no token.
    site.masters[0].command({"DEL", fence_key_of("r")});
    site.masters[0].command({"LPUSH", fence_key_of("r"), "a"});
    CHECK(site.removed("r"));
    lock plainly = site.me.take("r");
    CHECK(plainly.held());
}

TEST_CASE("guarded: a release next to a counter of another type is reported and published") {
    quorum_fixture site(3, guarded);
    client other(site.io, site.changed(guarded), 3);
    lock mine = site.take_everywhere("r", with_token(once_unrenewed(20s)));
    const acquisition_ptr waiter = other.begin("r", waiting(24h)); // it wants no token
    run_until(site.io, [&] { return other.count().notification_connections == 3; });
    for (master_process& master : site.masters) {
        master.command({"DEL", fence_key_of("r")});
        master.command({"LPUSH", fence_key_of("r"), "a", "b"});
    }
    diagnostics why;
    CHECK(site.me.release(mine, &why) == release_result::released);
    INFO(to_string(why));
    CHECK(count_votes(why, vote::granted) >= 2);
    CHECK(!other.finish(waiter)->error);
    CHECK(site.eventually([&] { return other.count().release_notifications > 0; }));
    CHECK(site.masters[0].command({"LLEN", fence_key_of("r")}) == "2");
}

TEST_CASE("guarded: a record of another type keeps the master out, and nothing is written there") {
    quorum_fixture site(3, guarded);
    quorum_of_masters& masters = site.masters;
    masters[0].command({"DEL", record_key});
    masters[0].command({"LPUSH", record_key, "a", "b"});
    client me(site.io, site.changed(guarded), 2);
    until_state(site.io, me, 0, master_state::ineligible);
    INFO(to_string(me.health()));
    CHECK(contains(me.health().masters[0].text, "of another version of redlock, or damaged"));
    lock mine = me.take("r", with_token());
    CHECK_FALSE(exists(masters[0], lock_key("r")));
    CHECK(masters[0].command({"LLEN", record_key}) == "2");
    CHECK(me.release(mine) == release_result::released);
}
