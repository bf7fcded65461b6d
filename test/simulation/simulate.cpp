// simulate: runs seeds, or replays one.
//
//   simulate --seed 42 --profile network [--trace]
//   simulate --seeds 1..100000 --profile guarded-all --jobs 2
//   simulate --seeds 1..1000                    every profile in turn
//   simulate --seeds 1..3000 --digest           equal before and after a change: so is the wire

#include "profiles.hpp"
#include "world.hpp"

#include <CLI/CLI.hpp>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <mutex>
#include <thread>

namespace {

using namespace simulation;

struct options {
    std::string profile;
    std::uint64_t first = 1;
    std::uint64_t last = 0;
    unsigned jobs = 1;
    bool trace = false;
    bool keep_going = false;
    bool shrinks = true;
    bool digest = false;
    mistake wrong = mistake::none;
};

// Writes "FROM..TO" into the options.
std::string read_range(const std::string& text, options& out) {
    const std::size_t dots = text.find("..");
    const auto number = [](std::string_view digits, std::uint64_t& value) {
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return error == std::errc() && end == digits.data() + digits.size();
    };
    const std::string_view all = text;
    const bool good = dots != std::string::npos && number(all.substr(0, dots), out.first)
                      && number(all.substr(dots + 2), out.last) && out.first <= out.last;
    return good ? std::string() : "invalid range; write FROM..TO, for example 1..1000";
}

plan plan_for(std::uint64_t seed, const profile& kind, const options& chosen) {
    plan made = make_plan(seed, kind);
    make_mistake(made, chosen.wrong);
    return made;
}

void explain(const plan& failing, const options& chosen, lua_machine& lua) {
    outcome first = run(failing, lua);
    const plan smallest = chosen.shrinks ? shrink(failing, lua, first.broken->broken) : failing;
    const outcome again = run(smallest, lua, true);
    std::printf(
        "%s\n%s\nVIOLATION of %s at %.3f ms: %s\n(%s, from %zu elements of the plan to %zu; replay "
        "with --seed %llu --profile %s)\n",
        describe(smallest).c_str(),
        again.story.c_str(),
        std::string(to_string(again.broken->broken)).c_str(),
        static_cast<double>(again.broken->at) / static_cast<double>(ms),
        again.broken->text.c_str(),
        chosen.shrinks ? "shrunk" : "as planned",
        failing.size(),
        smallest.size(),
        static_cast<unsigned long long>(failing.seed),
        failing.profile.c_str());
}

class batch {
public:
    batch(std::vector<const profile*> kinds, const options& chosen)
        : kinds_(std::move(kinds)),
          chosen_(chosen),
          next_(chosen.first) {}

    // All seeds, then one line of figures and the first failures.
    int run_all() {
        std::vector<std::thread> threads;
        for (unsigned i = 1; i < chosen_.jobs; ++i) {
            threads.emplace_back([this] { work(); });
        }
        work();
        for (std::thread& one : threads) {
            one.join();
        }
        std::printf("%s\n", sum_.describe().c_str());
        if (chosen_.digest) {
            std::printf("  digest %016llx\n", static_cast<unsigned long long>(sum_.digest));
        }
        if (failures_.empty()) {
            return 0;
        }
        std::ranges::sort(failures_, {}, &failure::seed);
        constexpr std::size_t shown = 20;
        for (std::size_t i = 0; i < std::min(shown, failures_.size()); ++i) {
            const failure& one = failures_[i];
            std::printf(
                "seed %llu profile %s: %s: %s\n",
                static_cast<unsigned long long>(one.seed),
                std::string(one.kind->name).c_str(),
                std::string(to_string(one.what.broken)).c_str(),
                one.what.text.c_str());
        }
        lua_machine lua;
        const failure& first = failures_.front();
        explain(plan_for(first.seed, *first.kind, chosen_), chosen_, lua);
        return 1;
    }

private:
    struct failure {
        std::uint64_t seed;
        const profile* kind;
        violation what;
    };

    void work() {
        lua_machine lua;
        figures mine;
        while (!stop_) {
            const std::uint64_t seed = next_++;
            if (seed > chosen_.last) {
                break;
            }
            const profile& kind = *kinds_[seed % kinds_.size()];
            const outcome ended = run(plan_for(seed, kind, chosen_), lua);
            mine.add(ended.count);
            if (ended.broken) {
                const std::lock_guard lock(guard_);
                failures_.push_back({seed, &kind, *ended.broken});
                stop_ = !chosen_.keep_going;
            }
        }
        const std::lock_guard lock(guard_);
        sum_.add(mine);
    }

    std::vector<const profile*> kinds_;
    const options& chosen_;
    std::atomic<std::uint64_t> next_;
    std::atomic<bool> stop_ = false;
    std::mutex guard_;
    figures sum_;
    std::vector<failure> failures_;
};

int replay(std::uint64_t seed, const profile& kind, const options& chosen) {
    lua_machine lua;
    const plan what = plan_for(seed, kind, chosen);
    const outcome ended = run(what, lua, chosen.trace);
    if (chosen.trace) {
        std::printf("%s\n%s\n", describe(what).c_str(), ended.story.c_str());
    }
    std::printf("%s\n", ended.count.describe().c_str());
    if (ended.broken) {
        explain(what, chosen, lua);
        return 1;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    options chosen;
    CLI::App app("Simulates clients, masters and faults in virtual time.");
    std::uint64_t seed = 0;
    std::string range;
    std::string wrong;
    auto* const one = app.add_option("--seed", seed, "replay this seed");
    app.add_option("--seeds", range, "run the seeds FROM..TO")->excludes(one);
    app.add_option(
        "--profile",
        chosen.profile,
        "the profile of faults, or a prefix of several names; default: all in turn");
    app.add_option("--jobs", chosen.jobs, "threads")->check(CLI::Range(1U, 64U));
    app.add_flag(
        "--trace", chosen.trace, "print the timeline of --seed even if nothing is violated");
    app.add_flag("--keep-going", chosen.keep_going, "do not stop at the first violation");
    app.add_flag("!--no-shrink", chosen.shrinks, "do not shrink a failing plan");
    app.add_flag(
        "--digest",
        chosen.digest,
        "print a hash of all bytes that clients write and of all reports, with their times");
    app.add_option("--wrong", wrong, "make this mistake in the client, for example no-quarantine");
    bool list = false;
    app.add_flag("--list", list, "print the profiles");
    CLI11_PARSE(app, argc, argv);

    if (list) {
        for (const profile& kind : profiles()) {
            std::printf(
                "%-20s keeps %s\n",
                std::string(kind.name).c_str(),
                std::string(kind.keeps).c_str());
        }
        return 0;
    }
    for (std::size_t i = 0; !wrong.empty() && i <= mistakes; ++i) {
        if (i == mistakes) {
            std::fprintf(stderr, "unknown mistake '%s'\n", wrong.c_str());
            return 2;
        }
        chosen.wrong = static_cast<mistake>(i);
        if (to_string(chosen.wrong) == wrong) {
            break;
        }
    }
    std::vector<const profile*> kinds;
    if (const profile* const exact = find_profile(chosen.profile)) {
        kinds.push_back(exact);
    } else {
        for (const profile& kind : profiles()) {
            if (kind.name.starts_with(chosen.profile)) {
                kinds.push_back(&kind);
            }
        }
    }
    if (kinds.empty()) {
        std::fprintf(stderr, "unknown profile '%s'; see --list\n", chosen.profile.c_str());
        return 2;
    }
    if (range.empty()) {
        return replay(seed, *kinds[seed % kinds.size()], chosen);
    }
    if (const std::string problem = read_range(range, chosen); !problem.empty()) {
        std::fprintf(stderr, "%s\n", problem.c_str());
        return 2;
    }
    return batch(std::move(kinds), chosen).run_all();
}
