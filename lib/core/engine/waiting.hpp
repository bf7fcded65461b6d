// The waiters of this process: their queues, subscriptions and tickets. Executes what the wait
// queues decide (wait_queue.hpp), with a timer for each front. It starts no attempt: each function
// returns what its owner does next with the front.
//
// A front makes an attempt after a release notification, or when the lease that the votes reported
// must have ended. Waiters that are notified of the same release first ask one and the same master,
// the arbiter. Its reply costs the losers one command; only the winner sends commands to the other
// masters.

#pragma once

#include "core/waiting/operation.hpp"
#include "core/waiting/wait_queues.hpp"
#include "essentials.hpp"
#include "fair_queue.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace redlock::core {

class waiting : essentials {
public:
    /// The next step of the front. It waits: its timer is set.
    using step = next_step;
    /// The step of the front of some queue, if that has changed.
    struct front_step {
        operation* front = nullptr; // null: nothing to do
        step next = step::wait;
    };

    /// `replies`: receives them, and passes them to `lease_left` or `turn_answered`.
    waiting(const essentials& with, receiver& replies) noexcept
        : essentials(with),
          replies_(replies),
          turns_(with, replies),
          queues_(masters_) {}

    /// \name Waiters
    /// \{
    step join(operation& wanted, time_point now);
    /// Removes a waiter from its queue, if it is in one. If it was the front, the next one becomes
    /// the front.
    void leave(operation& wanted, time_point now);
    /// The pause of the front has ended.
    step due(operation& front, time_point now);
    void pause(operation& front, time_point until, time_point now);
    /// Sets the result of a waiter whose wait has ended.
    void time_out(operation& wanted, time_point now);
    /// A waiter has got a lock: the ticket is not needed any more.
    void won(operation& wanted, const claim& lease, time_point now);
    /// \}

    /// \name After an attempt of the front
    /// \{
    /// Returns when it tries again, unless it is notified before.
    time_point failed(operation& front, const claim& attempt, time_point now);
    /// A search found no slot. The next step is to search again, or it pauses.
    step no_slot(operation& front, time_point now);
    /// \}

    /// \name Leases of this process
    /// \{
    /// The waiter that gets a released lease by local handoff; null if there is none.
    operation* next_owner(claim& lease, time_point now);
    /// Until when other processes come first, because they waited when this one released the lock;
    /// `never`: they did not.
    time_point yields_until(lock_form form, std::string_view key) const noexcept;
    /// A lease has ended without a handoff.
    void ended(const claim& lease, time_point now);
    /// A lost lease: waiters wait for its removal, but its keys may be gone earlier.
    void lost(const claim& lease, time_point now);
    /// A lease has left this process with its keys: another process may release it at any time.
    void abandoned(wait_queue& waiters);
    /// The lease of a writer becomes that of a reader: its token is published again later.
    void downgraded(const claim& lease, time_point now);
    /// \}

    /// \name Masters
    /// \{
    void lease_left(operation* wanted, const arrival& at, const reply* answered);
    /// `answered`: null if the connection broke before the reply.
    front_step turn_answered(const arrival& at, const reply* answered);
    /// `release` was announced by a master for this queue; if it is empty, a release may have been
    /// missed. Returns whether that justifies an attempt.
    bool notified(wait_queue& mine, std::size_t master, std::string_view release, time_point now);
    /// A caller waits for releases without an acquire. `subscribes`: the engine runs.
    void listen(std::string_view resource, bool subscribes, time_point now);
    void unlisten(std::string_view resource, time_point now);
    /// No majority announces releases any more.
    void poll_soon(operation& front, time_point now);
    /// A majority is admitted again, and the front may have paused because of the outage.
    void outage_over(operation& front, time_point now);
    /// \}

    static operation* front_of(const wait_queue& waiters) noexcept {
        return static_cast<operation*>(waiters.front());
    }
    wait_queue* find(const claim& of) noexcept {
        return queues_.find(of.waiting_form(), of.queue_key());
    }
    wait_queues& queues() noexcept { return queues_; }
    /// Whether commands that give up a ticket are in flight.
    bool leaving() const noexcept { return turns_.leaving(); }

private:
    wait_view view_of(const wait_queue& waiters, time_point now);
    const claim* held_here(const wait_queue& waiters);
    void wake(const wait_queue& waiters, time_point due);
    bool take_turn(operation& front, time_point now);
    void end_if_unused(wait_queue& waiters);
    step wait_for_turn(operation& front, const answer& got, time_point now);
    step yield(operation& front, time_point now);
    bool watch(wait_queue& waiters, time_point now);
    void ask_lease_left(operation& front, const claim& attempt, time_point now);

    receiver& replies_;
    fair_queue turns_;
    wait_queues queues_;
};

} // namespace redlock::core
