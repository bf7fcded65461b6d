// A held lock: the handle that an acquire gives.

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

/// Initiations carry an executor so that adapters such as `cancel_after` can find it.
struct initiation_base {
    using executor_type = boost::asio::any_io_executor;
    executor_type executor;
    executor_type get_executor() const noexcept { return executor; }
};

} // namespace detail

/// A lock that was acquired. Move-only. While it lives and renewal is on, the library extends the
/// lease; the destructor releases it in the background.
///
/// After a loss the masters keep the lock until this handle has let go of it (`async_release`, or
/// its destruction) or the last deadline that it has shown has passed, whichever comes first: until
/// then its holder may still act.
///
/// Owner of the lock is this object, never a thread or a coroutine.
///
/// \par Cancellation
/// The same for all asynchronous functions: terminal, partial and total cancellation end the
/// *waiting* for the result: the handler gets `operation_aborted`. What was sent takes its course;
/// a cancelled release still releases. \par Executors A handler runs on its associated executor
/// (default: the manager's), never inside the initiating function. \par Thread safety `resource`,
/// `token`, `held`, `remaining`, `deadline` and the initiating functions may be called from several
/// threads at once; moving and destroying may not. \par Object lifetimes The handle may outlive the
/// manager and, unless an operation is then begun on it, the `io_context`. A `diagnostics` argument
/// must live until the handler runs.
class lock {
public:
    /// An empty handle.
    lock() noexcept = default;
    /// Leaves `other` empty.
    lock(lock&& other) noexcept = default;
    /// Releases in the background what this handle held before.
    lock& operator=(lock&& other) noexcept;
    lock(const lock&) = delete;
    lock& operator=(const lock&) = delete;
    /// Releases in the background: posts the removal and returns. To learn the result, use
    /// `async_release` first.
    ~lock();

    /// Whether this handle refers to a lock at all, held or not: false when default-constructed,
    /// moved from or abandoned. All functions below but `held`, `remaining` and `deadline` require
    /// it: they throw `std::logic_error` on an empty handle.
    bool valid() const noexcept { return handle_ != nullptr; }

    /// Whether the lock may be relied on at this moment. Reads a clock; no I/O. False from
    /// `deadline() - stop_margin` on, once a loss is known, and from the start of a release on.
    /// It says nothing of the next moment: work that may outlast the lease needs a fencing check at
    /// the resource.
    bool held() const noexcept;

    /// Same as `held()`.
    explicit operator bool() const noexcept { return held(); }

    /// The resource's name, without the prefix.
    std::string_view resource() const;

    /// The value that the masters keep for this lock: 40 hexadecimal digits, new for each
    /// acquisition. Whoever has it can release the lock: treat it as a secret.
    std::string_view token() const;

    /// The fencing token: larger than that of every earlier owner of this resource, the same for
    /// as long as this lock is held, and below 2^53. Give it to the resource with each write, and
    /// let the resource refuse a smaller one than it has seen (see fenced.hpp). Empty unless
    /// `acquire_options::fencing` was set.
    std::optional<std::uint64_t> fencing_token() const;

    /// The moment when the lease ends: until then a majority of the masters keeps the key, whatever
    /// happens to this process, with the clock drift allowed for. Moves forward with each
    /// extension, and back when masters turn out to have lost the key. Means nothing once `held()`
    /// is false, and is `time_point::min()` for an empty handle.
    time_point deadline() const noexcept;

    /// How long `held()` stays true if nothing is extended or lost; zero if it is false already.
    std::chrono::nanoseconds remaining() const noexcept;

    /// Asks all masters to keep the lock for `ttl` from now on. An extension never shortens a lease
    /// and never takes a lock that is lost: keys that are missing are set again only while no other
    /// owner can have had a majority.
    /// \param ttl longer than the clock drift and `stop_margin`, at most `config::max_ttl`
    /// \par Completion signature
    /// `void(error_code)`
    /// \par Errors
    /// - `errc::no_quorum`: no majority confirmed it in time. The old deadline still stands.
    /// - `errc::lost`: the lease has ended or a majority no longer knows it.
    /// - `errc::released`, `errc::closed`: it was released, or the manager was closed.
    /// - `errc::invalid_argument`: `ttl` is out of range; the diagnostics name the range.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& token = {}) {
        return extend(ttl, nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto
    async_extend(std::chrono::milliseconds ttl, diagnostics& out, CompletionToken&& token = {}) {
        return extend(ttl, &out, std::forward<CompletionToken>(token));
    }

    /// Gives the lock back. `held()` is false when this function returns; renewal ends first. The
    /// masters that cannot be reached are told when they can be, or forget the key by its ttl.
    /// Releasing again gives the same result again. After a loss it removes what is left of the
    /// lock, and the result is `expired`, `stolen` or `uncertain`, never `released`.
    /// \par Completion signature
    /// `void(error_code, release_result)`
    /// \par Errors
    /// None but cancellation: "already gone" is a result (`expired`, `stolen`).
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_release(CompletionToken&& token = {}) {
        return release(nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_release(diagnostics& out, CompletionToken&& token = {}) {
        return release(&out, std::forward<CompletionToken>(token));
    }

    /// Waits until the lock is lost: at `deadline - stop_margin`, by a timer, at the latest.
    /// \par Completion signature
    /// `void(error_code, loss_reason)`
    /// \par Errors
    /// - `errc::released`: it was released instead (by `async_release`, the destructor or
    ///
    /// `abandon`).
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_lost(CompletionToken&& token = {}) {
        return wait_lost(nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells what each master said last.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_lost(diagnostics& out, CompletionToken&& token = {}) {
        return wait_lost(&out, std::forward<CompletionToken>(token));
    }

    /// Forgets the lock without releasing it: the masters keep it until its ttl ends, and nothing
    /// is extended any more. Also after a loss, unless the removal has begun. For work that must
    /// not be started by another while in doubt. The handle is empty afterwards.
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

    // Throws std::logic_error on an empty handle.
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
