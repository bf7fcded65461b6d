// Turns on a virtual clock: when the queue is asked, and what comes of its answers. The queue here
// is the virtual master's; that of a real one is seen in test/integration/fairness_test.cpp.

#include "core/bytes/fair_queue_scripts.hpp"
#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>

#include <sstream>

namespace fairness_test { namespace {

using namespace unit;
namespace core = redlock::core;

acquire_options in_order(redlock::wait_for wait = redlock::wait_for::forever()) {
    acquire_options options = waiting(wait);
    options.fifo = true;
    return options;
}

const std::string queue_key = "p:{r}:queue";
constexpr auto ticket_lease = 2s;

struct site : started_quorum {
    explicit site(std::size_t count) : started_quorum(rules_for(count)) {
        // Which master keeps the queue is the engine's to say.
        const std::uint64_t name = acquire(in_order());
        run_for(20ms);
        for (std::size_t i = 0; i < masters.size(); ++i) {
            queue_master = masters[i].count("EVAL turn") == 1 ? i : queue_master;
        }
        release(*answer_to(name));
        run_for(20ms);
        each([](virtual_master& server) { server.seen.clear(); });
    }

    static core::settings rules_for(std::size_t count) {
        core::settings rules = rules_with(count, 0ms, true);
        rules.retry_delay_max = 1h; // waiters are woken, or look again by themselves
        return rules;
    }
    struct place {
        std::string waiter;
        redlock::time_point until;
    };
    std::vector<place> queue() {
        std::vector<place> found;
        const std::string ends = "p:{r}:queue:until";
        std::istringstream all(masters[queue_master].run({"ZRANGE", queue_key, "0", "-1"}, now()));
        for (std::string waiter; std::getline(all, waiter) && waiter != "(empty array)";) {
            const std::string us = masters[queue_master].run({"ZSCORE", ends, waiter}, now());
            found.push_back(
                {waiter, redlock::time_point(std::chrono::microseconds(std::stoll(us)))});
        }
        return found;
    }
    // Somebody else's process, which is first until it goes.
    void enter(const std::string& waiter, milliseconds lease = ticket_lease) {
        const std::string text(core::ticket_take.text);
        const std::string span = std::to_string(lease.count());
        masters[queue_master].run(
            {"EVAL", text, "3", key(), queue_key, queue_key + ":until", waiter, span}, now());
    }
    void first_leaves() {
        masters[queue_master].run({"ZREM", queue_key, queue().front().waiter}, now());
    }
    void told(const std::string& release, nanoseconds then) {
        push(queue_master, channel, release);
        pass(then);
    }
    std::size_t turns() const { return masters[queue_master].count("EVALSHA turn"); }
    bool won(std::uint64_t name) const {
        return answer_to(name) != nullptr && answer_to(name)->won;
    }

    std::size_t queue_master = 99;
};

TEST_CASE("a free lock costs one question to one master, and its place is given up") {
    for (const std::size_t n : {1U, 3U, 5U}) {
        site it(n);
        REQUIRE(it.queue_master < n);
        const redlock::time_point began = it.now();
        const std::uint64_t name = it.acquire(in_order());
        CHECK(it.awaited(name).won);
        CHECK(it.now() == began + 2ms);
        it.run_for(20ms);
        CHECK(it.turns() == 1);
        CHECK(it.masters[it.queue_master].count("EVALSHA leave") == 1);
        CHECK(it.queue().empty());
        it.release(it.answered(name));
        CHECK(it.idle());
    }
}

TEST_CASE(
    "a waiter that is not first makes no attempt, keeps its place, and goes on when notified") {
    site it(5);
    it.enter("another", 1h);
    const std::uint64_t name = it.acquire(in_order(), 10s);
    CHECK(it.asked() == 0);
    REQUIRE(it.queue().size() == 2);
    CHECK(it.queue()[1].until > it.now() + 1s);
    CHECK(it.turns() >= 20);
    CHECK(it.turns() <= 25); // each half second, and for each confirmed subscription

    it.first_leaves();
    it.told("somebody-left", 5ms);
    CHECK(it.won(name));
    it.run_for(5ms);
    CHECK(it.queue().empty());
}

TEST_CASE("a waiter that is first and does not come holds the next up for its lease at most") {
    site it(3);
    it.enter("dead", 1'700ms); // its end is not at the renewal of a ticket
    const redlock::time_point ends = it.queue()[0].until;
    CHECK(it.awaited(it.acquire(in_order())).won);
    CHECK(it.now() >= ends);
    CHECK(it.now() <= ends + 10ms);
}

TEST_CASE("a waiter that is first and cannot have it goes to the end") {
    site it(5);
    for (std::size_t i = 0; i < 5; ++i) { // it reaches the queue's master and one other
        if (i != it.queue_master && i != (it.queue_master + 1) % 5) {
            it.paths[i].hung = true;
        }
    }
    const std::uint64_t name = it.acquire(in_order(), 50ms);
    REQUIRE(it.queue().size() == 1);
    it.enter("another", 1h);
    REQUIRE(it.run_while_not([&] { return it.queue().front().waiter == "another"; }, 1s));
    it.run_for(10s);
    CHECK(it.answer_to(name) == nullptr);
    CHECK(it.queue().front().waiter == "another");
}

TEST_CASE("a waiter that goes away leaves the queue") {
    site it(3);
    it.enter("another", 1h);
    SECTION("cancelled") {
        const std::uint64_t name = it.acquire(in_order(), 1s);
        CHECK(it.queue().size() == 2);
        it.cancel(name, 10ms);
        CHECK(!it.answered(name).why);
    }
    SECTION("cancelled before the first answer") {
        const std::uint64_t name = it.acquire(in_order());
        it.cancel(name, 10ms);
        CHECK(it.answer_to(name) != nullptr);
    }
    SECTION("at the end of its wait, which is contention") {
        const redlock::time_point began = it.now();
        const std::uint64_t name = it.acquire(in_order(3s));
        CHECK(it.awaited(name).why == errc::contended);
        CHECK(it.now() <= began + 3s);
        CHECK(it.now() > began + 2900ms);
        CHECK(it.answered(name).attempts == 0);
        it.run_for(10ms);
    }
    SECTION("closed") {
        const std::uint64_t name = it.acquire(in_order(), 1s);
        it.close(10ms);
        CHECK(it.answered(name).why == errc::closed);
        CHECK(it.engine.closed_down());
    }
    CHECK(it.masters[it.queue_master].count("EVAL") > 0);
    REQUIRE(it.queue().size() == 1);
    CHECK(it.queue()[0].waiter == "another");
}

TEST_CASE("news that comes while the queue is asked is not lost") {
    site it(3);
    it.hold_everywhere();
    it.paths[it.queue_master].back = 20ms;
    const std::uint64_t name = it.acquire(in_order(), 490ms);
    it.told("another-release", 5ms); // brings a question
    it.free_everywhere();            // which was answered before this
    it.told("the-release", 100ms);
    CHECK(it.won(name));
}

TEST_CASE("without its queue the lock is had as ever, and the log says so once") {
    site it(3);
    it.masters[it.queue_master].replies["EVALSHA"] =
        "-NOPERM this user has no permissions to run the 'zadd' command\r\n";
    for (int i = 0; i < 3; ++i) {
        const std::uint64_t name = it.acquire(in_order(), 20ms);
        REQUIRE(it.won(name));
        it.engine.abandon(it.answered(name).lease);
        it.free_everywhere();
        it.run_for(20s);
    }
    CHECK(it.logged("not that of arrival: NOPERM this user") == 1);
}

TEST_CASE("a queue master that fails is not waited for") {
    site it(5);
    SECTION("it is silent") {
        it.paths[it.queue_master].hung = true;
        CHECK(it.won(it.acquire(in_order(), 110ms)));
    }
    SECTION("it is silent, and the lock is held: attempts are few") {
        it.hold_everywhere();
        it.paths[it.queue_master].hung = true;
        it.acquire(in_order(), 2s);
        CHECK(it.asked() > 0);
        CHECK(it.asked() <= 40);
    }
    SECTION("it goes down with the question") {
        it.masters[it.queue_master].when = [](const arguments&) { return mishap::break_after; };
        CHECK(it.won(it.acquire(in_order(), 20ms)));
    }
    SECTION("it goes down later, and another keeps the queue from then on") {
        it.enter("another", 1h);
        const std::uint64_t name = it.acquire(in_order(), 1s);
        it.cut_off(it.queue_master, 1s);
        CHECK(it.won(name));
        std::size_t elsewhere = 0;
        for (std::size_t i = 0; i < 5; ++i) {
            elsewhere += i == it.queue_master ? 0 : it.masters[i].count("EVAL turn");
        }
        CHECK(elsewhere == 1);
    }
}

TEST_CASE("an outage is not contention, also with another client first in the queue") {
    site q(3);
    for (std::size_t i = 0; i < 3; ++i) {
        if (i != q.queue_master) {
            q.cut_off(i);
        }
    }
    const bool over = GENERATE(false, true);
    const std::uint64_t name = q.acquire(in_order(10s), 1s);
    q.enter("another", 60s);
    if (over) {
        for (auto& path : q.paths) {
            path.reachable = true;
        }
    }
    REQUIRE(!q.awaited(name).won);
    CHECK(q.answered(name).why == (over ? errc::contended : errc::no_quorum));
    CHECK(std::ranges::count(q.answered(name).votes, redlock::vote::held) == (over ? 1 : 0));
}

}} // namespace fairness_test
