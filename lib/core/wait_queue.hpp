// The waiters for one resource in this process, first come, first served. Only the front sends
// attempts; the others wait for their turn, and cost the masters nothing.
//
// A wait queue decides what its waiters do next; the engine does it. It knows neither masters nor
// connections, but what it is told: `wait_view` is what it has to know at one moment.
//
//   join, leave            a waiter comes, or goes from whatever place
//   due, failed, refused   the front's pause is over, its attempt has failed: when it tries again
//   notified, released     a lock may be free: whether the front tries before that
//   hand                   who has a lease next that this process lets go
//   time_out               the end of a wait, and what the caller is told
//
// Between processes there is no order, unless the waiters ask for it: then a master keeps a queue
// of queues, and `queue_place` is what this one knows of its place there.

#pragma once

#include "backoff.hpp"
#include "claim_record.hpp"
#include "form.hpp"
#include "polling.hpp"
#include "pool.hpp"
#include "queue_place.hpp"
#include "settings.hpp"
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

/// One acquire, as its queue knows it.
struct waiter {
    enum class phase : std::uint8_t {
        queued,     // others of this process came first
        surveying,  // looks which slots of a pool are free
        attempting, // a claim of its is asking
        turning,    // at the front, and asks whether it is its queue's turn
        paused,     // at the front, between two attempts
        finishing,  // it failed: the rollback is on its way to the sockets
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
    std::uint32_t slots = 0; // of the pool of which it wants any; 0: a lock is wanted
    std::uint32_t wants = 1; // so many of them, or none

    wait_queue* queue = nullptr; // where it waits; null for an acquire that does not wait
    waiter* before = nullptr;
    waiter* behind = nullptr;
};

/// What a queue has to know of its surroundings, at one moment.
struct wait_view {
    const settings& rules;
    time_point now;
    std::chrono::nanoseconds round_trip{0};    // of a majority; 0: unknown
    std::size_t arbiter = nobody;              // the master that is asked first for this lock
    bool notified = false;                     // a majority announces releases
    std::optional<time_point> held_until = {}; // by a lease of this process, if there is one

    /// Minimum pause between two attempts.
    std::chrono::nanoseconds retry_floor() const noexcept {
        return std::max<std::chrono::nanoseconds>(rules.retry_delay_min, round_trip);
    }
};

/// What the front does next.
struct next_step {
    enum class what : std::uint8_t { ask, wait, time_out };
    what does = what::ask;
    time_point until = never; // how long it waits
};

/// A lease that its holder has let go, with what the next holder asks about.
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
    bool pool = false;    // for any slot of a pool
    bool watched = false; // releases are subscribed to
    handle holder;        // the lease of this process that they wait for, if there is one
    time_point handed_since = never; // the first of its local handoffs in a row
    queue_place place;               // for those who want the order of arrival

    bool empty() const noexcept { return length_ == 0; }
    std::size_t length() const noexcept { return length_; } // with the front
    waiter* front() const noexcept { return front_; }

    /// \name Who waits
    /// \{
    /// Adds a waiter. True if it is the front, and may go on.
    bool join(waiter& one) noexcept;
    /// Takes a waiter out, from whatever place. True if another one is the front now.
    bool leave(waiter& one) noexcept;
    /// When the new front tries, to whom the queue tells what it has found out.
    time_point promoted(const wait_view&);
    /// The waiter to whom a lease of this process passes without a round trip; null if it has to
    /// be released.
    waiter* hand(const offered_lease& lease, const wait_view&) noexcept;
    /// When the front of a pool's queue would have searched, had it not been handed a slot.
    time_point search_at() const noexcept { return search_at_; }
    /// The wait is over without an attempt of its own under way. What the queue has found out
    /// stands for it: `outage` are the votes of the front's attempt, if that shows one.
    void time_out(waiter& one, const ballots* outage, bool held_here) const;
    /// \}

    /// \name Attempts of the front
    /// \{
    /// An attempt on all masters begins.
    void asked_all(time_point now) noexcept { polls_.asked_all(now); }
    /// Whether that must not ask one master first.
    bool all_due(const wait_view& at) const noexcept {
        return polls_.all_due(at.rules.poll_limit, at.now);
    }
    /// What an attempt, or a search of a pool, has shown.
    void found(std::optional<errc> outcome, const ballots& votes) {
        outcome_ = outcome;
        last_ = votes;
    }
    /// The attempt of the front failed; it asked all masters, or only one (`full`). When it tries
    /// again; nothing where it listens to releases first: then `refused` says when.
    std::optional<time_point>
    failed(bool full, std::size_t granted, const ballots& votes, const wait_view&, jitter&);
    /// The lock is taken. `missed`: a release may have been announced that this queue did not hear.
    time_point refused(bool missed, const ballots& votes, const wait_view&, jitter&);
    /// The front pauses. Returns when it wakes: at `until` at the latest, or to poll.
    time_point pause(time_point until, const wait_view&, jitter&) noexcept;
    /// The pause of the front is over.
    next_step due(const wait_view&) const noexcept;
    /// No majority announces releases any more: when the front polls, if it relied on them.
    time_point poll_soon(const wait_view&, jitter&) noexcept;
    /// A majority is admitted again: when the front tries, if that is what it waited for.
    time_point outage_over(const wait_view&, jitter&) const noexcept;
    /// A search of the pool found no slot. When the front searches again.
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
    /// Forgets what it has heard.
    void forget() noexcept { news_ = {}; }
    /// Whether there was news during an attempt, or a search. Once.
    bool take_news() noexcept { return std::exchange(news_.again, false); }
    /// Whether what it was told last is enough for an attempt.
    bool acts() const noexcept { return news_.acted_on; }
    /// \}

    /// \name The fair queue, of which `place` is the state
    /// \{
    /// It is not this queue's turn: `before` others come first, or the lock is held for `left`.
    /// `wait`: once releases are listened to, and until `turn_by`.
    next_step told_to_wait(std::uint64_t before, std::chrono::milliseconds left, const wait_view&);
    time_point turn_by(std::chrono::milliseconds left, const wait_view&, jitter&) noexcept;
    /// \}

    void reset();

private:
    friend class wait_queues;

    /// What was heard of one release.
    struct news {
        std::string release;     // which one: each has a name of its own
        std::uint32_t heard = 0; // the masters that told of it, a bit each
        bool acted_on = false;   // an attempt came of it, or will
        bool again = false;      // it came after a vote of the attempt that is under way
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
