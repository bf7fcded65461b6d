// The child processes of the testing kit.
#pragma once

#include "process/child_process.hpp"

namespace redlock::test {

using testing::process::child_process;
using testing::process::find_program;

} // namespace redlock::test
