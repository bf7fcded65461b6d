// A scan of the slots of a pool: which of them are free on a majority of the masters, or which
// owners they have. For an acquire it is a filter before attempts, not a part of a vote: its result
// may be outdated at once. Sends nothing itself.

#pragma once

#include "claim_record.hpp"
#include "command.hpp"
#include "resp.hpp"
#include "slot_map.hpp"
#include "slot_tally.hpp"
#include "timers.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

class slot_scan {
public:
    /// Slots per command. Such a command blocks a master for about 1 ms.
    static constexpr std::uint32_t slots_per_command = 512;

    handle self;
    timer wake;
    std::uint64_t cookie = 0; // identifies a status query for the host
    handle operation;         // of the acquire; none for a status query
    std::string key;          // of the pool
    slot_tally found;
    ballots votes;

    /// `with_owners`: for the status of the pool.
    void begin(
        std::size_t masters,
        std::size_t quorum,
        std::uint32_t slots,
        std::uint32_t wanted,
        bool with_owners);
    std::uint32_t slots() const noexcept { return slots_; }
    bool wants_owners() const noexcept { return !owners_.empty(); }

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

    /// A reply to one of them. `native`: it has the owners; otherwise it is that of the script.
    void answered(
        std::size_t master,
        unsigned command,
        bool native,
        const reply& got,
        std::chrono::milliseconds max_ttl);
    /// The connection broke before the reply.
    void dropped(std::size_t master, std::string_view why);
    /// Whether no further reply is needed.
    bool decided() const noexcept { return wants_owners() ? found.over() : found.decided(); }

    /// Completes the votes for the diagnostics of an acquire that found no slot to try.
    void explain();
    pool_status status(std::size_t quorum) const;

    void reset() {
        operation = {};
        owners_.clear();
        votes.clear_texts();
    }

private:
    void failed(std::size_t master, vote what, std::string_view why);

    std::uint32_t slots_ = 0;
    /// By master and slot: empty where a master did not report it.
    std::vector<std::vector<std::optional<std::string>>> owners_;
};

} // namespace redlock::core
