// Metrics and health as Prometheus reads them, for a service to serve on its own page.

#pragma once

#include <redlock/metrics.hpp>

#include <span>
#include <string>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// What a page in this format is sent as: the value of the header `Content-Type`.
inline constexpr std::string_view prometheus_content_type = "text/plain; version=0.0.4";

/// One manager on a page.
struct prometheus_source {
    /// Tells the managers of a page apart: the label `quorum` of everything that is said of this
    /// one. Any text; what is not printable ASCII is written as `\xNN`.
    std::string quorum = "default";
    redlock::metrics metrics; ///< as `lock_manager::get_metrics` gave them
    redlock::health health;   ///< as `lock_manager::get_health` gave it
};

/// The figures of some managers in the text exposition format 0.0.4. Complete with `HELP` and
/// `TYPE`, each once, so a page holds one such text; to put it beside the figures of other
/// libraries, append one to the other. All names begin with `redlock_`, times are in seconds.
/// docs/operations.md lists them. The names of `quorum` must differ. No resource is named: how many
/// series there are depends on the number of masters only. Does no I/O; thread-safe.
std::string to_prometheus(std::span<const prometheus_source> managers);

/// The same of one manager:
/// \code
/// page = to_prometheus(manager.get_metrics(), manager.get_health());
/// \endcode
std::string to_prometheus(const metrics&, const health&, std::string_view quorum = "default");

}} // namespace redlock::REDLOCK_ABI
