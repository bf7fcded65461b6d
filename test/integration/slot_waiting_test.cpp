// Waiting for any slot of a pool on real masters: which waiter is woken, and by what.
#include "slot_pool_site.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("a full pool sends nothing until a slot is released, and then wakes a waiter") {
    pool_site site(pool_site::patient);
    client other(site.io, site.changed(pool_site::patient));
    other.until_admitted(3);
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
        INFO(line[i]->explained());
        REQUIRE(!line[i]->error);
        CHECK(line[i]->lock.slot() == held[i].slot());
    }
    CHECK(site.heard_by("crew", "0"));
}

TEST_CASE("without pushes a waiter for a slot asks again") {
    for (const protocol speaks : {protocol::guarded, protocol::plain}) {
        const auto polls = [&](config& settings) {
            settings.protocol = speaks;
            settings.release_notifications = release_notifications::off;
        };
        pool_site site(polls);
        client other(site.io, site.changed(polls));
        other.until_admitted(3);
        named_pool mine{site.me.manager(), "crew", 1};
        named_pool theirs{other.manager(), "crew", 1};
        lock held = site.take(mine);
        const acquisition_ptr next = begin(theirs, waiting(60s));
        site.pass(50ms);
        CHECK(!next->done);
        CHECK(site.release(held) == release_result::released);
        site.finish(next);
        CHECK(next->lock.held());
        CHECK(pool_site::subscribers(site.masters[0], "crew") == "0");
    }
}

TEST_CASE("a cancelled wait for a slot leaves nothing") {
    pool_site site(pool_site::patient);
    client other(site.io, site.changed(pool_site::patient));
    other.until_admitted(3);
    named_pool mine{site.me.manager(), "crew", 1};
    named_pool theirs{other.manager(), "crew", 1};
    lock held = site.take(mine);
    std::vector<acquisition_ptr> line;
    for (int i = 0; i < 3; ++i) {
        line.push_back(begin(theirs, waiting(pool_site::long_wait)));
    }
    REQUIRE(site.heard_by("crew", "1"));
    for (const acquisition_ptr& one : line) {
        one->cancel.emit(asio::cancellation_type::all);
        site.finish(one);
        CHECK(one->error == asio::error::operation_aborted);
    }
    CHECK(site.heard_by("crew", "0"));
    CHECK(other.count().waiting == 0);
    // One that is cancelled when the slot is free has it, or leaves no trace of it.
    held = lock();
    REQUIRE(site.no_slot_left());
    const acquisition_ptr quick = begin(theirs, waiting(pool_site::long_wait));
    quick->cancel.emit(asio::cancellation_type::all);
    site.finish(quick);
    quick->lock = lock();
    CHECK(site.no_slot_left());
}

TEST_CASE("waiters of one process have slots in the order in which they came, and hand them over") {
    pool_site site(pool_site::patient);
    named_pool pool{site.me.manager(), "crew", 2};
    std::vector<lock> held;
    for (int i = 0; i < 2; ++i) {
        held.push_back(site.take(pool));
    }
    std::vector<acquisition_ptr> line;
    for (int i = 0; i < 20; ++i) {
        line.push_back(begin(pool, waiting(pool_site::long_wait)));
    }
    REQUIRE(site.heard_by("crew", "1"));
    for (std::size_t i = 0; i < line.size(); ++i) {
        CHECK(!line[i]->done);
        CHECK(site.release(held[i]) == release_result::released);
        site.finish(line[i]);
        INFO(line[i]->explained());
        REQUIRE(!line[i]->error);
        CHECK(line[i]->lock.slot() == held[i].slot());
        held.push_back(std::move(line[i]->lock));
    }
    CHECK(site.me.count().local_handoffs == 20);
    held.clear();
    CHECK(site.no_slot_left());
}
