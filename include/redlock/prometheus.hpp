// Formats what is to be known of a manager for Prometheus. The service serves the text on its own
// endpoint.

#pragma once

#include <redlock/lock_manager.hpp>

#include <span>
#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// The value of the header `Content-Type` for this format.
inline constexpr std::string_view prometheus_content_type = "text/plain; version=0.0.4";

/// One manager in the output.
struct prometheus_source {
    /// Value of the label `quorum` of all series of this manager. Any text; characters that are not
    /// printable ASCII are written as `\xNN`.
    std::string quorum;
    const lock_manager* manager; ///< must not be null
};

/// Formats metrics, health and settings of several managers in the text exposition format 0.0.4.
/// Does no I/O. Thread-safe.
///
/// The text contains each `HELP` and `TYPE` once, so a page must contain only one such text. To
/// combine it with metrics of other libraries, concatenate the texts. All names begin with
/// `redlock_`, and times are in seconds; see docs/operations.md for the list. Names of resources
/// are not included: the number of series depends only on the number of masters.
/// \param managers the managers; the values of `quorum` must be distinct
std::string to_prometheus(std::span<const prometheus_source> managers);

/// Formats those of one manager.
std::string to_prometheus(const lock_manager& manager, std::string_view quorum = "default");

}} // namespace redlock::REDLOCK_ABI
