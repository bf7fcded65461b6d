// --parent-death: the tool ends with the process that started it.

#pragma once

#include <sys/types.h>

namespace cli {

/// Arranges that the end of `parent`, the process that started this one, is to this process as a
/// TERM. Must be called before there is a second thread. `parent` may have ended already: then it
/// is what `getppid` has returned, the reaper of orphans.
void end_with(pid_t parent);

} // namespace cli
