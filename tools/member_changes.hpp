// Changes of the members of a quorum: what they need, in which order, and their progress.

#pragma once

#include <redlock/config.hpp>
#include <redlock/metrics.hpp>

#include <vector>

namespace cli {

/// Makes the changes, each when the one before is final, and returns the state after them. What is
/// made already is left out. Of an addition and a removal (a replacement), the removal is first if
/// its master does not reply. Only says what would be done if `only_shows`. Throws `failure`: if
/// they cannot be made, with nothing begun, or after a signal.
redlock::health make_changes(
    const std::vector<redlock::member_change>& wanted, const redlock::config& how, bool only_shows);

} // namespace cli
