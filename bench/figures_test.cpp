// The arithmetic of the report: figures that cannot be checked by looking at them.
#include "holdings.hpp"
#include "result.hpp"
#include "targets.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using namespace bench;
using namespace std::chrono_literals;
using Catch::Matchers::WithinRel;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

const target* find(const report& all, const std::string& what) {
    for (const auto& one : all.targets) {
        if (one.what == what) {
            return &one;
        }
    }
    return nullptr;
}

} // namespace

TEST_CASE("handoffs are distinguished by the process of the next holder") {
    // asked, acquired, releasing, waiter, process; not in order, as two processes wrote them
    const auto found = figures_of(
        {{0, 100, 110, 0, 0}, {0, 400, 410, 0, 0}, {50, 150, 160, 1, 0}, {60, 230, 240, 2, 1}},
        3,
        1us);
    CHECK(found.handoffs == 3);
    CHECK(found.local_ns == std::vector<std::uint32_t>{40});
    CHECK(found.remote_ns == std::vector<std::uint32_t>{70, 160});
    CHECK(found.longest_gap == 160ns);
    CHECK(found.longest_wait == 400ns);
    CHECK(found.overlaps == 0);
    CHECK_THAT(found.per_second, WithinRel(3e9 / 300));
}

TEST_CASE("a holder that comes before the one before it has begun to release is an overlap") {
    const auto found = figures_of({{0, 100, 200, 0, 0}, {0, 199, 300, 1, 1}}, 2, 1us);
    CHECK(found.overlaps == 1);
    CHECK(found.remote_ns.empty());
}

TEST_CASE("a waiter that never got the lock waited all the time") {
    CHECK(figures_of({{0, 10, 20, 0, 0}}, 2, 1us).longest_wait == 1us);
    CHECK(figures_of({}, 2, 1us).handoffs == 0);
}

TEST_CASE("Jain's index is 1 for equal shares and 1/n when one has it all") {
    CHECK_THAT(jain_index({5, 5, 5, 5}), WithinRel(1.0));
    CHECK_THAT(jain_index({7, 0, 0, 0}), WithinRel(0.25));
    CHECK(jain_index({0, 0}) == 0);
}

TEST_CASE("rounds that had no value are left out, and are null in the JSON") {
    CHECK(spread_of({3, none, 1}).median == 2);
    CHECK(std::isnan(spread_of({none}).median));
    report all;
    auto& made = all.tables.emplace_back();
    made.id = "any";
    made.axes = {"K", "side"};
    made.at({std::int64_t{64}, "plain"}).add("time_us", none);
    const auto written = to_json(all)["tables"][0]["rows"][0];
    CHECK(written["at"]["K"] == 64);
    CHECK(written["at"]["side"] == "plain");
    const auto text = written["metrics"]["time_us"].dump();
    CHECK(text == R"({"median":null,"min":null,"max":null,"rounds":[null]})");
}

TEST_CASE("a ratio is taken round by round") {
    table made;
    made.at({"floor"}).add("time_us", 10);
    made.at({"floor"}).add("time_us", 20);
    auto& plain = made.at({"plain"});
    plain.add("time_us", 20);
    plain.add("time_us", 30);
    plain.compare("time_us", *made.find({"floor"}), "floor");
    const auto* const found = plain.ratio_of("time_us");
    REQUIRE(found != nullptr);
    CHECK(found->to == "floor");
    CHECK_THAT(found->value.median, WithinRel(1.75));
    CHECK_THAT(found->value.min, WithinRel(1.5));
    CHECK_THAT(found->value.max, WithinRel(2.0));
}

TEST_CASE("the worst disturbance decides, and a target can be missed") {
    report all;
    all.asked.masters = 5;
    auto& made = all.tables.emplace_back();
    made.id = "faults";
    made.axes = {"fault", "side"};
    made.at({"none", "plain"}).add("acquire_p50_us", 100);
    for (const auto& [fault, time] : {std::pair{"1 hung", 101.0}, std::pair{"2 slow", 120.0}}) {
        auto& disturbed = made.at({fault, "plain"});
        disturbed.add("acquire_p50_us", time);
        disturbed.compare("acquire_p50_us", *made.find({"none", "plain"}), "none");
    }
    add_targets(all);
    const auto* const found =
        find(all, "acquire p50, plain, one or two masters disturbed (worst: 2 slow)");
    REQUIRE(found != nullptr);
    CHECK_THAT(found->measured.median, WithinRel(1.2));
    CHECK_FALSE(found->reached);

    // What was not measured is not judged, nor is another quorum.
    CHECK(all.targets.size() == 1);
    all.targets.clear();
    all.asked.masters = 3;
    add_targets(all);
    CHECK(all.targets.empty());
}
