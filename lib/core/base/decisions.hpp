// Decisions of the protocol that the simulator can reverse, one at a time, to show that it detects
// each mistake. test/simulation/variants describes them, and lists the profile and the seeds that
// detect each. In the library they are constants, so no wrong way is ever taken.
//
// Each is the first operand: `wrong::x || right`, `!wrong::x && right`, `wrong::x ? other : right`,
// or `if (wrong::x && ...) { ... }`, so that test/mutants/cpp.py can remove them before it makes
// mutants.

#pragma once

namespace redlock::core::wrong {

#ifdef REDLOCK_WRONG_VARIANTS
using decision = bool;
#else
using decision = const bool;
#endif

// votes and rollback
inline decision quorum_half = false;
inline decision set_without_nx = false;
inline decision set_then_pexpire = false;
inline decision busy_counted = false;
inline decision no_late_check = false;
inline decision slow_clock_trusted = false;
inline decision older_grant_counted = false;
inline decision token_reused = false;
inline decision rollback_without_compare = false;
inline decision release_without_compare = false;
inline decision no_rollback_when_unknown = false;
inline decision rollback_unordered = false;
inline decision released_after_loss = false;
inline decision exceptions_ignored = false;

// validity of a lease
inline decision no_drift = false;
inline decision elapsed_not_subtracted = false;
inline decision t0_after_sends = false;
inline decision deadline_restarted_at_raise = false;
inline decision removed_at_stop = false;

// memory of a master
inline decision half_quarantine = false;
inline decision step_ends_quarantine = false;
inline decision uncertified_counts = false;
inline decision any_record_certifies = false;
inline decision present_record_certifies = false;
inline decision unvouched_extends = false;
inline decision stray_transferred = false;
inline decision sent_in_quarantine = false;
inline decision any_list_votes = false;
inline decision any_ttl_votes = false;
inline decision fitness_asked_once = false;
inline decision ineligible_votes_count = false;
inline decision evictions_forgiven = false;

// founding
inline decision founded_list_replaced = false;
inline decision agreed_step_skipped = false;
inline decision unfinished_list_votes = false;

// changes of members
inline decision change_committed_at_once = false;
inline decision lowered_at_once = false;
inline decision plan_overwritten = false;
inline decision earlier_votes_count = false;
inline decision failed_attach_removes = false;

// fencing tokens
inline decision token_minimum = false;
inline decision fencing_without_raise = false;
inline decision raise_not_awaited = false;
inline decision raise_accepts_larger = false;
inline decision any_raise_counts = false;
inline decision first_below_clock = false;
inline decision first_without_limit = false;
inline decision offset_counted_once = false;

// extensions
inline decision extended_without_quorum = false;
inline decision extension_from_reply = false;
inline decision any_reply_extends = false;
inline decision heal_after_deadline = false;
inline decision heal_without_blocking = false;
inline decision late_rollback_to_non_voters = false;

// local handoff
inline decision handoff_past_deadline = false;
inline decision handoff_counts_anew = false;
inline decision handoff_without_raise = false;
inline decision handoff_raise_not_awaited = false;
inline decision handoff_to_the_last = false;
inline decision late_grant_lasts_anew = false;
inline decision old_holder_releases = false;

// waiting
inline decision sleeps_while_free = false;
inline decision own_lease_trusted = false;
inline decision releaser_asks_at_once = false;
inline decision leaver_blocks_its_queue = false;
inline decision own_queue_not_notified = false;
inline decision notification_is_grant = false;
inline decision notification_dropped = false;
inline decision confirmation_ignored = false;
inline decision subscription_left = false;

} // namespace redlock::core::wrong
