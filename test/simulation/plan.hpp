// A plan: everything about a run that was decided beforehand, as plain data. It is made from a seed
// and a profile; running it draws only delays, each link and client from a stream of its own. A
// failing plan is shrunk by removing parts.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simulation {

/// Moments and spans of true time, in nanoseconds since the run began.
using nanos = std::int64_t;
inline constexpr nanos us = 1000;
inline constexpr nanos ms = 1000 * us;
inline constexpr nanos sec = 1000 * ms;
inline constexpr nanos no_time = INT64_MAX;

enum class speech : std::uint8_t { plain, guarded };

/// What a connection is for.
enum class wire : std::uint8_t { commands, pushes };
std::string_view to_string(wire) noexcept;

/// The form of the lock: one resource, several, or one as a reader.
enum class taking : std::uint8_t { one, all, reading };
std::string_view to_string(taking) noexcept;

/// One operation of a worker: acquire, hold, release.
struct op {
    enum class ending : std::uint8_t { release, abandon, keep };
    /// What a holder does after the signal of a loss: it stops at once, stops later, or acts until
    /// its last deadline.
    enum class obedience : std::uint8_t { at_once, later, never };

    unsigned resource = 0;
    unsigned wants = 1; // the number of slots
    unsigned slots = 0; // not 0: any slot of the pool of that name and size
    taking how = taking::one;
    std::vector<unsigned> with{};    // of `all`: the other resources
    nanos downgrade_after = no_time; // to a reader, from the acquisition
    std::int64_t ttl_ms = 100;
    std::int64_t wait_ms = 0; // 0: one attempt
    std::int64_t stop_margin_ms = 0;
    std::int64_t min_validity_ms = 0;
    std::int64_t max_hold_ms = 0; // 0: unbounded
    bool renews = true;
    bool fences = false;
    nanos think = 0;                   // pause before the acquire
    nanos hold = 0;                    // from the acquisition to the end
    nanos cancel_after = no_time;      // while it waits
    std::vector<nanos> extend_after{}; // from the acquisition
    std::int64_t extend_ttl_ms = 100;
    std::vector<nanos> write_after{}; // when it writes to the fenced store, from the acquisition
    ending end = ending::release;
    obedience after_loss = obedience::at_once;
    nanos lingers = 0;         // of one that stops later
    bool fifo = false;         // uses the fair queue
    bool names_token = false;  // a single attempt with a token of its own
    bool transferable = false; // its token may be passed on
    bool attaches = false;     // to a lock that somebody abandoned; if there is none, acquires
};

struct client_plan {
    std::int64_t rate_ppb = 0; // how much faster than true time its clock runs
    speech speaks = speech::plain;
    std::int64_t max_ttl_ms = 400;
    bool takes_recorded = false; // has no max_ttl of its own; the one above is for a founding
    std::size_t masters = 0;     // 0: all of them, as it should be
    std::string change;     // of the members of the quorum: "+m3", "-m0" or "=200"; empty: none
    bool respelled = false; // its list has the masters by other names
    bool replaces = false;  // its list replaces at once one that is not final
    bool corrected = false; // once it has crashed, it has the right list
    bool pushes = false;    // releases are published, and waiters subscribe
    std::int64_t local_handoff_ms = 0;
    std::vector<std::vector<op>> workers;
};

struct master_plan {
    std::int64_t rate_ppb = 0;
    std::int64_t offset_us = 0;
    nanos age = 1000 * sec; // how long it has been up when the run begins
    bool fsyncs = false;    // does appendfsync always: a crash loses nothing
};

enum class fault_kind : std::uint8_t {
    partition,    // between `client` and `master`, in the directions of `amount` (1 there, 2 back)
    refuse,       // new connections to the master are refused; existing ones stay
    break_late,   // commands in flight are executed up to `amount` ns late; replies are lost
    break_lost,   // what is in flight is lost
    stall,        // the master executes nothing
    crash,        // the master restarts with its data of `amount` ns earlier (-1: empty)
    flush,        // FLUSHALL
    replace,      // the master's data become those of master `amount`, as by DEBUG
    step,         // the master's wall clock, by `amount` us
    pause,        // the client's process: nothing runs, its clock goes on
    suspend,      // the client's machine: the same, but a clock that is not BOOTTIME stops
    client_crash, // the process is gone; another one starts after `span`
    client_close, // the manager is closed; another one starts after `span`
    promote,      // the master dies; a replica that lags by `amount` ns answers after `span`
    take_over,    // the master dies; after `span` an empty server that was always up answers
    flush_db,     // FLUSHDB
    forget_words, // SCRIPT FLUSH
    reset_stats,  // CONFIG RESETSTAT
    reload,       // DEBUG RELOAD: nothing is lost
    remove_keys,  // DEL, as `amount` says: 1 lock keys, 2 fencing counters, 4 the record
    hush,         // PUBLISH is refused
    deafen,       // notification connections of `client` to the master end, and are then refused
    evict,        // may evict keys: all with an expiry go after `amount` ns, and at the end again
    slow_handshake, // handshakes of `client` with the master take up to `amount` ns longer
    lie, // the master sends `text` to `client` unasked (0), or in place of its next reply (1)
};
inline constexpr std::size_t fault_kinds = 25;
std::string_view to_string(fault_kind) noexcept;

/// `client` or `master` -1: all of them.
struct fault {
    fault_kind kind = fault_kind::partition;
    nanos at = 0;
    nanos span = 0; // no_time: to the end of the run
    int client = -1;
    int master = -1;
    std::int64_t amount = 0;
    std::optional<wire> only{}; // of partitions, refusals and breaks: else both kinds of connection
    std::string text{};         // of lies

    bool cuts(wire kind) const noexcept { return !only || *only == kind; }
};

/// Deliberate mistakes in the use of the library.
enum class mistake : std::uint8_t {
    none,
    fewer_masters,            // one client is configured with fewer masters
    monotonic_clock,          // a clock that stops while the machine is suspended
    believes_while_releasing, // a holder goes on until its release is confirmed
    believes_until_told,      // a holder ignores the clock and waits for the signal of a loss
    no_quarantine,
};

/// Delays and losses of the network.
struct weather {
    nanos delay_min = 100 * us;
    nanos delay_max = 2 * ms;
    unsigned lost_pushes_percent = 0; // even after the end of the faults
    unsigned slow_percent = 0;        // of writes that take up to `slow_max`
    nanos slow_max = 0;
    nanos flush_max = 0;        // maximum delay of a client before its bytes are sent
    unsigned late_percent = 30; // of broken connections whose last commands arrive late
    nanos late_max = 0;
};

struct plan {
    std::uint64_t seed = 0;
    std::string profile;
    bool kept = true;         // the assumptions hold, so that the promises are checked
    bool ordered = false;     // fencing tokens must increase
    bool unique = false;      // fencing tokens must differ: also beyond A2, while no memory is lost
    bool bounded = true;      // keys expire within their bound, if the assumptions hold
    bool yields = false;      // no extension after another owner's lease, even if keys were deleted
    nanos attempt_within = 0; // not 0: while the lock is free, a waiter tries that soon
    unsigned passes = 0;      // not 0: how often a waiting client may be passed over
    mistake wrong = mistake::none;

    std::int64_t drift_ppb = 10'000'000; // clock_drift_factor
    std::int64_t drift_margin_ms = 2;
    std::int64_t offset_bound_ms = 0; // clock_offset_bound
    std::int64_t master_timeout_ms = 30;
    std::int64_t connect_timeout_ms = 100;
    std::int64_t health_check_ms = 500;

    bool focused = false;             // the generic faults are not added
    bool prompt = false;              // keys must be removed long before they expire
    bool members = false;             // masters record the list of the quorum
    bool founded = false;             // and have done so when the run begins
    std::size_t members_at_first = 0; // the first ones; 0: all masters
    bool may_refuse = false;    // records may be lost or clients excluded until no quorum is left
    bool polls = true;          // false: without a notification, retry when the lease has expired
    nanos faults_end = 2 * sec; // no fault reaches beyond it
    nanos progress_bound = 0;   // how long the last acquires may take after that
    weather air;
    std::vector<master_plan> masters;
    std::vector<client_plan> clients;
    std::vector<fault> faults;

    std::size_t resources() const noexcept;
    std::size_t first_members() const noexcept {
        return members_at_first == 0 ? masters.size() : members_at_first;
    }
    /// The largest max_ttl of all clients; and the smallest, which limits every ttl (A3).
    std::int64_t max_ttl_ms() const noexcept;
    std::int64_t ttl_limit_ms() const noexcept;
    /// The size that shrinking reduces.
    std::size_t size() const noexcept;
};

/// Each operation of all clients of a plan, which may be constant.
template <typename Plan, typename Change>
void for_each_op(Plan& what, Change change) {
    for (auto& client : what.clients) {
        for (auto& worker : client.workers) {
            for (auto& one : worker) {
                change(client, one);
            }
        }
    }
}

/// Applies a mistake to the clients of the plan.
void make_mistake(plan&, mistake);

/// Returns a line for each master, client, operation and fault.
std::string describe(const plan&);
std::string describe(const fault&);

} // namespace simulation
