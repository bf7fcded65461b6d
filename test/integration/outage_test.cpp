// Masters that are dead or hung: what an acquire reports, how soon, and what remains afterwards.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

std::uint64_t commands_sent(const client& me) {
    return sum_over_masters(me, &master_metrics::commands);
}

// No health checks: what is sent is sent by the test.
void quiet(config& c) {
    c.health_check_interval = 1h;
}

TEST_CASE("locks are taken and released while a minority is dead") {
    quorum_fixture site(5);
    for (std::size_t dead = 1; dead <= 2; ++dead) {
        site.masters[dead].kill();
        site.me.until_admitted(5 - dead);
        const acquisition_ptr got = site.me.acquire("r");
        REQUIRE(*got);
        CHECK(count_votes(got->why, vote::unreachable) == dead);
        CHECK(site.me.release(got->lock) == release_result::released);
    }
    CHECK(site.no_key_left());
}

TEST_CASE("with a majority hung an acquire fails after master_timeout, and later ones at once") {
    quorum_fixture site(5, [](config& c) {
        quiet(c);
        c.master_timeout = 500ms;
    });
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].hang();
    }
    const acquisition_ptr first = site.me.acquire("r");
    CHECK(*first == errc::no_quorum);
    CHECK(count_votes(first->why, vote::timed_out) == 3);
    CHECK(first->why.elapsed >= 500ms);
    site.pass(200ms); // the others get its removal, with a script that they have not loaded yet

    const auto before = commands_sent(site.me);
    const acquisition_ptr second = site.me.acquire("r");
    CHECK(second->error == errc::no_quorum);
    CHECK(count_votes(second->why, vote::timed_out) == 3);
    CHECK(second->why.elapsed < 400ms);
    CHECK(commands_sent(site.me) == before);
    CHECK(site.me.health().masters[0].state == master_state::silent);

    // What had been sent before is executed now, and undone directly after it.
    for (std::size_t i = 0; i < 3; ++i) {
        site.masters[i].resume();
    }
    site.me.until_admitted(5);
    CHECK(site.no_key_left());
    CHECK(site.settled());
    CHECK(!site.me.acquire("r")->error);
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

}} // namespace redlock::test
