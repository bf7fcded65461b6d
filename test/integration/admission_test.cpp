// Servers that are not fit to vote are not asked, and say why.
#include "quorum_fixture.hpp"

using namespace redlock;
using namespace redlock::test;

TEST_CASE("health names the version of each server and how scripts are sent to it") {
    quorum_fixture site(1);
    const master_health one = site.me.health().masters[0];
    CHECK((one.version.starts_with("redis ") || one.version.starts_with("valkey ")));
    CHECK(one.run_id.size() == 40);
    CHECK(one.compare_and_delete == "EVALSHA");
}

TEST_CASE("a master that is made a replica loses its vote, and has it again when promoted") {
    quorum_fixture site(3, [](config& c) { c.health_check_interval = 100ms; });
    site.masters[0].command({"REPLICAOF", "127.0.0.1", std::to_string(site.masters[1].port())});
    // Its connections stay, and it refuses writes.
    CHECK(site.eventually([&] {
        const acquisition_ptr got = site.me.acquire("r");
        if (!got->error) {
            site.me.release(got->lock);
        }
        return site.me.health().masters[0].state == master_state::ineligible;
    }));
    const acquisition_ptr got = site.me.acquire("r");
    REQUIRE(!got->error);
    CHECK(contains(got->why.votes[0].text, "replica"));
    CHECK(site.me.release(got->lock) == release_result::released);
    site.masters[0].command({"REPLICAOF", "NO", "ONE"});
    site.me.until_admitted(3);
}

TEST_CASE("a server that may evict locks does not vote until it is configured not to") {
    master_options options;
    options.maxmemory = "64mb";
    options.maxmemory_policy = "allkeys-lru";
    const master_process evicting(options);
    quorum_of_masters masters(2);
    std::vector<std::string> urls = masters.urls();
    urls.push_back(evicting.url());
    asio::io_context io;
    config settings = config_for(urls);
    settings.health_check_interval = 100ms;
    client me(io, settings);
    run_until(io, [&] { return me.health().masters[2].state == master_state::ineligible; });
    CHECK(contains(me.health().masters[2].text, "evict"));
    CHECK(contains(me.health().masters[2].text, "noeviction"));
    me.until_admitted(2);
    const acquisition_ptr got = me.acquire("r");
    REQUIRE(!got->error);
    CHECK(got->why.votes[2].vote == vote::error);
    CHECK(me.release(got->lock) == release_result::released);
    evicting.command({"CONFIG", "SET", "maxmemory-policy", "noeviction"});
    me.until_admitted(3);
}

TEST_CASE("one server under two names counts once") {
    quorum_of_masters masters(2);
    const std::string port = std::to_string(masters[0].port());
    const std::string other = masters[1].url();
    asio::io_context io;
    client me(io, config_for({masters[0].url(), "redis://localhost:" + port, other}));
    run_until(io, [&] {
        const health now = me.health();
        return now.admitted == 2
               && std::ranges::count(now.masters, master_state::duplicate, &master_health::state)
                      == 1;
    });
    const acquisition_ptr got = me.acquire("r");
    REQUIRE(*got);
    CHECK(count_votes(got->why, vote::duplicate) == 1);
    CHECK(contains(to_string(got->why), "same server"));
    CHECK(me.release(got->lock) == release_result::released);

    masters[1].kill(); // now there is one server, and two of three are needed
    me.until_admitted(1);
    const acquisition_ptr alone = me.acquire("r");
    CHECK(*alone == errc::no_quorum);
    CHECK(masters.total_keys() == 0);
}

TEST_CASE("a server that is still loading its data does not vote, and does when it has") {
    master_options options;
    options.extra = {"--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"};
    master_process master(options);
    CHECK(master.command({"DEBUG", "POPULATE", "2000"}) == "OK");
    CHECK(master.command({"SAVE"}) == "OK");
    master.restart(master_process::ready::answers);
    asio::io_context io;
    client me(io, config_for({master.url()}));
    bool seen = false;
    run_until(io, [&] {
        const master_health now = me.health().masters[0];
        seen = seen || contains(now.text, "LOADING");
        return now.state == master_state::admitted;
    });
    CHECK(seen);
    CHECK(!me.acquire("r")->error);
}
