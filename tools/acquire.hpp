// `redlock acquire`, `extend` and `release`: a lock that outlives the process, by its token.

#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace cli {

struct command_line;

void add_acquire_commands(command_line& to);

/// --token.
void add_token(CLI::App& app, std::string& into);
/// Throws `failure` if the token is missing or malformed; never shows it.
void require_token(const std::string& token);

} // namespace cli
