// Masters that die under a command, or cannot write.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

TEST_CASE("masters killed while the SET is in flight vote unreachable, and no key is left") {
    quorum_fixture site(
        5, [](config& c) { c.health_check_interval = 1h; }, fsyncing_always());
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].hang();
    }
    const acquisition_ptr got = site.me.begin("r", once(30s));
    // The other two have executed theirs.
    CHECK(site.eventually(
        [&] { return site.masters[3].keys().size() == 1 && site.masters[4].keys().size() == 1; }));
    CHECK_FALSE(got->done);
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].kill();
    }
    site.me.finish(got);
    CHECK(*got == errc::no_quorum);
    CHECK(count_votes(got->why, vote::unreachable) + count_votes(got->why, vote::timed_out) == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].restart();
    }
    CHECK(site.settled());
    CHECK(site.masters.total_keys() == 0);
}

TEST_CASE(
    "a master that cannot write votes with its error, and a minority of them does not matter") {
    quorum_fixture site(3);
    site.masters[0].command({"CONFIG", "SET", "maxmemory", "1"});
    const acquisition_ptr got = site.me.acquire("r");
    REQUIRE(!got->error);
    CHECK(site.me.release(got->lock) == release_result::released);

    site.masters[1].command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    const acquisition_ptr refused = site.me.acquire("r");
    CHECK(refused->error == errc::no_quorum);
    INFO(refused->explained());
    CHECK(refused->why.votes[0].vote == vote::error);
    CHECK(refused->why.votes[0].text.find("OOM") == 0);
    CHECK(refused->why.votes[1].vote == vote::error);
    CHECK(refused->why.votes[1].text.find("NOREPLICAS") == 0);
    site.masters[1].command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    CHECK(site.no_key_left());
    CHECK(site.settled());
}

}} // namespace redlock::test
