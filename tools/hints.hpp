// What the tool looks up after a failure, where an error of the library cannot name the cause.

#pragma once

#include <redlock/config.hpp>
#include <redlock/diagnostics.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace cli {

/// Returns those of the unreachable masters whose URLs ask for TLS, and that reply to a PING
/// without TLS. Masters are indexes; no password is sent.
std::vector<std::size_t>
masters_without_tls(const redlock::config& how, const std::vector<std::size_t>& unreachable);

/// Prints that these masters, whose URLs ask for TLS, replied without it.
void say_without_tls(const std::vector<std::string>& masters);

/// Prints which keys of the lock have a type that no lock has, and how to remove them.
void hint_at_types(const redlock::config& how, const std::string& resource);

/// Prints the hints on the votes of a failed acquire.
void hint_at_votes(
    const redlock::config& how, const std::string& resource, const redlock::diagnostics& why);

/// Prints the hints on a status.
void hint_at_status(
    const redlock::config& how, const std::string& resource, const redlock::lock_status& found);

} // namespace cli
