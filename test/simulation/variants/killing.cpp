#include "killing.hpp"

namespace simulation {

lua_machine lua_of(const variant& which) {
    return lua_machine([&which](std::string_view script) { return executed(which, script); });
}

plan plan_of(std::uint64_t seed, const profile& kind, const variant& which) {
    plan made = make_plan(seed, kind);
    make_mistake(made, which.misuse);
    return made;
}

hunt kill(const variant& which, const profile& kind, std::uint64_t first, std::uint64_t seeds) {
    const switched_on on(which);
    lua_machine lua = lua_of(which);
    hunt found;
    for (std::uint64_t seed = first; seed < first + seeds && !found.broken; ++seed) {
        found.seed = seed;
        found.broken = run(plan_of(seed, kind, which), lua, found.sum).broken;
    }
    return found;
}

} // namespace simulation
