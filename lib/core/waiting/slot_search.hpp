// The search of one acquire for free slots of a pool: a source of slots to try. A scan shows which
// are free on a majority of the masters. Some of them are tried one after the other, and after too
// many refusals the acquire waits. A scan may be outdated at once: the votes decide.

#pragma once

#include "core/base/backoff.hpp"
#include "core/base/pool.hpp"
#include "core/bytes/resp.hpp"
#include "core/locks/ballots.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

struct acquire_call;

/// A scan of the slots of a pool: which of them are free on a majority of the masters. It is a
/// filter before attempts, not a part of a vote: its result may be outdated at once. Sends nothing
/// itself.
class slot_scan {
public:
    /// Slots per command. Such a command blocks a master for about 1 ms.
    static constexpr std::uint32_t slots_per_command = 512;

    handle<slot_scan> self;
    handle<acquire_call> asked_by;
    std::string key; // of the pool
    ballots votes;

    void begin(std::size_t masters, std::size_t quorum, std::uint32_t slots, std::uint32_t wanted);

    /// \name The commands to one master, numbered from 0
    /// \{
    unsigned commands() const noexcept {
        return (slots_ + slots_per_command - 1) / slots_per_command;
    }
    static std::uint32_t first_of(unsigned command) noexcept { return command * slots_per_command; }
    std::uint32_t count_of(unsigned command) const noexcept {
        return std::min(slots_per_command, slots_ - first_of(command));
    }
    /// \}

    /// They are sent to one more master.
    void asked(std::size_t master) noexcept { masters_[master] = {commands(), 0, true}; }

    /// A reply to one of them, of MGET or of the script.
    void answered(
        std::size_t master, unsigned command, const reply& got, std::chrono::milliseconds max_ttl);
    /// The connection broke before the reply, or the reply is invalid.
    void failed(std::size_t master, vote what, std::string_view why);
    /// Nothing is sent to the master: its vote.
    void not_asked(std::size_t master, vote instead) { votes.of[master].said = instead; }
    /// No reply is outstanding.
    bool over() const noexcept { return std::ranges::none_of(masters_, &part::awaited); }
    /// Number of masters that have reported all slots.
    std::size_t complete() const noexcept;
    /// Whether no further reply is needed: all have arrived, or a majority has reported all slots
    /// and enough are free.
    bool decided() const noexcept {
        return over() || (complete() >= quorum_ && found() >= wanted_);
    }
    /// Number of slots that are free on a majority.
    std::size_t found() const noexcept;
    /// Selects at most `most` of them, in random order, so that clients that look at the same
    /// moment seldom try the same one.
    void choose(std::size_t most, jitter& random, std::vector<std::uint32_t>& out) const;

    /// Completes the votes for the diagnostics of an acquire that found no slot to try.
    void explain();

    void reset() {
        asked_by = {};
        votes.clear_texts();
    }

private:
    struct part {
        unsigned awaited = 0;
        std::size_t free = 0; // slots on this master
        bool valid = false;   // was asked, and no reply is missing or invalid
    };

    std::uint32_t slots_ = 0;
    std::size_t quorum_ = 0;
    std::size_t wanted_ = 1;
    std::vector<part> masters_;
    std::vector<std::uint8_t> free_; // by slot: number of masters that report it free
};

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
    bool scanned(const slot_scan& found, jitter& random) {
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

    handle<slot_scan> scan; // under way

private:
    std::uint32_t slots_;
    std::uint32_t wants_;
    unsigned refused_ = 0; // since it was last stopped
    std::vector<std::uint32_t> candidates_;
};

} // namespace redlock::core
