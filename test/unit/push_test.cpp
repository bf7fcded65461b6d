// Pushes on a virtual clock: their effect on waiters, and the part of the arbiter.

#include "waiters.hpp"

namespace push_test { namespace {

using namespace unit;
namespace core = redlock::core;

// The master that a contender for `r` asks first.
std::size_t arbiter(const virtual_quorum& it, std::size_t before) {
    for (std::size_t i = 0; i < it.masters.size(); ++i) {
        if (it.masters[i].count("SET") > before) {
            return i;
        }
    }
    return it.masters.size();
}

constexpr auto channel = "p:{r}:free";

// A waiter that has asked, subscribed, and asked the arbiter once more; polling does not disturb.
// If it is not `alone`, another process was faster after a release.
struct waiting_quorum : virtual_quorum {
    explicit waiting_quorum(std::size_t n, bool alone = false)
        : virtual_quorum(rules_without_polling(n)) {
        start();
        hold_everywhere(*this);
        name = acquire(waiting());
        run_for(50ms);
        first = arbiter(*this, 1);
        REQUIRE(first < masters.size());
        for (std::size_t i = 0; i < n && !alone; ++i) {
            tell(i, "release-zero");
        }
        run_for(50ms);
    }
    /// That release is announced by that master.
    void tell(std::size_t master, std::string_view release, nanoseconds then = 0ns) {
        push(master, channel, release);
        pass(then);
    }
    std::uint64_t name = 0;
    std::size_t first = 0; // the arbiter
};

TEST_CASE("a push of the arbiter brings an attempt, which asks it first") {
    waiting_quorum it(5);
    CHECK(it.masters[0].count("SUBSCRIBE p:{r}:free") == 1);
    // The subscription was confirmed: a release before it may have been missed.
    REQUIRE(asked(it) == 6 + 5);

    SECTION("a waiter that is not the first there costs one command, and its rollback") {
        it.tell(it.first, "release-one", 50ms);
        CHECK(asked(it) == 11 + 1);
        CHECK(it.masters[it.first].count("SET") == 4);
        SECTION("and hears the same news from others without asking again") {
            for (std::size_t i = 0; i < 5; ++i) {
                if (i != it.first) {
                    it.tell(i, "release-one");
                }
            }
            it.run_for(50ms);
            CHECK(asked(it) == 11 + 1);
        }
        SECTION("and asks again at the next release") {
            it.tell(it.first, "release-two", 50ms);
            CHECK(asked(it) == 11 + 2);
        }
    }
    SECTION("the one that is first asks the others after it") {
        free_everywhere(it);
        it.tell(it.first, "release-one", 50ms);
        CHECK(it.answered(it.name).won);
        CHECK(asked(it) == 11 + 5);
        CHECK(it.masters[0].count("UNSUBSCRIBE p:{r}:free") == 1);
    }
    SECTION("an arbiter that does not answer is not waited for") {
        free_everywhere(it);
        it.paths[it.first].hung = true;
        it.tell(it.first, "release-one", 10h);
        CHECK(it.answered(it.name).won);
    }
    SECTION("an arbiter that fails does not decide") {
        free_everywhere(it);
        it.masters[it.first].replies["SET"] = "-OOM command not allowed\r\n";
        it.tell(it.first, "release-one", 50ms);
        CHECK(it.answered(it.name).won);
    }
}

TEST_CASE("a push of any one master brings an attempt, at the arbiter") {
    waiting_quorum it(5);
    it.tell(it.first == 0 ? 1 : 0, "release-one", 50ms);
    CHECK(it.masters[it.first].count("SET") == 4);
    CHECK(asked(it) == 11 + 1);
    free_everywhere(it);
    it.tell(it.first == 0 ? 1 : 0, "release-two", 50ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("a lone waiter asks all masters at once, when a majority has published the release") {
    waiting_quorum it(5, true);
    free_everywhere(it);
    const std::size_t one = (it.first + 1) % 5;
    SECTION("after the arbiter it waits for the others a little") {
        it.tell(it.first, "release-one");
        it.tell(one, "release-one");
        CHECK(asked(it) == 6);
        it.tell((it.first + 2) % 5, "release-one");
    }
    SECTION("if only the arbiter publishes, not for long") {
        it.tell(it.first, "release-one", 1ms);
    }
    it.run_for(10ms);
    CHECK(it.answered(it.name).won);
    CHECK(asked(it) == 6 + 5);
}

TEST_CASE("a waiter that was not the fastest asks the arbiter first from then on") {
    waiting_quorum it(5, true);
    for (int round = 1; round <= 2; ++round) {
        for (std::size_t i = 0; i < 5; ++i) {
            it.tell(i, "release-" + std::to_string(round));
        }
        it.run_for(50ms);
        CHECK(asked(it) == static_cast<std::size_t>(round == 1 ? 6 + 5 : 6 + 5 + 1));
    }
}

TEST_CASE("a push overtakes the vote that is older") {
    waiting_quorum it(3);
    it.paths[it.first].back = 20ms;
    it.tell(
        it.first,
        "release-one",
        5ms); // the arbiter said no, and the lock is released before its answer arrives
    free_everywhere(it);
    it.tell(it.first, "release-two", 5ms);
    CHECK(it.answer_to(it.name) == nullptr);
    it.run_for(200ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("news from another master does not take back what a push during an attempt has told") {
    waiting_quorum it(3);
    it.paths[it.first].back = 20ms;
    it.tell(it.first, "release-one", 5ms);
    free_everywhere(it);
    it.tell(it.first, "release-two", 1ms);
    it.tell((it.first + 1) % 3, "release-one"); // late
    it.run_for(200ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("a confirmed subscription does not take back what pushes during an attempt have told") {
    waiting_quorum it(3);
    const std::size_t second = (it.first + 1) % 3;
    const std::size_t third = (it.first + 2) % 3;
    it.paths[second].back = it.paths[third].back = 20ms;
    it.masters[it.first].drop(it.key());
    it.tell(it.first, "release-one", 5ms); // the others said no; their answers are on the way
    free_everywhere(it);
    it.tell(second, "release-one");
    it.tell(third, "");
    it.tell(third, "release-one", 200ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("a reply to PTTL that is older than a push does not postpone what the push has brought") {
    waiting_quorum it(3);
    it.masters[it.first].replies["PTTL"] = ":9000\r\n";
    it.paths[it.first].back = 5ms; // of the refusal, then of the reply to PTTL
    it.tell(it.first, "release-one", 1ms);
    free_everywhere(it);
    it.paths[3 + it.first].back = 10ms; // both come at the same moment, first the push
    it.tell(it.first, "release-two", 200ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("the arbiter's push counts after that of a majority") {
    waiting_quorum it(3);
    it.tell((it.first + 1) % 3, "release-one");
    it.tell((it.first + 2) % 3, "release-one", 50ms); // the lock is still there on all of them
    CHECK(it.answer_to(it.name) == nullptr);
    free_everywhere(it);
    it.tell(it.first, "release-one", 200ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("masters whose release may have been missed make up the majority that reports it") {
    waiting_quorum it(3);
    free_everywhere(it);
    it.masters[it.first].put(it.key(), "a leftover");
    it.tell((it.first + 1) % 3, "release-one", 50ms);
    CHECK(it.answer_to(it.name) == nullptr);
    it.tell((it.first + 2) % 3, ""); // as a subscription that is confirmed
    it.run_for(200ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("an acquire that ends and may have kept others out notifies them") {
    started_quorum it(rules_with(3, 0ms, true));
    const auto told = [&] {
        std::size_t found = 0;
        for (const virtual_master& server : it.masters) {
            found += static_cast<std::size_t>(
                std::ranges::count_if(server.seen, [](const std::string& line) {
                    return line.find(" remove 1 p:{r} ") != std::string::npos
                           && line.ends_with(" 1");
                }));
        }
        return found;
    };
    SECTION("when it is cancelled before its votes are in") {
        it.cancel(it.acquire(waiting()), 50ms);
        CHECK(told() == 3);
    }
    SECTION("when its wait ends before the votes of a later attempt are in") {
        hold_everywhere(it);
        const std::uint64_t name = it.acquire(waiting(redlock::wait_for(100ms)), 50ms);
        free_everywhere(it);
        for (std::size_t i = 0; i < 3; ++i) {
            it.paths[i].back = 1s;
        }
        it.run_for(5s);
        CHECK_FALSE(it.answered(name).won);
        CHECK(told() == 3);
    }
    SECTION("but not when all have said no") {
        hold_everywhere(it);
        const std::uint64_t name = it.acquire(waiting(), 50ms);
        it.cancel(name, 50ms);
        CHECK(told() == 0);
    }
}

TEST_CASE("the pushes that came are counted") {
    waiting_quorum it(3);
    for (std::size_t i = 0; i < 3; ++i) {
        it.tell(i, "release-one");
    }
    it.tell(0, "release-two", 50ms);
    CHECK(it.engine.count().release_notifications == 3 + 4);
}

TEST_CASE("a push for nobody, or for another, changes nothing") {
    waiting_quorum it(3);
    const std::size_t before = asked(it);
    for (std::size_t i = 0; i < 3; ++i) {
        it.push(i, "p:{s}:free", "release-one");
        it.push(i, "nonsense", "");
    }
    it.run_for(50ms);
    CHECK(asked(it) == before);
    it.cancel(it.name, 50ms);
    it.tell(0, "release-one", 50ms);
    CHECK(asked(it) == before);
    for (const virtual_master& server : it.masters) {
        CHECK(server.count("SUBSCRIBE") == 1);
        CHECK(server.count("UNSUBSCRIBE") == 1);
    }
}

TEST_CASE("a refused PUBLISH is counted, logged once for each connection, and shown") {
    virtual_quorum it(rules_with(3, 0ms, true));
    for (virtual_master& server : it.masters) {
        server.forbidden.insert("PUBLISH");
    }
    it.start();
    const auto release = [&] { it.release(it.acquire_now(once()), 20ms); };
    const auto warnings = [&] {
        return std::ranges::count_if(it.log_lines, [](const std::string& line) {
            return line.find("PUBLISH is refused") != std::string::npos;
        });
    };
    const auto shown = [&] {
        const redlock::master_health one = it.engine.examine(it.now()).masters[0];
        return std::string(to_string(one.notifications)) + ": " + one.notifications_text;
    };
    CHECK(shown() == "off: ");
    release();
    CHECK(shown().starts_with("refused: PUBLISH: "));
    CHECK(it.engine.count().masters[0].publish_refused == 1);
    CHECK(warnings() == 3);
    release();
    CHECK(it.engine.count().masters[0].publish_refused == 2);
    CHECK(warnings() == 3);
    SECTION("even next to a subscription that is live") {
        hold_everywhere(it);
        it.acquire(waiting(), 50ms);
        CHECK(shown().starts_with("refused: PUBLISH: "));
        CHECK(it.engine.count().notification_connections == 0);
    }
    SECTION("until one is executed") {
        for (virtual_master& server : it.masters) {
            server.forbidden.clear();
        }
        release();
        CHECK(shown() == "off: ");
        CHECK(warnings() == 3);
    }
    SECTION("and once more on the next connection") {
        it.disconnect(0, 200ms);
        CHECK(shown() == "off: ");
        release();
        CHECK(warnings() == 4);
    }
}

TEST_CASE("a watch of a lock is notified of its releases, and subscribes once") {
    started_quorum it(rules_with(3, 0ms, true));
    it.listen(50ms);
    CHECK(asked(it, "SUBSCRIBE p:{r}:free") == 3);
    it.listen(50ms);
    CHECK(asked(it, "SUBSCRIBE") == 3);
    it.heard_of.clear();
    it.push(1, channel, "release-one");
    it.push(1, "p:{s}:free", "release-two");
    it.run_for(5ms);
    CHECK(it.heard_of == std::vector<std::string>{"p:{r}"});
    it.unlisten(5ms);
    CHECK(asked(it, "UNSUBSCRIBE") == 0);
    it.unlisten(5ms);
    CHECK(asked(it, "UNSUBSCRIBE p:{r}:free") == 3);
}

TEST_CASE("a channel is left when neither a waiter nor a listener is there any more") {
    waiting_quorum it(3);
    it.engine.listen("r", it.now());
    SECTION("the waiter stays") {
        it.unlisten(5ms);
        CHECK(asked(it, "UNSUBSCRIBE") == 0);
        it.cancel(it.name);
    }
    SECTION("the listener stays") {
        it.cancel(it.name, 5ms);
        CHECK(asked(it, "UNSUBSCRIBE") == 0);
        it.engine.unlisten("r", it.now());
    }
    it.run_for(5ms);
    CHECK(asked(it, "UNSUBSCRIBE p:{r}:free") == 3);
}

}} // namespace push_test
