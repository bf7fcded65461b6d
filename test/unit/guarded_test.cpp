// The engine in the guarded protocol: counters and their raises, quarantined masters, healed keys.

#include "core/bytes/form_scripts.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace guarded_test { namespace {

using namespace unit;
namespace core = redlock::core;

const std::string record_key = "p::epoch";
const std::string fence = "p:{r}:fence";

// Its masters have lost nothing.
struct guarded_quorum : virtual_quorum {
    explicit guarded_quorum(core::settings rules, bool starts = true)
        : virtual_quorum(std::move(rules)) {
        put_records();
        starts ? start() : void();
    }
    explicit guarded_quorum(std::size_t count, bool starts = true)
        : guarded_quorum(guarded_settings_for(count), starts) {}
    // Begins a quarantine of a minute: that master may have lost its data.
    void quarantine(std::size_t master) {
        virtual_master& one = masters[master];
        const std::string born = std::to_string(one.wall_us(now()));
        one.put(record_key, "4 " + one.run_id + " - " + born + " 60000000 2d");
    }
    // How often a master was sent that script.
    std::size_t sent(std::size_t master, const std::string& script) const {
        return masters[master].count("EVAL " + script) + masters[master].count("EVALSHA " + script);
    }
};

TEST_CASE("a master that says that it is quarantined does not vote, and is asked again") {
    guarded_quorum q(3, false);
    q.quarantine(0);
    q.start();
    CHECK(q.engine.examine(q.now()).masters[0].state == redlock::master_state::quarantined);
    const answer got = q.acquire_now(once());
    CHECK(got.votes[0] == vote::quarantined);
    CHECK(q.masters[0].count("SET") == 0);
    const redlock::time_point ends =
        q.now() + *q.engine.examine(q.now()).masters[0].quarantine_left;
    CHECK(q.engine.describe(got.ballots, ends - 1ms)[0].time_left == 1ms);
    CHECK(!q.engine.describe(got.ballots, ends)[0].time_left); // it is over
    q.run_for(60s);
    CHECK(q.engine.examine(q.now()).admitted == 3);
    q.quarantine(1);
    q.take(fenced()); // at its reply, without another question
    CHECK(q.engine.examine(q.now()).masters[1].state == redlock::master_state::quarantined);
}

TEST_CASE("the owner of the lock is reported with what is left of the lease") {
    guarded_quorum q(3);
    for (const std::size_t i : {0U, 1U}) {
        q.masters[i].put(q.key(), "somebody", q.now() + 500ms);
    }
    const answer got = q.acquire_now(fenced());
    REQUIRE(got.why == errc::contended);
    q.run_for(10ms);
    const auto votes = q.engine.describe(got.ballots, q.now());
    CHECK(votes[0].time_left == 500ms);
    CHECK(votes[1].time_left == 500ms);
    CHECK(!votes[2].time_left);
    q.cut_off(0);
    CHECK(q.engine.describe(got.ballots, q.now())[0].text.empty()); // it had voted before
}

TEST_CASE("the reply to the raise of one handoff does not count for that of the next") {
    guarded_quorum q(guarded(rules_with(3, 1h, false)));
    const answer first = q.acquire_now(fenced());
    const std::uint64_t second = q.acquire(fenced(patient()));
    const std::uint64_t third = q.acquire(fenced(patient()), 5ms);
    // Of the second owner's raise master 2 tells late; of the third's only master 0 hears.
    q.paths[2].back = 30ms;
    q.release(first, 5ms);
    REQUIRE(q.answered(second).won);
    q.paths[1].hung = q.paths[2].hung = true;
    q.release(q.answered(second), 50ms);
    CHECK(q.answer_to(third) == nullptr);
    q.resume(2, 50ms);
    CHECK(q.answered(third).won);
    CHECK(q.fences == std::vector<std::uint64_t>{1, 2, 3});
    CHECK(q.engine.count().local_handoffs == 2);
}

TEST_CASE("an extension whose script is missing is not sent again once the lease was handed off") {
    guarded_quorum q(guarded(rules_with(3, 1h, false)));
    const answer first = q.acquire_now(fenced());
    q.extend(first, 10s);
    const std::uint64_t second = q.acquire(fenced(patient()), 5ms);
    REQUIRE(q.asked("EVAL extend") == 3);
    q.each(&virtual_master::forget_scripts);
    q.delay_replies(20ms);
    q.extend(first, 10s, 1ms);
    REQUIRE(q.asked("EVALSHA extend") == 3);
    q.release(first, 50ms); // the answers come while the counters are raised
    CHECK(q.answered(second).won);
    CHECK(q.engine.count().local_handoffs == 1);
    CHECK(q.asked("EVALSHA extend") == 3);
    CHECK(q.asked("EVAL extend") == 3);
}

TEST_CASE("a command that came late is not a vote, and is counted") {
    guarded_quorum q(3);
    q.masters[0].ahead = q.masters[1].ahead = 300ms;
    const answer got = q.acquire_now(fenced());
    CHECK(got.why == errc::no_quorum);
    const auto masters = q.engine.count().masters;
    CHECK(masters[0].late == 1);
    CHECK(masters[2].late == 0);
    CHECK(got.ballots.text(0) == "it came after its time and was not executed");
    CHECK(got.ballots.text(2).empty());
}

TEST_CASE("a quarantined master is asked to extend, never to heal, and not introduced each time") {
    guarded_quorum q(3);
    const answer got = q.acquire_now(once(), 10ms);
    q.masters[2].forget();
    q.quarantine(2);
    for (int i = 0; i < 5; ++i) {
        CHECK(!q.extend_now(got, 10s));
    }
    CHECK(q.sent(2, "extend") == 5);
    CHECK(q.sent(2, "heal") == 0);
    CHECK(q.masters[2].count("INFO") == 2);
}

TEST_CASE("a server that has lost the script of a heal gets its text") {
    guarded_quorum q(3);
    virtual_master& server = q.masters[2];
    const answer got = q.acquire_now(once(), 10ms);
    const auto heal = [&] {
        server.drop(q.key());
        q.extend(got, 10s, 30ms);
        CHECK(server.value_of(q.key(), q.now()) == got.token);
    };
    heal();
    CHECK(server.count("EVALSHA heal") == 0);
    heal();
    CHECK(server.count("EVALSHA heal") == 1);
    server.when = [&](const arguments& words) {
        if (words[0] == "EVALSHA" && runs(words, core::all_heal)) {
            server.forget_scripts();
        }
        return mishap::none;
    };
    heal();
    CHECK(server.count("EVAL heal") == 2); // the first time, and now
    CHECK(q.engine.count().masters[2].healed == 3);
    CHECK(!q.extensions_of(got).back());
}

TEST_CASE("what the server's words do not say of the way out is added to them") {
    const struct {
        const char* words;
        const char* advice;
    } refusals[] = {
        {"-NOPERM this user has no permissions to run the 'eval' command\r\n",
         "needs EVAL and EVALSHA: the ACL must allow them"},
        {"-ERR unknown command 'EVAL', with args\r\n", "needs EVAL and EVALSHA: use servers"},
        {"-NOPERM this user has no permissions to access one of the keys used as arguments\r\n",
         "must allow the keys p:*"},
        {"-NOPERM No permissions to access a key\r\n", "must allow the keys p:*"},
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "'maxmemory'."},
    };
    for (const auto& one : refusals) {
        guarded_quorum q(1, false);
        q.masters[0].replies["EVALSHA"] = one.words;
        q.start();
        const std::string text = q.engine.examine(q.now()).masters[0].text;
        CAPTURE(text);
        CHECK(text.find(one.advice) != std::string::npos);
        CHECK((text.find("needs EVAL") == std::string::npos) == (one.advice[0] != 'n'));
    }
}

TEST_CASE("a stray acquire is waited for until its time is over, and then removed once more") {
    core::settings rules = guarded_settings_for(3);
    rules.master_timeout = 1s;
    guarded_quorum q(rules);
    bool broke = false;
    q.masters[1].when = [&](const arguments& words) {
        const bool acquires = runs(words, core::guarded_acquire);
        return acquires && !std::exchange(broke, true) ? mishap::break_before : mishap::none;
    };
    const redlock::time_point began = q.now(); // executed until master_timeout at most
    const answer got = q.take(fenced());
    REQUIRE(q.run_while_not([&] { return q.engine.examine(q.now()).admitted == 3; }));
    CHECK(q.release_now(got) == release_result::released);
    q.run_until(began + 1s);
    CHECK(q.sent(1, "remove") == 1);
    q.run_for(50ms); // for what is not known of its clock
    CHECK(q.sent(1, "remove") == 2);
    CHECK(q.sent(0, "remove") == 1);
    CHECK(q.engine.count().pending_removals == 0);
}

TEST_CASE("a master with a slow handshake votes once a faster reply has shown its clock") {
    virtual_quorum it(guarded_settings_for(1));
    std::int64_t not_after = 0;
    it.masters[0].when = [&](const arguments& words) {
        it.paths[0].back = runs(words, core::guarded_handshake) ? 1500ms : 1ms;
        if (runs(words, core::guarded_acquire)) {
            not_after = std::stoll(words.back());
        }
        return mishap::none;
    };
    it.start();
    REQUIRE(it.run_while_not([&] { return it.engine.examine(it.now()).admitted == 1; }));
    CHECK(it.masters[0].count("TIME") == 1);
    const std::int64_t asked = it.masters[0].wall_us(it.now());
    CHECK(it.take(fenced()).won);
    CHECK(not_after >= asked + 100'000); // master_timeout, in which the attempt ends
    CHECK(not_after < asked + 110'000);  // the fastest reply took 1 ms
}

TEST_CASE("a debt lasts for as long as the key can, whichever command may have set it") {
    const bool heals = GENERATE(false, true);
    guarded_quorum q(3);
    if (heals) {
        q.masters[2].put(q.key(), "somebody", q.now() + 500ms);
    }
    const core::script& last = heals ? core::all_heal : core::guarded_acquire;
    q.masters[2].when = [&](const arguments& words) {
        const bool is = runs(words, last);
        q.paths[2].reachable = q.paths[2].reachable && !is;
        return is ? mishap::break_before : mishap::none;
    };
    redlock::time_point executed_by = q.now() + 100ms; // master_timeout
    const answer got = q.take(fenced(), 10ms);
    if (heals) {
        q.run_for(1s);
        executed_by = q.now() + usable(10s); // the new deadline
        q.extend_now(got, 10s);
    }
    REQUIRE(!q.connected(2));
    CHECK(q.release_now(got) == release_result::released);
    q.run_until(executed_by + 10s + 102ms - 1ns);
    CHECK(q.engine.count().pending_removals == 1);
    q.run_for(1ns);
    CHECK(q.engine.count().pending_removals == 0);
}

TEST_CASE("a heal that is sent again is owed for as long as its key can last") {
    guarded_quorum q(3);
    virtual_master& server = q.masters[2];
    server.put(q.key(), "somebody", q.now() + 500ms);
    server.put(q.key("s"), "somebody", q.now() + 500ms);
    const answer other = q.take(once(), "s");
    const answer got = q.take(once(), 1s);
    q.extend(other, 10s, 50ms); // from now on it is sent the digest
    server.when = [&](const arguments& words) {
        const bool heals = runs(words, core::all_heal);
        const bool again = heals && words[0] == "EVAL";
        heals ? server.forget_scripts() : void();
        q.paths[2].reachable = !again;
        return again ? mishap::break_before : mishap::none;
    };
    q.paths[1].back = 120ms; // given up by then; moves the deadline while the heal is under way
    q.paths[2].back = 50ms;
    const redlock::time_point extended = q.now();
    q.extend(got, 10s, 200ms);
    REQUIRE(!q.connected(2));
    q.release(got);
    q.run_until(extended + usable(10s) + 10s + 102ms - 1ns);
    CHECK(q.engine.count().pending_removals == 1);
}

TEST_CASE("a lock of several resources is called by all of them in the log") {
    guarded_quorum q(3);
    q.hold_everywhere();
    q.acquire_form(core::lock_form::all, once(), "r");
    q.run_for(50ms);
    CHECK(q.logged("p:{r, r2}: attempt 1") > 0);
}

TEST_CASE("resources that a cluster keeps apart are named, with what helps") {
    guarded_quorum q(3);
    for (virtual_master& server : q.masters) {
        server.replies["EVALSHA"] = server.replies["SET"] =
            "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    }
    const auto text = [&](std::uint64_t name) {
        q.run_for(500ms);
        return std::string(q.answered(name).ballots.text(0));
    };
    CHECK(
        text(q.acquire_form(core::lock_form::all, once(), "r"))
        == "CROSSSLOT Keys in request don't hash to the same slot: p:{r} and p:{r2} hash apart; "
           "a hash tag in key_prefix, as {locks}, keeps all names in one slot");
    CHECK(text(q.acquire(once())) == "CROSSSLOT Keys in request don't hash to the same slot");
}

}} // namespace guarded_test
