#include "figures.hpp"

#include "random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace simulation {

void figures::witness(nanos at, std::uint64_t origin, std::string_view what) noexcept {
    const auto mix = [this](std::uint64_t value) { digest = generator(digest ^ value).next(); };
    mix(static_cast<std::uint64_t>(at));
    mix(origin);
    mix(what.size());
    while (!what.empty()) {
        std::uint64_t word = 0;
        const std::size_t taken = std::min(what.size(), sizeof word);
        std::memcpy(&word, what.data(), taken);
        mix(word);
        what.remove_prefix(taken);
    }
}

void figures::add(const figures& more) noexcept {
    seeds += more.seeds;
    simulated += more.simulated;
    events += more.events;
    commands += more.commands;
    attempts += more.attempts;
    acquired += more.acquired;
    not_acquired += more.not_acquired;
    extended += more.extended;
    lost += more.lost;
    fenced += more.fenced;
    late_commands += more.late_commands;
    local_handoffs += more.local_handoffs;
    pushes += more.pushes;
    lost_pushes += more.lost_pushes;
    longest_wait = std::max(longest_wait, more.longest_wait);
    writes += more.writes;
    refused_writes += more.refused_writes;
    overlaps += more.overlaps;
    inversions += more.inversions;
    violations += more.violations;
    digest += more.digest; // the same for seeds in any order
    for (std::size_t i = 0; i < fault_kinds; ++i) {
        faults[i] += more.faults[i];
    }
}

std::string figures::describe() const {
    std::string out = fmt::format(
        "{} seeds, {:.2f} simulated hours, {} commands ({} late)\n"
        "  {} attempts: {} acquired ({} with a fencing token, {} by local handoff), {} not "
        "acquired\n"
        "  {} extended, {} lost; {} notifications ({} lost)\n"
        "  last locks within {} ms; {} writes, {} refused\n"
        "  faults:",
        seeds,
        static_cast<double>(simulated) / (3600.0 * static_cast<double>(sec)),
        commands,
        late_commands,
        attempts,
        acquired,
        fenced,
        local_handoffs,
        not_acquired,
        extended,
        lost,
        pushes,
        lost_pushes,
        longest_wait / ms,
        writes,
        refused_writes);
    for (std::size_t i = 0; i < fault_kinds; ++i) {
        if (faults[i] != 0) {
            out += fmt::format(" {} {}", to_string(static_cast<fault_kind>(i)), faults[i]);
        }
    }
    return out
           + fmt::format(
               "\n  {} overlaps, {} inversions, {} violations", overlaps, inversions, violations);
}

} // namespace simulation
