// Clients of the guarded and of the plain protocol take the same keys, and exclude each other.
#include "guarded_quorum.hpp"

namespace redlock::test { namespace {

struct mixed_site {
    mixed_site() : masters(3) {
        for (const protocol how : {protocol::guarded, protocol::plain}) {
            config settings = config_for(masters.urls());
            settings.protocol = how;
            clients[how == protocol::plain ? 1 : 0].emplace(io, settings);
        }
        for (auto& one : clients) {
            one->until_admitted(3);
        }
    }

    client& speaking(protocol how) { return *clients[how == protocol::plain ? 1 : 0]; }

    asio::io_context io;
    quorum_of_masters masters;
    std::array<std::optional<client>, 2> clients;
};

void excludes(protocol holder, protocol other) {
    INFO("holder " << to_string(holder) << ", other " << to_string(other));
    mixed_site site;
    client& mine = site.speaking(holder);
    client& theirs = site.speaking(other);

    lock held = mine.take("r", once_unrenewed(10s));
    // The last of its keys as well: the other client would hold that one for a moment, and plain
    // heals nothing.
    run_until(site.io, [&] { return site.masters.total_keys(lock_key("r")) == 3; });
    CHECK(theirs.acquire("r")->error == errc::contended);
    CHECK(mine.extend(held, 20s) == error_code());
    CHECK(theirs.acquire("r")->error == errc::contended);
    CHECK(held.held());
    run_until(site.io, [&] { return site.masters.total_keys(lock_key("r")) == 3; });
    for (const master_process& master : site.masters) {
        CHECK(master.command({"GET", lock_key("r")}) == held.secret());
        CHECK(std::stoi(master.command({"PTTL", lock_key("r")})) > 10'000);
    }
    const acquisition_ptr waits = theirs.begin("r", waiting(25s));
    CHECK(mine.release(held) == release_result::released);
    theirs.finish(waits);
    REQUIRE(*waits);
    CHECK(mine.acquire("r")->error == errc::contended);
    CHECK(mine.release(held) == release_result::released); // once more: changes nothing
    CHECK(theirs.extend(waits->lock, 10s) == error_code());
    CHECK(theirs.release(waits->lock) == release_result::released);
}

TEST_CASE("a guarded holder excludes a plain client, and the other way round") {
    excludes(protocol::guarded, protocol::plain);
    excludes(protocol::plain, protocol::guarded);
}

TEST_CASE("plain and guarded clients that contend never have it at the same time") {
    mixed_site site;
    constexpr int rounds = 25;
    int inside = 0;
    int overlaps = 0;
    int finished = 0;
    // Each repeats by itself: acquires, holds for about a turn of the loop, releases.
    struct contender {
        client* speaks;
        int left;
        lock held;
    };
    std::vector<contender> all;
    for (int i = 0; i < 4; ++i) {
        all.push_back(
            {&site.speaking(i % 2 == 0 ? protocol::guarded : protocol::plain), rounds, {}});
    }
    const std::function<void(contender&)> go = [&](contender& one) {
        if (one.left-- == 0) {
            ++finished;
            return;
        }
        one.speaks->manager().async_acquire("r", waiting(25s), [&](error_code error, lock got) {
            if (error) {
                go(one);
                return;
            }
            overlaps += inside++ == 0 ? 0 : 1;
            one.held = std::move(got);
            asio::post(site.io, [&] {
                --inside;
                one.held.async_release([&](error_code, release_result) { go(one); });
            });
        });
    };
    for (contender& one : all) {
        go(one);
    }
    run_until(site.io, [&] { return finished == static_cast<int>(all.size()); });
    CHECK(overlaps == 0);
    for (const protocol how : {protocol::guarded, protocol::plain}) {
        CHECK(site.speaking(how).count().acquired == 2 * rounds);
    }
}

}} // namespace redlock::test
