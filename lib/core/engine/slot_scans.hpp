// The scans of slot pools in flight: sends their commands, one to each master for
// 512 slots, all in one round trip. A scan of an acquire is returned to its owner once it is
// decided; the status of a pool is reported to the caller who asked for it.

#pragma once

#include "core/bytes/command.hpp"
#include "core/bytes/resp.hpp"
#include "core/locks/ballots.hpp"
#include "core/waiting/acquire_call.hpp"
#include "engine_callbacks.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

/// A scan of the slots of a pool: which of them are free on a majority of the masters, or which
/// owners they have. For an acquire it is a filter before attempts, not a part of a vote: its
/// result may be outdated at once. Sends nothing itself.
class slot_scan {
public:
    /// Slots per command. Such a command blocks a master for about 1 ms.
    static constexpr std::uint32_t slots_per_command = 512;

    handle<slot_scan> self;
    timer wake{.owner = timer_owner::slot_scan};
    std::uint64_t cookie = 0;      // identifies a status query for the host
    handle<acquire_call> asked_by; // the acquire; none for a status query
    std::string key;               // of the pool
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
        std::chrono::milliseconds max_ttl,
        bool may_vote = true);
    /// Of a status: the memory record, read after the slots. `kept`: the master has lost nothing.
    void certified(std::size_t master, bool kept);
    /// The connection broke before the reply.
    void dropped(std::size_t master, std::string_view why);
    /// Whether no further reply is needed.
    bool decided() const noexcept { return wants_owners() ? found.over() : found.decided(); }

    /// Completes the votes for the diagnostics of an acquire that found no slot to try.
    void explain();
    lock_status status(std::size_t quorum);

    void reset() {
        asked_by = {};
        may_vote_ = 0;
        owners_.clear();
        votes.clear_texts();
    }

private:
    void failed(std::size_t master, vote what, std::string_view why);

    std::uint32_t slots_ = 0;
    master_set may_vote_ = 0; // when they replied: the others may have lost keys
    /// By master and slot: empty where a master did not report it.
    std::vector<std::vector<std::optional<std::string>>> owners_;
};

class slot_scans : tools {
public:
    /// `replies`: receives them, and passes them to `answered`.
    slot_scans(const tools& with, receiver& replies) noexcept : tools(with), replies_(replies) {}

    /// \name Of an acquire, which sets the time limit and ends the scan
    /// \{
    /// The scan may be over at once, if too few masters can be asked.
    slot_scan& start(const acquire_call& wanted, time_point now);
    slot_scan* find(handle<slot_scan> name) noexcept { return scans_.find(name); }
    void end(slot_scan& done) { scans_.destroy(done); }
    /// \}

    /// \name The status of a pool
    /// \{
    void ask(std::uint64_t cookie, std::string_view pool, std::uint32_t slots, time_point now);
    /// The time of a query is up: reports what is known.
    void due(std::uint32_t index);
    /// Reports what is known to all callers.
    void end_all();
    /// \}

    /// The reply to one command; null if the connection broke before. Returns the scan of an
    /// acquire if that decides it.
    slot_scan* answered(const arrival& at, const reply* answer);

private:
    slot_scan&
    create(std::string_view pool_key, std::uint32_t slots, std::uint32_t wanted, bool with_owners);
    void ask_masters(slot_scan& asking, time_point now);
    void send(const slot_scan& asking, std::size_t master, unsigned command, time_point now);
    void report(slot_scan& done);

    receiver& replies_;
    pool<slot_scan> scans_;
};

} // namespace redlock::core
