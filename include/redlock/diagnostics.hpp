// Diagnostics: how each master voted, and what a query found.

#pragma once

#include <redlock/outcome.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// Reply of one master to one request, or the reason for a missing reply.
enum class vote : std::uint8_t {
    pending,        ///< no reply yet when the operation was decided
    granted,        ///< the request succeeded: the key was set, extended or removed
    held,           ///< the key exists: another owner has the lock
    owned_by_other, ///< the key has another token, or a value that is not a lock of this library
    absent,         ///< the key does not exist
    unreachable,    ///< not connected, or the connection broke before the reply
    timed_out,      ///< connected, but no reply for `master_timeout`
    error,          ///< error reply, or ineligible to vote; the text has the reason
    quarantined,    ///< in quarantine: may have lost a lock that is still held
    duplicate,      ///< the same server as another configured master; counts once
};

template <>
inline constexpr std::string_view detail::names<vote> =
    "pending granted held owned_by_other absent unreachable timed_out error "
    "quarantined duplicate";

/// The vote of one master, or what a query found there.
struct master_vote {
    std::string endpoint; ///< address as configured, without the password
    /// Its vote. In a query of a pool: `held` if any of its slots is, else `absent`.
    redlock::vote vote = vote::pending;
    /// Time from the request to the reply; 0 without a reply, and in a query.
    std::chrono::microseconds latency{0};
    /// Remaining time of the quarantine, or of the holder's lease (`held`). The reply to an
    /// acquisition without a fencing token does not have that of the lease. Such an acquisition
    /// queries one master for it if it waits, and otherwise none. In a query: of the key; empty if
    /// it does not expire.
    std::optional<std::chrono::milliseconds> time_left;
    /// Error text of the server, or the reason for the vote. Contains text from the network: do not
    /// trust it.
    std::string text;
    /// In a query: digest of the holder's secret. It distinguishes holders, and cannot be used to
    /// release the lock. Empty if readers hold it, and for a pool.
    std::string owner_digest;
    std::size_t readers = 0; ///< in a query, if `held` by readers: their number, at least 1; else 0
};

/// Explains the result of one operation: `with_diagnostics(out, token)` has an operation fill it,
/// and `error_with_diagnostics` contains it.
struct diagnostics {
    /// One sentence about the result; empty after a plain success.
    std::string message;
    unsigned attempts = 0;                ///< number of rounds of votes that were started
    std::size_t quorum = 0;               ///< number of votes needed
    std::chrono::microseconds elapsed{0}; ///< time from the start of the operation to its decision
    /// Votes of the last attempt, in the order of the configuration.
    std::vector<master_vote> votes;
    std::string resource; ///< name of the lock; not a part of the text
};

/// Formats diagnostics as one line: "contended after 3 attempts in 12.4 ms, 1 of 3 needed:
/// 10.0.0.1:6379 granted 0.4 ms, 10.0.0.2:6379 held 0.3 ms, ...". Never contains a password or a
/// token.
std::string to_string(const diagnostics&);

/// What a query found out about one slot of a pool.
struct slot_status {
    lock_state state = lock_state::undecided; ///< free, held, or undecided without a majority
    std::string owner_digest; ///< if `held`: digest of the secret that a majority has
};

/// Result of a query. It may be out of date when it arrives.
struct lock_status {
    /// State on a majority of the masters. Of a pool: `free` if a slot is free, `held` if all are
    /// held.
    lock_state state = lock_state::undecided;
    /// If `held`: digest of the secret that a majority has. Empty if readers hold it, and for a
    /// pool.
    std::string owner_digest;
    std::size_t readers = 0; ///< if `held` by readers: as many as a majority shows; else 0
    /// If `held`: time until no majority has it. Empty for a pool.
    std::optional<std::chrono::milliseconds> time_left;
    /// Of a pool: its slots, by number.
    std::vector<slot_status> slots;
    /// One per master, in the order of the configuration.
    std::vector<master_vote> masters;

    /// Returns the number of slots in this state.
    std::size_t count(lock_state wanted) const noexcept;
};

/// Formats a status as one line, like `to_string(const diagnostics&)`.
std::string to_string(const lock_status&);

}} // namespace redlock::REDLOCK_ABI
