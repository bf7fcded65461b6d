// What is said of a command line that is not understood: the fault, and what was probably meant.

#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cli {

struct command_line;

inline constexpr std::string_view how_to_run =
    "; to run a command under a lock: redlock run RESOURCE -- COMMAND";

/// Describes an error of the option library in the style of all other errors.
std::string sentence_of(const CLI::Error& error);

/// Throws a `failure` for what the option library has refused.
[[noreturn]] void refuse(command_line& from, const CLI::ParseError& error);

/// Refuses a value that a flag cannot have, and an empty one after `=`.
void refuse_wrong_values(const CLI::App& app, const std::vector<std::string>& words);

/// Refuses an empty name of a file: a variable of the shell without a value, as in --config
/// "$FILE", must not mean the defaults.
void refuse_empty_names(const command_line& from);

} // namespace cli
