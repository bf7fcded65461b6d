// Formats the commands of both protocols.
//
// Plain: compare-and-delete has three variants; the best one that the server supports is used: a
// native command (Valkey 9: DELIFEQ, Redis 8.4: DELEX), EVALSHA, EVAL. Two to compare and extend:
// SET with IFEQ (Valkey 8.1, Redis 8.4), or the script in the same two variants. A native command
// does not distinguish a missing key from another owner's; an EXISTS after it does. Guarded:
// scripts only.

#pragma once

#include "append_command.hpp"
#include "form.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::core {

enum class command_kind : std::uint8_t {
    authenticate,  // AUTH
    select,        // SELECT
    name_client,   // CLIENT SETNAME
    publish,       // PUBLISH: a lock was released
    introduce,     // INFO
    handshake,     // guarded: the memory record
    ping,          // PING
    read_clock,    // TIME: PING and the clock (guarded)
    read_record,   // GET of the memory record, to notice that it has changed
    acquire,       // SET NX PX, or the script: the vote for an acquire
    raise,         // guarded: raise the fencing counter to the token
    remove,        // compare and delete
    remove_exists, // EXISTS after a native compare-and-delete that removed nothing
    extend,        // compare and extend
    heal,          // guarded: create the key that an extension found missing
    extend_exists, // EXISTS after a native compare-and-extend that extended nothing
    get,           // GET, for a query
    pttl,          // PTTL, for a query
    lease_left,    // PTTL, for a waiter whose SET was refused
    take_turn,     // a ticket of the fair queue
    leave_queue,   // give up the ticket
    scan_slots,    // free slots of a pool
};

/// The variants of a command.
enum class command_variant : std::uint8_t { native, evalsha, eval };

/// The native compare-and-delete of a server.
enum class native_delete : std::uint8_t { none, delifeq, delex };

/// Whether a command for a lock of that form needs a script of its own.
constexpr bool has_own_script(lock_form form, command_kind kind) noexcept {
    // A reader has no fencing token, and a writer's is raised like that of a lock.
    return form == lock_form::all || (form != lock_form::exclusive && kind != command_kind::raise);
}

/// Length of the part of a token that identifies its release for waiters.
inline constexpr std::size_t release_name_size = 16;

/// The command variants that the server supports: chosen from INFO, and reduced when the server
/// refuses one.
struct server_capabilities {
    native_delete delete_command = native_delete::none;
    bool set_ifeq = false;
    bool evalsha = true;
    // Whether the server is known to have the script; else EVAL is sent. A removal must work even
    // if this client is gone when NOSCRIPT would arrive.
    bool knows_raise = false;
    bool knows_remove = false;
    bool knows_extend = false;
    bool knows_heal = false;
    bool knows_turn = false;
    bool knows_leave = false;
    std::uint32_t knows_forms = 0; // one bit per script of the other forms
    bool knows_batch[3] = {};      // acquire, remove, extend of several locks

    /// The variant of a command of the exclusive form.
    command_variant raise() const noexcept { return script(knows_raise); }
    command_variant remove() const noexcept {
        return delete_command != native_delete::none ? command_variant::native : remove_script();
    }
    command_variant extend() const noexcept {
        return set_ifeq ? command_variant::native : extend_script();
    }
    command_variant remove_script() const noexcept { return script(knows_remove); }
    command_variant extend_script() const noexcept { return script(knows_extend); }
    command_variant heal() const noexcept { return script(knows_heal); }
    command_variant turn() const noexcept { return script(knows_turn); }
    command_variant leave() const noexcept { return script(knows_leave); }
    /// The variant of a command of any form: `kind` is acquire, raise, remove, extend or heal. For
    /// exclusive locks in shared calls use `of_batch`.
    command_variant of(lock_form form, command_kind kind) const noexcept {
        if (has_own_script(form, kind)) {
            return script((knows_forms & bit_of(form, kind)) != 0);
        }
        return kind == command_kind::raise    ? raise()
               : kind == command_kind::remove ? remove()
               : kind == command_kind::heal   ? heal()
                                              : extend();
    }
    /// The same for several locks in one call: `kind` is acquire, remove or extend.
    command_variant of_batch(command_kind kind) const noexcept {
        return script(knows_batch[batch(kind)]);
    }
    void learn_batch(command_kind kind, bool known) noexcept { knows_batch[batch(kind)] = known; }
    void learn(lock_form form, command_kind kind, bool known) noexcept {
        const std::uint32_t bit = bit_of(form, kind);
        knows_forms = known ? knows_forms | bit : knows_forms & ~bit;
    }

    friend bool operator==(const server_capabilities&, const server_capabilities&) = default;

private:
    static std::size_t batch(command_kind kind) noexcept {
        return kind == command_kind::acquire ? 0 : kind == command_kind::remove ? 1 : 2;
    }
    command_variant script(bool known) const noexcept {
        return evalsha && known ? command_variant::evalsha : command_variant::eval;
    }
    static std::uint32_t bit_of(lock_form form, command_kind kind) noexcept {
        const unsigned place = kind == command_kind::acquire  ? 0
                               : kind == command_kind::raise  ? 1
                               : kind == command_kind::remove ? 2
                               : kind == command_kind::heal   ? 3
                                                              : 4;
        return 1U << (5 * static_cast<unsigned>(form) + place);
    }
};

/// \name The plain protocol
/// \{
void append_set(
    std::string& out, std::string_view key, std::string_view token, std::chrono::milliseconds ttl);
/// With a `channel`, a script publishes the removal; after a native command `append_publish` does.
void append_remove(
    std::string& out,
    command_variant how,
    native_delete native,
    std::string_view key,
    std::string_view token,
    std::string_view channel);
/// Appends PUBLISH with the same message as the scripts: the first characters of the token.
void append_publish(std::string& out, std::string_view channel, std::string_view token);
void append_extend(
    std::string& out,
    command_variant how,
    std::string_view key,
    std::string_view token,
    std::chrono::milliseconds ttl);
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

/// The new fencing counter.
struct fence {
    std::uint64_t token = 0;         // 0: none yet, or without fencing
    std::chrono::milliseconds ttl{}; // 0: without fencing
};

/// `promoted_from` is the replication id that the server had as a replica; empty: none. If
/// `stepped`, the memory record is written anew, whatever it contains. `list` is a list of masters
/// with its state, and `on` the id that the record must have for it; both may be empty.
void append_handshake(
    std::string& out,
    std::string_view record,
    const master_guard& guard,
    std::string_view promoted_from,
    bool stepped,
    std::string_view id,
    std::string_view list = {},
    std::string_view on = {});
void append_raise(
    std::string& out, command_variant how, const lock_names& names, const fence& fencing);
/// Creates the key if it is missing.
void append_guarded_heal(
    std::string& out,
    command_variant how,
    const lock_names& names,
    const master_guard& guard,
    std::chrono::milliseconds ttl,
    const fence& fencing);
/// \}

/// \name The fair queue of a lock, in both protocols
/// \{
struct queue_names {
    std::string_view lock;
    std::string_view queue;
    std::string_view places;
    std::string_view waiter;
};

void append_turn(
    std::string& out,
    command_variant how,
    const queue_names& names,
    std::chrono::milliseconds place_lease);
/// An empty `channel` publishes nothing.
void append_leave(
    std::string& out, command_variant how, const queue_names& names, std::string_view channel);
/// \}

/// \name The slots of a pool, from `first` on
/// \{
/// Queries the owners of the slots. For both protocols.
void append_owners(
    std::string& out, std::string_view pool_key, std::uint32_t first, std::uint32_t count);
/// Queries which slots are free, and when the first lease of the held ones ends.
void append_slot_scan(
    std::string& out, std::string_view pool_key, std::uint32_t first, std::uint32_t count);
/// \}

} // namespace redlock::core
