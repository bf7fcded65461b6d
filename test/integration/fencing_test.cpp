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

// The removal has arrived everywhere, so that the next owner meets no leftovers.
void until_free(quorum_fixture& site) {
    REQUIRE(site.removed("r"));
}

TEST_CASE("tokens increase over releases, and counters that agree cost no second round trip") {
    quorum_fixture site(3, guarded);
    std::uint64_t last = 0;
    for (int round = 0; round < 20; ++round) {
        lock mine = site.take_everywhere("r", with_token());
        const std::uint64_t token = token_of(mine);
        CHECK(token > last);
        CHECK(token <= fencing_token_max);
        last = token;
        CHECK(site.me.release(mine) == release_result::released);
        until_free(site);
        if (round == 0) {
            // The first owner's counters came from three clocks; the release has levelled them.
            for (const master_process& master : site.masters) {
                CHECK(counter_on(master, "r") >= token);
            }
        }
    }
    // From then on a majority agrees. That the first needed a raise is certain but for a wonder.
    CHECK(site.me.count().raised <= 2);
    const std::uint64_t before = site.me.count().raised;
    lock mine = site.take_everywhere("r", with_token());
    CHECK(token_of(mine) == last + 1);
    CHECK(site.me.count().raised == before);
}

TEST_CASE("counters that do not agree cost a second round trip, and the token is above both") {
    quorum_fixture site(3, guarded);
    pass_through(site);
    until_free(site);
    site.masters[2].kill(); // so that both votes are needed
    pass_through(site);
    const std::uint64_t raised = site.me.count().raised;
    CHECK(site.removed("r"));
    const std::uint64_t ahead = counter_on(site.masters[0], "r") + 5'000;
    site.masters[0].command({"SET", fence_key_of("r"), std::to_string(ahead)});
    lock mine = site.me.take("r", with_token());
    CHECK(token_of(mine) == ahead + 1);
    CHECK(site.me.count().raised == raised + 1);
    CHECK(counter_on(site.masters[1], "r") == ahead + 1);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.removed("r"));
    // Levelled: the next owner pays nothing.
    CHECK(pass_through(site) == ahead + 2);
    CHECK(site.me.count().raised == raised + 1);
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

TEST_CASE("tokens increase over attempts that were granted in part and rolled back") {
    quorum_fixture site(3, guarded);
    std::uint64_t last = pass_through(site);
    until_free(site);
    for (std::size_t round = 0; round < 6; ++round) {
        // Somebody else has a majority, another one each time: the third counts on alone.
        for (std::size_t i = 0; i < 3; ++i) {
            if (i != round % 3) {
                site.masters[i].command({"SET", lock_key("r"), "by-hand", "PX", "60000"});
            }
        }
        const std::uint64_t alone = counter_on(site.masters[round % 3], "r");
        CHECK(site.me.acquire("r", with_token())->error == errc::contended);
        CHECK(site.eventually([&] { return counter_on(site.masters[round % 3], "r") > alone; }));
        for (std::size_t i = 0; i < 3; ++i) {
            if (i != round % 3) {
                site.masters[i].command({"DEL", lock_key("r")});
            }
        }
        until_free(site);
        const std::uint64_t token = pass_through(site);
        CHECK(token > last);
        last = token;
        until_free(site);
    }
}

TEST_CASE("a token is above the last although the counters have expired") {
    quorum_fixture site(3, guarded);
    std::uint64_t last = pass_through(site);
    until_free(site);
    SECTION("gone") {
        site.everywhere({"DEL", fence_key_of("r")});
    }
    SECTION("gone on a majority") {
        site.masters[0].command({"DEL", fence_key_of("r")});
        site.masters[1].command({"DEL", fence_key_of("r")});
    }
    SECTION("from before any possible loss") {
        site.everywhere({"SET", fence_key_of("r"), "5"});
    }
    SECTION("nonsense") {
        site.everywhere({"SET", fence_key_of("r"), "no number"});
    }
    CHECK(pass_through(site) > last);
}

TEST_CASE("counters have a life that is long, and is renewed with the lease") {
    quorum_fixture site(1, guarded);
    lock mine = site.me.take("r", with_token());
    const auto rest = [&] {
        return std::stoll(site.masters[0].command({"PTTL", fence_key_of("r")}));
    };
    CHECK(rest() > milliseconds(1h).count());
    site.masters[0].command({"PEXPIRE", fence_key_of("r"), "60000"});
    CHECK(site.me.extend(mine, 10s) == error_code());
    CHECK(rest() > milliseconds(1h).count());
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
