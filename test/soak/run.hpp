// One run, from the first lock to the verdict.
#pragma once

#include "site.hpp"

namespace redlock::soak {

struct run_options {
    site_options site;
    unsigned seconds = 60;  // of faults
    unsigned patience = 30; // seconds, for the first lock, and for one after all faults
    bool screen = false;    // shows what happens, and does only what can be followed
    bool verbose = false;
};

/// Returns the exit status: 0 if nothing happened that must not, 1 if something did, 2 if the run
/// says nothing, 128 + the signal that ended it.
int run(const run_options& options);

} // namespace redlock::soak
