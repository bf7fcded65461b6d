#include "config/invalid_value.hpp"
#include "config/lock_request.hpp"
#include "config/settings_of.hpp"
#include "support/test.hpp"

#include <redlock/config.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>

#include <limits>
#include <variant>

namespace config_test { namespace {

using namespace redlock;
using std::chrono::milliseconds;

config good() {
    config out;
    out.masters = {"redis://a", "redis://b", "redis://c"};
    out.max_ttl = 30s;
    return out;
}

bool mentions(const std::string& text, std::string_view what) {
    return text.find(what) != std::string::npos;
}

// Refused, with a sentence that has each of `parts`.
void check_refused(const config& bad, std::initializer_list<std::string_view> parts) {
    const detail::validation found = detail::check(bad);
    REQUIRE(!found);
    const std::string reason = to_string(found.error());
    CHECK_THROWS_AS(found.value(), std::invalid_argument);
    CAPTURE(reason);
    for (const std::string_view part : parts) {
        CAPTURE(part);
        CHECK(mentions(reason, part));
    }
    CHECK(!mentions(reason, "s3cret"));
}

void check_refused(
    const acquire_options& bad,
    std::initializer_list<std::string_view> parts,
    const config& with = good()) {
    const detail::validation found = detail::check(bad, with);
    REQUIRE(!found);
    const std::string reason = to_string(found.error());
    CAPTURE(reason);
    for (const std::string_view part : parts) {
        CAPTURE(part);
        CHECK(mentions(reason, part));
    }
}

void check_accepted(const config& fine) {
    CHECK(detail::check(fine).has_value());
    CHECK(warnings(fine).empty());
}

void check_accepted(const acquire_options& fine, const config& with = good()) {
    CHECK(detail::check(fine, with).has_value());
}

config changed(const std::function<void(config&)>& change) {
    config out = good();
    change(out);
    return out;
}

acquire_options options(const std::function<void(acquire_options&)>& change) {
    acquire_options out;
    change(out);
    return out;
}

struct duration_rule {
    std::string name;
    milliseconds config::*member;
    milliseconds low;
    milliseconds high;
};

const duration_rule rules[] = {
    {"max_ttl", &config::max_ttl, 10ms, 24h},
    {"clock_drift_margin", &config::clock_drift_margin, 0ms, 10s},
    {"connect_timeout", &config::connect_timeout, 1ms, 1h},
    {"master_timeout", &config::master_timeout, 1ms, 1h},
    {"health_check_interval", &config::health_check_interval, 1ms, 1h},
    {"reconnect_delay_min", &config::reconnect_delay_min, 1ms, 1h},
    {"reconnect_delay_max", &config::reconnect_delay_max, 50ms, 1h},
    {"retry_delay_min", &config::retry_delay_min, 1ms, 1h},
    {"retry_delay_max", &config::retry_delay_max, 2ms, 1h},
    {"held_warning", &config::held_warning, 0ms, 24h},
};

std::string ms(milliseconds value) {
    return std::to_string(value.count()) + " ms";
}

TEST_CASE("the defaults are valid") {
    check_accepted(good());
    check_accepted(acquire_options{});
}

TEST_CASE("one to thirty-two masters are needed") {
    check_refused(
        changed([](config& it) { it.masters.clear(); }), {"masters has 0 entries", "1 to 32"});
    config many = good();
    many.masters.clear();
    for (int i = 0; i < 33; ++i) {
        many.masters.emplace_back("redis://h" + std::to_string(i));
    }
    check_refused(many, {"33 entries", "1 to 32"});
    many.masters.pop_back();
    CHECK(detail::check(many).has_value());
    many.masters.resize(1);
    check_accepted(many);
}

TEST_CASE("an even number of masters is allowed, with a warning") {
    config even = good();
    even.masters.emplace_back("redis://d");
    CHECK(detail::check(even).has_value());
    REQUIRE(warnings(even).size() == 1);
    CHECK(mentions(warnings(even)[0], "even number"));
}

TEST_CASE("each warning is given, and has a text of its own") {
    config odd = good();
    odd.masters.resize(2);
    odd.quarantine = quarantine::off;
    odd.master_timeout = odd.max_ttl;
    odd.tls.verify = false;
    CHECK(detail::check(odd).has_value());
    const std::vector<std::string> found = warnings(odd);
    REQUIRE(found.size() == 4);
    CHECK(mentions(found[0], "even number"));
    CHECK(found[1] == detail::unused_tls(odd));
    CHECK(mentions(found[2], "quarantine is off"));
    CHECK(mentions(found[3], "master_timeout"));
}

TEST_CASE("a text with a NUL character is refused where a C string is used") {
    using member = std::string& (*)(config&);
    struct {
        std::string_view field;
        member of;
    } const texts[] = {
        {"masters[1].host", [](config& it) -> std::string& { return it.masters[1].host; }},
        {"masters[1].username", [](config& it) -> std::string& { return it.masters[1].username; }},
        {"masters[2].path", [](config& it) -> std::string& { return it.masters[2].path; }},
        {"username", [](config& it) -> std::string& { return it.username; }},
        {"tls.ca_file", [](config& it) -> std::string& { return it.tls.ca_file; }},
        {"tls.certificate_file",
         [](config& it) -> std::string& { return it.tls.certificate_file; }},
        {"tls.private_key_file",
         [](config& it) -> std::string& { return it.tls.private_key_file; }},
        {"tls.server_name", [](config& it) -> std::string& { return it.tls.server_name; }},
    };
    config fine = good();
    fine.masters = {"redis://a", "redis://me:s3cret@b", "unix:///c"};
    fine.password = std::string("s3cret\0", 7); // is sent with its length
    fine.tls.certificate_file = fine.tls.private_key_file = "pem";
    CHECK(detail::check(fine).has_value());
    for (const auto& text : texts) {
        config bad = fine;
        text.of(bad) += std::string("x\0y", 3);
        check_refused(
            bad, {std::string(text.field) + " is '", "x\\x00y'; write it without NUL characters"});
    }
}

TEST_CASE("a value beyond an enumeration is refused") {
    const auto refused = [](std::string_view field, const std::function<void(config&)>& change) {
        check_refused(changed(change), {field, " is 77; allowed: 0 to "});
    };
    refused("protocol", [](config& it) { it.protocol = static_cast<protocol>(77); });
    refused("quarantine", [](config& it) { it.quarantine = static_cast<quarantine>(77); });
    refused("log.level", [](config& it) { it.log.level = static_cast<log_level>(77); });
    refused("masters[0].transport", [](config& it) {
        it.masters[0].transport = static_cast<transport>(77);
    });
}

TEST_CASE("a value beyond an enumeration is refused in the options of an acquire") {
    check_refused(
        acquire_options{.renew = static_cast<renewal>(77)}, {"renew is 77; allowed: 0 to 1"});
    check_refused(
        acquire_options{.order = static_cast<fairness>(77)}, {"order is 77; allowed: 0 to 1"});
    check_refused(
        acquire_options{.mode = static_cast<lock_mode>(77)}, {"mode is 77; allowed: 0 to 1"});
}

TEST_CASE("settings of TLS without a master that uses it are warned of: a password would be sent "
          "in clear") {
    for (const auto& set : std::vector<std::function<void(tls_options&)>>{
             [](tls_options& it) { it.ca_file = "/ca"; },
             [](tls_options& it) { it.server_name = "h"; },
             [](tls_options& it) { it.verify = false; },
             [](tls_options& it) { it.certificate_file = it.private_key_file = "/c"; }}) {
        config in_the_clear = good();
        set(in_the_clear.tls);
        CHECK(detail::check(in_the_clear).has_value());
        CHECK(warnings(in_the_clear) == std::vector{std::string(detail::unused_tls(in_the_clear))});
        in_the_clear.masters[1] = "rediss://secure";
        check_accepted(in_the_clear);
    }
}

TEST_CASE("a server is given once, whatever its user, database or security") {
    for (const std::string_view again : {"redis://a", "redis://me:s3cret@a:6379/4", "rediss://a"}) {
        check_refused(
            changed([&](config& it) { it.masters[2] = again; }),
            {"masters[2]", "masters[0] is", "a:6379", "once"});
    }
    config sockets = good();
    sockets.masters = {"unix:///one", "unix:///two", "unix:///one?db=3"};
    check_refused(sockets, {"masters[2]", "masters[0] is", "/one"});
    sockets.masters = {"unix:///one", "unix:///two", "redis://one"};
    check_accepted(sockets);
    check_accepted(changed([](config& it) { it.masters[1] = "redis://a:6380"; }));
}

TEST_CASE("every duration is refused outside of its range, and accepted at its limits") {
    for (const duration_rule& rule : rules) {
        for (const milliseconds value :
             {rule.low - 1ms,
              rule.high + 1ms,
              milliseconds(-1),
              milliseconds::max(),
              milliseconds::min()}) {
            check_refused(
                changed([&](config& it) { it.*rule.member = value; }),
                {rule.name, ms(value), ms(rule.low) + " to " + ms(rule.high)});
        }
        for (const milliseconds value : {rule.low, rule.high}) {
            const config it = changed([&](config& c) {
                c.*rule.member = value;
                c.reconnect_delay_max = std::max(c.reconnect_delay_max, c.reconnect_delay_min);
                c.retry_delay_max = std::max(c.retry_delay_max, c.retry_delay_min);
            });
            CHECK(detail::check(it).has_value());
        }
    }
}

TEST_CASE("the larger of two delays is at least the smaller") {
    check_refused(
        changed([](config& it) {
            it.retry_delay_min = 300ms;
            it.retry_delay_max = 299ms;
        }),
        {"retry_delay_max", "299 ms", "300 ms to 3600000 ms"});
    check_refused(
        changed([](config& it) { it.reconnect_delay_min = 2'001ms; }),
        {"reconnect_delay_max", "2000 ms", "2001 ms"});
}

TEST_CASE("the drift factor is a number from nought to a half") {
    for (const double bad :
         {-0.001,
          0.501,
          1e300,
          std::numeric_limits<double>::infinity(),
          std::numeric_limits<double>::quiet_NaN()}) {
        check_refused(
            changed([&](config& it) { it.clock_drift_factor = bad; }),
            {"clock_drift_factor", "0 to 0.5"});
    }
    check_refused(changed([](config& it) { it.clock_drift_factor = 0.75; }), {"0.75"});
    check_accepted(changed([](config& it) { it.clock_drift_factor = 0; }));
    check_accepted(changed([](config& it) { it.clock_drift_factor = 0.5; }));
}

TEST_CASE("a prefix has a limit, and a client's name has no spaces") {
    check_refused(
        changed([](config& it) { it.key_prefix = std::string(257, 'x'); }),
        {"key_prefix", "257 bytes", "256"});
    check_accepted(changed([](config& it) { it.key_prefix = std::string(256, 'x'); }));
    check_accepted(changed([](config& it) { it.key_prefix = ""; }));
    for (const std::string& name :
         {std::string("a b"),
          std::string("a\n"),
          std::string("a\0b", 3),
          std::string("\x7f"),
          std::string("\xc3\xa4")}) {
        check_refused(changed([&](config& it) { it.client_name = name; }), {"client_name"});
    }
    check_accepted(changed([](config& it) { it.client_name = ""; }));
    check_accepted(changed([](config& it) { it.client_name = "app-1~!"; }));
}

TEST_CASE("credentials and certificates come in pairs") {
    check_refused(
        changed([](config& it) { it.username = "me"; }), {"username is 'me'", "password"});
    check_refused(
        changed([](config& it) { it.password = it.password_file = "x"; }),
        {"password_file is 'x'", "not both"});
    check_accepted(changed([](config& it) { it.username = it.password_file = "x"; }));
    check_refused(
        changed([](config& it) { it.tls.certificate_file = "c.pem"; }),
        {"private_key_file is empty", "certificate"});
    check_refused(
        changed([](config& it) { it.tls.private_key_file = "k.pem"; }),
        {"certificate_file is empty", "private key"});
    check_accepted(changed([](config& it) { it.password = "s3cret"; }));
}

TEST_CASE("a name of a master is refused with the characters and the length that are allowed") {
    const auto named = [](std::string name) {
        return changed([&](config& it) { it.masters[1].name = name; });
    };
    for (const char* const name : {"a b", "a/b", "a,b", "a:1", "\xc3\xa9"}) {
        check_refused(
            named(name),
            {"masters[1].name is '" + std::string(name) + "'",
             "allowed: letters, digits, '-', '_' and '.'"});
    }
    check_refused(named(std::string(65, 'a')), {"masters[1].name has 65 characters", "1 to 64"});
    check_accepted(named(std::string(64, 'a')));
    check_accepted(named("Lock-1_b.example"));
}

TEST_CASE("an endpoint that was made member by member is checked as well") {
    const auto with = [](const std::function<void(endpoint&)>& change) {
        config out = good();
        out.masters[1].password = "s3cret";
        change(out.masters[1]);
        return out;
    };
    check_refused(with([](endpoint& it) { it.host = ""; }), {"masters[1].host is empty"});
    check_refused(with([](endpoint& it) { it.port = 0; }), {"masters[1].port is 0", "1 to 65535"});
    check_refused(
        with([](endpoint& it) { it.host = std::string(256, 'h'); }),
        {"masters[1].host has 256 characters", "1 to 255"});
    check_refused(with([](endpoint& it) { it.database = -1; }), {"-1", "0 to 65535"});
    check_refused(with([](endpoint& it) { it.database = 65'536; }), {"65536", "0 to 65535"});
    check_refused(
        with([](endpoint& it) {
            it.username = "me";
            it.password = "";
        }),
        {"username is 'me'", "password"});
    const auto socket = [&](const std::string& path) {
        return with([&](endpoint& it) {
            it.transport = transport::unix_socket;
            it.path = path;
        });
    };
    check_refused(socket(""), {"0 bytes", "1 to 107", "absolute"});
    check_refused(socket("relative"), {"relative", "absolute"});
    check_refused(socket("/" + std::string(107, 'p')), {"108 bytes", "1 to 107"});
    check_accepted(socket("/" + std::string(106, 'p')));
}

TEST_CASE("a ttl is more than the drift and the margins, and at most max_ttl") {
    const auto ttl = [](milliseconds value) {
        return options([&](acquire_options& it) { it.ttl = value; });
    };
    for (const milliseconds bad : {0ms, -1ms, -10'000ms}) {
        check_refused(ttl(bad), {"ttl is " + ms(bad), "30000 ms"});
    }
    check_refused(ttl(30'001ms), {"ttl is 30001 ms", "allowed: 4 ms to 30000 ms"});
    check_refused(ttl(milliseconds::max()), {"30000 ms"});
    check_accepted(ttl(30s));
    check_refused(ttl(3ms), {"ttl is 3 ms", "4 ms to 30000 ms"}); // 2.03 ms, rounded up
    check_accepted(ttl(4ms));
    acquire_options tight = ttl(1s);
    tight.stop_margin = 500ms;
    tight.min_validity = 488ms;
    check_refused(tight, {"ttl is 1000 ms", "1001 ms to 30000 ms", "with stop_margin 500 ms"});
    tight.min_validity = 487ms;
    check_accepted(tight);
}

TEST_CASE("the default ttl fits into max_ttl") {
    const std::vector<std::pair<milliseconds, milliseconds>> fits{
        {30s, 10s}, {10s, 10s}, {3s, 3s}, {500ms, 500ms}};
    for (const auto& [largest, ttl] : fits) {
        config rules = good();
        rules.max_ttl = largest;
        CHECK(detail::effective_ttl(acquire_options().ttl, largest) == ttl);
        CHECK(detail::effective_ttl(7s, largest) == 7s);
        check_accepted(acquire_options(), rules);
    }
}

TEST_CASE("a ttl that the drift uses up is refused, whatever its size") {
    config drifting = good();
    drifting.clock_drift_factor = 0.5;
    drifting.clock_drift_margin = 10s;
    check_refused(options([](acquire_options& it) { it.ttl = 20s; }), {"20000 ms"}, drifting);
    check_accepted(options([](acquire_options& it) { it.ttl = 20'002ms; }), drifting);
}

TEST_CASE("the margins of an acquire are within its ttl") {
    constexpr milliseconds least = milliseconds::min() + 1ms; // that itself is the default
    for (const milliseconds bad : {-1ms, 10'001ms, milliseconds::max(), least}) {
        check_refused(
            options([&](acquire_options& it) { it.min_validity = bad; }),
            {"min_validity is " + ms(bad), "0 ms to 10000 ms"});
        check_refused(
            options([&](acquire_options& it) { it.stop_margin = bad; }),
            {"stop_margin is " + ms(bad), "0 ms to 10000 ms"});
    }
}

TEST_CASE("the default margin is never the reason for a refusal") {
    check_accepted(options([](acquire_options& it) { it.ttl = 5ms; }));
    check_accepted(options([](acquire_options& it) { it.min_validity = 9'897ms; }));
    check_accepted(options([](acquire_options& it) { it.max_hold = 1ms; }));
}

TEST_CASE("a wait and a hold are not negative, and a hold is longer than its margin") {
    check_refused(
        options([](acquire_options& it) { it.wait = milliseconds(-1); }),
        {"wait is -1 ms", "0 ms or more"});
    check_accepted(options([](acquire_options& it) { it.wait = wait_for::forever(); }));
    check_accepted(options([](acquire_options& it) { it.wait = wait_for::none(); }));
    check_accepted(options([](acquire_options& it) { it.wait = std::chrono::hours::max(); }));
    static_assert(wait_for(std::chrono::hours::max()) == wait_for::forever());
    check_refused(
        options([](acquire_options& it) { it.max_hold = milliseconds(-1); }),
        {"max_hold is -1 ms", "1 ms or more, or 0 for no limit"});
    acquire_options margin;
    margin.stop_margin = 100ms;
    margin.max_hold = 100ms;
    check_refused(margin, {"max_hold is 100 ms", "101 ms or more", "0 for no limit"});
    margin.max_hold = 101ms;
    check_accepted(margin);
    margin.max_hold = milliseconds::max();
    check_accepted(margin);
    margin.max_hold = margin.min_validity = 200ms; // no acquire could succeed
    check_refused(margin, {"max_hold is 200 ms", "201 ms or more"});
}

TEST_CASE("what is refused is thrown with the sentence") {
    using Catch::Matchers::Message;
    CHECK_THROWS_MATCHES(
        validate(changed([](config& it) { it.master_timeout = 0ms; })),
        std::invalid_argument,
        Message("redlock: master_timeout is 0 ms; allowed: 1 ms to 3600000 ms"));
    CHECK_THROWS_MATCHES(
        validate(acquire_options{.wait = milliseconds(-1)}, good()),
        std::invalid_argument,
        Message("redlock: wait is -1 ms; allowed: 0 ms or more"));
    validate(good());
    validate(acquire_options(), good());
}

TEST_CASE("a resource has a name of one byte to the limit, of any bytes") {
    CHECK(
        to_string(detail::check_resource("").error())
        == "resource has 0 bytes; allowed: 1 to 1024");
    CHECK(
        to_string(detail::check_resource(std::string(1025, 'x')).error())
        == "resource has 1025 bytes; allowed: 1 to 1024");
    CHECK(detail::check_resource(std::string(1024, 'x')).has_value());
    CHECK(detail::check_resource(std::string_view("\0\xff\n", 3)).has_value());
}

TEST_CASE("an extension's ttl is checked as an acquire's is") {
    CHECK(detail::check_extension(30s, good(), 30s).has_value());
    CHECK(detail::check_extension(4ms, good(), 30s).has_value());
    for (const milliseconds bad : {30'001ms, 3ms, -1ms}) {
        const detail::validation found = detail::check_extension(bad, good(), 30s);
        REQUIRE(!found);
        CHECK(found.error().field == "ttl");
        CHECK(found.error().value == detail::setting_value(bad));
        CHECK(found.error().minimum == detail::setting_value(4ms));
        CHECK(found.error().maximum == detail::setting_value(milliseconds(30s)));
    }
}

TEST_CASE("an invalid value is a member, its value and its limits, or the rule") {
    const detail::validation large =
        detail::check(changed([](config& it) { it.clock_drift_factor = 0.75; }));
    REQUIRE(!large);
    CHECK(large.error().field == "clock_drift_factor");
    CHECK(std::get<double>(large.error().value) == 0.75);
    CHECK(std::get<double>(large.error().maximum) == 0.5);
    const detail::validation spaces =
        detail::check(changed([](config& it) { it.client_name = "a b"; }));
    REQUIRE(!spaces);
    CHECK(std::get<std::string>(spaces.error().value) == "a b");
    CHECK(std::holds_alternative<std::monostate>(spaces.error().minimum));
    CHECK(
        to_string(spaces.error())
        == "client_name is 'a b'; use printable ASCII characters without spaces");
    const detail::validation token = detail::check_secret("s3cret");
    REQUIRE(!token);
    CHECK(
        to_string(token.error())
        == "secret has 6 characters; allowed: 40, all of them hexadecimal digits in lower case");
    CHECK(detail::check_secret(std::string(40, 'a')).has_value());
    CHECK(!detail::check_secret(std::string(40, 'A')));
}

TEST_CASE("a configuration becomes the engine's settings") {
    config it = good();
    it.masters = {"redis://own:pw@a/3", "redis://b"};
    it.username = "all";
    it.password = "s3cret";
    it.client_name = "app";
    it.key_prefix = "k:";
    it.max_ttl = 11s;
    it.clock_drift_factor = 0.25;
    it.clock_drift_margin = 3ms;
    it.quarantine = quarantine::off;
    it.founds_quorum = false;
    it.connect_timeout = 4ms;
    it.master_timeout = 5ms;
    it.reconnect_delay_min = 6ms;
    it.reconnect_delay_max = 7ms;
    it.health_check_interval = 8ms;
    it.retry_delay_min = 9ms;
    it.retry_delay_max = 10ms;
    const core::settings out = detail::settings_of(it);
    REQUIRE(out.size() == 2);
    CHECK(out.quorum() == 2);
    CHECK(out.masters[0].username == "own");
    CHECK(out.masters[0].password == "pw");
    CHECK(out.masters[0].database == 3);
    CHECK(out.masters[1].username == "all");
    CHECK(out.masters[1].password == "s3cret");
    CHECK(out.masters[1].client_name == "app");
    CHECK(out.names == std::vector<std::string>{"a:6379/3", "b:6379"});
    CHECK(out.key_prefix == "k:");
    CHECK(out.max_ttl == 11s);
    CHECK(out.drift.of(1s) == 253ms);
    CHECK(!out.quarantine);
    CHECK(!out.founds);
    CHECK(out.connect_timeout == 4ms);
    CHECK(out.master_timeout == 5ms);
    CHECK(out.reconnect_delay_min == 6ms);
    CHECK(out.reconnect_delay_max == 7ms);
    CHECK(out.health_check_interval == 8ms);
    CHECK(out.retry_delay_min == 9ms);
    CHECK(out.retry_delay_max == 10ms);
    CHECK(out.pushes);
    it.release_notifications = false;
    CHECK(!detail::settings_of(it).pushes);
}

}} // namespace config_test
