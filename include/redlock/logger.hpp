// Logging of the library.

#pragma once

#include <redlock/names.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// Severity of a log line. As a threshold, `off` disables the log.
enum class log_level : std::uint8_t {
    debug, ///< an attempt failed, with the number of its votes and the name of the resource
    info,  ///< a master was connected, admitted or lost
    /// Needs the attention of an operator: quarantine is off, a master is ineligible, or a lock is
    /// held for long or has many waiters. The last two include the name of the resource.
    warning,
    error, ///< a lock was lost, with its name; a call was refused because of its arguments
    off,   ///< no lines
};

template <>
inline constexpr std::string_view detail::names<log_level> = "debug info warning error off";

/// A threshold and a sink. By default nothing is logged. A line below the threshold is not
/// formatted. Lines never contain a password or a token.
struct logger {
    log_level level = log_level::off; ///< threshold: lines of this level and above are written
    /// Writes one line, which has no newline. Called from the manager's threads, one call at a time
    /// for each manager, in the order of the events. May call the manager, which holds no mutex
    /// during the call. Must not block or throw.
    std::function<void(log_level, std::string_view)> write;
};

/// Returns a logger that writes lines such as "redlock: warning: ..." to the standard error.
/// \param level threshold. Default: warning.
logger log_to_stderr(log_level level = log_level::warning);

}} // namespace redlock::REDLOCK_ABI
