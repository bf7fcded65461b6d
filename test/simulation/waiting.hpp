// Plans with many waiters: wait queues, local handoffs, and faults of release notifications.

#pragma once

#include "plan.hpp"

namespace simulation {

class generator;

/// Which clients subscribe, which hand off, and how many pushes are lost; with faults of the push
/// connections.
void choose_waiting(plan& what, generator& random);

/// Wait queues with several waiters per client, some of which give up or use different options,
/// under faults.
void add_queue_faults(plan& what, generator& random);

/// Leases longer than any wait, so that a missed notification becomes visible. Faults only on
/// notification connections.
void add_notification_faults(plan& what, generator& random);

/// Every lock is a slot of a small pool, with more workers than slots. Clients sometimes disagree
/// on the size.
void add_slot_faults(plan& what, generator& random);
/// The same, with leases longer than any wait, as in `add_notification_faults`.
void add_slot_notification_faults(plan& what, generator& random);

/// The same, with the leases and faults of `add_free_lock_faults`.
void add_free_slot_faults(plan& what, generator& random);

/// Clients that release a lock and want it again at once.
void add_turns(plan& what, generator& random);

/// No release notification arrives: every waiter has to poll.
void lose_all_notifications(plan& what, generator& random);

} // namespace simulation
