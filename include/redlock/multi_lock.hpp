// Several resources under one lock: all of them or none.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// Maximum number of resources of one acquire. A master locks them in one step and serves no other
/// client during it.
inline constexpr std::size_t multi_lock_max = 128;

namespace detail {

void start_acquire_all(
    const manager_ptr& manager,
    std::vector<std::string> resources,
    acquire_options options,
    diagnostics_sink sink,
    boost::asio::any_completion_handler<void(error_code, lock)> done);

} // namespace detail

/// Acquires the locks of all these resources as one `lock`, in one round trip. Each master grants
/// all of them or none, and a majority of the masters must grant them. Guarded protocol only.
///
/// The lock excludes every lock of one of the resources, and is excluded by it. Nothing is held
/// during the wait, so two owners that name the same resources in opposite orders cannot block each
/// other.
///
/// The lock has one deadline, one token and, with `acquire_options::fencing`, one fencing token.
/// The fencing token is larger than that of every earlier owner of any of the resources. The lock
/// is extended and lost as a whole. `async_release` frees the resources that it still holds.
/// `resource()` returns the names, joined by ", ".
///
/// \param manager must be running
/// \param resources the names, 1 to `multi_lock_max`, in any order; duplicates count once. In a
///   statement with `co_await` use a named vector (see docs/compilers.md).
/// \param options see `acquire_options`; `order` must be `fairness::none`
/// \par Completion signature
/// `void(error_code, lock)`
/// \par Errors
/// As `lock_manager::async_acquire`, with these additions:
/// - `errc::contended`: on too many masters at least one of the resources is held. The diagnostics
///   show the longest of their leases.
/// - `errc::invalid_argument`: no names, too many names, a name out of range, the plain protocol,
///   or `fairness::fifo`. Nothing was sent.
/// - `errc::no_quorum`: also if the masters check hash slots like cluster nodes do and the names
///   are in different slots. The texts of the votes show these names. A hash tag in
///   `config::key_prefix` keeps all keys in one slot.
///
/// \par Cancellation, executors, thread safety
/// As `lock_manager::async_acquire`.
/// \par Blocking use
/// `blocking::manager::call`.
template <boost::asio::completion_token_for<void(error_code, lock)> CompletionToken = default_token>
auto async_acquire_all(
    lock_manager& manager,
    std::vector<std::string> resources,
    acquire_options options = {},
    CompletionToken&& token = {}) {
    return detail::initiate<void(error_code, lock), &detail::start_acquire_all>(
        manager.get_executor(),
        std::forward<CompletionToken>(token),
        detail::share(manager),
        std::move(resources),
        options);
}

}} // namespace redlock::REDLOCK_ABI
