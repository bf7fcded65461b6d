// `redlock list` and `force-release`: what no lock needs and an operator does.

#pragma once

namespace cli {

struct command_line;

void add_keys(command_line& to);

} // namespace cli
