// `redlock doctor`: what is wrong with a quorum, and what to do about it.

#pragma once

namespace cli {

struct command_line;

void add_doctor(command_line& to);

} // namespace cli
