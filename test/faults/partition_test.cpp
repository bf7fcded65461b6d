// Partitions of a real network: packets are lost without a report.
#include "integration/guarded_quorum.hpp"
#include "network_site.hpp"

#include <bit>

namespace redlock::test { namespace {

std::vector<std::size_t> members(unsigned mask) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; mask != 0; ++i, mask >>= 1U) {
        if ((mask & 1U) != 0) {
            result.push_back(i);
        }
    }
    return result;
}

// Each mask is cut in one of the ways; in all, each way meets masks of all sizes.
way variant_of(unsigned mask) {
    return static_cast<way>(mask % 3);
}

TEST_CASE("cut off from any minority of 5, in any direction, a client takes and releases locks") {
    network_site site(5);
    site.connect();
    std::uint64_t last = 0;
    for (unsigned mask = 1; mask < 32; ++mask) {
        if (std::popcount(mask) > 2) {
            continue;
        }
        INFO("mask " << mask);
        site.until_admitted();
        const std::vector<std::size_t> some = members(mask);
        site.cut(variant_of(mask), some);
        site.io.poll(); // what came before the cut
        const metrics before = site.me->count();
        const acquisition_ptr got = site.me->acquire("r", with_token(once(5s)));
        REQUIRE(*got);
        CHECK(got->lock.fencing_token() > last);
        last = got->lock.fencing_token();
        CHECK(site.me->extend(got->lock, 6s) == error_code());
        CHECK(got->lock.held());
        CHECK(site.me->release(got->lock) == release_result::released);
        const metrics after = site.me->count();
        for (const std::size_t one : some) { // it was one
            CHECK(after.masters[one].bytes_received == before.masters[one].bytes_received);
        }
        site.mend(variant_of(mask), some);
        // A connection that was cut is slow to notice that it is not: begin the next one fresh.
        for (const std::size_t one : some) {
            site.tell(one, {"CLIENT", "KILL", "TYPE", "normal"});
        }
        run_until(site.io, [&] {
            const metrics now = site.me->count();
            return std::ranges::all_of(some, [&](std::size_t one) {
                return now.masters[one].connects > before.masters[one].connects;
            });
        });
    }
}

TEST_CASE("cut off from any majority of 5, in any direction, it has no quorum, and then it has") {
    network_site site(5);
    site.connect();
    std::uint64_t last = 0;
    for (unsigned mask = 1; mask < 32; ++mask) {
        if (std::popcount(mask) < 3) {
            continue;
        }
        INFO("mask " << mask);
        site.until_admitted();
        site.cut(variant_of(mask), members(mask));
        const acquisition_ptr refused = site.me->acquire("r", with_token(once(5s)));
        INFO(refused->explained());
        CHECK(refused->error == errc::no_quorum);
        site.mend(variant_of(mask), members(mask));
        const acquisition_ptr got = site.me->acquire("r", with_token(waiting(20s, 5s)));
        REQUIRE(*got);
        CHECK(got->lock.fencing_token() > last);
        last = got->lock.fencing_token();
        CHECK(site.me->release(got->lock) == release_result::released);
    }
}

TEST_CASE("a holder that is cut off from all masters ends in time, and its key ends with it") {
    network_site site(3);
    site.connect();
    site.until_admitted();
    lock mine = site.me->take("r", with_token(once(1s)));
    const auto watched = site.me->watch(mine);
    site.cut(way::requests, site.everyone);
    run_until(site.io, [&] { return watched->done; });
    CHECK_FALSE(mine.held());
    CHECK(watched->result == loss_reason::majority_unreachable);
    // Its release cannot reach the masters: the keys expire.
    run_until(site.io, [&] {
        return std::all_of(site.everyone.begin(), site.everyone.end(), [&](std::size_t i) {
            return site.tell(i, {"EXISTS", "redlock:{r}"}) == "0";
        });
    });
    site.mend(way::requests, site.everyone);
    const acquisition_ptr again = site.me->acquire("r", waiting(20s, 1s));
    CHECK(!again->error);
}

TEST_CASE("a lost reply is a grant, and is undone when the network is back") {
    network_site site(3);
    site.settings.health_check_interval = 20s; // the connections stay
    site.connect();
    site.until_admitted();
    site.cut(way::answers, {0, 1});
    const acquisition_ptr refused = site.me->acquire("r", with_token(once(20s)));
    INFO(refused->explained());
    CHECK(refused->error == errc::no_quorum);
    // Executed and undone over there, whatever we heard of it.
    for (const std::size_t one : site.everyone) {
        run_until(site.io, [&] { return site.tell(one, {"EXISTS", "redlock:{r}"}) == "0"; });
        CHECK(site.tell(one, {"EXISTS", "redlock:{r}:fence"}) == "1");
    }
    site.mend(way::answers, {0, 1});
    const acquisition_ptr got = site.me->acquire("r", waiting(20s));
    CHECK(*got);
}

TEST_CASE("masters that swallow connection attempts hold up nobody but themselves") {
    network_site site(5);
    site.connect();
    site.until_admitted(); // the quorum is founded
    site.me.reset();
    site.cut(way::answers, {1, 3}); // the first packet arrives, and no answer ever does
    site.connect();
    site.me->until_admitted(3);
    const acquisition_ptr got = site.me->acquire("r", waiting(20s));
    REQUIRE(*got);
    CHECK(got->why.votes[1].vote == vote::unreachable);
    run_until(site.io, [&] {
        const health now = site.me->health();
        return now.masters[1].text.find("connect_timeout") != std::string::npos;
    });
    CHECK(site.me->release(got->lock) == release_result::released);
    site.mend(way::answers, {1, 3});
    site.until_admitted();
}

}} // namespace redlock::test
