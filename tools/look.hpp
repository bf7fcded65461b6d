// `redlock status` and `watch`: who has a lock.

#pragma once

#include <redlock/diagnostics.hpp>

#include <string>

namespace cli {

struct command_line;

void add_look(command_line& to);

/// Some lines for people: the verdict, and what each master says.
std::string text_of(const std::string& resource, const redlock::lock_status& found);

/// free: `done`; held: `held`; neither: `undecided`.
int status_of(const redlock::lock_status& found);

} // namespace cli
