// The handle of an acquired lock.

#pragma once

#include <redlock/clock.hpp>
#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>
#include <redlock/with_diagnostics.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

class lock;

namespace detail {

class lease_handle;

/// Hears of the loss of a lock, without a handler for each lock; not of a release.
class loss_listener {
public:
    /// Has `to` hear of the loss. A lock has one listener.
    static void listen(const lock& mine, const std::shared_ptr<loss_listener>& to);

    /// Called once, with the manager's mutex held: `self` must not be destroyed inside the call.
    virtual void lost(std::shared_ptr<loss_listener> self, const diagnostics& why) = 0;

protected:
    loss_listener() = default;
    ~loss_listener() = default;
};

} // namespace detail

/// Handle of an acquired lock. Move-only. While it lives and renewal is on, the library extends the
/// lease. The destructor releases the lock in the background.
///
/// The owner of the lock is this object, not a thread or a coroutine.
///
/// After a loss the masters keep the lock while its holder may still be acting. This ends when the
/// handle lets go of the lock (`async_release` or the destructor), or at the last deadline that it
/// had, whichever comes first.
///
/// \par Cancellation
/// Terminal and partial cancellation end the wait of every asynchronous function with
/// `operation_aborted`; total cancellation only that of `async_wait_lost`, because the other
/// functions have effects. Commands that were sent still take effect; a cancelled release still
/// releases.
/// \par Executors
/// A handler runs on its associated executor (default: the manager's), never inside the initiating
/// function.
/// \par Thread safety
/// Distinct objects: safe. Shared objects: `get_executor`, `resource`, `slot`, `slots`, `secret`,
/// `owner_digest`, `fencing_token`, `has_fencing_token`, `valid`, `held`, `remaining`, `deadline`
/// and the initiating functions may be called concurrently; moving, assigning, abandoning and
/// destroying may not.
/// \par Object lifetimes
/// The handle may outlive the manager. It may outlive the `io_context` if no operation is started
/// on it afterwards.
class [[nodiscard]] lock {
public:
    /// The executor type of the manager.
    using executor_type = boost::asio::any_io_executor;

    /// Constructs an empty handle.
    lock() noexcept = default;
    /// Move constructor. Leaves `other` empty.
    lock(lock&& other) noexcept = default;
    /// Move assignment. Releases in the background the lock that this handle held before.
    lock& operator=(lock&& other) noexcept;
    /// Releases the lock in the background: starts the removal and returns. To get the result, call
    /// `async_release` first.
    ~lock();

    /// Returns true if this handle refers to a lock, held or not. Returns false if it was
    /// default-constructed, moved from or abandoned. On an empty handle all functions below throw
    /// `std::logic_error`, except `held`, `remaining`, `deadline` and `abandon`.
    bool valid() const noexcept { return handle_ != nullptr; }

    /// Returns the executor of the manager that acquired the lock.
    executor_type get_executor() const;

    /// Returns true if the lock may be relied on at this moment. Reads a clock; no I/O. Returns
    /// false from `deadline() - stop_margin` on, after a known loss, and from the start of a
    /// release on.
    ///
    /// The result does not cover the next moment: work that may outlast the lease needs a fencing
    /// check at the resource.
    bool held() const noexcept;

    /// Returns the name of the resource, without the prefix. Of several resources: their names,
    /// joined by ", ". Of slots: `pool:slot:number`, or the same with several numbers; for people
    /// only, because no lock has this name.
    std::string_view resource() const;

    /// Returns the number of the slot: 0 to size - 1. While it is held, no other holder in any
    /// process has this number. Of several slots: the smallest.
    /// \throws std::logic_error if this is not a lock on slots
    std::size_t slot() const;

    /// Returns the numbers of the slots in increasing order. Empty for a lock on resources. Valid
    /// as long as the handle.
    std::span<const std::uint32_t> slots() const;

    /// Returns the value that the masters store for this lock: 40 hexadecimal digits, new for each
    /// acquisition. Keep it secret: it is all that a client needs to release the lock.
    std::string_view secret() const;

    /// Returns a digest of the secret: 16 hexadecimal digits, as queries show them
    /// (`lock_status::owner_digest`). It is new for each acquisition, except after a local handoff.
    /// Log it, so that a lock can be matched with its process.
    std::string owner_digest() const;

    /// Returns the fencing token.
    ///
    /// The fencing token is larger than that of every earlier owner of this resource. It is below
    /// 2^53 and stays the same while this lock is held. Pass it to the resource with each write,
    /// and let the resource refuse a token smaller than the largest it has seen (see fenced.hpp).
    /// \throws std::logic_error unless `acquire_options::fencing` was set
    std::uint64_t fencing_token() const;

    /// Returns whether `acquire_options::fencing` was set.
    bool has_fencing_token() const;

    /// Returns the end of the lease. As far as is known, a majority of the masters keeps the key
    /// until then, whatever happens to this process; clock drift is already subtracted.
    ///
    /// Extensions move the deadline forward. It moves back when masters turn out to have lost the
    /// key. The value is meaningless once `held()` is false, and `time_point::min()` for an empty
    /// handle.
    time_point deadline() const noexcept;

    /// Returns how long `held()` stays true if the lock is neither extended nor lost. Returns zero
    /// if `held()` is false.
    std::chrono::nanoseconds remaining() const noexcept;

    /// Extends the lease: asks all masters to keep the lock for `ttl` from now on. Never shortens a
    /// lease. Never takes over a lost lock: missing keys are set again only while no other owner
    /// can have had a majority.
    /// \param ttl the new lease. Range: more than the clock drift, up to `health::max_ttl`; or
    ///   `default_ttl`.
    /// \par Completion signature
    /// `void(error_code, extend_result)`: `capped` if `acquire_options::max_hold` ends the lease
    /// before the requested ttl has passed
    /// \par Errors
    /// - `errc::no_quorum`: no majority confirmed in time. The previous deadline still applies.
    /// - `errc::lost`: the lease has ended, or a majority of the masters no longer has the lock.
    /// - `errc::released`, `errc::closed`: the lock was released, or the manager was closed.
    /// - `errc::invalid_argument`: `ttl` is out of range; the diagnostics show the allowed range.
    template <typename CompletionToken = default_token>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& token = {}) {
        return detail::initiate<void(error_code, extend_result), &lock::start_extend>(
            get_executor(), std::forward<CompletionToken>(token), handle_, ttl);
    }

    /// Turns an exclusive lock of one resource into that of a reader (`lock_mode`). The handle, its
    /// secret and its deadline stay the same, and nobody else can acquire the resource in between.
    /// Guarded protocol only.
    ///
    /// **The lock is only a reader's lock from the call on, whatever the result.**
    /// `fencing_token()` keeps its value, but must not be used for writes any more. The operation
    /// completes when a majority of the masters admits other readers; renewals convert the rest.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// - `errc::no_quorum`: too few masters replied. The lock is held until `deadline()`, and some
    ///   masters still refuse readers until it is renewed or released.
    /// - `errc::lost`, `errc::released`, `errc::closed`: the lock was no longer held.
    /// - `errc::invalid_argument`: this is not an exclusive lock of one resource, or the protocol
    ///   is plain.
    template <typename CompletionToken = default_token>
    auto async_downgrade(CompletionToken&& token = {}) {
        return detail::initiate<void(error_code), &lock::start_downgrade>(
            get_executor(), std::forward<CompletionToken>(token), handle_);
    }

    /// Releases the lock. Renewal stops first, and `held()` is false when this function returns.
    ///
    /// A master that cannot be reached is sent the removal after reconnection, or expires the key
    /// with its ttl. The wait ends when a majority has neither received a command nor replied for
    /// `config::master_timeout`, and after ten times `master_timeout` at the latest. Further calls
    /// return the same result. After a loss this removes the remaining
    /// keys of the lock, and the result is `expired`, `stolen` or `uncertain`, never `released`.
    /// \par Completion signature
    /// `void(error_code, release_result)`
    /// \par Errors
    /// None except `operation_aborted` on cancellation. A lock that is already gone is a result
    /// (`expired`, `stolen`), not an error.
    template <typename CompletionToken = default_token>
    auto async_release(CompletionToken&& token = {}) {
        return detail::initiate<void(error_code, release_result), &lock::start_release>(
            get_executor(), std::forward<CompletionToken>(token), handle_);
    }

    /// Waits until the lock is lost. A timer completes it at `deadline - stop_margin` at the
    /// latest.
    /// \par Completion signature
    /// `void(error_code, loss_reason)`
    /// \par Errors
    /// - `errc::released`: the lock was not lost, but released (`async_release` or the destructor)
    ///   or abandoned.
    /// \par Diagnostics
    /// The last vote of each master.
    template <typename CompletionToken = default_token>
    auto async_wait_lost(CompletionToken&& token = {}) const {
        return detail::initiate<void(error_code, loss_reason), &lock::start_wait_lost>(
            get_executor(), std::forward<CompletionToken>(token), handle_);
    }

    /// Gives up the lock without releasing it. The masters keep it until its ttl ends, and it is no
    /// longer extended. Also works after a loss, unless the removal has started. Use it to pass the
    /// lock to another process (`lock_manager::async_attach`), or to keep others out until the ttl
    /// ends. The handle is empty afterwards.
    ///
    /// If the secret is passed on, acquire the lock with `acquire_options::transferable`, with
    /// `fencing`, or with `lock_manager::async_acquire_as`. Otherwise do not use the secret after
    /// the lease has ended. A `SET` of the acquisition that was stuck in a broken connection may
    /// make an expired lock look held, even if another owner has had it since.
    void abandon() noexcept;

private:
    friend class detail::lease_handle;
    friend class detail::loss_listener;
    explicit lock(std::shared_ptr<detail::lease_handle> handle) noexcept;

    template <typename... Results>
    using handler = boost::asio::any_completion_handler<void(error_code, Results...)>;
    using handle_ptr = std::shared_ptr<detail::lease_handle>;
    using sink = detail::diagnostics_sink;

    static void start_extend(handle_ptr, std::chrono::milliseconds, sink, handler<extend_result>);
    static void start_downgrade(handle_ptr, sink, handler<>);
    static void start_release(handle_ptr, sink, handler<release_result>);
    static void start_wait_lost(handle_ptr, sink, handler<loss_reason>);

    handle_ptr handle_;
};

}} // namespace redlock::REDLOCK_ABI
