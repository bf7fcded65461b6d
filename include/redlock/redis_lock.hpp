// A blocking lock with the functions of redis-py's Lock, for users of redis-py.

#pragma once

#include <redlock/blocking.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

/// A lock on one resource, with functions instead of guards. An object has at most one lock at a
/// time. docs/blocking.md maps the functions of redis-py to these.
///
/// \par Errors
/// Errors are thrown as in `redlock::blocking`. As in redis-py, "not locked" and "no longer
/// owned" are different errors. Functions that need a lock throw `errc::not_locked` if this object
/// has no lock, and `errc::lost` if it has lost its lock.
/// \par Thread safety
/// Distinct objects: safe. Shared objects: unsafe, except for `held`.
/// \par Object lifetimes
/// This object may outlive the manager: the lock is lost then, and calls fail with `errc::closed`.
/// The destructor releases the lock in the background.
class redis_lock {
public:
    /// Constructs a lock. Does no I/O.
    /// \param owner the manager to use
    /// \param resource as for `lock_manager::async_acquire`
    /// \param options as for `lock_manager::async_acquire`
    /// \throws std::invalid_argument if the name or an option is out of range
    redis_lock(manager& owner, std::string resource, acquire_options options = {});

    /// Acquires the lock. Waits at most `options.wait`. If this object has lost an earlier lock,
    /// that lock is given up first.
    /// \param stop ends the wait with `operation_aborted`
    /// \returns True if the lock was acquired. False if the quorum works, but the lock could not be
    ///   acquired (`condition::not_acquired`).
    /// \par Errors
    /// As `lock_manager::async_acquire`, except those of `condition::not_acquired`. In addition
    /// `errc::would_deadlock` if this object already has the lock or the call is made on the
    /// manager's own thread.
    [[nodiscard]] bool acquire(std::stop_token stop = {}) {
        return acquire(options_.wait, std::move(stop));
    }
    /// Same as above, with another wait: `wait_for::none()` is `blocking=False` in redis-py, a
    /// duration is `blocking_timeout`.
    [[nodiscard]] bool acquire(wait_for wait, std::stop_token stop = {});
    /// Makes a single attempt with a token that the caller chooses; see
    /// `lock_manager::async_acquire_as`.
    [[nodiscard]] bool acquire_as(std::string lock_token);

    /// Takes over a lock that is already held; see `lock_manager::async_attach`.
    /// \par Errors
    /// As `lock_manager::async_attach`; `errc::would_deadlock` if this object already has the lock.
    void attach(std::string lock_token);

    /// Returns true if the lock is held, by this object or another one. Queries the masters.
    /// \par Errors
    /// `errc::no_quorum` if too few masters reply.
    bool locked();

    /// Returns true if a majority of the masters has the token of this object. Unlike `held` it
    /// queries the masters; the result may be out of date when it returns.
    bool owned();

    /// Extends the lock by `additional`, counted from its current deadline.
    /// \returns `capped` if `acquire_options::max_hold` ends the lease before that.
    /// \par Errors
    /// As `lock::async_extend`; `errc::not_locked`.
    extend_result extend(std::chrono::milliseconds additional);
    /// Extends the lock to `ttl` from now on (`replace_ttl=True` in redis-py). Never shortens a
    /// lease. Result and errors: as `extend`.
    extend_result extend_to(std::chrono::milliseconds ttl);
    /// Extends the lock to `options.ttl` from now on. Result and errors: as `extend`.
    extend_result reacquire() { return extend_to(options_.ttl); }

    /// Releases the lock, even after a loss. The result is `released` only if the lock was held
    /// until now. For `expired` and `stolen` redis-py throws `LockNotOwnedError`.
    /// \par Errors
    /// `errc::not_locked`.
    release_result release();

    /// Gives up the lock without releasing it, so that another process can attach to it. Returns
    /// its token.
    /// \par Errors
    /// `errc::not_locked`; `errc::lost` if it is no longer held.
    [[nodiscard]] std::string hand_off();

    /// Returns true if the lock may be relied on now; see `lock::held`. No I/O.
    bool held() const noexcept { return lock_.held(); }
    /// Returns the lock, for its deadline, fencing token and `async_wait_lost`. Empty if this
    /// object has none.
    const redlock::lock& get() const noexcept { return lock_; }
    /// Returns a stop token; a stop is requested when the lock is lost. See `mutex::lost`.
    std::stop_token lost() const { return lost_.get_token(); }
    /// Returns how the masters voted when this object last acquired or extended the lock, or tried
    /// to.
    const diagnostics& last_attempt() const noexcept { return last_attempt_; }

private:
    template <typename Begin>
    error_code take(Begin begin, const std::stop_token& stop = {});
    void require_lock() const;
    lock_status query();

    manager manager_;
    const std::string resource_;
    const acquire_options options_;
    redlock::lock lock_;
    std::stop_source lost_;
    diagnostics last_attempt_;
};

}}} // namespace redlock::REDLOCK_ABI::blocking
