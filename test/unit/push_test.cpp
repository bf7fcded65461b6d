// Pushes on a virtual clock: their effect on waiters, and the part of the arbiter.

#include "waiters.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace push_test { namespace {

using namespace unit;
namespace core = redlock::core;
using enum core::lock_form;

// A waiter that has asked, subscribed, and asked the arbiter once more; polling does not disturb.
// Another process was faster after a release.
struct waiting_quorum : virtual_quorum {
    explicit waiting_quorum(std::size_t n) : virtual_quorum(rules_without_polling(n)) {
        start();
        hold_everywhere();
        name = acquire(waiting());
        run_for(50ms);
        while (first < n && masters[first].count("SET") == 1) {
            ++first;
        }
        REQUIRE(first < n);
        push_everywhere(channel, "release-zero");
        run_for(50ms);
    }
    /// That release is announced by that master.
    void tell(std::size_t master, std::string_view release, nanoseconds then = 0ns) {
        push(master, channel, release);
        pass(then);
    }
    std::uint64_t name = 0;
    std::size_t first = 0; // the arbiter, which is asked first
};

TEST_CASE("a push of the arbiter brings an attempt, which asks it first") {
    waiting_quorum it(5);
    CHECK(it.masters[0].count("SUBSCRIBE p:{r}:free") == 1);
    // The subscription was confirmed: a release before it may have been missed.
    REQUIRE(it.asked() == 6 + 5);
    CHECK(!it.has_sent_nothing(it.name)); // though it pauses

    SECTION("a waiter that is not the first there costs one command, and its rollback") {
        it.tell(it.first, "release-one", 50ms);
        CHECK(it.asked() == 11 + 1);
        CHECK(it.masters[it.first].count("SET") == 4);
        SECTION("and hears the same news from others without asking again") {
            for (std::size_t i = 0; i < 5; ++i) {
                if (i != it.first) {
                    it.tell(i, "release-one");
                }
            }
            it.run_for(50ms);
            CHECK(it.asked() == 11 + 1);
        }
        SECTION("and asks again at the next release") {
            it.tell(it.first, "release-two", 50ms);
            CHECK(it.asked() == 11 + 2);
        }
    }
    SECTION("the one that is first asks the others after it") {
        it.free_everywhere();
        it.tell(it.first, "release-one", 50ms);
        CHECK(it.answered(it.name).won);
        CHECK(it.asked() == 11 + 5);
        CHECK(it.masters[0].count("UNSUBSCRIBE p:{r}:free") == 1);
    }
    SECTION("an arbiter that does not answer is not waited for") {
        it.free_everywhere();
        it.paths[it.first].hung = true;
        it.tell(it.first, "release-one", 2h);
        CHECK(it.answered(it.name).won);
    }
    SECTION("an arbiter that fails does not decide") {
        it.free_everywhere();
        it.masters[it.first].replies["SET"] = "-OOM command not allowed\r\n";
        it.tell(it.first, "release-one", 50ms);
        CHECK(it.answered(it.name).won);
    }
}

TEST_CASE("a reply to PTTL that is older than a push does not postpone what the push has brought") {
    waiting_quorum it(3);
    it.masters[it.first].replies["PTTL"] = ":9000\r\n";
    it.paths[it.first].back = 5ms; // of the refusal, then of the reply to PTTL
    it.tell(it.first, "release-one", 1ms);
    it.free_everywhere();
    it.paths[3 + it.first].back = 10ms; // both come at the same moment, first the push
    it.tell(it.first, "release-two", 200ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("masters whose release may have been missed make up the majority that reports it") {
    waiting_quorum it(3);
    it.free_everywhere();
    it.masters[it.first].put(it.key(), "a leftover");
    it.tell((it.first + 1) % 3, "release-one", 50ms);
    CHECK(it.answer_to(it.name) == nullptr);
    it.tell((it.first + 2) % 3, ""); // as a subscription that is confirmed
    it.run_for(200ms);
    CHECK(it.answered(it.name).won);
}

TEST_CASE("a refused PUBLISH is counted, logged once for each connection, and shown") {
    const auto form = GENERATE(exclusive, shared, all);
    virtual_quorum it(guarded(rules_with(3, 0ms, true)));
    it.put_records();
    it.each([](virtual_master& server) { server.forbidden.insert("PUBLISH"); });
    it.start();
    const auto release = [&] { it.release(it.awaited(it.acquire_form(form, once(), "r")), 20ms); };
    const auto warnings = [&] { return it.logged("PUBLISH is refused"); };
    const auto shown = [&] {
        const redlock::master_health one = it.engine.examine(it.now()).masters[0];
        return one.notifications_text;
    };
    CHECK(shown().empty());
    release();
    CHECK(shown().starts_with("PUBLISH: "));
    CHECK(it.engine.count().masters[0].publish_refused == 1);
    CHECK(warnings() == 3);
    release();
    CHECK(it.engine.count().masters[0].publish_refused == 2);
    CHECK(warnings() == 3);
    SECTION("even next to a subscription that is live") {
        it.hold_everywhere();
        it.acquire(waiting(), 50ms);
        CHECK(shown().starts_with("PUBLISH: "));
        CHECK(it.engine.count().notification_connections == 0);
    }
    SECTION("until one is executed") {
        it.each([](virtual_master& server) { server.forbidden.clear(); });
        release();
        CHECK(shown().empty());
        CHECK(warnings() == 3);
    }
    SECTION("and once more on the next connection") {
        it.disconnect(0, 200ms);
        CHECK(shown().empty());
        release();
        CHECK(warnings() == 4);
    }
}

TEST_CASE("a watch of a lock is notified of its releases, and subscribes once") {
    started_quorum it(rules_with(3, 0ms, true));
    it.listen(50ms);
    CHECK(it.asked("SUBSCRIBE p:{r}:free") == 3);
    it.listen(50ms);
    CHECK(it.asked("SUBSCRIBE") == 3);
    it.heard_of.clear();
    it.push(1, channel, "release-one");
    it.push(1, "p:{s}:free", "release-two");
    it.run_for(5ms);
    CHECK(it.heard_of == std::vector<std::string>{"p:{r}"});
    CHECK(it.engine.count().release_notifications == 2);
    it.disconnect(3 + 1, 200ms); // it is subscribed again
    CHECK(it.asked("SUBSCRIBE") == 4);
    it.unlisten(5ms);
    CHECK(it.asked("UNSUBSCRIBE") == 0);
    it.unlisten(5ms);
    CHECK(it.asked("UNSUBSCRIBE p:{r}:free") == 3);
}

TEST_CASE("a channel is left when neither a waiter nor a listener is there any more") {
    waiting_quorum it(3);
    it.engine.listen("r", it.now());
    SECTION("the waiter stays") {
        it.unlisten(5ms);
        CHECK(it.asked("UNSUBSCRIBE") == 0);
        it.cancel(it.name);
    }
    SECTION("the listener stays") {
        it.cancel(it.name, 5ms);
        CHECK(it.asked("UNSUBSCRIBE") == 0);
        it.engine.unlisten("r", it.now());
    }
    it.run_for(5ms);
    CHECK(it.asked("UNSUBSCRIBE p:{r}:free") == 3);
}

// Masters that count on how many of them a release is published.
struct published_quorum : virtual_quorum {
    explicit published_quorum(core::settings rules) : virtual_quorum(std::move(rules)) {
        put_records();
        for (virtual_master& one : masters) {
            one.tell = [this](std::string_view, std::string_view) {
                ++published;
                return listening;
            };
        }
        start();
    }

    // On how many masters the release of a lock was published.
    std::size_t releases(const std::string& name = "r") {
        const answer got = acquire_now(once(), name);
        REQUIRE(got.won);
        published = 0;
        release(got);
        run_for(10ms);
        CHECK(!has_key(name));
        return published;
    }

    std::size_t published = 0;
    std::int64_t listening = 0; // on each master
};

TEST_CASE("without release notifications nothing is published, whatever the form of the lock") {
    published_quorum q(guarded(rules_with(3, 0ms, false)));
    for (const auto form : {exclusive, shared, all}) {
        const answer got = q.awaited(q.acquire_form(form, once(), "r"));
        CHECK(q.release_now(got) == release_result::released);
    }
    CHECK(q.published == 0);
}

TEST_CASE("a release is published everywhere until the arbiter finds that nobody listens") {
    const core::settings plain = rules_with(5, 0ms, true);
    published_quorum q(GENERATE(false, true) ? guarded(plain) : plain);
    CHECK(q.releases() == 5);
    CHECK(q.releases() == 1);
    CHECK(q.releases() == 1);
    SECTION("and everywhere where the arbiter has no key to remove") {
        for (virtual_master& one : q.masters) {
            virtual_master* const other = &one == &q.masters[0] ? &q.masters[1] : &q.masters[0];
            q.published = 0;
            one.put(q.key(), "another's", q.now() + 50ms);
            const answer got = q.take(once());
            REQUIRE(other->value_of(q.key(), q.now()) == got.token);
            q.run_for(100ms);
            q.release(got, 10ms);
            CHECK(q.published >= 1);
        }
    }
    SECTION("each lock by itself") {
        CHECK(q.releases("s") == 5);
        CHECK(q.releases("s") == 1);
    }
    SECTION("and again once somebody listens") {
        q.listening = 1;
        CHECK(q.releases() == 1); // which notifies it, and is counted
        CHECK(q.releases() == 5);
        q.listening = 0;
        CHECK(q.releases() == 5);
        CHECK(q.releases() == 1);
    }
    SECTION("and again when another master may be the arbiter") {
        q.cut_off(2, 10ms);
        CHECK(q.releases() == 4);
        CHECK(q.releases() == 1);
    }
}

}} // namespace push_test
