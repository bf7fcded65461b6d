// Plans in which many wait: the wait queues of a client, local handoffs, pushes and what becomes of
// them.

#pragma once

#include "plan.hpp"

namespace simulation {

class generator;

/// Which clients subscribe, which hand off, and how many pushes are lost; with faults of the push
/// connections.
void choose_waiting(plan& what, generator& random);

/// Lines of several waiters in each client, who give up, and want different things, under faults.
void trouble_lines(plan& what, generator& random);

/// Leases that are longer than anybody waits, so that a waiter without a notification is noticed.
/// Only push connections are in trouble.
void trouble_wakes(plan& what, generator& random);

/// Every lock is a slot: pools of a few, more workers than slots, sizes that differ now and then.
void trouble_slots(plan& what, generator& random);
/// The same, with leases that are longer than anybody waits, as in `trouble_wakes`.
void trouble_slot_wakes(plan& what, generator& random);

/// No push ever arrives: each waiter has to ask again.
void trouble_deaf(plan& what, generator& random);

} // namespace simulation
