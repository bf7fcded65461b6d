// Random bytes for tokens: from the operating system's generator, each time. A generator of our own
// would have to survive fork() and threads; a token that two processes share unlocks the wrong
// lock.

#pragma once

#include <span>

namespace redlock::net {

/// Fills `out`. Throws `std::system_error` where the system has no randomness to give.
void fill_random(std::span<unsigned char> out);

} // namespace redlock::net
