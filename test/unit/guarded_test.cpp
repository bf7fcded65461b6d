// The engine in the guarded protocol, against masters whose scripts answer what a test says. What
// the scripts themselves do is shown in test/simulation, on real Lua, and in test/integration.
#include "core/bytes/guarded_scripts.hpp"
#include "shared_call.hpp"
#include "virtual_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace guarded_test { namespace {

using namespace unit;
namespace core = redlock::core;

redlock::core::settings guarded(std::size_t masters, milliseconds handoff_time = 0ms) {
    auto rules = guarded_settings_for(masters);
    rules.local_handoff_time = handoff_time;
    return rules;
}

// What each script answers on one master, until the test says otherwise.
struct script_answers {
    std::string handshake = handshake_reply(0, 0);
    std::string acquire = three(1, 7);
    std::string raise = three(1, 9, 0); // empty: that it is raised as was asked for
    std::string extend = three(1, 0);
    std::string heal = three(2, 0);
    std::string remove = three(1, 0);
    std::map<std::string, int> said;
};

struct guarded_quorum {
    explicit guarded_quorum(std::size_t masters, milliseconds handoff_time = 0ms)
        : scripts(masters),
          it(guarded(masters, handoff_time)) {
        it.answer_scripts(
            [this](std::size_t i, const arguments& words) { return answer(scripts[i], words); });
        for (std::size_t i = 0; i < masters; ++i) {
            virtual_master& one = it.masters[i];
            one.put("p::epoch", record_of_master);
            one.when = [this, i, &one, scripted = one.when](const arguments& words) {
                if (words[0] == "SET") {
                    ++scripts[i].said["acquire"];
                    one.replies["SET"] = reply_to_set(scripts[i].acquire);
                }
                return scripted(words);
            };
        }
    }

    // The reply to a SET in place of this reply to a script.
    static std::string reply_to_set(const std::string& scripted) {
        if (!scripted.starts_with("*3\r\n:")) {
            return scripted;
        }
        return scripted[5] == '1' ? "+OK\r\n" : "$-1\r\n";
    }

    static std::string answer(script_answers& mine, const arguments& words) {
        if (runs(words, core::guarded_handshake)) {
            ++mine.said["handshake"];
            return mine.handshake;
        }
        if (runs(words, core::guarded_look)) {
            return three(-1, 0, 0);
        }
        if (const auto call = shared_call_in(words)) {
            const bool acquires = call->what == &core::guarded_acquire;
            const bool extends = call->what == &core::guarded_extend;
            ++mine.said[acquires ? "acquire" : extends ? "extend" : "remove"];
            return reply_for_each(
                *call,
                acquires  ? mine.acquire
                : extends ? mine.extend
                          : mine.remove);
        }
        if (runs(words, core::guarded_raise)) {
            ++mine.said["raise"];
            return mine.raise.empty() ? three(1, std::stoll(words[6]), 0) : mine.raise;
        }
        if (runs(words, core::guarded_heal)) {
            ++mine.said["heal"];
            return mine.heal;
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

const std::string forgotten = three(-2, 0);
const std::string missing = three(-3, 0);

TEST_CASE("a master that says that it is quarantined does not vote, and is asked again") {
    guarded_quorum q(3);
    q.scripts[0].handshake = handshake_reply(1, 5'000'000);
    q.it.start();
    CHECK(q.it.engine.examine(q.it.now()).masters[0].state == redlock::master_state::quarantined);
    const answer got = q.it.acquire_now(once());
    CHECK(got.votes[0] == vote::quarantined);
    CHECK(q.scripts[0].said["acquire"] == 0);
    const redlock::time_point ends =
        q.it.now() + *q.it.engine.examine(q.it.now()).masters[0].quarantine_left;
    CHECK(q.it.engine.describe(got.ballots, ends - 1ms)[0].time_left == 1ms);
    CHECK(!q.it.engine.describe(got.ballots, ends)[0].time_left); // it is over
    q.scripts[0].handshake = handshake_reply(0, 5'000'000, 5'000'000);
    q.it.run_for(6s);
    CHECK(q.it.engine.examine(q.it.now()).admitted == 3);
}

TEST_CASE("an attempt goes on no longer where there is no counter to raise") {
    guarded_quorum q(3);
    q.scripts[1].acquire = three(1, 9);
    q.it.start();
    q.it.paths[1].back = 5ms;
    q.it.paths[2].hung = true;
    const redlock::time_point began = q.it.now();
    const std::uint64_t name = q.it.acquire(fenced());
    q.it.run_for(2ms); // 0 has granted it with a smaller one, and goes away
    q.it.cut_off(0);
    CHECK(q.it.awaited(name).why == errc::no_quorum);
    CHECK(q.it.answered(name).at == began + 100ms);
    CHECK(q.said("raise") == 0);
    CHECK(q.it.engine.count().raised == 0);
}

TEST_CASE("the owner of the lock is reported with what is left of the lease") {
    guarded_quorum q(3);
    q.scripts[0].acquire = q.scripts[1].acquire = three(0, 500);
    q.it.start();
    const answer got = q.it.acquire_now(fenced());
    REQUIRE(got.why == errc::contended);
    q.it.run_for(10ms);
    const auto votes = q.it.engine.describe(got.ballots, q.it.now());
    CHECK(votes[0].time_left == 500ms);
    CHECK(votes[1].time_left == 500ms);
    CHECK(!votes[2].time_left);
}

TEST_CASE("the reply to the raise of one handoff does not count for that of the next") {
    guarded_quorum q(3, 1h);
    q.it.start();
    const answer first = q.it.acquire_now(fenced());
    for (script_answers& one : q.scripts) {
        one.acquire = three(0, 5'000, 0);
        one.raise.clear();
    }
    acquire_options waits = fenced();
    waits.wait = redlock::wait_for::forever();
    const std::uint64_t second = q.it.acquire(waits);
    const std::uint64_t third = q.it.acquire(waits, 5ms);
    // Of the second owner's raise master 2 tells late; of the third's only master 0 hears.
    q.it.paths[2].back = 30ms;
    q.it.release(first, 5ms);
    REQUIRE(q.it.answered(second).won);
    q.it.paths[1].hung = q.it.paths[2].hung = true;
    q.it.release(q.it.answered(second), 50ms);
    CHECK(q.it.answer_to(third) == nullptr);
    q.it.resume(2, 50ms);
    CHECK(q.it.answered(third).won);
    CHECK(q.it.fences == std::vector<std::uint64_t>{7, 8, 9});
}

TEST_CASE("an extension whose script is missing is not sent again once the lease was handed off") {
    guarded_quorum q(3, 1h);
    q.it.start();
    const answer first = q.it.acquire_now(fenced());
    for (script_answers& one : q.scripts) {
        one.acquire = three(0, 5'000, 0);
        one.raise.clear();
    }
    q.it.extend(first, 10s);
    acquire_options waits = fenced();
    waits.wait = redlock::wait_for::forever();
    const std::uint64_t second = q.it.acquire(waits, 5ms);
    REQUIRE(q.said("extend") == 3);
    for (script_answers& one : q.scripts) {
        one.extend = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    }
    q.it.delay_replies(20ms);
    q.it.extend(first, 10s, 1ms);
    REQUIRE(q.said("extend") == 6);
    q.it.release(first); // the answers come while the counters are raised
    q.it.run_for(50ms);
    CHECK(q.it.answered(second).won);
    CHECK(q.said("extend") == 6);
}

TEST_CASE("a command that came late is not a vote, and is counted") {
    guarded_quorum q(3);
    q.scripts[0].acquire = q.scripts[1].acquire = three(-1, 0);
    q.it.start();
    const answer got = q.it.acquire_now(fenced());
    CHECK(got.why == errc::no_quorum);
    const auto masters = q.it.engine.count().masters;
    CHECK(masters[0].late == 1);
    CHECK(masters[2].late == 0);
    CHECK(got.ballots.text(0) == "it came after its time and was not executed");
    CHECK(got.ballots.text(2).empty());
}

TEST_CASE("a quarantined master is asked to extend, never to heal, and not introduced each time") {
    guarded_quorum q(3);
    q.it.start();
    const answer got = q.it.acquire_now(once(), 10ms);
    q.scripts[2].handshake = handshake_reply(1, 60'000'000);
    q.scripts[2].extend = forgotten;
    for (int i = 0; i < 5; ++i) {
        q.it.extend(got, 10s, 10ms);
        REQUIRE(q.it.extensions_of(got).size() == i + 1U);
        CHECK(!q.it.extensions_of(got)[i].error);
    }
    CHECK(q.scripts[2].said["extend"] == 5);
    CHECK(q.scripts[2].said["heal"] == 0);
    CHECK(q.scripts[2].said["handshake"] == 2);
}

TEST_CASE("a server that has lost the script of a heal gets its text") {
    guarded_quorum q(3);
    q.it.start();
    const answer got = q.it.acquire_now(once(), 10ms);
    q.scripts[2].extend = missing;
    q.it.extend(got, 10s, 30ms);
    CHECK(q.it.masters[2].count("EVALSHA " + std::string(core::guarded_heal.sha1)) == 0);
    q.it.extend(got, 10s, 30ms);
    CHECK(q.it.masters[2].count("EVALSHA " + std::string(core::guarded_heal.sha1)) == 1);
    q.scripts[2].heal = "-NOSCRIPT No matching script\r\n";
    q.it.extend(got, 10s, 30ms);
    const std::size_t whole = q.it.masters[2].count("EVAL " + std::string(core::guarded_heal.text));
    CHECK(whole == 2); // the first time, and now
    CHECK(!q.it.extensions_of(got).back().error);
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
        guarded_quorum q(1);
        q.scripts[0].handshake = one.words;
        q.it.start();
        const std::string text = q.it.engine.examine(q.it.now()).masters[0].text;
        CAPTURE(text);
        CHECK(text.find(one.advice) != std::string::npos);
        CHECK((text.find("needs EVAL") == std::string::npos) == (one.advice[0] != 'n'));
    }
}

TEST_CASE("a stray acquire is waited for until its time is over, and then removed once more") {
    guarded_quorum q(3);
    q.scripts[1].remove = three(-1, 0);
    q.it.start();
    auto answers = q.it.masters[1].when;
    bool broke = false;
    q.it.masters[1].when = [&](const arguments& words) {
        const mishap before = answers(words);
        const bool acquires = runs(words, core::guarded_acquire);
        return acquires && !std::exchange(broke, true) ? mishap::break_before : before;
    };
    const redlock::time_point began = q.it.now(); // executed until master_timeout, 100 ms, at most
    const answer got = q.it.take(fenced());
    REQUIRE(q.it.run_while_not([&] { return q.it.engine.examine(q.it.now()).admitted == 3; }));
    REQUIRE(q.it.now() < began + 180ms);
    q.it.paths[1].back = 0ms; // the answer comes in the very moment from which on it is believed
    CHECK(q.it.release_now(got) == release_result::released);
    CHECK(q.scripts[1].said["remove"] == 1);
    q.it.run_until(began + 210ms); // with master_timeout for what is not known of its clock
    CHECK(q.scripts[1].said["remove"] == 2);
    CHECK(q.scripts[0].said["remove"] == 1);
    CHECK(q.it.engine.count().pending_removals == 0);
}

TEST_CASE("a master with a slow handshake votes once a faster reply has shown its clock") {
    virtual_quorum it(guarded_settings_for(1));
    std::int64_t not_after = 0;
    it.masters[0].when = [&](const arguments& words) {
        it.paths[0].back = runs(words, core::guarded_handshake) ? 1500ms : 1ms;
        if (words[0].starts_with("EVAL") && shared_call_in(words)) {
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
    q.scripts[2].acquire = heals ? three(0, 500) : q.scripts[2].acquire;
    q.scripts[2].extend = missing;
    q.it.start();
    auto answers = q.it.masters[2].when;
    const core::script& last = heals ? core::guarded_heal : core::guarded_acquire;
    q.it.masters[2].when = [&](const arguments& words) {
        const mishap before = answers(words);
        const bool is = runs(words, last);
        q.it.paths[2].reachable = q.it.paths[2].reachable && !is;
        return is ? mishap::break_before : before;
    };
    redlock::time_point executed_by = q.it.now() + 100ms; // master_timeout
    const answer got = q.it.take(fenced(), 10ms);
    if (heals) {
        q.it.run_for(1s);
        executed_by = q.it.now() + usable(10s); // the new deadline
        q.it.extend(got, 10s, 10ms);
        REQUIRE(q.it.extensions_of(got).size() == 1);
    }
    REQUIRE(!q.it.connected(2));
    CHECK(q.it.release_now(got) == release_result::released);
    q.it.run_until(executed_by + 10s + 102ms - 1ns);
    CHECK(q.it.engine.count().pending_removals == 1);
    q.it.run_for(1ns);
    CHECK(q.it.engine.count().pending_removals == 0);
}

TEST_CASE("a lock of several resources is called by all of them in the log") {
    guarded_quorum q(3);
    for (script_answers& one : q.scripts) {
        one.remove = three(0, 500); // as to all scripts of that form
    }
    q.it.start();
    q.it.acquire_form(core::lock_form::all, once(), "r");
    q.it.run_for(50ms);
    CHECK(std::ranges::any_of(q.it.log_lines, [](const std::string& line) {
        return line.starts_with("p:{r, r2}: attempt 1");
    }));
}

TEST_CASE("resources that a cluster keeps apart are named, with what helps") {
    guarded_quorum q(3);
    for (script_answers& one : q.scripts) {
        one.acquire = one.remove = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    }
    q.it.start();
    const auto text = [&](std::uint64_t name) {
        q.it.run_for(500ms);
        return std::string(q.it.answered(name).ballots.text(0));
    };
    CHECK(
        text(q.it.acquire_form(core::lock_form::all, once(), "r"))
        == "CROSSSLOT Keys in request don't hash to the same slot: p:{r} and p:{r2} hash apart; "
           "a hash tag in key_prefix, as {locks}, keeps all names in one slot");
    CHECK(text(q.it.acquire(once())) == "CROSSSLOT Keys in request don't hash to the same slot");
}

}} // namespace guarded_test
