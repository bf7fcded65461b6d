// What one master says of itself, and what it does when it is asked: facts, and no judgement.

#pragma once

#include "text.hpp"

#include <redlock/config.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cli {

/// A permission that was tried.
struct permission {
    std::string rule; ///< as an ACL names it: "+set", "&channel"
    bool needed = false;
    std::string refusal; ///< the server's words; empty: it is granted
};

/// Its wall clock against ours, once.
struct clock_sample {
    std::chrono::nanoseconds at{};     ///< of `redlock::clock`
    std::chrono::microseconds ahead{}; ///< the master's clock minus ours
    std::chrono::microseconds uncertain{};
};

struct facts {
    std::string endpoint;
    std::string unreachable; ///< why; the rest is empty then
    std::string run_id_of_other_connection;
    std::map<std::string, std::string> info;
    std::map<std::string, std::string> configuration; ///< what CONFIG GET lets through
    std::vector<std::chrono::microseconds> round_trips;
    std::vector<clock_sample> clock;
    std::vector<permission> permissions;
    std::string write_refusal;   ///< why it takes no lock: READONLY, MISCONF, MOVED and so on
    std::string script_refusal;  ///< why it runs no script over the keys of one lock
    std::string record;          ///< key of its record
    bool foreign_record = false; ///< ... which has another format than this version's
    std::optional<std::chrono::milliseconds> record_quarantine; ///< the longest it was told of
    std::optional<std::chrono::hours> certificate_left;

    /// A field of INFO, or nothing.
    std::string operator[](const std::string& field) const;
    /// A parameter of CONFIG GET, or nothing.
    std::string parameter(const std::string& name) const;
};

/// Looks at all masters, twice at their clocks: with `apart` between.
std::vector<facts> examine(const redlock::config& how, milliseconds apart);

} // namespace cli
