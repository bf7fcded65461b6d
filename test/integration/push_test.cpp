// Notifications that a lock is free, and masters that refuse them. The rest: unit/push_test.cpp.
#include "guarded_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace redlock::test { namespace {

const milliseconds long_wait = 24h;

TEST_CASE("without permission to subscribe or to publish a waiter polls") {
    const protocol speaks = GENERATE(protocol::plain, protocol::guarded);
    for (const std::string forbidden : {"-subscribe", "resetchannels", "-publish"}) {
        INFO(forbidden);
        two_processes site(3, [&](config& settings) {
            settings.protocol = speaks;
            settings.retry_delay_min = 10ms;
            settings.retry_delay_max = 50ms;
        });
        site.everywhere({"ACL", "SETUSER", "default", forbidden});
        lock mine = site.me.take("r");
        const acquisition_ptr waiter = site.other.begin("r", waiting(long_wait));
        run_until(site.io, [&] { return site.other.count().attempts >= 3; });
        if (forbidden == "-subscribe") {
            site.other.until_each([](const master_health& one) {
                return one.notifications_text.starts_with("NOPERM");
            });
        }
        CHECK(site.me.release(mine) == release_result::released);
        if (forbidden == "-publish") {
            site.me.until_each([](const master_health& one) {
                return one.notifications_text.starts_with("PUBLISH: ");
            });
            CHECK(site.me.count().masters[0].publish_refused == 1);
        }
        CHECK(!site.other.finish(waiter)->error);
        CHECK(site.other.count().release_notifications == 0);
    }
}

TEST_CASE("waiters share a subscriber connection, which is opened again when it was killed") {
    const std::string prefix = GENERATE("redlock:", "");
    two_processes site(3, [&](config& settings) {
        settings.key_prefix = prefix;
        settings.retry_delay_min = settings.retry_delay_max = 1h; // it is notified, or waits
    });
    const std::string channel = prefix.empty() ? "r:free" : "redlock:{r}:free";
    lock mine = site.me.take("r");
    const acquisition_ptr waiter = site.other.begin("r", waiting(long_wait));
    const acquisition_ptr another = site.other.begin("r", waiting(long_wait));
    const auto subscribed = [&] {
        return site.eventually([&] {
            return std::ranges::all_of(site.masters, [&](const master_process& one) {
                return one.command({"PUBSUB", "NUMSUB", channel}).ends_with("1");
            });
        });
    };
    REQUIRE(subscribed());
    const std::string list = site.masters[0].command({"CLIENT", "LIST", "TYPE", "pubsub"});
    CHECK(list.find("id=") == list.rfind("id="));
    site.other.cancel(another);
    run_until(site.io, [&] { return site.other.count().notification_connections == 3; });
    for (int i = 0; i < 3; ++i) {
        site.everywhere({"CLIENT", "KILL", "TYPE", "pubsub"});
        REQUIRE(subscribed());
    }
    CHECK(!waiter->done);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(!site.other.finish(waiter)->error);
    CHECK(site.eventually([&] { return site.other.count().release_notifications > 0; }));
}

}} // namespace redlock::test
