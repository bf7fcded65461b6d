// What is said about a connection, and what never is. How one introduces itself, and which masters
// may vote: the suites unit and integration.
#include "quorum.hpp"

#include <catch2/matchers/catch_matchers_string.hpp>

namespace redlock::test { namespace {

using Catch::Matchers::ContainsSubstring;

const std::string secret = "open-sesame-7391";

// As a server answers whose AUTH was renamed, or a proxy that does not know it.
TEST_CASE("a server that says the password back does not bring it into log or health") {
    quorum q(3, [](config& c) {
        c.username = "somebody";
        c.password = secret;
        c.reconnect_delay_max = 1h;
    });
    q.when(
        "AUTH",
        fake_action::reply(
            "-ERR unknown command 'AUTH', with args beginning with: 'somebody' '" + secret
            + "' \r\n"));
    q.start(0);
    q.run_until([&] { return q.health_of(0).state == master_state::down; });
    CHECK_THAT(q.health_of(0).text, ContainsSubstring("AUTH"));
    CHECK_THAT(q.all_words(q.acquire("r").why()), !ContainsSubstring(secret));
}

TEST_CASE("neither password nor token is in anything that is printed") {
    started_quorum q(3, [](config& c) { c.password = secret; });
    lock held = q.acquired("r");
    const std::string token(held.secret());
    acquisition& refused = q.acquire("r");
    CHECK(refused.error() == errc::contended);
    loss_outcome& loss = q.begin_wait_lost(held);
    q.each(&fake_master::flush_keys);
    q.extend(held, 20s);
    q.wait(loss);
    for (const std::string& words : {q.all_words(refused.why()), q.all_words(loss.why())}) {
        CHECK_THAT(words, !ContainsSubstring(secret));
        CHECK_THAT(words, !ContainsSubstring(token));
    }
}

TEST_CASE("what is doubtful in a configuration is in the log when the manager runs") {
    started_quorum q(2, [](config& c) { c.log.level = log_level::warning; });
    REQUIRE(q.log().size() == 1);
    CHECK_THAT(q.log().front(), ContainsSubstring("even number of masters"));
}

TEST_CASE("a resource's name may be any bytes, and a log line stays one line") {
    started_quorum q(3, [](config& c) { c.contention_warning = 1; });
    const std::string odd = std::string("a\nb\r\x1b[2J") + '\0';
    lock held = q.acquired(odd);
    CHECK(q.acquire(odd).error() == errc::contended);
    bool seen = false;
    for (const std::string& line : q.log()) {
        seen = seen || line.find("a\\x0ab\\x0d\\x1b[2J\\x00") != std::string::npos;
        for (const char c : line) {
            CHECK(static_cast<unsigned char>(c) >= 0x20);
        }
    }
    CHECK(seen);
}

TEST_CASE("a port that hangs up at the first word may be one for TLS, and that is said") {
    quorum q;
    for (const char* first : {"CLIENT", "INFO"}) {
        q.masters[0].when(first, fake_action::close_before_reply());
    }
    q.masters[1].when("INFO", fake_action::close_before_reply()); // which comes last
    q.start(1);
    q.run_until([&] { return q.health_of(0).text.find("rediss://") != std::string::npos; });
    q.run_until([&] { return q.health_of(1).text.find("closed") != std::string::npos; });
    CHECK_THAT(q.health_of(1).text, !ContainsSubstring("rediss://"));
}

}} // namespace redlock::test
