// A waiter is notified that the lock is free. The delay between attempts is an hour in most of
// these tests: a waiter that gets the lock was woken.
#include "guarded_quorum.hpp"

#include <catch2/generators/catch_generators.hpp>

namespace redlock::test { namespace {

void patient(config& settings) {
    settings.retry_delay_min = settings.retry_delay_max = 1h;
}

const milliseconds long_wait = 24h;

// Of PUBSUB NUMSUB, how many subscribe to the channel of that lock.
std::string subscribers(const master_process& master, const std::string& resource) {
    const std::string channel = "redlock:{" + resource + "}:free";
    const std::string said = master.command({"PUBSUB", "NUMSUB", channel});
    return said.substr(said.find_last_not_of("0123456789") + 1);
}

std::size_t subscriber_connections(const master_process& master) {
    const std::string list = master.command({"CLIENT", "LIST", "TYPE", "pubsub"});
    std::size_t found = 0;
    for (std::size_t at = list.find("id="); at != std::string::npos; at = list.find("id=", at)) {
        ++found;
        at += 3;
    }
    return found;
}

// Push connections that may not subscribe, so that CLIENT KILL TYPE does not count them.
void kill_refused(const master_process& master) {
    const std::string list = master.command({"CLIENT", "LIST"});
    for (std::size_t at = list.find("id="); at != std::string::npos; at = list.find("\nid=", at)) {
        at = list.find_first_of("0123456789", at);
        const std::string line = list.substr(at, list.find('\n', at) - at);
        if (line.find(" cmd=subscribe ") != std::string::npos) {
            master.command({"CLIENT", "KILL", "ID", line.substr(0, line.find(' '))});
        }
    }
}

struct push_site : quorum_fixture {
    explicit push_site(const std::function<void(config&)>& change = patient)
        : quorum_fixture(3, change),
          other(io, changed(change)) {
        other.until_admitted(3);
    }

    // Waits until each master has this number of subscribers to it.
    bool heard_by(const std::string& resource, const std::string& count) {
        return eventually([&] {
            return std::all_of(masters.begin(), masters.end(), [&](const master_process& one) {
                return subscribers(one, resource) == count;
            });
        });
    }

    // Begins to wait, and returns when the hints of its subscriptions are over.
    acquisition_ptr wait_for(const std::string& resource) {
        const acquisition_ptr waiter = other.begin(resource, waiting(long_wait));
        REQUIRE(heard_by(resource, "1"));
        REQUIRE(eventually([&] { return other.count().notification_connections == 3; }));
        return waiter;
    }

    client other;
};

void both_protocols(const std::function<void(const std::function<void(config&)>&)>& body) {
    body(patient);
    body([](config& settings) {
        guarded(settings);
        patient(settings);
    });
}

TEST_CASE("a lock without a key prefix has a channel as well") {
    push_site site([](config& settings) {
        patient(settings);
        settings.key_prefix = "";
    });
    lock mine = site.me.take("r");
    const acquisition_ptr waiter = site.other.begin("r", waiting(long_wait));
    REQUIRE(site.eventually([&] {
        const std::string said = site.masters[0].command({"PUBSUB", "NUMSUB", "r:free"});
        return said.ends_with("1") && site.other.count().notification_connections == 3;
    }));
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(!site.other.finish(waiter)->error);
}

TEST_CASE("the notification of one master is enough") {
    push_site site;
    const auto deaf = {site.masters.begin() + 1, site.masters.begin() + 2};
    for (const auto one : deaf) { // the others let nobody subscribe
        one->command({"ACL", "SETUSER", "default", "-subscribe"});
    }
    lock mine = site.me.take("r");
    const acquisition_ptr waiter = site.other.begin("r", waiting(long_wait));
    REQUIRE(site.eventually([&] {
        const health now = site.other.health();
        return now.masters[0].notifications == notification_state::live
               && now.masters[1].notifications == notification_state::refused
               && now.masters[2].notifications_text.starts_with("NOPERM");
    }));
    REQUIRE(site.eventually([&] { return subscribers(site.masters[0], "r") == "1"; }));
    for (const auto one : deaf) { // otherwise the notification may come before their deletion
        one->command({"DEL", lock_key("r")});
    }
    static_cast<void>(site.me.release(mine));
    CHECK(!site.other.finish(waiter)->error);
}

TEST_CASE("without permission to subscribe or to publish a waiter polls") {
    for (const std::string forbidden : {"-subscribe", "resetchannels", "-publish"}) {
        INFO(forbidden);
        push_site site([](config& settings) {
            settings.retry_delay_min = 10ms;
            settings.retry_delay_max = 50ms;
        });
        site.everywhere({"ACL", "SETUSER", "default", forbidden});
        lock mine = site.me.take("r");
        const acquisition_ptr waiter = site.other.begin("r", waiting(long_wait));
        run_until(site.io, [&] { return site.other.count().attempts >= 3; });
        CHECK(site.me.release(mine) == release_result::released);
        CHECK(!site.other.finish(waiter)->error);
        CHECK(site.other.count().release_notifications == 0);
    }
}

TEST_CASE("a refused PUBLISH is counted and shown, in both protocols") {
    both_protocols([](const auto& change) {
        push_site site(change);
        site.everywhere({"ACL", "SETUSER", "default", "-publish"});
        lock mine = site.me.take("r");
        CHECK(site.me.release(mine) == release_result::released);
        CHECK(site.eventually([&] {
            const auto masters = site.me.health().masters;
            return std::ranges::all_of(masters, [](const master_health& one) {
                return one.notifications_text.starts_with("PUBLISH: ");
            });
        }));
        CHECK(site.me.count().masters[0].publish_refused == 1);
        site.everywhere({"ACL", "SETUSER", "default", "+publish"});
        lock again = site.me.take("r");
        CHECK(site.me.release(again) == release_result::released);
        CHECK(site.eventually(
            [&] { return site.me.health().masters[2].notifications == notification_state::off; }));
    });
}

TEST_CASE("there is one subscriber connection to each master, whatever the number of waiters") {
    push_site site;
    lock mine = site.me.take("r");
    lock another = site.me.take("s");
    CHECK(subscriber_connections(site.masters[0]) == 0); // nobody had to wait yet
    std::vector<acquisition_ptr> waiters;
    for (int i = 0; i < 20; ++i) {
        waiters.push_back(site.other.begin(i % 2 == 0 ? "r" : "s", waiting(long_wait)));
    }
    REQUIRE(site.heard_by("r", "1"));
    REQUIRE(site.heard_by("s", "1"));
    for (const master_process& master : site.masters) {
        CHECK(subscriber_connections(master) == 1);
    }
    CHECK(site.other.count().subscriptions == 2);
    for (const acquisition_ptr& waiter : waiters) {
        waiter->cancel.emit(asio::cancellation_type::terminal);
    }
    for (const acquisition_ptr& waiter : waiters) {
        site.other.finish(waiter);
    }
    CHECK(site.heard_by("r", "0"));
    CHECK(site.heard_by("s", "0"));
    // Kept for the next one. On a busy machine one may just be made again.
    CHECK(site.eventually([&] { return site.other.count().notification_connections == 3; }));
}

TEST_CASE("a subscriber connection that was killed is opened again, and the waiter is notified") {
    push_site site;
    lock mine = site.me.take("r");
    const acquisition_ptr waiter = site.wait_for("r");
    for (int i = 0; i < 3; ++i) {
        site.everywhere({"CLIENT", "KILL", "TYPE", "pubsub"});
        REQUIRE(site.heard_by("r", "1"));
    }
    CHECK(!waiter->done);
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(!site.other.finish(waiter)->error);
}

TEST_CASE("a release that is missed without subscriber connections is found when they are back") {
    push_site site;
    lock mine = site.me.take("r");
    const acquisition_ptr waiter = site.wait_for("r");
    site.everywhere({"ACL", "SETUSER", "default", "-subscribe"});
    site.everywhere({"CLIENT", "KILL", "TYPE", "pubsub"});
    REQUIRE(site.eventually([&] {
        return site.other.health().masters[2].notifications == notification_state::refused
               && site.other.count().notification_connections == 0;
    }));
    CHECK(site.me.release(mine) == release_result::released);
    CHECK(!waiter->done);
    site.everywhere({"ACL", "SETUSER", "default", "+subscribe"});
    for (const master_process& master : site.masters) {
        kill_refused(master);
    }
    CHECK(!site.other.finish(waiter)->error);
}

}} // namespace redlock::test
