// What a fuzz target expects to hold. Not `assert`: a build without assertions must find it as
// well.

#pragma once

#include <cstdio>
#include <cstdlib>

namespace fuzz {

/// Ends the program when `holds` is false, which is what the fuzzer takes for a finding.
inline void require(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "does not hold: %s\n", what);
        std::abort();
    }
}

} // namespace fuzz
