// How a lock ended and what it was found to be: the results that are data, not errors.

#pragma once

#include <redlock/version.hpp>

#include <cstdint>
#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// What a release found. None of these is an error: the caller no longer has the lock in any case.
/// After a loss, or once `held()` is false, a release is never `released`.
enum class release_result : std::uint8_t {
    released,  ///< a majority of the masters removed the lock: it was ours until it was let go
    expired,   ///< the lease had ended before: a majority no longer had it, or had a leftover of it
    stolen,    ///< on a majority it belongs to somebody else by now: the lease had ended before
    uncertain, ///< no majority said one and the same; what could not be reached expires by its ttl
};

/// Why a held lock was lost.
enum class loss_reason : std::uint8_t {
    none,    ///< it was not
    expired, ///< a majority of the masters no longer has the key, or it was not renewed
    foreign, ///< a majority answered, and the key belongs to somebody else by now
    majority_unreachable, ///< renewal found no majority until the deadline
    renew_limit,          ///< `max_hold` was reached
    closed,               ///< the manager was closed or destroyed
    stalled, ///< this process did not run when the renewal was due, nor before the lease was over
};

/// What a query found.
enum class lock_state : std::uint8_t {
    free,      ///< a majority of the masters has no such key
    held,      ///< a majority has it with one and the same token
    undecided, ///< neither: a change under way, a partial grant, or too few answers
};

/// The enumerator's name as written above. The text lives for ever.
std::string_view to_string(release_result) noexcept;
/// The enumerator's name as written above. The text lives for ever.
std::string_view to_string(loss_reason) noexcept;
/// The enumerator's name as written above. The text lives for ever.
std::string_view to_string(lock_state) noexcept;

}} // namespace redlock::REDLOCK_ABI
