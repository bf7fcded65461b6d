// How each master voted: the explanation that every outcome carries.

#pragma once

#include <redlock/outcome.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// What one master said to one request, or why it did not say anything.
enum class vote : std::uint8_t {
    pending,     ///< it had not answered when the operation was decided
    granted,     ///< it did what was asked: set, extended or removed the key
    held,        ///< the key is there already: somebody has the lock
    foreign,     ///< the key is not ours: another token, or a value that is no lock of this library
    absent,      ///< the key is not there
    unreachable, ///< no connection, or it broke before the answer came
    timed_out,   ///< connected, but silent for longer than `master_timeout`
    error,       ///< it answered with an error, or is not fit to vote; the text says which
    quarantined, ///< not known to remember for the longest lease: may have forgotten a lock
    duplicate,   ///< it is the same server as another configured master, and counts once
};

/// The enumerator's name as written above. The text lives for ever.
std::string_view to_string(vote) noexcept;

/// The vote of one master.
struct master_vote {
    std::string endpoint;                 ///< as configured, without the password
    redlock::vote vote = vote::pending;   ///< what it said
    std::chrono::microseconds latency{0}; ///< from the request to its answer; 0 where none came
    /// The rest of the holder's lease (`held`, in `lock_status`) or of the quarantine.
    std::optional<std::chrono::milliseconds> time_left;
    /// The server's error or the reason. Text that came from the network: do not trust its content.
    std::string text;
};

/// The explanation of one operation's outcome. Pass one by reference to an operation and it is
/// filled, on the manager's side, before the handler runs; it must live until then.
struct diagnostics {
    std::string message;                  ///< one sentence on the outcome; empty on plain success
    unsigned attempts = 0;                ///< rounds of votes that were started
    std::size_t quorum = 0;               ///< votes needed
    std::chrono::microseconds elapsed{0}; ///< from the start of the operation to its decision
    std::vector<master_vote> votes; ///< of the last attempt, in the order of the configuration
};

/// One readable line: "contended after 3 attempts in 12.4 ms, 1 of 3 needed: 10.0.0.1:6379 granted
/// 0.4 ms, 10.0.0.2:6379 held 0.3 ms, ...". Never holds a password or a token.
std::string to_string(const diagnostics&);

/// What a query found on one master.
struct master_lock_status {
    std::string endpoint;               ///< as configured, without the password
    redlock::vote vote = vote::pending; ///< `held`, `absent`, `foreign`, or why it is not known
    std::string owner;                  ///< a digest of the holder's token: tells holders apart,
                                        ///< does not allow to release
    std::optional<std::chrono::milliseconds> time_left; ///< of the key; empty: it has no expiry
    std::string text;                                   ///< the server's error or the reason
};

/// What a query found. A statement about the past: it may have changed before it arrives.
struct lock_status {
    lock_state state = lock_state::undecided; ///< the verdict of the majority
    std::string owner; ///< digest of the token that a majority has, if `held`
    std::optional<std::chrono::milliseconds> time_left; ///< until no majority has it, if `held`
    std::vector<master_lock_status> masters;            ///< in the order of the configuration
};

/// One readable line, as of diagnostics.
std::string to_string(const lock_status&);

}} // namespace redlock::REDLOCK_ABI
