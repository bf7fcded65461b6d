// What is said to a master and what its answer means: formats commands, and turns replies into
// votes.
//
// Three ways to compare and delete, the best that the server has: a native command (Valkey 9:
// DELIFEQ, Redis 8.4: DELEX), EVALSHA, EVAL. Two to compare and extend: SET with IFEQ (Valkey 8.1,
// Redis 8.4), or the script in the same two forms. A native command cannot tell "not there" from
// "somebody else's"; EXISTS right behind it does.

#pragma once

#include "pool.hpp"
#include "resp.hpp"

#include <redlock/diagnostics.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::core {

enum class command_kind : std::uint8_t {
    authenticate,  // AUTH
    select,        // SELECT
    name_client,   // CLIENT SETNAME
    read_fsync,    // CONFIG GET appendfsync
    introduce,     // INFO
    ping,          // PING
    set,           // SET NX PX: the vote for an acquire
    remove,        // compare and delete
    remove_exists, // EXISTS after a native compare-and-delete that removed nothing
    extend,        // compare and extend
    extend_exists, // EXISTS after a native compare-and-extend that extended nothing
    get,           // GET, for a query
    pttl,          // PTTL, for a query
};

/// The way a command is said.
enum class rung : std::uint8_t { native, evalsha, eval };

/// The native compare-and-delete of a server.
enum class native_delete : std::uint8_t { none, delifeq, delex };

/// What a connection can say, chosen when it is introduced, and lowered when the server refuses.
struct ladder {
    native_delete delete_command = native_delete::none;
    bool set_ifeq = false;
    bool evalsha = true;
    // Whether this server is known to have the script. A removal must work when nobody is there any
    // more to hear NOSCRIPT and to say it again.
    bool knows_remove = false;
    bool knows_extend = false;

    rung remove() const noexcept {
        return delete_command != native_delete::none ? rung::native : remove_script();
    }
    rung extend() const noexcept { return set_ifeq ? rung::native : extend_script(); }
    rung remove_script() const noexcept {
        return evalsha && knows_remove ? rung::evalsha : rung::eval;
    }
    rung extend_script() const noexcept {
        return evalsha && knows_extend ? rung::evalsha : rung::eval;
    }

    friend bool operator==(const ladder&, const ladder&) = default;
};

void append_set(
    std::string& out, std::string_view key, std::string_view token, std::chrono::milliseconds ttl);
void append_remove(
    std::string& out, rung how, native_delete native, std::string_view key, std::string_view token);
void append_extend(
    std::string& out,
    rung how,
    std::string_view key,
    std::string_view token,
    std::chrono::milliseconds ttl);

/// The vote in a reply to SET.
vote vote_on_set(const reply& answer) noexcept;

/// What to make of a reply to a compare-and-delete or a compare-and-extend.
struct compared {
    vote said = vote::error;
    bool ask_exists = false; // native and nothing done: EXISTS tells why
    bool say_otherwise =
        false; // the server does not know, or does not allow, this way: say it in EVAL
};
compared compare_result(const reply& answer, rung how) noexcept;

/// The vote in a reply to EXISTS after a native command that did nothing.
vote vote_on_exists(const reply& answer) noexcept;

/// Whether an error says that this server cannot serve locks at the moment (replica, loading, not
/// authenticated), so that it has to introduce itself again.
bool means_unfit(std::string_view error) noexcept;

} // namespace redlock::core
