// Plans that are aimed at one bug each, where chance would take too long. The correct protocol
// survives them as well.

#pragma once

#include "../profiles.hpp"

namespace simulation {

std::span<const profile> focused_profiles();

/// Among these and the simulator's own. Null if there is none of that name.
const profile* find_any_profile(std::string_view name);

} // namespace simulation
