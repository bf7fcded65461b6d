// Real redis-servers on free loopback ports, to be killed, hung and brought back.
#pragma once

#include "child.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace demo {

class masters {
public:
    // Starts `count` servers without persistence and returns when all accept connections. They
    // leave no file behind: each lives in a directory that is removed before the server starts.
    // Throws std::runtime_error with the server's own words if one does not start. Another server
    // than the redis-server in the path: the environment variable REDLOCK_REDIS_SERVER.
    explicit masters(std::size_t count);

    std::size_t size() const noexcept { return servers_.size(); }
    std::vector<std::string> urls() const;

    // A crash: SIGKILL. The port refuses connections from then on.
    void kill(std::size_t index) noexcept { servers_.at(index).process.kill(); }
    // A hang: SIGSTOP. The connections stay open, and nothing is answered.
    bool hang(std::size_t index) noexcept { return servers_.at(index).process.stop(); }
    void resume(std::size_t index) noexcept { servers_.at(index).process.resume(); }
    // Starts a killed one again, on the same port and with no memory. Does not wait until it is up.
    void restart(std::size_t index);
    bool running(std::size_t index) noexcept { return servers_.at(index).process.running(); }

private:
    struct file_closer {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };
    struct server {
        std::uint16_t port = 0;
        std::unique_ptr<std::FILE, file_closer> output; // has no name, so nobody must remove it
        child process;
    };

    static server launch(std::uint16_t port);
    static bool wait_until_up(server&);
    static std::string said_by(const server&);

    std::vector<server> servers_;
};

// The masters' short names: A, B, C, ...
inline char master_name(std::size_t index) noexcept {
    return static_cast<char>('A' + index);
}

} // namespace demo
