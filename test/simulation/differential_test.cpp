// The simulated master against a real redis-server: random commands, and the scripts of both
// protocols, must be answered alike, word for word.

#include "core/bytes/fair_queue_scripts.hpp"
#include "core/bytes/form_scripts.hpp"
#include "core/bytes/guarded_scripts.hpp"
#include "core/bytes/heal_scripts.hpp"
#include "core/bytes/keys.hpp"
#include "core/bytes/scripts.hpp"
#include "memory.hpp"
#include "random.hpp"
#include "real_master.hpp"
#include "support/process.hpp"
#include "support/test.hpp"

#include <charconv>
#include <cstdlib>
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
auto real_master() {
    auto master = start_master();
    if (!master) {
        SKIP("no redis-server here");
    }
    return master;
}

std::string in_words(const command& words) {
    std::string out;
    for (const std::string& word : words) {
        out += (out.empty() ? "" : " ") + word.substr(0, 60);
    }
    return out;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines{""};
    for (const char c : text) {
        if (c == '\n') {
            lines.emplace_back();
        } else {
            lines.back() += c;
        }
    }
    return lines;
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
    std::vector<std::string> left = lines_of(a);
    std::vector<std::string> right = lines_of(b);
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

template <std::size_t Size>
std::string one_of(generator& random, const std::array<const char*, Size>& choices) {
    return choices[random.below(Size)];
}

constexpr std::array keys{"k1", "k2", "k3", "h1"};
constexpr std::array values{"x", "1", "-7", "", token_a, "with spaces\r\nand lines"};
// Far away, or refused: nothing expires while the test runs.
constexpr std::array ttls{"600000", "900000", "0", "-5", "abc", "99999999999999999999", "01"};

command random_command(generator& random) {
    const std::string key = one_of(random, keys);
    switch (random.below(20)) {
    case 0:
        return {"SET", key, one_of(random, values)};
    case 1:
        return {"SET", key, one_of(random, values), "PX", one_of(random, ttls)};
    case 2:
        return {"set", key, one_of(random, values), "nx", "px", one_of(random, ttls)};
    case 3:
        return {"SET", key, one_of(random, values), "XX", "EX", one_of(random, ttls)};
    case 4:
        return {
            "SET",
            key,
            one_of(random, values),
            one_of(random, std::array{"NX", "XX", "KEEPTTL", "PX", "WHAT"}),
            one_of(random, std::array{"NX", "XX", "KEEPTTL", "PX", "600000"})};
    case 5:
    case 6:
        return {"GET", key};
    case 7:
        return {"DEL", key, one_of(random, keys)};
    case 8:
        return {"EXISTS", key, one_of(random, keys), key};
    case 9:
    case 10:
        return {"PTTL", key};
    case 11:
        return {"PEXPIRE", key, one_of(random, ttls)};
    case 12:
        return {"HSET", key, "f1", one_of(random, values), "f2", one_of(random, values)};
    case 13:
        return {"HSET", key, "f1", one_of(random, values), "f2"};
    case 14:
        return random.percent(50)
                   ? command{"INCR", key}
                   : command{"HGET", key, one_of(random, std::array{"f1", "f2", "f3"})};
    case 15:
        return {"HMGET", key, "f1", "f3", "f2"};
    case 16:
        return {one_of(random, std::array{"GET", "SET", "HGET", "PTTL", "DEL", "EVAL"})};
    case 17:
        return {one_of(random, std::array{"NOSUCH", "GETT"}), key, "x"};
    case 18:
        return random.percent(10) ? command{"FLUSHALL"} : command{"PING"};
    default:
        return {"PING", "hello"};
    }
}

/// A script with its keys and arguments.
command
say(generator& random, const core::script& what, const command& keys, const command& arguments) {
    const bool by_digest = random.percent(50);
    command words{by_digest ? "EVALSHA" : "EVAL", std::string(by_digest ? what.sha1 : what.text)};
    words.push_back(std::to_string(keys.size()));
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
}

/// The values of these names, which are separated by blanks.
using values_by_name = std::map<std::string, std::string, std::less<>>;

command named(const values_by_name& values, const std::string& names) {
    command out;
    std::istringstream in(names);
    for (std::string name; in >> name;) {
        out.push_back(values.at(name));
    }
    return out;
}

/// A script with keys and arguments that have names.
command
say(generator& random,
    const core::script& what,
    const values_by_name& values,
    const std::string& keys,
    const std::string& arguments) {
    return say(random, what, named(values, keys), named(values, arguments));
}

constexpr std::array tokens{token_a, token_b, "x"};
constexpr std::array new_ttls{"900000", "300000"};

command random_plain_script(generator& random) {
    const std::string key = one_of(random, keys);
    const std::string token = one_of(random, tokens);
    switch (random.below(7)) {
    case 0:
        return {"SET", key, token, "NX", "PX", "600000"};
    case 1:
        return say(random, core::guarded_release, {key}, {"0", token, "0"});
    case 2:
    case 3:
    case 4:
        return say(
            random,
            core::compare_and_extend_each,
            {key, one_of(random, keys)},
            {one_of(random, new_ttls), token, one_of(random, tokens)});
    case 5:
        return {"PTTL", key};
    default:
        return random_command(random);
    }
}

// Further apart than the times in two answers may be.
constexpr std::array ttls_apart{"20000000", "40000000", "60000000"};

/// What the scripts of the guarded protocol are given. Quarantine: none, or longer than the test,
/// so that the branch is clear. Limit: unchecked, long over, or long to come.
values_by_name random_values(generator& random) {
    return {
        {"a", "p:{a}"},
        {"a:fence", "p:{a}:fence"},
        {"b", "p:{b}"},
        {"b:fence", "p:{b}:fence"},
        {"readers", "p:{a}:readers"},
        {"intent", "p:{a}:intent"},
        {"queue", "p:{a}:queue"},
        {"places", "p:{a}:places"},
        {"epoch", "p::epoch"},
        {"token", one_of(random, std::array{token_a, token_b})},
        {"ttl", one_of(random, std::array{"600000", "900000", "300000"})},
        {"run", one_of(random, std::array{run_a, run_a, run_a, run_b})},
        {"quarantine", one_of(random, std::array{"0", "0", "0", "0", "0", "0", "3600000000"})},
        {"limit", one_of(random, std::array{"0", "1000000", "9000000000000000"})},
        {"fence_ttl", "86400000"},
        {"maybe_fence_ttl", one_of(random, std::array{"86400000", "0"})},
        {"heal_fence_ttl", one_of(random, std::array{"86400000", "1000000"})},
        {"counter", one_of(random, std::array{"0", "5", "4000000000000000", "4000000000000001"})},
        {"first", one_of(random, std::array{"0", "4000000000000000", "9000000000000000"})},
        {"earliest", one_of(random, std::array{"0", "8000000000000000"})},
        {"channel", one_of(random, std::array{"", "p:{a}:free"})},
        {"suffix", one_of(random, std::array{"", ":free"})},
        {"promoted", one_of(random, std::array{"-", "-", token_a})},
        {"stepped", one_of(random, std::array{"0", "0", "0", "1"})},
        {"intent_ttl", one_of(random, std::array{"0", "600000"})},
        {"intent_of", one_of(random, std::array{"7", "8"})},
        {"maybe_intent_of", one_of(random, std::array{"0", "7", "8"})},
    };
}

// A call for several locks: each has a key, with fencing also that of its counter, a token, and
// maybe a fencing token. A lock may be in it twice.
command random_shared_call(generator& random, const values_by_name& values) {
    const core::script* const what = std::array{
        &core::guarded_acquire, &core::guarded_extend, &core::guarded_release}[random.below(3)];
    const bool removes = what == &core::guarded_release;
    const bool has_counters = random.percent(60);
    command locks;
    command arguments;
    command counters;
    std::string mask;
    if (!removes) {
        locks.emplace_back("p::epoch");
        arguments.push_back(one_of(random, ttls_apart));
    }
    arguments.push_back(has_counters ? one_of(random, ttls_apart) : "0");
    if (what == &core::guarded_acquire && has_counters) {
        arguments.push_back(values.at("first"));
        arguments.push_back(values.at("earliest"));
    }
    for (std::size_t left = 1 + random.below(4); left > 0; --left) {
        const std::string lock = one_of(random, std::array{"p:{a}", "p:{b}", "p:{c}", "p:{d}"});
        locks.push_back(lock);
        arguments.emplace_back(one_of(random, std::array{token_a, token_a, token_a, token_b}));
        mask += one_of(random, std::array{"0", "1"});
        if (has_counters) {
            locks.push_back(lock + ":fence");
            counters.push_back(
                one_of(random, std::array{"5", "4000000000000000", "4000000000000001"}));
        }
    }
    const auto append = [&](const command& more) {
        arguments.insert(arguments.end(), more.begin(), more.end());
    };
    if (what != &core::guarded_acquire) {
        append(counters);
    }
    append(removes ? command{mask} : named(values, "run quarantine limit"));
    return say(random, *what, locks, arguments);
}

command random_guarded_script(generator& random) {
    values_by_name values = random_values(random);
    if (random.percent(50)) {
        values["a"] = "p:{b}";
        values["a:fence"] = "p:{b}:fence";
    }
    switch (random.below(12)) {
    case 0:
        return say(
            random, core::guarded_handshake, values, "epoch", "run promoted quarantine stepped");
    case 1:
        return say(random, core::guarded_raise, values, "a a:fence", "token counter fence_ttl");
    case 2:
        return say(
            random,
            core::guarded_heal,
            values,
            "a a:fence epoch",
            "token ttl counter heal_fence_ttl run quarantine limit");
    case 3: {
        // What somebody else may have put under our names.
        const std::string name = one_of(
            random,
            std::array{"p:{a}", "p:{b}", "p:{c}", "p:{a}:fence", "p:{b}:fence", "p::epoch"});
        const std::string becomes_a_hash = "redis.call('DEL', KEYS[1]) "
                                           "return redis.call('HSET', KEYS[1], 'run', 'x')";
        return random.percent(40)   ? command{"DEL", name}
               : random.percent(60) ? command{"SET", name, core::record_of_new_server(run_a)}
                                    : command{"EVAL", becomes_a_hash, "1", name};
    }
    case 4:
        return random.percent(50) ? command{"SET", values["a:fence"], one_of(random, ::values)}
                                  : command{"GET", values["a:fence"]};
    case 5:
        return {"PTTL", values[random.percent(50) ? "a" : "a:fence"]};
    default:
        return random_shared_call(random, values);
    }
}

// Readers and owners of one resource, and several resources. What is left of a lease
// differs by what the clocks advance between the two; scores are far in the future or long over.
command random_form_script(generator& random) {
    const values_by_name values = random_values(random);
    const auto call = [&](const core::script& what, const char* keys, const char* arguments) {
        return say(random, what, values, keys, arguments);
    };
    const bool heals = random.percent(50);
    switch (random.below(15)) {
    case 0:
    case 1:
        return call(
            core::all_acquire,
            "a a:fence b b:fence epoch",
            "token ttl run quarantine limit maybe_fence_ttl first earliest");
    case 2:
        return call(core::all_raise, "a a:fence b b:fence", "token counter fence_ttl");
    case 3:
        return call(
            heals ? core::all_heal : core::all_extend,
            "a a:fence b b:fence epoch",
            "token ttl counter fence_ttl run quarantine limit");
    case 4:
        return call(core::all_release, "a a:fence b b:fence", "token counter fence_ttl suffix");
    case 5:
    case 6:
        return call(
            core::shared_acquire, "a readers epoch intent", "token ttl run quarantine limit");
    case 7:
        return call(
            heals ? core::shared_heal : core::shared_extend,
            "a readers epoch",
            "token ttl run quarantine limit channel");
    case 8:
        return call(core::shared_release, "a readers", "token channel");
    case 9:
        return call(
            core::announced_acquire,
            "a a:fence epoch intent",
            "token ttl run quarantine limit maybe_fence_ttl first earliest intent_ttl intent_of");
    case 10:
        return {"SET", values.at("a"), one_of(random, std::array{"readers", "x"}), "PX", "600000"};
    case 11:
        return heals ? command{"ZADD", values.at("readers"), "1000000", "long over"}
                     : command{"ZADD", values.at("readers"), "abc", "x"};
    case 12:
        return heals && random.percent(50) ? command{"ZCARD", values.at("readers")}
               : heals                     ? command{"ZRANGE", values.at("readers"), "0", "-1"}
                       : command{"ZREM", values.at("readers"), "long over", values.at("token")};
    case 13:
        return {"DEL", one_of(random, std::array{"p:{a}", "p:{b}", "p:{a}:intent", "p:{a}:fence"})};
    default:
        return call(core::announced_release, "a intent", "token channel maybe_intent_of");
    }
}

// The fair queue of one resource. Tickets last for longer than the test, or have ended long ago.
command random_turn_script(generator& random) {
    values_by_name values = random_values(random);
    const std::string who = one_of(random, std::array{token_a, token_b, "x", "y"});
    values["token"] = who;
    switch (random.below(9)) {
    case 0:
    case 1:
    case 2:
        return say(random, core::ticket_take, values, "a queue places", "token ttl");
    case 3:
        return say(random, core::ticket_leave, values, "a queue places", "token channel");
    case 4:
        return random.percent(50) ? command{"SET", "p:{a}", "x", "PX", "600000"}
                                  : command{"DEL", "p:{a}"};
    case 5:
        return {"ZADD", values["places"], "1000000", who};
    case 6:
        return {"ZRANGE", values["queue"], "0", "-1"};
    case 7:
        return {"ZRANK", values[one_of(random, std::array{"queue", "places", "a"})], who};
    default:
        return random.percent(20) ? command{"SET", values["places"], "text"}
                                  : command{"PTTL", values["queue"]};
    }
}

// `seeds` histories of `commands` commands each, given to both.
void require_same_answers(
    std::uint64_t seeds, int commands, const std::function<command(generator&)>& next) {
    const auto master = real_master();
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        generator random(seed);
        pair_of_masters both(*master);
        both.flush();
        for (int i = 0; i < commands; ++i) {
            require_same(both, next(random));
        }
    }
}

} // namespace

TEST_CASE("the simulated master answers plain commands as a real one does") {
    require_same_answers(20, 200, random_command);
}

TEST_CASE("the simulated master runs the plain scripts as a real one does") {
    require_same_answers(20, 150, random_plain_script);
}

TEST_CASE("the simulated master runs the guarded scripts as a real one does") {
    require_same_answers(60, 150, random_guarded_script);
}

TEST_CASE("the simulated master runs the scripts of all forms as a real one does") {
    require_same_answers(30, 150, random_form_script);
}

TEST_CASE("the simulated master runs the scripts of the queue as a real one does") {
    require_same_answers(20, 150, random_turn_script);
}

TEST_CASE("a simulated master keeps its record as a real one does") {
    const auto master = real_master();
    pair_of_masters both(*master);
    const auto shake_hands = [&](const char* run, const char* promoted, const char* stepped) {
        const auto said = both.ask(
            {"EVAL",
             std::string(core::guarded_handshake.text),
             "1",
             "p::epoch",
             run,
             promoted,
             "3600000000",
             stepped,
             "1d"});
        const auto words = [](std::string text) {
            std::ranges::replace(text, ' ', '\n');
            return text;
        };
        CHECK(alike(words(said.real), words(said.simulated)));
        const auto kept = both.ask({"GET", "p::epoch"});
        CHECK(alike(words(kept.real), words(kept.simulated)));
        return lines_of(said.simulated).front();
    };
    CHECK(shake_hands(run_a, "-", "0") == "1");
    CHECK(shake_hands(run_a, "-", "0") == "0");
    CHECK(shake_hands(run_a, "-", "1") == "1");
    CHECK(shake_hands(run_a, token_a, "0") == "1");
    CHECK(shake_hands(run_a, token_a, "0") == "0");
    CHECK(shake_hands(run_a, "-", "0") == "0"); // it has forgotten that it was promoted
    CHECK(shake_hands(run_a, token_a, "0") == "0");
    CHECK(shake_hands(run_a, token_b, "0") == "1");
    CHECK(shake_hands(run_b, "-", "0") == "1");
    require_same(both, {"FLUSHALL"});
    CHECK(shake_hands(run_b, "-", "0") == "1");
    require_same(both, {"SET", "p::epoch", "5 of a version to come"});
    CHECK(shake_hands(run_b, "-", "0") == "-1");
}

TEST_CASE("a simulated master replies to TIME as a real one does") {
    const auto master = real_master();
    pair_of_masters both(*master);
    const auto said = both.ask({"TIME"});
    const auto whole_us = [](const std::string& text) {
        const std::vector<std::string> parts = lines_of(text);
        REQUIRE(parts.size() == 2);
        return *number_in(parts[0]) * 1'000'000 + *number_in(parts[1]);
    };
    CHECK(alike(std::to_string(whole_us(said.real)), std::to_string(whole_us(said.simulated))));
}

TEST_CASE("values travel between Lua and the simulated master as in a real one") {
    const auto master = real_master();
    pair_of_masters both(*master);
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
    pair_of_masters both(*master);
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
