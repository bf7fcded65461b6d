// What a manager has done, and how its masters are.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/protocol.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::inline REDLOCK_ABI {

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
    std::uint64_t failed = 0;         ///< votes of all other kinds
    std::uint64_t late = 0;   ///< commands that arrived after their time and did nothing (guarded)
    std::uint64_t healed = 0; ///< keys that an extension found missing and set (guarded)
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
    std::uint64_t renewals_failed = 0; ///< extensions that found no majority in time
    std::uint64_t hand_overs =
        0;                      ///< leases that passed to a waiter of this process (in `released`)
    std::uint64_t lost = 0;     ///< leases that were lost: the one to alert on
    std::uint64_t released = 0; ///< releases that ended with `release_result::released`
    std::uint64_t released_late = 0;      ///< ... with `expired` or `stolen`
    std::uint64_t released_uncertain = 0; ///< ... with `uncertain`
    std::uint64_t pushes = 0;             ///< messages received that a lock may be free
    std::uint64_t debts_paid = 0;         ///< removals repeated after a connection had broken
    std::size_t waiting = 0;              ///< gauge: acquires under way
    std::size_t held = 0;                 ///< gauge: locks held
    std::size_t push_connections = 0;     ///< gauge: masters that can tell of a release
    std::size_t subscriptions = 0;        ///< gauge: locks whose release is listened for
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
    quarantined, ///< it restarted too recently
    duplicate,   ///< it is the same server as another configured master
    unfit,       ///< a replica, loading, or it may evict keys; the text says which
};

/// The enumerator's name as written above.
std::string_view to_string(master_state) noexcept;

/// The health of one master.
struct master_health {
    std::string endpoint; ///< as configured, without the password
    master_state state = master_state::down;
    std::string text; ///< why it does not vote; empty if it does
    std::optional<std::chrono::milliseconds> quarantine_left; ///< if quarantined
    std::string version;            ///< of the server, e.g. "redis 7.0.15"; empty until known
    std::string run_id;             ///< of the server process; empty until known
    std::string compare_and_delete; ///< "DELEX", "DELIFEQ", "EVALSHA" or "EVAL": the rung in use
    /// Whether it can tell of a release: "live"; "off" (`wake_up::poll`, or nobody had to wait
    /// yet); "down: " and why; "refused: " and the server's words.
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
    std::vector<master_health> masters; ///< in the order of the configuration
};

/// One readable line: "ready, 4 of 5 masters admitted, 3 needed: ...".
std::string to_string(const health&);

} // namespace redlock::inline REDLOCK_ABI
