// A blocking lock with the functions of redis-py's Lock, for who comes from there.

#pragma once

#include <redlock/blocking.hpp>

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

/// One lock at a time on one resource: taken, asked about, extended, handed on and released by
/// name, rather than by a guard. What each function is in redis-py is said in docs/blocking.md.
///
/// \par Errors
/// `boost::system::system_error`. As there, "not locked" and "no longer owned" are two: what needs
/// a lock throws `errc::not_locked` while this object has none, and `errc::lost` when it had one.
/// \par Thread safety
/// None, but for `held`.
/// \par Object lifetimes
/// The manager must outlive it. The destructor releases in the background.
class redis_lock {
public:
    /// Without I/O.
    /// \param options as for `lock_manager::async_acquire`
    redis_lock(manager& owner, std::string resource, acquire_options options = {});

    /// Takes the lock; waits for `options.wait`. False where the quorum works and the lock is not
    /// to be had (`condition::not_acquired`); other errors are thrown.
    /// \param stop ends the waiting with `operation_aborted`
    /// \par Errors
    /// Those of `lock_manager::async_acquire`; `errc::would_deadlock` also when this object has the
    /// lock already. One that it has lost is given up first.
    bool acquire(std::stop_token stop = {}) { return acquire(options_.wait, std::move(stop)); }
    /// The same with a wait of its own: `wait_for::none()` is `blocking=False`, a duration is
    /// `blocking_timeout`.
    bool acquire(wait_for wait, std::stop_token stop = {});
    /// One attempt with a token of the caller's choice: see
    /// `lock_manager::async_acquire_as`.
    bool acquire_as(std::string lock_token);

    /// Takes over a lock that is held already: see `lock_manager::async_attach`.
    /// \par Errors
    /// As there; `errc::would_deadlock` when this object has the lock already.
    void attach(std::string lock_token);

    /// Whether anybody has the lock, this object or another: asks the masters.
    /// \par Errors
    /// `errc::no_quorum` if too few of them answer.
    bool locked();

    /// Whether the masters say that this object has the lock: a majority keeps its token. Unlike
    /// `held` this asks them, and is out of date when it returns.
    bool owned();

    /// Has the lock for `additional` longer than it has it now.
    void extend(std::chrono::milliseconds additional);
    /// Has it for `ttl` from now on (`replace_ttl=True`). What is longer already stays: an
    /// extension never shortens.
    void extend_to(std::chrono::milliseconds ttl);
    /// Has it for the ttl of its options from now on.
    void reacquire() { extend_to(options_.ttl); }

    /// Gives it back, also after a loss. The result is `released` only if it was ours until now:
    /// `expired` and `stolen` are what redis-py throws `LockNotOwnedError` for.
    /// \par Errors
    /// `errc::not_locked`.
    release_result release();

    /// Gives the lock up without releasing it, for another to attach to. Returns its token.
    /// \par Errors
    /// `errc::not_locked`; `errc::lost` if it is not held any more.
    std::string hand_on();

    /// Whether the lock may be relied on now: see `lock::held`. No I/O.
    bool held() const noexcept { return lock_.held(); }
    /// The lock itself: deadline, fencing token, `async_wait_lost`. An empty handle if this object
    /// has none.
    const redlock::lock& get() const noexcept { return lock_; }
    /// Is stopped when the lock is lost: see `mutex::lost`.
    std::stop_token lost() const { return lost_.get_token(); }
    /// How the masters voted when this object last took or extended the lock, or tried to.
    const diagnostics& last_attempt() const noexcept { return last_attempt_; }

private:
    bool took(std::tuple<error_code, redlock::lock> result);
    void make_room();
    void require_lock() const;
    lock_status query();

    manager& manager_;
    const std::string resource_;
    const acquire_options options_;
    redlock::lock lock_;
    std::stop_source lost_;
    diagnostics last_attempt_;
};

}}} // namespace redlock::REDLOCK_ABI::blocking
