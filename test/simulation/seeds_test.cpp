// A fixed set of seeds of each profile; `simulate` runs as many as anybody wants.

#include "profiles.hpp"
#include "support/test.hpp"
#include "world.hpp"

#include <catch2/generators/catch_generators_range.hpp>

using namespace simulation;

TEST_CASE("no seed of any profile breaks a promise") {
    const auto number = GENERATE(Catch::Generators::range(std::size_t{0}, profiles().size()));
    const profile& kind = profiles()[number];
    constexpr std::uint64_t seeds = 40;
    lua_machine lua;
    figures sum;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const outcome ended = run(make_plan(seed, kind), lua, sum);
        INFO("simulate --seed " << seed << " --profile " << kind.name);
        if (ended.broken) {
            FAIL(to_string(ended.broken->broken) << ": " << ended.broken->text);
        }
    }
    INFO(kind.name << ": " << sum.describe());
    // A simulation in which nothing happens proves nothing.
    CHECK(sum.acquired > seeds);
    const plan sample = make_plan(1, kind);
    const bool long_leases =
        sample.prompt || sample.attempt_within != 0 || sample.passes != 0; // or short holds
    CHECK((sum.lost > 0 || long_leases));
    CHECK((sum.extended > 0 || long_leases));
    if (kind.speaks == mixture::guarded) {
        CHECK(sum.fenced > seeds);
        CHECK(sum.refused_writes > 0);
    }
}
