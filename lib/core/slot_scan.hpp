// A scan of the slots of a pool: which of them are free on a majority of the masters. It is a
// filter before attempts, not a part of a vote: its result may be outdated at once.

#pragma once

#include "claim.hpp"
#include "slot_map.hpp"
#include "slot_tally.hpp"
#include "timers.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redlock::core {

/// Slots per command. Such a command blocks a master for about 1 ms.
inline constexpr std::uint32_t slots_per_command = 512;

/// One scan: for an acquire, or for the status of a pool.
struct slot_scan {
    handle self;
    timer wake;
    std::uint64_t cookie = 0; // identifies a status query for the host
    handle operation;         // of the acquire
    std::string key;          // of the pool
    std::uint32_t slots = 0;
    slot_tally found;
    ballots votes;
    /// By master and slot, for the status: empty where a master did not report it.
    std::vector<std::vector<std::optional<std::string>>> owners;

    void reset() {
        operation = {};
        owners.clear();
        votes.texts.clear();
    }
};

} // namespace redlock::core
