// The keys of a pool's slots on the virtual masters.

#pragma once

#include "waiters.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace unit {

inline std::string slot_key(std::uint32_t number, const std::string& pool = "r") {
    return "p:{" + pool + "}:slot:" + std::to_string(number);
}

/// Somebody else's, for good.
inline void hold(virtual_quorum& it, std::uint32_t number) {
    for (virtual_master& server : it.masters) {
        server.keys[slot_key(number)] = {"somebody"};
    }
}

inline void let_go(virtual_quorum& it, std::uint32_t number) {
    for (virtual_master& server : it.masters) {
        server.keys.erase(slot_key(number));
    }
}

inline bool has_slot_key(virtual_quorum& it) {
    return std::ranges::any_of(it.masters, [&](const virtual_master& server) {
        return std::ranges::any_of(server.keys, [&](const auto& one) {
            return one.first.find(":slot:") != std::string::npos && one.second.expires > it.now();
        });
    });
}

} // namespace unit
