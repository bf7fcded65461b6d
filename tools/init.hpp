// The tool as process 1 of a container: orphans become children of process 1, and stay as zombies
// until it reaps them.

#pragma once

namespace cli {

/// If this is process 1, forks, and returns in the child only, which does the work. Process 1
/// passes signals on to it, reaps all processes, and exits with its status.
void be_init();

} // namespace cli
