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
