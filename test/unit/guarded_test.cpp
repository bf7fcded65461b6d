// The engine in the guarded protocol, against masters whose scripts answer what a test says. What
// the scripts themselves do is shown in test/simulation, on real Lua, and in test/integration.
#include "core/guarded_scripts.hpp"
#include "virtual_quorum.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace guarded_test {

using namespace unit;
using namespace std::chrono_literals;
namespace core = redlock::core;

namespace {

std::string three(std::int64_t status, std::int64_t value, std::int64_t clock = 0) {
    return "*3\r\n:" + std::to_string(status) + "\r\n:" + std::to_string(value)
           + "\r\n:" + std::to_string(clock) + "\r\n";
}

redlock::core::settings guarded(std::size_t masters, std::size_t hand_overs = 0) {
    auto rules = settings_for(masters);
    rules.hand_overs_max = hand_overs;
    rules.protocol = redlock::protocol::guarded;
    rules.epoch_key = "p::epoch";
    return rules;
}

acquire_options fenced() {
    acquire_options options = once();
    options.fencing = true;
    return options;
}

// What each script answers on one master, until the test says otherwise.
struct script_answers {
    std::string handshake = three(0, 0);
    std::string acquire = three(1, 7);
    std::string raise = three(1, 9, 0); // empty: that it is raised as was asked for
    std::string extend = three(1, 0);
    std::string remove = three(1, 0);
    std::map<std::string, int> said;
};

struct guarded_quorum {
    explicit guarded_quorum(std::size_t masters, std::size_t hand_overs = 0)
        : scripts(masters),
          it(guarded(masters, hand_overs)) {
        for (std::size_t i = 0; i < masters; ++i) {
            virtual_master& server = it.masters[i];
            server.when = [this, i, &server](const arguments& words) {
                if (words[0].starts_with("EVAL")) {
                    server.replies["EVALSHA"] = answer(scripts[i], words);
                }
                return mishap::none;
            };
        }
    }

    static std::string answer(script_answers& mine, const arguments& words) {
        const auto is = [&](const core::script& one) {
            return words[1] == one.text || words[1] == one.sha1;
        };
        if (is(core::guarded_handshake)) {
            ++mine.said["handshake"];
            return mine.handshake;
        }
        if (is(core::guarded_acquire)) {
            ++mine.said["acquire"];
            return mine.acquire;
        }
        if (is(core::guarded_raise)) {
            ++mine.said["raise"];
            return mine.raise.empty() ? three(1, std::stoll(words[6]), 0) : mine.raise;
        }
        if (is(core::guarded_extend)) {
            ++mine.said["extend"];
            return mine.extend;
        }
        ++mine.said["remove"];
        return mine.remove;
    }

    int said(const std::string& what) {
        int sum = 0;
        for (script_answers& one : scripts) {
            sum += one.said[what];
        }
        return sum;
    }

    std::vector<script_answers> scripts;
    virtual_quorum it;
};

} // namespace

TEST_CASE("a guarded master is admitted by its handshake, also when nobody asks for anything") {
    guarded_quorum q(3);
    q.it.start();
    CHECK(q.it.engine.ready());
    CHECK(q.said("handshake") == 3);
}

TEST_CASE("a master that says that it is quarantined does not vote, and is asked again") {
    guarded_quorum q(3);
    q.scripts[0].handshake = three(1, 5'000'000);
    q.it.start();
    CHECK(q.it.engine.examine(q.it.now()).masters[0].state == redlock::master_state::quarantined);
    CHECK(q.it.acquire_now(once()).votes[0] == vote::quarantined);
    CHECK(q.scripts[0].said["acquire"] == 0);
    q.it.run_for(6s);
    CHECK(q.it.engine.examine(q.it.now()).admitted == 3);
}

TEST_CASE("a quarantine that was taken away by hand ends with the next health check") {
    auto rules = guarded(1);
    rules.health_check_interval = 1s;
    virtual_quorum it(rules);
    std::string handshake = three(1, 86'400'000'000);
    it.masters[0].when = [&](const arguments& words) {
        it.masters[0].replies["EVALSHA"] = handshake;
        return words.empty() ? mishap::break_before : mishap::none;
    };
    it.start();
    it.run_for(10s);
    CHECK(it.engine.examine(it.now()).admitted == 0);
    handshake = three(0, 0);
    it.run_for(3s);
    CHECK(it.engine.examine(it.now()).admitted == 1);
}

TEST_CASE("counters that agree cost no second round trip") {
    guarded_quorum q(3);
    q.it.start();
    const answer got = q.it.acquire_now(fenced());
    CHECK(got.won);
    CHECK(q.said("raise") == 0);
    CHECK(q.it.engine.count().raised == 0);
}

TEST_CASE("counters that differ are raised to the largest, where they are behind") {
    guarded_quorum q(3);
    q.scripts[1].acquire = three(1, 9);
    q.scripts[2].acquire = three(0, 500, 0);
    q.it.start();
    const answer got = q.it.acquire_now(fenced());
    CHECK(got.won);
    CHECK(q.scripts[0].said["raise"] == 1);
    CHECK(q.scripts[1].said["raise"] == 0);
    CHECK(q.scripts[2].said["raise"] == 0);
    CHECK(q.it.engine.count().raised == 1);
}

TEST_CASE("a counter that could not be raised is no vote, and the attempt is rolled back") {
    const std::string refused = GENERATE(three(0, 12, 0), three(0, 0, 0));
    guarded_quorum q(3);
    q.scripts[0].raise = refused;
    q.scripts[1].acquire = three(1, 9);
    q.scripts[2].acquire = three(0, 500, 0);
    q.it.start();
    const answer got = q.it.acquire_now(fenced());
    CHECK(!got.won);
    CHECK(got.why == errc::contended);
    q.it.run_for(1s);
    CHECK(q.said("remove") == 3);
}

TEST_CASE("the answer to the raise of one hand-over is no vote for that of the next") {
    guarded_quorum q(3, 10);
    q.it.start();
    const answer first = q.it.acquire_now(fenced());
    for (script_answers& one : q.scripts) {
        one.acquire = three(0, 5'000, 0);
        one.raise.clear();
    }
    acquire_options waits = fenced();
    waits.wait = redlock::wait_for::forever();
    const std::uint64_t second = q.it.acquire(waits);
    const std::uint64_t third = q.it.acquire(waits);
    q.it.run_for(5ms);
    // Of the second owner's raise master 2 tells late; of the third's only master 0 hears.
    q.it.paths[2].back = 30ms;
    q.it.release(first);
    q.it.run_for(5ms);
    REQUIRE(q.it.answer_to(second) != nullptr);
    REQUIRE(q.it.answer_to(second)->won);
    q.it.paths[1].hung = q.it.paths[2].hung = true;
    q.it.release(*q.it.answer_to(second));
    q.it.run_for(50ms);
    CHECK(q.it.answer_to(third) == nullptr);
    q.it.resume(2);
    q.it.run_for(50ms);
    REQUIRE(q.it.answer_to(third) != nullptr);
    CHECK(q.it.answer_to(third)->won);
    CHECK(q.it.fences == std::vector<std::uint64_t>{7, 8, 9});
}

TEST_CASE("an extension whose script is missing is not sent again once the lease was handed over") {
    guarded_quorum q(3, 10);
    q.it.start();
    const answer first = q.it.acquire_now(fenced());
    for (script_answers& one : q.scripts) {
        one.acquire = three(0, 5'000, 0);
        one.raise.clear();
    }
    q.it.extend(first, 10s);
    acquire_options waits = fenced();
    waits.wait = redlock::wait_for::forever();
    const std::uint64_t second = q.it.acquire(waits);
    q.it.run_for(5ms);
    REQUIRE(q.said("extend") == 3);
    for (script_answers& one : q.scripts) {
        one.extend = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
    for (auto& path : q.it.paths) {
        path.back = 20ms;
    }
    q.it.extend(first, 10s);
    q.it.run_for(1ms);
    REQUIRE(q.said("extend") == 6);
    q.it.release(first); // the answers come while the counters are raised
    q.it.run_for(50ms);
    REQUIRE(q.it.answer_to(second) != nullptr);
    CHECK(q.it.answer_to(second)->won);
    CHECK(q.said("extend") == 6);
}

TEST_CASE("without fencing, counters do not matter") {
    guarded_quorum q(3);
    q.scripts[1].acquire = three(1, 0);
    q.it.start();
    CHECK(q.it.acquire_now(once()).won);
    CHECK(q.said("raise") == 0);
}

TEST_CASE("a grant without the counter that was asked for is an error, not a lock") {
    guarded_quorum q(3);
    for (script_answers& one : q.scripts) {
        one.acquire = three(1, 0);
    }
    q.it.start();
    const answer got = q.it.acquire_now(fenced());
    CHECK(!got.won);
    CHECK(got.why == errc::no_quorum);
    CHECK(got.votes[0] == vote::error);
}

TEST_CASE("a command that came late is no vote, and is counted") {
    guarded_quorum q(3);
    q.scripts[0].acquire = q.scripts[1].acquire = three(-1, 0);
    q.it.start();
    const answer got = q.it.acquire_now(once());
    CHECK(!got.won);
    CHECK(got.why == errc::no_quorum);
    const auto masters = q.it.engine.count().masters;
    CHECK(masters[0].late == 1);
    CHECK(masters[2].late == 0);
}

TEST_CASE("an extension asks all masters, and counts what was healed") {
    guarded_quorum q(3);
    q.scripts[2].acquire = three(0, 500, 0);
    q.scripts[2].extend = three(2, 0);
    q.it.start();
    const answer got = q.it.acquire_now(once());
    REQUIRE(got.won);
    q.it.extend(got, 10s);
    q.it.run_for(50ms);
    CHECK(q.said("extend") == 3);
    CHECK(q.it.engine.count().masters[2].healed == 1);
    q.it.release(got);
    q.it.run_for(50ms);
    CHECK(q.scripts[2].said["remove"] == 1); // what was healed is removed, too
}

TEST_CASE("an idle guarded master is asked for its clock, which no answer would tell else") {
    auto rules = guarded(1);
    rules.health_check_interval = 1s;
    virtual_quorum it(rules);
    it.masters[0].replies["EVALSHA"] = three(0, 0);
    it.masters[0].replies["TIME"] = "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n";
    it.start();
    it.run_for(10s);
    CHECK(it.masters[0].count("TIME") >= 9);
    CHECK(it.masters[0].count("PING") == 0);
    // So the moment that an acquire carries is right to within the error of a second, not of ten.
    std::string not_after;
    it.masters[0].when = [&](const arguments& words) {
        if (words[0].starts_with("EVAL") && words.size() == 12) {
            not_after = words[10];
        }
        return mishap::none;
    };
    it.masters[0].replies["EVALSHA"] = three(1, 1);
    CHECK(it.acquire_now(once()).won);
    CHECK(std::stoll(not_after) > 1'700'000'000'000'000);
    CHECK(std::stoll(not_after) < 1'700'000'001'200'000);
}

TEST_CASE("what the server's words do not say of the way out is added to them") {
    const struct {
        const char* words;
        const char* advice;
    } refusals[] = {
        {"-NOPERM this user has no permissions to run the 'eval' command\r\n", "protocol::plain"},
        {"-ERR unknown command 'EVAL', with args\r\n", "protocol::plain"},
        {"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n",
         "must allow the keys p:*"},
        {"-NOPERM No permissions to access a key\r\n", "must allow the keys p:*"},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "'maxmemory'."},
    };
    for (const auto& one : refusals) {
        guarded_quorum q(1);
        q.scripts[0].handshake = one.words;
        q.it.start();
        const std::string text = q.it.engine.examine(q.it.now()).masters[0].text;
        CAPTURE(text);
        CHECK(text.find(one.advice) != std::string::npos);
        CHECK((text.find("protocol::plain") == std::string::npos) == (one.advice[0] != 'p'));
    }
}

} // namespace guarded_test
