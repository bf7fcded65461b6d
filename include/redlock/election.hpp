// Electing a leader: of many candidates one leads, with a fencing token, until it resigns or its
// lease ends. See docs/election.md.

#pragma once

#include <redlock/lock_manager.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/deferred.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace redlock { inline namespace REDLOCK_ABI {

/// How one election is held. All candidates should agree on `ttl`. Trivially destructible, as
/// `acquire_options` is.
struct election_options {
    /// The lease: a leader that crashed is followed after this at the latest (see `election`).
    /// Ranges as those of `acquire_options`.
    std::chrono::milliseconds ttl{10'000};
    /// The leader is told to stop so long before its lease ends: the time that its work needs to
    /// stop.
    std::chrono::milliseconds stop_margin{1'000};
    /// How long a candidate waits for its election.
    wait_for wait{wait_for::forever()};
    /// The longest term in all; then it is lost with `loss_reason::renew_limit`. 0: unbounded.
    std::chrono::milliseconds max_term{0};
    /// Whether the candidates are elected by the order of their arrival.
    fairness order{fairness::none};
    /// Who observes asks again after so long, where nothing told of a change before. 10 ms or more.
    std::chrono::milliseconds poll{1'000};
};

static_assert(std::is_trivially_destructible_v<election_options>);

/// What an observer has seen. A statement about the past.
struct leader_status {
    /// `held`: somebody leads. `free`: nobody does. `undecided`: it cannot be told, as in the
    /// middle of a change or without a majority of the masters.
    lock_state state = lock_state::undecided;
    /// Names the leader if there is one: what its `leadership::id()` is. Else empty.
    std::string leader;
    /// What is left of its lease if it is not renewed.
    std::optional<std::chrono::milliseconds> time_left;
};

/// A term as leader: owns the lock on the election's name. Move-only; its destructor resigns in the
/// background. Thread safety, executors, cancellation and lifetimes as for `lock`; all functions
/// but `valid`, `held`, `remaining` and `deadline` throw `std::logic_error` on an empty one.
class leadership {
public:
    /// An empty one.
    leadership() noexcept = default;
    /// Of a lock that was taken.
    explicit leadership(lock held) noexcept : lock_(std::move(held)) {}

    /// Whether there is a term at all, over or not; see `lock::valid`.
    bool valid() const noexcept { return lock_.valid(); }
    /// Whether this process leads now. Reads a clock; no I/O. False from `stop_margin` before the
    /// lease's end on.
    bool held() const noexcept { return lock_.held(); }
    /// The same as `held`.
    explicit operator bool() const noexcept { return held(); }
    /// Until `deadline`; 0 when it has passed. See `lock::remaining`.
    std::chrono::nanoseconds remaining() const noexcept { return lock_.remaining(); }
    /// The end of the lease, which renewal moves on. See `lock::deadline`.
    time_point deadline() const noexcept { return lock_.deadline(); }

    /// Larger than that of every leader before, and the same for the whole term. Give it to what
    /// the leader writes to, and have smaller ones refused there. Empty with the plain protocol.
    std::optional<std::uint64_t> fencing_token() const { return lock_.fencing_token(); }

    /// What observers see of this leader, 16 hexadecimal digits: a digest of the lock's token. New
    /// for each election but one: where the term passes to another candidate of this same manager
    /// without a word to the masters, it stays. Not secret. Log it, so that it can be told whose
    /// it is.
    std::string id() const;

    /// The lock itself: to extend it, say.
    lock& lease() noexcept { return lock_; }

    /// Ends the term: `held()` is false when this function returns, and the next candidate is
    /// woken.
    /// \par Completion signature
    /// `void(error_code, release_result)`
    /// \par Errors
    /// As `lock::async_release`: none but cancellation.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_resign(CompletionToken&& token = {}) {
        return lock_.async_release(std::forward<CompletionToken>(token));
    }

    /// Waits until leading is over against the leader's will.
    /// \par Completion signature
    /// `void(error_code, loss_reason)`
    /// \par Errors
    /// `errc::released` after a resignation.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_lost(CompletionToken&& token = {}) {
        return lock_.async_wait_lost(std::forward<CompletionToken>(token));
    }

private:
    lock lock_;
};

/// The work of a leader.
using leader_work = std::function<boost::asio::awaitable<void>(leadership&)>;

/// One election among all processes that use the same name and masters. A value: it is no candidate
/// by itself, and can be used for several operations at once.
///
/// At most one candidate leads at a time, as far as the lock promises it (docs/guarantees.md). Who
/// leads is renewed without end, until it resigns, loses a majority of the masters or ends. After a
/// crash the next is elected when the lease has ended, `ttl` after its last renewal at the latest,
/// plus the time until a waiting candidate asks: at most `config::retry_delay_max` and a round
/// trip, where a majority of the masters answers. Several candidates that ask at the same moment
/// may split the votes, and ask again after delays that are drawn.
///
/// With the guarded protocol every term has a fencing token.
/// \par Thread safety
/// As `lock_manager`.
/// \par Object lifetimes
/// The manager must outlive the beginning of each operation; it runs. The election may go before an
/// operation has ended.
/// \par Blocking use
/// `blocking::manager::call`.
class election {
public:
    /// That of the manager.
    using executor_type = boost::asio::any_io_executor;

    /// No I/O and no check: what is out of range ends the operations with `errc::invalid_argument`.
    /// \param name of the lock behind it: 1 to `resource_name_max` bytes
    election(lock_manager& manager, std::string name, election_options options = {});

    /// What it is held over.
    const std::string& name() const noexcept { return name_; }
    /// The manager's.
    executor_type get_executor() const noexcept { return manager_->get_executor(); }

    /// Waits until this process leads.
    /// \par Completion signature
    /// `void(error_code, leadership)`
    /// \par Errors
    /// Those of `lock_manager::async_acquire`; `contended` and `no_quorum` only where
    /// `election_options::wait` is limited.
    /// \par Cancellation
    /// Terminal, partial and total: withdraws, and leaves nothing behind on the masters.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_campaign(CompletionToken&& token = {}) {
        return campaign(nullptr, std::forward<CompletionToken>(token));
    }
    /// Also tells how each master voted in the last attempt.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_campaign(diagnostics& out, CompletionToken&& token = {}) {
        return campaign(&out, std::forward<CompletionToken>(token));
    }

    /// Campaigns, runs `work` as the leader, and resigns however `work` ends. When leading is over
    /// before, the cancellation slot of `work` fires (terminal), `stop_margin` before the lease
    /// ends. One term: whoever wants to be a candidate again calls it again. `work` resigns by
    /// returning. The rest is as with `async_with_lock`.
    /// \par Completion signature
    /// `void(std::exception_ptr)`
    /// \par Errors
    /// As `async_with_lock`: null when `work` returned and still led; `errc::lost`; the error of
    /// the campaign; what `work` threw.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_lead(leader_work work, CompletionToken&& token = {}) {
        return lead(std::move(work), std::forward<CompletionToken>(token));
    }

    /// Asks the masters who leads now. For people and monitoring: never decide by it what only the
    /// leader may.
    /// \par Completion signature
    /// `void(error_code, leader_status)`
    /// \par Errors
    /// `errc::not_running`, `errc::closed`, `errc::invalid_argument`.
    /// \par Cancellation
    /// Terminal, partial and total: ends the waiting.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_observe(CompletionToken&& token = {}) {
        return observe(std::nullopt, std::forward<CompletionToken>(token));
    }

    /// Waits until somebody else leads than the `seen` leader, or nobody does: with a
    /// `leader_status::leader` of before, empty if nobody led. Completes at once if that is so
    /// already, never with `undecided`. Woken by the leader's resignation (with `wake_up::push`),
    /// and asks again after `poll` at the latest; leaders that came and went in between are not
    /// told of. Signature, errors and cancellation as of `async_observe`.
    template <typename CompletionToken = boost::asio::deferred_t>
    auto async_wait_change(std::string seen, CompletionToken&& token = {}) {
        return observe(std::optional(std::move(seen)), std::forward<CompletionToken>(token));
    }

private:
    using campaign_signature = void(error_code, leadership);
    using lead_signature = void(std::exception_ptr);
    using observe_signature = void(error_code, leader_status);
    template <typename Signature>
    using handler = boost::asio::any_completion_handler<Signature>;

    static void start_campaign(const election&, diagnostics*, handler<campaign_signature>);
    static void start_lead(const election&, leader_work, handler<lead_signature>);
    static void
    start_observe(const election&, std::optional<std::string>, handler<observe_signature>);
    acquire_options term() const;

    struct initiate_campaign : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, const election& mine, diagnostics* out) const {
            start_campaign(mine, out, std::forward<Handler>(handler));
        }
    };
    struct initiate_lead : detail::initiation_base {
        template <typename Handler>
        void operator()(Handler&& handler, const election& mine, leader_work work) const {
            start_lead(mine, std::move(work), std::forward<Handler>(handler));
        }
    };
    struct initiate_observe : detail::initiation_base {
        template <typename Handler>
        void
        operator()(Handler&& handler, const election& mine, std::optional<std::string> seen) const {
            start_observe(mine, std::move(seen), std::forward<Handler>(handler));
        }
    };

    template <boost::asio::completion_token_for<campaign_signature> CompletionToken>
    auto campaign(diagnostics* out, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, campaign_signature>(
            initiate_campaign{{get_executor()}}, token, *this, out);
    }
    template <boost::asio::completion_token_for<lead_signature> CompletionToken>
    auto lead(leader_work work, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, lead_signature>(
            initiate_lead{{get_executor()}}, token, *this, std::move(work));
    }
    template <boost::asio::completion_token_for<observe_signature> CompletionToken>
    auto observe(std::optional<std::string> seen, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, observe_signature>(
            initiate_observe{{get_executor()}}, token, *this, std::move(seen));
    }

    lock_manager* manager_;
    std::string name_;
    election_options options_;
};

}} // namespace redlock::REDLOCK_ABI
