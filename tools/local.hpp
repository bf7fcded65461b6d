// `redlock local`: real masters on this machine while it runs.

#pragma once

#include <string>

namespace cli {

struct command_line;

void add_local(command_line& to);

/// Returns REDLOCK_REDIS_SERVER, or redis-server or valkey-server from PATH. Throws.
std::string server_program();

} // namespace cli
