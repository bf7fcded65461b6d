// Querying the owner of a lock, without touching it.
#include "quorum_fixture.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("a resource that nobody has is free") {
    quorum_fixture site(3);
    const lock_status status = site.me.query("r");
    CHECK(status.state == lock_state::free);
    CHECK(status.owner.empty());
    CHECK_FALSE(status.time_left);
    REQUIRE(status.masters.size() == 3);
    for (const master_lock_status& one : status.masters) {
        CHECK(one.vote == vote::absent);
        CHECK(one.endpoint.starts_with("127.0.0.1:"));
    }
    CHECK(site.masters.total_keys() == 0);
}

TEST_CASE("a lock that is held is seen by everybody, with the time that is left") {
    quorum_fixture site(5);
    client other(site.io, config_for(site.masters.urls()));
    other.until_admitted(5);
    lock mine = site.me.take("r", once_unrenewed(20s));
    for (client* one : {&site.me, &other}) {
        const lock_status status = one->query("r");
        INFO(to_string(status));
        CHECK(status.state == lock_state::held);
        CHECK_FALSE(status.owner.empty());
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
    const std::string token(first.token());
    const lock_status one = site.me.query("r");
    const lock_status again = site.me.query("r");
    CHECK(one.owner == again.owner);
    for (const master_lock_status& each : one.masters) {
        CHECK(each.owner == one.owner);
    }
    for (const lock_status& status : {one, again}) {
        const std::string line = to_string(status);
        CHECK(line.find(token) == std::string::npos);
        CHECK(line.find(token.substr(0, 8)) == std::string::npos);
        CHECK(token.find(status.owner) == std::string::npos);
    }
    CHECK(site.me.release(first) == release_result::released);
    lock second = site.me.take("r", waiting(10s));
    const lock_status next = site.me.query("r");
    CHECK(next.state == lock_state::held);
    CHECK(next.owner != one.owner);
}

TEST_CASE("a partial grant is undecided") {
    quorum_fixture site(5);
    site.masters[0].command({"SET", "redlock:{r}", "one", "PX", "60000"});
    site.masters[1].command({"SET", "redlock:{r}", "one", "PX", "60000"});
    site.masters[2].command({"SET", "redlock:{r}", "two", "PX", "60000"});
    const lock_status status = site.me.query("r");
    INFO(to_string(status));
    CHECK(status.state == lock_state::undecided);
    CHECK(status.masters[0].vote == vote::held);
    CHECK(status.masters[0].owner == status.masters[1].owner);
    CHECK(status.masters[0].owner != status.masters[2].owner);
    CHECK(status.masters[3].vote == vote::absent);
}

TEST_CASE("three different owners mean that there is no holder") {
    quorum_fixture site(3);
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].command(
            {"SET", "redlock:{r}", "owner-" + std::to_string(i), "PX", "60000"});
    }
    CHECK(site.me.query("r").state == lock_state::undecided);
}

TEST_CASE("a key without an expiry, or of another type, is foreign") {
    quorum_fixture site(3);
    site.masters[0].command({"SET", "redlock:{r}", "for ever"});
    site.masters[1].command({"LPUSH", "redlock:{r}", "a"});
    const lock_status status = site.me.query("r");
    INFO(to_string(status));
    CHECK(status.masters[0].vote == vote::owned_by_other);
    CHECK_FALSE(status.masters[0].text.empty());
    CHECK(status.masters[1].vote == vote::owned_by_other);
    CHECK(status.masters[1].text.find("WRONGTYPE") != std::string::npos);
    CHECK(status.masters[2].vote == vote::absent);
    CHECK(status.state == lock_state::undecided);
}

TEST_CASE("masters that do not answer leave a query undecided, or decided by the rest") {
    quorum_fixture site(5, [](config& c) { c.master_timeout = 500ms; });
    lock mine = site.take_everywhere("r", once(20s));
    site.masters[0].kill();
    site.masters[1].hang();
    const lock_status status = site.me.query("r");
    INFO(to_string(status));
    CHECK(status.state == lock_state::held);
    CHECK(status.masters[0].vote == vote::unreachable);
    CHECK(status.masters[1].vote == vote::timed_out);
    site.masters[2].kill();
    site.me.until_admitted(2);
    const lock_status fewer = site.me.query("r");
    CHECK(fewer.state == lock_state::undecided);
    CHECK(
        count_if(
            fewer.masters.begin(),
            fewer.masters.end(),
            [](const auto& one) { return one.vote == vote::held; })
        == 2);
}
