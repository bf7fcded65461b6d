// simulate: runs seeds, or replays one.
//
//   simulate --seed 42 --profile network --trace
//   simulate --seeds 1..100000 --profile guarded-all
//   simulate --seeds 1..1000                    every profile in turn
//   simulate --seeds 1..3000 --digest           equal before and after a change: so is the wire

#include "variants/focused.hpp"
#include "world.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <sstream>

namespace {

using namespace simulation;

struct seed_range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
};

// FROM..TO
std::optional<seed_range> read_range(const std::string& text) {
    std::istringstream in(text);
    seed_range out;
    std::array<char, 2> dots{};
    in >> out.first >> dots[0] >> dots[1] >> out.last;
    const bool good = in && in.eof() && dots == std::array{'.', '.'} && out.first <= out.last;
    return good ? std::optional(out) : std::nullopt;
}

// The one of this name, or those of the simulator's own whose name begins so.
std::vector<const profile*> profiles_of(std::string_view name) {
    if (const profile* const exact = find_any_profile(name)) {
        return {exact};
    }
    std::vector<const profile*> found;
    for (const profile& kind : profiles()) {
        if (kind.name.starts_with(name)) {
            found.push_back(&kind);
        }
    }
    return found;
}

} // namespace

int main(int argc, char** argv) {
    CLI::App app("Simulates clients, masters and faults in virtual time.");
    seed_range seeds;
    std::string range;
    std::vector<std::string> names{""};
    bool trace = false;
    bool brief = false;
    bool digest = false;
    bool list = false;
    auto* const one = app.add_option("--seed", seeds.first, "replay this seed");
    app.add_option("--seeds", range, "run the seeds FROM..TO")->excludes(one);
    app.add_option(
        "--profile", names, "profiles of faults, or prefixes of several; default: all in turn");
    app.add_flag("--trace", trace, "print the plans and timelines even if nothing is violated");
    app.add_flag(
        "--brief", brief, "print a violation in one line, as the last, and shrink nothing");
    app.add_flag(
        "--digest",
        digest,
        "print a hash of all bytes that clients write and of all reports, with their times");
    app.add_flag("--list", list, "print the profiles");
    CLI11_PARSE(app, argc, argv);

    if (list) {
        for (const auto all : {focused_profiles(), profiles()}) {
            for (const profile& kind : all) {
                fmt::print("{:20} keeps {}\n", kind.name, kind.keeps);
            }
        }
        return 0;
    }
    seeds.last = seeds.first;
    const auto wanted = range.empty() ? std::optional(seeds) : read_range(range);
    if (!wanted) {
        fmt::print(stderr, "invalid range '{}'; write FROM..TO, for example 1..1000\n", range);
        return 2;
    }
    std::vector<const profile*> kinds;
    for (const std::string& name : names) {
        const std::vector<const profile*> found = profiles_of(name);
        if (found.empty()) {
            fmt::print(stderr, "unknown profile '{}'; see --list\n", name);
            return 2;
        }
        kinds.insert(kinds.end(), found.begin(), found.end());
    }
    lua_machine lua;
    figures sum;
    std::string explained;
    for (std::uint64_t seed = wanted->first; seed <= wanted->last && explained.empty(); ++seed) {
        const profile& kind = *kinds[seed % kinds.size()];
        const plan what = make_plan(seed, kind);
        const outcome ended = run(what, lua, sum, trace);
        if (trace) {
            fmt::print("{}\n{}\n", describe(what), ended.story);
        }
        if (ended.broken) {
            const auto& [broken, at, text] = *ended.broken;
            explained =
                brief ? fmt::format("{} {}: {}: {}\n", kind.name, seed, to_string(broken), text)
                      : explain(what, lua);
        }
    }
    fmt::print("{}\n", sum.describe());
    if (digest) {
        fmt::print("  digest {:016x}\n", sum.digest);
    }
    fmt::print("{}", explained);
    return explained.empty() ? 0 : 1;
}
