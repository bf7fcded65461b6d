#include "support/test.hpp"

#include <redlock/config.hpp>

namespace endpoint_test { namespace {

using redlock::endpoint;

// The sentence with which a URL is refused, or nothing if it is accepted.
std::string refusal(std::string_view url) {
    try {
        const endpoint accepted(url);
        return {};
    } catch (const std::invalid_argument& refused) {
        return refused.what();
    }
}

bool mentions(const std::string& text, std::string_view what) {
    return text.find(what) != std::string::npos;
}

TEST_CASE("a URL says how to reach a master") {
    endpoint plain("redis://db1");
    CHECK(!plain.tls);
    CHECK(plain.host == "db1");
    CHECK(plain.port == 6379);
    CHECK(plain.database == 0);
    CHECK(plain.username.empty());
    CHECK(plain.password.empty());

    const endpoint full("rediss://me:s3cret@db.example.org:7001/15");
    CHECK(full.tls);
    CHECK(full.host == "db.example.org");
    CHECK(full.port == 7001);
    CHECK(full.database == 15);
    CHECK(full.username == "me");
    CHECK(full.password == "s3cret");

    const endpoint socket("unix://:s3cret@/run/redis/one.sock?db=3");
    CHECK(socket.path == "/run/redis/one.sock");
    CHECK(socket.database == 3);
    CHECK(socket.username.empty());
    CHECK(socket.password == "s3cret");

    CHECK(endpoint("redis://h:65535/65535").port == 65535);
    CHECK(endpoint("redis://h:65535/65535").database == 65535);
    CHECK(endpoint("unix:///s?db=65535").database == 65535);
    CHECK(endpoint("redis://127.0.0.1:1/").host == "127.0.0.1");
    CHECK(endpoint("redis://[fe80::1]:7000/1").host == "fe80::1");
    const endpoint odd("redis://m%3Ae:p%40ss%2Fw%3Aord%23%3F%25@h");
    CHECK(odd.username == "m:e");
    CHECK(odd.password == "p@ss/w:ord#?%");
    CHECK(endpoint("redis://:a:b@h").password == "a:b");
    CHECK(endpoint("redis://:@h") == endpoint("redis://h"));
}

TEST_CASE("a malformed URL is refused with what is wrong and with what is allowed") {
    struct {
        std::string_view url;
        std::string_view value;
        std::string_view allowed;
    } const urls[] = {
        {"", "''", "expected redis://"},
        {"localhost:6379", "localhost", ""},
        {"redis://h:65536", "65536", "1 to 65535"},
        {"redis://h:0", "'0'", "1 to 65535"},
        {"redis://h:1:2", "", ""}, // Boost.URL 1.81 takes it for host h, port 1
        {"redis://h/x", "'x'", "0 to 65535"},
        {"redis://h/1/2", "'1/2'", "0 to 65535"},
        {"redis://u:p@s@h", "redis://...@...", "write '/' as %2F, '?' as %3F, '@' as %40"},
        {"redis://::1:7002", "redis://:...", "[address]:port"},
        {"redis://u:a b@h", "redis://...@...", "a space is %20"},
        {"unix:///s\u00fc", "", "percent-encoded"},
        {"redis://", "", "host is missing"},
        {"redis:h", "", "redis://host:6379/0"},
        {"redis://a redis://b", "", "two URLs in one"},
        {"redis://a:1,rediss://b:2", "", "two URLs in one"},
        {"redis://m%3Ax", "", "character that is not allowed in names"},
        {"http://h", "'http'", "redis, rediss or unix"},
        {"redis://h#1", "#", "no meaning"},
        {"redis://me@h", "", "user:password"},
        {"redis://h?db=1", "'db'", "path"},
        {"unix://h/s", "h", "three slashes"},
        {"unix://", "", "path of the socket is missing"},
        {"unix:///s%00", "s%00", "the path of the socket has a NUL character"},
        {"redis://m%00e:s3cret@h", "redis://...@...", "the user has a NUL character"},
        {"redis://h%00", "h%00", "the host has a character that is not allowed in names"},
        {"unix:///s?db=x", "'x'", "0 to 65535"},
        {"redis://a?name=", "empty", "name"},
        {"redis://a?name=b c", "the name has", "letters, digits, '-', '_' and '.'"},
        {"redis://a/1?name=%zz", "the name has", "letters, digits, '-', '_' and '.'"},
        {"redis://a?name=b&name=c", "more than one", "name"},
        {"unix:///s?db=1&db=2", "", "more than one database"},
        {"unix:///s?db=1&mode=2", "'mode'", "allowed: db, name"},
    };
    for (const auto& one : urls) {
        CAPTURE(one.url);
        const std::string why = refusal(one.url);
        CHECK(why.starts_with("redlock: master '"));
        CHECK(mentions(why, one.value));
        CHECK(mentions(why, one.allowed));
    }
}

TEST_CASE("a long value is cut in the message") {
    const std::string longest(5'000, 'a');
    for (const std::string& url :
         {longest, "redis://h/" + longest, "redis://h:" + std::string(5'000, '1')}) {
        const std::string why = refusal(url);
        CHECK(why.size() < 500);
        CHECK(mentions(why, "..."));
    }
}

TEST_CASE("no malformed URL brings its password into the message") {
    for (const std::string_view url : {
             "redis://me:s3cret@h:bad",
             "redis://me:s3cret@",
             "redis://me:s3cret@h?x=1",
             "http://me:s3cret@h",
             "redis://me:s3cret@ h",
             "unix://me:s3cret@h/s",
             "unix://me:s3cret@/s?db=x",
             "redis:/me:s3cret@h",
             "me:s3cret@h",
             // Unescaped in the password.
             "redis://me:s3cret@x@h",
             "redis://me:s3cret/x@h",
             "redis://me:s3cret#x@h",
             "redis://me:s3cret?x@h",
             "redis://me:s3cret%@h",
             "redis://me:%s3cret@h",
             "redis://me:s3cret x@h",
             "redis://me:[s3cret]@h",
             // ... where what stands before it looks like a port, so that the rest is a path.
             "redis://me:12/s3cret@h",
             "redis://me:1?a=s3cret@h",
             // A password that is given as an option, as other clients have it.
             "redis://h?password=s3cret",
             "unix:///s?password=s3cret",
             // A password that looks like a name.
             "redis://:x?name=s3cret y@h",
             // A list of them in one.
             "redis://h,redis://me:s3cret@h",
             "redis://me:s3cret@h redis://h",
             "redis://h;redis://:s3cret",
             // What fuzzing found.
             "unix:s3cret@/run/s",
             "me:s3cret@redis://h",
             "redis://[::1]:70nix::s3cret@//x",
             // The '@' is encoded or forgotten.
             "redis://me:s3cret%40h",
             "redis://me:s3cret",
         }) {
        CAPTURE(url);
        const std::string why = refusal(url);
        CHECK(!why.empty());
        CHECK(!mentions(why, "s3cret"));
    }
}

TEST_CASE("an endpoint in words has neither user nor password") {
    CHECK(to_string(endpoint("redis://me:s3cret@10.0.0.1")) == "10.0.0.1:6379");
    CHECK(to_string(endpoint("rediss://:s3cret@h:7/2")) == "h:7/2");
    CHECK(to_string(endpoint("redis://[::1]:7/2")) == "[::1]:7/2");
    CHECK(to_string(endpoint("unix://me:s3cret@/run/s")) == "/run/s");
    CHECK(to_string(endpoint("unix:///run/s?db=4")) == "/run/s?db=4");
}

}} // namespace endpoint_test
