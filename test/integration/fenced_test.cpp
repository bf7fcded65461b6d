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

/// All that the server has, to see that nothing was changed.
words contents(const master_process& server) {
    const std::string digest = "return redis.sha1hex(redis.call('DUMP', KEYS[1]))";
    words result;
    for (const std::string& key : server.keys()) {
        result.push_back(key + '=' + server.command({"EVAL", digest, "1", key}));
    }
    std::sort(result.begin(), result.end());
    return result;
}

TEST_CASE("a fenced SET writes value and token when there is no fence yet") {
    const master_process server;
    const fenced_set save("account:7");
    CHECK(server.command(save.eval(17, "first")) == accepted(17));
    CHECK(server.command({"GET", save.key()}) == "first");
    CHECK(server.command({"GET", save.fence()}) == "17");
    CHECK(server.command({"PTTL", save.fence()}) == "-1"); // a fence never forgets
}

TEST_CASE("a fenced SET accepts equal and larger tokens, and a smaller one changes nothing") {
    const master_process server;
    const fenced_set save("account:7");
    CHECK(server.command(save.eval(17, "first")) == accepted(17));
    CHECK(server.command(save.eval(17, "second")) == accepted(17));
    CHECK(server.command(save.eval(23, "third")) == accepted(23));
    const words before = contents(server);
    CHECK(server.command(save.eval(17, "late")) == refused(23));
    CHECK(contents(server) == before);
    CHECK(server.command({"GET", save.key()}) == "third");
}

TEST_CASE("tokens of any length are compared as numbers, exactly up to the largest") {
    const master_process server;
    const fenced_set save("k");
    CHECK(server.command(save.eval(9, "v")) == accepted(9));
    CHECK(server.command(save.eval(10, "v")) == accepted(10)); // as text it would be smaller
    CHECK(server.command(save.eval(fencing_token_max - 1, "v")) == accepted(fencing_token_max - 1));
    CHECK(server.command(save.eval(fencing_token_max, "v")) == accepted(fencing_token_max));
    CHECK(server.command(save.eval(fencing_token_max - 1, "v")) == refused(fencing_token_max));
    CHECK(server.command({"GET", save.fence()}) == std::to_string(fencing_token_max));
}

TEST_CASE("a ttl is the value's, not the fence's, and the next write without one takes it away") {
    const master_process server;
    const fenced_set save("k");
    CHECK(server.command(save.eval(17, "v", 60s)) == accepted(17));
    const int pttl = std::stoi(server.command({"PTTL", save.key()}));
    CHECK(pttl > 0);
    CHECK(pttl <= 60'000);
    CHECK(server.command({"PTTL", save.fence()}) == "-1");
    CHECK(server.command(save.eval(17, "v")) == accepted(17));
    CHECK(server.command({"PTTL", save.key()}) == "-1");
}

TEST_CASE("a fence outlives its value") {
    const master_process server;
    const fenced_set save("k");
    CHECK(server.command(save.eval(23, "v")) == accepted(23));
    server.command({"DEL", save.key()});
    CHECK(server.command(save.eval(17, "v")) == refused(23));
    CHECK(server.command({"EXISTS", save.key()}) == "0");
}

TEST_CASE("a deleted fence has no memory: then any token is the first") {
    const master_process server;
    const fenced_set save("k");
    CHECK(server.command(save.eval(23, "v")) == accepted(23));
    server.command({"DEL", save.fence()});
    CHECK(server.command(save.eval(17, "v")) == accepted(17));
}

TEST_CASE("the digest of the fenced SET is that of the server") {
    const master_process server;
    const fenced_set save("k");
    CHECK(server.command(save.evalsha(17, "v")).starts_with("(error) NOSCRIPT"));
    CHECK(server.command({"SCRIPT", "LOAD", std::string(fenced_set::script)}) == fenced_set::sha1);
    CHECK(server.command(save.evalsha(17, "v", 60s)) == accepted(17));
    CHECK(server.command(save.evalsha(16, "v")) == refused(17));
}

TEST_CASE("an invalid token is an error and changes nothing") {
    const master_process server;
    const fenced_set save("k");
    CHECK(server.command(save.eval(17, "v")) == accepted(17));
    const words before = contents(server);
    const words keys{save.fence(), save.key()};
    for (const char* token :
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
          "9007199254740992",
          "9007199254740993",
          "99999999999999999999"}) {
        CAPTURE(token);
        const std::string answer = server.command(eval(fenced_set::script, keys, {token, "late"}));
        CHECK(answer.starts_with("(error) FENCE the token is not"));
    }
    CHECK(server.command(eval(fenced_set::script, keys, {})).starts_with("(error) FENCE"));
    CHECK(contents(server) == before);
}

TEST_CASE("an invalid ttl is an error and changes nothing") {
    const master_process server;
    const words keys{"{k}f", "k"};
    for (const char* ttl : {"", "0", "-1", "1.5", "soon"}) {
        CAPTURE(ttl);
        const std::string answer = server.command(eval(fenced_set::script, keys, {"17", "v", ttl}));
        CHECK(answer.starts_with("(error) FENCE the ttl is not"));
    }
    CHECK(server.keys().empty());
}

TEST_CASE("a fence that holds no token is an error and changes nothing") {
    const master_process server;
    const fenced_set save("k");
    server.command({"SET", save.key(), "old"});
    for (const char* text : {"", "0", "soon", "17.5", "9007199254740992"}) {
        CAPTURE(text);
        server.command({"SET", save.fence(), text});
        CHECK(server.command(save.eval(17, "new")).starts_with("(error) FENCE the fence key"));
        CHECK(server.command({"GET", save.fence()}) == (*text == '\0' ? "" : text));
    }
    server.command({"DEL", save.fence()});
    server.command({"LPUSH", save.fence(), "17"});
    const std::string answer = server.command(save.eval(17, "new"));
    CHECK(answer.find("WRONGTYPE") != std::string::npos);
    CHECK(server.command({"LLEN", save.fence()}) == "1");
    CHECK(server.command({"GET", save.key()}) == "old");
}

TEST_CASE("a value of another type is replaced, as SET does") {
    const master_process server;
    const fenced_set save("k");
    server.command({"LPUSH", "k", "a"});
    CHECK(server.command(save.eval(17, "v")) == accepted(17));
    CHECK(server.command({"GET", "k"}) == "v");
}

TEST_CASE("a value may be any bytes") {
    const master_process server;
    const fenced_set save("k");
    std::string all;
    for (int byte = 0; byte < 256; ++byte) {
        all += static_cast<char>(byte);
    }
    CHECK(server.command(save.eval(17, all)) == accepted(17));
    CHECK(server.command({"GET", "k"}) == all);
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
    const fenced_set save("{bank}:c", fence_key{"{bank}:fence"});
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
        CHECK(slot(fence_key::for_key(key).name) == slot(key));
    }
}

TEST_CASE("clients that write at once leave the value of the largest token") {
    const master_process server;
    const fenced_set save("k");
    constexpr std::size_t clients = 4;
    constexpr std::uint64_t rounds = 200;
    // Answers that check() finds impossible, or that are of another shape.
    std::vector<std::uint64_t> wrong(clients);
    {
        std::vector<std::jthread> threads;
        for (std::size_t me = 0; me < clients; ++me) {
            threads.emplace_back([&, me] {
                resp_client client("127.0.0.1", server.port());
                for (std::uint64_t i = 0; i < rounds; ++i) {
                    const std::uint64_t token = 1 + i * clients + me;
                    const words answer = client.list(save.eval(token, std::to_string(token)));
                    fenced_reply reply;
                    if (answer.size() == 2) {
                        reply = {
                            .accepted = std::stoll(answer[0]), .highest = std::stoll(answer[1])};
                    }
                    const error_code error = reply.check(token);
                    wrong[me] += error && error != errc::stale_token ? 1 : 0;
                }
            });
        }
    }
    CHECK(wrong == std::vector<std::uint64_t>(clients, 0));
    CHECK(server.command({"GET", "k"}) == std::to_string(rounds * clients));
    CHECK(server.command({"GET", save.fence()}) == std::to_string(rounds * clients));
}

}} // namespace redlock::test
