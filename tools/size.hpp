// `redlock size`: how many masters, and which times.

#pragma once

namespace cli {

struct command_line;

void add_size(command_line& to);

} // namespace cli
