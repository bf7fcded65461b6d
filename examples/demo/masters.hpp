// Real redis-servers on free loopback ports, to be killed, hung and brought back.
#pragma once

#include "process/master_process.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace demo {

class masters {
public:
    // Starts `count` servers without persistence and returns when all reply. Their files are
    // removed. Throws std::runtime_error with the server's own text if one does not start. The
    // environment variable REDLOCK_REDIS_SERVER selects another server than the redis-server in
    // PATH.
    explicit masters(std::size_t count);

    std::size_t size() const noexcept { return servers_.size(); }
    std::vector<std::string> urls() const;

    // A crash: SIGKILL. The port refuses connections from then on.
    void kill(std::size_t index) noexcept { servers_.at(index).kill(); }
    // A hang: SIGSTOP. The connections stay open, and nothing is answered. False if it had ended.
    bool hang(std::size_t index);
    void resume(std::size_t index);
    // Starts a killed one again, on the same port and with no memory. It may not run afterwards:
    // another process may have taken its port.
    void restart(std::size_t index);
    bool running(std::size_t index) noexcept { return servers_.at(index).running(); }

private:
    std::vector<redlock::testing::process::master_process> servers_;
};

// The masters' short names: A, B, C, ...
inline char master_name(std::size_t index) noexcept {
    return static_cast<char>('A' + index);
}

} // namespace demo
