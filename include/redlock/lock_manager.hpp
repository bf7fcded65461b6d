// The manager: one per process and quorum. Takes locks, and keeps the connections to the masters.

#pragma once

#include <redlock/config.hpp>
#include <redlock/lock.hpp>
#include <redlock/metrics.hpp>
#include <redlock/options.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution_context.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {
class manager_impl;
struct manager_access;
} // namespace detail

/// Takes locks on a majority of independent Redis masters.
///
/// \par Executors
/// A handler runs on its associated executor (default: that of the manager), never inside the
/// initiating function. The manager's own work runs in short sections under a mutex, in whichever
/// thread begins an operation or runs the executor; a handler that blocks does not hold it up
/// unless it blocks the executor's only thread.
/// \par Thread safety
/// All member functions may be called from several threads at once, but the destructor.
/// \par Object lifetimes
/// The destructor begins what `async_close` does and returns: waiters end with `errc::closed`, and
/// held locks are lost with `loss_reason::closed`. Those that are let go are released as long as
/// the executor runs; the others expire by their ttl. A `diagnostics` argument must live until the
/// handler runs. The manager must not outlive the `io_context` of its executor.
class lock_manager {
public:
    /// What it runs on.
    using executor_type = boost::asio::any_io_executor;

    /// Checks the configuration and reads the TLS files; no other I/O. Throws
    /// `std::invalid_argument` with a sentence that says which value is wrong and what is allowed.
    lock_manager(executor_type executor, config configuration);
    /// The same, on the executor of an `io_context` or another execution context.
    template <std::derived_from<boost::asio::execution_context> Context>
    lock_manager(Context& context, config configuration)
        : lock_manager(context.get_executor(), std::move(configuration)) {}
    /// What was moved from can be assigned to or destroyed, and nothing else.
    lock_manager(lock_manager&&) noexcept;
    /// Ends what this one was before, as the destructor does.
    lock_manager& operator=(lock_manager&&) noexcept;
    lock_manager(const lock_manager&) = delete;
    lock_manager& operator=(const lock_manager&) = delete;
    ~lock_manager();

    /// The one it was made with.
    executor_type get_executor() const noexcept;

    /// Connects to the masters, keeps the connections and reconnects them until it is cancelled or
    /// the manager is closed. A manager runs once. Operations that are begun before it runs end
    /// with `errc::not_running`.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// None (success) after `async_close`; `operation_aborted` when cancelled; `errc::closed` if it
    /// was closed before; `errc::invalid_argument` if it runs already.
    /// \par Cancellation
    /// Terminal, partial and total: closes the manager as `async_close` does, then completes.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_run(CompletionToken&& token = {}) {
        return initiate<run_signature, initiate_run>(std::forward<CompletionToken>(token));
    }

    /// Waits until a majority of the masters is admitted, so that an acquire can succeed. The
    /// masters that hold this up, and why, are in `get_health()`.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`.
    /// \par Cancellation
    /// Terminal, partial and total: ends the waiting with `operation_aborted`; nothing else
    /// changes.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_ready(CompletionToken&& token = {}) {
        return initiate<ready_signature, initiate_ready>(std::forward<CompletionToken>(token));
    }

    /// Takes the lock on `resource`: asks all masters at once, and has it when a majority of the
    /// configured masters granted it with `min_validity`, and with `stop_margin`, left. Else it
    /// removes what was granted, and tries again after a random delay as long as `options.wait`
    /// allows.
    /// \param resource 1 to `resource_name_max` bytes of any value
    /// \param options see `acquire_options`
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// - `errc::contended`: a majority answered, and somebody has it.
    /// - `errc::no_quorum`: no majority of the masters could vote.
    /// - `errc::too_slow`: granted, but with less than that left.
    /// - `errc::timed_out`: the wait ended in the middle of an attempt.
    /// - `errc::not_running`, `errc::closed`.
    /// - `errc::invalid_argument`: the name or an option is out of range; nothing was sent.
    ///
    /// On any error the handle is empty, and the removal of whatever may have been granted is on
    /// the wire of each master that was asked, behind the command that it undoes (or owed to it, if
    /// its connection broke, and paid when it is back, until the ttl is over).
    /// \par Cancellation
    /// Terminal, partial and total: ends with `operation_aborted` once the removal is on the wire.
    /// If the lock was granted before the cancellation came, it completes with the lock.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire(
        std::string resource, acquire_options options = {}, CompletionToken&& token = {}) {
        return acquire(std::move(resource), options, nullptr, std::forward<CompletionToken>(token));
    }
    /// With the default options.
    template <typename CompletionToken>
        requires(!std::convertible_to<CompletionToken, acquire_options>)
    auto async_acquire(std::string resource, CompletionToken&& token) {
        return acquire(std::move(resource), {}, nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted in the last attempt.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire(
        std::string resource,
        acquire_options options,
        diagnostics& out,
        CompletionToken&& token = {}) {
        return acquire(std::move(resource), options, &out, std::forward<CompletionToken>(token));
    }

    /// Takes the lock with a token of the caller's choice, which may be known elsewhere before: for
    /// one who has to attach to the lock, or to release it, when this process is gone.
    ///
    /// One attempt, as the removal of a failed one may still be on its way and would end any lock
    /// that has the same token, one that is held already, too. For the same reason a token is good
    /// for one call only, whatever came of it: draw it from 20 random bytes.
    /// \param lock_token 40 hexadecimal digits in lower case, never used before
    /// \param options as for `async_acquire`; `wait` must be `wait_for::none()`
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// As `async_acquire`.
    /// \par Cancellation
    /// As `async_acquire`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire_as(
        std::string resource,
        std::string lock_token,
        acquire_options options,
        CompletionToken&& token = {}) {
        return name_token<initiate_acquire_as>(
            std::move(resource),
            std::move(lock_token),
            options,
            nullptr,
            std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire_as(
        std::string resource,
        std::string lock_token,
        acquire_options options,
        diagnostics& out,
        CompletionToken&& token = {}) {
        return name_token<initiate_acquire_as>(
            std::move(resource),
            std::move(lock_token),
            options,
            &out,
            std::forward<CompletionToken>(token));
    }

    /// Takes over a lock that is held already: one that another process has handed on with its
    /// token (`lock::token`, then `lock::abandon`), or that this one had before it was restarted.
    /// Asks all masters to keep the lock for `options.ttl` more if it has this token, and has it
    /// when a majority of the configured masters said so; its deadline counts from this request.
    /// From then on it is a lock as any other: renewed, watched, released.
    ///
    /// A key that is missing is not created, and nothing is claimed that a majority does not
    /// confirm. Where a majority has seen the lock gone, what is left of it is removed; on any
    /// other error, and when cancelled, the lock stays as it is, except that masters which have it
    /// may keep it for up to `options.ttl` longer.
    ///
    /// Whoever else still uses that token shares the lock: its release ends it for both. So give
    /// the lock up with `lock::abandon` before the token goes out, and never attach to a token
    /// whose acquire failed, as its removal may still be on its way, or has not completed: votes
    /// that are still to come look gone, and the others would be removed.
    ///
    /// For locks of `async_acquire` and `async_acquire_as`. Of several resources under one lock it
    /// takes over the one that is named; of the writer's lock of a `shared_mutex` it makes an
    /// exclusive lock, which does not look for readers. A reader or a slot cannot be attached to.
    ///
    /// With `options.fencing` the new holder has a fencing token of its own, larger than that of
    /// the holder before, which the resource can then refuse: two round trips more. The lock must
    /// have been taken with fencing. Two who attach at the same moment may both have the same.
    /// \param lock_token 40 hexadecimal digits in lower case
    /// \param options as for `async_acquire`; `wait` and `order` mean nothing here
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// - `errc::lost`: the lock is gone: on so many masters it is not there, or is somebody else's,
    ///   that no majority can have it.
    /// - `errc::no_quorum`: neither confirmed nor known to be gone; or, with fencing, no majority
    ///   has a counter for this lock.
    /// - `errc::too_slow`, `errc::not_running`, `errc::closed`: as for `async_acquire`.
    /// - `errc::invalid_argument`: the name, the token or an option is out of range; nothing was
    ///   sent.
    /// \par Cancellation
    /// Terminal, partial and total: ends with `operation_aborted`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_attach(
        std::string resource,
        std::string lock_token,
        acquire_options options = {},
        CompletionToken&& token = {}) {
        return name_token<initiate_attach>(
            std::move(resource),
            std::move(lock_token),
            options,
            nullptr,
            std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_attach(
        std::string resource,
        std::string lock_token,
        acquire_options options,
        diagnostics& out,
        CompletionToken&& token = {}) {
        return name_token<initiate_attach>(
            std::move(resource),
            std::move(lock_token),
            options,
            &out,
            std::forward<CompletionToken>(token));
    }

    /// Asks all masters who has `resource`, without touching it. For people and monitoring: the
    /// answer may be out of date when it arrives, so never decide by it what only a lock can.
    /// \par Completion signature
    /// `void(error_code, lock_status)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`, `errc::invalid_argument`. Masters that do not answer
    /// are no error: the state is `undecided` if too few do.
    /// \par Cancellation
    /// Terminal, partial and total: ends the waiting with `operation_aborted`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_query(std::string resource, CompletionToken&& token = {}) {
        return query(std::move(resource), std::forward<CompletionToken>(token));
    }

    /// Shuts down gracefully. Waiters complete with `errc::closed`. Held locks are lost with
    /// `loss_reason::closed`, but their keys stay: the holder's code may still run. A lock is
    /// released when its holder lets go of it, by `async_release` or by destroying the handle.
    /// Completes when every lock was let go and the masters have confirmed the releases, or when
    /// nothing of that has happened for `master_timeout`. Locks that are not let go by then expire
    /// by their ttl. Then the connections are closed and `async_run` completes. Idempotent.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// None but cancellation, which ends the waiting, not the closing.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_close(CompletionToken&& token = {}) {
        return initiate<close_signature, initiate_close>(std::forward<CompletionToken>(token));
    }

    /// The counters as they are now.
    metrics get_metrics() const;

    /// How the quorum and each master stand now.
    health get_health() const;

private:
    friend struct detail::manager_access; // the library's own: primitives, and the testing kit

    using run_signature = void(error_code);
    using ready_signature = void(error_code);
    using close_signature = void(error_code);
    using acquire_signature = void(error_code, lock);
    using query_signature = void(error_code, lock_status);
    template <typename Signature>
    using handler = boost::asio::any_completion_handler<Signature>;
    using impl_ptr = std::shared_ptr<detail::manager_impl>;

    explicit lock_manager(impl_ptr impl) noexcept;

    static void start_run(impl_ptr, handler<run_signature>);
    static void start_ready(impl_ptr, handler<ready_signature>);
    static void start_close(impl_ptr, handler<close_signature>);
    static void
    start_acquire(impl_ptr, std::string, acquire_options, diagnostics*, handler<acquire_signature>);
    static void start_acquire_as(
        impl_ptr,
        std::string,
        std::string,
        acquire_options,
        diagnostics*,
        handler<acquire_signature>);
    static void start_attach(
        impl_ptr,
        std::string,
        std::string,
        acquire_options,
        diagnostics*,
        handler<acquire_signature>);
    static void start_query(impl_ptr, std::string, handler<query_signature>);

    struct initiate_run : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, impl_ptr impl) const {
            start_run(std::move(impl), std::forward<Handler>(handler));
        }
    };
    struct initiate_ready : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, impl_ptr impl) const {
            start_ready(std::move(impl), std::forward<Handler>(handler));
        }
    };
    struct initiate_close : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, impl_ptr impl) const {
            start_close(std::move(impl), std::forward<Handler>(handler));
        }
    };
    struct initiate_acquire : detail::initiation_base {
        template <typename Handler>
        void operator()(
            Handler&& handler,
            impl_ptr impl,
            std::string resource,
            acquire_options options,
            diagnostics* out) const {
            start_acquire(
                std::move(impl), std::move(resource), options, out, std::forward<Handler>(handler));
        }
    };
    struct initiate_acquire_as : detail::initiation_base {
        template <typename Handler>
        void operator()(
            Handler&& handler,
            impl_ptr impl,
            std::string resource,
            std::string lock_token,
            acquire_options options,
            diagnostics* out) const {
            start_acquire_as(
                std::move(impl),
                std::move(resource),
                std::move(lock_token),
                options,
                out,
                std::forward<Handler>(handler));
        }
    };
    struct initiate_attach : detail::initiation_base {
        template <typename Handler>
        void operator()(
            Handler&& handler,
            impl_ptr impl,
            std::string resource,
            std::string lock_token,
            acquire_options options,
            diagnostics* out) const {
            start_attach(
                std::move(impl),
                std::move(resource),
                std::move(lock_token),
                options,
                out,
                std::forward<Handler>(handler));
        }
    };
    struct initiate_query : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, impl_ptr impl, std::string resource) const {
            start_query(std::move(impl), std::move(resource), std::forward<Handler>(handler));
        }
    };

    template <
        typename Signature,
        typename Initiation,
        boost::asio::completion_token_for<Signature> CompletionToken>
    auto initiate(CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, Signature>(
            Initiation{{get_executor()}}, token, impl_);
    }
    template <boost::asio::completion_token_for<acquire_signature> CompletionToken>
    auto acquire(
        std::string resource, acquire_options options, diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, acquire_signature>(
            initiate_acquire{{get_executor()}}, token, impl_, std::move(resource), options, out);
    }
    template <
        typename Initiation,
        boost::asio::completion_token_for<acquire_signature> CompletionToken>
    auto name_token(
        std::string resource,
        std::string lock_token,
        acquire_options options,
        diagnostics* out,
        CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, acquire_signature>(
            Initiation{{get_executor()}},
            token,
            impl_,
            std::move(resource),
            std::move(lock_token),
            options,
            out);
    }
    template <boost::asio::completion_token_for<query_signature> CompletionToken>
    auto query(std::string resource, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, query_signature>(
            initiate_query{{get_executor()}}, token, impl_, std::move(resource));
    }

    impl_ptr impl_;
};

}} // namespace redlock::REDLOCK_ABI
