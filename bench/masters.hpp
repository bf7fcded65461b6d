// Real redis-servers for a benchmark run: N independent masters on free loopback ports, without
// persistence, that die with this process whatever ends it, and leave no file behind.
#pragma once

#include "load.hpp"

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

// Owns one process; kills and reaps it.
class child_process {
public:
    child_process(const std::vector<std::string>& words, const std::string& output_file);
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&& other) noexcept;
    ~child_process();

    pid_t id() const noexcept { return pid_; }
    // False once the process has ended.
    bool running() noexcept;
    void signal(int number) noexcept;
    void kill() noexcept;

private:
    pid_t pid_ = -1;
};

class masters {
public:
    // Starts `count` servers and returns when all of them answer. `program` is looked up in PATH.
    // Throws std::runtime_error with the server's own words when one does not start.
    explicit masters(std::size_t count, const std::string& program = "redis-server");

    const std::vector<address>& addresses() const noexcept { return addresses_; }

    // SIGKILL; the port refuses connections from then on.
    void kill(std::size_t index);
    // SIGSTOP: the master keeps its connections and says nothing. `resume` undoes it.
    void hang(std::size_t index);
    void resume(std::size_t index);

private:
    void start(std::size_t index, const std::string& program, const std::string& directory);

    std::vector<address> addresses_;
    std::vector<child_process> processes_;
};

} // namespace bench
