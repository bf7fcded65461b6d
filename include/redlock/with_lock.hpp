// Runs a coroutine under a lock: acquires the lock before it, cancels it on loss, and releases the
// lock after it.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

/// The work that `async_with_lock` runs. The lock is valid until the work ends.
using locked_work = std::function<boost::asio::awaitable<void>(lock&)>;

namespace detail {

void start_with_lock(
    shared_manager manager,
    target wanted,
    acquire_options options,
    locked_work work,
    diagnostics_sink sink,
    boost::asio::any_completion_handler<void(std::exception_ptr)> done);

template <typename Awaitable>
struct value_of_awaitable {};
template <typename Value, typename Executor>
struct value_of_awaitable<boost::asio::awaitable<Value, Executor>> {
    using type = Value;
};
template <typename Work>
using value_of_work = typename value_of_awaitable<std::invoke_result_t<Work&, lock&>>::type;

template <typename Work>
concept scoped_work =
    std::is_void_v<value_of_work<Work>> || std::default_initializable<value_of_work<Work>>;

template <typename Value>
void start_for_value(
    shared_manager manager,
    target wanted,
    acquire_options options,
    std::function<boost::asio::awaitable<Value>(lock&)> work,
    diagnostics_sink sink,
    boost::asio::any_completion_handler<void(std::exception_ptr, Value)> done) {
    auto result = std::make_shared<std::optional<Value>>();
    locked_work storing = [work = std::move(work),
                           result](lock& mine) -> boost::asio::awaitable<void> {
        result->emplace(co_await work(mine));
    };
    start_with_lock(
        std::move(manager),
        std::move(wanted),
        options,
        std::move(storing),
        sink,
        adapt(std::move(done), [result](auto caller, std::exception_ptr error) {
            Value value = error ? Value() : std::move(**result);
            std::move(caller)(std::move(error), std::move(value));
        }));
}

template <typename Value>
struct scope_of {
    using signature = void(std::exception_ptr, Value);
    static constexpr auto start = &start_for_value<Value>;
};
template <>
struct scope_of<void> {
    using signature = void(std::exception_ptr);
    static constexpr auto start = &start_with_lock;
};

} // namespace detail

/// Acquires the lock, runs `work` while it is held, and releases the lock when `work` ends in any
/// way.
///
/// If the lock is lost, terminal cancellation is emitted to `work`, at `deadline - stop_margin` at
/// the latest. The operation that `work` awaits then completes with `operation_aborted`. Code
/// between two awaits is not interrupted. It should check `lock::held()` before it accesses the
/// guarded resource or, better, pass a fencing token along.
///
/// If `work` is an `awaitable<T>`, the operation completes with the value that it returned.
///
/// `work` runs on a strand of the manager's executor. It is a coroutine and must not refer to
/// captures of a lambda that is destroyed before it ends. Put all it needs into the captures of
/// `work` itself, which lives until the coroutine ends.
/// \param manager must be running
/// \param wanted see `lock_manager::async_acquire`
/// \param options see `lock_manager::async_acquire`
///
/// **g++ 12 destroys the captures of a lambda twice** if the lambda is written within a statement
/// with `co_await`, whatever function it is passed to. Captures by reference are not affected. Name
/// any other work before the statement (see docs/packaging.md):
/// \code
/// const redlock::locked_work work = [customer](redlock::lock&) { return bill(customer); };
/// co_await redlock::async_with_lock(manager, "r", options, work);
/// \endcode
/// \param work the coroutine to run: takes a `lock&`, returns `awaitable<T>`; may be move-only
/// \par Completion signature
/// `void(std::exception_ptr)`, or `void(std::exception_ptr, T)`. `T` must have a default
/// constructor, whose value is passed with an error.
/// \par Errors
/// Null if `work` returned and the lock was still held. Otherwise one of:
/// - `error_with_diagnostics` with the error of the acquisition, and how each master voted.
/// - `error_with_diagnostics` with `errc::lost`: the lock was lost, released or moved away before
///   `work` returned. After a loss it has the reason and the last votes.
/// - The exception that `work` threw, unless it is the `operation_aborted` caused by the loss.
///
/// Completes after the release is decided.
/// \par Cancellation
/// Terminal and partial: cancels the acquisition, or is passed on to `work` as terminal.
template <typename Work, typename CompletionToken = boost::asio::deferred_t>
auto async_with_lock(
    lock_manager& manager,
    target wanted,
    acquire_options options,
    Work&& work,
    CompletionToken&& token = {}) {
    using kept = std::remove_cvref_t<Work>;
    static_assert(
        detail::scoped_work<kept>,
        "the work must take a redlock::lock& and return asio::awaitable<T>, where T has a default "
        "constructor or is void");
    using value = detail::value_of_work<kept>;
    std::function<boost::asio::awaitable<value>(lock&)> copyable;
    if constexpr (std::copy_constructible<kept>) {
        copyable = std::forward<Work>(work);
    } else {
        copyable = [mine = std::make_shared<kept>(std::forward<Work>(work))](lock& held) {
            return std::invoke(*mine, held);
        };
    }
    using scope = detail::scope_of<value>;
    return detail::initiate<typename scope::signature, scope::start>(
        manager.get_executor(),
        std::forward<CompletionToken>(token),
        detail::shared_manager(manager),
        std::move(wanted),
        options,
        std::move(copyable));
}

/// Overload that uses the default options.
template <typename Work, typename CompletionToken = boost::asio::deferred_t>
    requires(!std::convertible_to<Work, acquire_options>)
auto async_with_lock(
    lock_manager& manager, target wanted, Work&& work, CompletionToken&& token = {}) {
    return async_with_lock(
        manager,
        std::move(wanted),
        acquire_options(),
        std::forward<Work>(work),
        std::forward<CompletionToken>(token));
}

}} // namespace redlock::REDLOCK_ABI
