#include "connection_site.hpp"
#include "core/masters/subscriber.hpp"

namespace subscriber_test { namespace {

using namespace redlock::core;
using redlock::time_point;
using unit::checked_each_second;
using unit::lines;
using unit::virtual_master;

std::string bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
std::string confirmed(const std::string& what, const std::string& channel) {
    return "*3\r\n" + bulk(what) + bulk(channel) + ":1\r\n";
}
std::string message(const std::string& channel) {
    return "*3\r\n" + bulk("message") + bulk(channel) + bulk("");
}
const std::string pong = "*2\r\n" + bulk("pong") + bulk("");

// One push connection, and a record of what it wanted. The test plays the socket and the server.
struct harness : connection_events {
    explicit harness(settings with) : rules(std::move(with)) {}
    harness() : harness(checked_each_second()) {}

    void open(std::size_t) override {}
    void close(std::size_t) override { ++closes; }
    void admission_changed(std::size_t, time_point) override {}
    void clock_stepped(std::size_t, std::chrono::microseconds, time_point) override {}
    void random(std::span<unsigned char>) override {}
    void
    release_notified(std::size_t, std::string_view channel, std::string_view, time_point) override {
        hints.emplace_back(channel);
    }
    void noted(std::size_t, std::string_view text) override { notes.emplace_back(text); }

    /// The commands in the output, which is taken as written.
    lines written() { return virtual_master::lines_of(std::exchange(link.output(), {})); }
    void hear(const std::string& bytes) { link.received({bytes.data(), bytes.size()}, now); }
    void wait(std::chrono::nanoseconds span) {
        now += span;
        link.time_passed(now);
    }
    /// Watches one channel, and the server does what it is asked to.
    void bring_up() {
        link.watch("a", now);
        link.opened(now);
        hear("+PONG\r\n" + confirmed("subscribe", "a"));
        written();
        hints.clear();
    }

    settings rules;
    jitter chance{1};
    time_point now{1'000s};
    int closes = 0;
    lines hints;
    lines notes;
    subscriber link{0, rules, *this, chance};
};

struct up_harness : harness {
    up_harness() { bring_up(); }
};

TEST_CASE("it logs in and subscribes to everything in one write, and is live then") {
    settings rules = checked_each_second();
    rules.masters[0] = {"me", "pw", 3, "app"};
    harness it(rules);
    it.link.watch("b", it.now);
    it.link.watch("a", it.now);
    it.link.opened(it.now);
    CHECK(
        it.written()
        == lines{"AUTH me pw", "CLIENT SETNAME app", "PING", "SUBSCRIBE a", "SUBSCRIBE b"});
    it.hear("+OK\r\n+OK\r\n");
    CHECK(!it.link.live());
    it.hear("+PONG\r\n");
    CHECK(it.link.live());
    CHECK(it.hints.empty());
    it.hear(confirmed("subscribe", "a") + confirmed("subscribe", "b"));
    CHECK(it.hints == lines{"a", "b"}); // what was published before was missed
    CHECK(it.link.messages() == 0);
}

TEST_CASE(
    "a refused UNSUBSCRIBE changes nothing: Valkey 8.0 has NOSUB outside of subscribed mode") {
    const std::string no_sub = "-NOSUB 'unsubscribe' command executed not in subscribed mode\r\n";
    up_harness it;
    it.link.unwatch("a", it.now);
    it.hear(no_sub);
    it.link.watch("b", it.now);
    it.hear(confirmed("subscribe", "b") + message("b"));
    CHECK(it.hints == lines{"b", "b"});
    CHECK(it.link.live());
    CHECK(it.closes == 0);
    CHECK(it.notes.empty());

    harness refused; // its UNSUBSCRIBE is for a channel that was never subscribed to
    refused.link.watch("a", refused.now);
    refused.link.opened(refused.now);
    refused.hear("+PONG\r\n-NOPERM no channel\r\n");
    refused.link.unwatch("a", refused.now);
    refused.hear(no_sub);
    CHECK(refused.link.forbidden());
    CHECK(refused.link.why_down() == "NOPERM no channel");
    CHECK(refused.closes == 0);
}

TEST_CASE("a push connection that is not up in time says how far it came") {
    for (const bool connected : {false, true}) {
        harness it;
        it.link.watch("a", it.now);
        if (connected) {
            it.link.opened(it.now);
        }
        it.wait(2s);
        CHECK(it.closes == 1);
        CHECK(
            it.notes.back()
            == std::string("pushes: connect_timeout (2000 ms) expired ")
                   + (connected ? "before the server replied"
                                : "during name resolution or connect"));
    }
}

TEST_CASE("the words of a refusal hold neither the password nor the lock") {
    settings rules = checked_each_second();
    rules.masters[0].password = "secret";
    harness it(rules);
    it.link.watch("p:{name}:free", it.now);
    it.link.opened(it.now);
    it.hear("+OK\r\n+PONG\r\n-ERR unknown command 'SUBSCRIBE', with args beginning with: "
            "'p:{name}:free' \r\n");
    CHECK(it.link.why_down() == "ERR unknown command 'SUBSCRIBE'");
    it.link.closed("reset", it.now);
    it.wait(2s);
    it.link.opened(it.now);
    it.hear("-ERR unknown command 'AUTH', with args beginning with: 'secret'\r\n");
    CHECK(it.link.why_down() == "ERR AUTH was refused");

    const std::string words = "ERR unknown command 'AUTH', with args beginning with: ";
    CHECK(
        refusal_of("AUTH", words + "'a secret", "a secret that is not shown whole").find("a secret")
        == words.npos);
    CHECK(refusal_of("AUTH", words + "'se crets'", "se\ncrets") == "ERR AUTH was refused");
    CHECK(refusal_of("AUTH", words + "'ecret1'", "a-secret1") == "ERR AUTH was refused");
    CHECK(not_redis_text("bad", "HTTP secret\r\n", "secret") == "bad");
    const std::string usual = "WRONGPASS invalid username-password pair";
    CHECK(refusal_of("AUTH", usual, "a password") == usual);
    CHECK(refusal_of("AUTH", words + "'another'", "secret") == words + "'another'");
}

TEST_CASE("an idle push connection is checked, and dropped when it is silent") {
    up_harness it;
    it.wait(1s);
    CHECK(it.written() == lines{"PING"});
    it.hear(pong);
    CHECK(it.link.next_due() == it.now + 1s);
    it.wait(1s);
    it.wait(100ms);
    CHECK(!it.link.live());
    CHECK(it.closes == 0);
    it.hear(pong);
    CHECK(it.link.live());
    CHECK(it.link.why_down().empty());
    it.wait(1s);
    it.wait(100ms);
    it.wait(1s);
    CHECK(it.closes == 1);
    CHECK(it.link.why_down().find("silent") != std::string::npos);
}

}} // namespace subscriber_test
