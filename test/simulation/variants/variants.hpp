// The known bugs of the protocol, and where each is known to die.

#pragma once

#include "../plan.hpp"

#include <span>

namespace simulation {

/// Servers execute something else in the script with that text.
struct script_change {
    std::string_view script;
    std::string_view right; // is in it once
    std::string_view instead;
};

struct variant {
    unsigned number = 0;
    std::string_view name;
    std::string_view profile;  // in which it is known to die
    std::uint64_t first = 0;   // seed
    std::uint64_t seeds = 0;   // within this number it must die
    bool* decision = nullptr;  // of lib/core that is taken the wrong way, or null
    std::string_view sentence; // what is wrong
    std::vector<script_change> changes{};
    mistake misuse = mistake::none; // of the simulated client
};

std::span<const variant> variants();

/// Null if there is none of that name.
const variant* find_variant(std::string_view name);

/// What servers execute for that script under this variant. Throws if it lacks what is to be
/// changed.
std::string executed(const variant& which, std::string_view script);

} // namespace simulation
