// The forms of a lock. A form determines the scripts and keys of a claim, and how its waiters
// queue. Votes, validity, deadlines, renewal and removal are the same for all.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlock::core {

enum class lock_form : std::uint8_t {
    exclusive, // one resource, one holder
    all,       // several resources, all of them or none on each master
    shared,    // one of the readers of a resource
    announced, // an attempt that announces that it waits for readers; once held it is exclusive
};
inline constexpr std::size_t lock_forms = 4;

/// The value of a lock's key while readers hold it, which is not a token (form_scripts.hpp).
inline constexpr std::string_view held_by_readers = "readers";

/// The announcement of a waiter that the current readers make wait. It excludes new readers.
struct exclusive_intent {
    std::chrono::milliseconds lease{}; // 0: new readers are admitted
    std::uint64_t name = 0;            // of the waiting acquire; 0: none
};

/// Appends `key` with its length, so that a claim can store several keys in one string.
inline void pack(std::string& out, std::string_view key) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        out += static_cast<char>(key.size() >> shift & 255U);
    }
    out += key;
}

/// Calls `f(key)` for each packed key, in order.
template <typename F>
void for_each_packed(std::string_view packed, F f) {
    while (!packed.empty()) {
        std::size_t size = 0;
        for (const char digit : packed.substr(0, 4)) {
            size = size << 8U | static_cast<unsigned char>(digit);
        }
        f(packed.substr(4, size));
        packed.remove_prefix(4 + size);
    }
}

} // namespace redlock::core
