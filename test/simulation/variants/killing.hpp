// Runs a variant of the protocol until a promise breaks.

#pragma once

#include "../profiles.hpp"
#include "../world.hpp"
#include "variants.hpp"

namespace simulation {

/// While it lives, the variant is on.
class switched_on {
public:
    explicit switched_on(const variant& which) noexcept : decision_(which.decision) { set(true); }
    ~switched_on() { set(false); }
    switched_on(const switched_on&) = delete;
    switched_on& operator=(const switched_on&) = delete;

private:
    void set(bool on) noexcept {
        if (decision_ != nullptr) {
            *decision_ = on;
        }
    }

    bool* decision_;
};

/// The protocol as it should be.
inline const variant right_one{};

/// What executes scripts as the variant says.
inline lua_machine lua_of(const variant& which) {
    return lua_machine([&which](std::string_view script) { return executed(which, script); });
}

/// A plan, misused as the variant says.
inline plan plan_of(std::uint64_t seed, const profile& kind, const variant& which) {
    plan made = make_plan(seed, kind);
    make_mistake(made, which.misuse);
    return made;
}

struct hunt {
    std::optional<violation> broken; // by the last seed
    std::uint64_t seed = 0;
    figures sum; // also of the seeds before it
};

/// Runs `seeds` seeds from `first` on.
inline hunt
kill(const variant& which, const profile& kind, std::uint64_t first, std::uint64_t seeds) {
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
