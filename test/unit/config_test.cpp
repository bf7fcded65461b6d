#include "config/invalid_value.hpp"
#include "config/lock_request.hpp"
#include "config/settings_of.hpp"
#include "support/test.hpp"

#include <redlock/config.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>

#include <limits>

namespace config_test { namespace {

using namespace redlock;
using Catch::Matchers::Message;
using detail::warnings;
using std::chrono::milliseconds;

// "; allowed: 0 to LAST, ...": a value of an enumeration.
std::string of(int last) {
    return "; allowed: 0 to " + std::to_string(last) + ", the values of the enumeration";
}

bool mentions(const std::string& text, std::string_view what) {
    return text.find(what) != std::string::npos;
}

config good() {
    config out;
    out.masters = {"redis://a", "redis://:s3cret@b", "redis://c"};
    out.max_ttl = 30s;
    return out;
}

std::string refusal(const detail::validation& found) {
    return found ? "" : to_string(found.error());
}

using change = std::function<void(config&)>;

template <typename T>
change set(T config::*field, std::type_identity_t<T> value) {
    return [=](config& it) { it.*field = value; };
}
template <typename T>
change master(T endpoint::*field, std::type_identity_t<T> value) {
    return [=](config& it) { it.masters[1].*field = value; };
}
template <typename T>
change tls(T tls_options::*field, std::type_identity_t<T> value) {
    return [=](config& it) { it.tls.*field = value; };
}
change master(std::string_view url) {
    return [url = std::string(url)](config& it) { it.masters[1] = url; };
}

config changed(const std::vector<change>& changes) {
    config out = good();
    for (const change& one : changes) {
        one(out);
    }
    return out;
}

// Empty: it is accepted, without a warning.
void check_sentence(const config& it, const std::string& sentence) {
    const detail::validation found = detail::check(it);
    CHECK(refusal(found) == sentence);
    CHECK(!mentions(refusal(found), "s3cret"));
    if (sentence.empty()) {
        validate(it);
        CHECK(warnings(it).empty());
    } else {
        CHECK_THROWS_MATCHES(validate(it), std::invalid_argument, Message("redlock: " + sentence));
    }
}

std::string ms(milliseconds value) {
    return std::to_string(value.count()) + " ms";
}

TEST_CASE("an invalid value of the configuration is refused in one sentence, without a password") {
    const std::string letters = "; allowed: letters, digits, '-', '_' and '.'";
    const std::string printable = "; use printable ASCII characters without spaces";
    const std::string once = "; masters[0] is the same server; list each server once";
    constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
    const std::string factor = "; allowed: 0 to 0.5";
    const std::string nul("x\0y", 3);
    const std::string without = "; write it without NUL characters";
    const struct {
        std::vector<change> changes;
        std::string sentence;
    } rows[] = {
        {{}, ""},
        {{set(&config::masters, {})}, "masters has 0 entries; allowed: 1 to 32"},
        {{master("redis://a")}, "masters[1] is 'a:6379'" + once},
        {{master("redis://me:s3cret@a:6379/4")}, "masters[1] is 'a:6379/4'" + once},
        {{set(&config::masters, {"unix:///one", "unix:///one?db=3"})},
         "masters[1] is '/one?db=3'" + once},
        {{set(&config::masters, {"unix:///one", "unix:///two", "redis://one"})}, ""},
        // An endpoint that was made member by member.
        {{master(&endpoint::host, "")}, "masters[1].host is empty; write a name or an address"},
        {{master(&endpoint::host, std::string(256, 'h'))},
         "masters[1].host has 256 characters; allowed: 1 to 255"},
        {{master(&endpoint::port, 0)}, "masters[1].port is 0; allowed: 1 to 65535"},
        {{master(&endpoint::database, 65'536)},
         "masters[1].database is 65536; allowed: 0 to 65535"},
        {{master(&endpoint::username, "me"), master(&endpoint::password, "")},
         "masters[1].username is 'me'; a user needs a password"},
        {{master(&endpoint::path, "relative")},
         "masters[1].path is 'relative'; write an absolute path"},
        {{master(&endpoint::path, "/s"), master(&endpoint::tls, true)},
         "masters[1].path is '/s'; TLS is for TCP only"},
        {{master(&endpoint::path, "/" + std::string(107, 'p'))},
         "masters[1].path has 108 bytes; allowed: 1 to 107, as an absolute path"},
        {{master(&endpoint::name, "a b")}, "masters[1].name is 'a b'" + letters},
        {{master(&endpoint::name, std::string(65, 'a'))},
         "masters[1].name has 65 characters; allowed: 1 to 64"},
        {{master(&endpoint::name, "Lock-1_b.example")}, ""},
        // Enumerations.
        {{set(&config::protocol, protocol(77))}, "protocol is 77" + of(1)},
        {{[](config& it) { it.log.level = log_level(77); }}, "log.level is 77" + of(4)},
        // Numbers that depend on each other, and the drift factor.
        {{set(&config::retry_delay_min, 300ms), set(&config::retry_delay_max, 299ms)},
         "retry_delay_max is 299 ms; allowed: 300 ms to 3600000 ms"},
        {{set(&config::clock_drift_factor, -0.001)}, "clock_drift_factor is -0.001" + factor},
        {{set(&config::clock_drift_factor, 0.501)}, "clock_drift_factor is 0.501" + factor},
        {{set(&config::clock_drift_factor, nothing)}, "clock_drift_factor is nan" + factor},
        {{set(&config::clock_drift_factor, 0.5)}, ""},
        // Texts.
        {{set(&config::key_prefix, std::string(257, 'x'))},
         "key_prefix has 257 bytes; allowed: 0 to 256"},
        {{set(&config::key_prefix, "")}, ""},
        {{set(&config::client_name, "a b")}, "client_name is 'a b'" + printable},
        {{set(&config::client_name, std::string("a\0b", 3))},
         "client_name is 'a\\x00b'" + printable},
        {{set(&config::client_name, "\xc3\xa4")}, "client_name is '\xc3\xa4'" + printable},
        {{set(&config::client_name, "app-1~!")}, ""},
        // Credentials and certificates come in pairs.
        {{set(&config::username, "me")}, "username is 'me'; a user needs a password"},
        {{set(&config::password, "s3cret"), set(&config::password_file, "x")},
         "password_file is 'x'; set it or the password, not both"},
        {{set(&config::username, "x"), set(&config::password_file, "x")}, ""},
        {{tls(&tls_options::certificate_file, "c.pem")},
         "tls.private_key_file is empty; a certificate needs its private key"},
        {{tls(&tls_options::private_key_file, "k.pem")},
         "tls.certificate_file is empty; a private key needs its certificate"},
        // What becomes a C string; a password is sent with its length.
        {{master(&endpoint::host, nul)}, "masters[1].host is 'x\\x00y'" + without},
        {{master(&endpoint::path, "/" + nul)}, "masters[1].path is '/x\\x00y'" + without},
        {{set(&config::username, nul), set(&config::password, "s3cret")},
         "username is 'x\\x00y'" + without},
        {{tls(&tls_options::ca_file, nul)}, "tls.ca_file is 'x\\x00y'" + without},
        {{set(&config::password, nul)}, ""},
    };
    for (const auto& [changes, sentence] : rows) {
        check_sentence(changed(changes), sentence);
    }
    std::vector<endpoint> many;
    for (int i = 0; i < 33; ++i) {
        many.emplace_back("redis://h" + std::to_string(i));
    }
    check_sentence(
        changed({set(&config::masters, many)}), "masters has 33 entries; allowed: 1 to 32");
    many.pop_back();
    CHECK(detail::check(changed({set(&config::masters, many)})).has_value());
    check_sentence(changed({set(&config::masters, {"redis://a"})}), "");
}

TEST_CASE("every duration is refused outside of its range, and accepted at its limits") {
    const struct {
        std::string field;
        milliseconds config::*member;
        milliseconds low;
        milliseconds high;
    } rows[] = {
        {"max_ttl", &config::max_ttl, 10ms, 24h},
        {"clock_drift_margin", &config::clock_drift_margin, 0ms, 10s},
        {"connect_timeout", &config::connect_timeout, 1ms, 1h},
        {"master_timeout", &config::master_timeout, 1ms, 1h},
        {"health_check_interval", &config::health_check_interval, 1ms, 1h},
        {"reconnect_delay_max", &config::reconnect_delay_max, 1ms, 1h},
        {"retry_delay_min", &config::retry_delay_min, 1ms, 1h},
        {"retry_delay_max", &config::retry_delay_max, 2ms, 1h},
        {"clock_offset_bound", &config::clock_offset_bound, 0ms, 1h},
        {"held_warning", &config::held_warning, 0ms, 24h},
        {"local_handoff_time", &config::local_handoff_time, 0ms, 1h},
    };
    for (const auto& [field, member, low, high] : rows) {
        for (const milliseconds bad :
             {low - 1ms, high + 1ms, -1ms, milliseconds::max(), milliseconds::min()}) {
            check_sentence(
                changed({set(member, bad)}),
                field + " is " + ms(bad) + "; allowed: " + ms(low) + " to " + ms(high));
        }
        for (const milliseconds fine : {low, high}) {
            config it = changed({set(member, fine)});
            it.retry_delay_max = std::max(it.retry_delay_max, it.retry_delay_min);
            CHECK(refusal(detail::check(it)).empty());
        }
    }
}

TEST_CASE("each warning is given, and has a text of its own") {
    config odd = good();
    odd.masters.resize(2);
    odd.quarantine = false;
    odd.master_timeout = odd.max_ttl;
    odd.tls.verify = false;
    CHECK(detail::check(odd).has_value());
    const std::vector<std::string> found = warnings(odd);
    REQUIRE(found.size() == 4);
    CHECK(mentions(found[0], "even number"));
    CHECK(found[1] == detail::unused_tls(odd));
    CHECK(mentions(found[2], "quarantine is off"));
    CHECK(mentions(found[3], "master_timeout"));
    CHECK(warnings(changed({set(&config::masters, {"redis://a", "redis://b"})})).size() == 1);
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
        check_sentence(in_the_clear, "");
    }
}

TEST_CASE("an invalid option of an acquire is refused in one sentence") {
    using options = acquire_options;
    constexpr milliseconds most = milliseconds::max();
    const std::string margins = "; allowed: 0 ms to 10000 ms";
    const std::string holds = " ms or more, or 0 for no limit";
    const struct {
        options wanted;
        std::string sentence;
    } rows[] = {
        {{}, ""},
        {{.mode = lock_mode(77)}, "mode is 77" + of(1)},
        // More than the drift of 1 % and 2 ms, rounded up, and the margins; at most max_ttl.
        {{.ttl = 0ms}, "ttl is 0 ms; allowed: 4 ms to 30000 ms"},
        {{.ttl = 3ms}, "ttl is 3 ms; allowed: 4 ms to 30000 ms"},
        {{.ttl = 4ms}, ""},
        {{.ttl = 30s}, ""},
        {{.ttl = 30'001ms}, "ttl is 30001 ms; allowed: 4 ms to 30000 ms"},
        {{.ttl = most}, "ttl is " + ms(most) + "; allowed: 4 ms to 30000 ms"},
        {{.ttl = 1s, .min_validity = 488ms, .stop_margin = 500ms},
         "ttl is 1000 ms; allowed: 1001 ms to 30000 ms, with stop_margin 500 ms and min_validity "
         "488 ms"},
        {{.min_validity = 9'999ms},
         "ttl is 10000 ms; allowed: 10102 ms to 30000 ms, with min_validity 9999 ms"},
        {{.ttl = 1s, .min_validity = 487ms, .stop_margin = 500ms}, ""},
        {{.min_validity = -1ms}, "min_validity is -1 ms" + margins},
        {{.min_validity = 10'001ms}, "min_validity is 10001 ms" + margins},
        {{.min_validity = 9'897ms}, ""}, // the default stop margin is never the reason
        {{.stop_margin = -1ms}, "stop_margin is -1 ms" + margins},
        {{.wait = milliseconds(-1)}, "wait is -1 ms; allowed: 0 ms or more"},
        {{.wait = wait_for::forever()}, ""},
        {{.wait = std::chrono::hours::max()}, ""},
        {{.max_hold = -1ms}, "max_hold is -1 ms; allowed: 1" + holds},
        {{.stop_margin = 100ms, .max_hold = 100ms}, "max_hold is 100 ms; allowed: 101" + holds},
        {{.stop_margin = 100ms, .max_hold = 101ms}, ""},
        {{.min_validity = 200ms, .stop_margin = 100ms, .max_hold = 200ms},
         "max_hold is 200 ms; allowed: 201" + holds},
    };
    for (const auto& [wanted, sentence] : rows) {
        CHECK(refusal(detail::check(wanted, good())) == sentence);
        if (sentence.empty()) {
            validate(wanted, good());
        } else {
            CHECK_THROWS_MATCHES(
                validate(wanted, good()), std::invalid_argument, Message("redlock: " + sentence));
        }
    }
    static_assert(wait_for(std::chrono::hours::max()) == wait_for::forever());

    // Without a max_ttl: that of the quorum is not known here, and is not what a day is longer
    // than.
    const config founded = changed({set(&config::max_ttl, 0ms)});
    CHECK(
        refusal(detail::check(options{.ttl = 48h}, founded))
        == "ttl is 172800000 ms; allowed: 4 ms to 86400000 ms");

    const config drifting =
        changed({set(&config::clock_drift_factor, 0.5), set(&config::clock_drift_margin, 10s)});
    CHECK(mentions(refusal(detail::check(options{.ttl = 20s}, drifting)), "ttl is 20000 ms"));
    CHECK(refusal(detail::check(options{.ttl = 20'002ms}, drifting)).empty());
}

TEST_CASE("the default ttl fits into max_ttl") {
    const std::vector<std::pair<milliseconds, milliseconds>> fits{
        {30s, 10s}, {10s, 10s}, {3s, 3s}, {500ms, 500ms}};
    for (const auto& [largest, ttl] : fits) {
        CHECK(detail::effective_ttl(acquire_options().ttl, largest) == ttl);
        CHECK(detail::effective_ttl(7s, largest) == 7s);
        const config rules = changed({set(&config::max_ttl, largest)});
        CHECK(refusal(detail::check(acquire_options(), rules)).empty());
    }
}

TEST_CASE("the limits of a resource's name, of a secret and of an extension are in the refusal") {
    const auto resource = [](std::size_t size) {
        return refusal(detail::check_resource(std::string(size, '\0')));
    };
    CHECK(resource(0) == "resource has 0 bytes; allowed: 1 to 1024");
    CHECK(resource(1025) == "resource has 1025 bytes; allowed: 1 to 1024");
    CHECK(resource(1024).empty());
    CHECK(
        refusal(detail::check_secret("s3cret"))
        == "secret has 6 characters; allowed: 40, all of them hexadecimal digits in lower case");
    CHECK(refusal(detail::check_secret(std::string(40, 'a'))).empty());
    CHECK(
        refusal(detail::check_secret(std::string(38, 'a') + "Ag"))
        == "secret has 2 characters that are not hexadecimal digits in lower case; allowed: 0");
    for (const milliseconds bad : {3ms, 30'001ms}) {
        CHECK(
            refusal(detail::check_extension(bad, good(), 30s))
            == "ttl is " + ms(bad) + "; allowed: 4 ms to 30000 ms");
    }
    for (const milliseconds fine : {milliseconds(4ms), milliseconds(30s)}) {
        CHECK(refusal(detail::check_extension(fine, good(), 30s)).empty());
    }
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
    it.quarantine = false;
    it.founds_quorum = false;
    const struct {
        milliseconds config::*field;
        milliseconds core::settings::*becomes;
    } times[] = {
        {&config::connect_timeout, &core::settings::connect_timeout},
        {&config::master_timeout, &core::settings::master_timeout},
        {&config::reconnect_delay_max, &core::settings::reconnect_delay_max},
        {&config::health_check_interval, &core::settings::health_check_interval},
        {&config::retry_delay_min, &core::settings::retry_delay_min},
        {&config::retry_delay_max, &core::settings::retry_delay_max},
    };
    milliseconds value = 4ms;
    for (const auto& [field, becomes] : times) {
        it.*field = value++;
    }
    const core::settings out = detail::settings_of(it);
    value = 4ms;
    for (const auto& [field, becomes] : times) {
        CHECK(out.*becomes == value++);
    }
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
    CHECK(out.reconnect_delay_min == 1ms); // a fortieth
    CHECK(out.drift.of(1s) == 253ms);
    CHECK(!out.quarantine);
    CHECK(!out.founds);
    CHECK(out.pushes);
    it.release_notifications = false;
    CHECK(!detail::settings_of(it).pushes);
}

}} // namespace config_test
