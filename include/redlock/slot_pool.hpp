// A pool of numbered slots: a worker acquires any free slot and learns its number. It is also a
// counting semaphore: a pool of L slots admits at most L holders at a time.

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

/// Maximum size of a pool.
inline constexpr std::size_t slot_pool_size_max = 65'536;

namespace detail {

struct slot_maker;

/// Common base of one slot and several slots: the lock on them. Each function is that of
/// `redlock::lock`.
class slot_lease {
public:
    /// See `lock::valid`.
    bool valid() const noexcept { return lock_.valid(); }
    /// See `lock::held`. Check it before each step that requires the slot.
    bool held() const noexcept { return lock_.held(); }
    /// Returns `held()`.
    explicit operator bool() const noexcept { return held(); }
    /// Returns `name:slot:number`, or the same with several numbers. For people only: no lock has
    /// this name.
    std::string_view resource() const { return lock_.resource(); }
    /// See `lock::token`. Keep it secret.
    std::string_view token() const { return lock_.token(); }
    /// Returns the fencing token, which is larger than that of every earlier owner of the number,
    /// or of any of the numbers. Tokens of different numbers are unrelated.
    std::optional<std::uint64_t> fencing_token() const { return lock_.fencing_token(); }
    /// See `lock::deadline`.
    time_point deadline() const noexcept { return lock_.deadline(); }
    /// See `lock::remaining`.
    std::chrono::nanoseconds remaining() const noexcept { return lock_.remaining(); }

    /// See `lock::async_extend`.
    template <typename CompletionToken = default_token>
    auto async_extend(std::chrono::milliseconds ttl, CompletionToken&& token = {}) {
        return lock_.async_extend(ttl, std::forward<CompletionToken>(token));
    }
    /// See `lock::async_release`.
    template <typename CompletionToken = default_token>
    auto async_release(CompletionToken&& token = {}) {
        return lock_.async_release(std::forward<CompletionToken>(token));
    }
    /// See `lock::async_wait_lost`.
    template <typename CompletionToken = default_token>
    auto async_wait_lost(CompletionToken&& token = {}) {
        return lock_.async_wait_lost(std::forward<CompletionToken>(token));
    }

    /// See `lock::abandon`.
    void abandon() noexcept { lock_.abandon(); }

protected:
    /// Constructs an empty handle.
    slot_lease() noexcept = default;
    /// Constructs a handle from an acquired lock.
    explicit slot_lease(lock&& held) noexcept : lock_(std::move(held)) {}

private:
    lock lock_;
};

} // namespace detail

/// An acquired slot: its number and its lock. Move-only. While it lives and renewal is on, the
/// library extends the lease. The destructor releases the slot in the background.
///
/// Except for the number, a slot is a lock. Each function with the name of a function of
/// `redlock::lock` has the same errors, cancellation, executors and thread safety. A loss is
/// reported as for a lock, by `held()` and `async_wait_lost`. The holder must then stop its work,
/// because another holder may have the number.
class [[nodiscard]] slot : public detail::slot_lease {
public:
    /// Constructs an empty handle.
    slot() noexcept = default;

    /// Returns the number of the slot: 0 to size - 1. While the slot is held, no other holder in
    /// any process has this number. Returns 0 for an empty handle.
    std::size_t number() const noexcept { return number_; }

private:
    friend struct detail::slot_maker;
    slot(lock&& held, std::size_t number) noexcept : slot_lease(std::move(held)), number_(number) {}

    std::size_t number_ = 0;
};

/// Several slots that were acquired together, as one lock: they have one deadline, and are
/// extended, lost and released together. Otherwise the same as `slot`.
class [[nodiscard]] slots : public detail::slot_lease {
public:
    /// Constructs an empty handle.
    slots() noexcept = default;

    /// Returns the numbers of the slots in increasing order. Empty for an empty handle.
    const std::vector<std::size_t>& numbers() const noexcept { return numbers_; }
    /// Returns the number of slots.
    std::size_t size() const noexcept { return numbers_.size(); }

private:
    friend struct detail::slot_maker;
    slots(lock&& held, std::vector<std::size_t>&& numbers) noexcept
        : slot_lease(std::move(held)),
          numbers_(std::move(numbers)) {}

    std::vector<std::size_t> numbers_;
};

/// A pool of `size` slots. All processes that use the same name, size and masters share it. A pool
/// of one slot is a mutex.
///
/// Each slot is a lock of its own on a majority of the masters, so the number of holders is exact.
/// A counter on each master would not be exact (see docs/slot_pool.md). Acquiring a slot takes two
/// round trips for any pool size: one to find a free slot and one to vote on it. Each slot that
/// another process acquires in between costs one more.
///
/// This object is a light-weight handle: it contains a name and a reference to the state of the
/// manager. Constructing and destroying it sends nothing.
/// \par Sizes
/// Processes with different sizes share the numbers that both have. No number is ever held twice,
/// and no process gets a number beyond its own size. The total number of holders is limited by the
/// largest size.
/// \par Names
/// The name of a pool and the name of a resource are independent: the keys of slots are
/// `prefix{name}:slot:number`, which no lock uses.
/// \par Protocol
/// Both. With the plain protocol waiters do not learn when a lease ends, and retry after at most
/// `retry_delay_max`.
/// \par Blocking use
/// `blocking::manager::call`.
/// \par Thread safety
/// Distinct objects: safe. Shared objects: safe, except for assignment and destruction.
/// \par Object lifetimes
/// The pool may outlive the manager: operations then complete with `errc::closed`.
class slot_pool {
public:
    /// The executor type of the manager.
    using executor_type = boost::asio::any_io_executor;

    /// Constructs a pool. Does no I/O.
    /// \param manager the manager to acquire slots with
    /// \param name the name of the pool. Range: 1 to `resource_name_max` bytes.
    /// \param size the number of slots. Range: 1 to `slot_pool_size_max`.
    /// \throws std::invalid_argument if the name or the size is out of range.
    slot_pool(lock_manager& manager, std::string name, std::size_t size);

    /// Returns the name of the pool.
    const std::string& name() const noexcept { return name_; }
    /// Returns the number of slots.
    std::size_t size() const noexcept { return size_; }
    /// Returns the executor of the manager.
    executor_type get_executor() const noexcept;

    /// Acquires any free slot; no number is preferred.
    ///
    /// While all slots are held, it waits as long as `options.wait` allows, and the release of any
    /// slot notifies it. Within one process only the waiter that arrived first sends requests, and
    /// the others queue after it. Between processes the order is unspecified. A released slot may
    /// be handed off to the next waiter of the same process without a round trip
    /// (`config::local_handoff_time`). With `wait_for::none()` it checks the pool once and tries
    /// some of the slots that are free.
    /// \param options as for `lock_manager::async_acquire`; `order` must be `fairness::none`
    /// \par Completion signature
    /// `void(error_code, slot)`
    /// \par Errors
    /// As `lock_manager::async_acquire`. `errc::contended` means that all slots were held or that
    /// other processes were faster. On any error the returned handle is empty, and all grants are
    /// removed.
    /// \par Cancellation
    /// As `lock_manager::async_acquire`.
    /// \par Diagnostics
    /// The votes on the last slot that was tried. If no slot was free, these are the votes on the
    /// pool (`held`, with the remaining time of the lease that ends first).
    template <
        boost::asio::completion_token_for<void(error_code, slot)> CompletionToken = default_token>
    auto async_acquire(acquire_options options = {}, CompletionToken&& token = {}) {
        return detail::initiate<void(error_code, slot), &slot_pool::start_acquire>(
            get_executor(), std::forward<CompletionToken>(token), impl_, name_, size_, options);
    }

    /// Acquires `count` free slots together, or none. Guarded protocol only.
    ///
    /// Each master grants all of them or none, in one round trip. Nothing is held during the wait,
    /// so two callers that need several slots each cannot block each other. The wait ends when one
    /// check of the pool finds enough free slots. This may take long if other callers keep
    /// acquiring single slots. Later waiters of the same process queue after it.
    /// \param count the number of slots. Range: 1 to `size`, at most 128.
    /// \param options as for `async_acquire`
    /// \par Completion signature
    /// `void(error_code, slots)`
    /// \par Errors
    /// As `async_acquire`. In addition `errc::invalid_argument` with the plain protocol or if
    /// `count` is out of range. Nothing was sent in this case.
    /// \par Cancellation
    /// As `async_acquire`.
    template <
        boost::asio::completion_token_for<void(error_code, slots)> CompletionToken = default_token>
    auto async_acquire_many(
        std::size_t count, acquire_options options = {}, CompletionToken&& token = {}) {
        return detail::initiate<void(error_code, slots), &slot_pool::start_acquire_many>(
            get_executor(),
            std::forward<CompletionToken>(token),
            impl_,
            name_,
            size_,
            count,
            options);
    }

    /// Queries all masters for the held slots, without changing anything. Use it for people and
    /// monitoring only: the result may be out of date when it arrives. Each master sends 47 bytes
    /// for each held slot.
    /// \par Completion signature
    /// `void(error_code, pool_status)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`. A master that does not reply is not an error; without a
    /// majority of replies slots are `undecided`.
    /// \par Cancellation
    /// Terminal, partial and total: ends the wait with `operation_aborted`.
    template <
        boost::asio::completion_token_for<void(error_code, pool_status)> CompletionToken =
            boost::asio::deferred_t>
    auto async_status(CompletionToken&& token = {}) {
        return detail::initiate_plain<void(error_code, pool_status), &slot_pool::start_status>(
            get_executor(), std::forward<CompletionToken>(token), impl_, name_, size_);
    }

private:
    template <typename... Results>
    using handler = boost::asio::any_completion_handler<void(error_code, Results...)>;
    using impl_ptr = std::shared_ptr<detail::manager_impl>;
    using sink = detail::diagnostics_sink;

    static void
    start_acquire(impl_ptr, const std::string&, std::size_t, acquire_options, sink, handler<slot>);
    static void start_acquire_many(
        impl_ptr,
        const std::string&,
        std::size_t,
        std::size_t,
        acquire_options,
        sink,
        handler<slots>);
    static void start_status(impl_ptr, const std::string&, std::size_t, handler<pool_status>);

    impl_ptr impl_;
    std::string name_;
    std::size_t size_;
};

}} // namespace redlock::REDLOCK_ABI
