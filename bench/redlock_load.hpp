// The library under the same load as the floor: K loops that acquire and release through the public
// API, with plain callbacks, on one io_context in one thread.
#pragma once

#include "load.hpp"

#include <vector>

namespace bench {

// Runs the load against the masters. Throws std::runtime_error if they are not all admitted, or
// if the library's keys are not where the check looks for them.
result run_redlock(const std::vector<address>& masters, const load& work);

} // namespace bench
