// Processes, ports, directories and the blocking client of the testing kit.
#pragma once

#include "process/child_process.hpp"
#include "process/free_port.hpp"
#include "process/resp_text.hpp"
#include "process/temp_dir.hpp"

namespace redlock::test {

using testing::process::child_process;
using testing::process::find_program;
using testing::process::free_port;
using testing::process::read_text;
using testing::process::resp_client;
using testing::process::temp_dir;

struct ended_program {
    int status = 0;
    std::string text;
};

/// Runs a program to its end. What it prints is written into a file of that directory.
inline ended_program
run_program(const std::vector<std::string>& argv, const std::filesystem::path& dir) {
    const std::filesystem::path output = dir / "output";
    std::filesystem::remove(output);
    const int status = child_process(argv, output).wait();
    return {status, read_text(output)};
}

} // namespace redlock::test
