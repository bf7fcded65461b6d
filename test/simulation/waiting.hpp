// Plans with many waiters: wait queues, local handoffs, and faults of release notifications.

#pragma once

#include "plan.hpp"

namespace simulation {

struct draft;

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

} // namespace simulation
