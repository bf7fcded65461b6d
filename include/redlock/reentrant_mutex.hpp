// A mutex that its owner may enter again, and must leave as often as it entered.

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

/// The owner of a reentrant mutex: this object, not a thread or a coroutine. Create one for each
/// flow of work, and pass it by reference to all functions of that flow, on any thread.
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe; an owner is immutable.
class reentrant_owner {
public:
    reentrant_owner() noexcept;
    reentrant_owner(const reentrant_owner&) = delete;
    reentrant_owner& operator=(const reentrant_owner&) = delete;

    /// Returns the id of the owner, unique in this process.
    std::uint64_t id() const noexcept { return id_; }

private:
    const std::uint64_t id_;
};

/// One entry of an owner. Move-only. The destructor leaves the mutex; when the last entry is left,
/// the lock is released in the background. All entries of one owner share one lock, with the same
/// lease, deadline, fencing token and loss.
///
/// Executors, thread safety and object lifetimes: as `lock`. Entries may be left in any order, and
/// may outlive the mutex and the owner.
class [[nodiscard]] reentrant_hold {
public:
    /// The executor type of the manager.
    using executor_type = boost::asio::any_io_executor;

    /// Constructs an empty entry.
    reentrant_hold() noexcept = default;
    /// Move constructor. Leaves `other` empty.
    reentrant_hold(reentrant_hold&& other) noexcept = default;
    /// Move assignment. Leaves the entry that this object held before.
    reentrant_hold& operator=(reentrant_hold&& other) noexcept;
    ~reentrant_hold();

    /// Returns true unless this object was default-constructed, moved from or released. On an empty
    /// object the functions below throw `std::logic_error`, except `held`.
    bool valid() const noexcept { return lease_ != nullptr; }
    /// Returns the executor of the manager.
    executor_type get_executor() const { return shared().get_executor(); }
    /// Returns true if the lock may be relied on now; see `lock::held`.
    bool held() const noexcept;
    /// Returns the number of entries of the owner when this entry was made, including this one: 1
    /// for the first.
    std::uint32_t depth() const;

    /// See `lock::resource`.
    std::string_view resource() const { return shared().resource(); }
    /// See `lock::deadline`.
    time_point deadline() const { return shared().deadline(); }
    /// See `lock::remaining`.
    std::chrono::nanoseconds remaining() const { return shared().remaining(); }
    /// See `lock::fencing_token`. It is the same for all entries until the last one is left.
    std::uint64_t fencing_token() const { return shared().fencing_token(); }

    /// Extends the lock for all entries; see `lock::async_extend`.
    template <typename CompletionToken = default_token>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& token = {}) {
        return shared().async_extend(ttl, std::forward<CompletionToken>(token));
    }
    /// See `lock::async_wait_lost`.
    template <typename CompletionToken = default_token>
    auto async_wait_lost(CompletionToken&& token = {}) const {
        return shared().async_wait_lost(std::forward<CompletionToken>(token));
    }

    /// Leaves the mutex. This object is empty when the function returns. The last entry releases
    /// the lock and completes with the result of the release. Other entries complete without I/O
    /// and without a result.
    /// \par Completion signature
    /// `void(error_code, std::optional<release_result>)`
    /// \par Errors
    /// None except `operation_aborted` on cancellation.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_release(CompletionToken&& token = {}) {
        executor_type executor = get_executor();
        return detail::initiate<
            void(error_code, std::optional<release_result>),
            &reentrant_hold::start_release>(
            std::move(executor), std::forward<CompletionToken>(token), std::move(lease_));
    }

private:
    friend class detail::reentrant_impl;
    using lease_ptr = std::shared_ptr<detail::reentrant_lease>;

    reentrant_hold(lease_ptr lease, std::uint32_t depth) noexcept;
    lock& shared() const;
    void leave() noexcept;

    static void start_release(
        lease_ptr lease,
        boost::asio::any_completion_handler<void(error_code, std::optional<release_result>)> done);

    lease_ptr lease_;
    std::uint32_t depth_ = 0;
};

/// A lock that its owner may enter again without a round trip while it is held.
///
/// Owners are distinguished within this object: two mutexes on one resource exclude each other,
/// even for the same owner. Share one mutex in the process.
/// \par Blocking use
/// `blocking::manager::call`.
/// \par Executors
/// As `lock_manager`.
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, except for move construction, assignment and
/// destruction.
/// \par Object lifetimes
/// The manager must be running while an acquire is in progress. The manager, the options and the
/// mutex need not outlive the entries.
class reentrant_mutex {
public:
    /// The executor type of the manager.
    using executor_type = boost::asio::any_io_executor;
    /// No limit for the number of entries of an owner.
    static constexpr std::uint32_t unbounded = std::numeric_limits<std::uint32_t>::max();

    /// Constructs a mutex. Does no I/O.
    /// \param manager the manager to use. It may be moved while the mutex exists.
    /// \param resource as for `lock_manager::async_acquire`
    /// \param options options of the first entry, as for `lock_manager::async_acquire`
    /// \param depth_max the maximum number of simultaneous entries of one owner. Range: 1 or more.
    /// \throws std::invalid_argument if the name, an option or `depth_max` is out of range
    reentrant_mutex(
        lock_manager& manager,
        std::string resource,
        acquire_options options = {},
        std::uint32_t depth_max = unbounded);
    /// Move constructor. The moved-from object can only be assigned to or destroyed.
    reentrant_mutex(reentrant_mutex&&) noexcept = default;
    /// Move assignment. Ends what this object held before, as the destructor does.
    reentrant_mutex& operator=(reentrant_mutex&&) noexcept = default;

    /// Returns the executor of the manager.
    executor_type get_executor() const;

    /// Enters the mutex. An owner that already has an entry, and whose lock is held, enters again
    /// without a round trip. While the first entry of an owner is waiting, other entries of this
    /// owner wait for that one. All others wait as in `lock_manager::async_acquire`.
    /// \param owner the owner
    /// \par Completion signature
    /// `void(error_code, reentrant_hold)`
    /// \par Errors
    /// - As `lock_manager::async_acquire`.
    /// - `errc::lost`: the owner has entries, but has lost the lock. It must leave all of them
    ///   before it can acquire the lock again: another owner may have held the lock in between.
    /// - `errc::recursion_limit`: the owner already has `depth_max` entries. Nothing else changes.
    ///
    /// \par Cancellation
    /// Terminal and partial: ends the wait with `operation_aborted` and rolls back as
    /// `lock_manager::async_acquire` does. Other entries of the same owner continue to wait.
    /// \par Diagnostics
    /// The votes on the lock, if the masters were asked for this entry.
    template <typename CompletionToken = default_token>
    auto async_acquire(const reentrant_owner& owner, CompletionToken&& token = {}) {
        return detail::initiate<void(error_code, reentrant_hold), &reentrant_mutex::start_acquire>(
            get_executor(), std::forward<CompletionToken>(token), impl_, owner.id());
    }

private:
    using impl_ptr = std::shared_ptr<detail::reentrant_impl>;

    static void start_acquire(
        impl_ptr,
        std::uint64_t owner,
        detail::diagnostics_sink,
        boost::asio::any_completion_handler<void(error_code, reentrant_hold)>);

    impl_ptr impl_;
};

}} // namespace redlock::REDLOCK_ABI
