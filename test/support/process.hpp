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
using testing::process::resp_client;
using testing::process::resp_text;
using testing::process::temp_dir;

} // namespace redlock::test
