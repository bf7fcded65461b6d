// What states are called and how they are coloured.
#pragma once

#include "board.hpp"
#include "screen.hpp"

#include <redlock/redlock.hpp>

#include <string_view>

namespace demo {

style colour_of(redlock::master_state state);
std::string_view text_of(activity what);
std::string_view text_of(result what);

// One character for a vote.
struct mark {
    char sign;
    style look;
};
mark mark_of(redlock::vote vote);

} // namespace demo
