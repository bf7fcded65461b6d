// The queries of callers in flight: sends their commands, and reports their results.

#pragma once

#include "core/base/timers.hpp"
#include "core/base/validity.hpp"
#include "core/bytes/command.hpp"
#include "core/bytes/resp.hpp"
#include "core/locks/wire.hpp"
#include "core/masters/masters.hpp"
#include "core/masters/settings.hpp"
#include "engine_callbacks.hpp"

#include <redlock/diagnostics.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::core {

/// A query of the owner of a lock, by GET and PTTL, or of those of the slots of a pool, by MGET, on
/// every connected master; then GET of its memory record (guarded), and a verdict. Where readers
/// hold a lock, they are counted. Sends nothing itself.
class query {
public:
    handle<query> self;
    timer wake{.owner = timer_owner::query};
    std::uint64_t cookie = 0; // identifies it for the host
    lock_status result;
    std::string fence_key; // the key of the readers is next to it

    /// `slots`: those of the pool; 0: it is a lock.
    void begin(std::size_t masters, std::uint32_t slots = 0) {
        result.masters.resize(masters);
        result.slots.resize(slots);
        owners_.assign(masters, std::vector<std::optional<std::string>>(std::max(slots, 1U)));
        awaited_.assign(masters, 0);
    }
    /// That many commands were sent to a master.
    void asked(std::size_t master, unsigned commands) noexcept { awaited_[master] += commands; }
    /// `no_vote`: why the master may not vote now; empty if it may. Such a master may have lost the
    /// key, so it does not show that the lock is free.
    void answered(
        std::size_t master, command_kind kind, const reply& answer, std::string_view no_vote = {});
    /// The owners of the slots from `first` on.
    void slots_answered(
        std::size_t master, std::uint32_t first, const reply& answer, bool may_vote = true);
    /// The record of its memory, read after the key. `kept`: it is that of the handshake, so the
    /// master has lost nothing.
    void certified(std::size_t master, bool kept);
    /// The connection broke before the reply to one of them.
    void dropped(std::size_t master, std::string_view why);
    /// Whether all replies are there.
    bool complete() const noexcept {
        return std::ranges::all_of(awaited_, [](unsigned one) { return one == 0; });
    }
    /// Decides by the replies so far. Only those of `members` count; other masters have no vote.
    void decide(master_set members, std::size_t quorum);

    void reset() {
        result = {};
        may_vote_ = 0;
    }

private:
    void decide_slots(master_set members, std::size_t quorum);

    /// By master and slot, the tokens that were found; empty where a master did not reply.
    std::vector<std::vector<std::optional<std::string>>> owners_;
    std::vector<unsigned> awaited_; // replies, by master
    master_set may_vote_ = 0;       // of a pool, when they replied: the others may have lost keys
};

class queries : receiver {
public:
    queries(
        const settings& rules,
        masters& masters,
        wire& wire,
        timers& timers,
        engine_callbacks& host) noexcept
        : rules_(rules),
          masters_(masters),
          wire_(wire),
          timers_(timers),
          host_(host) {}

    /// Asks every connected master for the owner of a lock, or of the slots of a pool.
    void ask(std::uint64_t cookie, std::string_view name, std::uint32_t slots, time_point now);
    /// The time of a query is up: reports what is known.
    void due(std::uint32_t index);
    /// Reports what is known to all callers.
    void end_all();

private:
    void replied(const arrival& at, const reply* answer) override;
    void end(query& asked);

    const settings& rules_;
    masters& masters_;
    wire& wire_;
    timers& timers_;
    engine_callbacks& host_;
    pool<query> queries_;
};

} // namespace redlock::core
