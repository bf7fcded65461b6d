// A resource with readers and writers: many readers or one writer.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

void start_lock_shared(
    const manager_ptr& manager,
    std::string resource,
    bool writes,
    acquire_options options,
    diagnostics_sink sink,
    boost::asio::any_completion_handler<void(error_code, lock)> done);
void start_downgrade(
    const manager_ptr& manager,
    const lock* held,
    diagnostics_sink sink,
    boost::asio::any_completion_handler<void(error_code)> done);

} // namespace detail

/// Locks one resource for reading or for writing. Guarded protocol only.
///
/// This object only contains the name and holds nothing. Each acquire returns a `lock` with its own
/// lease. Any number of objects, in any number of processes, may use the same resource.
///
/// Both kinds of lock need a majority of the masters. Any two majorities share a master, so a
/// writer and a reader cannot both have one. A writer excludes every exclusive lock of the resource
/// (`lock_manager::async_acquire`, `async_acquire_all`), and is excluded by it. A reader is refused
/// while a majority of the masters has the key of an exclusive lock. It does not stop an exclusive
/// lock from being acquired or renewed. If a resource has readers, let all writers use
/// `async_lock`.
///
/// **Writers do not starve.** A writer that finds readers registers its intent. New readers are
/// then refused until the writer has been served, gives up, or stops retrying for 2 s (four times
/// `master_timeout`, if longer). A reader that crashes keeps writers out no longer than its lease.
///
/// Upgrading is not supported. A reader that tries to acquire the writer's lock would wait for
/// itself, and fails with `errc::contended` or `errc::wait_timed_out`. Release the reader's lock
/// first, and check again what was read.
///
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, except for assignment and destruction.
/// \par Object lifetimes
/// The manager must live until each acquire has completed. This object need not. The manager may be
/// moved.
class shared_mutex {
public:
    /// Constructs a mutex. Does no I/O.
    /// \param manager the manager to use
    /// \param resource the name of the resource. Range: 1 to `resource_name_max` bytes of any
    ///   value; validated by the acquire.
    shared_mutex(lock_manager& manager, std::string resource)
        : manager_(detail::share(manager)),
          resource_(std::move(resource)) {}

    /// Returns the executor of the manager.
    boost::asio::any_io_executor get_executor() const noexcept {
        return detail::executor_of(manager_);
    }
    /// Returns the name of the resource.
    const std::string& resource() const noexcept { return resource_; }

    /// Acquires the lock for writing, which is exclusive. With `acquire_options::fencing` the lock
    /// has a fencing token, larger than that of every earlier writer and exclusive owner.
    /// \param options see `acquire_options`; `order` must be `fairness::none`
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// As `lock_manager::async_acquire`. In addition `errc::invalid_argument` with the plain
    /// protocol or `fairness::fifo`. Nothing was sent in this case.
    /// \par Cancellation
    /// As `lock_manager::async_acquire`.
    /// \par Blocking use
    /// `blocking::manager::call`.
    template <
        boost::asio::completion_token_for<void(error_code, lock)> CompletionToken = default_token>
    auto async_lock(acquire_options options = {}, CompletionToken&& token = {}) const {
        return detail::initiate<void(error_code, lock), &detail::start_lock_shared>(
            get_executor(),
            std::forward<CompletionToken>(token),
            manager_,
            resource_,
            true,
            options);
    }

    /// Acquires the lock for reading, which other readers may share. The lock has no fencing token,
    /// and `acquire_options::fencing` is ignored, because a reader makes no writes that could be
    /// refused. Otherwise the same as `async_lock`.
    template <
        boost::asio::completion_token_for<void(error_code, lock)> CompletionToken = default_token>
    auto async_lock_shared(acquire_options options = {}, CompletionToken&& token = {}) const {
        return detail::initiate<void(error_code, lock), &detail::start_lock_shared>(
            get_executor(),
            std::forward<CompletionToken>(token),
            manager_,
            resource_,
            false,
            options);
    }

    /// Converts the writer's lock `held` to a reader's lock. The `lock` object, its token and its
    /// deadline stay the same, and no other writer can acquire the resource in between.
    ///
    /// **The lock is only a reader's lock from the call on, whatever the result.**
    /// `fencing_token()` keeps its value, but must not be used for writes any more. The operation
    /// completes when a majority of the masters admits other readers; renewals convert the rest.
    /// \param held a lock returned by `async_lock`; must live until the operation has been
    ///   initiated
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// - `errc::no_quorum`: too few masters replied. The lock is held until `deadline()`, and some
    ///   masters still refuse readers until it is renewed or released.
    /// - `errc::lost`, `errc::released`, `errc::closed`: the lock was no longer held.
    /// - `errc::invalid_argument`: the lock is empty, or is not a writer's lock of a
    ///   `shared_mutex`.
    ///
    /// \par Cancellation
    /// As `lock::async_extend`: ends the wait.
    template <boost::asio::completion_token_for<void(error_code)> CompletionToken = default_token>
    auto async_downgrade(const lock& held, CompletionToken&& token = {}) const {
        return detail::initiate<void(error_code), &detail::start_downgrade>(
            get_executor(), std::forward<CompletionToken>(token), manager_, &held);
    }

private:
    detail::manager_ptr manager_;
    std::string resource_;
};

}} // namespace redlock::REDLOCK_ABI
