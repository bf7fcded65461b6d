// The floor: what the same acquire-release pairs cost with nothing in between. The bytes of the
// plain protocol over bare non-blocking epoll sockets, formatted beforehand, with a scanner that
// only separates replies. No deadlines, no reconnection, no clock drift: not a lock to use, a limit
// to be measured against.
#pragma once

#include "load.hpp"

#include <vector>

namespace bench {

// Runs the load against the masters. All commands of one epoll turn are sent in one write per
// master. Throws std::runtime_error if a connection breaks.
result run_floor(const std::vector<address>& masters, const load& work);

} // namespace bench
