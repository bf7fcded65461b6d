// What states are called and how they are coloured.
#pragma once

#include "ledger.hpp"
#include "screen.hpp"

#include <redlock/diagnostics.hpp>
#include <redlock/metrics.hpp>

#include <string_view>

namespace redlock::soak {

// One character for a vote, and its colour.
char sign_of(vote what);
style colour_of(char sign);
inline constexpr std::string_view legend =
    "+ granted  # held  - absent  x unreachable  t timed out  q quarantined  . pending  "
    "? other owner  ! error";

style colour_of(master_state state);

// What a worker does after it has noted this.
std::string_view text_of(entry what);

} // namespace redlock::soak
