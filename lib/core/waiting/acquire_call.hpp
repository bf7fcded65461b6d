// An acquire of a caller, with all its attempts: what it wants, where it waits, what it has learnt.

#pragma once

#include "core/base/backoff.hpp"
#include "core/base/pool.hpp"
#include "core/base/timers.hpp"
#include "core/bytes/form.hpp"
#include "core/locks/ballots.hpp"
#include "core/locks/steps.hpp"
#include "slot_search.hpp"

#include <redlock/errc.hpp>
#include <redlock/options.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace redlock::core {

class claim;
class wait_queue;

struct acquire_call {
    enum class phase : std::uint8_t {
        queued,     // not at the front
        scanning,   // searches for free slots of a pool
        attempting, // an attempt is in flight
        ticketed,   // at the front, waits for the reply of the fair queue
        paused,     // before its first attempt or the next one
        finishing,  // failed: the rollback is being sent
    };

    handle<acquire_call> self;
    std::uint64_t cookie = 0; // identifies the call for the host

    /// \name What it wants
    /// \{
    acquire_options options;
    bool default_ttl = false; // its ttl is shortened to the quorum's max_ttl
    lock_form form = lock_form::exclusive;
    std::string key; // of its claims; for slots the pool's; empty while it is queued, but not at
                     // the front
    time_point began = never;
    time_point wait_until = forever;
    /// \}

    /// \name Where it is
    /// \{
    phase stage = phase::attempting;
    timer wake{.owner = timer_owner::acquire};
    wait_queue* queue = nullptr; // where it waits; null for an acquire that does not wait
    acquire_call* before = nullptr;
    acquire_call* behind = nullptr;
    handle<claim> attempt; // the last one
    unsigned attempts = 0;
    std::uint64_t intent = 0; // drawn when it meets readers, perhaps on the masters; 0: none
    std::unique_ptr<slot_search> search; // for any slot of a pool; null: a lock is wanted
    /// \}

    /// \name What it has learnt
    /// \{
    bool ask_arbiter = false; // the next attempt asks one master first
    bool hurried = false;     // its pause was shortened since it began
    bool unsure = false;      // its last attempt asked all, and the arbiter did not refuse it
    int splits = 0; // attempts in a row that got some of the votes, without a notification
    std::optional<errc> outcome; // of the last attempt; empty when cancelled
    ballots last;                // its votes
    backoff delay;
    time_point decided_at = never;
    /// \}

    /// Limits the ttl to that of the quorum, unless it is 0: not known yet. Returns false if the
    /// caller asked for more, or needs more.
    bool fit_ttl(std::chrono::milliseconds limit, drift_bound drift) noexcept {
        if (limit.count() == 0 || options.ttl <= limit) {
            return true;
        }
        if (!default_ttl) {
            return false;
        }
        options.ttl = limit;
        return limit > drift.of(limit) + chosen_margin_of(options) + options.min_validity;
    }

    /// What it wants of a claim.
    claim_terms terms() const noexcept {
        return {
            .fencing = options.fencing,
            .transferable = options.transferable,
            .ttl = options.ttl,
            .min_validity = options.min_validity,
            .patience = wait_until > began && !waits_out_others() ? wait_until : forever};
    }

    /// Whether its limit is one for outages.
    bool waits_out_others() const noexcept {
        return options.wait == wait_for::contention(options.wait);
    }

    /// Others hold the lock: begins a limit for outages again. Returns whether it is one.
    bool wait_again(time_point now) noexcept {
        const bool begins = waits_out_others() && wait_until > began;
        wait_until = begins ? later(now, options.wait.limit()) : wait_until;
        return begins;
    }

    void reset() {
        form = lock_form::exclusive;
        last.clear();
        search.reset();
        attempts = 0;
        attempt = {};
        queue = nullptr;
        before = behind = nullptr;
        ask_arbiter = false;
        intent = 0;
        outcome.reset();
        delay.reset();
        splits = 0;
    }
};

} // namespace redlock::core
