// The real server that the simulated one is compared with.

#pragma once

#include "support/master_process.hpp"

#include <stdexcept>

namespace simulation {

/// Starts a server; empty if no server program is installed.
inline std::optional<redlock::test::master_process> start_master() {
    try {
        redlock::test::find_server_program();
    } catch (const std::runtime_error&) {
        return std::nullopt;
    }
    return std::optional<redlock::test::master_process>(std::in_place);
}

} // namespace simulation
