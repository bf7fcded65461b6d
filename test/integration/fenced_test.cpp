// The scripts of fenced.hpp, as a server understands them.
#include "support/master_process.hpp"
#include "support/test.hpp"

#include <redlock/fenced.hpp>

#include <iterator>
#include <thread>

namespace redlock::test { namespace {

using words = std::vector<std::string>;

/// How resp_text shows the two integers.
std::string accepted(std::uint64_t token) {
    return "1\n" + std::to_string(token);
}
std::string refused(std::uint64_t highest) {
    return "0\n" + std::to_string(highest);
}

words eval(std::string_view script, const words& keys, const words& args) {
    words result{"EVAL", std::string(script), std::to_string(keys.size())};
    result.insert(result.end(), keys.begin(), keys.end());
    result.insert(result.end(), args.begin(), args.end());
    return result;
}

// What is before, what is sent, the reply or its beginning, and what is after. An empty text stands
// for a key that is not there.
struct fenced_write {
    std::string fence;
    std::string value;
    words arguments;
    std::string reply;
    std::string fence_after;
    std::string value_after;
};

std::vector<fenced_write> fenced_writes() {
    const std::string largest = std::to_string(detail::fencing_token_max);
    const std::string before_it = std::to_string(detail::fencing_token_max - 1);
    const std::string too_large = std::to_string(detail::fencing_token_max + 1);
    std::string any_bytes;
    for (int byte = 0; byte < 256; ++byte) {
        any_bytes += static_cast<char>(byte);
    }
    std::vector<fenced_write> all{
        {"", "", {"17", "new"}, accepted(17), "17", "new"},
        {"17", "old", {"17", "new"}, accepted(17), "17", "new"},
        {"17", "old", {"23", "new"}, accepted(23), "23", "new"},
        {"23", "old", {"17", "late"}, refused(23), "23", "old"},
        {"9", "old", {"10", "new"}, accepted(10), "10", "new"}, // as text it would be smaller
        {before_it, "old", {largest, "new"}, accepted(detail::fencing_token_max), largest, "new"},
        {largest, "old", {before_it, "late"}, refused(detail::fencing_token_max), largest, "old"},
        {"23", "", {"17", "late"}, refused(23), "23", ""}, // the fence outlives its value
        {"", "old", {"17", "new"}, accepted(17), "17", "new"},
        {"", "", {"17", any_bytes}, accepted(17), "17", any_bytes},
        {"17", "old", {}, "(error) FENCE", "17", "old"},
    };
    for (const char* const token :
         {"",
          "0",
          "-18",
          "+18",
          "018",
          "18.5",
          "18 ",
          " 18",
          "1e3",
          "0x20",
          "inf",
          "nan",
          "soon",
          too_large.c_str(),
          "9007199254740993",
          "99999999999999999999"}) {
        all.push_back(
            {"17", "old", {token, "late"}, "(error) FENCE the token is not", "17", "old"});
    }
    for (const char* const ttl : {"", "0", "-1", "1.5", "soon"}) {
        all.push_back({"", "", {"17", "new", ttl}, "(error) FENCE the ttl is not", "", ""});
    }
    for (const char* const fence : {"0", "soon", "17.5", too_large.c_str()}) {
        all.push_back({fence, "old", {"17", "new"}, "(error) FENCE the fence key", fence, "old"});
    }
    return all;
}

TEST_CASE("a fenced SET writes with a token that is not stale, and else changes nothing") {
    const master_process server;
    const std::string key = "account:7";
    const fenced_set save(key);
    const std::string script = save.eval(1, "").at(1);
    const auto set = [&](const std::string& where, const std::string& value) {
        server.command({"DEL", where});
        value.empty() ? "" : server.command({"SET", where, value});
    };
    const auto get = [&](const std::string& where) {
        const std::string value = server.command({"GET", where});
        return value == "(nil)" ? "" : value;
    };
    for (const fenced_write& one : fenced_writes()) {
        CAPTURE(one.fence, one.value, one.arguments);
        set(save.fence(), one.fence);
        set(key, one.value);
        const words keys{save.fence(), key};
        const std::string reply = server.command(eval(script, keys, one.arguments));
        CHECK(reply.starts_with(one.reply));
        CHECK(get(save.fence()) == one.fence_after);
        CHECK(get(key) == one.value_after);
    }
    server.command({"DEL", save.fence()});
    server.command({"LPUSH", save.fence(), "17"});
    CHECK(server.command(save.eval(17, "new")).find("WRONGTYPE") != std::string::npos);
    CHECK(server.command({"LLEN", save.fence()}) == "1");
}

TEST_CASE("a ttl is the value's, not the fence's, and the next write without one takes it away") {
    const master_process server;
    const fenced_set save("k");
    CHECK(server.command(save.eval(17, "v", 60s)) == accepted(17));
    const int pttl = std::stoi(server.command({"PTTL", "k"}));
    CHECK(pttl > 0);
    CHECK(pttl <= 60'000);
    CHECK(server.command({"PTTL", save.fence()}) == "-1");
    CHECK(server.command(save.eval(17, "v")) == accepted(17));
    CHECK(server.command({"PTTL", "k"}) == "-1");
}

TEST_CASE("the digest of the fenced SET is that of the server") {
    const master_process server;
    const fenced_set save("k");
    CHECK(server.command(save.evalsha(17, "v")).starts_with("(error) NOSCRIPT"));
    CHECK(server.command({"SCRIPT", "LOAD", save.eval(17, "v")[1]}) == save.evalsha(17, "v")[1]);
    CHECK(server.command(save.evalsha(17, "v", 60s)) == accepted(17));
    CHECK(server.command(save.evalsha(16, "v")) == refused(17));
}

TEST_CASE("a value of another type is replaced, as SET does") {
    const master_process server;
    const fenced_set save("k");
    server.command({"LPUSH", "k", "a"});
    CHECK(server.command(save.eval(17, "v")) == accepted(17));
    CHECK(server.command({"GET", "k"}) == "v");
}

TEST_CASE("a script of one's own after the check runs only with a token that is not stale") {
    const master_process server;
    const std::string transfer = std::string(fence_check) + R"(
        redis.call('DECRBY', KEYS[2], ARGV[2])
        local balance = redis.call('INCRBY', KEYS[3], ARGV[2])
        return {1, tonumber(ARGV[1]), balance}
    )";
    const words keys{"{bank}:fence", "{bank}:a", "{bank}:b"};
    CHECK(server.command(eval(transfer, keys, {"17", "5"})) == "1\n17\n5");
    CHECK(server.command(eval(transfer, keys, {"23", "5"})) == "1\n23\n10");
    CHECK(server.command(eval(transfer, keys, {"17", "5"})) == refused(23));
    CHECK(server.command(eval(transfer, keys, {"soon", "5"})).starts_with("(error) FENCE"));
    CHECK(server.command({"GET", "{bank}:a"}) == "-10");
    CHECK(server.command({"GET", "{bank}:b"}) == "10");
    // One fence for all programs that check it.
    const fenced_set save("{bank}:c", "{bank}:fence");
    CHECK(server.command(save.eval(22, "v")) == refused(23));
    CHECK(server.command(save.eval(24, "v")) == accepted(24));
    CHECK(server.command(eval(transfer, keys, {"23", "5"})) == refused(24));
}

TEST_CASE("the names that the check uses are not seen by the script after it") {
    const master_process server;
    const std::string text =
        std::string(fence_check) + "local token, highest, is_token = 1, 2, 3 return token";
    CHECK(server.command(eval(text, {"f"}, {"17"})) == "1");
    const std::string leak = std::string(fence_check) + "return highest";
    CHECK(server.command(eval(leak, {"f"}, {"17"})).starts_with("(error)"));
}

TEST_CASE("the fence of a key is in its slot") {
    master_options options;
    options.extra = {"--cluster-enabled", "yes"};
    const master_process server(options);
    const auto slot = [&](const std::string& key) {
        return server.command({"CLUSTER", "KEYSLOT", key});
    };
    REQUIRE(slot("a") != slot("b")); // a number, not one and the same error
    for (const char* key : {"account:7", "{user:1}:cart", "a{b", "}{tag}", "{a}{b}", "{{x}}y"}) {
        CAPTURE(key);
        CHECK(slot(fenced_set(key).fence()) == slot(key));
    }
}

}} // namespace redlock::test
