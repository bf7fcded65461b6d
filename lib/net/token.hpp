// Random bytes for tokens, always from the operating system's generator. Each thread draws some in
// advance, which saves a system call per acquire. A child of fork() drops what its parent has
// drawn: a token that two processes share unlocks the wrong lock.

#pragma once

#include <span>

namespace redlock::net {

/// Fills `out`. Throws `std::system_error` if the system has no randomness.
void fill_random(std::span<unsigned char> out);

} // namespace redlock::net
