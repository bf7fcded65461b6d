// The lock manager: one per process and quorum. Acquires locks and maintains the connections to the
// masters.

#pragma once

#include <redlock/config.hpp>
#include <redlock/lock.hpp>
#include <redlock/metrics.hpp>
#include <redlock/options.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution_context.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

class lock_manager;

namespace detail {

class lock_watch;
class manager_impl;
class shared_manager;
struct manager_access;
struct watched_lock;

/// The arguments of an acquisition.
struct lock_request {
    /// What `secret` is for.
    enum class secret_use : std::uint8_t {
        none,
        take,   ///< to acquire a lock with this secret
        attach, ///< to take over a lock that was acquired elsewhere
    };

    target wanted;                      ///< what to lock
    acquire_options options = {};       ///< as the caller passed them
    secret_use uses = secret_use::none; ///< whether there is a secret
    std::string secret = {};            ///< that the caller chose
};

} // namespace detail

/// Acquires locks on a majority of independent Redis masters.
///
/// \par Executors
/// A handler runs on its associated executor (default: the manager's), never inside the initiating
/// function. The manager itself does its work in short sections under a mutex, in any thread that
/// initiates an operation or runs the executor. A handler that blocks delays the manager only if it
/// blocks the executor's only thread.
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, except for move construction, assignment and
/// destruction.
/// \par Object lifetimes
/// The destructor starts the same shutdown as `async_close` and returns. Waiters complete with
/// `errc::closed`, and held locks are lost with `loss_reason::closed`. A lost lock whose holder
/// lets go of it is released as long as the executor runs; the others expire with their ttl. The
/// manager must not outlive the `io_context` of its executor. A handler that owns the manager whose
/// operation it waits for is destroyed with the context only after the manager was closed.
/// \par Default tokens
/// Acquire, attach, extend, release, query, the wait for a loss and changes of the members have
/// `default_token`: `co_await` throws `error_with_diagnostics`. The others have
/// `boost::asio::deferred`. With another completion token the completion signature is as
/// documented.
class lock_manager {
public:
    /// The executor type.
    using executor_type = boost::asio::any_io_executor;

    /// Constructs a manager. Validates the configuration and reads the TLS files; does no other
    /// I/O.
    /// \throws std::invalid_argument if a value is invalid; `what()` names the value and what is
    ///   allowed.
    /// \throws boost::system::system_error if the system has no file descriptor left
    lock_manager(executor_type executor, config configuration);
    /// Constructs a manager on the executor of an `io_context` or another execution context.
    template <std::derived_from<boost::asio::execution_context> Context>
    lock_manager(Context& context, config configuration)
        : lock_manager(context.get_executor(), std::move(configuration)) {}
    /// Move constructor. The moved-from object can only be assigned to or destroyed.
    lock_manager(lock_manager&&) noexcept;
    /// Move assignment. Shuts down the manager that this object held before, as the destructor
    /// does.
    lock_manager& operator=(lock_manager&&) noexcept;
    ~lock_manager();

    /// Returns the executor that was passed to the constructor.
    executor_type get_executor() const noexcept;

    /// Runs the manager: connects to the masters and reconnects lost connections until it is
    /// cancelled or the manager is closed. Can be called once per manager. Operations that are
    /// started before it complete with `errc::not_running`.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// - No error: `async_close` was called, or the manager was destroyed.
    /// - `operation_aborted`: the operation was cancelled.
    /// - `errc::closed`: the manager was closed before.
    /// - `boost::asio::error::already_started`: `async_run` was called before.
    ///
    /// \par Cancellation
    /// Terminal and partial: closes the manager as `async_close` does, then completes.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_run(CompletionToken&& token = {}) {
        return begin<void(error_code), &lock_manager::start_run>(
            std::forward<CompletionToken>(token));
    }

    /// Waits until a majority of the masters is admitted, so that an acquisition can succeed.
    /// `get_health()` shows which masters are not admitted, and why.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`.
    /// \par Cancellation
    /// Terminal, partial and total: ends the wait with `operation_aborted`, without side effects.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_ready(CompletionToken&& token = {}) {
        return begin<void(error_code), &lock_manager::start_ready>(
            std::forward<CompletionToken>(token));
    }

    /// Acquires the lock on a resource, the locks on several resources as one `lock`, or free slots
    /// of a pool.
    ///
    /// An attempt sends a request to all masters at once. It succeeds if a majority of the
    /// configured masters grants the lock while the rest of the lease is longer than `min_validity`
    /// and `stop_margin`. A failed attempt is rolled back, and the next one starts after a random
    /// delay, as long as `options.wait` allows.
    ///
    /// **Several resources** (guarded protocol and `lock_mode::exclusive` only, without `fifo`)
    /// are acquired in one round trip. Each master grants all of them or none. The lock excludes
    /// every lock of one of the resources, and is excluded by it, readers included. Nothing is held
    /// during the wait, so two owners that name the same resources in opposite orders cannot block
    /// each other. The lock has one deadline, one secret and, with `acquire_options::fencing`, one
    /// fencing token, which is larger than that of every earlier owner of any of the resources. It
    /// is extended and lost as a whole. `lock::async_release` frees the resources that it still
    /// holds.
    ///
    /// **Slots** (`lock_mode::exclusive` only, without `fifo`): any free ones are acquired,
    /// and no number is preferred; `lock::slots` returns them. It takes two round trips for any
    /// pool size: one to find free slots and one to vote on them. Each slot that another process
    /// acquires in between costs one more. While too few are free, it waits as long as
    /// `options.wait` allows, and the release of any slot notifies it (guarded protocol; otherwise
    /// it retries after at most `retry_delay_max`). Within one process only the waiter that arrived
    /// first sends requests, and the others queue after it. Between processes the order is
    /// unspecified. A released slot may be handed off to the next waiter of the same process
    /// without a round trip (`config::local_handoff_time`). With `wait_for::none()` it checks the
    /// pool once and tries some of the slots that are free. A fencing token is larger than that of
    /// every earlier owner of the number; tokens of different numbers are unrelated. Each master
    /// grants several slots together or none, and the wait for them may take long if other callers
    /// keep acquiring single slots.
    /// \param wanted what to lock: a name, a list of names, or `slots`
    /// \param options see `acquire_options`
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// - `errc::contended`: a majority replied, and another owner has the lock, one of the
    /// resources
    ///   or all slots, or was faster. The diagnostics show the longest of the leases; of a pool
    ///   without free slots the one that ends first.
    /// - `errc::no_quorum`: no majority of the masters could vote. This includes masters that check
    ///   hash slots like cluster nodes do, if the names are in different slots. The texts of the
    ///   votes show these names. A hash tag in `config::key_prefix` keeps all keys in one slot.
    /// - `errc::validity_exhausted`: too late for `min_validity` or `stop_margin`.
    /// - `errc::wait_timed_out`: the wait ended during an attempt.
    /// - `errc::not_running`, `errc::closed`.
    /// - `errc::invalid_argument`: a name or an option is out of range, or the options do not go
    ///   together; the diagnostics show what is allowed. Nothing was sent.
    ///
    /// Keep the lock: one that is dropped is released, and g++ 12 does not warn of
    /// `co_await async_acquire(...);`. On any error it is empty. Each master that was asked has
    /// been sent the removal of what it may have granted, on the same connection after the
    /// acquisition. If that connection broke, the removal is sent after reconnection, unless the
    /// ttl has passed by then.
    /// \par Cancellation
    /// Terminal and partial: completes with `operation_aborted` after the removal has been sent.
    /// Total: the same, but only while no command has been sent for this acquisition. If the lock
    /// was granted before the cancellation, the operation completes with the lock.
    template <typename CompletionToken = default_token>
    auto async_acquire(target wanted, acquire_options options = {}, CompletionToken&& token = {}) {
        return begin<void(error_code, lock), &lock_manager::start_acquire>(
            std::forward<CompletionToken>(token),
            detail::lock_request{.wanted = std::move(wanted), .options = options});
    }
    /// Overload that uses the default options.
    template <typename CompletionToken>
        requires(!std::convertible_to<CompletionToken, acquire_options>)
    auto async_acquire(target wanted, CompletionToken&& token) {
        return async_acquire(
            std::move(wanted), acquire_options(), std::forward<CompletionToken>(token));
    }

    /// Acquires the lock with a secret that the caller chooses. Use it if another process must be
    /// able to attach to the lock or release it after this process is gone.
    ///
    /// Makes a single attempt. The rollback of a failed attempt may still be in flight, and would
    /// remove any lock with the same secret, even one that is held. For the same reason, use a
    /// secret for one call only, whatever the result. Generate it from 20 random bytes.
    /// \param resource as for `async_acquire`
    /// \param secret 40 lowercase hexadecimal digits, never used before
    /// \param options as for `async_acquire`; `wait` is ignored, and `mode` must be
    ///   `lock_mode::exclusive`
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// As `async_acquire`.
    /// \par Cancellation
    /// As `async_acquire`.
    template <typename CompletionToken = default_token>
    auto async_acquire_as(
        std::string resource,
        std::string secret,
        acquire_options options = {},
        CompletionToken&& token = {}) {
        return begin<void(error_code, lock), &lock_manager::start_acquire>(
            std::forward<CompletionToken>(token),
            detail::lock_request{
                .wanted = std::move(resource),
                .options = options,
                .uses = detail::lock_request::secret_use::take,
                .secret = std::move(secret)});
    }
    /// Overload that uses the default options.
    template <typename CompletionToken>
        requires(!std::convertible_to<CompletionToken, acquire_options>)
    auto async_acquire_as(std::string resource, std::string secret, CompletionToken&& token) {
        return async_acquire_as(
            std::move(resource),
            std::move(secret),
            acquire_options(),
            std::forward<CompletionToken>(token));
    }

    /// Takes over a lock that is already held. Use it for a lock that another process handed off
    /// with its secret (`lock::secret`, then `lock::abandon`), or that this process held before a
    /// restart.
    ///
    /// Asks all masters to keep the lock for `options.ttl` if it still has this secret. Succeeds
    /// when a majority of the configured masters confirms; the deadline counts from this request.
    /// Afterwards the lock is renewed, monitored and released like any other.
    ///
    /// A missing key is created only in the guarded protocol, without fencing, if half of the
    /// masters still have the lock. An attach removes nothing: on an error, and on cancellation,
    /// the lock stays as it is, except that some masters may keep it for up to `options.ttl`
    /// longer.
    ///
    /// \par Preconditions
    /// - No other client uses the secret: all its users share the lock, and any of them can release
    ///   it. Call `lock::abandon` before the secret is passed on.
    /// - The lock has not ended, unless it was acquired with `acquire_options::transferable`, with
    ///   fencing or with `async_acquire_as`: see `lock::abandon`.
    /// - The acquisition that used the secret has completed successfully. If it failed, its
    ///   rollback may still be in flight. If it has not completed, missing votes count as a lost
    ///   lock.
    /// - The lock was acquired with `async_acquire` or `async_acquire_as`. Of a lock on several
    ///   resources only the named one is taken over. Attaching to a reader's lock or to a slot is
    ///   not supported.
    ///
    /// \par Fencing
    /// With `options.fencing` the new holder gets its own, larger fencing token, so that the
    /// resource can refuse the previous holder. It takes two more round trips, and the lock must
    /// have been acquired with fencing. If two callers attach at the same moment, both may get the
    /// same fencing token.
    /// \param resource as for `async_acquire`
    /// \param secret 40 lowercase hexadecimal digits
    /// \param options as for `async_acquire`; `wait` and `fifo` are ignored, and `mode` must be
    ///   `lock_mode::exclusive`
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// - `errc::lost`: the lock is gone; no majority of the masters can still have it.
    /// - `errc::no_quorum`: neither confirmed nor known to be gone; or, with fencing, no majority
    ///   of the masters has a counter for this lock.
    /// - `errc::validity_exhausted`, `errc::not_running`, `errc::closed`: as for `async_acquire`.
    /// - `errc::invalid_argument`: the name, the secret or an option is out of range. Nothing was
    ///   sent.
    ///
    /// \par Cancellation
    /// Terminal and partial: completes with `operation_aborted`.
    template <typename CompletionToken = default_token>
    auto async_attach(
        std::string resource,
        std::string secret,
        acquire_options options = {},
        CompletionToken&& token = {}) {
        return begin<void(error_code, lock), &lock_manager::start_acquire>(
            std::forward<CompletionToken>(token),
            detail::lock_request{
                .wanted = std::move(resource),
                .options = options,
                .uses = detail::lock_request::secret_use::attach,
                .secret = std::move(secret)});
    }
    /// Overload that uses the default options.
    template <typename CompletionToken>
        requires(!std::convertible_to<CompletionToken, acquire_options>)
    auto async_attach(std::string resource, std::string secret, CompletionToken&& token) {
        return async_attach(
            std::move(resource),
            std::move(secret),
            acquire_options(),
            std::forward<CompletionToken>(token));
    }

    /// Queries all masters for the owner of a resource, or for the held slots of a pool, without
    /// changing anything. Use it for people and monitoring only: the result may be out of date when
    /// it arrives and does not replace acquiring the lock. For a pool each master sends 47 bytes
    /// for each held slot.
    /// \param asked one resource, or `slots`, of which `count` is ignored
    /// \par Completion signature
    /// `void(error_code, lock_status)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`; `errc::invalid_argument`, also for several resources. A
    /// master that does not reply is not an error; without a majority of replies the state is
    /// `undecided`.
    /// \par Cancellation
    /// Terminal, partial and total: ends the wait with `operation_aborted`.
    /// \par Diagnostics
    /// Yes: the replies, as in `lock_status::masters`.
    template <typename CompletionToken = default_token>
    auto async_query(target asked, CompletionToken&& token = {}) {
        return begin<void(error_code, lock_status), &lock_manager::start_query>(
            std::forward<CompletionToken>(token), std::move(asked));
    }

    /// Adds a master to the quorum while locks are taken (guarded protocol only).
    ///
    /// Plans the change on all members and on the new master. The change becomes final after the
    /// longest quarantine, when no lease from before the last change is left. Completes when a
    /// majority of the members has recorded the final change and the vote of the new master counts;
    /// at once if it is a member already. All members and the new master must reply. As long as one
    /// does not, the change waits, and `get_health().change` names that master. See
    /// docs/operations/masters.md.
    ///
    /// A manager makes one change at a time. A second call for the same change completes together
    /// with the first one. Several managers may make the same change at once.
    /// \param name the name of the master: `endpoint::name`, or the address as in
    ///   `to_string(endpoint)`. It must be one of `config::masters`, as must all members.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// The diagnostics and the log have the reason and what to do.
    /// - `errc::invalid_argument`: the name is not one of `config::masters`, the protocol is plain,
    ///   or the change cannot be made with this list of masters. Nothing more was planned.
    /// - `errc::conflicting_change`: another change is planned and not final, or in progress in
    /// this
    ///   manager: finish it first. Also if the members have changed twice since this call.
    /// - `errc::no_quorum`: the list of masters is outdated.
    /// - `errc::not_running`, `errc::closed`.
    ///
    /// \par Cancellation
    /// Terminal, partial and total: stops waiting with `operation_aborted`. The plan stays on the
    /// masters and blocks other changes until the next call, of any manager, finishes it. There is
    /// no undo: finish the change, then make the opposite one.
    /// \par Diagnostics
    /// The message; no votes.
    template <typename CompletionToken = default_token>
    auto async_add_member(std::string name, CompletionToken&& token = {}) {
        return begin<void(error_code), &lock_manager::start_change>(
            std::forward<CompletionToken>(token), std::move(name), std::nullopt);
    }

    /// Removes a master from the quorum while locks are taken. The removed master need not reply;
    /// all other members must. Completes when a majority of them has recorded the final change, or
    /// at once if it is not a member. A quorum of two masters cannot lose one. Shut the removed
    /// master down afterwards.
    ///
    /// Otherwise the same as `async_add_member`.
    template <typename CompletionToken = default_token>
    auto async_remove_member(std::string name, CompletionToken&& token = {}) {
        return begin<void(error_code), &lock_manager::start_change>(
            std::forward<CompletionToken>(token), std::nullopt, std::move(name));
    }

    /// Adds one master to the quorum and then removes another. If the old master does not reply
    /// when the change begins, removes it first. Each step takes one quarantine. Completes when
    /// both are final. To continue after a cancellation or a restart, repeat the call: a step that
    /// is final or planned is not begun anew.
    /// \param old_name the name of the master that is removed
    /// \param new_name the name of the master that is added; both as for `async_add_member`
    ///
    /// Otherwise the same as `async_add_member`.
    template <typename CompletionToken = default_token>
    auto
    async_replace_member(std::string old_name, std::string new_name, CompletionToken&& token = {}) {
        return begin<void(error_code), &lock_manager::start_change>(
            std::forward<CompletionToken>(token), std::move(new_name), std::move(old_name));
    }

    /// Shuts down gracefully.
    ///
    /// Waiters complete with `errc::closed`. Held locks are lost with `loss_reason::closed`, but
    /// their keys remain, because the code of the holder may still be running. Each lock is
    /// released when its holder lets go of it, by `async_release` or by destroying the handle.
    ///
    /// Completes when all locks have been let go and the masters have confirmed the releases, or
    /// when `master_timeout` has passed since the last progress. Locks that are still held then
    /// expire with their ttl. Finally the connections are closed and `async_run` completes. Calling
    /// it again is safe.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// `operation_aborted` if it was cancelled.
    /// \par Cancellation
    /// Terminal and partial: ends the wait with `operation_aborted`. The shutdown continues.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_close(CompletionToken&& token = {}) {
        return begin<void(error_code), &lock_manager::start_close>(
            std::forward<CompletionToken>(token));
    }

    /// Returns the current counters.
    metrics get_metrics() const;

    /// Returns the current state of the quorum and of each master.
    health get_health() const;

private:
    friend struct detail::manager_access; // the testing kit and the command line
    friend class detail::shared_manager;  // the primitives
    friend class detail::lock_watch;

    template <typename... Results>
    using handler = boost::asio::any_completion_handler<void(error_code, Results...)>;
    using impl_ptr = std::shared_ptr<detail::manager_impl>;
    using sink = detail::diagnostics_sink;

    template <typename Signature, auto start, typename CompletionToken, typename... Arguments>
    auto begin(CompletionToken&& token, Arguments&&... arguments) {
        return detail::initiate<Signature, start>(
            get_executor(),
            std::forward<CompletionToken>(token),
            impl_,
            std::forward<Arguments>(arguments)...);
    }

    explicit lock_manager(impl_ptr impl) noexcept;
    // Not for callers: the copy does not close the manager.
    lock_manager(const lock_manager& owner) noexcept : impl_(owner.impl_), owns_(false) {}
    lock_manager& operator=(const lock_manager& owner) noexcept {
        return *this = lock_manager(owner);
    }

    static void start_run(impl_ptr, handler<>);
    static void start_ready(impl_ptr, handler<>);
    static void start_close(impl_ptr, handler<>);
    static void start_acquire(impl_ptr, detail::lock_request, sink, handler<lock>);
    using optional_name = std::optional<std::string>;
    static void start_change(impl_ptr, optional_name adds, optional_name removes, sink, handler<>);
    static void start_query(impl_ptr, target, sink, handler<lock_status>);

    impl_ptr impl_;
    bool owns_ = true; // closes the manager
};

namespace detail {

/// A manager that others share with its owner, so that the owner may move it. Does not close it.
class shared_manager : public lock_manager {
public:
    /// Shares the manager of `owner`.
    explicit shared_manager(const lock_manager& owner) noexcept : lock_manager(owner) {}

    /// Throws `std::invalid_argument` if an acquisition with these arguments would be refused, or
    /// is not exclusive although `with` allows nothing else.
    void require(
        std::string_view resource,
        const acquire_options& options,
        const char* with = nullptr) const;

    /// The configuration of the manager.
    const config& configuration() const noexcept;

    /// What the operations of a primitive share. The first one makes it, of the executor. The
    /// manager owns it, so it does not own the manager.
    std::shared_ptr<void> common(std::shared_ptr<void> (*make)(const executor_type&)) const;

    /// Whether it is called by the observer or the logger of a manager.
    static bool reports_here(const lock_manager& manager) noexcept;
};

/// Queries a lock repeatedly, and is notified of its release in between. Refers to the manager
/// weakly, because it may be part of a handler that waits there: the functions return false, and
/// do nothing, if the manager is gone.
class lock_watch {
public:
    /// Subscribes to the release notifications of `resource`.
    lock_watch(const shared_manager& manager, std::string resource);
    lock_watch(const lock_watch&) = delete;
    lock_watch& operator=(const lock_watch&) = delete;
    ~lock_watch(); // NOLINT(bugprone-exception-escape): see there

    /// As `lock_manager::async_query`.
    bool query(boost::asio::any_completion_handler<void(error_code, lock_status)> done);
    /// Completes after `pause`, or once there was a notification since the last query started.
    bool wait(
        std::chrono::milliseconds pause,
        boost::asio::any_completion_handler<void(error_code)> done);

private:
    const std::weak_ptr<manager_impl> manager_;
    const std::string resource_;
    watched_lock* watched_;
};

} // namespace detail

}} // namespace redlock::REDLOCK_ABI
