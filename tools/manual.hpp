// `redlock man`: made from the descriptions of the options, so that it cannot be out of date.

#pragma once

namespace cli {

struct command_line;

void add_manual(command_line& to);

} // namespace cli
