// Decodes a master's reply: turns the replies of both protocols into votes.

#pragma once

#include "command.hpp"
#include "resp.hpp"

#include <redlock/diagnostics.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace redlock::core {

struct answer {
    vote said = vote::error;
    bool use_eval : 1 = false;    // this variant is unknown or not allowed: use EVAL
    bool for_one : 1 = false;     // the refusal may be for one of the locks of the call
    bool late : 1 = false;        // arrived too late and was refused
    bool healed : 1 = false;      // the key was missing, and HEAL has created it
    bool forgot : 1 = false;      // the memory record does not match: a new handshake is needed
    bool unpublished : 1 = false; // executed, but its PUBLISH was refused
    std::optional<std::chrono::milliseconds> left{}; // of the holder's lease
    std::chrono::microseconds quarantine{};          // remaining quarantine
    std::uint64_t counter = 0; // fencing counter, notified subscribers, or tickets before ours
    std::int64_t quarantine_ends_us = 0; // end of the quarantine, by the server's clock
    std::int64_t server_us = 0;          // the server's clock; 0: not reported
};

/// \name Parts of replies
/// \{
/// Lua numbers are exact below this; a larger token or clock is an invalid reply.
constexpr std::int64_t exact_max = (std::int64_t{1} << 53) - 1;
/// The holder's lease, as PTTL reports it. Empty if it reports none.
std::optional<std::chrono::milliseconds> lease_left(std::int64_t pttl) noexcept;
/// \}

/// Decodes a reply to a command for a lock, or for a ticket. A ticket is granted: this client may
/// send its attempt. Held: it has to wait; `counter` others are before it, and nothing changes by
/// itself before `left` has passed.
answer read_answer(command_kind kind, const reply& got, command_variant how) noexcept;

/// The remaining lease in a reply to PTTL; 0 if there is no key. Empty if the reply contains no
/// lease.
std::optional<std::chrono::milliseconds> read_lease_left(const reply& got) noexcept;

/// What a server reports about its memory.
struct memory {
    std::chrono::microseconds quarantine{};
    std::int64_t server_us = 0;
    std::int64_t ends_us = 0; // when the quarantine ends or ended, by the server's clock
    bool readable = true;     // its record has the format of this version
    bool raised = false;      // this handshake has made the quarantine longer
    std::string_view record{};
};
/// Empty if it is not a reply to a handshake.
std::optional<memory> read_handshake(const reply& got) noexcept;

/// The server's clock, in us since 1970. Empty if it is not a reply to TIME.
std::optional<std::int64_t> read_time(const reply& got) noexcept;

/// Whether the server refuses this variant of a command, but may accept another.
bool refuses_command(std::string_view error) noexcept;

/// Whether an error means that this server cannot serve locks at the moment (replica, loading, not
/// authenticated), so that it has to introduce itself again.
bool means_ineligible(std::string_view error) noexcept;

/// The usual reply to a removal of several locks: executed, with nothing to tell of any.
inline constexpr std::string_view all_removed = "*2\r\n:1\r\n:0\r\n";

/// Decodes a master's reply to one call for several locks (guarded_scripts.hpp): one answer for
/// each lock of the call, in order.
class frame_answers {
public:
    frame_answers(
        const reply& got,
        command_kind kind,
        command_variant how,
        bool has_counters,
        std::size_t locks) noexcept;

    /// The part of the reply that applies to all locks. If the call was not executed, it is the
    /// reply for each lock.
    const answer& call() const noexcept { return call_; }
    bool executed() const noexcept { return executed_; }
    /// Executed, with nothing to tell of any lock.
    bool all_granted() const noexcept { return executed_ && !has_counters_ && rest_.empty(); }
    /// Whether the master reported, in the reply to an extension, that it may have lost locks.
    bool forgot() const noexcept { return forgot_; }
    /// The answer for the next lock, and the text of its error: `call` for each if the call was not
    /// executed.
    answer next() noexcept;
    std::string_view error() const noexcept { return error_; }

private:
    bool well_formed(std::size_t locks) const noexcept;
    answer decode(const reply& one) noexcept;

    command_kind kind_;
    bool has_counters_;
    bool executed_ = false;
    bool forgot_ = false;
    std::int64_t lock_ = 0;
    std::span<const reply> rest_;
    std::string_view error_;
    answer call_;
};

} // namespace redlock::core
