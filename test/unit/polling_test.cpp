// The promise to a waiter: with a majority admitted, and without an order of arrival, an attempt on
// all masters begins within 2 s while the lock is free, whatever became of the notifications.

#include "core/base/backoff.hpp"
#include "core/bytes/form_scripts.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/scripts.hpp"
#include "shared_call.hpp"
#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

namespace polling_test { namespace {

using namespace unit;
namespace core = redlock::core;

constexpr std::int64_t clock = 1'000'000;

// Masters on which somebody has the lock, for 9 s more whenever they are asked.
struct held_quorum {
    explicit held_quorum(std::size_t masters, bool pushes = true)
        : it(rules(masters, pushes)),
          free(masters),
          asked(masters),
          slot_left(masters, 9'000) {
        it.answer_scripts(
            [this](std::size_t i, const arguments& words) { return answer(i, words); });
        for (std::size_t i = 0; i < masters; ++i) {
            virtual_master& one = it.masters[i];
            one.put("p::epoch", record_of_master);
            one.replies["PTTL"] = ":9000\r\n";
            one.when = [this, i, &one, scripted = one.when](const arguments& words) {
                if (words[0] == "SET") {
                    ++asked[i];
                    one.replies["SET"] = free[i] ? "+OK\r\n" : "$-1\r\n";
                }
                return scripted(words);
            };
        }
        it.start();
    }

    static core::settings rules(std::size_t masters, bool pushes) {
        core::settings rules = rules_with(masters, 0ms, pushes);
        rules.protocol = redlock::protocol::guarded;
        rules.record_key = "p::epoch";
        return rules;
    }

    std::string answer(std::size_t master, const arguments& words) {
        if (const auto call = shared_call_in(words); call && call->what == &core::guarded_acquire) {
            asked[master] += call->locks;
            return reply_for_each(
                *call, free[master] ? three(1, 1, clock) : three(0, 9'000, clock));
        } else if (call) {
            return reply_for_each(*call, three(1, 0, clock));
        }
        for (const core::script* const one :
             {&core::announced_acquire, &core::shared_acquire, &core::all_acquire}) {
            if (runs(words, *one)) {
                ++asked[master];
                return free[master] ? three(1, 1, clock) : three(0, 9'000, clock);
            }
        }
        if (words[1] == core::scan_slots) {
            ++scans;
            return "*2\r\n$2\r\n" + std::string(free[master] ? "10" : "00")
                   + "\r\n:" + std::to_string(slot_left[master]) + "\r\n";
        }
        return runs(words, core::guarded_handshake) ? handshake_reply(0, 0, clock)
                                                    : three(1, 0, clock);
    }

    std::size_t asked_in_all() const {
        std::size_t all = 0;
        for (const std::size_t one : asked) {
            all += one;
        }
        return all;
    }

    void release(std::size_t except = ~std::size_t{0}) {
        for (std::size_t i = 0; i < free.size(); ++i) {
            free[i] = i != except;
        }
    }

    // How long after now the waiter has the lock.
    nanoseconds time_to_win(std::uint64_t waiter) {
        const redlock::time_point began = it.now();
        REQUIRE(it.run_while_not([&] { return it.answer_to(waiter) != nullptr; }, 20s));
        REQUIRE(it.answered(waiter).won);
        return it.answered(waiter).at - began;
    }

    // The master that is asked first.
    std::size_t arbiter() {
        const std::vector<std::size_t> before = asked;
        REQUIRE(it.run_while_not([&] { return asked != before; }));
        for (std::size_t i = 0; i < asked.size(); ++i) {
            if (asked[i] != before[i]) {
                return i;
            }
        }
        return 0;
    }

    virtual_quorum it;
    std::vector<bool> free;
    std::vector<std::size_t> asked;
    std::vector<int> slot_left; // of the lease of a slot that is held there, in ms
    std::size_t scans = 0;
};

// The moments of a release, against a poll that comes each second or two.
const std::array<milliseconds, 12> moments{
    0ms, 50ms, 170ms, 290ms, 410ms, 600ms, 750ms, 900ms, 1'100ms, 1'400ms, 1'700ms, 1'950ms};

TEST_CASE("a free lock is found within 2 s though nobody tells of it") {
    const milliseconds moment = GENERATE(from_range(moments));
    const auto form =
        GENERATE(core::lock_form::exclusive, core::lock_form::all, core::lock_form::shared);
    const std::size_t masters = GENERATE(1U, 3U, 5U);
    held_quorum q(masters);
    const std::uint64_t waiter = q.it.acquire_form(form, waiting(), "r");
    q.it.run_for(3s + moment);
    REQUIRE(q.it.answer_to(waiter) == nullptr);
    REQUIRE(q.it.engine.count().notification_connections == masters);
    q.release();
    CHECK(q.time_to_win(waiter) < 2s);
}

TEST_CASE("a free lock is found within 2 s though the master that is asked first denies it") {
    const milliseconds moment = GENERATE(from_range(moments));
    const std::size_t masters = GENERATE(3U, 5U);
    held_quorum q(masters);
    const std::uint64_t waiter = q.it.acquire(waiting(), 500ms); // all of them were asked
    const std::size_t first = q.arbiter();
    q.it.run_for(3s + moment);
    REQUIRE(q.it.answer_to(waiter) == nullptr);
    q.release(first);
    SECTION("and nothing else happens") {
        CHECK(q.time_to_win(waiter) < 2s);
    }
    SECTION("and notifications of others ask it again and again") {
        for (int i = 0; i < 300; ++i) {
            q.it.at(q.it.now() + i * 7ms, [&q, first, masters, i] {
                q.it.push((first + 1) % masters, "p:{r}:free", "release-" + std::to_string(i));
            });
        }
        CHECK(q.time_to_win(waiter) < 2s);
    }
}

TEST_CASE("a free slot is found within 2 s though nobody tells of it") {
    const milliseconds moment = GENERATE(from_range(moments));
    held_quorum q(3);
    const std::uint64_t waiter = q.it.acquire_slot(waiting(), 2, 3s + moment);
    REQUIRE(q.it.answer_to(waiter) == nullptr);
    q.release();
    CHECK(q.time_to_win(waiter) < 2s);
}

TEST_CASE("a lock that is held costs a waiter little") {
    held_quorum q(5);
    q.it.acquire(waiting(), 1s);
    const std::size_t before = q.asked_in_all();
    q.it.run_for(100s);
    // All five every 1.4 to 1.95 s, and in between one alone.
    CHECK(q.asked_in_all() - before <= 100 * 10 / 14 * 6);
    CHECK(q.asked_in_all() - before >= 100 * 10 / 20 * 6 - 6);
}

TEST_CASE(
    "waiters of a lock that this process holds poll as well, as it may be released elsewhere") {
    held_quorum q(3);
    q.release();
    const std::uint64_t first = q.it.acquire(waiting());
    const std::uint64_t next = q.it.acquire(waiting(), 1s);
    REQUIRE(q.it.answer_to(first) != nullptr);
    std::fill(q.free.begin(), q.free.end(), false);
    const std::size_t before = q.asked_in_all();
    q.it.run_for(60s);
    CHECK(q.it.answer_to(next) == nullptr);
    CHECK(q.asked_in_all() - before >= 3 * 30);
    CHECK(q.asked_in_all() - before <= 3 * 60); // half of them ask the arbiter alone
}

TEST_CASE("a waiter whose notifications end begins to poll") {
    held_quorum q(3);
    const std::uint64_t waiter = q.it.acquire(waiting(), 1'500ms);
    const std::size_t before = q.asked_in_all();
    SECTION("those of a minority do not matter") {
        q.it.cut_off(3, 300ms);
        CHECK(q.asked_in_all() - before <= 4);
    }
    SECTION("those of a majority do") {
        for (const std::size_t link : {3U, 4U}) {
            q.it.cut_off(link);
        }
        q.it.run_for(1s);
        CHECK(q.asked_in_all() - before >= 12);
        q.release();
        CHECK(q.time_to_win(waiter) <= 450ms); // retry_delay_max, twice
    }
    SECTION("even if the connections are there and silent") {
        q.it.paths[3].hung = q.it.paths[4].hung = true;
        // Only the health check finds out, which these settings hardly have.
        q.release();
        CHECK(q.time_to_win(waiter) < 2s);
    }
}

TEST_CASE("an attempt on all masters is due a little before the limit is reached") {
    core::polling polls;
    const redlock::time_point last(100s);
    polls.asked_all(last);
    CHECK(!polls.all_due(2s, last + 1'950ms - 1ns));
    CHECK(polls.all_due(2s, last + 1'950ms));
    polls.reset();
    CHECK(polls.all_due(2s, last));
}

TEST_CASE(
    "a waiter where releases are announced already may have missed one, and asks again soon") {
    held_quorum q(3);
    for (const std::string name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
        q.it.engine.listen(name, q.it.now());
    }
    q.it.run_for(50ms);
    for (const std::string name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
        q.it.acquire(waiting(), name);
    }
    q.it.run_for(1ms);
    CHECK(q.asked_in_all() == 8 * 3);
    q.it.run_for(2'200us);
    CHECK(q.asked_in_all() < 8 * 4); // not all at once
    q.it.run_for(7ms);
    CHECK(q.asked_in_all() == 8 * 4);
    q.it.run_for(500ms);
    CHECK(q.asked_in_all() == 8 * 4);
}

TEST_CASE("a waiter for several resources subscribes to each, and to nothing else") {
    held_quorum q(3);
    q.it.acquire_form(core::lock_form::all, waiting(), "r");
    q.it.run_for(50ms);
    for (const virtual_master& server : q.it.masters) {
        CHECK(server.count("SUBSCRIBE p:{r}:free") == 1);
        CHECK(server.count("SUBSCRIBE p:{r2}:free") == 1);
        CHECK(server.count("SUBSCRIBE") == 2);
    }
}

}} // namespace polling_test
