// A mutex that its owner may enter again, and leaves as often as it entered.

#pragma once

#include <redlock/lock_manager.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {
class reentrant_impl;
struct reentrant_lease;
} // namespace detail

/// Who owns a reentrant mutex: an object, never a thread or a coroutine. Make one for each flow of
/// work, and pass it by reference to all that belongs to it, on whichever thread that runs.
/// \par Thread safety
/// Shared freely: it never changes.
class reentrant_owner {
public:
    reentrant_owner() noexcept;
    reentrant_owner(const reentrant_owner&) = delete;
    reentrant_owner& operator=(const reentrant_owner&) = delete;

    /// Names it in this process; used once.
    std::uint64_t id() const noexcept { return id_; }

private:
    const std::uint64_t id_;
};

/// One entry of an owner. Move-only. The destructor leaves; the last entry to be left releases the
/// lock, in the background. All entries of one owner share one lock: lease, deadline, fencing token
/// and loss are the same.
///
/// \par Executors, thread safety, object lifetimes
/// As `lock`. Entries may be left in any order. They may outlive the mutex and the owner.
class reentrant_hold {
public:
    /// An empty one.
    reentrant_hold() noexcept = default;
    /// Leaves `other` empty.
    reentrant_hold(reentrant_hold&& other) noexcept;
    /// Leaves what this one had before.
    reentrant_hold& operator=(reentrant_hold&& other) noexcept;
    ~reentrant_hold();

    /// False when default-constructed, moved from or released. The functions below but `held`
    /// throw `std::logic_error` on an empty one.
    bool valid() const noexcept { return lease_ != nullptr; }
    /// Whether the lock may be relied on now; see `lock::held`.
    bool held() const noexcept;
    /// The same as `held`.
    explicit operator bool() const noexcept { return held(); }
    /// How often the owner was in when this entry was made, with it: 1 for the first.
    std::uint32_t depth() const;

    /// See `lock`.
    std::string_view resource() const { return shared().resource(); }
    /// See `lock`.
    time_point deadline() const { return shared().deadline(); }
    /// See `lock`.
    std::chrono::nanoseconds remaining() const { return shared().remaining(); }
    /// The same for all entries, until the last is left.
    std::optional<std::uint64_t> fencing_token() const { return shared().fencing_token(); }

    /// See `lock::async_extend`: extends it for all entries.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& token = {}) {
        return shared().async_extend(ttl, std::forward<CompletionToken>(token));
    }
    /// See `lock::async_wait_lost`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_lost(CompletionToken&& token = {}) {
        return shared().async_wait_lost(std::forward<CompletionToken>(token));
    }

    /// Leaves; this object is empty when the function returns. The last entry to be left releases
    /// the lock, and gives what that found; any other completes without I/O and gives nothing.
    /// \par Completion signature
    /// `void(error_code, std::optional<release_result>)`
    /// \par Errors
    /// None but cancellation.
    template <
        boost::asio::completion_token_for<void(error_code, std::optional<release_result>)>
            CompletionToken = boost::asio::deferred_t>
    auto async_release(CompletionToken&& token = {}) {
        initiate_release begin{{shared_executor()}};
        return boost::asio::async_initiate<CompletionToken, release_signature>(
            begin, token, std::move(lease_));
    }

private:
    friend class detail::reentrant_impl;
    using lease_ptr = std::shared_ptr<detail::reentrant_lease>;
    using release_signature = void(error_code, std::optional<release_result>);

    reentrant_hold(lease_ptr lease, std::uint32_t depth) noexcept;
    lock& shared() const;
    boost::asio::any_io_executor shared_executor() const;
    void leave() noexcept;

    static void
    start_release(lease_ptr lease, boost::asio::any_completion_handler<release_signature> done);

    struct initiate_release : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, lease_ptr lease) const {
            start_release(std::move(lease), std::forward<Handler>(handler));
        }
    };

    lease_ptr lease_;
    std::uint32_t depth_ = 0;
};

/// A lock that its owner may enter again: at no cost to the masters while it is held.
///
/// Owners are told apart by this object: two of these on one resource exclude each other even with
/// one owner. So share one in the process.
///
/// Blocking: `blocking::manager::call`.
/// \par Executors
/// That of the manager, as for `lock_manager`.
/// \par Thread safety
/// All member functions may be called from several threads at once, but the destructor.
/// \par Object lifetimes
/// The manager must run while something is acquired; it, the options and the mutex itself need not
/// outlive the entries.
class reentrant_mutex {
public:
    /// No limit to how often an owner may be in.
    static constexpr std::uint32_t unbounded = std::numeric_limits<std::uint32_t>::max();

    /// Without I/O.
    /// \param manager must outlive the mutex
    /// \param options of the first entry, as for `lock_manager::async_acquire`
    /// \param depth_max how often one owner may be in at once, 1 or more. Throws
    ///   `std::invalid_argument` for 0.
    reentrant_mutex(
        lock_manager& manager,
        std::string resource,
        acquire_options options = {},
        std::uint32_t depth_max = unbounded);
    /// What was moved from can be assigned to or destroyed, and nothing else.
    reentrant_mutex(reentrant_mutex&&) noexcept = default;
    /// Ends what this one was before, as the destructor does.
    reentrant_mutex& operator=(reentrant_mutex&&) noexcept = default;
    ~reentrant_mutex();

    /// Enters. An owner that is in already, and whose lock is held, enters again without asking the
    /// masters; while its first entry is still waiting, others of it wait for that one. Anybody
    /// else waits as `lock_manager::async_acquire` does.
    /// \par Completion signature
    /// `void(error_code, reentrant_hold)`
    /// \par Errors
    /// - those of `lock_manager::async_acquire`
    /// - `errc::lost`: the owner is in, and has lost the lock. It must leave with all its entries
    ///   before it can take the lock anew: what it did under the old one may be undone by others.
    /// - `errc::too_deep`: the owner is in `depth_max` times. Nothing else changes.
    /// \par Cancellation
    /// Terminal, partial and total: ends the waiting with `operation_aborted` and cleans up as
    /// `lock_manager::async_acquire` does; others of the same owner go on waiting.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire(const reentrant_owner& who, CompletionToken&& token = {}) {
        return acquire(who, nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted, where they were asked for this entry.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire(const reentrant_owner& who, diagnostics& out, CompletionToken&& token = {}) {
        return acquire(who, &out, std::forward<CompletionToken>(token));
    }

private:
    using acquire_signature = void(error_code, reentrant_hold);
    using impl_ptr = std::shared_ptr<detail::reentrant_impl>;

    static void start_acquire(
        impl_ptr,
        std::uint64_t owner,
        diagnostics*,
        boost::asio::any_completion_handler<acquire_signature>);

    struct initiate_acquire : detail::initiation_base {
        template <typename Handler>
        void
        operator()(Handler&& handler, impl_ptr impl, std::uint64_t owner, diagnostics* out) const {
            start_acquire(std::move(impl), owner, out, std::forward<Handler>(handler));
        }
    };

    boost::asio::any_io_executor executor() const;

    template <boost::asio::completion_token_for<acquire_signature> CompletionToken>
    auto acquire(const reentrant_owner& who, diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, acquire_signature>(
            initiate_acquire{{executor()}}, token, impl_, who.id(), out);
    }

    impl_ptr impl_;
};

}} // namespace redlock::REDLOCK_ABI
