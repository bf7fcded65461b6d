// The key of a claim or a wait queue: that of one lock, or of several, packed (form.hpp): lock key
// and fencing counter key of each in turn.

#pragma once

#include "form.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redlock::core {

/// Makes the key for several resources.
void assign_keys_of(
    std::string& out, std::string_view prefix, std::span<const std::string> resources);
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
