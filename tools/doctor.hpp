// `redlock doctor`: finds what is wrong with a quorum, and says what to change.

#pragma once

namespace cli {

struct command_line;

void add_doctor(command_line& to);

} // namespace cli
