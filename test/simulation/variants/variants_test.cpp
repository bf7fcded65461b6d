// Every known bug of the protocol breaks a promise, and the protocol without it keeps them where
// the bug was found.

#include "focused.hpp"
#include "killing.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <string>

using namespace simulation;

namespace {

const profile& profile_of(const variant::known& which) {
    const profile* const found = find_any_profile(which.profile);
    INFO("profile " << which.profile);
    REQUIRE(found != nullptr);
    return *found;
}

} // namespace

TEST_CASE("every known bug of the protocol is found") {
    const auto number = GENERATE(Catch::Generators::range(std::size_t{0}, std::size(variant::all)));
    const variant::known& which = variant::all[number];
    const profile& kind = profile_of(which);
    lua_machine lua;
    INFO(
        "variant " << which.number << " " << which.text << " (" << which.sentence << ") in profile "
                   << which.profile << ", " << which.seeds << " seeds from " << which.first);
    const auto died = kill(&which, kind, which.first, which.seeds, lua);
    REQUIRE(died);

    // It was the bug: the same seed without it breaks nothing.
    INFO("seed " << died->seed << ": " << died->what.text);
    CHECK_FALSE(kill(nullptr, kind, died->seed, 1, lua));
}

TEST_CASE("the copy without a bug keeps its promises in the focused profiles") {
    const auto number =
        GENERATE(Catch::Generators::range(std::size_t{0}, focused_profiles().size()));
    const profile& kind = focused_profiles()[number];
    constexpr std::uint64_t seeds = 120;
    lua_machine lua;
    figures sum;
    const auto broken = kill(nullptr, kind, 1, seeds, lua, &sum);
    INFO("simulate_variants --profile " << kind.name << " --seed " << (broken ? broken->seed : 0));
    INFO((broken ? broken->what.text : std::string()));
    CHECK_FALSE(broken);
    // A simulation in which nothing happens proves nothing.
    CHECK(sum.acquired > seeds);
    CHECK(
        std::ranges::any_of(sum.faults, [](std::uint64_t one) { return one > 0; })
        == (kind.name != "far-clocks"));
}

TEST_CASE("a variant is on only while it is wanted") {
    CHECK(variant::chosen_one == variant::none);
    {
        const switched_on on(find_variant("quorum-half"));
        CHECK(variant::on(variant::quorum_half));
        CHECK_FALSE(variant::on(variant::no_drift));
    }
    CHECK(variant::chosen_one == variant::none);
    CHECK(find_variant("no such thing") == nullptr);
    // What is wrong with the client is no edit of the engine.
    const switched_on on(find_variant("fewer-masters"));
    CHECK(variant::chosen_one == variant::none);
}
