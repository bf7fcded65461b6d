// The search of one acquire for free slots of a pool: a source of slots to try. A scan shows which
// are free on a majority of the masters. Some of them are tried one after the other, and after too
// many refusals the acquire waits. A scan may be outdated at once: the votes decide.

#pragma once

#include "slot_map.hpp"
#include "slot_tally.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace redlock::core {

class slot_search {
public:
    /// Maximum number of refused attempts before the acquire pauses or fails.
    static constexpr unsigned tries_max = 8;

    slot_search(std::uint32_t slots, std::uint32_t wants) noexcept : slots_(slots), wants_(wants) {}

    /// Slots of the pool.
    std::uint32_t slots() const noexcept { return slots_; }
    /// Number of them that are wanted, all or none.
    std::uint32_t wants() const noexcept { return wants_; }

    /// Whether there are slots to try; else a scan is needed.
    bool has_next() const noexcept { return candidates_.size() >= wants_; }
    /// Moves the slots of the next attempt to `out`, in order.
    void next(std::vector<std::uint32_t>& out) {
        const auto first = candidates_.end() - static_cast<std::ptrdiff_t>(wants_);
        out.assign(first, candidates_.end());
        candidates_.erase(first, candidates_.end());
        std::ranges::sort(out);
    }
    /// A scan has ended. Returns false if it found nothing to try.
    bool scanned(const slot_tally& found, jitter& random) {
        const std::size_t tries = tries_max - std::min(refused_, tries_max);
        found.choose(tries * wants_, random, candidates_);
        return has_next();
    }
    /// Counts an attempt that lost its slot. Returns false if the acquire must pause.
    bool refused() noexcept { return ++refused_ < tries_max; }
    /// Drops the remaining candidates, because the acquire pauses.
    void stop() noexcept {
        candidates_.clear();
        refused_ = 0;
    }
    /// Takes over the untried candidates of another search of the same pool.
    void take_over(slot_search& served) noexcept {
        if (slots_ >= served.slots_) {
            candidates_.swap(served.candidates_);
        }
    }

    handle scan; // under way

private:
    std::uint32_t slots_;
    std::uint32_t wants_;
    unsigned refused_ = 0; // since it was last stopped
    std::vector<std::uint32_t> candidates_;
};

} // namespace redlock::core
