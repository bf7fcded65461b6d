#include "virtual_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace acquire_test { namespace {

using namespace unit;
using redlock::wait_for;

// The commands of lock traffic that a master saw, in order.
std::vector<std::string> traffic(const virtual_master& server) {
    std::vector<std::string> lines;
    for (const std::string& line : server.seen) {
        if (line.starts_with("SET ") || line.starts_with("EVAL")) {
            lines.push_back(line);
        }
    }
    return lines;
}

TEST_CASE("three hung masters of five fail at master_timeout, and at once from then on") {
    started_quorum it(5);
    for (std::size_t i = 0; i < 3; ++i) {
        it.paths[i].hung = true;
    }
    redlock::time_point began = it.now();
    const answer first = it.acquire_now(once());
    CHECK(first.why == errc::no_quorum);
    CHECK(first.at == began + 100ms);
    CHECK(first.votes[0] == vote::timed_out);
    CHECK(first.votes[4] == vote::granted);
    began = it.now();
    const answer second = it.acquire_now(once());
    CHECK(second.why == errc::no_quorum);
    CHECK(second.at == began);
    CHECK(second.votes[0] == vote::timed_out);
}

TEST_CASE("a majority that granted too late is too slow") {
    struct {
        milliseconds min_validity;
        milliseconds stop_margin;
        milliseconds back;
        bool won;
        milliseconds ttl = 1s; // usable: 988 ms
    } const cases[] = {
        {0ms, 938ms, 49ms, true},
        {0ms, 938ms, 50ms, false},
        {938ms, 0ms, 49ms, true},
        {938ms, 900ms, 49ms, true},
        {900ms, 938ms, 50ms, false},
        {0ms, redlock::default_stop_margin, 86ms, true, 100ms}, // 10 ms of the usable 97
        {0ms, redlock::default_stop_margin, 87ms, false, 100ms},
    };
    for (const auto& one : cases) {
        CAPTURE(one.min_validity.count(), one.stop_margin.count(), one.back.count());
        started_quorum it(3);
        it.usual_margins = true;
        acquire_options options = once();
        options.ttl = one.ttl;
        options.min_validity = one.min_validity;
        options.stop_margin = one.stop_margin;
        it.delay_replies(one.back);
        const answer got = it.acquire_now(options);
        CHECK(got.won == one.won);
        if (!one.won) {
            CHECK(got.why == errc::validity_exhausted);
            it.run_for(200ms);
            CHECK(!it.has_key());
            CHECK(it.idle());
            CHECK(it.engine.count().failed[errc::validity_exhausted] == 1);
        }
    }
}

TEST_CASE("a rollback goes to every master that was asked, after the SET, before the next SET") {
    started_quorum it(5);
    it.masters[0].put(it.key(), "somebody");
    it.masters[1].put(it.key(), "somebody");
    it.masters[2].replies["SET"] = "-OOM command not allowed\r\n";
    const std::uint64_t name = it.acquire(patient(40ms), 200ms);
    CHECK(!it.answered(name).won);
    CHECK(it.tokens.size() >= 3);
    CHECK(it.answered(name).attempts == it.tokens.size());
    CHECK(std::set<std::string>(it.tokens.begin(), it.tokens.end()).size() == it.tokens.size());
    std::size_t arbiters = 0;
    for (const virtual_master& server : it.masters) {
        std::vector<std::string> expected;
        std::vector<std::string> got = traffic(server);
        // The first removal of a connection is sent as a whole script.
        for (std::string& line : got) {
            line = line.starts_with("EVAL ") ? "EVALSHA" + line.substr(4) : line;
        }
        for (const std::string& token : it.tokens) {
            // Not every attempt comes further than to the arbiter.
            if (std::find(got.begin(), got.end(), "SET p:{r} " + token + " NX PX 10000")
                != got.end()) {
                expected.push_back("SET p:{r} " + token + " NX PX 10000");
                expected.push_back("EVALSHA remove 1 p:{r} 0 " + token + " 0");
            }
        }
        CHECK(got == expected);
        CHECK(server.count("SET") >= 2);
        arbiters += server.count("SET") == it.tokens.size() ? 1U : 0U;
    }
    CHECK(arbiters == 1);
    CHECK(it.idle());
    CHECK(it.masters[3].data.entries().empty());
}

TEST_CASE("a grant that arrives after the rollback is not counted, and is undone") {
    started_quorum it(3);
    it.masters[0].put(it.key(), "somebody");
    it.masters[1].put(it.key(), "somebody");
    it.paths[2].back = 60ms;
    const std::uint64_t name = it.acquire(patient(50ms), 30ms);
    // Now two masters are free, and the late grant of the first attempt is in flight.
    it.masters[0].when = it.masters[1].when = [](const arguments& words) -> mishap {
        return words[0] == "SET" ? mishap::hang_before : mishap::none;
    };
    it.run_for(300ms);
    CHECK(!it.answered(name).won);
    CHECK(it.masters[2].data.entries().empty());
}

TEST_CASE(
    "an acquire that failed completes when its rollback is on the wire, or at master_timeout") {
    for (const bool takes_bytes_again : {true, false}) {
        started_quorum it(3);
        it.hold_everywhere();
        const redlock::time_point began = it.now();
        const std::uint64_t name = it.acquire(once(), 500us);
        it.paths[1].takes_bytes = false;
        it.run_for(20ms);
        CHECK(it.answer_to(name) == nullptr);
        it.paths[1].takes_bytes = takes_bytes_again;
        it.run_for(300ms);
        CHECK(it.answered(name).why == errc::contended);
        CHECK(it.answered(name).at == began + (takes_bytes_again ? 20'500us : 101ms));
    }
}

TEST_CASE("a master that lags too far is not asked") {
    started_quorum it(1);
    it.paths[0].takes_bytes = false;
    for (std::size_t i = 0; i < redlock::core::connection::in_flight_max; ++i) {
        it.acquire(once(), std::to_string(i));
    }
    const answer got = it.acquire_now(once(), "last");
    CHECK(got.why == errc::no_quorum);
    CHECK(got.ballots.text(0) == "too many commands in flight");
}

TEST_CASE("a majority that hangs during a short wait is an outage, and slow replies are not") {
    auto rules = settings_for(3);
    rules.master_timeout = 10s;
    started_quorum it(rules);
    acquire_options brief = once();
    SECTION("it hangs, and the wait is long enough for an answer, also after another one") {
        it.paths[0].hung = it.paths[1].hung = true;
        if (GENERATE(false, true)) {
            brief.wait = 10s;
            it.acquire(brief);
        }
        brief.wait = 100ms;
        const answer got = it.acquire_now(brief);
        CHECK(got.why == errc::no_quorum);
        CHECK(got.votes == std::vector<vote>{vote::pending, vote::pending, vote::granted});
    }
    SECTION("even if an attempt before has found it taken") {
        it.hold_everywhere();
        brief.wait = 1s;
        const std::uint64_t name = it.acquire(brief, 300ms);
        it.hang();
        CHECK(it.awaited(name).why == errc::no_quorum);
        CHECK(it.answered(name).votes == std::vector<vote>(3, vote::pending));
    }
    SECTION("not if a busy machine has delayed the answers by many round trips") {
        it.hold_everywhere();
        brief.wait = 1s;
        const redlock::time_point began = it.now();
        const std::uint64_t name = it.acquire(brief);
        it.run_until(began + 990ms);
        it.hang();
        CHECK(it.awaited(name).why == errc::contended);
        CHECK(it.answered(name).at == began + 1s);
    }
    SECTION("the wait is too short for any answer") {
        brief.wait = 1ms;
        it.paths[0].there = it.paths[1].there = 2ms;
        CHECK(it.acquire_now(brief).why == errc::wait_timed_out);
    }
    SECTION("the masters are slow, as they were before") {
        it.delay_replies(300ms);
        it.acquire_now(once(), "another");
        it.run_for(1s);
        brief.wait = 200ms;
        CHECK(it.acquire_now(brief).why == errc::wait_timed_out);
        brief.wait = redlock::wait_for::none();
        brief.ttl = 250ms;
        const answer got = it.acquire_now(brief);
        CHECK(got.why == errc::validity_exhausted);
        CHECK(got.votes == std::vector<vote>(3, vote::pending));
        CHECK(it.engine.count().failed[errc::validity_exhausted] == 1);
    }
    SECTION("a hanging majority is an outage even if the validity is used up") {
        it.paths[0].hung = it.paths[1].hung = true;
        brief.ttl = 250ms;
        CHECK(it.acquire_now(brief).why == errc::no_quorum);
    }
}

TEST_CASE("cancelling what is over changes nothing") {
    started_quorum it(3);
    const std::uint64_t name = it.acquire(patient(), 10ms);
    REQUIRE(it.answered(name).won);
    it.cancel(name, 10ms);
    CHECK(it.engine.count().held == 1);
    CHECK(it.engine.count().cancelled == 0);
}

}} // namespace acquire_test
