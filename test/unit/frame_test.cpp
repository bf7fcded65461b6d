// Which commands share a call, when a turn ends, and what is published of a token.

#include "core/bytes/command.hpp"
#include "core/locks/frame.hpp"
#include "support/test.hpp"
#include "virtual_master.hpp"

namespace frame_test { namespace {

using namespace redlock::core;
using redlock::time_point;
using std::chrono::nanoseconds;

constexpr time_point at(nanoseconds since_start) {
    return time_point(1'000s) + since_start;
}

// What a test says of one acquire; the number of its lock identifies it.
struct wanted {
    std::uint32_t number = 1;
    time_point by = forever;
    time_point now = at(0s);
};

struct frames_site {
    void add(const wanted& one) {
        const std::string lock = "lock" + std::to_string(one.number);
        box.add(
            {{.kind = command_kind::acquire, .ttl = 10s, .to = 0b111},
             {.lock = lock, .fence = "fence", .record = "other", .token = "token"},
             0,
             one.by,
             {.claim = {one.number, 1}}},
            false,
            one.now);
    }
    // The frames of this turn, as copies.
    std::vector<frame> flush() {
        std::vector<frame> sent;
        box.flush([&](const frame& one) { sent.push_back(one); });
        return sent;
    }
    // Which locks are in one call with which.
    std::vector<std::vector<std::uint32_t>> calls() {
        std::vector<std::vector<std::uint32_t>> all;
        for (const frame& one : flush()) {
            all.push_back(locks_of(one));
        }
        return all;
    }
    static std::vector<std::uint32_t> locks_of(const frame& one) {
        std::vector<std::uint32_t> numbers;
        for (const frame::item& each : one.items) {
            numbers.push_back(each.claim.index);
        }
        return numbers;
    }

    frames box;
};

using calls = std::vector<std::vector<std::uint32_t>>;

TEST_CASE("locks are refused together only if they would be at nearly the same time") {
    const auto joined = [](const std::vector<nanoseconds>& limits, nanoseconds now = 0s) {
        frames_site it;
        std::uint32_t number = 0;
        for (const nanoseconds limit : limits) {
            it.add({.number = ++number, .by = at(limit), .now = at(now)});
        }
        return it.calls();
    };
    // An eighth of what is left is lost at most.
    CHECK(joined({800ms, 900ms}) == calls{{1, 2}});
    CHECK(joined({800ms, 900ms + 1ns}) == calls{{1}, {2}});
    CHECK(joined({900ms, 800ms}) == calls{{1, 2}});
    CHECK(joined({900ms + 1ns, 800ms}) == calls{{1}, {2}});
    CHECK(joined({850ms, 900ms, 800ms}) == calls{{1, 2, 3}});
    CHECK(joined({850ms, 900ms, 799ms}) == calls{{1, 2}, {3}}); // from first to last
    CHECK(joined({800ms, 850ms, 901ms}) == calls{{1, 2}, {3}});
    CHECK(joined({800ms, 901ms, 850ms}) == calls{{1}, {2, 3}}); // the latest that it fits
    CHECK(joined({800ms, 900ms}, 400ms) == calls{{1}, {2}});
    CHECK(joined({800ms, 850ms}, 400ms) == calls{{1, 2}});
    // What is late already.
    CHECK(joined({800ms, 800ms}, 900ms) == calls{{1, 2}});
    CHECK(joined({800ms, 801ms}, 900ms) == calls{{1}, {2}});

    frames_site it;
    it.add({.number = 1, .by = at(800ms)});
    it.add({.number = 2, .by = forever});
    it.add({.number = 3, .by = at(900ms)});
    it.add({.number = 4, .by = forever});
    const std::vector<frame> sent = it.flush();
    REQUIRE(sent.size() == 2);
    CHECK(frames_site::locks_of(sent[0]) == std::vector<std::uint32_t>{1, 3});
    CHECK(sent[0].by_first == at(800ms));
    CHECK(sent[0].by_last == at(900ms));
    CHECK(frames_site::locks_of(sent[1]) == std::vector<std::uint32_t>{2, 4});
    CHECK(sent[1].by_first == forever);
}

TEST_CASE("a turn ends when its commands leave") {
    frames_site it;
    const std::uint32_t turn = it.box.turn();
    CHECK(turn != 0);
    CHECK(it.flush().empty());
    CHECK(it.box.turn() == turn); // nothing left
    it.add({.number = 1, .now = at(1s)});
    it.add({.number = 2, .now = at(2s)});
    CHECK(it.box.turn() == turn);
    CHECK(it.box.added_at() == at(2s));
    CHECK(it.calls() == calls{{1, 2}});
    CHECK(it.box.turn() != turn);
    CHECK(it.box.empty());
    CHECK(it.flush().empty());
    it.add({.number = 3});
    CHECK(it.calls() == calls{{3}}); // joins none that has left
    CHECK(it.box.empty());
    it.add({.number = 4});
    CHECK(it.calls() == calls{{4}});
}

TEST_CASE("what is published of a removal is a part of its token") {
    std::string bytes;
    append_publish(bytes, "the:key:free", "0123456789abcdef0123456789abcdef01234567");
    CHECK(
        unit::virtual_master::lines_of(bytes)
        == std::vector<std::string>{"PUBLISH the:key:free 0123456789abcdef"});
}

}} // namespace frame_test
