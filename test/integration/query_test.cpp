// Querying the owner of a lock, without touching it.
#include "quorum_fixture.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("a lock that is held is seen by everybody, with the time that is left") {
    quorum_fixture site(5);
    client other(site.io, config_for(site.masters.urls()), 5);
    lock mine = site.me.take("r", once_unrenewed(20s));
    for (client* one : {&site.me, &other}) {
        const lock_status status = one->query("r");
        INFO(to_string(status));
        CHECK(status.state == lock_state::held);
        CHECK_FALSE(status.owner_digest.empty());
        REQUIRE(status.time_left);
        CHECK(*status.time_left > 0ms);
        CHECK(*status.time_left <= 20s);
        CHECK(mine.remaining() <= *status.time_left);
        CHECK(to_string(status).find("held") == 0);
    }
    CHECK(mine.held());
    CHECK(other.count().held == 0);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.eventually([&] { return other.query("r").state == lock_state::free; }));
}

TEST_CASE("the owner is the same for one holder, another for the next, and not the token") {
    quorum_fixture site(3);
    lock first = site.take_everywhere("r", once(20s));
    const std::string token(first.secret());
    const lock_status one = site.me.query("r");
    const lock_status again = site.me.query("r");
    CHECK(one.owner_digest == again.owner_digest);
    for (const master_vote& each : one.masters) {
        CHECK(each.owner_digest == one.owner_digest);
    }
    for (const lock_status& status : {one, again}) {
        const std::string line = to_string(status);
        CHECK(line.find(token) == std::string::npos);
        CHECK(line.find(token.substr(0, 8)) == std::string::npos);
        CHECK(token.find(status.owner_digest) == std::string::npos);
    }
    CHECK(site.me.release(first) == release_result::released);
    lock second = site.me.take("r", waiting(10s));
    const lock_status next = site.me.query("r");
    CHECK(next.state == lock_state::held);
    CHECK(next.owner_digest != one.owner_digest);
}
