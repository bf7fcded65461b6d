// A master that may have forgotten a lock does not vote before max_ttl is over, and says so.
#include "quorum_fixture.hpp"

using namespace redlock;
using namespace redlock::test;

namespace {

using std::chrono::steady_clock;

constexpr auto max_ttl = 1s;

config quarantining(const std::vector<std::string>& urls) {
    config result = config_for(urls);
    result.quarantine = quarantine::on;
    result.max_ttl = max_ttl;
    return result;
}

} // namespace

TEST_CASE("a fresh quorum is closed for max_ttl: one waits for it, another learns how long") {
    const auto started = steady_clock::now();
    quorum_of_masters masters(3);
    asio::io_context io;
    // Long enough that the masters are still quarantined on a slow machine.
    config slow = quarantining(masters.urls());
    slow.max_ttl = 20s;
    client refused(io, slow);
    run_until(io, [&] {
        const health now = refused.health();
        return std::all_of(now.masters.begin(), now.masters.end(), [](const master_health& one) {
            return one.state == master_state::quarantined;
        });
    });
    const acquisition_ptr now = refused.acquire("r", once(1s));
    INFO(now->explained());
    CHECK(now->error == errc::no_quorum);
    CHECK(now->error == condition::unavailable);
    REQUIRE(count_votes(now->why, vote::quarantined) == 3);
    CHECK(now->why.votes[0].time_left > 0ms);
    CHECK(now->why.votes[0].time_left < 25s);
    CHECK(to_string(now->why).find("quarantined") != std::string::npos);
    CHECK(to_string(now->why).find(" left") != std::string::npos);
    CHECK(masters.total_keys() == 0);
    const health closed = refused.health();
    CHECK_FALSE(closed.ready);
    CHECK(closed.admitted == 0);
    CHECK_FALSE(closed.quarantine_off);
    CHECK(closed.masters[0].quarantine_left > 0ms);
    CHECK(closed.masters[0].text.find("s left") != std::string::npos);

    client waits(io, quarantining(masters.urls()));
    const acquisition_ptr later = waits.acquire("r", waiting(25s, 1s));
    INFO(later->explained());
    REQUIRE(!later->error);
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
    client me(io, settings);
    me.until_admitted(3);
    lock mine = me.take("r", once(max_ttl));
    const auto watched = me.watch(mine);
    const auto restarted = steady_clock::now();
    masters[0].restart_empty();
    masters[1].restart_empty();

    // The forgetful majority would grant the lock at once.
    client other(io, settings);
    run_until(io, [&] {
        const health now = other.health();
        return std::none_of(now.masters.begin(), now.masters.end(), [](const auto& one) {
            return one.state == master_state::down || one.state == master_state::connecting;
        });
    });
    const acquisition_ptr refused = other.acquire("r", once(max_ttl));
    INFO(refused->explained());
    CHECK((refused->error == errc::no_quorum || steady_clock::now() - restarted >= max_ttl));
    if (!refused->error) { // a very slow machine
        other.release(refused->lock);
    }
    const acquisition_ptr later = other.acquire("r", waiting(20s, max_ttl));
    INFO(later->explained());
    REQUIRE(!later->error);
    CHECK(steady_clock::now() - restarted >= max_ttl);
    // By then the first holder knows that his lease has ended.
    CHECK_FALSE(mine.held());
    run_until(io, [&] { return watched->signalled; });
    CHECK(!watched->error);
}

TEST_CASE("a server that says that it fsyncs every write is quarantined as any other") {
    master_options options;
    options.appendonly = true;
    options.appendfsync = "always";
    const master_process master(options);
    asio::io_context io;
    config slow = quarantining({master.url()});
    slow.max_ttl = 1h;
    client me(io, slow);
    run_until(io, [&] { return me.health().masters[0].state == master_state::quarantined; });
    CHECK(me.acquire("r", once(1s))->error == errc::no_quorum);
}

TEST_CASE("a minority that was restarted does not close the quorum") {
    quorum_of_masters masters(3);
    asio::io_context io;
    client me(io, quarantining(masters.urls()));
    me.until_admitted(3);
    masters[0].restart_empty();
    for (int round = 0; round < 3; ++round) {
        const acquisition_ptr got = me.acquire("r", waiting(10s, max_ttl));
        INFO(got->explained());
        REQUIRE(!got->error);
        me.release(got->lock);
    }
    me.until_admitted(3); // it is admitted by the mere passing of time
}

TEST_CASE("quarantine switched off is said loudly") {
    std::vector<std::string> warnings;
    quorum_fixture site(1, [&](config& c) {
        c.log.level = log_level::warning;
        c.log.write = [&](log_level, std::string_view line) { warnings.emplace_back(line); };
    });
    CHECK(site.me.health().quarantine_off);
    CHECK(to_string(site.me.health()).find("QUARANTINE IS OFF") != std::string::npos);
    REQUIRE_FALSE(warnings.empty());
    CHECK(warnings[0].find("quarantine") != std::string::npos);
    CHECK(validate(config_for(site.masters.urls())).has_value());
}
