#include "killing.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace simulation {

namespace {

mistake mistake_of(const variant::known& which) {
    for (std::size_t i = 0; i < mistakes; ++i) {
        if (to_string(static_cast<mistake>(i)) == which.text) {
            return static_cast<mistake>(i);
        }
    }
    throw std::logic_error("the simulator has no mistake called " + std::string(which.text));
}

} // namespace

const variant::known* find_variant(std::string_view name) {
    const auto* const found = std::ranges::find(variant::all, name, &variant::known::text);
    return found == std::end(variant::all) ? nullptr : found;
}

plan plan_of(std::uint64_t seed, const profile& kind, const variant::known* which) {
    plan made = make_plan(seed, kind);
    if (which != nullptr && which->misuse) {
        make_mistake(made, mistake_of(*which));
    }
    return made;
}

std::optional<death> kill(
    const variant::known* which,
    const profile& kind,
    std::uint64_t first,
    std::uint64_t seeds,
    lua_machine& lua,
    figures* sum) {
    const switched_on on(which);
    for (std::uint64_t run_already = 0; run_already < seeds; ++run_already) {
        const std::uint64_t seed = first + run_already;
        const outcome ended = run(plan_of(seed, kind, which), lua);
        if (sum != nullptr) {
            sum->add(ended.count);
        }
        if (ended.broken) {
            return death{seed, run_already + 1, *ended.broken};
        }
    }
    return std::nullopt;
}

} // namespace simulation
