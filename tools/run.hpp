// `redlock run` and `attach`: a command under the lock.

#pragma once

#include "settings.hpp"

#include <string>
#include <vector>

namespace cli {

struct command_line;

struct run_options {
    lock_wishes lock;
    milliseconds grace{0}; // 0: follows from the ttl
    milliseconds max_hold{0};
    milliseconds at_least{0};
    bool leave_daemons = false;
    std::string token; // attach: of the lock that is there already
    bool keep = false; // attach: and that stays afterwards
};

/// The status to end with.
int run_under_lock(
    run_options options, redlock::config configuration, std::vector<std::string> command);

void add_run(command_line& to);

} // namespace cli
