// What operators and failovers do to masters, and what holders do after the signal of a loss.

#pragma once

namespace simulation {

struct plan;
class generator;

/// How holders end, on top of what the plan says: with margins and limits at their extremes, with
/// tokens of their own, in order, attached, and obedient or not.
void choose_holders(plan&, generator&);
/// What operators do to servers that loses nothing; and servers of several kinds.
void choose_servers(plan&, generator&);

/// Losses with holders that go on acting for as long as they may.
void trouble_stops(plan&, generator&);
/// Replicas that lag take the places of dead masters; some are as durable as these.
void trouble_promotions(plan&, generator&);
/// Empty servers that were always up take the places of dead masters.
void trouble_take_overs(plan&, generator&);
/// The clock of a master that has restarted is set, before anybody has asked it or after all have.
void trouble_boot_steps(plan&, generator&);
/// Records and fencing counters are deleted.
void trouble_lost_records(plan&, generator&);
/// Lock keys of holders are deleted: more than the assumptions allow.
void trouble_deletions(plan&, generator&);
/// Long leases, and pushes that end, are refused or get lost: waiters must not sleep.
void trouble_free_locks(plan&, generator&);

} // namespace simulation
