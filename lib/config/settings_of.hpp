// Converts the configuration of users to the settings of the engine.

#pragma once

#include "core/masters/settings.hpp"

#include <redlock/config.hpp>

#include <string>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// The largest ttl by the configuration alone. A quorum may allow less.
std::chrono::milliseconds max_ttl_of(const config& configuration);

/// The configuration must have been validated.
core::settings settings_of(const config& configuration);

/// The configured bound on the drift of clocks.
core::drift_bound drift_of(const config& config);

/// Returns the name of a master in the list of the quorum.
std::string member_name(const endpoint& master);

/// Returns true if the addresses are equal, regardless of user and database.
bool same_server(const endpoint& a, const endpoint& b);

}}} // namespace redlock::REDLOCK_ABI::detail
