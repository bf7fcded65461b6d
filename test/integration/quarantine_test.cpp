// A master that may have forgotten a lock does not vote before max_ttl is over, and says so.
#include "quorum_fixture.hpp"

namespace redlock::test { namespace {

using std::chrono::steady_clock;

constexpr auto max_ttl = 1s;

config quarantining(const std::vector<std::string>& urls) {
    config result = config_for(urls);
    result.quarantine = quarantine::on;
    result.max_ttl = max_ttl;
    return result;
}

TEST_CASE("a fresh quorum is closed for max_ttl: one waits for it, another learns how long") {
    const auto started = steady_clock::now();
    quorum_of_masters masters(3);
    asio::io_context io;
    // Long enough that the masters are still quarantined on a slow machine.
    config slow = quarantining(masters.urls());
    slow.max_ttl = 20s;
    client refused(io, slow);
    refused.until_each([](const auto& one) { return one.state == master_state::quarantined; });
    const acquisition_ptr now = refused.acquire("r", once(1s));
    CHECK(*now == errc::no_quorum);
    CHECK(now->error == condition::unavailable);
    REQUIRE(count_votes(now->why, vote::quarantined) == 3);
    CHECK(now->why.votes[0].time_left > 0ms);
    CHECK(now->why.votes[0].time_left < 25s);
    CHECK(contains(to_string(now->why), "quarantined"));
    CHECK(contains(to_string(now->why), " left"));
    CHECK(masters.total_keys() == 0);
    const health closed = refused.health();
    CHECK_FALSE(closed.ready);
    CHECK(closed.admitted == 0);
    CHECK_FALSE(closed.quarantine_off);
    CHECK(closed.masters[0].quarantine_left > 0ms);
    CHECK(contains(closed.masters[0].text, "s left"));

    client waits(io, quarantining(masters.urls()));
    const acquisition_ptr later = waits.acquire("r", waiting(25s, 1s));
    REQUIRE(*later);
    CHECK(steady_clock::now() - started >= max_ttl);
    CHECK(waits.release(later->lock) == release_result::released);
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

TEST_CASE("a server that says that it fsyncs every write is quarantined as any other") {
    const master_process master(fsyncing_always());
    asio::io_context io;
    config slow = quarantining({master.url()});
    slow.max_ttl = 1h;
    client me(io, slow);
    run_until(io, [&] { return me.health().masters[0].state == master_state::quarantined; });
    CHECK(me.acquire("r", once(1s))->error == errc::no_quorum);
}

}} // namespace redlock::test
