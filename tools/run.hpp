// `redlock run`: a command under the lock.

#pragma once

namespace cli {

struct command_line;

void add_run(command_line& to);

} // namespace cli
