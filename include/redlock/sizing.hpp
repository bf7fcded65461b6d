// How many masters, and which times: what follows from them, before anything runs.

#pragma once

#include <redlock/config.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <cstddef>

namespace redlock { inline namespace REDLOCK_ABI {

/// The votes that an acquire needs: a majority of all masters that are configured, up or not.
/// \param masters 1 to 32. Thread-safe.
std::size_t votes_needed(std::size_t masters) noexcept;

/// The share of the time in which no majority of the masters is up, so that no lock can be had: 0
/// to 1. They must fail independently of each other; what fails together (a rack, a region, an
/// upgrade of all at once) has to be reckoned as one master. A master that waits out its quarantine
/// is as good as down, so its share holds that time, too.
/// \param masters 1 to 32
/// \param each_down the share of the time in which one master cannot vote, 0 to 1. Thread-safe.
double quorum_downtime(std::size_t masters, double each_down) noexcept;

/// The times of a lease that follow from the configuration.
struct lease_times {
    using duration = std::chrono::nanoseconds; ///< of each of them

    duration drift{0};    ///< the part of the ttl that is not relied on: clocks may differ by it
    duration validity{0}; ///< from just before the acquire, or the extension, to the deadline
    duration held{0};     ///< the same to the moment when `held()` turns false: `stop_margin` less
    /// From an extension (or the acquire) to the next, with `renewal::automatic`: not sooner, ...
    duration renewal_earliest{0};
    duration renewal_latest{0}; ///< ... and not later, as long as the first try succeeds
    /// From then to `held`: how long the masters may be away before a lock is lost, at least.
    duration outage_survived{0};
    /// From a holder's death to the moment when the masters have forgotten its lock: at least, if
    /// it dies just before it would have renewed ...
    duration crash_shortest{0};
    duration crash_longest{0}; ///< ... and at most, if just after. A waiter's retry comes on top.
    duration quarantine{0};    ///< how long a restarted master does not vote
};

/// What `configuration` and `options` come to. Neither is checked: ask `validate` first. The
/// masters of the configuration do not matter. Thread-safe.
lease_times times_of(const config& configuration, const acquire_options& options);

}} // namespace redlock::REDLOCK_ABI
