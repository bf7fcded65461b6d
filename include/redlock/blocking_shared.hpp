// For code that blocks: readers and writers of one resource, for the standard guards.

#pragma once

#include <redlock/blocking.hpp>
#include <redlock/shared_mutex.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI { namespace blocking {

/// `redlock::shared_mutex` for threads. Meets the standard's *SharedTimedLockable* and
/// *TimedLockable*: `std::shared_lock`, `std::unique_lock`, `std::scoped_lock`. Guarded protocol
/// only.
///
/// It belongs to this object, not to a thread: any thread may unlock it. Within the process the
/// threads that use the same object share and exclude each other as the masters say, from locking
/// to unlocking, also when the lock was lost in between. A writer that waits for this object's
/// readers keeps further ones of this object out.
///
/// **Each reader asks the masters, and has a lease of its own.** So a writer elsewhere that waits
/// stops the stream of new readers here, too, which a lease that they share would not. The leases
/// that this object has for reading keep writers out for all of its readers: reading may be relied
/// on while one of them lasts, and `unlock_shared` gives back the one that would end first. When
/// the last of them is lost, all who read through this object have lost it, and nobody reads or
/// writes through it before they have unlocked.
///
/// There is no upgrade: who reads and asks to write waits for itself.
/// `shared_mutex::async_downgrade` needs the handle, so use it with `manager::call`.
///
/// \par Thread safety
/// All member functions may be called from several threads at once, but the destructor.
/// \par Object lifetimes
/// The manager must outlive it.
class shared_mutex {
public:
    /// Without I/O.
    /// \param options as for `redlock::shared_mutex`; `options.wait` bounds `lock` and
    ///   `lock_shared`
    shared_mutex(manager& owner, std::string resource, acquire_options options = {});
    shared_mutex(const shared_mutex&) = delete;
    shared_mutex& operator=(const shared_mutex&) = delete;
    /// Releases in the background what is still locked.
    ~shared_mutex();

    /// Locks for writing. Waits for `options.wait`, and throws if it has not the lock by then; see
    /// `mutex::lock`.
    /// \param stop ends the waiting with `operation_aborted`
    /// \par Errors
    /// Those of `redlock::shared_mutex`; `errc::would_deadlock`.
    void lock(std::stop_token stop = {});
    /// One attempt. False, and errors, as `mutex::try_lock`.
    bool try_lock();
    /// Waits for at most `limit`, as `timed_mutex::try_lock_for`.
    template <typename Rep, typename Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period>& limit, std::stop_token stop = {}) {
        return try_within(kind::writer, detail::wait_within(limit), std::move(stop));
    }
    /// The same until a moment, which is looked at once.
    template <typename Clock, typename Duration>
    bool
    try_lock_until(const std::chrono::time_point<Clock, Duration>& end, std::stop_token stop = {}) {
        return try_lock_for(detail::time_until(end), std::move(stop));
    }
    /// Gives the writer's lock back, as `mutex::unlock`. Without one it does nothing.
    void unlock() noexcept;

    /// Locks for reading, else as `lock`.
    void lock_shared(std::stop_token stop = {});
    /// As `try_lock`.
    bool try_lock_shared();
    /// As `try_lock_for`.
    template <typename Rep, typename Period>
    bool try_lock_shared_for(
        const std::chrono::duration<Rep, Period>& limit, std::stop_token stop = {}) {
        return try_within(kind::reader, detail::wait_within(limit), std::move(stop));
    }
    /// As `try_lock_until`.
    template <typename Clock, typename Duration>
    bool try_lock_shared_until(
        const std::chrono::time_point<Clock, Duration>& end, std::stop_token stop = {}) {
        return try_lock_shared_for(detail::time_until(end), std::move(stop));
    }
    /// Gives one reader's lock back, else as `unlock`.
    void unlock_shared() noexcept;

    /// Whether what is locked now, for reading or for writing, may be relied on; see `lock::held`.
    bool held() const noexcept;
    /// See `lock::deadline`; of readers that of the lease that lasts longest. `time_point::min()`
    /// while it is not locked.
    time_point deadline() const noexcept;
    /// What is left until `deadline()`; zero if it is over.
    std::chrono::nanoseconds remaining() const noexcept;
    /// The writer's, see `lock::fencing_token`; empty for readers.
    std::optional<std::uint64_t> fencing_token() const;
    /// Is stopped when what is locked now, or was last, is lost, as `mutex::lost`: readers', when
    /// the last of their leases is. Ask for it after locking; all who read at the same time have
    /// the same one.
    std::stop_token lost() const;
    /// What the last `unlock` or `unlock_shared` found; empty where it could not wait.
    std::optional<release_result> last_release() const;
    /// How the masters voted when they were last asked for either lock.
    diagnostics last_attempt() const;

    /// What is locked.
    const std::string& resource() const noexcept { return resource_; }

private:
    enum class kind : unsigned char { reader, writer };
    struct state;

    void take_or_throw(kind wanted, const std::stop_token& stop);
    bool try_within(kind wanted, wait_for limit, std::stop_token stop);
    /// Takes it, first from the other threads, then from the masters.
    error_code take(kind wanted, wait_for limit, const std::stop_token& stop);
    void give_back(kind what) noexcept;
    void tell_of_loss();

    manager& manager_;
    const std::string resource_;
    const acquire_options options_;
    const std::shared_ptr<state> state_; // also of those who are told of a loss
};

}}} // namespace redlock::REDLOCK_ABI::blocking
