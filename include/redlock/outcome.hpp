// Results that are not errors: of a release, a loss and a query.

#pragma once

#include <redlock/names.hpp>

#include <cstdint>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// Result of a release. None of these is an error: in each case the caller no longer has the lock.
/// After a loss, or once `held()` is false, the result is never `released`.
enum class release_result : std::uint8_t {
    released, ///< a majority of the masters removed the lock; it was held until the release
    /// The lease had ended before the release. A majority of the masters no longer had the lock, or
    /// only had remaining keys of it. These are removed once the lease has ended, and that result
    /// stays: another owner may have acquired the lock since.
    expired,
    /// The lease had ended before the release, and at its end a majority had the key of another
    /// owner.
    stolen,
    /// No majority of the masters gave the same reply in time: see `lock::async_release`. The key
    /// on a master that could not be reached expires with its ttl.
    uncertain,
};

/// Result of an extension.
enum class extend_result : std::uint8_t {
    extended, ///< in full: the lease lasts for the requested ttl minus the clock drift, or longer
    /// In part: `acquire_options::max_hold` ends the lease before the requested ttl has passed. No
    /// extension can make it longer.
    capped,
};

/// Reason why a held lock was lost.
enum class loss_reason : std::uint8_t {
    none, ///< the lock was not lost
    /// A majority of the masters no longer has the key, the lease was not renewed, or it was
    /// renewed for no longer than its `stop_margin`, because the quorum's `max_ttl` was lowered.
    expired,
    owned_by_other,       ///< a majority replied, and the key has another owner
    majority_unreachable, ///< no renewal reached a majority before the deadline
    max_hold_reached,     ///< `max_hold` was reached
    closed,               ///< the manager was closed or destroyed
    /// This process did not run (for example, it was suspended) when a renewal was due, until the
    /// lease had expired.
    stalled,
};

/// State of a lock as found by a query.
enum class lock_state : std::uint8_t {
    /// A majority of the masters may vote and does not have the key. A master that may have lost
    /// it,
    /// for example one in quarantine, does not count.
    free,
    held,      ///< a majority of the masters has the key with the same token
    undecided, ///< neither: a change in progress, a partial grant, or too few replies
};

template <>
inline constexpr std::string_view detail::names<release_result> =
    "released expired stolen uncertain";
template <>
inline constexpr std::string_view detail::names<extend_result> = "extended capped";
template <>
inline constexpr std::string_view detail::names<loss_reason> =
    "none expired owned_by_other majority_unreachable max_hold_reached closed "
    "stalled";
template <>
inline constexpr std::string_view detail::names<lock_state> = "free held undecided";

}} // namespace redlock::REDLOCK_ABI
