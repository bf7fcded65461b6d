#include "core/base/validity.hpp"
#include "support/test.hpp"

#include <limits>
#include <random>

namespace validity_test {

using namespace redlock::core;
using redlock::time_point;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST_CASE("the drift is a share of the ttl plus a margin") {
    CHECK(drift_bound{}.of(10s) == 102ms);
    CHECK(drift_bound{}.of(1ms) == 2'010us);
    CHECK(drift_bound{}.of(0ms) == 2ms);
    CHECK(drift_bound{0, 0ms}.of(24h) == 0ns);
    CHECK(drift_bound{0.5, 10s}.of(24h) == 12h + 10s);
}

TEST_CASE("a vote can be relied on until its lease is over by anybody's clock") {
    const time_point sent(1'000s);
    CHECK(guaranteed_until(sent, 10s, {0.01, 2ms}) == sent + 9'898ms);
    CHECK(guaranteed_until(sent, 10s, {0, 0ms}) == sent + 10s);
    CHECK(guaranteed_until(sent, 24h, {0.5, 10s}) == sent + 12h - 10s);
    // A ttl that the drift uses up was over before it was asked for.
    CHECK(guaranteed_until(sent, 1ms, {0.01, 2ms}) < sent);
}

TEST_CASE("a later moment never wraps round") {
    CHECK(later(time_point(5s), 3'000ms) == time_point(8s));
    CHECK(later(time_point(5s), 0ns) == time_point(5s));
    CHECK(later(forever, 0ns) == forever);
    CHECK(later(forever, 1ns) == forever);
    CHECK(later(forever - 1ns, 1ns) == forever);
    CHECK(later(forever - 2ns, 1ns) == forever - 1ns);
    CHECK(later(time_point(1ns), nanoseconds::max()) == forever);
    CHECK(later(time_point(0ns), nanoseconds::max()) == forever);
    CHECK(later(time_point(5s), milliseconds::max()) == forever);
    CHECK(
        later(time_point(0ns), milliseconds(std::numeric_limits<std::int64_t>::max() / 1'000'000))
        == forever);
    CHECK(later(time_point(5s), milliseconds(std::chrono::hours(24 * 365 * 290))) < forever);
    CHECK(later(time_point(5s), milliseconds(7)) == time_point(5'007ms));
}

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

TEST_CASE("a majority lasts until the vote of it that ends first") {
    const time_point a(10s);
    const time_point b(20s);
    const time_point c(30s);
    CHECK(nth_largest(std::vector{a, b, c}, 2) == b);
    CHECK(nth_largest(std::vector{a, never, c}, 2) == a);
    CHECK(nth_largest(std::vector{never, never, c}, 2) == never);
    CHECK(nth_largest(std::vector{b, b, b}, 2) == b);
    CHECK(nth_largest(std::vector{forever, b, forever}, 2) == forever);
    CHECK(nth_largest(std::vector{never}, 1) == never);
    CHECK(nth_largest(std::vector<time_point>(32, c), 17) == c);
}

} // namespace validity_test
