// Computes the effects of a configuration: availability of a quorum and the times of a lease.

#pragma once

#include <redlock/config.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <cstddef>

namespace redlock { inline namespace REDLOCK_ABI { namespace detail {

/// Returns the number of votes that an acquire needs: a majority of all configured masters, up or
/// not. Thread-safe.
/// \param masters the number of masters. Range: 1 to 32.
std::size_t votes_needed(std::size_t masters) noexcept;

/// Returns the fraction of time, 0 to 1, in which no majority of the masters is up, so that no lock
/// can be acquired. Thread-safe.
///
/// The masters must fail independently of each other. Count masters that fail together (a rack, a
/// region, a simultaneous upgrade) as one. A master in quarantine counts as down, so include that
/// time in `each_down`.
/// \param masters the number of masters. Range: 1 to 32.
/// \param each_down the fraction of time in which one master cannot vote. Range: 0 to 1.
double quorum_downtime(std::size_t masters, double each_down) noexcept;

/// The times of a lease that follow from the configuration.
struct lease_times {
    using duration = std::chrono::nanoseconds; ///< the type of all times

    duration drift{0};    ///< the part of the ttl that is not relied on, because of clock drift
    duration validity{0}; ///< time from just before the acquire, or the extension, to the deadline
    duration held{0};     ///< time until `held()` turns false: `validity` minus `stop_margin`
    /// Minimum time from the acquire or an extension to the next extension (with `renew`).
    duration renewal_earliest{0};
    /// Maximum time from the acquire or an extension to the next extension, as long as the first
    /// try succeeds.
    duration renewal_latest{0};
    /// Time from the latest renewal to the end of `held`. The masters may be unavailable for at
    /// least this long before a lock is lost.
    duration outage_survived{0};
    /// Minimum time from a crash of the holder to the expiry of its lock: it crashed just before a
    /// renewal.
    duration crash_shortest{0};
    /// Maximum time from a crash of the holder to the expiry of its lock: it crashed just after a
    /// renewal. The delay until a waiter retries is not included.
    duration crash_longest{0};
    duration quarantine{0}; ///< time that a restarted master does not vote
};

/// Computes the times of a lease. Validates neither argument: call `validate` first. The list of
/// masters is not used. Thread-safe.
lease_times times_of(const config& configuration, const acquire_options& options);

}}} // namespace redlock::REDLOCK_ABI::detail
