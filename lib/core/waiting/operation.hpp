// An acquire of a caller, with all its attempts.

#pragma once

#include "slot_search.hpp"
#include "wait_queue.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace redlock::core {

/// One acquire.
struct operation : waiter {
    handle self;
    std::uint64_t cookie = 0; // identifies the operation for the host
    bool default_ttl = false; // its ttl is shortened to the quorum's max_ttl
    lock_form form = lock_form::exclusive;
    unsigned attempts = 0;
    std::string
        key; // of its claims; for slots the pool's; empty while it is queued, but not at the front
    time_point decided_at = never;
    handle attempt;           // the claim of the last attempt
    std::uint64_t intent = 0; // a waiting writer's intent, perhaps on the masters; 0: none
    std::unique_ptr<slot_search> search; // for any slot of a pool; null: a lock is wanted

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
        return limit > drift.of(limit) + options.stop_margin + options.min_validity;
    }

    void reset() {
        form = lock_form::exclusive;
        last.clear();
        search.reset();
        slots = 0;
        wants = 1;
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
