// Converts the configuration of users to the settings of the engine, with the checks.

#pragma once

#include "core/settings.hpp"

#include <redlock/config.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// The configuration must have been validated.
core::settings settings_of(const config& configuration);

/// The configured bound on the drift of clocks.
core::drift_bound drift_of(const config& config);

/// Returns the name of a master in the list of the quorum.
std::string member_name(const endpoint& master);

/// Returns true if the addresses are equal, regardless of user and database.
bool same_server(const endpoint& a, const endpoint& b);

/// Returns the lease that `ttl` means under this configuration.
std::chrono::milliseconds effective_ttl(std::chrono::milliseconds ttl, const config& config);

/// Returns the refusal of a value where something else allows only one: "order is 'fifo'; allowed:
/// 'none', with a slot".
invalid_value
only_with(std::string_view other, std::string field, setting_value value, setting_value allows);

/// Checks the ttl of an extension as `validate` checks that of an acquire.
validation validate_extension(std::chrono::milliseconds ttl, const config& config);

}}} // namespace redlock::REDLOCK_ABI::detail
