// What stands in the place of an option that was not given: the environment, then a file.

#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace cli {

struct command_line;

/// Gives each option its value. Throws `failure`.
void resolve(command_line& into);

/// The command that was asked for, or the program itself.
CLI::App& asked_of(command_line& from);

/// "max-ttl"; empty for what is no option but a word.
std::string long_name(const CLI::Option& option);

/// The names of all commands.
std::vector<std::string> commands_of(const CLI::App& app);

/// "REDLOCK_MAX_TTL" of "max-ttl".
std::string variable_of(const std::string& option);

} // namespace cli
