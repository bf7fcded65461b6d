// A pool of numbered slots: workers take any free one, and learn which. It is also the counting
// semaphore: a pool of L slots admits L holders at a time, and never more.

#pragma once

#include <redlock/lock.hpp>
#include <redlock/lock_manager.hpp>
#include <redlock/options.hpp>
#include <redlock/pool_status.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// The largest pool.
inline constexpr std::size_t slot_pool_size_max = 65'536;

namespace detail {

struct slot_maker;

/// What a slot and several slots have in common: the lock that keeps them. Each function is that of
/// `redlock::lock`.
class slot_lease {
public:
    /// See `lock`.
    bool valid() const noexcept { return lock_.valid(); }
    /// See `lock`: look before each step that nobody else must do.
    bool held() const noexcept { return lock_.held(); }
    /// The same as `held`.
    explicit operator bool() const noexcept { return held(); }
    /// `name:slot:number`, or with several numbers; for people: no lock is taken under it.
    std::string_view resource() const { return lock_.resource(); }
    /// See `lock`. A secret.
    std::string_view token() const { return lock_.token(); }
    /// Larger than that of every earlier owner of the number, or of any of them; those of two
    /// numbers have nothing to do with each other.
    std::optional<std::uint64_t> fencing_token() const { return lock_.fencing_token(); }
    /// See `lock`.
    time_point deadline() const noexcept { return lock_.deadline(); }
    /// See `lock`.
    std::chrono::nanoseconds remaining() const noexcept { return lock_.remaining(); }

    /// See `lock::async_extend`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& token = {}) {
        return lock_.async_extend(ttl, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto
    async_extend(std::chrono::milliseconds ttl, diagnostics& out, CompletionToken&& token = {}) {
        return lock_.async_extend(ttl, out, std::forward<CompletionToken>(token));
    }
    /// See `lock::async_release`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_release(CompletionToken&& token = {}) {
        return lock_.async_release(std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_release(diagnostics& out, CompletionToken&& token = {}) {
        return lock_.async_release(out, std::forward<CompletionToken>(token));
    }
    /// See `lock::async_wait_lost`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_lost(CompletionToken&& token = {}) {
        return lock_.async_wait_lost(std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_lost(diagnostics& out, CompletionToken&& token = {}) {
        return lock_.async_wait_lost(out, std::forward<CompletionToken>(token));
    }

    /// See `lock::abandon`.
    void abandon() noexcept { lock_.abandon(); }

protected:
    /// An empty one.
    slot_lease() noexcept = default;
    /// Of a lock that was taken.
    explicit slot_lease(lock&& held) noexcept : lock_(std::move(held)) {}

private:
    lock lock_;
};

} // namespace detail

/// A slot that was taken: a number, and the lock that keeps it. Move-only. While it lives and
/// renewal is on, the library extends the lease; the destructor gives the slot back in the
/// background.
///
/// It is a lock in everything but the number, and each function that has a name of `redlock::lock`
/// is that function: the same errors, cancellation, executors and thread safety. Who loses the slot
/// is told as the holder of a lock is, by `held()` and `async_wait_lost`, and must stop its work:
/// somebody else may have the number.
class slot : public detail::slot_lease {
public:
    /// An empty handle.
    slot() noexcept = default;

    /// Which one: 0 to size - 1. While it is held nobody else has this number, in any process. 0
    /// for an empty handle.
    std::size_t number() const noexcept { return number_; }

private:
    friend struct detail::slot_maker;
    slot(lock&& held, std::size_t number) noexcept : slot_lease(std::move(held)), number_(number) {}

    std::size_t number_ = 0;
};

/// Several slots that were taken together, as one lock: they have one deadline, are extended, lost
/// and given back together. Else as `slot`.
class slots : public detail::slot_lease {
public:
    /// An empty handle.
    slots() noexcept = default;

    /// Which ones, in increasing order. Empty for an empty handle.
    const std::vector<std::size_t>& numbers() const noexcept { return numbers_; }
    /// How many.
    std::size_t size() const noexcept { return numbers_.size(); }

private:
    friend struct detail::slot_maker;
    slots(lock&& held, std::vector<std::size_t>&& numbers) noexcept
        : slot_lease(std::move(held)),
          numbers_(std::move(numbers)) {}

    std::vector<std::size_t> numbers_;
};

/// A pool of `size` slots, which all processes share that say the same name and size to the same
/// masters. A pool of one slot is a mutex.
///
/// Each slot is a lock of its own on a majority of the masters, so that the number of holders is
/// exact: a counter on each master is not (docs/slot_pool.md says why). Taking one is two round
/// trips, whatever the size: one to see which are free, one for the votes on one of them; one more
/// for each that somebody else takes in between.
///
/// A cheap handle: it keeps a name and a reference to the manager's state, and nothing is sent by
/// making one or left behind by destroying it.
/// \par Sizes
/// Processes that say different sizes share the numbers that both know: no number is ever held
/// twice, and nobody is given one that is beyond the size it said. As many as the largest size may
/// be held in all.
/// \par Names
/// A pool's name and a resource's have nothing to do with each other: the slots' keys are
/// `prefix{name}:slot:number`, which no lock has.
/// \par Protocol
/// Both. In the plain one waiters do not learn when a lease ends, and ask again after
/// `retry_delay_max` at the latest.
/// \par Blocking
/// `blocking::manager::call`.
/// \par Thread safety
/// All member functions may be called from several threads at once, but assignment and the
/// destructor.
/// \par Object lifetimes
/// It may outlive the manager: operations then end with `errc::closed`.
class slot_pool {
public:
    /// That of the manager.
    using executor_type = boost::asio::any_io_executor;

    /// Does no I/O. Throws `std::invalid_argument` with a sentence where the name is not 1 to
    /// `resource_name_max` bytes long or the size not 1 to `slot_pool_size_max`.
    slot_pool(lock_manager& manager, std::string name, std::size_t size);

    /// As it was made.
    const std::string& name() const noexcept { return name_; }
    /// How many slots it has.
    std::size_t size() const noexcept { return size_; }
    /// The manager's.
    executor_type get_executor() const noexcept;

    /// Takes any free slot: no number is preferred. While all are taken it waits as long as
    /// `options.wait` allows, and is woken by the release of any of them. Of one process only who
    /// came first asks, and the others wait for their turn; between processes there is no order. A
    /// slot that is released may pass to the next waiter of the same process without a word to the
    /// masters (`config::hand_overs_max`). With `wait_for::none()` it looks once, and tries some of
    /// the slots that it finds free.
    /// \param options as for `lock_manager::async_acquire`; `order` must be `fairness::none`.
    /// \par Completion signature
    /// `void(error_code, slot)`
    /// \par Errors
    /// those of `lock_manager::async_acquire`; `errc::contended` says that all slots were taken, or
    /// that others were faster. On any error the handle is empty and nothing is left behind, as
    /// there.
    /// \par Cancellation
    /// as there.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire(acquire_options options = {}, CompletionToken&& token = {}) {
        return acquire(options, nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted: on the slot that was tried last, or, where none was free
    /// to be tried, on the pool (`held`, with the rest of the lease that ends first).
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire(acquire_options options, diagnostics& out, CompletionToken&& token = {}) {
        return acquire(options, &out, std::forward<CompletionToken>(token));
    }

    /// Takes `count` free slots together, or none: nothing is held while it waits, so that two who
    /// want several each cannot block each other. Each master grants all of them or none, in one
    /// round trip. It waits until one survey finds as many; where others take single slots as they
    /// come that may be long, and those of its own process that came later wait behind it. Guarded
    /// protocol only.
    /// \param count 1 to `size`, 128 at most
    /// \param options as for `async_acquire`
    /// \par Completion signature
    /// `void(error_code, slots)`
    /// \par Errors
    /// and cancellation as for `async_acquire`; also `errc::invalid_argument` for the plain
    /// protocol or another count, before anything is sent.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire_many(
        std::size_t count, acquire_options options = {}, CompletionToken&& token = {}) {
        return acquire_many(count, options, nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted, as with `async_acquire`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_acquire_many(
        std::size_t count,
        acquire_options options,
        diagnostics& out,
        CompletionToken&& token = {}) {
        return acquire_many(count, options, &out, std::forward<CompletionToken>(token));
    }

    /// Asks all masters which slots are taken, without touching them. For people and monitoring:
    /// the answer may be out of date when it arrives. The masters send 47 bytes for each slot that
    /// is taken.
    /// \par Completion signature
    /// `void(error_code, pool_status)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`. Masters that do not answer are no error: slots are
    /// `undecided` if too few do.
    /// \par Cancellation
    /// Terminal, partial and total: ends the waiting with `operation_aborted`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_status(CompletionToken&& token = {}) {
        return status(std::forward<CompletionToken>(token));
    }

private:
    using acquire_signature = void(error_code, slot);
    using acquire_many_signature = void(error_code, slots);
    using status_signature = void(error_code, pool_status);
    template <typename Signature>
    using handler = boost::asio::any_completion_handler<Signature>;
    using impl_ptr = std::shared_ptr<detail::manager_impl>;

    static void start_acquire(
        impl_ptr,
        const std::string&,
        std::size_t,
        acquire_options,
        diagnostics*,
        handler<acquire_signature>);
    static void start_acquire_many(
        impl_ptr,
        const std::string&,
        std::size_t,
        std::size_t,
        acquire_options,
        diagnostics*,
        handler<acquire_many_signature>);
    static void start_status(impl_ptr, const std::string&, std::size_t, handler<status_signature>);

    struct initiate_acquire : detail::initiation_base {
        template <typename Handler>
        void operator()(
            Handler&& handler,
            impl_ptr impl,
            const std::string& name,
            std::size_t size,
            acquire_options options,
            diagnostics* out) const {
            start_acquire(
                std::move(impl), name, size, options, out, std::forward<Handler>(handler));
        }
    };
    struct initiate_acquire_many : detail::initiation_base {
        template <typename Handler>
        void operator()(
            Handler&& handler,
            impl_ptr impl,
            const std::string& name,
            std::size_t size,
            std::size_t count,
            acquire_options options,
            diagnostics* out) const {
            start_acquire_many(
                std::move(impl), name, size, count, options, out, std::forward<Handler>(handler));
        }
    };
    struct initiate_status : detail::initiation_base {
        template <typename Handler>
        void operator()(
            Handler&& handler, impl_ptr impl, const std::string& name, std::size_t size) const {
            start_status(std::move(impl), name, size, std::forward<Handler>(handler));
        }
    };

    template <boost::asio::completion_token_for<acquire_signature> CompletionToken>
    auto acquire(acquire_options options, diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, acquire_signature>(
            initiate_acquire{{get_executor()}}, token, impl_, name_, size_, options, out);
    }
    template <boost::asio::completion_token_for<acquire_many_signature> CompletionToken>
    auto acquire_many(
        std::size_t count, acquire_options options, diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, acquire_many_signature>(
            initiate_acquire_many{{get_executor()}},
            token,
            impl_,
            name_,
            size_,
            count,
            options,
            out);
    }
    template <boost::asio::completion_token_for<status_signature> CompletionToken>
    auto status(CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, status_signature>(
            initiate_status{{get_executor()}}, token, impl_, name_, size_);
    }

    impl_ptr impl_;
    std::string name_;
    std::size_t size_;
};

}} // namespace redlock::REDLOCK_ABI
