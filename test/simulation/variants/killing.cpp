#include "killing.hpp"

#include <stdexcept>

namespace simulation {

namespace {

mistake mistake_of(const variant& which) {
    for (std::size_t i = 0; i < mistakes; ++i) {
        if (to_string(static_cast<mistake>(i)) == which.name) {
            return static_cast<mistake>(i);
        }
    }
    throw std::logic_error("unknown mistake " + std::string(which.name));
}

} // namespace

lua_machine lua_of(const variant* which) {
    if (which == nullptr) {
        return lua_machine();
    }
    return lua_machine([which](std::string_view script) { return executed(*which, script); });
}

plan plan_of(std::uint64_t seed, const profile& kind, const variant* which) {
    plan made = make_plan(seed, kind);
    if (which != nullptr && which->misuse()) {
        make_mistake(made, mistake_of(*which));
    }
    return made;
}

std::optional<death> kill(
    const variant* which,
    const profile& kind,
    std::uint64_t first,
    std::uint64_t seeds,
    figures* sum) {
    const switched_on on(which);
    lua_machine lua = lua_of(which);
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
