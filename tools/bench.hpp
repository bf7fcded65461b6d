// bench: the quorum benchmark, a program of its own, on the tool's masters.

#pragma once

namespace cli {

struct command_line;

void add_bench(command_line& to);

} // namespace cli
