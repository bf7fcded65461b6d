
#include "support/test.hpp"

#include <redlock/fenced.hpp>
#include <redlock/with_diagnostics.hpp>

#include <boost/system/errc.hpp>

#include <barrier>
#include <limits>
#include <thread>
#include <type_traits>

namespace fenced_test { namespace {

using namespace redlock;
using detail::fencing_token_max;

constexpr std::uint64_t no_tokens[] = {
    0, fencing_token_max + 1, std::numeric_limits<std::uint64_t>::max()};

const error_code protocol_error = make_error_code(boost::system::errc::protocol_error);

/// What `call` throws of the type, or a failed test.
template <typename Error, typename Call>
Error thrown_by(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    throw std::logic_error("the call has not thrown what it should");
}

/// Runs `work(i)` in each of some threads, which begin together.
template <typename Work>
void in_threads(std::size_t count, const Work& work) {
    std::barrier start(static_cast<std::ptrdiff_t>(count));
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            start.arrive_and_wait();
            work(i);
        });
    }
}

TEST_CASE("a stale token has an error of its own, with a sentence that names both tokens") {
    const stale_token_error error(17, 23);
    CHECK(error.what() == std::string("stale fencing token 17: the resource has seen 23"));
    CHECK(error.token() == 17);
    CHECK(error.highest() == 23);
    CHECK(error.code() == errc::stale_token);
    CHECK(error.code() != redlock::condition::not_acquired);
    CHECK(error.code() != redlock::condition::unavailable);
    CHECK(error.code().message().find("unknown") == std::string::npos);

    const stale_token_error vague(17);
    CHECK(
        vague.what() == std::string("stale fencing token 17: the resource has seen a larger one"));
    CHECK(!vague.highest().has_value());

    const stale_token_error copy(error);
    CHECK(copy.what() == std::string(error.what()));
    STATIC_CHECK(std::is_nothrow_copy_constructible_v<stale_token_error>);
}

TEST_CASE("a fenced value admits larger and equal tokens, and refuses smaller ones") {
    fenced<int> value;
    const auto write = [&](std::uint64_t token) { value.write(token, [](int& it) { ++it; }); };
    CHECK(value.highest() == 0);
    write(5);
    write(5);
    CHECK_THROWS_AS(write(4), stale_token_error);
    CHECK(value.highest() == 5);
    write(9);
    const auto error = thrown_by<stale_token_error>([&] { write(5); });
    CHECK(error.token() == 5);
    CHECK(error.highest() == 9);
    CHECK(value.highest() == 9);
    write(fencing_token_max);
    CHECK_THROWS_AS(write(fencing_token_max - 1), stale_token_error);
    CHECK(value.write(fencing_token_max, [](int& it) { return std::exchange(it, 7); }) == 4);
    CHECK(value.read([](const int& it) { return 2 * it; }) == 14);
    CHECK(value.get() == 7);
}

TEST_CASE("a fenced value goes on from what was stored, and remembers no invalid token") {
    fenced<int> value(0, 7);
    const auto write = [&](std::uint64_t token) { value.write(token, [](int& it) { ++it; }); };
    CHECK_THROWS_AS(write(6), stale_token_error);
    for (const std::uint64_t token : no_tokens) {
        CAPTURE(token);
        const auto error = thrown_by<error_with_diagnostics>([&] { write(token); });
        CHECK(error.code() == errc::invalid_argument);
        CHECK(std::string(error.what()).find(std::to_string(token)) != std::string::npos);
    }
    CHECK(value.highest() == 7);
    CHECK(value.get() == 0);
    CHECK_THROWS_AS(fenced<int>(0, fencing_token_max + 1), std::invalid_argument);
}

TEST_CASE("a change that throws has shown its token, and what it threw comes through") {
    fenced<int> state(1, 7); // the token that was stored with it
    CHECK_THROWS_AS(state.write(6, [](int& n) { n = 0; }), stale_token_error);
    CHECK_THROWS_AS(
        state.write(8, [](int&) { throw std::runtime_error("no"); }), std::runtime_error);
    CHECK(state.get() == 1);
    CHECK(state.highest() == 8);
    state.write(8, [](int& n) { n = 2; }); // and the mutex is free
    CHECK(state.get() == 2);
}

TEST_CASE("several threads write a fenced value in the order of their tokens") {
    constexpr std::uint64_t last = 20'000;
    fenced<std::vector<std::uint64_t>> log;
    in_threads(4, [&](std::size_t me) {
        for (std::uint64_t token = 1 + me; token <= last; token += 4) {
            try {
                log.write(token, [&](std::vector<std::uint64_t>& entries) {
                    entries.push_back(token);
                    std::this_thread::yield(); // to a thread that would come in
                });
            } catch (const stale_token_error&) { // a later owner has written: as it should be
            }
        }
    });
    const std::vector<std::uint64_t> entries = log.get();
    CHECK(std::ranges::is_sorted(entries));
    REQUIRE(!entries.empty());
    CHECK(entries.back() == last); // the largest can never be stale
}

TEST_CASE("a fence lies next to its key, under the same hash tag") {
    CHECK(fenced_set("account:7").fence() == "{account:7}:highest-token");
    CHECK(fenced_set("{user:1}:cart").fence() == "{user:1}:cart:highest-token");
    CHECK(fenced_set("a{b").fence() == "{a{b}:highest-token");
    CHECK(fenced_set("}{tag}").fence() == "}{tag}:highest-token");
    // No braces around these would make the whole of them the tag.
    for (const char* key : {"", "a}b", "a{}b", "{}", "}{", "}{}"}) {
        CAPTURE(key);
        CHECK_THROWS_AS(fenced_set(key), std::invalid_argument);
    }
}

TEST_CASE("the words of a fenced SET") {
    using words = std::vector<std::string>;
    const fenced_set save("account:7");
    const std::string script = save.eval(1, "").at(1);
    CHECK(script.find(fence_check) != std::string::npos);
    const std::string fence = "{account:7}:highest-token";
    CHECK(save.fence() == fence);
    CHECK(save.eval(23, "12") == words{"EVAL", script, "2", fence, "account:7", "23", "12"});
    CHECK(
        save.evalsha(fencing_token_max, "", 1500ms)
        == words{
            "EVALSHA",
            "56267f8927a83f34a558135b6c0a478c881d22ef", // other versions run this script as well
            "2",
            fence,
            "account:7",
            "9007199254740991",
            "",
            "1500"});
    const std::string bytes("\0\r\n", 3);
    CHECK(save.eval(1, bytes).back() == bytes);
}

TEST_CASE("a fenced SET is not made of an invalid token or ttl, or of a fence as its key") {
    const fenced_set save("k");
    for (const std::uint64_t token : no_tokens) {
        CAPTURE(token);
        CHECK_THROWS_AS(save.eval(token, "v"), std::invalid_argument);
        CHECK_THROWS_AS(save.evalsha(token, "v"), std::invalid_argument);
    }
    CHECK_NOTHROW(save.eval(1, "v", std::chrono::days(36'500)));
    for (const auto ttl :
         {-1ms, std::chrono::days(36'500) + 1ms, std::chrono::milliseconds::max()}) {
        CHECK_THROWS_AS(save.eval(1, "v", ttl), std::invalid_argument);
    }
    const std::string fence = "{7}:fence";
    CHECK(fenced_set("{7}:a", fence).fence() == fenced_set("{7}:b", fence).fence());
    CHECK_THROWS_AS(fenced_set("{7}:fence", fence), std::invalid_argument);
}

TEST_CASE("a reply says accepted, stale, or nothing that a fenced script could have said") {
    CHECK_NOTHROW(fenced_reply{.accepted = 1, .highest = 23}.require(23));
    const auto stale = thrown_by<stale_token_error>(
        [] { fenced_reply{.accepted = 0, .highest = 23}.require(17); });
    CHECK(stale.token() == 17);
    CHECK(stale.highest() == 23);
    const auto strange = thrown_by<boost::system::system_error>([] { fenced_reply{}.require(17); });
    CHECK(strange.code() == protocol_error);

    constexpr std::int64_t most = fencing_token_max;
    const std::pair<std::uint64_t, fenced_reply> impossible[] = {
        {23, {}},
        {23, {.accepted = 1, .highest = 22}},
        {23, {.accepted = 1, .highest = 24}},
        {23, {.accepted = 0, .highest = 23}},
        {23, {.accepted = 0, .highest = 22}},
        {23, {.accepted = 0, .highest = -1}},
        {23, {.accepted = 0, .highest = most + 1}},
        {23, {.accepted = 2, .highest = 23}},
        {23, {.accepted = -1, .highest = 24}},
        {0, {.accepted = 1, .highest = 0}},
        {0, {.accepted = 0, .highest = 1}}};
    for (const auto& [token, reply] : impossible) {
        CAPTURE(token, reply.accepted, reply.highest);
        const auto error = thrown_by<boost::system::system_error>(
            [&, &given = reply, number = token] { given.require(number); });
        CHECK(error.code() == protocol_error);
    }
}

}} // namespace fenced_test
