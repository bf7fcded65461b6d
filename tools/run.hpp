// `redlock run` and `attach`: a command under a lock.

#pragma once

#include "settings.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace cli {

struct command_line;

struct run_options {
    lock_wishes lock;
    milliseconds grace{0};       // 0: follows from the ttl
    milliseconds kill_margin{0}; // 0: follows from the ttl
    milliseconds max_hold{0};
    milliseconds at_least{0};
    bool leave_daemons = false;
    std::size_t slots = 0; // 0: a lock, else the number of slots
    bool shared = false;
    bool exclusive = false;
    std::string token; // attach: token of the existing lock
    bool keep = false; // attach: keep the lock afterwards
};

/// The result.
struct run_end {
    int status = 0;    ///< exit status of the tool
    bool lost = false; ///< the lock was lost while the command ran, and no signal asked us to end
};

run_end run_under_lock(
    run_options options, redlock::config configuration, std::vector<std::string> command);

void add_run(command_line& to);

} // namespace cli
