// The status of a slot pool: the result of `lock_manager::async_query_slots`.

#pragma once

#include <redlock/diagnostics.hpp>
#include <redlock/version.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace redlock { inline namespace REDLOCK_ABI {

/// Status of one slot.
struct slot_status {
    lock_state state = lock_state::undecided; ///< free, held, or undecided without a majority
    /// Digest of the owner's token, as in `lock_status`: distinguishes owners without revealing
    /// their tokens. Empty unless the slot is held.
    std::string owner;
};

/// Status of all slots on a majority of the masters. It may be out of date when it arrives.
struct pool_status {
    std::vector<slot_status> slots; ///< all slots, by number
    std::size_t answered = 0;       ///< number of masters that reported all slots
    /// Number of such masters needed; with fewer, slots are undecided.
    std::size_t quorum = 0;

    /// Returns the number of held slots.
    std::size_t held() const noexcept { return count(lock_state::held); }
    /// Returns the number of free slots.
    std::size_t free() const noexcept { return count(lock_state::free); }
    /// Returns the number of slots in this state.
    std::size_t count(lock_state state) const noexcept {
        return static_cast<std::size_t>(
            std::count_if(slots.begin(), slots.end(), [state](const slot_status& one) {
                return one.state == state;
            }));
    }
};

}} // namespace redlock::REDLOCK_ABI
