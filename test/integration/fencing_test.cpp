// Fencing tokens over several masters: each owner's is larger than that of every owner before,
// whatever became of the masters in between.
#include "guarded_quorum.hpp"

namespace redlock::test { namespace {

// Acquires and releases, and returns the token.
std::uint64_t
pass_through(quorum_fixture& site, acquire_options options = with_token(waiting(20s))) {
    lock mine = site.me.take("r", options);
    const std::uint64_t token = token_of(mine);
    CHECK(site.me.release(mine) == release_result::released);
    return token;
}

TEST_CASE("tokens increase over majorities that change: each time another master is down") {
    quorum_fixture site(3, guarded, fsyncing_always());
    std::uint64_t last = 0;
    for (std::size_t round = 0; round < 6; ++round) {
        master_process& down = site.masters[round % 3];
        down.kill();
        for (int i = 0; i < 2; ++i) {
            const std::uint64_t token = pass_through(site);
            INFO("round " << round);
            CHECK(token > last);
            last = token;
        }
        down.restart();
        site.me.until_admitted(3);
    }
}

TEST_CASE("a token is above the last although all masters have forgotten everything") {
    quorum_of_masters masters(3);
    asio::io_context io;
    client me(io, quarantining(masters, 1s));
    std::uint64_t last = 0;
    for (int round = 0; round < 2; ++round) {
        const acquisition_ptr got = me.acquire("r", with_token(waiting(20s, 1s)));
        REQUIRE(*got);
        CHECK(token_of(got->lock) > last);
        last = token_of(got->lock);
        got->lock.abandon();
        for (master_process& master : masters) {
            if (round == 0) {
                master.restart_empty();
            } else {
                master.command({"FLUSHALL"});
            }
        }
    }
    const acquisition_ptr got = me.acquire("r", with_token(waiting(20s, 1s)));
    REQUIRE(!got->error);
    CHECK(token_of(got->lock) > last);
}

}} // namespace redlock::test
