// The names of the keys and channels of a lock on a master.

#pragma once

#include "form.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

/// `prefix{resource}`. The braces keep all keys of a lock in one hash slot. The suffix after the
/// brace keeps them apart: a lock key has none. Without a prefix it is the bare name, on which
/// other Redlock clients can agree.
inline void assign_lock_key(std::string& out, std::string_view prefix, std::string_view resource) {
    out.assign(prefix);
    if (prefix.empty()) {
        out.append(resource);
    } else {
        out.append("{").append(resource).append("}");
    }
}

/// Returns the resource of a lock key, or the pool of a pool key.
inline std::string_view resource_of(std::string_view key, std::string_view prefix) noexcept {
    return prefix.empty() ? key : key.substr(prefix.size() + 1, key.rfind('}') - prefix.size() - 1);
}

/// The fencing counter of the lock.
inline void assign_fence_key(std::string& out, std::string_view prefix, std::string_view resource) {
    out.assign(prefix).append("{").append(resource).append("}:fence");
}

/// Returns the key next to `fence_key` with the suffix `what`: `readers` (by the end of their
/// leases) or `intent` (of a waiter that wants it alone).
inline std::string key_beside(std::string_view fence_key, std::string_view what) {
    return std::string(fence_key.substr(0, fence_key.rfind(':') + 1)).append(what);
}

/// The fair queue of the processes that want the lock, and the end of each ticket.
inline void assign_queue_key(std::string& out, std::string_view prefix, std::string_view resource) {
    out.assign(prefix).append("{").append(resource).append("}:queue");
}
inline void assign_tickets_key(std::string& out, std::string_view queue_key) {
    out.assign(queue_key).append(":until");
}

/// The prefix of the keys of all slots of a pool; not a key itself. A waiter for any slot waits
/// under this name. With a prefix, a lock key ends with a brace and no other key does, so names of
/// pools and locks never collide.
inline void assign_pool_key(std::string& out, std::string_view prefix, std::string_view pool) {
    out.assign(prefix).append("{").append(pool).append("}:slot");
}
/// One slot: a lock like any other, and its counter.
inline void assign_slot_key(std::string& out, std::string_view pool_key, std::uint32_t number) {
    out.assign(pool_key).append(":").append(std::to_string(number));
}
inline void assign_slot_fence_key(std::string& out, std::string_view slot_key) {
    out.assign(slot_key).append(":fence");
}

/// The channel for the release notifications of that lock. It is in the hash slot of the lock, and
/// not a key.
inline constexpr std::string_view channel_suffix = ":free";
inline void assign_channel(std::string& out, std::string_view lock_key) {
    out.assign(lock_key).append(channel_suffix);
}
inline std::string_view lock_of_channel(std::string_view channel) noexcept {
    return channel.substr(0, channel.rfind(':'));
}

/// The part of a key that determines its hash slot: the text in its first braces.
inline std::string_view hash_part(std::string_view key) noexcept {
    const std::size_t opens = key.find('{');
    const std::size_t closes =
        opens == std::string_view::npos ? std::string_view::npos : key.find('}', opens);
    return closes == std::string_view::npos || closes == opens + 1
               ? key
               : key.substr(opens + 1, closes - opens - 1);
}

/// The memory record of one master. `guarded_scripts.hpp` has its format.
inline std::string record_key(std::string_view prefix) {
    return std::string(prefix) + ":epoch";
}

/// Returns a memory record that lets a new, empty server vote at once: no lock of this quorum can
/// have been on it. `members` is the list of a quorum that is founded, as `written`; empty: none.
inline std::string
record_of_new_server(std::string_view run_id, std::string_view members = std::string_view()) {
    const std::string id = members.empty() ? "0" : std::string(32, '0');
    return "4 " + std::string(run_id) + " - 0 0 " + id + std::string(members);
}

// The key of a claim or a wait queue: that of one lock, or of several, packed (form.hpp): lock key
// and fencing counter key of each in turn.

/// Makes the key for several resources.
void assign_keys_of(
    std::string& out, std::string_view prefix, std::span<const std::string> resources);
/// The keys of that many slots of a pool, from `first` on.
std::vector<std::string>
slot_keys(std::string_view pool_key, std::uint32_t first, std::uint32_t count);
/// Makes the key for slots of a pool. Returns its form.
lock_form assign_slot_keys(
    std::string& out, std::string_view pool_key, std::span<const std::uint32_t> numbers);

/// Calls `f(lock key)` for each lock.
template <typename F>
void for_each_lock(lock_form form, std::string_view key, F f) {
    if (form != lock_form::all) {
        f(key);
        return;
    }
    bool is_lock = true;
    for_each_packed(key, [&](std::string_view one) {
        if (is_lock) {
            f(one);
        }
        is_lock = !is_lock;
    });
}

/// Returns the key in readable form.
std::string shown(lock_form form, std::string_view key, std::string_view prefix);

} // namespace redlock::core
