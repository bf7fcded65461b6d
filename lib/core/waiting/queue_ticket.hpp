// The ticket of a wait queue in the fair queue that one master keeps for a lock (`fairness::fifo`).
// It only orders attempts. The votes of a majority decide.

#pragma once

#include "core/locks/ballots.hpp"
#include "core/masters/settings.hpp"

#include <redlock/options.hpp>

#include <string>

namespace redlock::core {

struct queue_ticket {
    std::string waiter;                // its name there; empty: none yet
    std::size_t queue_master = nobody; // the master that keeps the queue
    std::uint16_t epoch = 0;           // identifies the latest request
    bool first = false;                // according to the last reply
    bool again = false;                // notified while a request was in flight
    time_point renewed = never;        // the last request with a reply
    time_point refused_until = never;  // no master keeps a queue

    /// Whether the front has to request its turn.
    bool wanted(const acquire_options& options, time_point now) const noexcept {
        return options.order == fairness::fifo && now >= refused_until;
    }
    /// The request is sent.
    void ask(std::size_t master) noexcept {
        queue_master = master;
        again = false;
        ++epoch;
    }
    /// The master has the ticket. `is_first`: no other comes before.
    void answered(bool is_first, time_point sent) noexcept {
        renewed = sent;
        first = is_first;
    }
    /// The master keeps no queue, for example without permission. It is asked again at `until`.
    void refused(time_point until) noexcept {
        queue_master = nobody;
        first = false;
        refused_until = until;
    }
    /// The ticket was used, or is not needed any more.
    void leave() noexcept {
        const time_point until = refused_until;
        reset();
        refused_until = until;
    }
    /// Returns when to renew the ticket.
    time_point keep_by(const settings& rules, time_point soon) const noexcept {
        if (queue_master == nobody) {
            return forever;
        }
        return renewed == never ? soon : std::max(soon, later(renewed, rules.ticket_lease() / 4));
    }
    /// Whether a lease may be handed off locally to `next`: no other process is first in the fair
    /// queue.
    bool allows(const acquire_options& next, const settings& rules, time_point now) const noexcept {
        return next.order != fairness::fifo
               || (first && now < later(renewed, rules.ticket_lease()));
    }

    void reset() {
        waiter.clear();
        queue_master = nobody;
        ++epoch;
        first = again = false;
        renewed = refused_until = never;
    }
};

} // namespace redlock::core
