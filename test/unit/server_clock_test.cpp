#include "core/masters/server_clock.hpp"
#include "support/test.hpp"

namespace server_clock_test { namespace {

using namespace redlock::core;
using redlock::time_point;
using std::chrono::microseconds;

constexpr std::int64_t date = 1'700'000'000'000'000;

// A server whose clock is `ahead` of ours by the date; what is sent at `sent` is read by it and
// answered on the way, and comes at `got`.
struct site {
    settings rules;
    server_clock clock;

    site() {
        rules.drift = {0.01, 2ms};
        rules.clock_offset_bound = 100ms;
    }
    microseconds
    sample(time_point sent, time_point read, time_point got, microseconds ahead = 0us) {
        const auto ours = std::chrono::floor<microseconds>(read.time_since_epoch()).count();
        return clock.sample(date + ours + ahead.count(), sent, got, rules);
    }
    microseconds at(time_point when, microseconds ahead = 0us) {
        return sample(when, when, when, ahead);
    }
};

const time_point now(1000s);

TEST_CASE("a clock is stepped if it moved by more than the rates and the margin allow") {
    const auto after_a_second = [](microseconds ahead) {
        site it;
        it.at(now);
        return it.at(now + 1s, ahead);
    };
    // 2 % of a second, and 102 ms.
    CHECK(after_a_second(122ms) == 0us);
    CHECK(after_a_second(122ms + 1us) == 102ms + 1us);
    CHECK(after_a_second(-122ms) == 0us);
    CHECK(after_a_second(-122ms - 1us) == -102ms - 1us);
    CHECK(after_a_second(1h) == 1h - 20ms);
    CHECK(after_a_second(-1h) == -1h + 20ms);
}

TEST_CASE("the error of a clock is the round trip of its fastest reply, and what was used counts") {
    site it;
    it.rules.master_timeout = 70ms;
    CHECK(it.clock.error(now, it.rules) == 70ms); // nothing is known
    CHECK(!it.clock.is_vague(0ms));
    it.sample(now, now, now + 40ms);
    CHECK(it.clock.is_vague(40ms - 1us));
    CHECK(!it.clock.is_vague(40ms));
    CHECK(it.clock.error(now, it.rules) == 42ms);
    CHECK(it.clock.error(now + 1s, it.rules) == 82ms); // 2 % to either side
    it.sample(now, now, now + 10ms);
    CHECK(!it.clock.is_vague(10ms));
    CHECK(it.clock.error(now, it.rules) == 42'400us); // commands in flight carry the former bound
    it.clock.begin_use();
    CHECK(it.clock.error(now, it.rules) == 12ms);
    it.clock.reset();
    it.sample(now, now, now + 5ms);
    CHECK(it.clock.error(now, it.rules) == 7ms);
}

TEST_CASE("the time that a reply may have taken is not a step") {
    for (const auto first : {0ms, 300ms}) {
        for (const auto second : {0ms, 300ms}) {
            for (const auto ahead : {-100ms, 100ms}) {
                for (const bool late : {false, true}) { // each is read as it is sent or as it comes
                    site it;
                    it.sample(now, now + (late ? 0ms : first), now + first);
                    const time_point then = now + 1s;
                    CHECK(
                        it.sample(then, then + (late ? second : 0ms), then + second, ahead) == 0us);
                }
            }
        }
    }
}

TEST_CASE("the bound of a clock is the lowest that any answer gave, and never too low") {
    site it;
    const auto shows = [](time_point when) {
        return date + std::chrono::floor<microseconds>(when.time_since_epoch()).count();
    };
    it.sample(now, now, now + 10ms);
    CHECK(it.clock.not_after(now, it.rules) == shows(now) + 1'000);
    CHECK(it.clock.not_after(now + 1s, it.rules) == shows(now + 1s) + 20'000 + 1'000);
    it.sample(now + 1s, now + 1s, now + 1s);
    CHECK(it.clock.not_after(now + 1s, it.rules) == shows(now + 1s) + 1'000);
    // A worse answer makes it no worse.
    it.sample(now + 1s, now + 3s, now + 3s);
    CHECK(it.clock.not_after(now + 3s, it.rules) <= shows(now + 3s) + 80'000 + 1'000);
    CHECK(it.clock.not_after(now + 3s, it.rules) > shows(now + 3s));
    // A small step forward raises it, or commands would come late for good.
    it.at(now + 4s, 90ms);
    CHECK(it.clock.not_after(now + 4s, it.rules) >= shows(now + 4s) + 90'000);
}

TEST_CASE("an answer that only just agrees with the one before narrows what is known") {
    site it;
    it.rules.drift = {0, 2ms};
    it.at(now);
    it.sample(now, now + 1ms, now + 1ms); // as the clock is, if it took no time to come
    const auto shown = date + std::chrono::floor<microseconds>(now.time_since_epoch()).count();
    CHECK(it.clock.not_after(now, it.rules) == shown + 1'000);
}

}} // namespace server_clock_test
