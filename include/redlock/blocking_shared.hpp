// For blocking code: readers and writers of one resource, for the standard guards.

#pragma once

#include <redlock/blocking.hpp>

#include <chrono>
#include <stop_token>
#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

/// A `mutex` that is locked for writing, and can also be locked for reading (`lock_mode`). Meets
/// the standard *SharedTimedLockable* and *TimedLockable* requirements. Use it with
/// `std::shared_lock`, `std::unique_lock` and `std::scoped_lock`. Guarded protocol only.
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
/// Upgrading is not supported: a thread that reads cannot lock for writing
/// (`errc::would_deadlock`). The same error ends a second `lock_shared` of a thread that would wait
/// for its first one: while a writer of this object waits, or after a loss. Downgrading
/// (`lock::async_downgrade`) needs the handle of the lock: use it with `manager::call`.
///
/// With readers, `held` is about the lease that lasts longest, and `fencing_token` throws. `lost`
/// is the same stop token for all concurrent readers. A stop is requested when the last of their
/// leases is lost.
class shared_mutex : mutex {
public:
    /// Constructs a mutex. Does no I/O.
    /// \param owner the manager to use
    /// \param resource as for `mutex`
    /// \param options as for `mutex`; they hold for `lock_shared` as well. `mode` is ignored, and
    ///   readers ignore `fencing`.
    /// \throws std::invalid_argument if the name or an option is out of range
    shared_mutex(manager& owner, std::string resource, acquire_options options = {})
        : mutex(owner, std::move(resource), options, true) {}

    /// As those of `mutex`.
    using mutex::fencing_token, mutex::held, mutex::last_release, mutex::lock, mutex::lost,
        mutex::try_lock, mutex::try_lock_for, mutex::try_lock_until, mutex::unlock;

    /// Locks for reading. Otherwise the same as `lock`.
    void lock_shared(std::stop_token stop = {}) { enter(entry::shared, stop); }

    /// Makes a single attempt to lock for reading. Otherwise the same as `try_lock`.
    [[nodiscard]] bool try_lock_shared() { return try_enter(entry::shared, wait_for::none(), {}); }

    /// Locks for reading. Otherwise the same as `try_lock_for`.
    template <typename Rep, typename Period>
    [[nodiscard]] bool try_lock_shared_for(
        const std::chrono::duration<Rep, Period>& limit, std::stop_token stop = {}) {
        return try_enter(entry::shared, detail::wait_within(limit), stop);
    }

    /// Locks for reading. Otherwise the same as `try_lock_until`.
    template <typename Clock, typename Duration>
    [[nodiscard]] bool try_lock_shared_until(
        const std::chrono::time_point<Clock, Duration>& end, std::stop_token stop = {}) {
        return try_lock_shared_for(detail::time_until(end), std::move(stop));
    }

    /// Releases one reader's lock. Otherwise the same as `unlock`.
    void unlock_shared() noexcept { leave(entry::shared); }
};

}}} // namespace redlock::REDLOCK_ABI::blocking
