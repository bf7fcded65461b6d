// The error codes of the library as an enumeration. error.hpp converts them to error codes.

#pragma once

#include <redlock/names.hpp>

#include <string_view>

namespace redlock { inline namespace REDLOCK_ABI {

/// Errors of the library. A cancelled operation does not use these: it completes with
/// `boost::asio::error::operation_aborted`, as everywhere in Asio.
enum class errc : int {
    /// Another owner has the lock, or votes or resources that are needed. A majority of the masters
    /// replied, or the one that the last poll of a waiter asked.
    contended = 1,
    /// No majority of the configured masters could vote: down, silent, failing or not admitted.
    /// Also if a majority turns slow at once, as that cannot be distinguished from being down. An
    /// acquire that waits fails with it at once if a quarantine lasts longer than the wait.
    no_quorum,
    /// The replies arrived too late: less of the lease was left than `min_validity` or
    /// `stop_margin`, whichever is larger. Either a majority had granted the lock by then, or the
    /// masters without a reply did not seem to be down: another reply of theirs had just arrived.
    validity_exhausted,
    /// The wait ended during an attempt, before the masters without a reply had enough time for it.
    /// (With enough time the error is `no_quorum`.)
    wait_timed_out,
    /// The lease has ended, or a majority of the masters no longer has the lock.
    lost,
    /// The holder has released the lock or given up the handle, so it can no longer be lost.
    released,
    /// The manager was closed or destroyed.
    closed,
    /// `async_run` has not been called. (After it was cancelled, the error is `closed`.)
    not_running,
    /// An argument of this call is invalid. The diagnostics name the value and the allowed range.
    invalid_argument,
    /// The guarded resource has seen the fencing token of a later owner.
    stale_token,
    /// The call would deadlock: it blocks on the manager's own thread, or waits for a lock that the
    /// same object or thread already holds. Equal to `std::errc::resource_deadlock_would_occur`.
    would_deadlock,
    /// Another change of the members is planned or in progress, or was made in the meantime. The
    /// diagnostics name it and what to do first.
    conflicting_change,
};

// No enumerator is 0.
template <>
inline constexpr std::string_view detail::names<errc> =
    "success contended no_quorum validity_exhausted wait_timed_out lost released "
    "closed not_running invalid_argument stale_token would_deadlock "
    "conflicting_change";

/// Groups of errors for the decisions of a caller: `if (ec == condition::unavailable)`. No error
/// belongs to more than one.
enum class condition : int {
    /// The quorum works, but the lock could not be acquired in the given time: `contended`,
    /// `validity_exhausted`, `wait_timed_out`. Skip the work or try again later.
    not_acquired = 1,
    /// The lock service cannot be used now: `no_quorum`. Raise an alert.
    unavailable,
    /// This process does not run the manager: `closed`, `not_running`. An orderly shutdown, no
    /// outage.
    stopped,
    /// The caller had the lock and must stop the work: `lost`, `stale_token`.
    lost,
};

}} // namespace redlock::REDLOCK_ABI
