// A survey of the slots of a pool: which of them are free on a majority of the masters. It is a
// filter in front of attempts, and no part of a vote: what it says may be over when it is read.

#pragma once

#include "census.hpp"
#include "claim.hpp"
#include "pool.hpp"
#include "timers.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redlock::core {

/// So many slots are asked for in one command: it holds a master up for about a
/// millisecond.
inline constexpr std::uint32_t slots_per_command = 512;

/// One survey: for an acquire, or for whoever wants to know how the pool stands.
struct survey {
    handle self;
    timer wake;
    std::uint64_t cookie = 0; // names it to the host, where no acquire asked for it
    handle operation;         // the acquire that did
    std::string key;          // of the pool
    std::uint32_t slots = 0;
    census found;
    ballots votes;
    /// By master and slot, where somebody wants to know: empty for what it did not tell.
    std::vector<std::vector<std::optional<std::string>>> owners;

    void reset() {
        operation = {};
        owners.clear();
        votes.texts.clear();
    }
};

} // namespace redlock::core
