// Values for options that were not given: the environment, then a file.

#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace cli {

struct command_line;

/// Gives each option its value. Throws `failure`.
void resolve(command_line& into);

/// The requested command, or the program itself.
CLI::App& asked_of(command_line& from);

/// Returns "max-ttl"; empty for a positional argument.
std::string long_name(const CLI::Option& option);

/// Returns the names of all commands.
std::vector<std::string> commands_of(const CLI::App& app);

/// Returns "REDLOCK_MAX_TTL" for "max-ttl".
std::string variable_of(const std::string& option);

} // namespace cli
