// Counts which slots of a pool are free on a majority, and selects those to try.

#pragma once

#include "backoff.hpp"

#include <redlock/pool_status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace redlock::core {

/// Counts the replies to one scan.
class slot_tally {
public:
    void
    reset(std::size_t masters, std::size_t quorum, std::uint32_t slots, std::uint32_t wanted = 1);

    /// \name One master
    /// \{
    /// Adds `answers` outstanding replies of a master.
    void asked(std::size_t master, unsigned answers) noexcept {
        masters_[master] = {answers, 0, true};
    }
    /// A reply for some slots: '1' for a free one, any other character for a held one.
    void told(std::size_t master, std::uint32_t first, std::string_view free);
    /// A reply is missing or invalid.
    void failed(std::size_t master) noexcept {
        --masters_[master].awaited;
        masters_[master].valid = false;
    }
    /// \}

    /// Number of masters that have reported all slots.
    std::size_t complete() const noexcept;
    /// No reply is outstanding.
    bool over() const noexcept { return std::ranges::none_of(masters_, &part::awaited); }
    /// Whether no further reply is needed: all have arrived, or a majority has reported all slots
    /// and enough are free.
    bool decided() const noexcept {
        return over() || (complete() >= quorum_ && found() >= wanted_);
    }

    /// Number of slots that are free on a majority.
    std::size_t found() const noexcept;
    /// Whether a reply of this master is outstanding.
    bool owes(std::size_t master) const noexcept { return masters_[master].awaited > 0; }
    /// Number of slots that are free on this master.
    std::size_t free_on(std::size_t master) const noexcept { return masters_[master].free; }
    /// Selects at most `most` of them, in random order, so that clients that look at the same
    /// moment seldom try the same one.
    void choose(std::size_t most, jitter& random, std::vector<std::uint32_t>& out) const;

private:
    struct part {
        unsigned awaited = 0;
        std::size_t free = 0;
        bool valid = false; // was asked, and no reply is missing or invalid
    };

    std::size_t quorum_ = 0;
    std::size_t wanted_ = 1;
    std::vector<part> masters_;
    std::vector<std::uint8_t> free_; // by slot: number of masters that report it free
};

/// The owner of a slot, from the tokens that the masters reported for it, empty ones for a free
/// slot. A master without a reply is left out.
slot_status judge_slot(const std::vector<std::string_view>& tokens, std::size_t quorum);

} // namespace redlock::core
