// `redlock local`: real masters on this machine while it runs.

#pragma once

namespace cli {

struct command_line;

void add_local(command_line& to);

} // namespace cli
