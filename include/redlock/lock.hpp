// The handle of an acquired lock.

#pragma once

#include <redlock/clock.hpp>
#include <redlock/diagnostics.hpp>
#include <redlock/error.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {

class lease_handle;

/// Base of initiations: carries an executor so that adapters such as `cancel_after` can find it.
struct initiation_base {
    using executor_type = boost::asio::any_io_executor;
    executor_type executor;
    executor_type get_executor() const noexcept { return executor; }
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
/// Distinct objects: safe. Shared objects: `resource`, `token`, `held`, `remaining`, `deadline` and
/// the initiating functions may be called concurrently; moving, assigning and destroying may not.
/// \par Object lifetimes
/// The handle may outlive the manager. It may outlive the `io_context` if no operation is started
/// on it afterwards. A `diagnostics` argument must live until the handler runs.
class [[nodiscard]] lock {
public:
    /// Constructs an empty handle.
    lock() noexcept = default;
    /// Move constructor. Leaves `other` empty.
    lock(lock&& other) noexcept = default;
    /// Move assignment. Releases in the background the lock that this handle held before.
    lock& operator=(lock&& other) noexcept;
    lock(const lock&) = delete;
    lock& operator=(const lock&) = delete;
    /// Releases the lock in the background: starts the removal and returns. To get the result, call
    /// `async_release` first.
    ~lock();

    /// Returns true if this handle refers to a lock, held or not. Returns false if it was
    /// default-constructed, moved from or abandoned. On an empty handle all functions below throw
    /// `std::logic_error`, except `held`, `remaining`, `deadline` and `abandon`.
    bool valid() const noexcept { return handle_ != nullptr; }

    /// Returns true if the lock may be relied on at this moment. Reads a clock; no I/O. Returns
    /// false from `deadline() - stop_margin` on, after a known loss, and from the start of a
    /// release on.
    ///
    /// The result does not cover the next moment: work that may outlast the lease needs a fencing
    /// check at the resource.
    bool held() const noexcept;

    /// Returns `held()`.
    explicit operator bool() const noexcept { return held(); }

    /// Returns the name of the resource, without the prefix.
    std::string_view resource() const;

    /// Returns the value that the masters store for this lock: 40 hexadecimal digits, new for each
    /// acquisition. Keep it secret: it is all that a client needs to release the lock.
    std::string_view token() const;

    /// Returns the fencing token, or nothing unless `acquire_options::fencing` was set.
    ///
    /// The fencing token is larger than that of every earlier owner of this resource. It is below
    /// 2^53 and stays the same while this lock is held. Pass it to the resource with each write,
    /// and let the resource refuse a token smaller than the largest it has seen (see fenced.hpp).
    std::optional<std::uint64_t> fencing_token() const;

    /// Returns the end of the lease. Until then a majority of the masters keeps the key, whatever
    /// happens to this process; clock drift is already subtracted.
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
    /// \param ttl the new lease. Range: more than the clock drift, up to `config::max_ttl`.
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// - `errc::no_quorum`: no majority confirmed in time. The previous deadline still applies.
    /// - `errc::lost`: the lease has ended, or a majority of the masters no longer has the lock.
    /// - `errc::released`, `errc::closed`: the lock was released, or the manager was closed.
    /// - `errc::invalid_argument`: `ttl` is out of range; the diagnostics show the allowed range.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& token = {}) {
        return extend(ttl, nullptr, std::forward<CompletionToken>(token));
    }
    /// Overload that also stores in `out` how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto
    async_extend(std::chrono::milliseconds ttl, diagnostics& out, CompletionToken&& token = {}) {
        return extend(ttl, &out, std::forward<CompletionToken>(token));
    }

    /// Releases the lock. Renewal stops first, and `held()` is false when this function returns.
    ///
    /// A master that cannot be reached is sent the removal after reconnection, or expires the key
    /// with its ttl. Releasing again gives the same result again. After a loss this removes the
    /// remaining keys of the lock, and the result is `expired`, `stolen` or `uncertain`, never
    /// `released`.
    /// \par Completion signature
    /// `void(error_code, release_result)`
    /// \par Errors
    /// None except `operation_aborted` on cancellation. A lock that is already gone is a result
    /// (`expired`, `stolen`), not an error.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_release(CompletionToken&& token = {}) {
        return release(nullptr, std::forward<CompletionToken>(token));
    }
    /// Overload that also stores in `out` how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_release(diagnostics& out, CompletionToken&& token = {}) {
        return release(&out, std::forward<CompletionToken>(token));
    }

    /// Waits until the lock is lost. A timer completes it at `deadline - stop_margin` at the
    /// latest.
    /// \par Completion signature
    /// `void(error_code, loss_reason)`
    /// \par Errors
    /// - `errc::released`: the lock was not lost, but released (`async_release` or the destructor)
    ///   or abandoned.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_lost(CompletionToken&& token = {}) {
        return wait_lost(nullptr, std::forward<CompletionToken>(token));
    }
    /// Overload that also stores in `out` the last vote of each master.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_lost(diagnostics& out, CompletionToken&& token = {}) {
        return wait_lost(&out, std::forward<CompletionToken>(token));
    }

    /// Gives up the lock without releasing it. The masters keep it until its ttl ends, and it is no
    /// longer extended. Works also after a loss, unless the removal has started. Use it if no other
    /// process should start the work while its state is in doubt. The handle is empty afterwards.
    void abandon() noexcept;

private:
    friend class detail::lease_handle;
    explicit lock(std::shared_ptr<detail::lease_handle> handle) noexcept;

    using extend_signature = void(error_code);
    using release_signature = void(error_code, release_result);
    using wait_lost_signature = void(error_code, loss_reason);
    template <typename Signature>
    using handler = boost::asio::any_completion_handler<Signature>;
    using handle_ptr = std::shared_ptr<detail::lease_handle>;

    static void
    start_extend(handle_ptr, std::chrono::milliseconds, diagnostics*, handler<extend_signature>);
    static void start_release(handle_ptr, diagnostics*, handler<release_signature>);
    static void start_wait_lost(handle_ptr, diagnostics*, handler<wait_lost_signature>);

    struct initiate_extend : detail::initiation_base {
        template <typename Handler>
        void operator()(
            Handler&& handler,
            handle_ptr handle,
            std::chrono::milliseconds ttl,
            diagnostics* out) const {
            start_extend(std::move(handle), ttl, out, std::forward<Handler>(handler));
        }
    };
    struct initiate_release : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, handle_ptr handle, diagnostics* out) const {
            start_release(std::move(handle), out, std::forward<Handler>(handler));
        }
    };
    struct initiate_wait_lost : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, handle_ptr handle, diagnostics* out) const {
            start_wait_lost(std::move(handle), out, std::forward<Handler>(handler));
        }
    };

    // Throws std::logic_error if the handle is empty.
    detail::initiation_base initiation() const;

    template <boost::asio::completion_token_for<extend_signature> CompletionToken>
    auto extend(std::chrono::milliseconds ttl, diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, extend_signature>(
            initiate_extend{initiation()}, token, handle_, ttl, out);
    }
    template <boost::asio::completion_token_for<release_signature> CompletionToken>
    auto release(diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, release_signature>(
            initiate_release{initiation()}, token, handle_, out);
    }
    template <boost::asio::completion_token_for<wait_lost_signature> CompletionToken>
    auto wait_lost(diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, wait_lost_signature>(
            initiate_wait_lost{initiation()}, token, handle_, out);
    }

    handle_ptr handle_;
};

}} // namespace redlock::REDLOCK_ABI
