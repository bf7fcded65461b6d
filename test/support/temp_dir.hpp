// The temporary directories of the testing kit.
#pragma once

#include "process/temp_dir.hpp"

namespace redlock::test {

using testing::process::temp_dir;

} // namespace redlock::test
