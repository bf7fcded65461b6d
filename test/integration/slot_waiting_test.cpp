// Waiting for any slot of a pool on real masters: which waiter is woken, and by what.
#include "slot_pool_site.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("a full pool sends nothing until a slot is released, and then wakes a waiter") {
    pool_site site(pool_site::patient);
    client other(site.io, site.changed(pool_site::patient), 3);
    named_pool mine{site.me.manager(), "crew", 3};
    named_pool theirs{other.manager(), "crew", 3};
    std::vector<lock> held;
    for (int i = 0; i < 3; ++i) {
        held.push_back(site.take(mine, once_unrenewed(30s)));
    }
    std::vector<acquisition_ptr> line;
    for (int i = 0; i < 3; ++i) {
        line.push_back(begin(theirs, waiting(pool_site::long_wait)));
    }
    REQUIRE(site.heard_by("crew", "1"));
    std::uint64_t before = 0;
    REQUIRE(site.eventually([&] {
        return std::exchange(before, pool_site::questions(site.masters[0]))
               == pool_site::questions(site.masters[0]);
    }));
    site.pass(500ms);
    CHECK(pool_site::questions(site.masters[0]) == before);
    for (std::size_t i = 0; i < line.size(); ++i) {
        CHECK(!line[i]->done);
        CHECK(site.release(held[i]) == release_result::released);
        site.finish(line[i]);
        REQUIRE(*line[i]);
        CHECK(line[i]->lock.slot() == held[i].slot());
    }
    CHECK(site.heard_by("crew", "0"));
}
