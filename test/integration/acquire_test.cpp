// Which client gets a lock, for every pattern of keys that another owner has, and what remains
// afterwards.
#include "quorum_fixture.hpp"

#include <bit>
#include <set>

using namespace redlock;
using namespace redlock::test;

namespace {

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

} // namespace

TEST_CASE("one master decides alone") {
    try_all_masks(1);
}

TEST_CASE("of three masters, a lock is granted unless somebody has it on two") {
    try_all_masks(3);
}

TEST_CASE("of four masters, three must grant") {
    try_all_masks(4);
}

TEST_CASE("of five masters, a lock is granted unless somebody has it on three") {
    try_all_masks(5);
}

TEST_CASE("a second client is refused until the first one releases") {
    quorum_fixture site(5);
    client other(site.io, config_for(site.masters.urls()));
    other.until_admitted(5);
    lock mine = site.me.take("r");
    CHECK(other.acquire("r")->error == errc::contended);
    CHECK(mine.held());

    const acquisition_ptr waits = other.begin("r", waiting(20s));
    site.pass(100ms);
    CHECK_FALSE(waits->done);
    CHECK(other.count().waiting == 1);
    CHECK(site.me.release(mine) == release_result::released);
    other.finish(waits);
    INFO(waits->explained());
    CHECK(!waits->error);
    CHECK(waits->why.attempts >= 2);
    CHECK_FALSE(mine.held());
    CHECK(waits->lock.held());
}

TEST_CASE("a wait that is over ends as contended, and leaves the holder alone") {
    quorum_fixture site(3);
    client other(site.io, config_for(site.masters.urls()));
    other.until_admitted(3);
    lock mine = site.take_everywhere("r");
    const acquisition_ptr waited = other.acquire("r", waiting(2s));
    INFO(waited->explained());
    CHECK(waited->error == errc::contended); // not what the cut-off last attempt looked like
    CHECK(count_votes(waited->why, vote::held) >= 1);
    CHECK(waited->why.attempts >= 2);
    CHECK(mine.held());
    CHECK(other.count().held == 0);
    const std::string token(mine.token());
    for (const master_process& master : site.masters) {
        CHECK(master.command({"GET", "redlock:{r}"}) == token);
    }
}

TEST_CASE("of many at once for one resource, one gets it") {
    quorum_fixture site(3);
    std::vector<acquisition_ptr> all;
    for (int i = 0; i < 100; ++i) {
        all.push_back(site.me.begin("r"));
    }
    std::size_t winners = 0;
    for (const acquisition_ptr& one : all) {
        site.me.finish(one);
        winners += one->error ? 0U : 1U;
        CHECK((!one->error || one->error == errc::contended));
    }
    CHECK(winners == 1);
}

TEST_CASE("a thousand locks are held at once by one manager") {
    constexpr std::size_t n = 1'000;
    quorum_fixture site(5);
    std::vector<acquisition_ptr> all;
    for (std::size_t i = 0; i < n; ++i) {
        all.push_back(site.me.begin("r" + std::to_string(i)));
    }
    std::set<std::string> tokens;
    for (const acquisition_ptr& one : all) {
        site.me.finish(one);
        REQUIRE(!one->error);
        tokens.emplace(one->lock.token());
    }
    CHECK(tokens.size() == n);
    CHECK(site.me.count().held == n);
    CHECK(site.me.count().acquired == n);
    CHECK(site.eventually([&] { return site.masters.total_keys("redlock:*") == 5 * n; }));

    std::size_t released = 0;
    for (const acquisition_ptr& one : all) {
        one->lock.async_release([&](error_code error, release_result result) {
            released += !error && result == release_result::released ? 1U : 0U;
        });
    }
    run_until(site.io, [&] { return released == n; });
    CHECK(site.settled());
    CHECK(site.no_key_left());
    // All that is queued in one turn of the loop leaves in one write.
    for (const master_metrics& one : site.me.count().masters) {
        CHECK(one.commands >= 2 * n);
        CHECK(one.writes < one.commands / 4);
    }
}

TEST_CASE("what breaks a rule is refused with a sentence, and nothing is sent") {
    quorum_fixture site(1, [](config& c) { c.health_check_interval = 1h; });
    const auto sent = [&] { return site.me.count().masters[0].commands; };
    const auto before = sent();
    const acquisition_ptr nameless = site.me.acquire("");
    CHECK(nameless->error == errc::invalid_argument);
    CHECK(nameless->why.message.find("resource has 0 bytes") != std::string::npos);
    const acquisition_ptr endless = site.me.acquire("r", once(31s));
    CHECK(endless->error == errc::invalid_argument);
    CHECK(endless->why.message.find("30000") != std::string::npos);
    CHECK(sent() == before);
}
