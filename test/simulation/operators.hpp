// What operators and failovers do to masters, and what holders do after the signal of a loss.

#pragma once

#include <cstdint>

namespace simulation {

struct plan;
struct draft;

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

} // namespace simulation
