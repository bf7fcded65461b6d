// Judges the facts about a quorum, as an expert would.

#pragma once

#include "examine.hpp"

#include <redlock/metrics.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

enum class severity { note, warning, broken };

std::string_view to_string(severity) noexcept;

struct finding {
    severity level = severity::note;
    std::string check;  ///< one word to filter by: "reachable", "clock", "acl", ...
    std::string master; ///< empty: the quorum
    std::string what;   ///< what was found
    std::string change; ///< what to do about it; empty if nothing
};

/// Whether a master with this finding grants no lock.
bool refuses_locks(const finding& it);

/// How many masters vote, and grant locks.
std::size_t voters(
    const std::vector<finding>& found,
    const std::vector<facts>& masters,
    const redlock::health& health);

/// Sorted by severity.
std::vector<finding>
judge(const std::vector<facts>& masters, const redlock::config& how, const redlock::health& health);

/// The findings on one master alone.
void judge_master(
    const facts& master,
    const redlock::endpoint& where,
    const redlock::config& how,
    std::vector<finding>& out);

} // namespace cli
