// `redlock members`: shows and changes the members of a quorum.

#pragma once

#include <redlock/config.hpp>
#include <redlock/metrics.hpp>

#include <string>

namespace cli {

struct command_line;

/// The name of a master in the memory records.
std::string name_of(const redlock::endpoint& master);

bool is_member(const redlock::health& now, const std::string& name);

/// A member whose record has newer members, of which this list has too few: its name, or empty.
std::string outdated_on(const redlock::health& now, const redlock::config& how);

void add_members_command(command_line& to);

} // namespace cli
