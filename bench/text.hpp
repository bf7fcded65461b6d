// The report on a terminal.
#pragma once

#include "result.hpp"

#include <string>

namespace bench {

// Returns two lines: the machine and the settings.
std::string heading_text(const report&);
// Returns one line per row, followed by its ratio, if any.
std::string table_text(const table&);
// Returns one line per target, with reached or MISSED.
std::string targets_text(const report&);

} // namespace bench
