// Changes of the members of a quorum, with their progress.

#pragma once

#include "manager/member_change.hpp"

namespace cli {

/// Makes the changes, each when the one before is final, and returns the state after them. What is
/// made already is left out. Waits for another change that is planned. Only says what would be done
/// if `only_shows`. Throws `failure`: if they cannot be made, with nothing begun, or after a
/// signal.
redlock::health make_changes(
    const redlock::detail::member_changes& wanted, const redlock::config& how, bool only_shows);

/// Founds the quorum with this list of masters. `unused`: no lock can have been on them.
redlock::health found_quorum(bool unused, const redlock::config& how, bool only_shows);

} // namespace cli
