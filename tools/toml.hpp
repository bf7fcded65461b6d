// A configuration file: TOML, of which options need text, numbers, true, false and arrays of these.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cli {

/// `key = value` in `[section]`; an array has several values.
struct toml_entry {
    std::string section; ///< empty: before the first one
    std::string key;
    std::vector<std::string> values;
    std::size_t line = 0;
};

/// Returns the entries in the order of the file. Throws `std::invalid_argument` with the line and
/// the key, and never shows a value. (The option library also has a parser, which cuts off a
/// password at its `#`.)
std::vector<toml_entry> read_toml(const std::string& text);

} // namespace cli
