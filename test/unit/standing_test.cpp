// Which masters vote: quarantine, duplicates, evictions.

#include "core/masters/admission.hpp"
#include "virtual_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace standing_test { namespace {

using namespace unit;
using namespace redlock;

redlock::core::settings quarantined(std::size_t masters) {
    redlock::core::settings rules = settings_for(masters);
    rules.quarantine = true;
    return rules;
}

std::vector<master_state> states(const virtual_quorum& it) {
    std::vector<master_state> out;
    for (const redlock::master_health& one : it.engine.examine(it.now()).masters) {
        out.push_back(one.state);
    }
    return out;
}

constexpr auto admitted = master_state::admitted;
constexpr auto duplicate = master_state::duplicate;
using all = std::vector<master_state>;

redlock::core::server_info info_of(std::int64_t uptime, const std::string& more = {}) {
    return *redlock::core::parse_info(
        "run_id:1\nrole:master\nuptime_in_seconds:" + std::to_string(uptime) + "\n" + more);
}

TEST_CASE("a server votes once it has been up for longer than any lease, by anybody's clock") {
    redlock::core::settings rules;
    rules.max_ttl = 30s;
    rules.drift = {0.01, 2ms};
    const redlock::time_point now(50'000s);
    const auto votes_from = [&](std::int64_t uptime) {
        return redlock::core::judge(info_of(uptime), rules, now).votes_from;
    };
    // 30 s, twice 1 % for the two clocks, 2 ms: and the server may be a second younger than it
    // says.
    const auto needed = 30s + 600ms + 2ms;
    CHECK(votes_from(-5) == now + needed);
    CHECK(votes_from(1) == now + needed);
    CHECK(votes_from(2) == now + needed - 1s);
    CHECK(votes_from(31) == now + needed - 30s);
    CHECK(votes_from(32) == redlock::core::never);
}

TEST_CASE("a server may evict keys, or loads, unless it says that it does not") {
    for (const char* const value : {"1", "-1", "18446744073709551616", "1gb", "yes"}) {
        CAPTURE(value);
        CHECK(info_of(1, "maxmemory:" + std::string(value) + "\r\n").memory_limited);
        CHECK(info_of(1, "loading:" + std::string(value) + "\r\n").loading);
    }
    for (const char* const text : {"", "maxmemory:0\r\nloading:0\r\n"}) {
        CHECK_FALSE(info_of(1, text).memory_limited);
        CHECK_FALSE(info_of(1, text).loading);
    }
}

TEST_CASE("a promoted server names what it was a replica of, and nothing else is taken for that") {
    const auto promoted_from = [](const std::string& id) {
        return info_of(1, "master_replid2:" + id + "\r\n").promoted_from;
    };
    CHECK(info_of(1).promoted_from.empty());
    CHECK(promoted_from(std::string(40, '0')).empty());
    CHECK(promoted_from("").empty());
    CHECK(
        promoted_from("5a49bb1bd1a3e9033a8af5c5ac17f1b18505144c")
        == "5a49bb1bd1a3e9033a8af5c5ac17f1b18505144c");
    CHECK(promoted_from("two words").empty());
    CHECK(promoted_from("a\x7f").empty());
    CHECK(promoted_from("a\x80").empty());
    CHECK(promoted_from("a~") == "a~");
    CHECK(promoted_from(std::string(65, 'a')).empty());
}

struct fresh_quorum : virtual_quorum {
    fresh_quorum() : virtual_quorum(quarantined(3)) {
        each([this](virtual_master& server) { server.started_us = server.wall_us(now()); });
        start();
    }
};

TEST_CASE("a fresh quorum opens exactly when its quarantine ends, and wakes the waiters") {
    fresh_quorum it;
    const redlock::time_point introduced = it.now() - 9ms; // INFO came back a millisecond later
    const redlock::time_point opens = introduced + it.engine.rules().quarantine_time();
    const answer impatient = it.acquire_now(once());
    CHECK(impatient.why == errc::no_quorum);
    CHECK(impatient.votes == std::vector<vote>(3, vote::quarantined));
    const auto votes = it.engine.describe(impatient.ballots, it.now());
    CHECK(votes[0].text.starts_with("31 s left"));
    CHECK(votes[0].time_left == std::chrono::ceil<milliseconds>(opens - it.now()));
    const health before = it.engine.examine(it.now());
    CHECK(!before.ready);
    CHECK(before.admitted == 0);
    CHECK(before.masters[1].state == master_state::quarantined);
    CHECK(before.masters[1].quarantine_left == votes[1].time_left);

    const std::uint64_t name = it.acquire(patient());
    it.run_until(opens - 1ns);
    CHECK(it.answer_to(name) == nullptr);
    CHECK(it.masters[0].count("SET") == 0);
    CHECK(!it.engine.ready());
    it.run_until(opens);
    CHECK(it.engine.ready());
    it.run_for(it.engine.rules().retry_delay_min + 1ms);
    CHECK(it.answered(name).won);
}

TEST_CASE("an acquire whose wait ends before the quarantine does not wait in vain") {
    fresh_quorum it;
    const auto quarantine = std::chrono::ceil<milliseconds>(it.engine.rules().quarantine_time());
    const std::uint64_t second = it.acquire(patient(quarantine), "r2");
    const answer brief = it.acquire_now(patient(quarantine - 1s), "r1");
    CHECK(brief.why == errc::no_quorum);
    CHECK(brief.attempts == 1);
    CHECK(brief.votes == std::vector<vote>(3, vote::quarantined));
    it.run_for(quarantine - 1s);
    CHECK(it.answer_to(second) == nullptr);
    it.run_for(1s);
    CHECK(it.answered(second).won);
}

TEST_CASE("a quarantine ends no wait if the other masters may still be a majority") {
    fresh_quorum away;
    away.cut_off(0);
    away.cut_off(1); // they may not be in quarantine when they are back
    CHECK(away.answer_to(away.acquire(patient(1s), 10ms)) == nullptr);

    virtual_quorum it(quarantined(3));
    it.masters[0].started_us = it.masters[0].wall_us(it.now());
    it.masters[2].when = [](const auto&) { return mishap::hang_before; };
    it.start();
    const std::uint64_t name = it.acquire(patient(10s), 2s);
    CHECK(it.answer_to(name) == nullptr);
    const char* const outage = "waiting for a quorum: 1 of 3 masters vote, 2 are needed: ";
    CHECK(it.logged(outage) == 1); // early, and once
    it.run_for(1s);
    CHECK(it.logged(outage) == 1);
    it.masters[2].when = nullptr;
    it.run_for(7s);
    CHECK(it.answered(name).won);
}

TEST_CASE("health tells what all processes of a deployment have to agree on") {
    redlock::core::settings rules = quarantined(3);
    rules.key_prefix = "locks:";
    const virtual_quorum it(rules);
    const health found = it.engine.examine(it.now());
    CHECK(found.max_ttl == rules.max_ttl);
    CHECK(found.quarantine_time >= rules.quarantine_time());
    CHECK(found.quarantine_time < rules.quarantine_time() + 1ms);
}

TEST_CASE(
    "the vote of a server passes to its other name once the first was away for a quarantine") {
    virtual_quorum it(quarantined(3));
    it.masters[1].run_id = it.masters[0].run_id;
    it.start();
    REQUIRE(states(it) == all{admitted, duplicate, admitted});
    it.cut_off(0, 30s);
    CHECK(states(it)[1] == duplicate);
    it.run_for(1s);
    CHECK(states(it)[1] == admitted);
    CHECK(it.acquire_now(once()).won);
    it.paths[0].reachable = true;
    it.run_for(10s);
    CHECK(states(it) == all{duplicate, admitted, admitted}); // never both
    it.cut_off(1, 20s);
    CHECK(states(it)[0] == duplicate);
    it.run_for(20s);
    CHECK(states(it)[0] == admitted);
}

// Masters whose fitness is asked again each second. They have been admitted for a while.
struct watched_quorum : virtual_quorum {
    static redlock::core::settings rules_for(redlock::protocol speaks) {
        redlock::core::settings rules =
            speaks == redlock::protocol::guarded ? guarded_settings_for(3) : settings_for(3);
        rules.quarantine = true;
        rules.fitness_interval = 1s;
        return rules;
    }
    explicit watched_quorum(redlock::protocol speaks) : virtual_quorum(rules_for(speaks)) {
        start();
        run_for(40s);
    }
    void let_evict(bool may) {
        for (const std::size_t i : {0U, 1U}) {
            masters[i].info_overrides["maxmemory"] = may ? "1000000" : "0";
            masters[i].info_overrides["maxmemory_policy"] = may ? "volatile-lru" : "noeviction";
        }
    }
    // Until all masters have executed an INFO, whose replies are in flight.
    void until_asked() {
        const auto asked = masters[2].count("INFO");
        REQUIRE(run_while_not([&] { return masters[2].count("INFO") > asked; }));
    }
};

constexpr auto ineligible = master_state::ineligible;
constexpr auto in_quarantine = master_state::quarantined;

TEST_CASE("connected masters that may evict keys stop to vote, and vote again after a quarantine") {
    const auto speaks = GENERATE(redlock::protocol::plain, redlock::protocol::guarded);
    const bool busy = GENERATE(false, true);
    watched_quorum it(speaks);
    REQUIRE(states(it) == all(3, admitted));
    const answer held = it.take(renewed());
    const std::size_t asked = it.masters[2].count("INFO");
    it.let_evict(true);
    for (int i = 0; i < 11; ++i) {
        if (busy) {
            it.acquire_now(once(), "r" + std::to_string(i));
        }
        it.run_for(100ms);
    }
    CHECK(it.masters[2].count("INFO") <= asked + 2);
    CHECK(states(it) == all{ineligible, ineligible, admitted});
    CHECK(it.logged("m0: does not vote: may evict locks") == 1);
    const answer got = it.acquire_now(once(), "other");
    CHECK(got.why == errc::no_quorum);
    CHECK(got.votes[0] == vote::error);
    // Nor for an extension, though the keys are still there.
    CHECK(it.extend_now(held, 10s) == errc::no_quorum);
    it.run_for(10s);
    CHECK(states(it) == all{ineligible, ineligible, admitted});
    it.let_evict(false);
    it.run_for(1100ms);
    CHECK(states(it) == all{in_quarantine, in_quarantine, admitted});
    it.run_for(40s);
    CHECK(states(it) == all(3, admitted));
    CHECK(it.acquire_now(once()).won);
}

TEST_CASE("a grant that comes after the news that its master may evict keys is not a vote") {
    watched_quorum it(GENERATE(redlock::protocol::plain, redlock::protocol::guarded));
    it.until_asked();
    it.let_evict(true);
    it.until_asked();
    REQUIRE(states(it) == all(3, admitted)); // the reply to INFO is in flight
    const std::size_t sets = it.masters[0].count("SET");
    const answer got = it.acquire_now(once());
    CHECK(it.masters[0].count("SET") > sets);
    CHECK(got.why == errc::no_quorum);
    CHECK(got.votes[0] == vote::error);
    CHECK(it.engine.describe(got.ballots, it.now())[0].text.find("evict") != std::string::npos);
    CHECK(states(it) == all{ineligible, ineligible, admitted}); // before its record shows it
}

TEST_CASE("a master that has evicted keys between two looks is quarantined once") {
    watched_quorum it(GENERATE(redlock::protocol::plain, redlock::protocol::guarded));
    it.masters[0].evicted_keys = 3;
    it.run_for(1100ms);
    CHECK(states(it) == all{in_quarantine, admitted, admitted});
    it.run_for(40s);
    CHECK(states(it) == all(3, admitted));
    it.run_for(10s);
    CHECK(states(it) == all(3, admitted));
}

TEST_CASE("a server that refuses scripts does not vote, and health says what to allow") {
    const auto how = GENERATE(redlock::protocol::plain, redlock::protocol::guarded);
    auto rules = watched_quorum::rules_for(how);
    rules.quarantine = false;
    virtual_quorum it(rules);
    it.masters[0].forbidden = {"EVAL"};
    it.masters[1].replies["EVALSHA"] = "-ERR unknown command 'EVAL', with args\r\n";
    it.start();
    const health found = it.engine.examine(it.now());
    CHECK(found.admitted == 1);
    for (const std::size_t i : {0U, 1U}) {
        CHECK(found.masters[i].state == redlock::master_state::ineligible);
        CHECK(found.masters[i].text.find("redlock needs EVAL") != std::string::npos);
    }
    CHECK(found.masters[0].text.find("the ACL must allow them") != std::string::npos);
    CHECK(found.masters[1].text.find("use servers that run scripts") != std::string::npos);
    const std::string moved = redlock::core::refusal_text("MOVED 866 10.0.0.1:6379", rules);
    CHECK(moved.find("use servers with cluster-enabled no") != std::string::npos);
    const std::uint64_t name = it.acquire(once(), 50ms);
    CHECK(it.answered(name).why == errc::no_quorum);
    CHECK(it.masters[0].count("SET") == 0);
    it.masters[0].forbidden.clear(); // seen at the next health check
    it.run_for(it.engine.rules().health_check_interval + 100ms);
    CHECK(it.engine.examine(it.now()).admitted == 2);
    it.masters[2].forbidden = {"EVAL"}; // while connected: the plain protocol asks again
    it.run_for(rules.fitness_interval + 100ms);
    CHECK(it.engine.examine(it.now()).admitted == (how == redlock::protocol::plain ? 1 : 2));
}

TEST_CASE("a master that could not serve when it was introduced is asked again soon") {
    auto rules = guarded_settings_for(3);
    rules.health_check_interval = 1s;
    virtual_quorum it(rules);
    it.masters[0].replies["EVALSHA"] = GENERATE(
        as<std::string>(),
        "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        "-LOADING Redis is loading the dataset in memory\r\n");
    it.start();
    CHECK(states(it)[0] == master_state::ineligible);
    const std::size_t before = it.masters[0].count("EVAL");
    it.run_for(20s);
    CHECK(it.masters[0].count("EVAL") - before >= 80);
    CHECK(it.masters[0].count("EVAL") - before <= 400);
    it.masters[0].replies.clear();
    it.run_for(210ms);
    CHECK(states(it)[0] == admitted);
}

}} // namespace standing_test
