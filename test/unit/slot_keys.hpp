// The keys of a pool's slots on the virtual masters.

#pragma once

#include "waiters.hpp"

namespace unit {

inline std::string slot_key(std::uint32_t number, const std::string& pool = "r") {
    return "p:{" + pool + "}:slot:" + std::to_string(number);
}

/// Somebody else's, for good.
inline void hold(virtual_quorum& it, std::uint32_t number) {
    for (virtual_master& server : it.masters) {
        server.put(slot_key(number), "somebody");
    }
}

inline void let_go(virtual_quorum& it, std::uint32_t number) {
    for (virtual_master& server : it.masters) {
        server.drop(slot_key(number));
    }
}

inline bool has_slot_key(virtual_quorum& it) {
    return std::ranges::any_of(it.masters, [&](const virtual_master& server) {
        return std::ranges::any_of(server.data.entries(), [&](const auto& one) {
            return one.key.find(":slot:") != std::string::npos
                   && server.expires(one.key) > it.now();
        });
    });
}

} // namespace unit
