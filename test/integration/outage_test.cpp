// Masters that are dead or hung: what an acquire reports, how soon, and what remains afterwards.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

using std::chrono::steady_clock;

// No health checks: what is sent is sent by the test.
void quiet(config& c) {
    c.health_check_interval = 1h;
}

TEST_CASE("masters killed while the SET is in flight vote unreachable, and no key is left") {
    quorum_fixture site(5, quiet, fsyncing_always());
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].hang();
    }
    const acquisition_ptr got = site.me.begin("r", once(30s));
    // The other two have executed theirs.
    CHECK(site.eventually(
        [&] { return site.masters[3].keys().size() == 1 && site.masters[4].keys().size() == 1; }));
    CHECK_FALSE(got->done);
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].kill();
    }
    site.me.finish(got);
    CHECK(*got == errc::no_quorum);
    CHECK(count_votes(got->why, vote::unreachable) + count_votes(got->why, vote::timed_out) == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].restart();
    }
    CHECK(site.settled());
    CHECK(site.masters.total_keys() == 0);
}

TEST_CASE("an acquire that waits goes through when the masters are back") {
    quorum_fixture site(3);
    site.masters[0].kill();
    site.masters[1].kill();
    site.me.until_admitted(1);
    const acquisition_ptr waits = site.me.begin("r", waiting(25s));
    const acquisition_ptr gives_up = site.me.acquire("another", waiting(2s));
    CHECK(gives_up->error == errc::no_quorum);
    CHECK(gives_up->why.attempts >= 2);
    CHECK_FALSE(waits->done);
    site.masters[1].restart();
    site.me.finish(waits);
    REQUIRE(*waits);
    CHECK(site.me.release(waits->lock) == release_result::released);
}

TEST_CASE("a manager may be started before its masters") {
    quorum_of_masters masters(3);
    for (master_process& master : masters) {
        master.kill();
    }
    asio::io_context io;
    client me(io, config_for(masters.urls()));
    bool ready = false;
    error_code error;
    me.manager().async_ready([&](error_code result) {
        ready = true;
        error = result;
    });
    const acquisition_ptr failed = me.acquire("r");
    CHECK(failed->error == errc::no_quorum);
    CHECK_FALSE(ready);
    for (master_process& master : masters) {
        master.restart();
    }
    run_until(io, [&] { return ready; });
    CHECK(!error);
    CHECK(me.health().ready);
    CHECK(!me.acquire("r")->error);
}

TEST_CASE("a restarted master is connected again, and has another run id") {
    quorum_fixture site(3);
    const std::string before = site.me.health().masters[0].run_id;
    CHECK_FALSE(before.empty());
    site.masters[0].kill();
    site.me.until_admitted(2);
    CHECK(site.me.health().masters[0].state != master_state::admitted);
    CHECK_FALSE(site.me.health().masters[0].text.empty());
    site.masters[0].restart();
    site.me.until_admitted(3);
    CHECK(site.me.health().masters[0].run_id != before);
    CHECK(site.me.count().masters[0].connects == 2);
    CHECK(site.me.count().masters[0].disconnects == 1);
}

TEST_CASE(
    "a master that cannot write votes with its error, and a minority of them does not matter") {
    quorum_fixture site(3);
    site.masters[0].command({"CONFIG", "SET", "maxmemory", "1"});
    const acquisition_ptr got = site.me.acquire("r");
    REQUIRE(!got->error);
    CHECK(site.me.release(got->lock) == release_result::released);

    site.masters[1].command({"CONFIG", "SET", "min-replicas-to-write", "1"});
    const acquisition_ptr refused = site.me.acquire("r");
    CHECK(refused->error == errc::no_quorum);
    INFO(refused->explained());
    CHECK(refused->why.votes[0].vote == vote::error);
    CHECK(refused->why.votes[0].text.find("OOM") == 0);
    CHECK(refused->why.votes[1].vote == vote::error);
    CHECK(refused->why.votes[1].text.find("NOREPLICAS") == 0);
    site.masters[1].command({"CONFIG", "SET", "min-replicas-to-write", "0"});
    CHECK(site.no_key_left());
    CHECK(site.settled());
}

TEST_CASE("a release ends at the majority, and hung masters remove the key later") {
    quorum_fixture site(5);
    lock mine = site.take_everywhere("r");
    site.masters[0].hang();
    site.masters[1].hang();
    CHECK(site.me.release(mine) == release_result::released);
    site.masters[0].resume();
    site.masters[1].resume();
    CHECK(site.no_key_left());
    CHECK(site.settled());
}

TEST_CASE("a removal is pending for a master that is down, and sent when it is back") {
    quorum_fixture site(
        5, [](config&) {}, fsyncing_always());
    lock mine = site.take_everywhere("r", once(30s));
    site.masters[0].kill();
    site.masters[1].kill();
    site.me.until_admitted(3);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(site.me.count().pending_removals == 2);
    CHECK(site.me.count().removals_repeated == 0);
    site.masters[0].restart();
    site.masters[1].restart();
    CHECK(site.masters.total_keys() == 2);
    CHECK(site.no_key_left());
    CHECK(site.settled());
    CHECK(site.eventually([&] { return site.me.count().removals_repeated == 2; }));
}

TEST_CASE("a master restarted empty under a holder does not vote before max_ttl is over") {
    quorum_of_masters masters(3);
    constexpr auto max_ttl = 2s;
    config settings = config_for(masters.urls());
    settings.quarantine = quarantine::on;
    settings.max_ttl = max_ttl;
    asio::io_context io;
    client me(io, settings, 3);
    lock mine = me.take("r", once(max_ttl));
    const auto watched = me.watch(mine);
    const auto restarted = steady_clock::now();
    masters[0].restart_empty();
    masters[1].restart_empty();

    // The forgetful majority would grant the lock at once.
    client other(io, settings);
    other.until_each(has_judged);
    const acquisition_ptr refused = other.acquire("r", once(max_ttl));
    INFO(refused->explained());
    CHECK((refused->error == errc::no_quorum || steady_clock::now() - restarted >= max_ttl));
    if (!refused->error) { // a very slow machine
        other.release(refused->lock);
    }
    const acquisition_ptr later = other.acquire("r", waiting(20s, max_ttl));
    REQUIRE(*later);
    CHECK(steady_clock::now() - restarted >= max_ttl);
    // By then the first holder knows that his lease has ended.
    CHECK_FALSE(mine.held());
    run_until(io, [&] { return watched->signalled; });
    CHECK(!watched->error);
}

}} // namespace redlock::test
