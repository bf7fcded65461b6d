// The blocking client of the testing kit.
#pragma once

#include "process/resp_text.hpp"

namespace redlock::test {

using testing::process::resp_client;
using testing::process::resp_text;

} // namespace redlock::test
