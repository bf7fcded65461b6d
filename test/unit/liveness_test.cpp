// What a connection does by itself on a virtual clock: it gives up, tries again, falls silent, and
// asks after the health of its master.

#include "connection_site.hpp"

namespace presence_test { namespace {

using namespace redlock::core;
using unit::connection_site;
using unit::lines;
using unit::up_site;

settings checked_each_second() {
    settings rules = unit::settings_for(1);
    rules.health_check_interval = 1s;
    return rules;
}

TEST_CASE("connecting and introducing must end within connect_timeout") {
    for (const bool opened : {false, true}) {
        connection_site it;
        it.link.start(it.now);
        CHECK(it.link.next_due() == it.now + 2s);
        it.wait(1s);
        if (opened) {
            it.link.opened(it.now);
            CHECK(it.link.next_due() == it.now + 1s); // one deadline for both
        }
        it.wait(1s - 1ns);
        CHECK(it.closes == 0);
        it.wait(1ns);
        CHECK(it.closes == 1);
        CHECK(!it.link.refused());
        CHECK(
            it.link.why_down().find(opened ? "server replied" : "name resolution")
            != std::string::npos);
        CHECK(it.link.counters().disconnects == (opened ? 1U : 0U));
    }
}

TEST_CASE("a lost connection is opened again after a delay that grows within its bounds") {
    connection_site it;
    it.link.start(it.now);
    std::chrono::nanoseconds before = 50ms;
    std::chrono::nanoseconds largest{};
    for (int i = 1; i <= 60; ++i) {
        REQUIRE(it.opens == i);
        it.link.closed("connection refused", it.now);
        const std::chrono::nanoseconds delay = it.link.next_due() - it.now;
        REQUIRE(delay >= 50ms);
        REQUIRE(delay <= std::min<std::chrono::nanoseconds>(2s, 3 * before));
        before = delay;
        largest = std::max(largest, delay);
        it.wait(delay - 1ns);
        REQUIRE(it.opens == i);
        it.wait(1ns);
    }
    CHECK(largest == 2s);
    it.introduce();
    it.link.closed("reset", it.now);
    CHECK(it.link.next_due() - it.now <= 150ms); // it worked: small again
}

TEST_CASE("an idle connection is checked with PING, and a busy one is not") {
    up_site it(checked_each_second());
    CHECK(it.link.next_due() == it.now + 1s);
    it.wait(500ms);
    it.send(1);
    it.hear("+OK\r\n");
    it.written();
    it.wait(999ms);
    CHECK(it.written().empty());
    it.wait(1ms);
    CHECK(it.written() == lines{"PING"});
    it.wait(1ms);
    it.hear("+PONG\r\n");
    CHECK(it.link.up());
    CHECK(it.replies.size() == 1); // it is not reported
    CHECK(it.link.next_due() == it.now + 1s);
}

TEST_CASE("an ineligible master is asked again at each check, and is eligible once it says so") {
    connection_site it(checked_each_second());
    it.server.info_overrides["role"] = "slave";
    it.bring_up();
    CHECK(it.link.up());
    CHECK(!it.link.judgement().fit);
    it.written();
    it.wait(1s);
    CHECK(it.written() == it.introduction());
    it.reply_to_introduction();
    CHECK(!it.link.judgement().fit);
    it.wait(1s);
    CHECK(it.written() == it.introduction());
    it.server.info_overrides["role"] = "master";
    const int changes = it.changes;
    it.reply_to_introduction();
    CHECK(it.link.judgement().fit);
    CHECK(it.changes == changes + 1);
    it.wait(1s);
    CHECK(it.written() == lines{"PING"});
}

}} // namespace presence_test
