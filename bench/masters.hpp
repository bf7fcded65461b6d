// Real redis-servers for a benchmark run: N independent masters on free loopback ports, without
// persistence. They end with this process however it ends, and their files are removed.
#pragma once

#include "load.hpp"
#include "process/master_process.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

class masters {
public:
    // Starts `count` servers and returns when all of them answer. `program` is looked up in PATH.
    // Throws std::runtime_error with the server's log if one does not start.
    explicit masters(std::size_t count, const std::string& program = "redis-server")
        : servers_(redlock::testing::process::start_masters(count, options_for(program))) {
        for (redlock::testing::process::master_process& one : servers_) {
            addresses_.push_back({"127.0.0.1", one.port()});
            one.remove_files();
        }
    }

    const std::vector<address>& addresses() const noexcept { return addresses_; }

    // SIGKILL; the port refuses connections from then on.
    void kill(std::size_t index) { servers_.at(index).kill(); }
    // SIGSTOP: the master keeps its connections and does not reply. `resume` undoes it.
    void hang(std::size_t index) { servers_.at(index).hang(); }
    void resume(std::size_t index) { servers_.at(index).resume(); }

private:
    static redlock::testing::process::master_options options_for(const std::string& program) {
        redlock::testing::process::master_options how;
        how.program = program;
        return how;
    }

    std::vector<address> addresses_;
    std::vector<redlock::testing::process::master_process> servers_;
};

} // namespace bench
