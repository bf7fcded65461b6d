// simulate_variants: the simulator with the known bugs of the protocol, which it must find.
//
//   simulate_variants --kill                      all of them, where they are known to die
//   simulate_variants --kill --variant no-drift --profile all --seeds 5000
//   simulate_variants --variant no-drift --profile clocks --seed 42      one seed, as a timeline

#include "focused.hpp"
#include "killing.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>

namespace {

using namespace simulation;

// A line of a table. True if it died.
bool kill_one(const variant& which, const profile& kind, std::uint64_t first, std::uint64_t seeds) {
    const hunt ended = kill(which, kind, first, seeds);
    fmt::print(
        "| {} | {} | {} | {} | {} | {} |\n",
        which.number,
        which.name,
        kind.name,
        ended.broken ? to_string(ended.broken->broken) : "SURVIVED",
        ended.sum.seeds,
        ended.seed);
    std::fflush(stdout);
    return ended.broken.has_value();
}

void replay(std::uint64_t seed, const profile& kind, const variant& which) {
    const switched_on on(which);
    lua_machine lua = lua_of(which);
    const plan what = plan_of(seed, kind, which);
    const outcome ended = run(what, lua, true);
    fmt::print("{}\n{}\n", describe(what), ended.story);
    if (ended.broken) {
        fmt::print("{}", explain(what, lua));
    }
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app("Simulates the protocol with known bugs.");
    std::string variant_name;
    std::string profile_name;
    std::uint64_t seed = 0;
    std::uint64_t seeds = 0;
    bool kills = false;
    app.add_flag("--kill", kills, "run each until it breaks a promise, and print a table");
    app.add_option(
        "--variant",
        variant_name,
        "only this one; default: all with --kill, else the right protocol");
    app.add_option(
        "--profile", profile_name, "profile of faults; default with --kill: the one that kills it");
    app.add_option("--seed", seed, "replay this seed; with --kill: begin with it");
    app.add_option("--seeds", seeds, "with --kill: number of seeds; default: the variant's bound");
    CLI11_PARSE(app, argc, argv);

    const variant* const only = find_variant(variant_name);
    const profile* const in = find_any_profile(profile_name);
    if ((only == nullptr && !variant_name.empty()) || (in == nullptr && !profile_name.empty())
        || (in == nullptr && !kills)) {
        fmt::print(stderr, "unknown variant or profile\n");
        return 2;
    }
    if (!kills) {
        replay(seed, *in, only != nullptr ? *only : right_one);
        return 0;
    }
    bool all_died = true;
    fmt::print("| # | variant | profile | broken promise | seeds | last seed |\n");
    fmt::print("|---|---|---|---|---|---|\n");
    for (const variant& one : variants()) {
        if (only == nullptr || only == &one) {
            all_died &= kill_one(
                one,
                in != nullptr ? *in : *find_any_profile(one.profile),
                seed != 0 ? seed : one.first,
                seeds != 0 ? seeds : one.seeds);
        }
    }
    return all_died ? 0 : 1;
}
