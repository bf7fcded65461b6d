// The place of a wait queue in the fair queue: the queue of queues that one master keeps for a lock
// (`fairness::fifo`). A filter in front of attempts, never a permission: the votes of a majority
// decide as always.

#pragma once

#include "claim_record.hpp"
#include "settings.hpp"

#include <redlock/options.hpp>

#include <string>

namespace redlock::core {

struct queue_place {
    std::string waiter;               // its name there; empty: none was drawn
    std::size_t keeper = nobody;      // the master that was asked for it
    std::uint16_t round = 0;          // answers to an older question are told from the latest's
    bool first = false;               // as the last answer had it
    bool again = false;               // there was news while the question was under way
    time_point renewed = never;       // the last question that was answered
    time_point refused_until = never; // no queue is to be had

    /// Whether the front has to ask for its turn.
    bool wanted(const acquire_options& options, time_point now) const noexcept {
        return options.order == fairness::fifo && now >= refused_until;
    }
    /// The master is asked.
    void ask(std::size_t master) noexcept {
        keeper = master;
        again = false;
        ++round;
    }
    /// It knows the place. `is_first`: nobody else comes before.
    void answered(bool is_first, time_point sent) noexcept {
        renewed = sent;
        first = is_first;
    }
    /// It keeps no queue, and is asked again from then on: what it lacks may be given to it.
    void refused(time_point until) noexcept {
        keeper = nobody;
        first = false;
        refused_until = until;
    }
    /// The place was used, or nobody wants it any more.
    void leave() noexcept {
        const time_point until = refused_until;
        reset();
        refused_until = until;
    }
    /// When to ask again so as to keep the place: also after an attempt.
    time_point keep_by(const settings& rules, time_point soon) const noexcept {
        if (keeper == nobody) {
            return forever;
        }
        return renewed == never ? soon : std::max(soon, later(renewed, rules.place_lease() / 4));
    }
    /// Whether a lease may pass to `next` within the process: nobody elsewhere is before it.
    bool allows(const acquire_options& next, const settings& rules, time_point now) const noexcept {
        return next.order != fairness::fifo || (first && now < later(renewed, rules.place_lease()));
    }

    void reset() {
        waiter.clear();
        keeper = nobody;
        ++round;
        first = again = false;
        renewed = refused_until = never;
    }
};

} // namespace redlock::core
