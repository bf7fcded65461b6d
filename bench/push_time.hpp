// The time of a message from a publisher via a master to a subscriber, over bare sockets: no
// notification of a waiter can be faster.
#pragma once

#include "load.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

// One sample per message, in nanoseconds, `samples` over all masters in turn: from just before
// PUBLISH is written until the subscriber has read the message.
std::vector<std::uint32_t> push_times(const std::vector<address>& masters, std::size_t samples);

} // namespace bench
