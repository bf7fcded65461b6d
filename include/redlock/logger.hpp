// Where the library's log lines go.

#pragma once

#include <redlock/version.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// How much a log line matters. `off` as a threshold silences the log.
enum class log_level : std::uint8_t {
    debug,   ///< each attempt and each vote; holds names of resources
    info,    ///< a master was connected, admitted, lost
    warning, ///< something that an operator should know: quarantine is off, a master is not fit, a
             ///< lock is held for long or wanted by many (with the name of its resource)
    error,   ///< a lock was lost; a master is refused for its configuration
    off,     ///< nothing
};

/// The enumerator's name as written above.
std::string_view to_string(log_level) noexcept;

/// A threshold and a function. The library is silent by default. A line below the threshold is not
/// even formatted. Lines never hold a password or a token.
struct logger {
    log_level level = log_level::off; ///< lines of this level and above are passed on
    /// Receives one line without a newline. Called from the manager's threads, one call at a time
    /// for each manager; must not block, throw, or call the manager.
    std::function<void(log_level, std::string_view)> write;
};

}} // namespace redlock::REDLOCK_ABI
