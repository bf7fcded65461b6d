// The ports of the testing kit.
#pragma once

#include "process/free_port.hpp"

namespace redlock::test {

using testing::process::free_port;

} // namespace redlock::test
