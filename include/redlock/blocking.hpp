// For blocking code: a manager with its own thread, and mutexes for the standard guards.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/core/noncopyable.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

/// Converts a limit of the standard's timed functions. More than a year means forever.
template <typename Rep, typename Period>
wait_for wait_within(const std::chrono::duration<Rep, Period>& limit) {
    using std::chrono::milliseconds;
    // Larger counts of another unit could not be converted.
    constexpr std::chrono::duration<double> long_enough = std::chrono::hours(24 * 365);
    if (limit > long_enough) {
        return wait_for::forever();
    }
    return limit > limit.zero() ? std::chrono::ceil<milliseconds>(limit) : milliseconds::zero();
}

/// Returns the time until `end`, or zero if it has passed, even if long ago.
template <typename Clock, typename Duration>
auto time_until(const std::chrono::time_point<Clock, Duration>& end) {
    const auto now = Clock::now();
    using rest = decltype(end - now);
    return end > now ? end - now : rest::zero();
}

[[noreturn]] void throw_error(const error_code& error);

class virtual_thread;
struct virtual_blocking;

template <typename T>
inline constexpr bool is_future = false;
template <typename Value>
inline constexpr bool is_future<std::future<Value>> = true;

/// Returns what an operation passes to its handler.
template <typename Values>
Values wait_for_values(std::future<Values>& result) {
    try {
        return result.get();
    } catch (const std::future_error&) { // the handler was destroyed
        throw_error(errc::closed);
    }
}

/// Returns the same as the result of a call: a tuple of several values, or nothing. Throws a
/// failure.
inline void value_of() {}
template <typename First, typename... Rest>
auto value_of(First first, Rest... rest) {
    if constexpr (std::is_same_v<First, std::exception_ptr>) {
        if (first) {
            std::rethrow_exception(std::move(first));
        }
        return value_of(std::move(rest)...);
    } else if constexpr (sizeof...(Rest) > 0) {
        return std::tuple<First, Rest...>(std::move(first), std::move(rest)...);
    } else {
        return first;
    }
}

} // namespace detail

/// \namespace redlock::blocking
/// Blocking functions.
///
/// They must not be called on the manager's own thread, that is in a handler, a coroutine or a stop
/// callback that runs on it. Such a call throws `errc::would_deadlock`, equal to
/// `std::errc::resource_deadlock_would_occur`, before anything is started. Exceptions with an
/// error code are `boost::system::system_error`. If masters were asked to vote, they are the
/// derived `error_with_diagnostics`.
namespace blocking {

class lock;

/// A lock manager with a thread that runs it.
///
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, except for destruction.
class manager {
public:
    /// Starts the thread and runs the manager on it, which connects in the background.
    /// \throws std::invalid_argument if the configuration is invalid, as `lock_manager` does.
    explicit manager(config configuration);
    /// Closes the manager, waits until all operations on its executor have completed, and joins the
    /// thread. Held locks are lost; those whose holders let go of them during the shutdown are
    /// released (see `lock_manager::async_close`). Must not be called on the manager's thread, or
    /// while another thread waits in a call.
    ~manager();

    /// Acquires a lock:
    /// \code
    /// redlock::blocking::manager locks(config);
    /// const auto mine = locks.acquire("invoice:7");
    /// bill(7, mine.lost());
    /// \endcode
    /// \param wanted what to lock: see `lock_manager::async_acquire`
    /// \param options see `lock_manager::async_acquire`; it waits at most `options.wait`
    /// \param stop ends the wait with `operation_aborted`
    /// \par Errors
    /// As `lock_manager::async_acquire`; `errc::would_deadlock`. If others have the lock, the error
    /// equals `condition::not_acquired`.
    [[nodiscard]] lock
    acquire(target wanted, acquire_options options = {}, std::stop_token stop = {});

    /// Returns the manager, for asynchronous use in addition to the blocking one. Its handlers run
    /// on the manager's thread. A handler that blocks delays all locks, and an exception that
    /// leaves a handler terminates the process.
    lock_manager& async() noexcept;

    /// Waits until a majority of the masters is admitted.
    /// \param timeout the maximum time to wait
    /// \param stop ends the wait with `operation_aborted`
    /// \returns True if a majority is admitted, false after `timeout`.
    /// \par Errors
    /// `errc::closed`; `operation_aborted`; `errc::would_deadlock`.
    bool ready(std::chrono::milliseconds timeout, std::stop_token stop = {});

    /// Starts an asynchronous operation on the manager's thread and waits for its completion:
    /// ```
    /// const redlock::lock_status status = manager.call([&](auto token) {
    ///     return manager.async().async_query("r", std::move(token));
    /// });
    /// ```
    /// \param begin called with a completion token, which it must pass to an asynchronous function;
    ///   returns the result of that function. Its exceptions are thrown by this function.
    /// \param stop cancels the operation (terminal) through its cancellation slot. The call returns
    ///   when the operation has completed: the removal of an acquisition's votes has been sent.
    /// \returns The value of the operation: a tuple of several values, or nothing for an operation
    ///   without a value.
    /// \par Errors
    /// Throws the error of the operation; `operation_aborted` if it was cancelled; `errc::closed`
    /// if its handler was destroyed; `errc::would_deadlock`. A stop request that comes too late has
    /// no effect: the value is returned.
    template <typename Begin>
    auto call(Begin&& begin, std::stop_token stop = {}) {
        return run(begin, std::move(stop), std::nullopt);
    }

private:
    friend class lock;
    friend class mutex;
    friend struct detail::virtual_blocking; // the testing kit
    struct impl;

    /// Of the testing kit.
    manager(lock_manager locks, std::shared_ptr<detail::virtual_thread> time);
    /// For objects that may outlive the manager: calls fail with `errc::closed` after its end.
    manager(const manager& other) noexcept : impl_(other.impl_), owner_(false) {}

    using cancellation = std::shared_ptr<boost::asio::cancellation_signal>;
    using moment = std::chrono::steady_clock::time_point;
    using time_limit = std::optional<std::chrono::milliseconds>;

    /// Cancels the operation after `limit`.
    template <typename Begin>
    auto run(Begin& begin, std::stop_token stop, time_limit limit) {
        check_may_wait(stop);
        const auto cancel = std::make_shared<boost::asio::cancellation_signal>();
        // A failure is a value, so that the manager's thread takes no part in its destruction.
        auto token = with_diagnostics(boost::asio::as_tuple(
            boost::asio::bind_cancellation_slot(cancel->slot(), boost::asio::use_future)));
        using begun = std::invoke_result_t<Begin&, decltype(token)>;
        static_assert(
            detail::is_future<begun>,
            "return what the asynchronous function returns, with the token passed on to it");
        begun result;
        on_thread([&] { result = begin(std::move(token)); });
        const std::stop_callback on_stop(std::move(stop), [&] { emit(cancel); });
        const auto over = [&](moment until) {
            return result.wait_until(until) == std::future_status::ready;
        };
        wait(over, limit, cancel);
        return std::apply(
            [](auto... values) { return detail::value_of(std::move(values)...); },
            detail::wait_for_values(result));
    }

    /// Acquires a lock into `out`. Stores the votes in `why`, or, with `failures_only`, those of a
    /// failure.
    error_code take(
        target wanted,
        const acquire_options& options,
        const std::stop_token& stop,
        redlock::lock& out,
        detail::diagnostics_sink why);
    release_result release(redlock::lock& mine);

    /// Whether the library has called the code that asks: on the manager's thread, or the observer
    /// or the logger on any thread.
    bool in_callback() const noexcept;
    /// Stopped by the destructor.
    std::stop_token closing() const noexcept;
    /// Throws if the calling thread must not wait, or need not.
    void check_may_wait(const std::stop_token& stop) const;
    /// Calls `f` on the manager's thread, as all that concerns an operation: so its start and its
    /// cancellation never race with its end. Throws what `f` throws.
    void on_thread(const std::function<void()>& f);
    void emit(const cancellation& cancel);
    /// Cancels the operation if it is not over within `limit`. Then it need not wait: only in
    /// virtual time somebody must advance it.
    void
    wait(const std::function<bool(moment)>& over, time_limit limit, const cancellation& cancel);

    std::shared_ptr<impl> impl_;
    const bool owner_ = true;
};

/// A lock that `manager::acquire` has acquired. Move-only. While it lives and renewal is on, the
/// library extends the lease. The destructor and an assignment release the lock, as `release` does;
/// a failure to do so is ignored.
///
/// Errors are thrown as in `redlock::blocking`. On an empty lock (default-constructed or moved
/// from) all functions but `held` and `lost` throw `std::logic_error`.
/// \par Thread safety
/// Distinct objects: safe. Shared objects: as `redlock::lock`.
/// \par Object lifetimes
/// This object may outlive the manager: the lock is lost then, and calls fail with `errc::closed`.
class [[nodiscard]] lock {
public:
    /// Constructs an empty lock.
    lock() noexcept = default;

    /// Extends the lease to `ttl` from now on; never shortens it. See `lock::async_extend`.
    /// \param ttl the new lease. Range: more than the clock drift, up to `health::max_ttl`.
    extend_result extend(std::chrono::milliseconds ttl = default_ttl);

    /// Releases the lock, even after a loss. Waits for the replies of the masters: see
    /// `lock::async_release`. The result is `released` only if the lock was held until now.
    release_result release();

    /// Returns true if the lock may be relied on now; see `lock::held`. No I/O.
    bool held() const noexcept;

    /// Returns a stop token. A stop is requested when the lock is lost, at
    /// `deadline - stop_margin` at the latest; a release does not request it. Stop callbacks run on
    /// the manager's thread and must not block.
    std::stop_token lost() const;

    /// See `lock::fencing_token`.
    std::uint64_t fencing_token() const;

    /// See `lock::secret`.
    std::string_view secret() const;

    /// Returns the handle, for all that is not a wait (deadline, slots, owner) and for
    /// `manager::call`. It lives as long as this object.
    redlock::lock& async() const;

private:
    friend class manager;
    struct state;
    struct releaser {
        void operator()(state* mine) const noexcept;
    };

    std::unique_ptr<state, releaser> state_;
};

/// A mutex on a majority of the masters. Meets the standard *TimedLockable* requirements. Use it
/// with `std::unique_lock`, `std::lock_guard`, `std::scoped_lock` (also of several) and
/// `std::condition_variable_any`.
///
/// The owner is this object, not a thread: any thread may unlock it. Within the process it excludes
/// all other users of the same object from `lock` to `unlock`, even if the lock was lost in
/// between. A late `unlock` therefore cannot release the lock of another thread. A thread that has
/// locked it cannot lock it again before it is unlocked.
///
/// Unlike a mutex in memory, it can be lost while it is locked. `held` and `lost` report a loss,
/// and the fencing token protects the resource. `unlock` never fails; `last_release` returns its
/// result.
///
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, except for destruction.
/// \par Object lifetimes
/// This object may outlive the manager. Then the lock is lost, `unlock` does not wait, and locking
/// fails with `errc::closed`. The destructor releases the lock in the background if it is still
/// locked.
class mutex : boost::noncopyable {
public:
    /// Constructs a mutex. Does no I/O.
    /// \param owner the manager to use
    /// \param resource the name of one resource, as for `lock_manager::async_acquire`
    /// \param options as for `lock_manager::async_acquire`; `options.wait` limits what `lock` waits
    ///   in an outage
    /// \throws std::invalid_argument if the name or an option is out of range
    mutex(manager& owner, std::string resource, acquire_options options = {})
        : mutex(owner, std::move(resource), options, false) {}

    /// Locks the mutex. Waits for other owners without a limit, as `std::mutex` does. If no
    /// majority of the masters votes for `options.wait`, throws, because an unlimited wait would
    /// hide an outage: `wait_for::contention`. Throws at once if a quarantine of the masters lasts
    /// longer; `what()` says how long.
    /// \param stop ends the wait with `operation_aborted`, which is thrown: the code after `lock`
    ///   must not run without the lock
    /// \par Errors
    /// As `lock_manager::async_acquire`; `errc::would_deadlock`, also if this thread has locked the
    /// mutex already.
    void lock(std::stop_token stop = {}) { enter(entry::alone, stop); }

    /// Makes a single attempt to lock the mutex. If the manager was made just now, it first waits
    /// until the masters are connected, at most for `connect_timeout`.
    /// \returns True if it is locked. False if the quorum works, but the lock could not be acquired
    ///   (`condition::not_acquired`), or if this thread has locked the mutex already.
    /// \par Errors
    /// All other errors are thrown, including an outage. A caller that gets false continues without
    /// the lock, or retries at once as `std::lock` does: in an outage neither would notice it.
    [[nodiscard]] bool try_lock() { return try_enter(entry::alone, wait_for::none(), {}); }

    /// Locks the mutex. Waits at most `limit`; zero or less is the same as `try_lock`.
    /// \param limit the maximum time to wait
    /// \param stop ends the wait with `operation_aborted`
    /// \returns As `try_lock`.
    /// \par Errors
    /// As `try_lock`: an outage that lasts until the end of the wait is thrown.
    template <typename Rep, typename Period>
    [[nodiscard]] bool
    try_lock_for(const std::chrono::duration<Rep, Period>& limit, std::stop_token stop = {}) {
        return try_enter(entry::alone, detail::wait_within(limit), stop);
    }

    /// Locks the mutex. Waits until `end`. The remaining time is determined once: setting the clock
    /// later does not change the wait. Otherwise the same as `try_lock_for`.
    template <typename Clock, typename Duration>
    [[nodiscard]] bool
    try_lock_until(const std::chrono::time_point<Clock, Duration>& end, std::stop_token stop = {}) {
        return try_lock_for(detail::time_until(end), std::move(stop));
    }

    /// Unlocks the mutex, even if the lock was lost. Waits for the replies of the masters, at most
    /// for `master_timeout`. On the manager's own thread it does not wait. Does nothing if the
    /// mutex is not locked.
    void unlock() noexcept { leave(entry::alone); }

    /// Returns true if the lock may be relied on now; see `lock::held`.
    bool held() const noexcept;
    /// See `lock::fencing_token`.
    /// \throws std::logic_error if the mutex is not locked, or has no fencing token
    std::uint64_t fencing_token() const;
    /// Returns a stop token for the current lock or, if the mutex is not locked, for the last one.
    /// A stop is requested when that lock is lost, at `deadline - stop_margin` at the latest.
    /// `unlock` does not request it. Stop callbacks run on the manager's thread and must not block.
    std::stop_token lost() const;
    /// Returns the result of the last `unlock`. Empty before the first, and if `unlock` could not
    /// wait.
    std::optional<release_result> last_release() const;

private:
    friend class shared_mutex;
    struct state;

    /// Whether a thread excludes all others, or shares the mutex with other readers.
    enum class entry : bool { alone, shared };

    /// `readers`: whether `entry::shared` is used; then `options.mode` is ignored.
    mutex(manager& owner, std::string resource, acquire_options options, bool readers);

    void enter(entry how, const std::stop_token& stop);
    bool try_enter(entry how, wait_for limit, const std::stop_token& stop);
    void leave(entry how) noexcept;

    /// Acquires the lock, first among the threads of this process, then from the masters.
    [[nodiscard]] error_code
    take(entry how, wait_for limit, const std::stop_token& stop, diagnostics& why);

    manager manager_;
    const std::string resource_;
    const acquire_options options_;
    const std::shared_ptr<state> state_; // shared with what signals a loss
};

} // namespace blocking

}} // namespace redlock::REDLOCK_ABI
