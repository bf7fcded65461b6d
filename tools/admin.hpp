// `redlock list` and `force-release`: for operators; no lock needs them.

#pragma once

#include <redlock/config.hpp>

#include <string>

namespace cli {

struct command_line;

void add_admin_commands(command_line& to);

/// The key of the lock of a resource.
std::string key_of(const redlock::config& how, const std::string& resource);

} // namespace cli
