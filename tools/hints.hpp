// What the tool looks up after a failure, where an error of the library cannot name the cause.

#pragma once

#include <redlock/config.hpp>
#include <redlock/diagnostics.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

inline constexpr std::string_view missing_command =
    "a command is disabled, renamed or not supported there: remove rename-command from its "
    "configuration, or use another server";

/// What to change about a server, by the text of its error or of why it does not vote; empty if
/// that is not known.
std::string_view remedy_of(std::string_view cause) noexcept;

/// The same of a server at this endpoint, which may be a Unix socket.
std::string_view remedy_of(std::string_view cause, const redlock::endpoint& where) noexcept;

/// Prints what to change about the masters, by the text of each.
void hint_at_causes(const redlock::config& how, const std::vector<std::string>& texts);

inline constexpr std::string_view use_tls_or_not =
    "enable TLS there (tls-port), or write redis:// in place of rediss://";

/// Returns those of the unreachable masters whose URLs ask for TLS, and that reply to a PING
/// without TLS. Masters are indexes; no password is sent.
std::vector<std::size_t>
masters_without_tls(const redlock::config& how, const std::vector<std::size_t>& unreachable);

/// Prints that these masters, whose URLs ask for TLS, replied without it.
void say_without_tls(const std::vector<std::string>& masters);

/// Prints which keys of the lock have a type that no lock has, and how to remove them.
void hint_at_types(const redlock::config& how, const std::string& resource);

/// Prints the hints on the votes of a failed acquire. `causes`: also those of `hint_at_causes`.
void hint_at_votes(
    const redlock::config& how,
    const std::string& resource,
    const redlock::diagnostics& why,
    bool causes = true);

/// Prints the hints on a status.
void hint_at_status(
    const redlock::config& how, const std::string& resource, const redlock::lock_status& found);

} // namespace cli
