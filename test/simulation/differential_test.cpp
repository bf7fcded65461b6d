// The simulated master against a real redis-server: random commands, and the scripts of both
// protocols, must be answered alike, word for word, and subscribers get the same.

#include "core/bytes/fair_queue_scripts.hpp"
#include "core/bytes/form_scripts.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/keys.hpp"
#include "core/bytes/scripts.hpp"
#include "memory.hpp"
#include "random.hpp"
#include "support/master_process.hpp"
#include "support/raw_client.hpp"
#include "support/test.hpp"

#include <charconv>
#include <cstdlib>
#include <deque>
#include <span>
#include <sstream>

using namespace simulation;

namespace {

namespace core = redlock::core;
using command = std::vector<std::string>;

constexpr const char* token_a = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
constexpr const char* token_b = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
constexpr const char* run_a = "1111111111111111111111111111111111111111";
constexpr const char* run_b = "2222222222222222222222222222222222222222";

std::int64_t present_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

/// Of an error its code.
std::string without_words_of_error(const std::string& answer) {
    constexpr std::string_view error = "(error) ";
    return answer.starts_with(error) ? answer.substr(0, answer.find(' ', error.size())) : answer;
}

/// Both masters, asked the same.
class pair_of_masters {
public:
    explicit pair_of_masters(const redlock::test::master_process& real)
        : real_("127.0.0.1", real.port()),
          simulated_(lua_),
          words_errors_otherwise_(
              real_.command({"INFO", "server"}).find("valkey_version:") != std::string::npos) {}

    /// What an earlier test may have left on the real one goes. It is on record that it did.
    void flush() {
        ask({"FLUSHALL"});
        real_.command({"SCRIPT", "FLUSH"});
    }

    struct answers {
        std::string real;
        std::string simulated;
    };
    answers ask(const command& words) {
        std::vector<std::string_view> views(words.begin(), words.end());
        answers both;
        both.real = real_.command(words);
        both.simulated = simulated_.execute(views, present_us()).describe();
        if (words_errors_otherwise_) {
            both.real = without_words_of_error(both.real);
            both.simulated = without_words_of_error(both.simulated);
        }
        return both;
    }

private:
    redlock::test::resp_client real_;
    lua_machine lua_;
    server simulated_;
    bool words_errors_otherwise_; // Valkey, whose errors have Redis' codes only
};

/// A real master for a test, which is skipped if there is none.
redlock::test::master_process real_master() {
    try {
        redlock::test::find_server_program();
    } catch (const std::runtime_error&) {
        SKIP("no redis-server here");
    }
    return redlock::test::master_process();
}

std::string in_words(const command& words) {
    std::string out;
    for (const std::string& word : words) {
        out += (out.empty() ? "" : " ") + word.substr(0, 60);
    }
    return out;
}

std::vector<std::string> parts_of(const std::string& text) {
    std::vector<std::string> parts{""};
    for (const char c : text) {
        if (c == '\n' || c == ' ') { // a record is words
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

std::optional<std::int64_t> number_in(const std::string& text) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && !text.empty()
               ? std::optional(value)
               : std::nullopt;
}

/// Whether the replies are the same except for the time of the reply: times of day and remaining
/// ttls, which are numbers of a thousand and more, may differ by `slack`. A call with
/// fencing replies with the rest of a ttl as a negative number.
bool alike(const std::string& a, const std::string& b, bool in_any_order = false) {
    constexpr std::int64_t slack = 5'000'000;
    constexpr std::int64_t small = 10'000;
    std::vector<std::string> left = parts_of(a);
    std::vector<std::string> right = parts_of(b);
    if (in_any_order) {
        std::ranges::sort(left);
        std::ranges::sort(right);
    }
    if (left.size() != right.size()) {
        return false;
    }
    for (std::size_t i = 0; i < left.size(); ++i) {
        const auto x = number_in(left[i]);
        const auto y = number_in(right[i]);
        const bool times = x && y && std::abs(*x) > small && std::abs(*y) > small
                           && (*x > 0) == (*y > 0) && std::abs(*x - *y) < slack;
        if (left[i] != right[i] && !times) {
            return false;
        }
    }
    return true;
}

void require_same(pair_of_masters& both, const command& words) {
    const auto said = both.ask(words);
    INFO(in_words(words) << "\n  real:      " << said.real << "\n  simulated: " << said.simulated);
    // Leases may end in one millisecond here and in two there: their order is by luck.
    REQUIRE(alike(said.real, said.simulated, words.front() == "ZRANGE"));
}

/// A command to be made at random. A word that `choices` has becomes one of its values.
struct pattern {
    const core::script* script; // null: a plain command
    std::string_view words;     // of a script its keys
    std::string_view arguments = {};
};

using word_choices = std::map<std::string, std::vector<std::string>, std::less<>>;

const word_choices& choices() {
    static const word_choices all{
        {"key", {"k1", "k2", "k3", "h1"}},
        {"value", {"x", "1", "-7", "", token_a, "with spaces\r\nand lines"}},
        // Far away, or refused: nothing expires while the test runs.
        {"any_ttl", {"600000", "900000", "0", "-5", "abc", "99999999999999999999", "01"}},
        {"option", {"NX", "XX", "KEEPTTL", "PX", "WHAT", "600000"}},
        {"field", {"f1", "f2", "f3"}},
        {"command", {"GET", "SET", "HGET", "PTTL", "DEL", "EVAL"}},
        {"unknown", {"NOSUCH", "GETT"}},
        {"flush", {"PING", "PING", "PING", "PING", "PING", "PING", "PING", "PING", "FLUSHALL"}},

        {"free", {"p:{a}:free", "p:{b}:free", "other"}},
        {"publish", {"return redis.call('PUBLISH', KEYS[1], ARGV[1])"}},

        {"a", {"p:{a}"}},
        {"a:fence", {"p:{a}:fence"}},
        {"b", {"p:{b}"}},
        {"b:fence", {"p:{b}:fence"}},
        {"lock", {"p:{a}", "p:{b}", "p:{c}", "p:{d}"}},
        {"fence", {"p:{a}:fence", "p:{b}:fence", "p:{c}:fence", "p:{d}:fence"}},
        {"name", {"p:{a}", "p:{b}", "p:{c}", "p:{a}:fence", "p:{b}:fence", "p::epoch"}},
        {"readers", {"p:{a}:readers"}},
        {"intent", {"p:{a}:intent"}},
        {"queue", {"p:{a}:queue"}},
        {"places", {"p:{a}:places"}},
        {"rarely_places", {"other", "other", "other", "other", "other", "other", "p:{a}:places"}},
        {"zset", {"p:{a}:queue", "p:{a}:places", "p:{a}"}},
        {"epoch", {"p::epoch"}},
        {"token", {token_a, token_a, token_a, token_b}},
        {"who", {token_a, token_b, "x", "y"}},
        {"holder", {"readers", "x"}},
        {"ttl", {"600000", "900000", "300000"}},
        // Further apart than the times in two answers may be.
        {"far_ttl", {"20000000", "40000000", "60000000"}},
        {"run", {run_a, run_a, run_a, run_b}},
        // None, or longer than the test, so that the branch is clear.
        {"quarantine", {"0", "0", "0", "0", "0", "0", "3600000000"}},
        // Unchecked, long over, or long to come.
        {"limit", {"0", "1000000", "9000000000000000"}},
        {"fence_ttl", {"86400000"}},
        {"maybe_fence_ttl", {"86400000", "0"}},
        {"heal_fence_ttl", {"86400000", "1000000"}},
        {"counter", {"0", "5", "4000000000000000", "4000000000000001"}},
        {"first", {"0", "4000000000000000", "9000000000000000"}},
        {"earliest", {"0", "8000000000000000"}},
        {"mask1", {"0", "1"}},
        {"mask2", {"00", "01", "10", "11"}},
        {"mask4", {"0000", "0101", "1010", "1111"}},
        {"channel", {"", "p:{a}:free"}},
        {"suffix", {"", ":free"}},
        {"promoted", {"-", "-", token_a}},
        {"stepped", {"0", "0", "0", "1"}},
        {"intent_ttl", {"0", "600000"}},
        {"intent_of", {"7", "8"}},
        {"maybe_intent_of", {"0", "7", "8"}},
        {"record", {core::record_of_new_server(run_a), "5 of a version to come"}},
        {"long_over", {"long over"}}, // a member
        {"becomes_a_hash",
         {"redis.call('DEL', KEYS[1]) return redis.call('HSET', KEYS[1], 'run', 'x')"}}};
    return all;
}

command words_of(std::string_view text, generator& random) {
    command out;
    std::istringstream in{std::string(text)};
    for (std::string word; in >> word;) {
        const auto found = choices().find(word);
        out.push_back(
            found == choices().end() ? word : found->second[random.below(found->second.size())]);
    }
    return out;
}

command made_from(const pattern& what, generator& random) {
    command out = words_of(what.words, random);
    if (what.script != nullptr) {
        const bool by_digest = random.percent(50);
        const command arguments = words_of(what.arguments, random);
        const command start{
            by_digest ? "EVALSHA" : "EVAL",
            std::string(by_digest ? what.script->sha1 : what.script->text),
            std::to_string(out.size())};
        out.insert(out.begin(), start.begin(), start.end());
        out.insert(out.end(), arguments.begin(), arguments.end());
    }
    return out;
}

constexpr pattern plain_commands[] = {
    {nullptr, "SET key value"},
    {nullptr, "SET key value PX any_ttl"},
    {nullptr, "set key value nx px any_ttl"},
    {nullptr, "SET key value XX EX any_ttl"},
    {nullptr, "SET key value option option"},
    {nullptr, "GET key"},
    {nullptr, "DEL key key"},
    {nullptr, "EXISTS key k1 k1"},
    {nullptr, "PTTL key"},
    {nullptr, "PEXPIRE key any_ttl"},
    {nullptr, "HSET key f1 value f2 value"},
    {nullptr, "HSET key f1 value f2"},
    {nullptr, "INCR key"},
    {nullptr, "HGET key field"},
    {nullptr, "HMGET key f1 f3 f2"},
    {nullptr, "command"},
    {nullptr, "unknown key x"},
    {nullptr, "flush"},
    {nullptr, "PING hello"},
};

constexpr pattern scripts[] = {
    {&core::guarded_handshake, "epoch", "run promoted quarantine stepped 1d"},
    {nullptr, "GET epoch"},
    {&core::all_raise, "a a:fence", "token counter fence_ttl"},
    {&core::all_raise, "b b:fence", "token counter fence_ttl"},
    {&core::all_heal, "a a:fence epoch", "token ttl counter heal_fence_ttl run quarantine limit"},
    {&core::all_heal, "b b:fence epoch", "token ttl counter heal_fence_ttl run quarantine limit"},
    // Calls for several locks. One may be in it twice.
    {&core::guarded_acquire, "epoch lock", "far_ttl 0 token run quarantine limit"},
    {&core::guarded_acquire,
     "epoch lock lock lock lock",
     "far_ttl 0 token token token token run quarantine limit"},
    {&core::guarded_acquire,
     "epoch a a:fence",
     "far_ttl far_ttl first earliest token run quarantine limit"},
    {&core::guarded_acquire,
     "epoch b b:fence lock fence",
     "far_ttl far_ttl first earliest token token run quarantine limit"},
    {&core::guarded_extend, "epoch lock", "far_ttl 0 token run quarantine limit"},
    {&core::guarded_extend,
     "epoch lock lock lock lock",
     "far_ttl 0 token token token token run quarantine limit"},
    {&core::guarded_extend,
     "epoch a a:fence",
     "far_ttl far_ttl token counter run quarantine limit"},
    {&core::guarded_extend,
     "epoch b b:fence lock fence",
     "far_ttl far_ttl token token counter counter run quarantine limit"},
    {&core::guarded_release, "lock", "0 token mask1"},
    {&core::guarded_release, "lock lock lock lock", "0 token token token token mask4"},
    {&core::guarded_release, "a a:fence", "far_ttl token counter mask1"},
    {&core::guarded_release, "b b:fence lock fence", "far_ttl token token counter counter mask2"},
    {nullptr, "SET lock token NX PX 600000"}, // by the plain protocol
    {&core::compare_and_extend_each, "lock lock", "ttl token token"},
    // What somebody else may have put under our names.
    {nullptr, "DEL name"},
    {nullptr, "SET name record"},
    {nullptr, "EVAL becomes_a_hash 1 name"},
    {nullptr, "SET fence value"},
    {nullptr, "GET fence"},
    {nullptr, "PTTL lock"},
    {nullptr, "PTTL fence"},
};

// Readers and owners of one resource, and several resources. What is left of a lease
// differs by what the clocks advance between the two; scores are far in the future or long over.
constexpr pattern form_scripts[] = {
    {&core::all_acquire,
     "a a:fence b b:fence epoch",
     "token ttl run quarantine limit maybe_fence_ttl first earliest"},
    {&core::all_raise, "a a:fence b b:fence", "token counter fence_ttl"},
    {&core::all_heal,
     "a a:fence b b:fence epoch",
     "token ttl counter fence_ttl run quarantine limit"},
    {&core::all_extend,
     "a a:fence b b:fence epoch",
     "token ttl counter fence_ttl run quarantine limit"},
    {&core::all_release, "a a:fence b b:fence", "token counter fence_ttl suffix"},
    {&core::shared_acquire, "a readers epoch intent", "token ttl run quarantine limit"},
    {&core::shared_acquire, "a readers epoch intent", "token ttl run quarantine limit"},
    {&core::shared_heal, "a readers epoch", "token ttl run quarantine limit channel"},
    {&core::shared_extend, "a readers epoch", "token ttl run quarantine limit channel"},
    {&core::shared_release, "a readers", "token channel"},
    {&core::announced_acquire,
     "a a:fence epoch intent",
     "token ttl run quarantine limit maybe_fence_ttl first earliest intent_ttl intent_of"},
    {&core::announced_release, "a intent", "token channel maybe_intent_of"},
    {nullptr, "SET a holder PX 600000"},
    {nullptr, "ZADD readers 1000000 long_over"},
    {nullptr, "ZADD readers abc x"},
    {nullptr, "ZCARD readers"},
    {nullptr, "ZRANGE readers 0 -1"},
    {nullptr, "ZREM readers long_over token"},
    {nullptr, "DEL name"},
    {nullptr, "DEL intent"},
};

// The fair queue of one resource. Tickets last for longer than the test, or have ended long ago.
constexpr pattern queue_scripts[] = {
    {&core::ticket_take, "a queue places", "who ttl"},
    {&core::ticket_take, "a queue places", "who ttl"},
    {&core::ticket_take, "a queue places", "who ttl"},
    {&core::ticket_leave, "a queue places", "who channel"},
    {nullptr, "SET a x PX 600000"},
    {nullptr, "DEL a"},
    {nullptr, "ZADD places 1000000 who"},
    {nullptr, "ZRANGE queue 0 -1"},
    {nullptr, "ZRANK zset who"},
    {nullptr, "SET rarely_places text"},
    {nullptr, "PTTL queue"},
};

constexpr pattern of_subscribers[] = {
    {nullptr, "SUBSCRIBE free"},
    {nullptr, "SUBSCRIBE free"},
    {nullptr, "subscribe free"},
    {nullptr, "UNSUBSCRIBE free"},
    {nullptr, "UNSUBSCRIBE"},
    {nullptr, "SUBSCRIBE"},
    {nullptr, "SUBSCRIBE free p:{a}:free"},
    {nullptr, "GET k"},
    {nullptr, "PING"},
    {nullptr, "PING hello"},
};

constexpr pattern of_publishers[] = {
    {nullptr, "PUBLISH free text"},
    {nullptr, "EVAL publish 1 free text"},
};

command any_of(std::span<const pattern> patterns, generator& random) {
    return made_from(patterns[random.below(patterns.size())], random);
}

/// Returns the error to an UNSUBSCRIBE of a client without subscriptions: Valkey 8.0 replies with
/// NOSUB. Empty if the server confirms it, as Redis and later versions of Valkey do.
std::string unsubscribe_refusal(std::uint16_t port) {
    redlock::test::raw_client client(port);
    client.send(redlock::test::request_bytes({"UNSUBSCRIBE", "other"}) + "QUIT\r\n");
    const std::string replies = client.receive_all();
    return replies.starts_with("-NOSUB ") ? replies.substr(0, replies.find('\n') + 1) : "";
}

// `seeds` histories of `commands` commands each, given to both.
void require_same_answers(std::uint64_t seeds, int commands, std::span<const pattern> patterns) {
    const auto master = real_master();
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        generator random(seed);
        pair_of_masters both(master);
        both.flush();
        for (int i = 0; i < commands; ++i) {
            require_same(both, any_of(patterns, random));
        }
    }
}

} // namespace

TEST_CASE("the simulated master answers plain commands as a real one does") {
    require_same_answers(20, 200, plain_commands);
}

TEST_CASE("the simulated master runs the scripts of both protocols as a real one does") {
    require_same_answers(70, 170, scripts);
}

TEST_CASE("the simulated master runs the scripts of all forms as a real one does") {
    require_same_answers(30, 150, form_scripts);
}

TEST_CASE("the simulated master runs the scripts of the queue as a real one does") {
    require_same_answers(20, 150, queue_scripts);
}

TEST_CASE("the simulated master publishes to its subscribers as a real one does") {
    const auto master = real_master();
    lua_machine lua;
    server process(lua);
    audience simulated;
    std::array<std::string, 3> told; // by the simulated one, to each listener
    process.tell = [&](std::string_view channel, std::string_view text) {
        const std::vector<audience::listener> who = simulated.of(channel);
        for (const audience::listener one : who) {
            message(channel, text).encode(told[one]);
        }
        return static_cast<std::int64_t>(who.size());
    };
    std::deque<redlock::test::raw_client> real; // with any number of replies in flight
    for (std::size_t i = 0; i < told.size(); ++i) {
        real.emplace_back(master.port());
    }
    redlock::test::resp_client teller("127.0.0.1", master.port());
    const std::string refusal = unsubscribe_refusal(master.port());
    generator random(1, 1);
    for (int i = 0; i < 3000; ++i) {
        INFO("step " << i);
        const bool publishes = random.percent(40);
        command words =
            any_of(publishes ? std::span<const pattern>(of_publishers) : of_subscribers, random);
        if (publishes) {
            words.back() = std::to_string(i);
        }
        const std::vector<std::string_view> views(words.begin(), words.end());
        if (publishes) {
            REQUIRE(teller.command(words) == process.execute(views, 0).describe());
            continue;
        }
        const auto who = static_cast<audience::listener>(random.below(told.size()));
        // With several channels the order of the confirmations is unspecified.
        if (words == command{"UNSUBSCRIBE"} && simulated.channels_of(who) > 1) {
            continue;
        }
        if (!refusal.empty() && words[0] == "UNSUBSCRIBE" && simulated.channels_of(who) == 0) {
            told[who] += refusal;
        } else if (const auto said = simulated.execute(who, views)) {
            for (const answer& each : *said) {
                each.encode(told[who]);
            }
        } else {
            process.execute(views, 0).encode(told[who]);
        }
        real[who].send(redlock::test::request_bytes(words));
        REQUIRE(real[who].receive(told[who].size()) == told[who]);
        told[who].clear();
    }
}

TEST_CASE("a simulated master replies to TIME as a real one does") {
    const auto master = real_master();
    pair_of_masters both(master);
    const auto said = both.ask({"TIME"});
    const auto whole_us = [](const std::string& text) {
        const std::vector<std::string> parts = parts_of(text);
        REQUIRE(parts.size() == 2);
        return *number_in(parts[0]) * 1'000'000 + *number_in(parts[1]);
    };
    CHECK(alike(std::to_string(whole_us(said.real)), std::to_string(whole_us(said.simulated))));
}

TEST_CASE("values travel between Lua and the simulated master as in a real one") {
    const auto master = real_master();
    pair_of_masters both(master);
    both.flush();
    for (const char* const text : {
             "return 3.99",
             "return -3.99",
             "return true",
             "return false",
             "return nil",
             "return {1, 2.5, 'three', nil, 'five'}",
             "return {{1, {2}}, 'x'}",
             "return {}",
             "return {ok = 'fine'}",
             "return {err = 'MINE not fine'}",
             "return redis.call('GET', 'nothing')",
             "return type(redis.call('GET', 'nothing'))",
             "return redis.call('SET', 'k', 1.5)",
             "return redis.call('GET', 'k')",
             "return redis.call('SET', 'k', 4000000000000001)",
             "return redis.call('GET', 'k')",
             "return redis.call('SET', 'k', 1).ok",
             "return redis.call('HSET', 'k', 'a', 'b')",
             "return redis.pcall('HSET', 'k', 'a', 'b')",
             "return redis.pcall('HSET', 'k', 'a', 'b').err",
             "return redis.call('HMGET', 'none', 'a', 'b')",
             "return redis.call()",
             "return redis.call('GET')",
             "return redis.call('NOSUCH')",
             "return redis.call('GET', {})",
             "return redis.call('AUTH', 'x')",
             "return #KEYS .. ' ' .. #ARGV",
             "return {KEYS[1], ARGV[1], ARGV[2]}",
             "return tonumber(ARGV[9])",
             "return nothing",
             "return 1 +",
             "return {1}..'x'",
             "local t = redis.call('TIME') return {#t, type(t[1])}",
             "return string.format('%.0f', 1700000000000001)",
         }) {
        require_same(both, {"EVAL", text, "1", "key", "a1", "a2"});
    }
    for (const command& words : std::vector<command>{
             {"EVAL", "return 1", "2", "key"},
             {"EVAL", "return 1", "-1", "key"},
             {"EVAL", "return 1", "x", "key"},
             {"EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"},
             {"SCRIPT", "LOAD", "return 7"},
             {"EVALSHA", std::string(core::sha1_digest("return 7")), "0"},
             {"SCRIPT", "LOAD", "return 1 +"},
             {"NOSUCH", "a\r\nb"},
         }) {
        require_same(both, words);
    }
}

TEST_CASE("keys are gone from the simulated master when they are from a real one") {
    const auto master = real_master();
    pair_of_masters both(master);
    both.flush();
    require_same(both, {"SET", "short", "x", "PX", "20"});
    require_same(both, {"SET", "long", "x", "PX", "600000"});
    // Asked until both say that it is gone, however slow this machine is: each has its own 20 ms.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    auto said = both.ask({"EXISTS", "short"});
    while ((said.real != "0" || said.simulated != "0")
           && std::chrono::steady_clock::now() < limit) {
        said = both.ask({"EXISTS", "short"});
    }
    CHECK(said.real == "0");
    CHECK(said.simulated == "0");
    require_same(both, {"PTTL", "short"});
    require_same(both, {"EXISTS", "long"});
}

TEST_CASE("the comparison of answers finds differences") {
    CHECK(alike("1\n2", "1\n2"));
    CHECK(alike("1\n1700000000000000", "1\n1700000000000900"));
    CHECK_FALSE(alike("1", "0"));
    CHECK_FALSE(alike("1\n2", "1"));
    CHECK_FALSE(alike("(error) WRONGTYPE", "(error) ERR"));
    CHECK_FALSE(alike("600000", "-1"));
    CHECK_FALSE(alike("600000", "-600000"));
    CHECK(alike("-600002", "-599990"));
    CHECK_FALSE(alike("-600002", "-1"));
    CHECK_FALSE(alike("1\n1700000000000000", "1\n1600000000000000"));
}
