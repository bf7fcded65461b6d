// For code that blocks: a manager with a thread of its own, and mutexes for the standard guards.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace blocking {
class manager;
}

namespace detail {

/// Where a thread waits for one operation.
class call_state_base {
public:
    call_state_base() = default;
    call_state_base(const call_state_base&) = delete;
    call_state_base& operator=(const call_state_base&) = delete;

    /// The operation has ended with what was stored.
    void finish() noexcept;
    /// Its handler was destroyed without being called.
    void abandon() noexcept;
    boost::asio::cancellation_slot slot() noexcept { return cancel_.slot(); }

    std::exception_ptr failure;

protected:
    ~call_state_base() = default;

private:
    friend class blocking::manager;
    boost::asio::cancellation_signal cancel_; // touched on the manager's thread only
    std::mutex guard_;
    std::condition_variable changed_;
    bool begun_ = false;
    bool done_ = false;
};

template <typename... Values>
struct call_state final : call_state_base {
    std::optional<std::tuple<Values...>> values;
};

/// What an operation that is begun with a `call_token` returns: the types of its values.
template <typename... Values>
struct call_begun {
    using state = call_state<Values...>;
};

template <typename T>
inline constexpr bool is_call_begun = false;
template <typename... Values>
inline constexpr bool is_call_begun<call_begun<Values...>> = true;

/// The completion token of `blocking::manager::call`.
struct call_token {
    std::shared_ptr<call_state_base> state;
};

/// What the standard's timed functions are given, as the library's; without end beyond a year.
template <typename Rep, typename Period>
wait_for wait_within(const std::chrono::duration<Rep, Period>& limit) {
    using std::chrono::milliseconds;
    // Beyond this the count of another unit could not be converted.
    constexpr std::chrono::duration<double> long_enough = std::chrono::hours(24 * 365);
    if (limit > long_enough) {
        return wait_for::forever();
    }
    return limit > limit.zero() ? std::chrono::ceil<milliseconds>(limit) : milliseconds::zero();
}

/// How long it is until a moment; nothing if it has passed, however long ago.
template <typename Clock, typename Duration>
auto time_until(const std::chrono::time_point<Clock, Duration>& end) {
    const auto now = Clock::now();
    using rest = decltype(end - now);
    return end > now ? end - now : rest::zero();
}

[[noreturn]] void throw_error(const error_code& error);
std::exception_ptr exception_of(const error_code& error);

template <typename... Values>
class call_handler {
public:
    using cancellation_slot_type = boost::asio::cancellation_slot;

    explicit call_handler(std::shared_ptr<call_state<Values...>> state) noexcept
        : state_(std::move(state)) {}
    call_handler(call_handler&&) noexcept = default;
    call_handler& operator=(call_handler&&) = delete;
    ~call_handler() {
        if (state_) {
            state_->abandon();
        }
    }

    cancellation_slot_type get_cancellation_slot() const noexcept { return state_->slot(); }

    void operator()(error_code error, Values... values) {
        end(error ? exception_of(error) : nullptr, std::move(values)...);
    }
    void operator()(std::exception_ptr failure, Values... values) {
        end(std::move(failure), std::move(values)...);
    }
    void operator()(Values... values) { end(nullptr, std::move(values)...); }

private:
    void end(std::exception_ptr failure, Values... values) {
        const auto state = std::move(state_);
        state->failure = std::move(failure);
        if (!state->failure) {
            state->values.emplace(std::move(values)...);
        }
        state->finish();
    }

    std::shared_ptr<call_state<Values...>> state_;
};

template <typename... Values>
struct call_result {
    using return_type = call_begun<Values...>;

    template <typename Initiation, typename... Arguments>
    static return_type initiate(Initiation&& begin, call_token token, Arguments&&... arguments) {
        std::forward<Initiation>(begin)(
            call_handler<Values...>(
                std::static_pointer_cast<call_state<Values...>>(std::move(token.state))),
            std::forward<Arguments>(arguments)...);
        return {};
    }
};

} // namespace detail

/// \namespace redlock::blocking
/// Nothing here may be waited for on the manager's own thread, that is in a handler, a coroutine or
/// a stop callback which it runs: such a call throws `errc::would_deadlock`, equal to
/// `std::errc::resource_deadlock_would_occur`, before anything is begun. All exceptions that carry
/// an error are `boost::system::system_error`.
namespace blocking {

/// A lock manager with a thread that runs it.
///
/// \par Thread safety
/// All member functions may be called from several threads at once, but the destructor.
class manager {
public:
    /// Starts the thread and the manager on it; connects in the background. Throws
    /// `std::invalid_argument` as `lock_manager` does.
    explicit manager(config configuration);
    manager(const manager&) = delete;
    manager& operator=(const manager&) = delete;
    /// Closes the manager (`lock_manager::async_close`: held locks are lost, and released if they
    /// are let go while it closes), lets what was begun on its executor end, and joins the thread.
    /// Not on that thread, and not while somebody waits in a call.
    ~manager();

    /// The manager, for asynchronous use beside the blocking one. Its handlers run on the thread;
    /// what blocks there holds up all locks, and what throws there ends the process.
    lock_manager& async() noexcept;

    /// Whether this is the manager's thread.
    bool on_own_thread() const noexcept;

    /// Waits until a majority of the masters is admitted. False if that took longer than `timeout`.
    /// \par Errors
    /// `errc::closed`; `operation_aborted` when a stop is requested.
    bool ready(std::chrono::milliseconds timeout, std::stop_token stop = {});

    /// Begins an asynchronous operation on the manager's thread and waits for its end:
    /// ```
    /// lock mine = manager.call([&](auto token) {
    ///     return manager.async().async_acquire("r", options, std::move(token));
    /// });
    /// ```
    /// \param begin passes its argument on as the completion token, and returns what the
    ///     asynchronous function returns. Exceptions of it come out of the call.
    /// \param stop cancels the operation (terminal) through its cancellation slot. The call returns
    ///     when the operation has ended, which is what cleans up behind it.
    /// \return the operation's value; a tuple where there are several, nothing where there is none
    /// \par Errors
    /// That of the operation, thrown; `operation_aborted` if it was cancelled; `errc::closed` if
    /// its handler was destroyed. A stop that comes too late changes nothing: the value is
    /// returned.
    template <typename Begin>
    auto call(Begin&& begin, std::stop_token stop = {}) {
        using begun = std::invoke_result_t<Begin&, detail::call_token>;
        static_assert(
            detail::is_call_begun<begun>,
            "return what the asynchronous function returns, with the token passed on to it");
        const auto state = std::make_shared<typename begun::state>();
        wait(
            state, [&] { begin(detail::call_token{state}); }, std::move(stop), std::nullopt);
        return value_of(*std::move(state->values));
    }

private:
    struct impl;

    template <typename... Values>
    static auto value_of(std::tuple<Values...>&& values) {
        if constexpr (sizeof...(Values) == 1) {
            return std::get<0>(std::move(values));
        } else if constexpr (sizeof...(Values) > 1) {
            return std::move(values);
        }
    }

    /// Throws the failure, if there is one.
    void wait(
        const std::shared_ptr<detail::call_state_base>& state,
        const std::function<void()>& begin,
        std::stop_token stop,
        std::optional<std::chrono::steady_clock::time_point> until);

    std::unique_ptr<impl> impl_;
};

/// A mutex over a majority of the masters. Meets the standard's *Lockable*: `std::unique_lock`,
/// `std::lock_guard`, `std::scoped_lock` of several, `std::condition_variable_any`.
///
/// It belongs to this object, not to a thread: any thread may unlock it. Within the process it
/// excludes whoever uses the same object, from `lock` to `unlock`, even when the lock was lost in
/// between: so a late `unlock` cannot end another thread's lock.
///
/// Other than a mutex in memory it can be lost while it is locked. `held` and `lost` tell, and the
/// fencing token protects the resource. `unlock` never fails; `last_release` says what it found.
///
/// \par Thread safety
/// All member functions may be called from several threads at once, but the destructor.
/// \par Object lifetimes
/// The manager must outlive it.
class mutex {
public:
    /// Without I/O.
    /// \param options as for `lock_manager::async_acquire`; `options.wait` bounds `lock`
    mutex(manager& owner, std::string resource, acquire_options options = {});
    mutex(const mutex&) = delete;
    mutex& operator=(const mutex&) = delete;
    /// Releases in the background what is still locked.
    ~mutex();

    /// Waits for `options.wait` until it has the lock, and throws if it has not by then: a wait
    /// without end would hide an outage. For the standard's wait use `wait_for::forever()`.
    /// \param stop ends the waiting with `operation_aborted`: an exception, as what follows `lock`
    ///   must not run without it
    /// \par Errors
    /// Those of `lock_manager::async_acquire`; `errc::would_deadlock`.
    void lock(std::stop_token stop = {});

    /// One attempt. False where the quorum works and the lock is not to be had
    /// (`condition::not_acquired`).
    /// \par Errors
    /// All others are thrown, an outage, too: who gets false goes on without the lock, or tries
    /// again at once, as `std::lock` does, and both would be wrong for ever.
    bool try_lock();

    /// Gives the lock back, also one that was lost, and waits for the masters' answer, for
    /// `master_timeout` at most; on the manager's own thread it does not wait. Without a lock it
    /// does nothing.
    void unlock() noexcept;

    /// Whether the lock may be relied on now; see `lock::held`.
    bool held() const noexcept;
    /// See `lock::deadline`.
    time_point deadline() const noexcept;
    /// See `lock::remaining`.
    std::chrono::nanoseconds remaining() const noexcept;
    /// See `lock::fencing_token`; empty while it is not locked.
    std::optional<std::uint64_t> fencing_token() const;
    /// Is stopped when the lock that is held now, or was last, is lost: at `deadline - stop_margin`
    /// at the latest, so while the lease still lasts if there is a margin. Not by `unlock`. Stop
    /// callbacks run on the manager's thread and must not block.
    std::stop_token lost() const;
    /// What the last `unlock` found; empty before the first and where it could not wait.
    std::optional<release_result> last_release() const;
    /// How the masters voted when the lock was last asked for.
    diagnostics last_attempt() const;

    /// What is locked.
    const std::string& resource() const noexcept { return resource_; }

protected:
    /// False for `condition::not_acquired`; other errors are thrown.
    bool try_lock_within(wait_for limit, std::stop_token stop);

private:
    /// Takes it, first from the other threads, then from the masters.
    error_code take(wait_for limit, const std::stop_token& stop);
    void let_others_in() noexcept;

    manager& manager_;
    const std::string resource_;
    const acquire_options options_;
    mutable std::mutex guard_;
    std::condition_variable_any free_;
    bool taken_ = false; // by some thread, from asking for it to having released it
    redlock::lock lock_;
    std::stop_source lost_;
    std::optional<release_result> last_release_;
    diagnostics last_attempt_;
};

/// A mutex with timed waits: meets *TimedLockable*.
class timed_mutex : public mutex {
public:
    using mutex::mutex;

    /// Waits for at most `limit`; zero or less is `try_lock`. False, and errors, as there: an
    /// outage that lasts to the end of the wait is thrown.
    /// \param stop ends the waiting with `operation_aborted`
    template <typename Rep, typename Period>
    bool try_lock_for(const std::chrono::duration<Rep, Period>& limit, std::stop_token stop = {}) {
        return try_lock_within(detail::wait_within(limit), std::move(stop));
    }

    /// The same until a moment. How long that is, is asked once: a clock that is set later does not
    /// change the wait.
    template <typename Clock, typename Duration>
    bool
    try_lock_until(const std::chrono::time_point<Clock, Duration>& end, std::stop_token stop = {}) {
        return try_lock_for(detail::time_until(end), std::move(stop));
    }
};

} // namespace blocking

}} // namespace redlock::REDLOCK_ABI

template <typename R, typename... Values>
class boost::asio::async_result<redlock::detail::call_token, R(Values...)>
    : public redlock::detail::call_result<Values...> {};
template <typename R, typename... Values>
class boost::asio::async_result<redlock::detail::call_token, R(redlock::error_code, Values...)>
    : public redlock::detail::call_result<Values...> {};
template <typename R, typename... Values>
class boost::asio::async_result<redlock::detail::call_token, R(std::exception_ptr, Values...)>
    : public redlock::detail::call_result<Values...> {};
