// The waiters of one resource in this process, in order of arrival. Only the front sends attempts;
// the others wait for their turn without a command to the masters.
//
// A wait queue decides what its waiters do next; the engine executes it. It knows neither masters
// nor connections, only what it is given: `wait_view` is the state of the world at one moment.
//
// - join, leave: a waiter arrives, or leaves from any place;
// - due, failed, refused: the pause of the front is over, or its attempt failed;
// - notified, released: a lock may be free, and the front may wake earlier;
// - hand: the next owner of a lease that is released in this process;
// - time_out: the end of a wait, and its result.
//
// Between processes there is no order, except on request: then a master keeps a fair queue, and
// `queue_ticket` is the state of the ticket there.

#pragma once

#include "backoff.hpp"
#include "claim_record.hpp"
#include "form.hpp"
#include "polling.hpp"
#include "queue_ticket.hpp"
#include "settings.hpp"
#include "slot_map.hpp"
#include "timers.hpp"

#include <redlock/errc.hpp>
#include <redlock/options.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace redlock::core {

class wait_queue;

/// One acquire, as seen by its queue.
struct waiter {
    enum class phase : std::uint8_t {
        queued,     // not at the front
        scanning,   // searches for free slots of a pool
        attempting, // an attempt is in flight
        turning,    // at the front, requests its turn of the fair queue
        paused,     // at the front, between two attempts
        finishing,  // failed: the rollback is being sent
    };

    phase stage = phase::attempting;
    bool ask_arbiter = false; // the next attempt asks one master first
    acquire_options options;
    time_point began = never;
    time_point wait_until = forever;
    timer wake;
    std::optional<errc> outcome; // of the last attempt; empty when cancelled
    ballots last;                // its votes
    backoff delay;
    std::uint32_t slots = 0; // size of the pool; 0: a lock
    std::uint32_t wants = 1; // number of slots, all or none

    wait_queue* queue = nullptr; // where it waits; null for an acquire that does not wait
    waiter* before = nullptr;
    waiter* behind = nullptr;
};

/// The state of the world for a queue, at one moment.
struct wait_view {
    const settings& rules;
    time_point now;
    std::chrono::nanoseconds round_trip{0};    // of a majority; 0: unknown
    std::size_t arbiter = nobody;              // the master that is asked first for this lock
    bool notified = false;                     // a majority publishes releases
    bool ready = true;                         // a majority may vote
    std::optional<time_point> held_until = {}; // by a lease of this process, if any

    /// Minimum pause between two attempts.
    std::chrono::nanoseconds retry_floor() const noexcept {
        return std::max<std::chrono::nanoseconds>(rules.retry_delay_min, round_trip);
    }
};

/// The next step of the front.
struct next_step {
    enum class what : std::uint8_t { ask, wait, time_out };
    what does = what::ask;
    time_point until = never; // end of the wait
};

/// A released lease, with what the next owner checks.
struct offered_lease {
    time_point lasts_until; // on a majority
    std::chrono::milliseconds ttl{};
    bool fencing = false;
    std::uint32_t slots = 0;         // of a pool; 0: it is a lock
    std::uint32_t highest = 0;       // their largest number
    time_point handed_since = never; // the first local handoff in a row
};

class wait_queue {
public:
    handle self;
    lock_form form = lock_form::exclusive;
    std::string key;
    bool pool = false;               // for any slot of a pool
    bool watched = false;            // releases are subscribed to
    handle holder;                   // the lease of this process that they wait for, if any
    time_point handed_since = never; // the first of its local handoffs in a row
    queue_ticket place;              // for waiters that want the order of arrival

    bool empty() const noexcept { return length_ == 0; }
    std::size_t length() const noexcept { return length_; } // with the front
    waiter* front() const noexcept { return front_; }

    /// \name Who waits
    /// \{
    /// Adds a waiter. True if it is the front, and may go on.
    bool join(waiter& one) noexcept;
    /// Removes a waiter, from any place. Returns true if another one is the front now.
    bool leave(waiter& one) noexcept;
    /// When the new front retries; it takes over what the queue has found out.
    time_point promoted(const wait_view&);
    /// The waiter that gets a lease of this process by local handoff; null if the lease must be
    /// released.
    waiter* hand(const offered_lease& lease, const wait_view&) noexcept;
    /// When the front of a pool's queue would have searched without the handoff of a slot.
    time_point search_at() const noexcept { return search_at_; }
    /// The wait has ended without an attempt of its own in flight. The result is what the queue has
    /// found out: `outage` are the votes of the front's attempt, if they show one.
    void time_out(waiter& one, const ballots* outage, bool held_here) const;
    /// \}

    /// \name Attempts of the front
    /// \{
    /// An attempt on all masters begins.
    void asked_all(time_point now) noexcept { polls_.asked_all(now); }
    /// Whether it must not ask one master first.
    bool all_due(const wait_view& at) const noexcept {
        return polls_.all_due(at.rules.poll_limit, at.now);
    }
    /// The findings of an attempt, or of a search of a pool.
    void found(std::optional<errc> outcome, const ballots& votes) {
        outcome_ = outcome;
        last_ = votes;
    }
    /// The attempt of the front failed; it asked all masters, or only one (`full`). Returns when it
    /// retries; empty if it needs a subscription first: then `refused` decides.
    std::optional<time_point>
    failed(bool full, std::size_t granted, const ballots& votes, const wait_view&, jitter&);
    /// The lock is held. `missed`: a release may have been published before the subscription.
    time_point refused(bool missed, const ballots& votes, const wait_view&, jitter&);
    /// The holder's lease on one master, asked for after a refusal that did not contain it; 0: the
    /// lock is free there. Returns when the front retries; empty: as was decided before.
    std::optional<time_point>
    told_left(std::size_t master, std::chrono::milliseconds left, const wait_view&, jitter&);
    /// The front pauses. Returns when it wakes: at `until` at the latest, or to poll.
    time_point pause(time_point until, const wait_view&, jitter&) noexcept;
    /// The pause of the front has ended.
    next_step due(const wait_view&) const noexcept;
    /// No majority publishes releases any more: when the front polls, if it relied on them.
    time_point poll_soon(const wait_view&, jitter&) noexcept;
    /// A majority is admitted again: when the front retries, if it waited for that.
    time_point outage_over(const wait_view&, jitter&) const noexcept;
    /// A search of the pool found no slot. Returns when the front searches again.
    time_point no_slot(const wait_view&, jitter&) noexcept;
    /// \}

    /// \name Releases. What they return: when the front is to be woken; `forever`: it stays as is.
    /// \{
    /// A master announced `release`; without a name: one may have been missed. `granted`: the
    /// attempt under way has the vote of that master.
    time_point
    notified(std::size_t master, std::string_view release, bool granted, const wait_view&);
    /// A lease of this process has ended without a local handoff, after local handoffs since then.
    time_point released(std::string_view release, time_point since, const wait_view&);
    /// Discards all notifications.
    void forget() noexcept { news_ = {}; }
    /// Whether there was a notification during an attempt or a search. Once.
    bool take_notified() noexcept { return std::exchange(news_.again, false); }
    /// Whether the latest notifications are enough for an attempt.
    bool acts() const noexcept { return news_.acted_on; }
    /// \}

    /// \name The fair queue, of which `place` is the state
    /// \{
    /// It is not this queue's turn: `before` others come first, or the lock is held for `left`.
    /// `wait`: once releases are listened to, and until `turn_by`.
    next_step must_wait(std::uint64_t before, std::chrono::milliseconds left, const wait_view&);
    time_point turn_by(std::chrono::milliseconds left, const wait_view&, jitter&) noexcept;
    /// \}

    void reset();

private:
    friend class wait_queues;

    /// The notifications of one release.
    struct news {
        std::string release;     // its name
        std::uint32_t heard = 0; // one bit per master that published it
        bool acted_on = false;   // it has caused an attempt, or will
        bool again = false;      // it came after a vote of the current attempt
    };

    static bool others_are_next(time_point handed_since, const wait_view&) noexcept;
    time_point poll_by(const wait_view&, jitter&) const noexcept;

    waiter* front_ = nullptr;
    waiter* back_ = nullptr;
    std::size_t length_ = 0;
    time_point search_at_ = never;
    polling polls_;
    news news_;
    std::optional<errc> outcome_; // of the latest attempt that asked all masters
    ballots last_;                // its votes
    std::unordered_map<std::string_view, wait_queue*>::node_type node_; // recycled with the queue
};

} // namespace redlock::core
