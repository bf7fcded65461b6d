// What a master's reply means: turns the replies of both protocols into votes.

#pragma once

#include "command.hpp"

#include <redlock/diagnostics.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace redlock::core {

struct answer {
    vote said = vote::error;
    bool ask_exists = false;    // native and nothing done: EXISTS tells why
    bool say_otherwise = false; // it does not know, or does not allow, this way: say it in EVAL
    bool late = false;          // it came after its time and did nothing
    bool healed = false;        // the key was missing, and HEAL has set it
    bool forgot = false;        // its record is to be looked at again, by a handshake
    bool unpublished = false;   // it was done, and its PUBLISH was refused
    std::optional<std::chrono::milliseconds> left{}; // of the holder's lease
    std::chrono::microseconds quarantine{};          // what is left of it
    std::uint64_t counter = 0;                       // the lock's fencing counter
    std::int64_t quarantine_ends_us = 0;             // the same, by the server's clock
    std::int64_t server_us = 0;                      // the server's clock; 0: it was not told
};

/// \name Of a reply to one of the commands of a lock. Plain or guarded is told from its form.
/// \{
answer read_acquire(const reply& got, rung how) noexcept;
answer read_raise(const reply& got, rung how) noexcept;
answer read_remove(const reply& got, rung how) noexcept;
answer read_extend(const reply& got, rung how) noexcept;
/// Granted: it may ask for the lock. Held: it has to wait; `counter` others are before it, and
/// nothing changes by itself before what is `left`.
answer read_turn(const reply& got, rung how) noexcept;
/// \}

/// The vote in a reply to EXISTS after a native command that did nothing.
vote vote_on_exists(const reply& got) noexcept;

/// What a server says of its memory.
struct memory {
    std::chrono::microseconds quarantine{};
    std::int64_t server_us = 0;
    std::int64_t ends_us = 0; // when the quarantine ends or ended, by the server's clock
    bool readable = true;     // its record has the format of this version
};
/// Empty if that is no reply to a handshake.
std::optional<memory> read_handshake(const reply& got) noexcept;

/// The server's clock, in us since 1970. Empty if that is no reply to TIME.
std::optional<std::int64_t> read_time(const reply& got) noexcept;

/// Whether the server will not have a command said this way, but may in another.
bool refuses_command(std::string_view error) noexcept;

/// Whether an error says that this server cannot serve locks at the moment (replica, loading, not
/// authenticated), so that it has to introduce itself again.
bool means_unfit(std::string_view error) noexcept;

} // namespace redlock::core
