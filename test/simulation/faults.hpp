// A plan that is being made: masters, clients and moments of faults are chosen at random.

#pragma once

#include "plan.hpp"
#include "random.hpp"

#include <algorithm>
#include <initializer_list>

namespace simulation {

using enum fault_kind;

struct draft : plan, generator {
    explicit draft(std::uint64_t number) : generator(number, 1) { seed = number; }

    /// What follows is drawn from another stream of the same seed.
    void draw_from(std::uint64_t stream) { generator::operator=(generator(seed, stream)); }

    int any_master() { return static_cast<int>(below(masters.size())); }
    int any_client() { return static_cast<int>(below(clients.size())); }
    /// -1, for all of them, in this percentage of cases.
    int master_or_all(unsigned chance = 40) { return percent(chance) ? -1 : any_master(); }
    int client_or_all(unsigned chance = 40) { return percent(chance) ? -1 : any_client(); }
    fault_kind any_of(std::initializer_list<fault_kind> kinds) {
        return kinds.begin()[below(kinds.size())];
    }

    nanos longest_lease() const noexcept { return max_ttl_ms() * ms; }
    bool all_guarded() const {
        return std::ranges::count(clients, speech::plain, &client_plan::speaks) == 0;
    }

    /// A fault that begins and ends while faults are allowed.
    fault& add(fault one, nanos longest) {
        one.at = between(10 * ms, faults_end - 50 * ms);
        one.span = between(ms, std::min(longest, faults_end - one.at - 10 * ms));
        return faults.emplace_back(one);
    }
    fault& add(fault one) { return add(one, longest_lease()); }
    /// A client that crashes or closes does so before the next one starts.
    void end_in_time(fault& one) const {
        if (one.kind == client_crash || one.kind == client_close) {
            one.at = std::min(one.at, faults_end - 200 * ms);
            one.span = std::max(one.span, (master_timeout_ms + 20) * ms);
        }
    }
    template <typename Adder>
    void add_some(std::uint64_t most, Adder adder) {
        for (std::uint64_t left = below(most + 1); left > 0; --left) {
            adder(*this);
        }
    }
    /// Of one kind after the other up to that number.
    void add_some(std::initializer_list<std::pair<std::uint64_t, void (*)(draft&)>> kinds) {
        for (const auto& [most, adder] : kinds) {
            add_some(most, adder);
        }
    }
};

/// \name Holders and operators: what operators and failovers do to masters, and what holders do
/// after the signal of a loss
/// \{
/// Varies the options of acquires: extreme margins and limits, chosen tokens, the fair queue,
/// attach, and how holders react to a loss.
void choose_holders(draft&);
/// Adds operator commands that lose no data, and servers of several versions.
/// Some abandoned locks are transferable.
void choose_transfers(draft&);
void choose_servers(draft&);

/// Losses, after which holders act until their last deadline.
void add_stop_faults(draft&);
/// Lagging replicas replace dead masters, some of which use appendfsync always.
void add_promotion_faults(draft&);
/// Empty servers that were always up take the places of dead masters.
void add_take_over_faults(draft&);
/// The clock of a master that has restarted is set, before anybody has asked it or after all have.
void add_boot_step_faults(draft&);
/// Records and fencing counters are deleted.
void add_lost_record_faults(draft&);
/// Lock keys of holders are deleted, which the assumptions exclude.
void add_deletion_faults(draft&);
/// Masters are allowed to evict keys for a while. They evict some once all clients that are not
/// partitioned have asked again: `evictable_after`.
void add_eviction_faults(draft&);
/// After this, no vote counts of a master that may evict: a client asks whether it is fit, sends a
/// command for one interval more, and waits for the reply.
std::int64_t evictable_after(const plan&);
/// Long leases, and release notifications that end, are refused or lost: waiters must poll.
void add_free_lock_faults(draft&);
/// \}

/// \name Many waiters: wait queues, local handoffs, and faults of release notifications
/// \{
/// Which clients subscribe, which hand off, and how many pushes are lost; with faults of the push
/// connections.
void choose_waiting(draft& what);

/// Wait queues with several waiters per client, some of which give up or use different options,
/// under faults.
void add_queue_faults(draft& what);

/// Leases longer than any wait, so that a missed notification becomes visible. Faults only on
/// notification connections.
void add_notification_faults(draft& what);

/// Every lock is a slot of a small pool, with more workers than slots. Clients sometimes disagree
/// on the size.
void add_slot_faults(draft& what);
/// The same, with leases longer than any wait, as in `add_notification_faults`.
void add_slot_notification_faults(draft& what);

/// The same, with the leases and faults of `add_free_lock_faults`.
void add_free_slot_faults(draft& what);

/// Clients that release a lock and want it again at once.
void add_turns(draft& what);

/// No release notification arrives: every waiter has to poll.
void lose_all_notifications(draft& what);
/// \}

} // namespace simulation
