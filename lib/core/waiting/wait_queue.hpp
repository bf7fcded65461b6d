// The waiters of one resource in this process, in order of arrival. Only the front sends attempts;
// the others wait for their turn without a command to the masters.
//
// A wait queue decides what its waiters do next; the engine executes it. It has no access to
// masters or connections. `wait_view` passes in what it needs.
//
// - join, leave: a waiter arrives, or leaves from any place;
// - due: the pause of the front has ended; failed, refused: its attempt failed;
// - notified, released: a lock may be free, and the front may wake earlier;
// - hand: the next owner of a lease that is released in this process;
// - time_out: the end of a wait, and its result.
//
// Between processes there is no order, except on request: then a master keeps a fair queue, and
// `queue_ticket` is the state of the ticket there.

#pragma once

#include "acquire_call.hpp"
#include "core/base/backoff.hpp"
#include "core/base/timers.hpp"
#include "core/locks/ballots.hpp"
#include "core/masters/settings.hpp"

#include <redlock/errc.hpp>
#include <redlock/options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace redlock::core {

/// The ticket of a wait queue in the fair queue that one master keeps for a lock
/// (`acquire_options::fifo`). It only orders attempts. The votes of a majority decide.
struct queue_ticket {
    std::string waiter = {};           // its name there; empty: none yet
    std::size_t queue_master = nobody; // the master that keeps the queue
    std::uint16_t epoch = 0;           // identifies the latest request
    bool first = false;                // according to the last reply
    bool again = false;                // notified while a request was in flight
    time_point renewed = never;        // the last request with a reply
    time_point refused_until = never;  // no master keeps a queue

    /// Whether the front has to request its turn.
    bool wanted(const acquire_options& options, time_point now) const noexcept {
        return options.fifo && now >= refused_until;
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
    void leave() noexcept { reset(refused_until); }
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
        return !next.fifo || (first && now < later(renewed, rules.ticket_lease()));
    }

    void reset(time_point refused = never) noexcept {
        *this = {.epoch = static_cast<std::uint16_t>(epoch + 1), .refused_until = refused};
    }
};

/// What a queue needs of the quorum, at one moment.
struct wait_view {
    const settings& rules;
    time_point now;
    std::chrono::nanoseconds round_trip;  // of a majority; 0: unknown
    std::size_t arbiter;                  // the master that is asked first for this lock
    bool notified;                        // a majority publishes releases
    bool ready;                           // a majority may vote
    std::optional<time_point> held_until; // by a lease of this process, if any
    std::size_t majority;                 // the number of votes that is needed
    jitter& random;

    /// Minimum pause between two attempts.
    std::chrono::nanoseconds retry_floor() const noexcept {
        return std::max<std::chrono::nanoseconds>(rules.retry_delay_min, round_trip);
    }
    /// The next pause after a failure.
    std::chrono::nanoseconds next(backoff& delay) const noexcept {
        return delay.next(retry_floor(), rules.retry_delay_max, random);
    }
};

/// The next step of the front.
enum class next_step : std::uint8_t { ask, wait, time_out };

/// A released lease, with the data that decides on a local handoff.
struct offered_lease {
    time_point lasts_until; // when a majority of its votes ends
    std::chrono::milliseconds ttl{};
    bool fencing = false;
    bool transferable = false;       // no command of its acquire is executed late
    std::uint32_t slots = 0;         // of a pool; 0: it is a lock
    std::uint32_t highest = 0;       // their largest number
    time_point handed_since = never; // start of the local handoffs in a row; `never`: none
};

class wait_queue {
public:
    handle<wait_queue> self;
    lock_form form = lock_form::exclusive;
    std::string key;
    bool pool = false;               // whether its waiters want a slot
    bool watched = false;            // whether it is subscribed to release notifications
    handle<claim> holder;            // the lease of this process for which the queue waits, if any
    time_point handed_since = never; // the first of its local handoffs in a row
    time_point yields_until = never; // other processes go first, after a release of this one, until
                                     // it has asked again
    std::uint64_t others_first = 0;  // how many of them, less those that have released it since
    bool crowded = false; // several others waited at the last release, or one was faster since
    queue_ticket ticket;  // the ticket in the fair queue (`acquire_options::fifo`)
    polling polls;        // the attempts of the front
    bool lingers = false; // it is empty, and stays subscribed for its next waiter
    timer wake{.owner = timer_owner::wait_queue}; // the end of that, once the lock was released

    bool empty() const noexcept { return length_ == 0; }
    std::size_t length() const noexcept { return length_; } // with the front
    acquire_call* front() const noexcept { return front_; }

    /// \name Waiters
    /// \{
    /// Adds a waiter. Returns true if it is the front.
    bool join(acquire_call& one) noexcept;
    /// Removes a waiter, from any place. Returns true if another one is the front now.
    bool leave(acquire_call& one) noexcept;
    /// Gives the new front the queue's last outcome. Returns when it retries.
    time_point promoted(const wait_view&);
    /// The waiter that gets a lease of this process by local handoff; null if the lease must be
    /// released.
    acquire_call* hand(const offered_lease& lease, const wait_view&) noexcept;
    /// When the front of a pool's queue planned to search, before a slot was handed off to it.
    time_point search_at() const noexcept { return search_at_; }
    /// Sets the result of a waiter whose wait has ended: its own last outcome, else that of the
    /// queue. `outage`: the votes of the front's attempt if they show an outage, else null.
    void time_out(acquire_call& one, const ballots* outage, bool held_here) const;
    /// \}

    /// \name Attempts of the front
    /// \{
    /// The findings of an attempt, or of a search of a pool.
    void found(std::optional<errc> outcome, const ballots& votes) {
        outcome_ = outcome;
        last_ = votes;
    }
    /// Handles a failed attempt of the front. `full`: it asked all masters. Returns when the front
    /// retries; empty if it must subscribe first, then call `refused`.
    std::optional<time_point>
    failed(bool full, std::size_t granted, const ballots& votes, const wait_view&);
    /// The lock is held. `missed`: a release may have been published before the subscription.
    time_point refused(bool missed, const ballots& votes, const wait_view&);
    /// Handles the reply to PTTL after a refused SET. `left` 0: the lock is free there. Returns the
    /// new time of the retry; empty: unchanged.
    std::optional<time_point>
    told_left(std::size_t master, std::chrono::milliseconds left, const wait_view&);
    /// Pauses the front. Returns when it wakes: at `until`, or earlier to poll.
    time_point pause(time_point until, const wait_view&) noexcept;
    /// The pause of the front has ended: it retries, or its wait ends.
    next_step due(const wait_view&) const noexcept;
    /// No majority publishes releases any more: when the front polls, if it relied on them.
    time_point poll_soon(const wait_view&) const noexcept;
    /// A majority is admitted again: when the front retries, if it waited for that.
    time_point outage_over(const wait_view&) const noexcept;
    /// A search of the pool found no slot. Returns when the front searches again.
    time_point no_slot(const wait_view&) noexcept;
    /// \}

    /// \name Releases. Each returns when to wake the front; `forever`: do not change its timer.
    /// \{
    /// Handles a notification from a master. `release` empty: one may have been missed. `granted`:
    /// this master has voted for the attempt in flight.
    time_point
    notified(std::size_t master, std::string_view release, bool granted, const wait_view&);
    /// Handles the end of a lease of this process. `since`: the start of its series of local
    /// handoffs, or `never`. `others_until`: until when waiters of other processes go first.
    time_point
    released(std::string_view release, time_point since, time_point others_until, const wait_view&);
    /// Discards all notifications.
    void forget() noexcept { news_ = {}; }
    /// Returns whether a notification arrived during an attempt or a search, and resets that.
    bool take_notified() noexcept { return std::exchange(news_.again, false); }
    /// Whether the notifications so far justify an attempt.
    bool acts() const noexcept { return news_.acted_on; }
    /// \}

    /// \name The fair queue, of which `ticket` is the state
    /// \{
    /// Decides the next step while it is not this queue's turn: `before` others come first, or the
    /// lock is held for `left`. `wait`: subscribe, then pause until `ticket_by`.
    next_step must_wait(std::uint64_t before, std::chrono::milliseconds left, const wait_view&);
    time_point ticket_by(std::chrono::milliseconds left, const wait_view&) noexcept;
    /// \}

    void reset();

private:
    friend class wait_queues;

    /// The notifications of one release.
    struct news {
        std::string release;     // its name
        std::uint32_t heard = 0; // one bit per master that published it
        bool acted_on = false;   // it has caused an attempt, or will
        bool again = false;      // the current attempt may have missed it: try again
        bool whole = false;      // published by a majority since: try again after a split vote
    };

    static bool others_are_next(time_point handed_since, const wait_view&) noexcept;
    time_point poll_by(const wait_view&) const noexcept;

    acquire_call* front_ = nullptr;
    acquire_call* back_ = nullptr;
    std::size_t length_ = 0;
    time_point search_at_ = never;
    news news_;
    std::optional<errc> outcome_; // of the latest attempt that asked all masters
    ballots last_;                // its votes
    std::unordered_map<std::string_view, wait_queue*>::node_type node_; // recycled with the queue
};

} // namespace redlock::core
