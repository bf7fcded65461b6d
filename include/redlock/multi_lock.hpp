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

/// The most resources of one acquire: a master takes them in one step, and serves nobody else
/// meanwhile.
inline constexpr std::size_t multi_lock_max = 128;

namespace detail {

using acquire_all_signature = void(error_code, lock);

struct initiate_acquire_all : initiation_base {
    static void start(
        lock_manager& manager,
        std::vector<std::string> resources,
        acquire_options options,
        diagnostics* out,
        boost::asio::any_completion_handler<acquire_all_signature> done);

    template <typename Handler>
    void operator()(
        Handler&& handler,
        lock_manager* manager,
        std::vector<std::string> resources,
        acquire_options options,
        diagnostics* out) const {
        start(*manager, std::move(resources), options, out, std::forward<Handler>(handler));
    }
};

template <boost::asio::completion_token_for<acquire_all_signature> CompletionToken>
auto acquire_all(
    lock_manager& manager,
    std::vector<std::string> resources,
    acquire_options options,
    diagnostics* out,
    CompletionToken&& token) {
    return boost::asio::async_initiate<CompletionToken, acquire_all_signature>(
        initiate_acquire_all{{manager.get_executor()}},
        token,
        &manager,
        std::move(resources),
        options,
        out);
}

} // namespace detail

/// Takes the locks of all these resources as one `lock`, in one round trip: each master grants all
/// of them or none, and a majority of the masters has to. Guarded protocol only.
///
/// Excludes, and is excluded by, every lock of one of the resources. Nothing is held while it
/// waits, so two owners that name the same resources in opposite orders cannot block each other.
/// The lock has one deadline, one token and, with `acquire_options::fencing`, one fencing token,
/// which is larger than that of every earlier owner of any of the resources. It is extended, and
/// lost, as a whole; `async_release` frees those that are still its own. Its `resource()` is the
/// names, joined by ", ".
///
/// \param manager runs, and outlives the acquiring
/// \param resources 1 to `multi_lock_max` names, in any order; a name that occurs twice counts
///   once. In a statement with `co_await` name the vector first (docs/compilers.md).
/// \param options see `acquire_options`; `order` must be `fairness::none`
/// \par Completion signature
/// `void(error_code, lock)`
/// \par Errors
/// Those of `lock_manager::async_acquire`. `errc::contended`: on too many masters at least one of
/// the resources is taken; the diagnostics tell the longest of their leases. Also
/// `errc::invalid_argument`, before anything is sent: no names or too many, one that is out of
/// range, the plain protocol, or `fairness::fifo`. Where the masters hash keys as a cluster's nodes
/// do, `errc::no_quorum`, with the names that hash apart in the votes' texts: a hash tag in
/// `config::key_prefix` keeps them together.
/// \par Cancellation, executor, thread safety
/// As `lock_manager::async_acquire`.
/// \par Blocking
/// `blocking::manager::call`.
template <
    boost::asio::completion_token_for<detail::acquire_all_signature> CompletionToken =
        boost::asio::deferred_t>
auto async_acquire_all(
    lock_manager& manager,
    std::vector<std::string> resources,
    acquire_options options = {},
    CompletionToken&& token = {}) {
    return detail::acquire_all(
        manager, std::move(resources), options, nullptr, std::forward<CompletionToken>(token));
}

/// Also tells how each master voted in the last attempt.
template <
    boost::asio::completion_token_for<detail::acquire_all_signature> CompletionToken =
        boost::asio::deferred_t>
auto async_acquire_all(
    lock_manager& manager,
    std::vector<std::string> resources,
    acquire_options options,
    diagnostics& out,
    CompletionToken&& token = {}) {
    return detail::acquire_all(
        manager, std::move(resources), options, &out, std::forward<CompletionToken>(token));
}

}} // namespace redlock::REDLOCK_ABI
