// Fault profiles: the kinds of faults that a seed is turned into, and which of the assumptions of
// docs/guarantees.md each keeps.

#pragma once

#include "plan.hpp"

#include <span>

namespace simulation {

/// Which clients use which protocol on the same resources.
enum class mixture : std::uint8_t { plain, guarded, mixed };

struct profile {
    std::string_view name;
    mixture speaks = mixture::plain;
    std::string_view keeps; // which assumptions, in words
    void (*add_faults)(struct draft&) = nullptr;
};

/// All of them: "calm", "network", ... in the plain protocol, "guarded-calm" ... in the guarded
/// one, "mixed-calm" ... with clients of both.
std::span<const profile> profiles();

/// Returns null for an unknown name.
const profile* find_profile(std::string_view name);

plan make_plan(std::uint64_t seed, const profile& kind);

} // namespace simulation
