// What one master reports and how it responds: facts without a judgement.

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

/// A permission that was tested.
struct permission {
    std::string rule;    ///< as an ACL names it: "+set", "&channel"
    std::string use;     ///< what does not work without it; empty: no lock does
    std::string refusal; ///< the error of the server; empty: granted
};

/// One comparison of the master's wall clock with ours.
struct clock_sample {
    std::chrono::nanoseconds at{};     ///< of `redlock::clock`
    std::chrono::microseconds ahead{}; ///< the master's clock minus ours
    std::chrono::microseconds uncertain{};
};

struct facts {
    std::string endpoint;
    std::string unreachable;     ///< why; the rest is empty then
    bool refused = false;        ///< it was reached: that is its error
    bool wants_password = false; ///< none was given
    bool without_tls = false;    ///< its URL asks for TLS, and the server replies without
    std::string run_id_of_other_connection;
    std::map<std::string, std::string> info;
    std::map<std::string, std::string> configuration; ///< readable by CONFIG GET
    std::vector<std::chrono::microseconds> round_trips;
    std::vector<clock_sample> clock;
    std::vector<permission> permissions;
    /// Commands with a reply that no Redis sends, each once: what they test is unknown.
    std::vector<std::string> not_understood;
    std::string write_refusal;   ///< why it refuses a lock: READONLY, MISCONF, MOVED and so on
    std::string script_refusal;  ///< why it refuses a script on the keys of one lock
    std::string record;          ///< key of its memory record
    bool foreign_record = false; ///< ... which has another format than this version's
    std::optional<std::chrono::milliseconds>
        record_quarantine; ///< the longest that a client asked for
    std::optional<std::chrono::hours> certificate_left;

    /// A field of INFO, or an empty string.
    std::string operator[](const std::string& field) const;
    /// A parameter of CONFIG GET, or an empty string.
    std::string parameter(const std::string& name) const;
    bool is_sentinel() const;
    /// Whether a restart loses no lock.
    bool keeps_locks() const;
};

/// Examines all masters; reads their clocks twice, `apart` from each other.
std::vector<facts> examine(const redlock::config& how, milliseconds apart);

} // namespace cli
