// Random bytes for tokens, always from the operating system's generator. A generator of our own
// would have to survive fork() and threads; a token that two processes share unlocks the wrong
// lock.

#pragma once

#include <span>

namespace redlock::net {

/// Fills `out`. Throws `std::system_error` if the system has no randomness.
void fill_random(std::span<unsigned char> out);

} // namespace redlock::net
