// `redlock members`: shows the members of a quorum, adds one or removes one.

#pragma once

#include <redlock/config.hpp>
#include <redlock/metrics.hpp>

#include <string>

namespace cli {

struct command_line;

/// The name of a master in the memory records.
std::string name_of(const redlock::endpoint& master);

/// A member whose record has newer members, of which this list has too few: its name, or empty.
std::string outdated_on(const redlock::health& now, const redlock::config& how);

void add_members_command(command_line& to);

} // namespace cli
