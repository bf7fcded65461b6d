// The errors of the library as plain numbers. error.hpp makes error codes of them.

#pragma once

#include <redlock/version.hpp>

namespace redlock { inline namespace REDLOCK_ABI {

/// Why an operation did not do what was asked. There is no value for "cancelled": a cancelled
/// operation completes with `boost::asio::error::operation_aborted`, as everywhere in Asio.
enum class errc : int {
    /// A majority of the masters answered, and somebody else has the lock (or a part of it).
    contended = 1,
    /// No majority of the configured masters could vote: down, silent, failing or not admitted.
    no_quorum,
    /// The answers came too late: of the lease less was left than `min_validity`, or than
    /// `stop_margin` where that is more, when a majority had granted it or before one had answered.
    too_slow,
    /// The caller's wait ended while an attempt was still undecided, and the masters whose answers
    /// were missing had had little time. (`no_quorum` if they had had enough.)
    timed_out,
    /// The lease has ended, or a majority of the masters no longer knows it.
    lost,
    /// The holder has released the lock, or given the handle up: it can no longer be lost.
    released,
    /// The manager was closed or destroyed.
    closed,
    /// `async_run` has not been called, or was cancelled.
    not_running,
    /// The configuration breaks a rule; the reason names the value and the allowed range.
    invalid_config,
    /// An argument of this call breaks a rule; the diagnostics name the value and the range.
    invalid_argument,
    /// The guarded resource has seen the fencing token of a later owner: this one came too late.
    stale_token,
    /// This object has no lock that could be extended or released. (One that it has lost is
    /// `lost`.)
    not_locked,
    /// The call would wait for itself for ever: a blocking one on the manager's own thread, or for
    /// a lock which the object that asks has already. Equal to
    /// `std::errc::resource_deadlock_would_occur`.
    would_deadlock,
    /// The owner has entered the reentrant mutex as often as its limit allows.
    too_deep,
};

/// What a caller decides by. Compare an error code with one of these: `ec ==
/// condition::unavailable`. No error belongs to both.
enum class condition : int {
    /// The quorum works, but the lock was not to be had in the time given: `contended`, `too_slow`,
    /// `timed_out`. Skip this turn, or try again later.
    not_acquired = 1,
    /// The lock service cannot be used now: `no_quorum`, `closed`, `not_running`. Tell somebody.
    unavailable,
};

}} // namespace redlock::REDLOCK_ABI
