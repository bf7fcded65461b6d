// Leader election: one of many candidates leads, with a fencing token, until it resigns or its
// lease ends. See docs/election.md.

#pragma once

#include <redlock/lock_manager.hpp>
#include <redlock/with_lock.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

/// Options of an election. All candidates should use the same `ttl`. Trivially destructible, like
/// `acquire_options`.
struct election_options {
    /// The lease: after a crash of the leader, the lease ends after at most this time (see
    /// `election`). Range: as in `acquire_options`. Default: `default_ttl`.
    std::chrono::milliseconds ttl{default_ttl};
    /// Time before the end of the lease at which the leader is signalled to stop. Choose it
    /// longer than the work needs to stop. Range: as in `acquire_options`. Default:
    /// `default_stop_margin`.
    std::chrono::milliseconds stop_margin{default_stop_margin};
    /// Maximum time that a candidate waits. Default: forever.
    wait_for wait{wait_for::forever()};
    /// Maximum total length of a term. After it the term is lost with
    /// `loss_reason::max_hold_reached`. Default: 0, unlimited.
    std::chrono::milliseconds max_hold{0};
    /// Whether candidates are elected in the order of their arrival: see `acquire_options::fifo`.
    /// Default: false.
    bool fifo{false};
    /// Maximum interval between two queries of an observer. A notification of a change starts a
    /// query earlier. Range: 10 ms or more; smaller values are raised to 10 ms. Default: 1 s.
    std::chrono::milliseconds poll{1'000};
};

static_assert(std::is_trivially_destructible_v<election_options>);

/// One election among all processes that use the same name and masters. This object is a value, not
/// a candidate, and can be used for several operations at once.
///
/// At most one candidate leads at a time, under the same assumptions as for locks (see
/// docs/guarantees.md). The term of the leader is renewed until it resigns, loses a majority of the
/// masters or terminates.
///
/// After a crash of the leader, the next one is elected when the lease has ended and a waiting
/// candidate retries. The lease ends at most `ttl` after its last renewal. The time until the retry
/// is at most `config::retry_delay_max` and a round trip, if a majority of the masters replies. If
/// several candidates retry at the same moment, the votes may be split; they then retry after
/// random delays.
///
/// A term is the lock on the name of the election: `lock::held` says whether this process leads,
/// from `stop_margin` before the end of the lease on it does not, and `lock::async_release`
/// resigns. With the guarded protocol every term has a fencing token. It is larger than that of
/// every earlier leader, and the same for the whole term. Pass it to every resource that the leader
/// writes to, and let the resource refuse smaller tokens.
/// \par Thread safety
/// As `lock_manager`.
/// \par Object lifetimes
/// The manager must be running until each operation has completed, and may be moved. The election
/// may be destroyed before its operations complete.
/// \par Blocking use
/// `blocking::manager::call`.
class election {
public:
    /// Constructs an election. Does no I/O.
    /// \param manager the manager to use
    /// \param name the name of the lock that the election uses. Range: 1 to 1,024 bytes.
    /// \param options see `election_options`
    /// \throws std::invalid_argument if the name or an option is out of range
    election(lock_manager& manager, std::string name, election_options options = {});

    /// Waits until this process leads.
    /// \par Completion signature
    /// `void(error_code, lock)`
    /// \par Errors
    /// As `lock_manager::async_acquire`. `contended` and `no_quorum` occur only if
    /// `election_options::wait` is limited.
    /// \par Cancellation
    /// Terminal and partial: withdraws the candidate, and removes what the masters may have
    /// granted.
    template <typename CompletionToken = default_token>
    auto async_campaign(CompletionToken&& token = {}) {
        return manager_.async_acquire(name_, term_, std::forward<CompletionToken>(token));
    }

    /// Campaigns, runs `work` as the leader, and resigns when `work` ends.
    ///
    /// If the term is lost first, terminal cancellation is emitted to `work`, `stop_margin` before
    /// the end of the lease. `work` resigns by returning. This function covers one term: call it
    /// again to be a candidate again. For the rest see `async_with_lock`.
    /// \par Completion signature
    /// `void(std::exception_ptr)`
    /// \par Errors
    /// As `async_with_lock`: null if `work` returned while it still led; otherwise `errc::lost`,
    /// the error of the campaign, or the exception of `work`.
    /// \par Cancellation
    /// As `async_with_lock`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_lead(locked_work work, CompletionToken&& token = {}) {
        return async_with_lock(
            manager_, name_, term_, std::move(work), std::forward<CompletionToken>(token));
    }

    /// Leads again and again: as `async_lead`, but after a loss of the term this process is a
    /// candidate again. Ends when `work` returns while it leads or after a release, when it throws
    /// while it leads, or something else than an error equal to `condition::lost`, when a campaign
    /// fails, or when it is cancelled. `work` is called once for
    /// each term, so it must not move from its captures.
    /// \par Completion signature
    /// `void(std::exception_ptr)`
    /// \par Errors
    /// As `async_lead`, except `errc::lost`.
    /// \par Cancellation
    /// As `async_with_lock`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_lead_always(locked_work work, CompletionToken&& token = {}) {
        return detail::initiate<void(std::exception_ptr), &election::start_lead_always>(
            manager_.get_executor(), std::forward<CompletionToken>(token), *this, std::move(work));
    }

    /// Queries the masters for the current leader: `lock_status::owner_digest` is the
    /// `lock::owner_digest` of its lock. Use it for people and monitoring only: never use it to
    /// decide whether a process may act as the leader.
    /// \par Completion signature
    /// `void(error_code, lock_status)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`, `errc::invalid_argument`.
    /// \par Cancellation
    /// Terminal, partial and total: ends the wait with `operation_aborted`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_observe(CompletionToken&& token = {}) {
        return manager_.async_query(name_, std::forward<CompletionToken>(token));
    }

    /// Waits until the leader is not `seen` any more: another candidate leads, or none. Completes
    /// at once if this is already so, and never with `undecided`.
    ///
    /// Retries when the leader resigns (with `release_notifications`), and after `poll` at the
    /// latest. Leaders that came and went in between are not reported.
    /// \param seen a previous `lock_status::owner_digest`; empty if there was no leader
    /// \par Completion signature
    /// `void(error_code, lock_status)`
    /// \par Errors
    /// As `async_observe`.
    /// \par Cancellation
    /// As `async_observe`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_change(std::string seen, CompletionToken&& token = {}) {
        return detail::initiate<void(error_code, lock_status), &election::start_wait_change>(
            manager_.get_executor(), std::forward<CompletionToken>(token), *this, std::move(seen));
    }

private:
    static void start_wait_change(
        election, std::string, boost::asio::any_completion_handler<void(error_code, lock_status)>);
    static void start_lead_always(
        election, locked_work, boost::asio::any_completion_handler<void(std::exception_ptr)>);

    detail::shared_manager manager_;
    std::string name_;
    acquire_options term_;
    std::chrono::milliseconds poll_;
};

}} // namespace redlock::REDLOCK_ABI
