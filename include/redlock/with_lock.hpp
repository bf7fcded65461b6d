// A lock as the scope of a coroutine: taken before it, cancelled into it on loss, released after
// it.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <exception>
#include <functional>
#include <string>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

/// The work that `async_with_lock` runs. The lock is that of the scope: it lives until the work
/// ends.
using locked_work = std::function<boost::asio::awaitable<void>(lock&)>;

namespace detail {

using with_lock_signature = void(std::exception_ptr);

struct initiate_with_lock : initiation_base {
    static void start(
        boost::asio::any_io_executor io,
        lock_manager& manager,
        std::string resource,
        acquire_options options,
        locked_work work,
        boost::asio::any_completion_handler<with_lock_signature> done);

    template <typename Handler>
    void operator()(
        Handler&& handler,
        lock_manager* manager,
        std::string resource,
        acquire_options options,
        locked_work work) const {
        start(
            executor,
            *manager,
            std::move(resource),
            options,
            std::move(work),
            std::forward<Handler>(handler));
    }
};

} // namespace detail

/// Takes the lock, runs `work` while it is held, and releases it however `work` ends.
///
/// On loss, the cancellation slot of `work` fires (terminal) at `deadline - stop_margin`: whatever
/// it awaits ends with `operation_aborted`. Code between two awaits is not interrupted; before it
/// touches the guarded thing it should look at `lock::held()`, or better, pass a fencing token
/// along.
///
/// `work` runs on a strand of the manager's executor. It is a coroutine and must not hold
/// references to a lambda's captures that die before it ends: pass what it needs as captures of
/// `work` itself, which lives as long as the scope.
/// \param manager must be running, and must outlive the acquisition
/// \param resource, options see `lock_manager::async_acquire`
/// \par Completion signature
/// `void(std::exception_ptr)`
/// \par Errors
/// Null when `work` returned with the lock still held. Else `boost::system::system_error` with the
/// error of the acquire, or with `errc::lost` if the lock was lost, released or moved away before
/// `work` returned; or the exception that `work` threw, unless that is the `operation_aborted` that
/// the loss caused. Completes after the release is decided.
/// \par Cancellation
/// Terminal, partial and total: cancels the acquire, or is passed on to `work` as terminal.
template <
    boost::asio::completion_token_for<detail::with_lock_signature> CompletionToken =
        boost::asio::deferred_t>
auto async_with_lock(
    lock_manager& manager,
    std::string resource,
    acquire_options options,
    locked_work work,
    CompletionToken&& token = {}) {
    return boost::asio::async_initiate<CompletionToken, detail::with_lock_signature>(
        detail::initiate_with_lock{{manager.get_executor()}},
        token,
        &manager,
        std::move(resource),
        options,
        std::move(work));
}

}} // namespace redlock::REDLOCK_ABI
