// Masters lose keys of a held lock: keys of a minority are healed; without those of a majority the
// lock is lost.
#include "guarded_quorum.hpp"

namespace redlock::test { namespace {

std::uint64_t healed(const client& me) {
    return sum_over_masters(me, &master_metrics::healed);
}

TEST_CASE("an extension puts a missing vote of a minority back, with its counter") {
    quorum_fixture site(3, guarded);
    lock mine = site.take_everywhere("r", with_token(once_unrenewed(10s)));
    site.masters[1].command({"DEL", lock_key("r"), fence_key_of("r")});
    CHECK(healed(site.me) == 0);
    CHECK(site.me.extend(mine, 20s) == error_code());
    CHECK(site.eventually([&] { return healed(site.me) == 1; }));
    CHECK(site.me.count().masters[1].healed == 1);
    CHECK(site.masters[1].command({"GET", lock_key("r")}) == mine.secret());
    CHECK(std::stoi(site.masters[1].command({"PTTL", lock_key("r")})) > 10'000);
    CHECK(counter_on(site.masters[1], "r") == token_of(mine));
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.removed("r"));
}

TEST_CASE("renewal heals by itself, also a master that was down when the lock was acquired") {
    quorum_fixture site(3, guarded);
    site.masters[2].kill();
    run_until(site.io, [&] { return site.me.health().admitted == 2; });
    lock mine = site.me.take("r", with_token(once(2s)));
    site.masters[2].restart();
    CHECK(site.eventually([&] {
        return site.masters[2].command({"GET", lock_key("r")}) == mine.secret();
    }));
    CHECK(site.eventually([&] { return site.me.count().masters[2].healed == 1; }));
    CHECK(mine.held());
    // Now the other two are no longer needed both.
    site.masters[0].kill();
    const time_point before = mine.deadline();
    CHECK(site.eventually([&] { return mine.deadline() > before; }));
    CHECK(mine.held());
}

TEST_CASE("a master that has forgotten is not healed before its quarantine is over, and is then") {
    quorum_of_masters masters(3);
    asio::io_context io;
    const config settings = quarantining(masters, 3s);
    client me(io, settings);
    const acquisition_ptr got = me.acquire("r", with_token(waiting(20s, 2s)));
    REQUIRE(!got->error);
    me.until_admitted(3);
    CHECK(me.extend(got->lock, 2s) == error_code());
    run_until(io, [&] { return masters.total_keys(lock_key("r")) == 3; });

    const auto forgot = std::chrono::steady_clock::now();
    masters[1].command({"FLUSHALL"});
    // Renewal tries more than once a second; none may succeed too early.
    run_until(io, [&] { return exists(masters[1], lock_key("r")); });
    CHECK(std::chrono::steady_clock::now() - forgot >= settings.max_ttl);
    run_until(io, [&] { return me.count().masters[1].healed >= 1; });
    CHECK(got->lock.held());
    CHECK(me.release(got->lock) == release_result::released);
}

}} // namespace redlock::test
