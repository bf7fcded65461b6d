// The library under the load of blocking code: K threads, each with a mutex of its own.
#pragma once

#include "load.hpp"

#include <vector>

namespace bench {

// Runs the load. Throws std::runtime_error if the masters are not admitted.
result run_threads(const std::vector<address>& masters, const load& work);

} // namespace bench
