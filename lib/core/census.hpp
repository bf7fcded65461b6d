// What the masters have said of the slots of a pool: how many are free on a majority, and which of
// them to try.

#pragma once

#include "backoff.hpp"

#include <redlock/pool_status.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace redlock::core {

/// Counts the answers to one survey.
class census {
public:
    void
    reset(std::size_t masters, std::size_t quorum, std::uint32_t slots, std::uint32_t wanted = 1);

    /// \name One master
    /// \{
    /// It owes so many answers.
    void asked(std::size_t master, unsigned answers) noexcept;
    /// It has answered for some slots: '1' for a free one, each other character for a taken one.
    void told(std::size_t master, std::uint32_t first, std::string_view free);
    /// One of its answers did not come, or made no sense.
    void failed(std::size_t master) noexcept;
    /// \}

    /// How many masters have told of all slots.
    std::size_t complete() const noexcept { return complete_; }
    /// Nobody owes an answer any more.
    bool over() const noexcept { return awaited_ == 0; }
    /// Whether to go on without the answers that are still owed: a majority has told of all slots,
    /// and as many are free as are wanted.
    bool decided() const noexcept { return over() || (complete_ >= quorum_ && found_ >= wanted_); }

    /// How many slots are free on a majority.
    std::size_t found() const noexcept { return found_; }
    /// Whether it owes an answer, or has failed to give one.
    bool owes(std::size_t master) const noexcept { return masters_[master].awaited > 0; }
    /// How many are free on this master.
    std::size_t free_on(std::size_t master) const noexcept { return masters_[master].free; }
    /// Picks `most` of them at most, in any order, each as likely as the others: so that those who
    /// look at the same moment seldom want the same one.
    void choose(std::size_t most, jitter& random, std::vector<std::uint32_t>& out) const;

private:
    struct part {
        unsigned awaited = 0;
        std::size_t free = 0;
        bool failed = false;
    };
    void one_answer(part& from) noexcept;

    std::size_t quorum_ = 0;
    std::size_t wanted_ = 1;
    std::size_t complete_ = 0;
    std::size_t found_ = 0;
    unsigned awaited_ = 0;
    std::vector<part> masters_;
    std::vector<std::uint8_t> free_; // by slot: how many masters say so
};

/// Who has a slot, from the tokens that the masters gave for it, empty ones for a slot that is
/// free; a master that did not tell is left out.
slot_status judge_slot(const std::vector<std::string_view>& tokens, std::size_t quorum);

} // namespace redlock::core
