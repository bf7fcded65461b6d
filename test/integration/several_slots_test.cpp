// Several slots of a pool as one lock, on real masters.
#include "slot_pool_site.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("several slots are taken together, or none, and wait for a release as one does") {
    pool_site site(pool_site::patient);
    client other(site.io, site.changed(pool_site::patient), 3);
    named_pool mine{site.me.manager(), "crew", 5};
    named_pool theirs{other.manager(), "crew", 5};
    std::vector<lock> held;
    for (int i = 0; i < 3; ++i) {
        held.push_back(site.take(mine));
    }
    const auto many = [&](named_pool& pool, std::size_t count, const acquire_options& options) {
        return begun([&](auto handler) {
            pool.manager.async_acquire(
                redlock::slots(pool.name, pool.size, count), options, std::move(handler));
        });
    };
    const auto finish_many = [&](const auto& one) { return site.finish(one)->error; };

    const auto two = many(theirs, 2, with_token(once()));
    REQUIRE(!finish_many(two));
    CHECK(two->lock.held());
    REQUIRE(two->lock.slots().size() == 2);
    CHECK(two->lock.slots()[0] < two->lock.slots()[1]);
    CHECK(two->lock.has_fencing_token());
    CHECK(
        two->lock.resource()
        == "crew:slot:" + std::to_string(two->lock.slots()[0]) + ","
               + std::to_string(two->lock.slots()[1]));
    CHECK(site.status(mine).count(lock_state::held) == 5);
    CHECK(site.acquire(mine)->error == errc::contended);
    CHECK(finish_many(many(mine, 2, once())) == errc::contended);
    // Less than what is wanted is not taken.
    CHECK(site.release(held[0]) == release_result::released);
    CHECK(finish_many(many(mine, 2, once())) == errc::contended);
    CHECK(site.status(mine).count(lock_state::held) == 4);

    // Each release is heard of, and the last of them makes enough.
    const auto waits = many(mine, 3, waiting(pool_site::long_wait));
    REQUIRE(site.heard_by("crew", "1"));
    CHECK(site.release(held[1]) == release_result::released);
    site.pass(100ms);
    CHECK(!waits->done);
    CHECK(site.release(two->lock) == release_result::released);
    REQUIRE(!finish_many(waits));
    CHECK(waits->lock.slots().size() == 3);
    for (const std::size_t number : waits->lock.slots()) {
        CHECK(number != held[2].slot());
    }
    waits->lock = redlock::lock();
    held.clear();
    CHECK(site.no_slot_left());

    CHECK(finish_many(many(mine, 0, once())) == errc::invalid_argument);
    const auto more = many(mine, 6, once());
    CHECK(finish_many(more) == errc::invalid_argument);
    CHECK(more->why.message == "count is 6; allowed: 1 to 5");
}

TEST_CASE("two that want several slots each do not block each other") {
    pool_site site;
    client other(site.io, site.changed(guarded), 3);
    named_pool mine{site.me.manager(), "crew", 3};
    named_pool theirs{other.manager(), "crew", 3};
    std::size_t inside = 0;
    std::size_t rounds = 0;
    std::size_t workers = 0;
    std::function<void(named_pool&)> work = [&](named_pool& pool) {
        pool.manager.async_acquire(
            redlock::slots(pool.name, pool.size, 2), waiting(60s), [&](error_code error, lock got) {
                REQUIRE(!error);
                CHECK(++inside == 1); // two pairs do not fit into three
                if (++rounds > 60) {
                    --workers;
                    --inside;
                    return;
                }
                const auto kept = std::make_shared<lock>(std::move(got));
                asio::post(site.io, [&, kept] {
                    --inside;
                    kept->async_release([&, kept](error_code, release_result) { work(pool); });
                });
            });
    };
    for (named_pool* const pool : {&mine, &theirs, &mine, &theirs}) {
        ++workers;
        work(*pool);
    }
    run_until(
        site.io, [&] { return workers == 0; }, 60s);
    CHECK(site.no_slot_left());
}
