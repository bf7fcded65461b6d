// Which client gets a lock, for every pattern of keys that another owner has, and what remains
// afterwards.
#include "quorum_fixture.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <bit>

namespace redlock::test { namespace {

// Every subset of the masters has the key for somebody else.
void try_all_masks(std::size_t n) {
    quorum_fixture site(n);
    const std::size_t quorum = n / 2 + 1;
    for (unsigned mask = 0; mask < 1U << n; ++mask) {
        const std::string resource = "mask-" + std::to_string(mask);
        const std::string key = "redlock:{" + resource + "}";
        INFO(n << " masters, held on " << mask);
        std::vector<std::string> others(n, "(nil)");
        for (std::size_t i = 0; i < n; ++i) {
            if ((mask >> i & 1U) != 0) {
                others[i] = "somebody else";
                REQUIRE(site.masters[i].command({"SET", key, others[i], "NX"}) == "OK");
            }
        }
        const auto values = [&] {
            std::vector<std::string> found;
            for (const master_process& master : site.masters) {
                found.push_back(master.command({"GET", key}));
            }
            return found;
        };
        const auto held = static_cast<std::size_t>(std::popcount(mask));
        const acquisition_ptr got = site.me.acquire(resource);
        INFO(got->explained());
        if (n - held >= quorum) {
            REQUIRE(!got->error);
            CHECK(got->lock.held());
            CHECK(got->why.message.empty());
            CHECK(site.me.release(got->lock) == release_result::released);
        } else {
            CHECK(got->error == errc::contended);
            CHECK(got->error == condition::not_acquired);
            CHECK(got->error != condition::unavailable);
            CHECK_FALSE(got->lock.valid());
            CHECK(count_votes(got->why, vote::held) >= 1);
        }
        CHECK(got->why.attempts == 1);
        CHECK(got->why.quorum == quorum);
        CHECK(got->why.votes.size() == n);
        CHECK(site.eventually([&] { return values() == others; }));
    }
    CHECK(site.settled());
}

TEST_CASE("of one to five masters, a lock is granted unless somebody has it on too many") {
    try_all_masks(GENERATE(1U, 3U, 4U, 5U));
}

TEST_CASE("a second client is refused until the first one releases") {
    quorum_fixture site(5);
    client other(site.io, config_for(site.masters.urls()), 5);
    lock mine = site.me.take("r");
    CHECK(other.acquire("r")->error == errc::contended);
    CHECK(mine.held());

    const acquisition_ptr waits = other.begin("r", waiting(20s));
    site.pass(100ms);
    CHECK_FALSE(waits->done);
    CHECK(other.count().waiting == 1);
    CHECK(site.me.release(mine) == release_result::released);
    other.finish(waits);
    CHECK(*waits);
    CHECK(waits->why.attempts >= 2);
    CHECK_FALSE(mine.held());
    CHECK(waits->lock.held());
}

TEST_CASE("a wait that is over ends as contended, and leaves the holder alone") {
    quorum_fixture site(3);
    client other(site.io, config_for(site.masters.urls()), 3);
    lock mine = site.take_everywhere("r");
    const acquisition_ptr waited = other.acquire("r", waiting(2s));
    CHECK(*waited == errc::contended); // not what the cut-off last attempt looked like
    CHECK(count_votes(waited->why, vote::held) >= 1);
    CHECK(waited->why.attempts >= 2);
    CHECK(mine.held());
    CHECK(other.count().held == 0);
    const std::string token(mine.secret());
    for (const master_process& master : site.masters) {
        CHECK(master.command({"GET", "redlock:{r}"}) == token);
    }
}

}} // namespace redlock::test
