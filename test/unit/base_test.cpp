// The small parts of core/base, and SHA-1.

#include "core/base/backoff.hpp"
#include "core/base/hash.hpp"
#include "core/base/pool.hpp"
#include "core/base/ring_buffer.hpp"
#include "core/base/timers.hpp"
#include "core/base/validity.hpp"
#include "core/bytes/scripts.hpp"
#include "support/test.hpp"

#include <limits>
#include <random>

namespace base_test { namespace {

using namespace redlock::core;
using redlock::time_point;
using std::chrono::nanoseconds;

TEST_CASE("the n-th largest moment is that of a sorted list") {
    std::mt19937 random(7);
    for (std::size_t size = 1; size <= masters_max; ++size) {
        for (int turn = 0; turn < 50; ++turn) {
            std::vector<time_point> moments;
            for (std::size_t i = 0; i < size; ++i) {
                const auto kind = random() % 6;
                moments.push_back(
                    kind == 0   ? never
                    : kind == 1 ? forever
                                : time_point(std::chrono::seconds(random() % 4)));
            }
            std::vector<time_point> sorted = moments;
            std::sort(sorted.begin(), sorted.end(), std::greater<>{});
            for (std::size_t n = 1; n <= size; ++n) {
                REQUIRE(nth_largest(moments, n) == sorted[n - 1]);
            }
        }
    }
}

TEST_CASE("delays grow to the ceiling and start small again after a reset") {
    jitter random(4);
    backoff delay;
    nanoseconds largest{};
    for (int i = 0; i < 100; ++i) {
        largest = std::max(largest, delay.next(2ms, 200ms, random));
    }
    CHECK(largest == 200ms);
    delay.reset();
    CHECK(delay.next(2ms, 200ms, random) <= 6ms);
    CHECK(delay.next(500ms, 200ms, random) == 500ms); // never below the floor
}

TEST_CASE("jitter is splitmix64, as its authors publish it") {
    jitter random(1234567);
    for (const std::size_t wanted :
         {6457827717110365317U, 3203168211198807973U, 9817491932198370423U}) {
        CHECK(random.below(std::numeric_limits<std::size_t>::max()) == wanted);
    }
}

TEST_CASE("every version chooses the arbiter of a lock by the same hash") {
    CHECK(hash_of_key("redlock:{invoices}") == 4446407988340481145U);
}

TEST_CASE("a ring buffer keeps the order, also when it grows with its front in the middle") {
    ring_buffer<int> it;
    int pushed = 0;
    int popped = 0;
    const auto push = [&](int count) {
        for (int i = 0; i < count; ++i) {
            it.push_back(pushed++);
        }
    };
    const auto pop = [&](int count) {
        for (int i = 0; i < count; ++i, it.pop_front()) {
            REQUIRE(it.front() == popped++);
        }
    };
    push(16);
    pop(10);
    push(10); // around the end
    push(30); // and more than there is room for
    CHECK(it.size() == 46);
    pop(46);
    CHECK(it.empty());
    push(3);
    pop(3);
}

TEST_CASE("a digest is that of SHA-1 at each side of the end of a block") {
    const struct {
        std::size_t length;
        std::string_view digest;
    } known[] = {
        {0, "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {55, "c1c8bbdc22796e28c0e15163d20899b65621d65a"},
        {56, "c2db330f6083854c99d4b5bfb6e8f29f201be699"},
        {63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5"},
        {64, "0098ba824b5c16427bd7a1122a5a442a25ec644d"},
        {119, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56"},
        {120, "f34c1488385346a55709ba056ddd08280dd4c6d6"},
    };
    for (const auto& one : known) {
        CAPTURE(one.length);
        CHECK(sha1_digest(std::string(one.length, 'a')) == one.digest);
    }
}

struct thing {
    handle<thing> self;
    void reset() {}
};

TEST_CASE(
    "a pool returns the memory that very many objects needed, and no old handle finds a new one") {
    pool<thing> things;
    std::vector<handle<thing>> old;
    for (int i = 0; i < 100'000; ++i) {
        old.push_back(things.create().self);
    }
    std::size_t forgotten = 0;
    const auto shrink = [&] { things.shrink([&](thing&) { ++forgotten; }); };
    shrink();
    CHECK(forgotten == 0);
    for (std::size_t i = 1; i < old.size(); ++i) {
        things.destroy(*things.find(old[i]));
    }
    shrink();
    CHECK(forgotten > 90'000);
    CHECK(things.size() == 1);
    CHECK(things.find(old[0]) != nullptr);
    std::size_t seen = 0;
    things.for_each([&](thing&) { ++seen; });
    CHECK(seen == 1);
    for (std::size_t i = 1; i < old.size(); ++i) {
        thing& made = things.create();
        REQUIRE(things.find(made.self) == &made);
        REQUIRE(things.find(old[i]) == nullptr);
    }
    CHECK(things.end() == 100'000); // the places are used again
}

time_point at(int second) {
    return time_point(std::chrono::seconds(second));
}

using model = std::multimap<time_point, timer*>;

/// The earliest timer that is due, after as many looks as necessary; null if none is.
timer* take(timers& all, time_point now) {
    while (all.next() <= now && all.next() != forever) {
        if (timer* const due = all.pop(now)) {
            return due;
        }
    }
    return nullptr;
}

void take_out(model& expected, timer& entry) {
    std::erase_if(expected, [&](const auto& one) { return one.second == &entry; });
}

TEST_CASE("timers agree with a sorted map, whatever is done to them") {
    std::mt19937 random(11);
    for (int turn = 0; turn < 50; ++turn) {
        timers all;
        model expected;
        std::array<timer, 24> entries;
        for (int i = 0; i < 500; ++i) {
            timer& one = entries[random() % entries.size()];
            const time_point when = at(static_cast<int>(random() % 30));
            switch (random() % 5) {
            case 0:
                all.cancel(one);
                take_out(expected, one);
                break;
            case 1:
                if (timer* const due = take(all, when)) {
                    REQUIRE(due->due == expected.begin()->first);
                    REQUIRE(due->due <= when);
                    take_out(expected, *due);
                } else {
                    REQUIRE((expected.empty() || expected.begin()->first > when));
                }
                break;
            case 2:
                all.remove(one);
                take_out(expected, one);
                REQUIRE(one.place == timer::idle);
                break;
            default:
                all.set(one, when);
                take_out(expected, one);
                expected.emplace(when, &one);
            }
            REQUIRE(all.next() <= (expected.empty() ? forever : expected.begin()->first));
            REQUIRE((all.next() == forever) == expected.empty());
        }
    }
}

}} // namespace base_test
