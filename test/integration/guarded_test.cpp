// The guarded scripts on real servers: how they are sent, and what they do next to foreign keys.
#include "guarded_quorum.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("guarded: scripts are sent by digest, and in full again when a server forgets them") {
    quorum_fixture site(3, guarded);
    const auto in_full = [&] { return calls_of(site.masters[0], "eval"); };
    const auto round = [&](const std::function<void()>& before_each) {
        before_each();
        lock mine = site.take_everywhere("r", with_token());
        before_each();
        CHECK(site.me.extend(mine, 10s) == error_code());
        before_each();
        CHECK(site.me.release(mine) == release_result::released);
        CHECK(site.eventually([&] { return site.masters.total_keys(lock_key("r")) == 0; }));
        CHECK(site.settled());
    };
    round([] {});
    const std::uint64_t before = in_full();
    round([] {});
    CHECK(in_full() == before);
    round([&] { site.everywhere({"SCRIPT", "FLUSH"}); });
    CHECK(in_full() >= before + 3);
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
    CHECK(site.eventually([&] { return site.masters.total_keys(lock_key("r")) == 0; }));
    // A minority of them costs nothing.
    site.masters[0].command({"DEL", fence_key_of("r")});
    lock mine = site.me.take("r", with_token());
    CHECK(site.me.release(mine) == release_result::released);
}
