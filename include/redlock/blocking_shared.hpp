// For blocking code: readers and writers of one resource, for the standard guards.

#pragma once

#include <redlock/blocking.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

/// Locks one resource for reading or for writing (`lock_mode`). Meets the standard
/// *SharedTimedLockable* and *TimedLockable* requirements. Use it with `std::shared_lock`,
/// `std::unique_lock` and `std::scoped_lock`. Guarded protocol only.
///
/// The owner is this object, not a thread: any thread may unlock it. Threads that use the same
/// object share it and exclude each other by the same rules as on the masters. These rules apply
/// from lock to unlock, even if the lock was lost in between. While a writer waits for the readers
/// of this object, the object admits no new readers.
///
/// **Each reader acquires its own lease from the masters.** If the readers shared one lease, a
/// waiting writer in another process could not stop new readers of this object. Each lease of this
/// object keeps writers out for all its readers: they may rely on the lock as long as
/// one lease lasts. `unlock_shared` releases the lease that would end first. When the last lease is
/// lost, all readers of this object have lost the lock. The object then admits no reader or writer
/// until they have unlocked it.
///
/// Upgrading is not supported: a reader that tries to lock for writing would wait for itself.
/// Downgrading (`lock::async_downgrade`) needs the handle of the lock: use it with
/// `manager::call`.
///
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, except for destruction.
/// \par Object lifetimes
/// The manager must outlive this object.
class shared_mutex {
public:
    /// Constructs a mutex. Does no I/O.
    /// \param owner the manager to use
    /// \param resource as for `lock_manager::async_acquire`
    /// \param options as for `lock_manager::async_acquire`; `options.wait` limits `lock` and
    ///   `lock_shared`. `mode` is ignored, and readers ignore `fencing`.
    /// \throws std::invalid_argument if the name or an option is out of range
    shared_mutex(manager& owner, std::string resource, acquire_options options = {});
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;
    /// Releases in the background what is still locked.
    ~shared_mutex();

    /// Locks for writing. Waits at most `options.wait`, then throws; see `mutex::lock`.
    /// \param stop ends the wait with `operation_aborted`
    /// \par Errors
    /// As `lock_manager::async_acquire`; `errc::would_deadlock`.
    void lock(std::stop_token stop = {});
    /// Makes a single attempt to lock for writing. Result and errors: as `mutex::try_lock`.
    [[nodiscard]] bool try_lock();
    /// Locks for writing. Waits at most `limit`; see `timed_mutex::try_lock_for`.
    template <typename Rep, typename Period>
    [[nodiscard]] bool
    try_lock_for(const std::chrono::duration<Rep, Period>& limit, std::stop_token stop = {}) {
        return try_within(lock_mode::writer, detail::wait_within(limit), std::move(stop));
    }
    /// Locks for writing. Waits until `end`; see `timed_mutex::try_lock_until`.
    template <typename Clock, typename Duration>
    [[nodiscard]] bool
    try_lock_until(const std::chrono::time_point<Clock, Duration>& end, std::stop_token stop = {}) {
        return try_lock_for(detail::time_until(end), std::move(stop));
    }
    /// Releases the writer's lock; see `mutex::unlock`. Does nothing if this object is not locked
    /// for writing.
    void unlock() noexcept;

    /// Locks for reading. Otherwise the same as `lock`.
    void lock_shared(std::stop_token stop = {});
    /// Makes a single attempt to lock for reading. Otherwise the same as `try_lock`.
    [[nodiscard]] bool try_lock_shared();
    /// Locks for reading. Otherwise the same as `try_lock_for`.
    template <typename Rep, typename Period>
    [[nodiscard]] bool try_lock_shared_for(
        const std::chrono::duration<Rep, Period>& limit, std::stop_token stop = {}) {
        return try_within(lock_mode::shared, detail::wait_within(limit), std::move(stop));
    }
    /// Locks for reading. Otherwise the same as `try_lock_until`.
    template <typename Clock, typename Duration>
    [[nodiscard]] bool try_lock_shared_until(
        const std::chrono::time_point<Clock, Duration>& end, std::stop_token stop = {}) {
        return try_lock_shared_for(detail::time_until(end), std::move(stop));
    }
    /// Releases one reader's lock. Otherwise the same as `unlock`.
    void unlock_shared() noexcept;

    /// Returns true if the current lock, for reading or for writing, may be relied on; see
    /// `lock::held`.
    bool held() const noexcept;
    /// See `lock::deadline`. With readers: the deadline of the lease that lasts longest.
    /// `time_point::min()` if nothing is locked.
    time_point deadline() const noexcept;
    /// Returns the remaining time until the lock is no longer `held()`; zero if it has passed.
    std::chrono::nanoseconds remaining() const noexcept;
    /// Returns the fencing token of the writer; see `lock::fencing_token`. Empty for readers.
    std::optional<std::uint64_t> fencing_token() const;
    /// Returns a stop token for the current lock or, if nothing is locked, for the last one; see
    /// `mutex::lost`. With readers: a stop is requested when the last of their leases is lost. Call
    /// it after locking; all concurrent readers get the same token.
    std::stop_token lost() const;
    /// Returns the result of the last `unlock` or `unlock_shared`. Empty if it could not wait.
    std::optional<release_result> last_release() const;
    /// Returns how the masters voted in the last attempt to lock, for reading or for writing.
    diagnostics last_attempt() const;

    /// Returns the name of the resource.
    const std::string& resource() const noexcept { return resource_; }

private:
    struct state;

    void take_or_throw(lock_mode wanted, const std::stop_token& stop);
    bool try_within(lock_mode wanted, wait_for limit, std::stop_token stop);
    /// Acquires the lock, first among the threads of this process, then from the masters.
    error_code take(lock_mode wanted, wait_for limit, const std::stop_token& stop);
    void give_back(lock_mode what) noexcept;
    void tell_of_loss() noexcept;

    manager& manager_;
    const std::string resource_;
    const acquire_options options_;
    const std::shared_ptr<state> state_; // shared with what signals a loss
};

}}} // namespace redlock::REDLOCK_ABI::blocking
