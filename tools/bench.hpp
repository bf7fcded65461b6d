// bench: runs the benchmark, a separate program, on the tool's masters.

#pragma once

namespace cli {

struct command_line;

void add_bench(command_line& to);

} // namespace cli
