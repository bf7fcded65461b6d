// A second process of this program, because a handoff between processes needs two. Tasks and
// results are lines.
#pragma once

#include "wire.hpp"

#include <sys/types.h>

#include <chrono>
#include <string>

namespace bench {

// The first argument of such a process; the second is the worker's name.
inline constexpr const char* worker_option = "--worker";

class worker_process {
public:
    // Starts this program again. Files that are not closed on exec are open in it as well.
    explicit worker_process(const std::string& name);
    worker_process(worker_process&& other) noexcept;
    worker_process& operator=(worker_process&&) = delete;
    // Kills it if it runs.
    ~worker_process();

    // Both throw std::runtime_error if the worker has ended, the second also if the worker does
    // not reply in time.
    void write_line(const std::string& text);
    std::string read_line(std::chrono::milliseconds limit);

private:
    pid_t pid_ = -1;
    descriptor line_;
    std::string received_;
};

} // namespace bench
