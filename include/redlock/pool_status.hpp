// How the slots of a pool stand: what `slot_pool::async_status` tells.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/version.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// One slot.
struct slot_status {
    lock_state state = lock_state::undecided; ///< free, held, or no majority says either
    /// Tells owners apart without giving their tokens away, as in `lock_status`; empty unless the
    /// slot is held.
    std::string owner;
};

/// All of them, as a majority of the masters said. Out of date when it arrives.
struct pool_status {
    std::vector<slot_status> slots; ///< by number
    std::size_t answered = 0;       ///< masters that told of all slots
    std::size_t quorum = 0;         ///< so many have to, or slots stay undecided

    /// Slots that somebody has.
    std::size_t held() const noexcept { return count(lock_state::held); }
    /// Slots that nobody has.
    std::size_t free() const noexcept { return count(lock_state::free); }
    /// Slots in this state.
    std::size_t count(lock_state state) const noexcept {
        return static_cast<std::size_t>(
            std::count_if(slots.begin(), slots.end(), [state](const slot_status& one) {
                return one.state == state;
            }));
    }
};

}} // namespace redlock::REDLOCK_ABI
