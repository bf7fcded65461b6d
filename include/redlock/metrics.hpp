// Counters of a manager and health of its masters.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/errc.hpp>
#include <redlock/outcome.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

namespace detail {
struct histogram_access;
}

/// A histogram of durations in buckets with fixed bounds from 50 us to 5 min. A plain value: copies
/// are independent.
class histogram {
public:
    /// The upper bounds of the buckets. A duration is counted in the first bucket whose bound it
    /// does not exceed.
    static constexpr std::array<std::chrono::microseconds, 21> bounds = [] {
        using us = std::chrono::microseconds;
        using ms = std::chrono::milliseconds;
        using s = std::chrono::seconds;
        return std::array<us, 21>{us(50), us(100), us(200), us(500), ms(1),   ms(2),   ms(5),
                                  ms(10), ms(20),  ms(50),  ms(100), ms(200), ms(500), s(1),
                                  s(2),   s(5),    s(10),   s(30),   s(60),   s(120),  s(300)};
    }();

    /// Returns the count of each bucket: one for each of `bounds`, and one for larger durations.
    std::span<const std::uint64_t, bounds.size() + 1> counts() const noexcept { return counts_; }

    /// Returns the number of counted durations.
    std::uint64_t count() const noexcept;

    /// Returns the sum of all durations. Divided by `count()` it is the mean.
    std::chrono::nanoseconds sum() const noexcept { return sum_; }

    /// Returns an estimate of the quantile `q`, interpolated within its bucket. Returns the largest
    /// bound for durations above it, and 0 if nothing was counted.
    /// \param q the quantile. Range: 0 to 1.
    std::chrono::nanoseconds quantile(double q) const noexcept;

private:
    friend struct detail::histogram_access;

    std::array<std::uint64_t, bounds.size() + 1> counts_{};
    std::chrono::nanoseconds sum_{0};
};

/// One counter for each value of an enumeration; `Last` is its last enumerator.
template <auto Last>
class counts_per {
public:
    /// Returns the count of this enumerator.
    std::uint64_t& operator[](decltype(Last) what) noexcept {
        return counts_[static_cast<std::size_t>(what)];
    }
    /// Returns the count of this enumerator.
    std::uint64_t operator[](decltype(Last) what) const noexcept {
        return counts_[static_cast<std::size_t>(what)];
    }

    /// Returns the sum of all counts.
    std::uint64_t total() const noexcept {
        return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
    }

private:
    std::array<std::uint64_t, static_cast<std::size_t>(Last) + 1> counts_{};
};

/// Counters of one master since the manager was constructed.
struct master_metrics {
    std::string endpoint;       ///< address as configured, without the password
    std::uint64_t commands = 0; ///< commands sent
    /// Writes to the socket; commands per write show the batching.
    std::uint64_t writes = 0;
    std::uint64_t bytes_sent = 0;     ///< bytes passed to the socket
    std::uint64_t bytes_received = 0; ///< bytes received
    std::uint64_t connects = 0;       ///< connections established
    std::uint64_t disconnects = 0;    ///< established connections that were lost
    /// Votes on acquisitions, by kind.
    counts_per<vote::duplicate> acquire_votes;
    /// Votes on extensions. A late vote is first counted as `timed_out`.
    counts_per<vote::duplicate> extend_votes;
    /// Votes on removals: releases and rollbacks.
    counts_per<vote::duplicate> release_votes;
    /// Time from queueing an acquisition or an extension for the socket to its reply.
    histogram latency;
    /// Commands that arrived too late and had no effect (guarded).
    std::uint64_t late = 0;
    std::uint64_t healed = 0;          ///< missing keys that an extension set again (guarded)
    std::uint64_t publish_refused = 0; ///< releases whose PUBLISH was refused by the server
};

/// Counters of a manager since it was constructed. All but the gauges only increase.
struct metrics {
    std::uint64_t acquired = 0; ///< acquires that succeeded
    /// Acquires that failed, by error; not those whose arguments were refused.
    counts_per<errc::conflicting_change> failed;
    std::uint64_t cancelled = 0; ///< acquires that were cancelled
    std::uint64_t attempts = 0;  ///< rounds of votes that were started
    /// Attempts that needed a second round trip to raise the fencing counters.
    std::uint64_t raised = 0;
    std::uint64_t renewed = 0;         ///< extensions that moved the deadline
    std::uint64_t renewals_failed = 0; ///< extensions without a majority in time
    /// Leases that were lost, by reason; alert on the total.
    counts_per<loss_reason::stalled> lost;
    /// Releases by result, including releases after a loss.
    counts_per<release_result::uncertain> released;
    std::uint64_t release_notifications = 0; ///< release notifications received
    std::uint64_t removals_repeated = 0; ///< removals that were repeated after a connection broke
    /// Leases that were handed off to a waiter of this process.
    std::uint64_t local_handoffs = 0;
    std::uint64_t observer_errors = 0; ///< exceptions thrown by `config::observer`
    /// Time from the start of an acquisition to its success; failed acquisitions are not included.
    histogram acquire_wait;
    /// Time from success to release or loss; abandoned locks are not included.
    histogram hold;
    std::size_t waiting = 0; ///< gauge: acquires in progress
    std::size_t held = 0;    ///< gauge: locks held
    /// Gauge: masters that can send release notifications.
    std::size_t notification_connections = 0;
    /// Gauge: locks with a subscription to release notifications.
    std::size_t subscriptions = 0;
    /// Gauge: removals that cannot be sent yet. They wait for a master to reconnect, for a slow
    /// master to confirm others (4,096 may be in flight), or for a retry after an error. Removals
    /// in flight are not included.
    std::size_t pending_removals = 0;
    std::vector<master_metrics> masters; ///< one per master, in the order of the configuration
};

/// State of one master.
enum class master_state : std::uint8_t {
    down,        ///< not connected; the text has the reason
    connecting,  ///< connecting, or in the handshake
    founding,    ///< the quorum is not founded yet; the text lists the masters without a reply
    admitted,    ///< it votes
    silent,      ///< connected, but no reply for `master_timeout`
    quarantined, ///< in quarantine: new, restarted or emptied
    duplicate,   ///< the same server as another configured master
    /// Ineligible to vote: a replica, loading, with a damaged memory record or one of another
    /// version or of a quorum with other masters, or allowed to evict keys. The text has the
    /// reason.
    ineligible,
};

template <>
inline constexpr std::string_view detail::names<master_state> =
    "down connecting founding admitted silent quarantined duplicate ineligible";

/// Health of one master.
struct master_health {
    /// Address as configured, without the password.
    std::string endpoint;
    master_state state = master_state::down; ///< state of the master
    /// Reason why it does not vote; empty if it does.
    std::string text;
    std::optional<std::chrono::milliseconds> quarantine_left; ///< if quarantined: remaining time
    /// Generation of the members in its memory record, as last read. 0: none.
    std::uint64_t generation = 0;
    /// Change in its memory record that is not final, as last read: "add NAME", "remove NAME" or
    /// "max-ttl TTL". Empty: none.
    std::string planned;
    /// Server version, such as "redis 7.0.15"; empty until known.
    std::string version;
    /// Run id of the server process; empty until known.
    std::string run_id;
    /// Command in use for scripts: "EVALSHA", or "EVAL" where that is refused.
    std::string compare_and_delete;
    /// Why its release notifications do not arrive: its connection is down, or the server refuses
    /// SUBSCRIBE, or PUBLISH of this manager. Empty if they arrive, or are not used.
    std::string notifications_text;
};

/// Health of a quorum.
struct health {
    /// True if a majority is admitted, so that an acquisition can succeed.
    bool ready = false;
    std::size_t admitted = 0; ///< number of masters that vote
    std::size_t quorum = 0;   ///< number of votes needed
    /// The longest ttl that this process may use: the quorum's, by the records of a majority, or
    /// `config::max_ttl` if that is smaller. Plain protocol: as configured. 0: not known yet.
    std::chrono::milliseconds max_ttl{0};
    /// Duration of the quarantine of a restarted master: slightly more than the quorum's `max_ttl`.
    /// Guarded protocol: the longest one that a member has recorded. 0: not known yet.
    std::chrono::milliseconds quarantine_time{0};
    /// One per master, in the order of the configuration.
    std::vector<master_health> masters;
    /// Names of the masters that make up the quorum, by their own records (guarded protocol). A
    /// majority of them is needed. Empty: not known yet, or plain protocol.
    std::vector<std::string> members;
    std::uint64_t generation = 0; ///< 1 for the first members, one more after each change; 0: none
    /// Progress of the change of the members that this manager makes, with the masters that it
    /// waits for. Without one: the changes that are planned and not final.
    std::string change;
};

/// Formats the health as one line: "ready, 4 of 5 masters admitted, 3 needed: ...".
std::string to_string(const health&);

}} // namespace redlock::REDLOCK_ABI
