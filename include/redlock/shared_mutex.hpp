// A resource with readers and writers: many read at once, a writer is alone.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

using lock_shared_signature = void(error_code, lock);
using downgrade_signature = void(error_code);

struct initiate_lock_shared : initiation_base {
    static void start(
        lock_manager& manager,
        std::string resource,
        bool writes,
        acquire_options options,
        diagnostics* out,
        boost::asio::any_completion_handler<lock_shared_signature> done);

    template <typename Handler>
    void operator()(
        Handler&& handler,
        lock_manager* manager,
        std::string resource,
        bool writes,
        acquire_options options,
        diagnostics* out) const {
        start(*manager, std::move(resource), writes, options, out, std::forward<Handler>(handler));
    }
};

struct initiate_downgrade : initiation_base {
    static void start(
        lock_manager& manager,
        const lock& held,
        diagnostics* out,
        boost::asio::any_completion_handler<downgrade_signature> done);

    template <typename Handler>
    void
    operator()(Handler&& handler, lock_manager* manager, const lock* held, diagnostics* out) const {
        start(*manager, *held, out, std::forward<Handler>(handler));
    }
};

} // namespace detail

/// Locks one resource for reading or for writing. Guarded protocol only. It is a name and holds
/// nothing: what is held is in the `lock` that each acquire gives, with a lease of its own. Any
/// number of objects, in any number of processes, may name one resource.
///
/// A majority of the masters has to grant either kind, and any two majorities share a master, which
/// lets no writer in beside a reader. A writer also excludes, and is excluded by, every exclusive
/// lock of the resource (`lock_manager::async_acquire`, `async_acquire_all`); a reader is kept out
/// by those while a majority of the masters has their key, but does not keep them out, nor their
/// renewals: where there are readers, let writers use `async_lock`.
///
/// **Writers do not starve.** One that meets readers leaves word, and new readers are refused until
/// it has been served, or has not asked again for 2 s (or four times `master_timeout`, if that is
/// more). A reader that dies keeps writers out for no longer than its lease.
///
/// Refused by its nature: an upgrade. Who reads, and asks to write, waits for itself, and ends with
/// `errc::contended` or `errc::timed_out`. Release first, then look again at what was read.
///
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, but for assignment and destruction.
/// \par Object lifetimes
/// The manager outlives the acquiring; this object need not.
class shared_mutex {
public:
    /// \param resource 1 to `resource_name_max` bytes of any value; checked at the acquire
    shared_mutex(lock_manager& manager, std::string resource)
        : manager_(&manager),
          resource_(std::move(resource)) {}

    /// The one it was made with.
    lock_manager& manager() const noexcept { return *manager_; }
    /// What is locked.
    const std::string& resource() const noexcept { return resource_; }

    /// Locks for writing: alone. With `acquire_options::fencing` the lock has a fencing token,
    /// larger than that of every writer and exclusive owner before.
    /// \param options see `acquire_options`; `order` must be `fairness::none`
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// Those of `lock_manager::async_acquire`, and `errc::invalid_argument`, before anything is
    /// sent, with the plain protocol or `fairness::fifo`.
    /// \par Cancellation
    /// As `lock_manager::async_acquire`; that it waited keeps new readers out for the 2 s (see
    /// above).
    /// \par Blocking
    /// `blocking::manager::call`.
    template <
        boost::asio::completion_token_for<detail::lock_shared_signature> CompletionToken =
            boost::asio::deferred_t>
    auto async_lock(acquire_options options = {}, CompletionToken&& token = {}) const {
        return acquire(true, options, nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted in the last attempt.
    template <
        boost::asio::completion_token_for<detail::lock_shared_signature> CompletionToken =
            boost::asio::deferred_t>
    auto async_lock(acquire_options options, diagnostics& out, CompletionToken&& token = {}) const {
        return acquire(true, options, &out, std::forward<CompletionToken>(token));
    }

    /// Locks for reading: beside others who read. The lock has no fencing token, and
    /// `acquire_options::fencing` is ignored: what reads has nothing to be refused. Else as
    /// `async_lock`.
    template <
        boost::asio::completion_token_for<detail::lock_shared_signature> CompletionToken =
            boost::asio::deferred_t>
    auto async_lock_shared(acquire_options options = {}, CompletionToken&& token = {}) const {
        return acquire(false, options, nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted in the last attempt.
    template <
        boost::asio::completion_token_for<detail::lock_shared_signature> CompletionToken =
            boost::asio::deferred_t>
    auto async_lock_shared(
        acquire_options options, diagnostics& out, CompletionToken&& token = {}) const {
        return acquire(false, options, &out, std::forward<CompletionToken>(token));
    }

    /// Makes a reader of the writer that holds `held`: the same `lock`, token and deadline, and no
    /// moment in between in which another writer could come. **From the call on it is only a
    /// reader's, whatever the outcome**, and `fencing_token()`, which stays, must not be used for
    /// writes any more. Completes when a majority lets other readers in; the renewals see to the
    /// rest.
    /// \param held as `async_lock` gave it
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// - `errc::no_quorum`: too few masters answered; the lock is held, for as long as `deadline()`
    ///   says, and some masters go on keeping readers out until it is renewed or released.
    /// - `errc::lost`, `errc::released`, `errc::closed`: it was not held any more.
    /// - `errc::invalid_argument`: it is empty, or no writer's lock of a `shared_mutex`.
    /// \par Cancellation
    /// As `lock::async_extend`: ends the waiting.
    template <
        boost::asio::completion_token_for<detail::downgrade_signature> CompletionToken =
            boost::asio::deferred_t>
    auto async_downgrade(const lock& held, CompletionToken&& token = {}) const {
        return downgrade(held, nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted.
    template <
        boost::asio::completion_token_for<detail::downgrade_signature> CompletionToken =
            boost::asio::deferred_t>
    auto async_downgrade(const lock& held, diagnostics& out, CompletionToken&& token = {}) const {
        return downgrade(held, &out, std::forward<CompletionToken>(token));
    }

private:
    template <typename CompletionToken>
    auto
    acquire(bool writes, acquire_options options, diagnostics* out, CompletionToken&& token) const {
        return boost::asio::async_initiate<CompletionToken, detail::lock_shared_signature>(
            detail::initiate_lock_shared{{manager_->get_executor()}},
            token,
            manager_,
            resource_,
            writes,
            options,
            out);
    }
    template <typename CompletionToken>
    auto downgrade(const lock& held, diagnostics* out, CompletionToken&& token) const {
        return boost::asio::async_initiate<CompletionToken, detail::downgrade_signature>(
            detail::initiate_downgrade{{manager_->get_executor()}}, token, manager_, &held, out);
    }

    lock_manager* manager_;
    std::string resource_;
};

}} // namespace redlock::REDLOCK_ABI
