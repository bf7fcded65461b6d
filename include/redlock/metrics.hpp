// What a manager has done, and how its masters are.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/outcome.hpp>
#include <redlock/protocol.hpp>

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// How long something took, counted in buckets of fixed bounds from 50 us to 5 min. A plain value:
/// copies are independent.
class histogram {
public:
    /// What is counted.
    using duration = std::chrono::nanoseconds;

    /// The upper bounds of the buckets; a duration belongs to the first that it does not exceed.
    static constexpr std::array<std::chrono::microseconds, 21> bounds = [] {
        using us = std::chrono::microseconds;
        using ms = std::chrono::milliseconds;
        using s = std::chrono::seconds;
        return std::array<us, 21>{us(50), us(100), us(200), us(500), ms(1),   ms(2),   ms(5),
                                  ms(10), ms(20),  ms(50),  ms(100), ms(200), ms(500), s(1),
                                  s(2),   s(5),    s(10),   s(30),   s(60),   s(120),  s(300)};
    }();

    /// Counts one duration. A negative one counts as 0.
    void add(duration took) noexcept {
        const auto value = took.count() < 0 ? 0 : took.count();
        // Where to begin follows from the magnitude; it is right or one or two too low.
        std::size_t at = first_with[std::bit_width(static_cast<std::uint64_t>(value))];
        while (value > limits[at]) {
            ++at;
        }
        ++counts_[at];
        sum_ += duration(value);
    }

    /// How many fell into each bucket: one for each of `bounds`, and one for what is beyond.
    std::span<const std::uint64_t, bounds.size() + 1> counts() const noexcept { return counts_; }

    /// How many were counted in all.
    std::uint64_t count() const noexcept;

    /// The sum of all durations; over `count` it is the mean.
    duration sum() const noexcept { return sum_; }

    /// An estimate of what a share `q` of the durations, 0 to 1, does not exceed: right to the
    /// bucket, interpolated within. The largest bound for what is beyond it; 0 if nothing was
    /// counted.
    duration quantile(double q) const noexcept;

private:
    static constexpr std::size_t buckets = bounds.size() + 1;

    static constexpr std::array<duration::rep, buckets> limits = [] {
        std::array<duration::rep, buckets> out{};
        for (std::size_t i = 0; i < bounds.size(); ++i) {
            out[i] = duration(bounds[i]).count();
        }
        out.back() = std::numeric_limits<duration::rep>::max();
        return out;
    }();
    // By the bits of a duration: the bucket of the shortest that has as many.
    static constexpr std::array<std::uint8_t, 65> first_with = [] {
        std::array<std::uint8_t, 65> out{};
        for (std::size_t bits = 1; bits < 64; ++bits) {
            const auto shortest = duration::rep{1} << (bits - 1);
            while (shortest > limits[out[bits]]) {
                ++out[bits];
            }
        }
        return out;
    }();

    std::array<std::uint64_t, buckets> counts_{};
    duration sum_{0};
};

/// How often each value of an enumeration came, of which `Last` is the last enumerator.
template <auto Last>
class counts_per {
public:
    /// The enumeration.
    using kind = decltype(Last);
    /// How many values it has.
    static constexpr std::size_t size = static_cast<std::size_t>(Last) + 1;

    /// How often this value came.
    std::uint64_t& operator[](kind what) noexcept {
        return counts_[static_cast<std::size_t>(what)];
    }
    /// How often this value came.
    std::uint64_t operator[](kind what) const noexcept {
        return counts_[static_cast<std::size_t>(what)];
    }

    /// Of all values together.
    std::uint64_t total() const noexcept {
        std::uint64_t sum = 0;
        for (const std::uint64_t one : counts_) {
            sum += one;
        }
        return sum;
    }

private:
    std::array<std::uint64_t, size> counts_{};
};

using vote_counts = counts_per<vote::duplicate>;      ///< votes by kind
using loss_counts = counts_per<loss_reason::stalled>; ///< losses by reason

/// Counters of one master, since the manager was made.
struct master_metrics {
    std::string endpoint;             ///< as configured, without the password
    std::uint64_t commands = 0;       ///< commands sent
    std::uint64_t writes = 0;         ///< writes to the socket; commands per write is the batching
    std::uint64_t bytes_sent = 0;     ///< bytes handed to the socket
    std::uint64_t bytes_received = 0; ///< bytes that came
    std::uint64_t connects = 0;       ///< connections that were established
    std::uint64_t disconnects = 0;    ///< connections that were lost after that
    std::uint64_t granted = 0;        ///< votes for an acquire
    std::uint64_t held = 0;           ///< votes against one: somebody has it
    std::uint64_t failed = 0;         ///< votes on one of all other kinds
    vote_counts acquire_votes;        ///< the same three, by kind
    vote_counts extend_votes;         ///< votes on extensions; one that is late counts as
                                      ///< `timed_out` first
    vote_counts release_votes;        ///< votes on removals: releases and rollbacks
    /// From the moment an acquire or an extension was queued for the socket to its answer.
    histogram latency;
    std::uint64_t late = 0;   ///< commands that arrived after their time and did nothing (guarded)
    std::uint64_t healed = 0; ///< keys that an extension found missing and set (guarded)
    std::uint64_t publish_refused = 0; ///< releases whose PUBLISH the server refused
};

/// Counters of a manager, since it was made. All but the gauges only grow.
struct metrics {
    std::uint64_t acquired = 0;  ///< acquires that ended with a lock
    std::uint64_t contended = 0; ///< ... with `errc::contended`
    std::uint64_t no_quorum = 0; ///< ... with `errc::no_quorum`
    std::uint64_t too_slow = 0;  ///< ... with `errc::too_slow`
    std::uint64_t timed_out = 0; ///< ... with `errc::timed_out`
    std::uint64_t cancelled = 0; ///< ... by cancellation
    std::uint64_t attempts = 0;  ///< rounds of votes that were started
    std::uint64_t raised = 0;    ///< attempts that needed a second round trip to level the counters
    std::uint64_t renewed = 0;   ///< extensions that moved the deadline
    std::uint64_t renewals_failed = 0;    ///< extensions that found no majority in time
    std::uint64_t lost = 0;               ///< leases that were lost: the one to alert on
    loss_counts lost_by;                  ///< the same, by reason
    std::uint64_t released = 0;           ///< releases that ended with `release_result::released`
    std::uint64_t released_late = 0;      ///< ... with `expired` or `stolen`: also after a loss
    std::uint64_t released_uncertain = 0; ///< ... with `uncertain`
    std::uint64_t pushes = 0;             ///< messages received that a lock may be free
    std::uint64_t debts_paid = 0;         ///< removals repeated after a connection had broken
    std::uint64_t hand_overs = 0;         ///< leases that passed to a waiter of this process
    std::uint64_t observer_errors = 0;    ///< exceptions that came out of `config::observer`
    histogram acquire_wait;  ///< from the start of an acquire to its lock; failed ones are not here
    histogram hold;          ///< from the lock to its release or loss; abandoned ones are not here
    std::size_t waiting = 0; ///< gauge: acquires under way
    std::size_t held = 0;    ///< gauge: locks held
    std::size_t push_connections = 0; ///< gauge: masters that can tell of a release
    std::size_t subscriptions = 0;    ///< gauge: locks whose release is listened for
    /// Gauge: removals that wait for a master to come back. Those in flight are not counted.
    std::size_t debts = 0;
    std::vector<master_metrics> masters; ///< in the order of the configuration
};

/// How one master stands.
enum class master_state : std::uint8_t {
    down,        ///< not connected; the text says why
    connecting,  ///< connecting, or introducing itself
    admitted,    ///< it votes
    silent,      ///< connected, but has not answered for `master_timeout`
    quarantined, ///< not known to remember for long enough: new, restarted, emptied
    duplicate,   ///< it is the same server as another configured master
    unfit,       ///< a replica, loading, another record, evicts keys; the text says which
};

/// The enumerator's name as written above.
std::string_view to_string(master_state) noexcept;

/// The health of one master.
struct master_health {
    std::string endpoint;                    ///< as configured, without the password
    master_state state = master_state::down; ///< whether it votes
    std::string text;                        ///< why it does not vote; empty if it does
    std::optional<std::chrono::milliseconds> quarantine_left; ///< if quarantined
    std::string version;            ///< of the server, e.g. "redis 7.0.15"; empty until known
    std::string run_id;             ///< of the server process; empty until known
    std::string compare_and_delete; ///< "DELEX", "DELIFEQ", "EVALSHA" or "EVAL": the rung in use
    /// Whether it can tell of a release: "live"; "off" (`wake_up::poll`, or nobody had to wait
    /// yet); "down: " and why; "refused: " and the server's words, of a SUBSCRIBE, or of a PUBLISH
    /// of this manager.
    std::string pushes;
};

/// The health of a quorum.
struct health {
    bool ready = false;       ///< a majority is admitted: an acquire can succeed
    std::size_t admitted = 0; ///< masters that vote
    std::size_t quorum = 0;   ///< votes needed
    redlock::protocol protocol = protocol::guarded; ///< what is said to the masters
    bool quarantine_off = false; ///< `quarantine::off`: restarted masters vote at once. Unsafe but
                                 ///< for masters that are known to be new.
    /// What all processes of a deployment have to agree on, as this one is configured: a monitor
    /// compares them. The masters are below.
    std::string key_prefix;
    std::chrono::milliseconds max_ttl{0}; ///< see `key_prefix`
    /// How long a restarted master stays out: a little more than `max_ttl`. Longer where the
    /// master's record holds a larger `max_ttl` of another process (guarded).
    std::chrono::milliseconds quarantine_time{0};
    std::chrono::milliseconds master_timeout{0}; ///< as configured
    std::vector<master_health> masters;          ///< in the order of the configuration
};

/// One readable line: "ready, 4 of 5 masters admitted, 3 needed: ...".
std::string to_string(const health&);

}} // namespace redlock::REDLOCK_ABI
