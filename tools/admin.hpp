// `redlock list` and `force-release`: for operators; no lock needs them.

#pragma once

namespace cli {

struct command_line;

void add_admin_commands(command_line& to);

} // namespace cli
