// `redlock members`: shows and changes the members of a quorum.

#pragma once

#include "manager/member_change.hpp"

namespace cli {

struct command_line;

using redlock::detail::member_name;
using redlock::detail::outdated_on;

void add_members_command(command_line& to);

} // namespace cli
