// Formats the commands of both protocols.
//
// What compares is a script, in two variants: EVALSHA, or EVAL until the server is known to have
// the script. A server that refuses scripts does not vote.

#pragma once

#include "append_command.hpp"
#include "form.hpp"
#include "scripts.hpp"

#include <bitset>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::core {

enum class command_kind : std::uint8_t {
    authenticate,  // AUTH
    select,        // SELECT
    name_client,   // CLIENT SETNAME
    publish,       // PUBLISH: a lock was released
    introduce,     // INFO
    try_script,    // plain: EVAL, to find out whether scripts are allowed
    handshake,     // guarded: the memory record
    ping,          // PING
    read_clock,    // TIME: PING and the clock (guarded)
    read_record,   // GET of the memory record, to notice that it has changed
    acquire,       // SET NX PX, or the script: the vote for an acquire
    raise,         // guarded: raise the fencing counter to the token
    remove,        // compare and delete
    extend,        // compare and extend
    heal,          // guarded: create the key that an extension found missing
    get,           // GET of a lock, for a query or a waiter
    pttl,          // PTTL of a lock, for them
    count_readers, // ZCARD of a lock's readers, for a query
    take_ticket,   // a ticket of the fair queue
    leave_queue,   // give up the ticket
    scan_slots,    // free slots of a pool
    subscribe,     // SUBSCRIBE to the channel of a lock
    unsubscribe,   // UNSUBSCRIBE
};

/// The variants of a command. Native: no script, as a SET or an MGET.
enum class command_variant : std::uint8_t { native, evalsha, eval };

/// Whether a command for a lock of that form needs a script of its own.
constexpr bool has_own_script(lock_form form, command_kind kind) noexcept {
    if (form == lock_form::announced) {
        return kind == command_kind::acquire || kind == command_kind::remove;
    }
    // A reader has no fencing token.
    return form == lock_form::all || (form == lock_form::shared && kind != command_kind::raise);
}

/// Length of the part of a token that identifies its release for waiters.
inline constexpr std::size_t release_name_size = 16;

/// The scripts that a server has, and whether it accepts them by their digest.
struct server_capabilities {
    bool evalsha = true;

    /// The variant of a script. `in_frame`: for several exclusive locks in one call. A script is
    /// sent whole unless the server is known to have it: a removal must work even if this client is
    /// gone when NOSCRIPT would arrive.
    command_variant of(lock_form form, command_kind kind, bool in_frame = false) const noexcept {
        return evalsha && known_[place(form, kind, in_frame)] ? command_variant::evalsha
                                                              : command_variant::eval;
    }
    void learn(lock_form form, command_kind kind, bool in_frame, bool known) {
        known_[place(form, kind, in_frame)] = known;
    }

    friend bool operator==(const server_capabilities&, const server_capabilities&) = default;

private:
    static constexpr std::size_t row = 32; // more than there are kinds

    static std::size_t place(lock_form form, command_kind kind, bool in_frame) noexcept {
        const lock_form of = has_own_script(form, kind) ? form : lock_form::exclusive;
        return row * (in_frame ? lock_forms : static_cast<std::size_t>(of))
               + static_cast<std::size_t>(kind);
    }

    std::bitset<row*(lock_forms + 1)> known_; // the scripts that the server has
};

/// \name The plain protocol
/// \{
/// A SET is its begin, the key and the token as arguments, and its end.
std::string_view set_begin() noexcept;
std::string set_end(std::chrono::milliseconds ttl);
/// Appends PUBLISH with the same message as the scripts: the first characters of the token.
void append_publish(std::string& out, std::string_view channel, std::string_view token);
/// \}

/// \name The guarded protocol
/// \{

/// The lock and the token that a script works on.
struct lock_names {
    std::string_view lock;
    std::string_view fence;
    std::string_view record;
    std::string_view token;
};

/// What a script checks of its master before it changes anything.
struct master_guard {
    std::string_view run_id; // the second word of the memory record
    std::chrono::microseconds quarantine{};
    std::int64_t not_after_us = 0; // by the master's clock; 0: unknown, not checked
};

/// From what a missing fencing counter starts (lua::first_counter). 0: from the master's clock.
struct first_counter {
    std::int64_t value_us = 0;
    std::int64_t earliest_us = 0; // of the clocks of the masters that accept it
};

/// The new fencing counter.
struct fence {
    std::uint64_t token = 0;         // 0: none yet, or without fencing
    std::chrono::milliseconds ttl{}; // 0: without fencing
    first_counter first = {};        // of an acquire
};
/// \}

/// A command for a lock of any form, in the guarded protocol: a script of that form, its keys and
/// its arguments. An exclusive lock shares its calls (frame.hpp), so that form is only raised and
/// healed here.
struct form_command {
    command_kind kind = command_kind::acquire; // or raise, extend, heal, remove
    lock_form form = lock_form::exclusive;
    command_variant how = command_variant::eval;
    /// For several resources `lock` is packed (form.hpp): the lock key and the key of the fencing
    /// counter of each.
    lock_names names = {};
    fence fencing = {};

    /// \name Not all kinds have these
    /// \{
    std::chrono::milliseconds ttl{}; // not raise, remove
    master_guard guard = {};         // not raise, remove
    std::string_view channel = {};   // where a removal or a downgrade is published; empty: nowhere
    exclusive_intent intent = {};    // announced by an acquire; its name: deleted by a removal
    /// \}
};

void append_form_command(std::string& out, const form_command& what);

/// A number as an argument.
class decimal {
public:
    template <typename Integer>
    explicit decimal(Integer value) noexcept
        : size_(static_cast<std::size_t>(
            std::to_chars(text_, text_ + sizeof text_, value).ptr - text_)) {}
    // NOLINTNEXTLINE(google-explicit-constructor): it is an argument like the others
    operator std::string_view() const noexcept { return {text_, size_}; }

private:
    char text_[24];
    std::size_t size_;
};

/// Reads a number that is all of a text. Returns false for any other text.
template <typename Number>
bool parse_number(std::string_view text, Number& out) noexcept {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    return failed == std::errc() && end == text.data() + text.size();
}

/// \name The two words that begin the call of a script
/// \{
inline std::string_view verb(command_variant how) noexcept {
    return how == command_variant::evalsha ? "EVALSHA" : "EVAL";
}
inline std::string_view body(command_variant how, const script& what) noexcept {
    return how == command_variant::evalsha ? what.sha1 : what.text;
}
/// \}

} // namespace redlock::core
