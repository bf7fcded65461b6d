// simulate: runs seeds, or replays one.
//
//   simulate --seed 42 --profile network --trace
//   simulate --seeds 1..100000 --profile guarded-all
//   simulate --seeds 1..1000                    every profile in turn
//   simulate --seeds 1..3000 --digest           equal before and after a change: so is the wire

#include "profiles.hpp"
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

// Those whose name begins so. Of an exact name that one.
std::vector<const profile*> profiles_of(std::string_view name) {
    std::vector<const profile*> found;
    for (const profile& kind : profiles()) {
        if (kind.name == name) {
            return {&kind};
        }
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
    std::string name;
    bool trace = false;
    bool digest = false;
    bool list = false;
    auto* const one = app.add_option("--seed", seeds.first, "replay this seed");
    app.add_option("--seeds", range, "run the seeds FROM..TO")->excludes(one);
    app.add_option(
        "--profile", name, "profile of faults, or a prefix of several; default: all in turn");
    app.add_flag("--trace", trace, "print the plans and timelines even if nothing is violated");
    app.add_flag(
        "--digest",
        digest,
        "print a hash of all bytes that clients write and of all reports, with their times");
    app.add_flag("--list", list, "print the profiles");
    CLI11_PARSE(app, argc, argv);

    if (list) {
        for (const profile& kind : profiles()) {
            fmt::print("{:20} keeps {}\n", kind.name, kind.keeps);
        }
        return 0;
    }
    seeds.last = seeds.first;
    const auto wanted = range.empty() ? std::optional(seeds) : read_range(range);
    const std::vector<const profile*> kinds = profiles_of(name);
    if (!wanted || kinds.empty()) {
        fmt::print(
            stderr,
            "{}\n",
            wanted ? "unknown profile '" + name + "'; see --list"
                   : "invalid range '" + range + "'; write FROM..TO, for example 1..1000");
        return 2;
    }
    lua_machine lua;
    figures sum;
    std::string explained;
    for (std::uint64_t seed = wanted->first; seed <= wanted->last && explained.empty(); ++seed) {
        const plan what = make_plan(seed, *kinds[seed % kinds.size()]);
        const outcome ended = run(what, lua, sum, trace);
        if (trace) {
            fmt::print("{}\n{}\n", describe(what), ended.story);
        }
        if (ended.broken) {
            explained = explain(what, lua);
        }
    }
    fmt::print("{}\n", sum.describe());
    if (digest) {
        fmt::print("  digest {:016x}\n", sum.digest);
    }
    fmt::print("{}", explained);
    return explained.empty() ? 0 : 1;
}
