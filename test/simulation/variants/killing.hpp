// Runs a variant of the protocol until a promise breaks.

#pragma once

#include "../profiles.hpp"
#include "../world.hpp"
#include "core/variant.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace simulation {

namespace variant = redlock::core::variant;

/// Null if there is none of that name.
const variant::known* find_variant(std::string_view name);

/// While it lives, the variant is on.
class switched_on {
public:
    explicit switched_on(const variant::known* which) noexcept {
        variant::chosen_one = which == nullptr || which->misuse ? variant::none : which->id;
    }
    ~switched_on() { variant::chosen_one = variant::none; }
    switched_on(const switched_on&) = delete;
    switched_on& operator=(const switched_on&) = delete;
};

/// A plan, misused as the variant says. Without one, as it is.
plan plan_of(std::uint64_t seed, const profile& kind, const variant::known* which);

struct death {
    std::uint64_t seed = 0;
    std::uint64_t runs = 0;
    violation what;
};

/// Runs `seeds` seeds from `first` on. Without a variant: of the protocol as it should be.
std::optional<death> kill(
    const variant::known* which,
    const profile& kind,
    std::uint64_t first,
    std::uint64_t seeds,
    lua_machine& lua,
    figures* sum = nullptr);

} // namespace simulation
