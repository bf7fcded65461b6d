// Several quorums as one manager: each resource has its home in one of them, so that the load grows
// past what one quorum bears.

#pragma once

#include <redlock/lock_manager.hpp>
#include <redlock/placement.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/execution_context.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::inline REDLOCK_ABI {

namespace detail {
class sharded_impl;
}

/// One quorum of several.
struct named_quorum {
    /// 1 to 64 visible characters of ASCII. It decides which resources have their home here
    /// (`place`), so the masters may move and the name must not change.
    std::string name;
    redlock::config config; ///< its masters and times
};

/// Everything that a `sharded_manager` needs to know. All processes that lock the same resources
/// must agree on the names of the quorums, and on each quorum as `config` says. To change the set
/// see docs/sharding.md: two processes with different sets can both hold a lock.
struct sharded_config {
    /// 1 to 64, each name once, no server in two of them. The order does not matter.
    std::vector<named_quorum> quorums;

    /// While quorums are added or removed: the names of the other set, that of before or after.
    /// Empty: nothing is being changed. A resource that has its home elsewhere in that set is not
    /// acquired (`errc::moving`); all others are.
    std::vector<std::string> hand_over;
};

/// Checks a configuration, as the constructor of `sharded_manager` does, and that of each quorum.
/// Returns no error, and warnings if there are any in `reason`, one a line; or
/// `errc::invalid_config` with a sentence in `reason` that names the quorum, the value and what is
/// allowed. Does no I/O. Thread-safe.
error_code validate(const sharded_config& config, std::string& reason);

/// The counters of one quorum of several.
struct quorum_metrics {
    std::string quorum;       ///< its name
    redlock::metrics metrics; ///< as of its `lock_manager`
};

/// The health of one quorum of several.
struct quorum_health {
    std::string quorum;     ///< its name
    redlock::health health; ///< as of its `lock_manager`
};

/// The health of several quorums.
struct sharded_health {
    bool ready = false;                 ///< all quorums are: every resource can be locked
    std::size_t ready_quorums = 0;      ///< quorums that have a majority of their masters
    std::vector<quorum_health> quorums; ///< in the order of the configuration
};

/// One readable line: "1 of 2 quorums ready: east: ready, 3 of 3 masters admitted, ...; west: ...".
std::string to_string(const sharded_health&);

/// Takes locks as `lock_manager` does, each resource on its home among several quorums of
/// independent masters (`place` decides). An outage of one quorum is one of the resources that have
/// their home there, and of no others. What is promised is promised for each resource by its
/// quorum.
///
/// \par Executors, thread safety, object lifetimes
/// Those of `lock_manager`.
class sharded_manager {
public:
    /// What it runs on.
    using executor_type = boost::asio::any_io_executor;

    /// Checks the configuration and reads the TLS files; no other I/O. Throws
    /// `std::invalid_argument` with a sentence that says which value is wrong and what is allowed.
    sharded_manager(executor_type executor, sharded_config configuration);
    /// The same, on the executor of an `io_context` or another execution context.
    template <std::derived_from<boost::asio::execution_context> Context>
    sharded_manager(Context& context, sharded_config configuration)
        : sharded_manager(context.get_executor(), std::move(configuration)) {}
    /// What was moved from can be assigned to or destroyed, and nothing else.
    sharded_manager(sharded_manager&&) noexcept;
    /// Ends what this one was before, as the destructor does.
    sharded_manager& operator=(sharded_manager&&) noexcept;
    sharded_manager(const sharded_manager&) = delete;
    sharded_manager& operator=(const sharded_manager&) = delete;
    ~sharded_manager();

    /// The one it was made with.
    executor_type get_executor() const noexcept;

    /// Runs all quorums, until it is cancelled or the manager is closed. A quorum that cannot be
    /// reached ends nothing: its masters are tried again.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// As `lock_manager::async_run`; of several the first in the order of the configuration.
    /// Completes when the last quorum has ended.
    /// \par Cancellation
    /// Terminal, partial and total: closes all quorums, then completes.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_run(CompletionToken&& token = {}) {
        return initiate<initiate_run>(std::forward<CompletionToken>(token));
    }

    /// Waits until all quorums are ready, so that every resource can be locked. For one of them:
    /// `manager_of(resource).async_ready()`.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`.
    /// \par Cancellation
    /// Terminal, partial and total: ends the waiting with `operation_aborted`; nothing else
    /// changes.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_ready(CompletionToken&& token = {}) {
        return initiate<initiate_ready>(std::forward<CompletionToken>(token));
    }

    /// Takes the lock on `resource` at its home: see `lock_manager::async_acquire`.
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// Those of `lock_manager::async_acquire`, and `errc::moving`, at once, however long the call
    /// may wait: the resource changes its home (`sharded_config::hand_over`); nothing was sent.
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
    /// Also tells how each master of the quorum voted in the last attempt.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire(
        std::string resource,
        acquire_options options,
        diagnostics& out,
        CompletionToken&& token = {}) {
        return acquire(std::move(resource), options, &out, std::forward<CompletionToken>(token));
    }

    /// Asks the masters of its home who has `resource`: see `lock_manager::async_query`. During a
    /// hand-over it asks the home in this manager's set.
    /// \par Completion signature
    /// `void(error_code, lock_status)`
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_query(std::string resource, CompletionToken&& token = {}) {
        lock_manager& home = manager_of(resource);
        return home.async_query(std::move(resource), std::forward<CompletionToken>(token));
    }

    /// Closes all quorums as `lock_manager::async_close` does, at the same time, and completes when
    /// the last is closed. Idempotent.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// None but cancellation, which ends the waiting, not the closing.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_close(CompletionToken&& token = {}) {
        return initiate<initiate_close>(std::forward<CompletionToken>(token));
    }

    /// The counters of each quorum as they are now, in the order of the configuration.
    std::vector<quorum_metrics> get_metrics() const;

    /// How the quorums and their masters stand now.
    sharded_health get_health() const;

    /// The names of the quorums, in the order of the configuration. They live as long as the
    /// manager.
    const std::vector<std::string>& quorums() const noexcept;

    /// The name of the quorum that has `resource`, as `place` tells. It lives as long as the
    /// manager.
    std::string_view quorum_of(std::string_view resource) const noexcept;

    /// The manager of that quorum, for what is to be done with one of them. It lives as long as
    /// this manager. It knows nothing of a hand-over: ask `moving` before locking with it.
    lock_manager& manager_of(std::string_view resource) noexcept;

    /// Whether `resource` has another home in `sharded_config::hand_over`.
    bool moving(std::string_view resource) const noexcept;

private:
    using plain_signature = void(error_code);
    using acquire_signature = void(error_code, lock);
    template <typename Signature>
    using handler = boost::asio::any_completion_handler<Signature>;
    using impl_ptr = std::shared_ptr<detail::sharded_impl>;

    static void start_run(detail::sharded_impl&, handler<plain_signature>);
    static void start_ready(detail::sharded_impl&, handler<plain_signature>);
    static void start_close(detail::sharded_impl&, handler<plain_signature>);
    static void start_acquire(
        detail::sharded_impl&,
        std::string,
        acquire_options,
        diagnostics*,
        handler<acquire_signature>);

    struct initiate_run : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, const impl_ptr& impl) const {
            start_run(*impl, std::forward<Handler>(handler));
        }
    };
    struct initiate_ready : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, const impl_ptr& impl) const {
            start_ready(*impl, std::forward<Handler>(handler));
        }
    };
    struct initiate_close : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, const impl_ptr& impl) const {
            start_close(*impl, std::forward<Handler>(handler));
        }
    };
    struct initiate_acquire : detail::initiation_base {
        template <typename Handler>
        void operator()(
            Handler&& handler,
            const impl_ptr& impl,
            std::string resource,
            acquire_options options,
            diagnostics* out) const {
            start_acquire(*impl, std::move(resource), options, out, std::forward<Handler>(handler));
        }
    };

    template <
        typename Initiation,
        boost::asio::completion_token_for<plain_signature> CompletionToken>
    auto initiate(CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, plain_signature>(
            Initiation{{get_executor()}}, token, impl_);
    }
    template <boost::asio::completion_token_for<acquire_signature> CompletionToken>
    auto acquire(
        std::string resource, acquire_options options, diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, acquire_signature>(
            initiate_acquire{{get_executor()}}, token, impl_, std::move(resource), options, out);
    }

    impl_ptr impl_;
};

} // namespace redlock::inline REDLOCK_ABI
