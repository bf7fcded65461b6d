// Every known bug of the protocol breaks a promise, and the protocol without it keeps them where
// the bug was found.

#include "focused.hpp"
#include "killing.hpp"
#include "support/test.hpp"

#include <catch2/generators/catch_generators_range.hpp>

using namespace simulation;

namespace {

const profile& profile_of(const variant& which) {
    const profile* const found = find_any_profile(which.profile);
    INFO("profile " << which.profile);
    REQUIRE(found != nullptr);
    return *found;
}

} // namespace

TEST_CASE("every known bug of the protocol is found") {
    const auto number = GENERATE(Catch::Generators::range(std::size_t{0}, variants().size()));
    const variant& which = variants()[number];
    const profile& kind = profile_of(which);
    INFO(
        "variant " << which.number << " " << which.name << " (" << which.sentence << ") in profile "
                   << which.profile << ", " << which.seeds << " seeds from " << which.first);
    const hunt died = kill(which, kind, which.first, which.seeds);
    REQUIRE(died.broken);

    // It was the bug: the same seed without it breaks nothing.
    INFO("seed " << died.seed << ": " << died.broken->text);
    CHECK_FALSE(kill(right_one, kind, died.seed, 1).broken);
}

TEST_CASE("the protocol without a bug keeps its promises in the focused profiles") {
    const auto number =
        GENERATE(Catch::Generators::range(std::size_t{0}, focused_profiles().size()));
    const profile& kind = focused_profiles()[number];
    constexpr std::uint64_t seeds = 120;
    const hunt ended = kill(right_one, kind, 1, seeds);
    INFO("simulate_variants --profile " << kind.name << " --seed " << ended.seed);
    INFO((ended.broken ? ended.broken->text : std::string()));
    CHECK_FALSE(ended.broken);
    // A simulation in which nothing happens proves nothing.
    CHECK(ended.sum.acquired > seeds);
    CHECK(std::ranges::any_of(ended.sum.faults, [](std::uint64_t one) { return one > 0; }));
}

TEST_CASE("the table of variants has each of them once") {
    for (std::size_t i = 0; i < variants().size(); ++i) {
        CHECK(variants()[i].number == i + 1);
        CHECK(find_variant(variants()[i].name) == &variants()[i]);
    }
}

// A run would report that as a broken promise, and the variant as found.
TEST_CASE("every script has what its variants change") {
    for (const variant& which : variants()) {
        for (const script_change& one : which.changes) {
            INFO("variant " << which.number << " " << which.name << ": " << one.right);
            std::string text;
            CHECK_NOTHROW(text = executed(which, one.script));
            CHECK(text != one.script);
        }
    }
}

TEST_CASE("a script that has not what is to be changed is noticed") {
    const variant which{
        1, "", "", 1, 1, nullptr, "", {{"return 1 + 1", "1", "2"}, {"return 3", "4", "5"}}};
    CHECK(executed(which, "return 6") == "return 6");
    CHECK_THROWS_AS(executed(which, "return 1 + 1"), std::logic_error);
    CHECK_THROWS_AS(executed(which, "return 3"), std::logic_error);
}
