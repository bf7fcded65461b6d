// simulate_variants: the simulator with the known bugs of the protocol, which it must find.
//
//   simulate_variants --kill                      all of them, where they are known to die
//   simulate_variants --kill --variant no-drift --profile all --seeds 5000
//   simulate_variants --variant no-drift --profile clocks --seed 42 [--trace]
//   simulate_variants --list-variants

#include "focused.hpp"
#include "killing.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>

namespace {

using namespace simulation;

std::string text_of(std::string_view text) {
    return std::string(text);
}

int list() {
    for (const variant& one : variants()) {
        std::printf(
            "%2u %-28s %s%s\n",
            one.number,
            text_of(one.name).c_str(),
            text_of(one.sentence).c_str(),
            one.misuse() ? " (misuse)" : "");
    }
    return 0;
}

struct hunt {
    const variant* only = nullptr;
    const profile* in = nullptr; // else where it is known to die
    std::uint64_t first = 0;     // else from where that is
    std::uint64_t seeds = 0;     // else as many as that takes
};

// A line of the table that the documentation shows. True if it died.
bool kill_one(const variant& which, const hunt& how) {
    const profile* const kind = how.in != nullptr ? how.in : find_any_profile(which.profile);
    if (kind == nullptr) {
        std::printf("| %u | %s | unknown profile |\n", which.number, text_of(which.name).c_str());
        return false;
    }
    const auto began = std::chrono::steady_clock::now();
    const auto died = kill(
        &which,
        *kind,
        how.first != 0 ? how.first : which.first,
        how.seeds != 0 ? how.seeds : which.seeds);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const std::string name = text_of(which.name);
    const std::string profile = text_of(kind->name);
    if (died) {
        std::printf(
            "| %u | %s | %s | killed | %s | %llu | %llu | %.2f |\n",
            which.number,
            name.c_str(),
            profile.c_str(),
            text_of(to_string(died->what.broken)).c_str(),
            static_cast<unsigned long long>(died->runs),
            static_cast<unsigned long long>(died->seed),
            took.count());
    } else {
        std::printf(
            "| %u | %s | %s | SURVIVED | | %llu | | %.2f |\n",
            which.number,
            name.c_str(),
            profile.c_str(),
            static_cast<unsigned long long>(how.seeds != 0 ? how.seeds : which.seeds),
            took.count());
    }
    std::fflush(stdout);
    return died.has_value();
}

int kill_all(const hunt& how) {
    bool all_died = true;
    std::printf("| # | variant | profile | result | broken promise | seeds | last seed | s |\n");
    std::printf("|---|---|---|---|---|---|---|---|\n");
    for (const variant& one : variants()) {
        if (how.only == nullptr || how.only == &one) {
            all_died = kill_one(one, how) && all_died;
        }
    }
    return all_died ? 0 : 1;
}

// Prints what `simulate` prints, so that the two can be compared.
int replay(std::uint64_t seed, const profile& kind, const variant* which, bool trace) {
    const switched_on on(which);
    lua_machine lua = lua_of(which);
    const plan what = plan_of(seed, kind, which);
    const outcome ended = run(what, lua, trace);
    if (trace) {
        std::printf("%s\n%s\n", describe(what).c_str(), ended.story.c_str());
    }
    std::printf("%s\n", ended.count.describe().c_str());
    if (!ended.broken) {
        return 0;
    }
    const plan smallest = shrink(what, lua, ended.broken->broken);
    const outcome again = run(smallest, lua, true);
    std::printf(
        "%s\n%s\nVIOLATION of %s: %s\n",
        describe(smallest).c_str(),
        again.story.c_str(),
        text_of(to_string(again.broken->broken)).c_str(),
        again.broken->text.c_str());
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app("Simulates the protocol with known bugs.");
    std::string variant_name;
    std::string profile_name;
    std::uint64_t seed = 0;
    hunt how;
    bool lists = false;
    bool kills = false;
    bool trace = false;
    app.add_flag("--list-variants", lists, "print the names of the variants");
    app.add_flag("--kill", kills, "run each until it breaks a promise, and print a table");
    app.add_option(
        "--variant",
        variant_name,
        "only this one; default: all with --kill, else the right protocol");
    app.add_option(
        "--profile", profile_name, "profile of faults; default with --kill: the one that kills it");
    app.add_option("--seed", seed, "replay this seed; with --kill or --seeds: begin with it");
    app.add_option(
        "--seeds", how.seeds, "number of seeds; default with --kill: the bound of the variant");
    app.add_flag("--trace", trace, "print the timeline even if nothing is violated");
    CLI11_PARSE(app, argc, argv);

    if (lists) {
        return list();
    }
    how.only = find_variant(variant_name);
    if (!variant_name.empty() && how.only == nullptr) {
        std::fprintf(stderr, "unknown variant '%s'; see --list-variants\n", variant_name.c_str());
        return 2;
    }
    how.in = find_any_profile(profile_name);
    if (!profile_name.empty() && how.in == nullptr) {
        std::fprintf(stderr, "unknown profile '%s'\n", profile_name.c_str());
        return 2;
    }
    if (kills) {
        how.first = seed;
        return kill_all(how);
    }
    if (how.in == nullptr) {
        std::fprintf(stderr, "no profile given; write --profile NAME\n");
        return 2;
    }
    if (how.seeds == 0) {
        return replay(seed, *how.in, how.only, trace);
    }
    figures sum;
    const auto died = kill(how.only, *how.in, seed, how.seeds, &sum);
    std::printf("%s\n", sum.describe().c_str());
    if (died) {
        std::printf(
            "seed %llu: %s: %s\n",
            static_cast<unsigned long long>(died->seed),
            text_of(to_string(died->what.broken)).c_str(),
            died->what.text.c_str());
    }
    return died ? 1 : 0;
}
