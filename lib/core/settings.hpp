// The configuration after validation, as far as it decides anything.

#pragma once

#include "validity.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace redlock::core {

/// How a connection introduces itself to one master.
struct credentials {
    std::string username;
    std::string password;
    int database = 0;
    std::string client_name;
};

struct settings {
    std::vector<credentials> masters;
    std::vector<std::string> names; // of the masters, for log lines
    std::string key_prefix;
    std::chrono::milliseconds max_ttl{};
    drift_bound drift;
    bool quarantine = true;
    std::chrono::milliseconds connect_timeout{};
    std::chrono::milliseconds master_timeout{};
    std::chrono::milliseconds reconnect_delay_min{};
    std::chrono::milliseconds reconnect_delay_max{};
    std::chrono::milliseconds health_check_interval{};
    std::chrono::milliseconds retry_delay_min{};
    std::chrono::milliseconds retry_delay_max{};

    std::size_t size() const noexcept { return masters.size(); }
    std::size_t quorum() const noexcept { return quorum_of(masters.size()); }

    /// How long a master that restarted stays out: longer, on its clock and on ours, than any lease
    /// it may have forgotten.
    std::chrono::nanoseconds quarantine_time() const noexcept {
        return max_ttl + 2 * (drift.of(max_ttl) - drift.margin) + drift.margin;
    }
};

} // namespace redlock::core
