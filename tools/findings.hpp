// What the facts mean for a quorum, as an expert would say it.

#pragma once

#include "examine.hpp"

#include <redlock/metrics.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace cli {

enum class severity { note, warning, broken };

std::string_view to_string(severity) noexcept;

struct finding {
    severity level = severity::note;
    std::string check;  ///< one word to filter by: "reachable", "clock", "acl", ...
    std::string master; ///< empty: of the quorum
    std::string what;   ///< what is the case
    std::string change; ///< what to do about it; empty if nothing
};

/// The findings that are worse come first.
std::vector<finding>
judge(const std::vector<facts>& masters, const redlock::config& how, const redlock::health& health);

/// Those of one master alone.
void judge_master(
    const facts& master,
    const redlock::endpoint& where,
    const redlock::config& how,
    std::vector<finding>& out);

/// "ACL SETUSER ..." that is enough for this configuration.
std::string acl_line(const redlock::config& how);

} // namespace cli
