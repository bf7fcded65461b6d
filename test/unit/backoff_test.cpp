#include "core/base/backoff.hpp"
#include "support/test.hpp"

#include <limits>

namespace backoff_test {

using redlock::core::backoff;
using redlock::core::jitter;
using std::chrono::nanoseconds;

TEST_CASE("jitter stays in its range and reaches both ends of it") {
    jitter random(1);
    std::set<nanoseconds> seen;
    for (int i = 0; i < 1'000; ++i) {
        const nanoseconds one = random.between(3ns, 7ns);
        REQUIRE(one >= 3ns);
        REQUIRE(one <= 7ns);
        seen.insert(one);
    }
    CHECK(seen.size() == 5);
    CHECK(random.between(5ns, 5ns) == 5ns);
    CHECK(random.between(5ns, 4ns) == 5ns);
    CHECK(random.between(0ns, nanoseconds::max()) >= 0ns);
}

TEST_CASE("two seeds give two sequences, one seed the same again") {
    jitter a(1);
    jitter b(1);
    jitter c(2);
    bool differs = false;
    for (int i = 0; i < 20; ++i) {
        const nanoseconds one = a.between(0ns, 1h);
        CHECK(b.between(0ns, 1h) == one);
        differs = differs || c.between(0ns, 1h) != one;
    }
    CHECK(differs);
}

TEST_CASE("a delay is at least the floor and at most three times the one before or the ceiling") {
    jitter random(3);
    for (int turn = 0; turn < 200; ++turn) {
        backoff delay;
        nanoseconds before = 2ms;
        for (int i = 0; i < 30; ++i) {
            const nanoseconds next = delay.next(2ms, 200ms, random);
            REQUIRE(next >= 2ms);
            REQUIRE(next <= std::min<nanoseconds>(200ms, 3 * std::max<nanoseconds>(before, 2ms)));
            before = next;
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
}

TEST_CASE("jitter is splitmix64, as its authors publish it") {
    jitter random(1234567);
    for (const std::size_t wanted :
         {6457827717110365317U, 3203168211198807973U, 9817491932198370423U}) {
        CHECK(random.below(std::numeric_limits<std::size_t>::max()) == wanted);
    }
}

} // namespace backoff_test
