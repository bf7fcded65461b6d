// `redlock status` and `watch`: show the holder of a lock.

#pragma once

#include <redlock/diagnostics.hpp>

#include <string>

namespace cli {

struct command_line;

void add_status_commands(command_line& to);

/// Lines for people: the verdict, and the reply of each master.
std::string text_of(const std::string& resource, const redlock::lock_status& found);

/// free: `done`; held: `held`; neither: `undecided`.
int status_of(const redlock::lock_status& found);

} // namespace cli
