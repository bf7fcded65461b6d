// A wait queue alone: which waiter is next, and what it decides for its front.

#include "core/waiting/wait_queue.hpp"
#include "support/test.hpp"

#include <list>
#include <tuple>

namespace wait_queue_test { namespace {

using namespace redlock::core;
using namespace redlock;
using phase = acquire_call::phase;
using what = next_step;

// Five masters, of which number 1 is the arbiter. A majority answers within 5 ms.
struct site {
    site() {
        rules.masters.resize(5);
        rules.retry_delay_min = 2ms;
        rules.retry_delay_max = 200ms;
        rules.master_timeout = 100ms;
        rules.local_handoff_time = 1ms;
        queue.key = "k";
        queue.crowded = true;
    }

    acquire_call& add() {
        acquire_call& one = waiters.emplace_back();
        one.options.ttl = 10s;
        one.began = now;
        one.wait_until = forever;
        queue.join(one);
        return one;
    }
    acquire_call& paused(time_point due = forever) {
        acquire_call& one = add();
        one.stage = phase::paused;
        one.wake.due = due;
        return one;
    }
    wait_view view() {
        return {
            rules, now, round_trip, arbiter, notified, true, held_until, rules.quorum(), random};
    }

    time_point hear(std::size_t master, std::string_view release, bool granted = false) {
        return queue.notified(master, release, granted, view());
    }
    time_point release(std::string_view name, time_point since, time_point others_until = never) {
        return queue.released(name, since, others_until, view());
    }
    std::optional<time_point> fail(bool full, std::size_t granted, const ballots& votes) {
        return queue.failed(full, granted, votes, view());
    }

    /// The smallest and the largest of what is drawn.
    template <typename F>
    std::pair<redlock::clock::duration, redlock::clock::duration> range(F draw) {
        auto low = redlock::clock::duration::max();
        auto high = redlock::clock::duration::min();
        for (int i = 0; i < 2'000; ++i) {
            low = std::min(low, draw() - now);
            high = std::max(high, draw() - now);
        }
        return {low, high};
    }

    settings rules;
    jitter random{7};
    time_point now{100h};
    std::chrono::nanoseconds round_trip = 5ms;
    std::size_t arbiter = 1;
    bool notified = true;
    std::optional<time_point> held_until;
    std::list<acquire_call> waiters;
    wait_queue queue;
};

ballots held_for(std::vector<std::chrono::milliseconds> left) {
    ballots votes;
    votes.reset(5);
    for (std::size_t i = 0; i < left.size(); ++i) {
        votes.of[i].said = vote::held;
        votes.set_left(i, left[i]);
    }
    return votes;
}

void check_about(redlock::clock::duration found, std::chrono::nanoseconds wanted) {
    CHECK(found >= wanted - 100us);
    CHECK(found <= wanted + 100us);
}

TEST_CASE("an acquire with the default ttl fits into a shorter one with all that it needs of it") {
    acquire_call one;
    one.options.ttl = 10s;
    one.default_ttl = true;
    one.options.stop_margin = 50ms;
    CHECK(one.fit_ttl(111ms, {0.0, 60ms}));
    CHECK(one.options.ttl == 111ms);
    CHECK(!one.fit_ttl(110ms, {0.0, 60ms}));
}

TEST_CASE("wait queue: a new front pauses, and knows what the queue has found out") {
    site it;
    acquire_call& one = it.add();
    it.queue.found(errc::contended, held_for({1s}));
    CHECK(it.queue.promoted(it.view()) == it.now + 5ms);
    CHECK(one.outcome == errc::contended);
    CHECK(one.last.count(vote::held) == 1);
    it.held_until = it.now + 3s;
    CHECK(it.queue.promoted(it.view()) == it.now + 3s);
    one.options.fifo = true; // the place in the fair queue is to be kept
    CHECK(it.queue.promoted(it.view()) == it.now);
    it.queue.found(errc::no_quorum, {});
    it.queue.promoted(it.view());
    CHECK(one.outcome == errc::contended); // its own attempts count for more
}

TEST_CASE("wait queue: hand-offs go on for a time, or for eight round trips") {
    site it;
    it.add();
    offered_lease lease{.lasts_until = it.now + 1h, .ttl = 10s};
    const auto handed_after = [&](std::chrono::nanoseconds time) {
        lease.handed_since = it.now - time;
        return it.queue.hand(lease, it.view()) != nullptr;
    };
    CHECK(handed_after(40ms - 1ns));
    CHECK(!handed_after(40ms));
    it.rules.local_handoff_time = 60ms;
    CHECK(handed_after(60ms - 1ns));
    CHECK(!handed_after(60ms));
    it.rules.local_handoff_time = 0ms;
    lease.handed_since = never;
    CHECK(it.queue.hand(lease, it.view()) == nullptr);
}

TEST_CASE("wait queue: in the order of arrival a lease passes only to a waiter that is first "
          "everywhere") {
    site it;
    it.add().options.fifo = true;
    const offered_lease lease{.lasts_until = it.now + 1h, .ttl = 10s};
    CHECK(it.queue.hand(lease, it.view()) == nullptr);
    it.queue.ticket.ask(1);
    it.queue.ticket.answered(true, it.now);
    CHECK(it.queue.hand(lease, it.view()) != nullptr);
    it.queue.ticket.answered(false, it.now);
    CHECK(it.queue.hand(lease, it.view()) == nullptr);
    it.queue.ticket.answered(true, it.now - 2s); // the place has expired
    CHECK(it.queue.hand(lease, it.view()) == nullptr);
    it.queue.ticket.answered(true, it.now - 2s + 1ns);
    CHECK(it.queue.hand(lease, it.view()) != nullptr);
}

TEST_CASE("wait queue: a waiter whose wait ends learns what the queue has found out") {
    site it;
    acquire_call& one = it.add();
    const auto told = [&](const ballots* outage, bool held_here) {
        one.outcome.reset();
        one.last = {};
        it.queue.time_out(one, outage, held_here);
        return one.outcome;
    };
    CHECK(told(nullptr, false) == errc::wait_timed_out);
    CHECK(told(nullptr, true) == errc::contended);
    it.queue.found(errc::validity_exhausted, held_for({1s}));
    CHECK(told(nullptr, true) == errc::validity_exhausted);
    CHECK(one.last.count(vote::held) == 1);
    const ballots silent = held_for({});
    CHECK(told(&silent, true) == errc::no_quorum);
    CHECK(one.last.count(vote::held) == 0);
    it.queue.time_out(one, nullptr, true); // it has tried itself
    CHECK(one.outcome == errc::no_quorum);
}

TEST_CASE("wait queue: after a split vote those with the fewest grants wait the longest") {
    site it;
    acquire_call& one = it.add();
    one.outcome = errc::contended;
    for (const std::size_t granted : {1U, 2U}) {
        const auto [low, high] = it.range([&] {
            one.splits = 0;
            return it.fail(true, granted, held_for({1s})).value();
        });
        const auto missing = static_cast<std::int64_t>(3 - granted);
        CHECK(low >= missing * 5ms);
        check_about(low, missing * 5ms);
        CHECK(high <= (missing + 1) * 5ms);
        check_about(high, (missing + 1) * 5ms);
    }
    CHECK(one.ask_arbiter);
    // One master's reply was not a vote of all: it is not relied on indefinitely.
    CHECK(!it.fail(false, 0, held_for({1s})));
    CHECK(!one.ask_arbiter);
}

TEST_CASE("wait queue: a vote that stays split backs off until a notification") {
    site it;
    acquire_call& one = it.add();
    one.outcome = errc::contended;
    const auto delay = [&] { return it.fail(true, 1, held_for({1s})).value() - it.now; };
    CHECK(delay() <= 15ms);
    CHECK(delay() >= 20ms);
    CHECK(delay() >= 40ms);
    for (int i = 0; i < 20; ++i) {
        CHECK(delay() <= 200ms);
    }
    CHECK(delay() == 200ms);
    (void)it.hear(0, "release");
    CHECK(delay() <= 15ms);
}

TEST_CASE("wait queue: a pause ends in time for a last attempt, and for a poll") {
    site it;
    acquire_call& one = it.add();
    it.queue.polls.asked_all(it.now);
    const auto pause = [&](time_point until) { return it.queue.pause(until, it.view()); };
    CHECK(pause(it.now + 1s) == it.now + 1s);
    CHECK(one.stage == phase::paused);
    one.intent = 7; // which must be renewed
    CHECK(pause(it.now + 1'500ms) == it.now + 1s);
    one.intent = 0;
    one.wait_until = it.now + 500ms;
    CHECK(pause(it.now + 1s) == it.now + 490ms);
    one.wait_until = forever;
    auto [low, high] = it.range([&] { return pause(forever); });
    CHECK(high <= 1'950ms);
    CHECK(high >= 1'945ms);
    CHECK(low >= 1'462ms);
    one.ask_arbiter = true; // one master first, and so twice as often
    std::tie(low, high) = it.range([&] { return pause(forever); });
    CHECK(high <= 950ms);
    it.arbiter = nobody;
    std::tie(low, high) = it.range([&] { return pause(forever); });
    CHECK(low >= 1'462ms);
    it.now += 10s; // a poll is overdue
    CHECK(pause(forever) == it.now + 5ms);
    it.held_until = it.now + 1h; // another process may release that lease by its token
    CHECK(pause(forever) == it.now + 5ms);
    one.wait_until = it.now + 3ms; // it is known to be held: no last attempt
    CHECK(pause(forever) == it.now + 3ms);
    one.wait_until = forever;
    it.held_until.reset();
    it.queue.ticket.ask(2);
    CHECK(pause(forever) == it.now + 5ms); // its ticket is renewed
}

TEST_CASE(
    "wait queue: refused, it tries when the shortest lease ends, or soon if it may have missed "
    "a release") {
    site it;
    it.add();
    const auto delay = [&](bool missed) {
        return it.queue.refused(missed, held_for({3s, 1s, 2s}), it.view()) - it.now;
    };
    CHECK(delay(true) <= 10ms);
    CHECK(delay(false) > 1s);
    CHECK(delay(false) <= 1'200ms);
}

TEST_CASE("wait queue: after an outage the waiters for its end try, not all at once") {
    site it;
    acquire_call& one = it.paused(it.now + 1h);
    const auto soon = [&] { return it.queue.outage_over(it.view()); };
    CHECK(soon() == forever);
    one.outcome = errc::no_quorum;
    const auto [low, high] = it.range(soon);
    check_about(low, 0ms);
    check_about(high, 2ms);
    one.wake.due = it.now;
    CHECK(soon() == it.now);
    one.stage = phase::attempting;
    CHECK(soon() == forever);
}

TEST_CASE(
    "wait queue: a lone waiter hears a majority, or the arbiter and then nobody for a moment") {
    site it;
    acquire_call& one = it.paused();
    it.queue.crowded = false;
    CHECK(it.hear(0, "a") == it.now + 10ms);
    CHECK(one.ask_arbiter);
    CHECK(it.hear(1, "a") == it.now + 1'250us);
    CHECK(!one.ask_arbiter);
    CHECK(it.hear(2, "a") == it.now);
    CHECK(!one.ask_arbiter);
    CHECK(it.hear(3, "a") == forever);
    // Others wait if one of them was faster.
    one.outcome = errc::contended;
    CHECK(!it.fail(false, 0, {}));
    CHECK(!it.queue.crowded);
    one.hurried = true;
    CHECK(!it.fail(false, 0, {}));
    CHECK(it.queue.crowded);
}

TEST_CASE("wait queue: after a split vote for a release the word of a majority is enough") {
    for (const bool paused : {false, true}) {
        site it;
        acquire_call& one = it.paused();
        one.outcome = errc::contended;
        const auto split = [&] { return it.fail(true, 1, held_for({1s})).value() - it.now; };
        CHECK(it.hear(1, "a") == it.now);
        one.stage = phase::attempting;
        CHECK(it.hear(0, "a") == forever);
        if (paused) {
            CHECK(split() > 0ms);
            one.stage = phase::paused;
            CHECK(it.hear(2, "a") == it.now);
        } else {
            CHECK(it.hear(2, "a") == forever);
            CHECK(it.hear(3, "a") == forever);
            CHECK(split() == 0ms);
        }
        CHECK(split() > 0ms); // once
        CHECK(it.hear(4, "a") == forever);
    }
}

TEST_CASE("wait queue: refused by others before the arbiter, it believes a majority's word") {
    for (const bool by_arbiter : {false, true}) {
        site it;
        acquire_call& one = it.paused();
        one.outcome = errc::contended;
        const auto refused = [&] {
            ballots votes = held_for({1s, 1s, 1s});
            votes.of[it.arbiter].said = by_arbiter ? vote::held : vote::pending;
            return it.fail(true, 0, votes);
        };
        CHECK(it.hear(1, "a") == it.now);
        one.stage = phase::attempting;
        CHECK(!refused());
        one.stage = phase::paused;
        CHECK(it.hear(0, "a") == forever);
        CHECK(it.hear(2, "a") == (by_arbiter ? forever : it.now));

        one.stage = phase::attempting; // the same during an attempt
        for (const std::size_t i : {1U, 0U, 2U}) {
            it.hear(i, "b");
        }
        it.queue.take_notified();
        CHECK(refused().has_value() == !by_arbiter);
    }
}

TEST_CASE("wait queue: without the arbiter's word a majority's is waited for, or anybody's") {
    site it;
    acquire_call& one = it.paused();
    CHECK(it.hear(0, "a") == it.now + 10ms);
    CHECK(one.ask_arbiter);
    CHECK(!it.queue.acts());
    CHECK(it.hear(2, "a") == it.now + 10ms);
    CHECK(it.hear(3, "a") == it.now + 5ms);
    CHECK(!one.ask_arbiter);
    CHECK(it.hear(4, "a") == forever);
    // It may have been asked too early: its own word still counts.
    CHECK(it.hear(1, "a") == it.now);
    CHECK(it.hear(1, "a") == it.now); // twice: another one
}

TEST_CASE("wait queue: news during an attempt is kept, unless the vote came after it") {
    site it;
    acquire_call& one = it.add();
    one.stage = phase::attempting;
    CHECK(it.hear(1, "a", true) == forever);
    CHECK(!it.queue.take_notified());
    CHECK(it.hear(1, "b") == forever);
    CHECK(it.queue.take_notified());
    CHECK(!it.queue.take_notified());
    it.hear(1, "c");
    it.hear(2, "d", true);
    CHECK(it.queue.take_notified()); // another release does not take it back
    one.stage = phase::ticketed;
    CHECK(it.hear(1, "e") == forever);
    CHECK(it.queue.ticket.again);
    CHECK(!it.queue.take_notified());
    one.stage = phase::paused;
    it.queue.forget();
    CHECK(it.hear(1, "e") == it.now); // as if never heard of
}

TEST_CASE("wait queue: what this process releases wakes the front at once, or after the others") {
    site it;
    CHECK(it.release("a", never) == forever); // nobody waits
    acquire_call& one = it.paused(it.now + 1h);
    one.ask_arbiter = true;
    it.queue.handed_since = it.now;
    it.queue.holder = {1, 1};
    CHECK(it.release("b", it.now - 39ms) == it.now);
    CHECK(!one.ask_arbiter);
    CHECK(it.queue.handed_since == never);
    CHECK(it.queue.holder == handle<claim>());
    // The announcement as well changes nothing.
    for (const std::size_t i : {0U, 2U, 1U}) {
        CHECK(it.hear(i, "b") == forever);
    }
    // After hand-offs for long the others come first: they hear of it, and ask.
    CHECK(it.release("c", it.now - 40ms) == it.now + 5ms + 5ms);
    CHECK(one.ask_arbiter);
    it.round_trip = 1ms;
    CHECK(it.release("d", it.now - 40ms) == it.now + 4ms); // they poll
    it.rules.pushes = true;
    CHECK(it.release("e", it.now - 40ms) == it.now + 2ms);
    one.wake.due = it.now + 1ms;
    CHECK(it.release("f", it.now - 40ms) == it.now + 1ms);
    one.stage = phase::ticketed;
    CHECK(it.release("g", never) == forever);
    CHECK(it.queue.ticket.again);
    one.stage = phase::attempting;
    CHECK(it.release("h", never) == forever);
    CHECK(it.queue.take_notified()); // the key may have refused the attempt
    it.release("i", never, it.now + 7ms);
    one.outcome = errc::contended;
    CHECK(it.fail(true, 0, held_for({})) == it.now + 7ms);

    // A subscription may have missed a release: this one, until the front has asked again.
    one.stage = phase::paused;
    it.release("j", never, it.now + 7ms);
    CHECK(it.hear(1, "") == forever);
    one.stage = phase::attempting;
    it.fail(true, 0, held_for({}));
    one.stage = phase::paused;
    one.wake.due = forever;
    CHECK(it.hear(1, "") == it.now);
    it.release("k", never, it.now + 7ms);
    one.stage = phase::attempting;
    it.hear(1, "");
    CHECK(it.queue.take_notified());
}

TEST_CASE("wait queue: a front that is not next in the fair queue waits, and says why") {
    site it;
    acquire_call& one = it.add();
    it.queue.ticket.ask(2);
    CHECK(it.queue.must_wait(0, 700ms, it.view()) == what::wait);
    CHECK(one.outcome == errc::contended);
    CHECK(one.last.of[2].said == vote::held);
    CHECK(one.last.left(2) == 700ms);
    one.last = {};
    it.queue.must_wait(4, 700ms, it.view());
    CHECK(one.last.left(2) == lease_unknown);
    CHECK(one.last.text(2) == "4 before it in the queue");
    one.wait_until = it.now + 10ms; // two round trips: too few for an attempt after that
    CHECK(it.queue.must_wait(4, 700ms, it.view()) == what::time_out);
    one.wait_until += 1ns;
    CHECK(it.queue.must_wait(4, 700ms, it.view()) == what::wait);
    it.queue.ticket.again = true; // the answer may be older than the news
    CHECK(it.queue.must_wait(4, 700ms, it.view()) == what::ask);
}

TEST_CASE(
    "wait queue: it asks for its turn again when that may come, and so as to keep its place") {
    site it;
    it.add();
    const auto asks = [&](std::chrono::milliseconds left) {
        return it.queue.ticket_by(left, it.view());
    };
    it.queue.ticket.ask(2);
    it.queue.ticket.answered(false, it.now);
    CHECK(asks(lease_unknown) == it.now + 500ms);
    CHECK(asks(300ms) == it.now + 301ms);
    CHECK(asks(600ms) == it.now + 500ms);
    it.queue.ticket.answered(false, it.now - 499ms);
    CHECK(asks(lease_unknown) == it.now + 5ms);
    it.queue.ticket.answered(false, it.now);
    it.notified = false;
    CHECK(asks(lease_unknown) <= it.now + 15ms);
    CHECK(asks(lease_unknown) >= it.now + 5ms);
}

TEST_CASE("wait queue: a place in a fair queue that is left or refused is asked for anew") {
    queue_ticket ticket;
    const time_point now{100h};
    settings rules;
    rules.master_timeout = 100ms;
    redlock::acquire_options in_order;
    in_order.fifo = true;
    CHECK(ticket.wanted(in_order, now));
    CHECK(!ticket.wanted({}, now));
    CHECK(ticket.keep_by(rules, now + 1ms) == forever);
    ticket.ask(2);
    const auto round = ticket.epoch;
    CHECK(ticket.keep_by(rules, now + 1ms) == now + 1ms); // not answered yet
    ticket.waiter = "somebody";
    ticket.again = true;
    ticket.answered(true, now);
    ticket.refused(now + 1s);
    CHECK(ticket.queue_master == nobody);
    CHECK(!ticket.first);
    CHECK(!ticket.wanted(in_order, now + 1s - 1ns));
    ticket.leave();
    CHECK(!ticket.wanted(in_order, now + 1s - 1ns));
    CHECK(ticket.wanted(in_order, now + 1s));
    CHECK(ticket.epoch != round); // an answer that is still to come is not for it
    CHECK(ticket.waiter.empty());
    CHECK(!ticket.again);
    CHECK(ticket.renewed == never);
}

TEST_CASE("wait queue: one that is used again knows nothing of the one before") {
    site it;
    acquire_call& one = it.add();
    it.queue.found(errc::contended, held_for({1s}));
    one.stage = phase::attempting;
    it.hear(1, "a");
    it.queue.handed_since = it.now;
    it.queue.holder = {1, 1};
    it.queue.leave(one);
    it.queue.reset();
    it.queue.join(one);
    CHECK(!it.queue.take_notified());
    CHECK(!it.queue.acts());
    CHECK(it.queue.handed_since == never);
    CHECK(it.queue.holder == handle<claim>());
    one.stage = phase::paused;
    CHECK(it.hear(0, "a") == it.now + 10ms); // the first to tell
    one.outcome.reset();
    it.queue.time_out(one, nullptr, false);
    CHECK(one.outcome == errc::wait_timed_out);
    CHECK(one.last.of.empty());
}

}} // namespace wait_queue_test
