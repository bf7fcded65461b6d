// The report on a terminal.
#pragma once

#include "result.hpp"

#include <string>

namespace bench {

// Two lines that say where and how.
std::string heading_text(const report&);
// A line a row, and one below it where it is compared with another.
std::string table_text(const table&);
// A line a target, with reached or MISSED.
std::string targets_text(const report&);

} // namespace bench
