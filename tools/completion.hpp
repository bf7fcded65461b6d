// `redlock completion` and `redlock man`: what shells and man(1) need to know, from the description
// of the options itself, so that neither can be out of date.

#pragma once

namespace cli {

struct command_line;

void add_completion(command_line& to);

} // namespace cli
