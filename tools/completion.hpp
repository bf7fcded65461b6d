// `redlock completion` and `redlock man`: made from the descriptions of the options, so that
// neither can be out of date.

#pragma once

namespace cli {

struct command_line;

void add_completion(command_line& to);

} // namespace cli
