"""What check.py runs: the scope of each search, and which error a broken rule must show as."""

import pathlib
import re
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent

EXCLUSION = 'holders<=1'
KEY_BOUND = 'age[j]<='
ORPHAN = '.pending[j]!=0'
ORDER = 'newest==slot'
RISING = 'token>last'
UNIQUE = 'issued[i]!=token'
AGREED = 'finals<=1'
GAP = 'succeeded)||unseen'
NEEDLESS = '(blocking>='
BESIDE = 'owners==0'
LEFT_BEHIND = '.left<=(largest'
OVERTAKEN = '!(passing['
ASSERTION = 'assertion violated'

# The scope of a search, where its case says nothing else.
SCOPES = {
    'acquire': {'CLIENTS': 2, 'ATTEMPTS': 1, 'OTHERS_ATTEMPTS': 1, 'EXTENDS': 0, 'LOSSES': 0, 'BREAKS': 0,
                'DRIFTS': 0, 'TTL': 3, 'DELAYED': 0},
    'certificate': {'FAULTS': 0, 'ONLY': 31, 'TTL': 2, 'ROUNDS': 0, 'ATTEMPTS': 1, 'NEW': 0, 'HELD': 0,
                    'WAITS': 0},
    'changes': {'MASTERS': 4, 'BEFORE': 1 + 2 + 4, 'AFTER': 1 + 2 + 4 + 8, 'RIVAL': 0, 'LATER': 0, 'LATER_RIVAL': 0,
                'MAJORITY_PROMISES': 0, 'LOOKS': 0, 'FORGETS': 0, 'ROUNDS': 0, 'LOCKS': 1},
    'extension': {'MASTERS': 3, 'ROUNDS': 1, 'LOSSES': 0, 'DELETIONS': 0, 'TTL': 2},
    # HORIZON 0: nobody reads the clock, and time has no end.
    'fencing': {'ATTEMPTS': 1, 'OTHERS_ATTEMPTS': 1, 'LOSSES': 0, 'BREAKS': 0, 'STEPS': 0, 'TTL': 2,
                'HORIZON': 0, 'STARTS': 0, 'COUNTERS': 2, 'OFFSET': 1},
    'founding': {'MASTERS': 4, 'FIRST': 1 + 2 + 4, 'SECOND': 1 + 2 + 8, 'LISTS': 2, 'THIRD': 31, 'SPELLED': 0, 'FORGETS': 0,
                 'ALL': 0, 'VIEW': 0, 'LOCKS': 1},
    'memory': {'FAULTS': 0, 'ONLY': 0, 'TTL': 2, 'NEW': 0, 'CONNECTED': 0, 'RETURNS': 0, 'UNNOTICED': 0},
    'readers': {'READERS': 1, 'OWNERS': 1, 'ROUNDS': 0, 'DOWNGRADES': 0, 'LOSSES': 0, 'INTENTS': 0, 'DELETIONS': 0,
                'TTL': 2, 'WHOLE': 0, 'GRACE': 1},
}  # fmt: skip
# Lengths of arrays are compiled into a search; the rest it is given when it starts.
LENGTHS = ('MASTERS', 'CLIENTS', 'ATTEMPTS', 'LISTS')


@dataclass
class Case:
    model: str
    name: str
    sizes: dict
    holds: bool = False
    expect: str = ASSERTION
    memory: int = 0
    trail: bool = False # it is to be followed

    def scope(self):
        """The number of each name that the model leaves open."""
        scope = {'WRONG': 0, 'GOAL': 0, **SCOPES[self.model], **self.sizes}
        if 'READERS' in scope:
            scope['CLIENTS'] = scope['READERS'] + scope.pop('OWNERS')
        return {name: size if isinstance(size, int) else self.number_of(size) for name, size in scope.items()}

    def number_of(self, name):
        """The number of a rule or of a goal."""
        return int(re.search(rf'^#define {name} (\d+)\b', (HERE / f'{self.model}.pml').read_text(), re.MULTILINE)[1])


def holds(model, name, **sizes):
    return Case(model, name, sizes, holds=True)


def wrong(model, rule, expect, **sizes):
    return Case(model, rule, {'WRONG': rule, **sizes}, expect=expect)


def redundant(model, rule, **sizes):
    return Case(model, f'without {rule}', {'WRONG': rule, **sizes}, holds=True)


def beyond(model, name, expect, **sizes):
    return Case(model, name, sizes, expect=expect)


def goal(model, name, **sizes):
    return Case(model, f'reaches {name}', {'GOAL': name, **sizes})


GROUPS = {
    'acquire holds': [
        holds('acquire', 'two clients', TTL=2, DELAYED=1),
        holds('acquire', 'clocks drift', TTL=3, DRIFTS=1),
        holds('acquire', 'a connection breaks', TTL=2, BREAKS=1),
        holds('acquire', 'a master loses its data', TTL=2, LOSSES=1),
        holds('acquire', 'extension', TTL=2, EXTENDS=1),
    ],
    'acquire is not vacuous': [
        goal('acquire', 'succession', TTL=2),
        goal('acquire', 'takeover', TTL=2),
        goal('acquire', 'rollback', TTL=2),
        goal('acquire', 'refused_in_quarantine', TTL=2, LOSSES=1),
        goal('acquire', 'orphan', TTL=2, BREAKS=1),
        goal('acquire', 'extended', TTL=2, EXTENDS=1),
        goal('acquire', 'acts_after_loss', TTL=2),
    ],
    'wrong votes': [
        wrong('acquire', 'quorum_half', EXCLUSION, TTL=2),
        wrong('acquire', 'set_without_nx', EXCLUSION, TTL=2),
        wrong('acquire', 'busy_is_grant', EXCLUSION, TTL=2),
        wrong('acquire', 'fewer_masters', EXCLUSION, TTL=2),
        wrong('acquire', 'token_reused', EXCLUSION, TTL=1, ATTEMPTS=2, BREAKS=1),
        wrong('acquire', 'old_grant_counted', EXCLUSION, TTL=1, ATTEMPTS=2, DELAYED=1),
    ],
    'wrong time': [
        wrong('acquire', 'no_drift_allowance', EXCLUSION, TTL=2, DRIFTS=1),
        wrong('acquire', 'elapsed_not_subtracted', EXCLUSION, TTL=2),
        wrong('acquire', 'believing_past_deadline', EXCLUSION, TTL=2),
        wrong('acquire', 'suspended_clock', EXCLUSION, TTL=2),
        wrong('acquire', 'set_then_pexpire', KEY_BOUND, TTL=2),
        wrong('acquire', 'no_late_check', KEY_BOUND, TTL=2, BREAKS=1),
    ],
    'wrong removal': [
        wrong('acquire', 'no_rollback_of_unknown', ORPHAN, TTL=2),
        wrong('acquire', 'unordered_rollback', ORPHAN, TTL=2),
        wrong('acquire', 'removed_at_stop', EXCLUSION, TTL=2),
        wrong('acquire', 'believing_while_releasing', EXCLUSION, TTL=2),
        wrong('acquire', 'blind_rollback', EXCLUSION, TTL=1, ATTEMPTS=2),
        wrong('acquire', 'blind_release', EXCLUSION, TTL=1, ATTEMPTS=2),
    ],
    'wrong memory': [
        wrong('acquire', 'no_quarantine', EXCLUSION, TTL=2, LOSSES=1),
        wrong('acquire', 'half_quarantine', EXCLUSION, TTL=3, LOSSES=1),
        wrong('acquire', 'uptime_quarantine', EXCLUSION, TTL=2, LOSSES=1),
    ],
    'wrong extension': [
        wrong('acquire', 'extended_without_quorum', EXCLUSION, TTL=2, EXTENDS=1),
        wrong('acquire', 'extend_without_compare', EXCLUSION, TTL=2, EXTENDS=1),
        wrong('acquire', 'extend_after_deadline', ORDER, TTL=2, EXTENDS=1),
        wrong('acquire', 'extended_from_reply', EXCLUSION, TTL=2, EXTENDS=1),
        wrong('acquire', 'any_reply_extends', EXCLUSION, TTL=2, EXTENDS=1),
    ],
}

# Rounds of an extension and healing; DELETIONS are beyond the assumptions.
GROUPS |= {
    'extension holds': [
        holds('extension', 'two rounds, a loss', ROUNDS=2, LOSSES=1),
        holds('extension', 'two rounds, two deletions', ROUNDS=2, DELETIONS=2),
        holds('extension', 'four masters, two deletions', MASTERS=4, DELETIONS=2),
        holds('extension', 'five masters', MASTERS=5),
        redundant('extension', 'quarantine_unblocks', ROUNDS=2, LOSSES=1),
    ],
    'extension is not vacuous': [
        goal('extension', 'extended'),
        goal('extension', 'healed'),
        goal('extension', 'extended_in_quarantine', LOSSES=1),
        goal('extension', 'acts_after_loss', LOSSES=1),
        goal('extension', 'refused', DELETIONS=2),
        goal('extension', 'gap_hidden', DELETIONS=1),
    ],
    'wrong healing': [
        wrong('extension', 'recreated_by_extend', GAP, DELETIONS=2),
        wrong('extension', 'healed_without_blocking', GAP, DELETIONS=2),
        wrong('extension', 'silent_block_after_removal', GAP, DELETIONS=2),
        wrong('extension', 'quarantined_block_after_removal', GAP, DELETIONS=2, LOSSES=1),
        wrong('extension', 'removal_forgotten', GAP, DELETIONS=2, ROUNDS=2),
        wrong('extension', 'heal_after_deadline', GAP),
        wrong('extension', 'heal_in_quarantine', EXCLUSION, LOSSES=1),
        wrong('extension', 'removed_at_stop', EXCLUSION, LOSSES=1),
        wrong('extension', 'quarantined_not_counted', NEEDLESS, LOSSES=1),
        wrong('extension', 'silent_not_counted', NEEDLESS),
    ],
}

# ONLY=7: restarts and steps of a clock.
GROUPS |= {
    'memory holds': [
        holds('memory', 'any two faults', FAULTS=2),
        holds('memory', 'a new quorum', NEW=1),
    ],
    'memory is not vacuous': [
        goal('memory', 'succession'),
        goal('memory', 'refused_in_quarantine', FAULTS=1),
        goal('memory', 'step_refused', FAULTS=2),
        goal('memory', 'opened', NEW=1),
    ],
    'wrong record': [
        wrong('memory', 'uptime_trusted', EXCLUSION, FAULTS=1),
        wrong('memory', 'durability_trusted', EXCLUSION, FAULTS=1),
        wrong('memory', 'promotion_trusted', EXCLUSION, FAULTS=1),
        wrong('memory', 'other_run_trusted', EXCLUSION, FAULTS=1),
        wrong('memory', 'only_handshake', EXCLUSION, FAULTS=1),
        wrong('memory', 'remainder_not_counted', EXCLUSION, FAULTS=2, ONLY=7),
        wrong('memory', 'no_quarantine', EXCLUSION, FAULTS=1),
        wrong('memory', 'half_quarantine', EXCLUSION, FAULTS=1),
    ],
}

# The kinds of faults of certificate.pml: ONLY is a sum of them.
RESTART, FLUSH, BROKEN, RAISED, STEP = 1, 2, 8, 16, 32
FLUSHED = {'FAULTS': 1, 'ONLY': FLUSH}
RESTARTED = {'FAULTS': 1, 'ONLY': RESTART}
CUT_OFF = {'FAULTS': 1, 'ONLY': BROKEN}
EXTENDING = {'HELD': 1, 'ROUNDS': 1}

GROUPS |= {
    'certificate holds': [
        holds('certificate', 'any fault, a round', FAULTS=1, ROUNDS=1),
        holds('certificate', 'a new quorum', NEW=1),
    ],
    'certificate is not vacuous': [
        goal('certificate', 'succession'),
        goal('certificate', 'opened', NEW=1),
        goal('certificate', 'mismatched', **FLUSHED),
        goal('certificate', 'set_late', **EXTENDING, **CUT_OFF),
        goal('certificate', 'extended', **EXTENDING),
        goal('certificate', 'healed', **EXTENDING),
        goal('certificate', 'unvouched_refused', **EXTENDING, **FLUSHED),
        goal('certificate', 'unvouched_extended', **EXTENDING, **CUT_OFF),
        goal('certificate', 'counted_in_quarantine', **EXTENDING, **RESTARTED),
    ],
    'wrong certificate': [
        wrong('certificate', 'no_certificate', EXCLUSION, **FLUSHED),
        wrong('certificate', 'any_record_vouches', EXCLUSION, **FLUSHED),
        wrong('certificate', 'compared_with_present', EXCLUSION, **FLUSHED),
        wrong('certificate', 'id_kept', EXCLUSION, **FLUSHED),
        wrong('certificate', 'record_carried_over', EXCLUSION, **RESTARTED),
        wrong('certificate', 'queued_in_quarantine', EXCLUSION, **FLUSHED),
    ],
    'wrong count of what is unvouched': [
        wrong('certificate', 'unvouched_counted', EXCLUSION, **EXTENDING, **FLUSHED),
        wrong('certificate', 'heal_finds_and_counts', EXCLUSION, **EXTENDING, FAULTS=2, ONLY=FLUSH + BROKEN),
        wrong('certificate', 'rolled_back_in_lease', EXCLUSION, **EXTENDING, FAULTS=1, ONLY=RAISED),
    ],
}

# Lists of masters, as sums of 1, 2, 4 ...: {0, 1, 2} and {0, 1, 3} unless a case says otherwise.
ONE_IN_COMMON = {'MASTERS': 5, 'SECOND': 1 + 8 + 16}
SPELLED = {'MASTERS': 3, 'SECOND': 1 + 2 + 4, 'SPELLED': 1}
PAIRS = {'MASTERS': 3, 'FIRST': 1 + 2, 'SECOND': 1 + 4}
FOUR_AND_THREE = {'MASTERS': 5, 'FIRST': 1 + 2 + 4 + 8, 'SECOND': 1 + 2 + 16}
# Each replaces the one before.
CHAIN = {**ONE_IN_COMMON, 'SECOND': 1 + 2 + 8, 'LISTS': 3, 'THIRD': 1 + 8 + 16}

GROUPS |= {
    'founding holds': [
        holds('founding', 'two masters in common', FORGETS=1),
        holds('founding', 'one master in common', FORGETS=1, **ONE_IN_COMMON),
        holds('founding', 'a list that lacks a master', FORGETS=2, MASTERS=3, SECOND=1 + 2),
        holds('founding', 'two spellings', FORGETS=2, **SPELLED),
        holds('founding', 'the record is not compared at the vote', FORGETS=1, VIEW=1),
        holds('founding', 'the same with one master in common', FORGETS=1, VIEW=1, **ONE_IN_COMMON),
        holds('founding', 'three lists', LOCKS=0, **CHAIN),
        holds('founding', 'a second founder of one', LOCKS=0, SECOND=7, LISTS=3, THIRD=1 + 2 + 8),
    ],
    'founding is not vacuous': [
        goal('founding', 'founded'),
        goal('founding', 'returned', FORGETS=1),
        goal('founding', 'replaced'),
    ],
    'wrong founding': [
        wrong('founding', 'founded_by_majority', EXCLUSION, LOCKS=0, **ONE_IN_COMMON),
        wrong('founding', 'written_at_once', EXCLUSION),
        wrong('founding', 'not_confirmed', EXCLUSION, LOCKS=0, FORGETS=1, **PAIRS),
        wrong('founding', 'agreed_replaced', EXCLUSION, **ONE_IN_COMMON),
        wrong('founding', 'final_replaced', EXCLUSION, **ONE_IN_COMMON),
        wrong('founding', 'id_not_compared', EXCLUSION, **ONE_IN_COMMON),
        wrong('founding', 'replaced_unread', EXCLUSION, **ONE_IN_COMMON),
        wrong('founding', 'unfinished_counts', EXCLUSION),
        wrong('founding', 'returned_without_evidence', EXCLUSION, FORGETS=1),
        wrong('founding', 'any_list_served', EXCLUSION, MASTERS=3, SECOND=1),
        wrong('founding', 'no_quarantine', EXCLUSION, FORGETS=1, MASTERS=3, SECOND=1 + 2 + 4),
        # Without the second step: not even a number of masters to read before another list is replaced is enough.
        wrong('founding', 'agreed_skipped', EXCLUSION, **ONE_IN_COMMON),
        wrong('founding', 'counted', EXCLUSION, **FOUR_AND_THREE),
        wrong('founding', 'counted', EXCLUSION, LOCKS=0, **CHAIN),
        # All masters that two lists have in common must not lose their records.
        beyond('founding', 'nothing in common is left', EXCLUSION, FORGETS=1, ALL=1, **ONE_IN_COMMON),
    ],
}

# Of the members {0, 1, 2}, or {0, 1, 2, 3}: another one is added, or the last one is removed; then another one is
# removed, or added. Sums as above.
ADDED_TO_FOUR = {'BEFORE': 1 + 2 + 4 + 8, 'AFTER': 1 + 2 + 4 + 8 + 16, 'MASTERS': 5}
REMOVED = {'AFTER': 1 + 2, 'MASTERS': 3}
REMOVED_OF_FOUR = {'BEFORE': 1 + 2 + 4 + 8, 'AFTER': 1 + 2 + 4}
ADDED_REMOVED = {'LATER': 2 + 4 + 8}
REMOVED_ADDED = {'AFTER': 1 + 2, 'LATER': 1 + 2 + 8}
SAME_ADDED = {**REMOVED, 'LATER': 1 + 2 + 4}
TWO_REMOVED = {**REMOVED_OF_FOUR, 'LATER': 1 + 2}
TWO_REMOVED_OF_FIVE = {'BEFORE': 1 + 2 + 4 + 8 + 16, 'AFTER': 1 + 2 + 4 + 8, 'LATER': 1 + 2 + 4, 'MASTERS': 5}
# Rivals: one removes a master, and the other another one, or adds one.
BOTH_REMOVE = {'AFTER': 1 + 4, 'RIVAL': 2 + 4, 'MASTERS': 3}
ADD_OR_REMOVE = {'RIVAL': 2 + 4}
BOTH_ADD = {'RIVAL': 1 + 2 + 4 + 16, 'MASTERS': 5}
# The same after another change.
ADDED_BOTH_REMOVE = {**ADDED_REMOVED, 'LATER_RIVAL': 1 + 4 + 8}
REMOVED_BOTH_REMOVE = {**TWO_REMOVED, 'LATER_RIVAL': 1 + 4}
AGREE = {'FORGETS': 2, 'LOCKS': 0}

GROUPS |= {
    'changes hold': [
        holds('changes', 'one is added', FORGETS=1, ROUNDS=1),
        holds('changes', 'one is added to four', FORGETS=1, **ADDED_TO_FOUR),
        holds('changes', 'one of three is removed', FORGETS=1, ROUNDS=1, **REMOVED),
        holds('changes', 'one of four is removed', FORGETS=1, ROUNDS=1, **REMOVED_OF_FOUR),
        holds('changes', 'with two looks', FORGETS=1, LOOKS=1),
    ],
    'two changes hold': [
        holds('changes', 'one is added, another removed', FORGETS=1, **ADDED_REMOVED),
        holds('changes', 'one is removed, another added', FORGETS=1, **REMOVED_ADDED),
        holds('changes', 'one is removed, and added', FORGETS=2, **SAME_ADDED),
    ],
    'rivals hold': [
        holds('changes', 'both remove one', FORGETS=2, **BOTH_REMOVE),
        holds('changes', 'one adds, one removes', ROUNDS=1, **ADD_OR_REMOVE),
        holds('changes', 'rivals after an addition', **AGREE, **ADDED_BOTH_REMOVE),
        holds('changes', 'rivals after a removal', **AGREE, **REMOVED_BOTH_REMOVE),
        holds('changes', 'rivals with two looks', LOOKS=1, **AGREE, **BOTH_REMOVE),
        holds('changes', 'a majority promises', MAJORITY_PROMISES=1, **AGREE, **ADD_OR_REMOVE),
    ],
    'changes are not vacuous': [
        goal('changes', 'changed'),
        goal('changes', 'changed_twice', **ADDED_REMOVED),
        goal('changes', 'carried_over', ROUNDS=2),
        goal('changes', 'rival_won', LOCKS=0, **BOTH_REMOVE),
        goal('changes', 'returned_promised', FORGETS=1),
        goal('changes', 'returned_among_rivals', FORGETS=1, LOCKS=0, **ADD_OR_REMOVE),
    ],
    'wrong steps': [
        wrong('changes', 'committed_at_once', EXCLUSION, **ADDED_REMOVED),
        wrong('changes', 'behind_served', EXCLUSION, **ADDED_REMOVED),
        wrong('changes', 'no_quarantine', EXCLUSION, FORGETS=1),
        wrong('changes', 'new_member_not_quarantined', EXCLUSION, FORGETS=1, **SAME_ADDED),
        # No change may leave one member.
        beyond('changes', 'down to one', EXCLUSION, LATER=1, **REMOVED),
    ],
    'wrong promises': [
        wrong('changes', 'promise_overwritten', AGREED, LOCKS=0, **BOTH_REMOVE),
        wrong('changes', 'promised_by_majority', AGREED, FORGETS=1, LOCKS=0, **ADD_OR_REMOVE),
        wrong('changes', 'written_on_any_blank', AGREED, **AGREE, **ADDED_BOTH_REMOVE),
        wrong('changes', 'no_second_look', AGREED, LOOKS=1, FORGETS=1, LOCKS=0, **BOTH_REMOVE),
        wrong('changes', 'id_not_compared', AGREED, LOOKS=1, **AGREE, **BOTH_REMOVE),
        wrong('changes', 'rest_not_seen_again', AGREED, LOOKS=1, **AGREE, **BOTH_REMOVE),
    ],
    'wrong return': [
        wrong('changes', 'read_from_one', AGREED, FORGETS=1, LOCKS=0, **BOTH_REMOVE),
        wrong('changes', 'read_before_blank', AGREED, FORGETS=1, LOCKS=0, **BOTH_REMOVE),
        wrong('changes', 'rival_taken', AGREED, FORGETS=1, LOCKS=0, **BOTH_REMOVE),
        wrong('changes', 'old_members_read', AGREED, FORGETS=1, LOCKS=0, **REMOVED_BOTH_REMOVE),
    ],
}

# A lease that an operator deletes a key of, another reader, and an owner.
DELETED = {'READERS': 2, 'DELETIONS': 1, 'ROUNDS': 1}
# Two owners, who become readers.
DOWNGRADED = {'READERS': 0, 'OWNERS': 2, 'DOWNGRADES': 1}

GROUPS |= {
    'readers hold': [
        holds('readers', 'two readers, an owner', READERS=2, ROUNDS=1, WHOLE=1),
        holds('readers', 'the key ends with its entries', READERS=2, ROUNDS=1, GRACE=0),
        holds('readers', 'a reader, two owners', OWNERS=2, ROUNDS=1, DOWNGRADES=1),
        holds('readers', 'a downgrade beside readers', READERS=2, DOWNGRADES=1, WHOLE=1),
        holds('readers', 'a loss', READERS=2, LOSSES=1, WHOLE=1),
        holds('readers', 'a loss, a round', LOSSES=1, ROUNDS=1, DOWNGRADES=1, WHOLE=1),
        holds('readers', 'a loss, two downgrades', LOSSES=1, ROUNDS=1, GRACE=0, **DOWNGRADED),
        holds('readers', 'a waiter sets the intent', READERS=2, INTENTS=1),
        holds('readers', 'a deletion', DOWNGRADES=1, **DELETED),
    ],
    'readers are not vacuous': [
        goal('readers', 'two_readers', READERS=2),
        goal('readers', 'reader_after_owner'),
        goal('readers', 'owner_after_readers', READERS=2),
        goal('readers', 'two_owners', OWNERS=2),
        goal('readers', 'downgraded_beside_reader', DOWNGRADES=1),
        goal('readers', 'extended', ROUNDS=1),
        goal('readers', 'healed', ROUNDS=1),
        goal('readers', 'late_entry'),
        goal('readers', 'late_key'),
        goal('readers', 'shortened', READERS=2),
        goal('readers', 'unvouched_refused', LOSSES=1, ROUNDS=1, DOWNGRADES=1),
        goal('readers', 'comes_after_intent', READERS=2, INTENTS=1),
        goal('readers', 'refused_to_heal', **DELETED),
        goal('readers', 'gap_hidden', **DELETED),
    ],
    'wrong keys of readers': [
        wrong('readers', 'set_beside_readers', BESIDE),
        wrong('readers', 'read_beside_owner', BESIDE),
        wrong('readers', 'deleted_beside_reader', BESIDE, READERS=2),
        wrong('readers', 'shortened_by_release', BESIDE, READERS=2),
        wrong('readers', 'shortened_by_acquire', BESIDE, READERS=2),
        wrong('readers', 'not_prolonged', BESIDE, ROUNDS=1, TTL=3),
        wrong('readers', 'value_is_token', BESIDE, OWNERS=2),
        wrong('readers', 'value_left_behind', LEFT_BEHIND, WHOLE=1),
        wrong('readers', 'downgrade_in_two_steps', BESIDE, DOWNGRADES=1, OWNERS=2),
        wrong('readers', 'intent_ignored', OVERTAKEN, READERS=2, INTENTS=1),
    ],
    'wrong leases of readers': [
        wrong('readers', 'readers_heal_over_owner', BESIDE, ROUNDS=1, GRACE=0),
        wrong('readers', 'owner_heals_over_readers', BESIDE, ROUNDS=1),
        wrong('readers', 'no_quarantine', BESIDE, LOSSES=1),
        wrong('readers', 'heal_in_quarantine', BESIDE, LOSSES=1, ROUNDS=1),
        wrong('readers', 'downgrade_vouches', BESIDE, LOSSES=1, ROUNDS=1, GRACE=0, **DOWNGRADED),
        wrong('readers', 'entry_is_enough', GAP, **DELETED),
        wrong('readers', 'stale_entries_kept', GAP, **DELETED),
        wrong('readers', 'stale_entries_downgraded', GAP, DOWNGRADES=1, **DELETED),
        wrong('readers', 'healed_without_blocking', GAP, **DELETED),
    ],
}

FORGETS = {'TTL': 1, 'LOSSES': 1, 'COUNTERS': 1, 'HORIZON': 4}
# Clients propose the value from which a missing counter starts.
FIRST = {'TTL': 1, 'COUNTERS': 0}
FROM_ONE = 255

# Replies that take time make many states; the shortest counterexamples are 12 steps and more.
GROUPS |= {
    'fencing holds': [
        holds('fencing', 'two clients', TTL=1),
        holds('fencing', 'a master loses its data', **FORGETS, OFFSET=0),
        holds('fencing', 'missing counters', TTL=1, COUNTERS=0, HORIZON=2),
        holds('fencing', 'missing counters start from one value', HORIZON=2, STARTS=1, **FIRST),
    ],
    'fencing is not vacuous': [
        goal('fencing', 'succession', TTL=1),
        goal('fencing', 'raised', TTL=1),
        goal('fencing', 'raise_refused', TTL=1),
        goal('fencing', 'reseeded', **FORGETS),
        goal('fencing', 'refused_in_quarantine', **FORGETS),
        goal('fencing', 'first_taken', HORIZON=2, STARTS=1, **FIRST),
    ],
    'wrong raise': [
        wrong('fencing', 'no_raise', RISING, TTL=1),
        wrong('fencing', 'raise_not_awaited', RISING, TTL=1),
        wrong('fencing', 'minimum', RISING, TTL=1),
        wrong('fencing', 'deadline_restarted_at_raise', ASSERTION, TTL=2),
        wrong('fencing', 'raise_counted_late', ASSERTION, TTL=1),
    ],
    'wrong counters': [
        wrong('fencing', 'counter_restarts', RISING, **FORGETS, OFFSET=0),
        wrong('fencing', 'stale_counter_trusted', RISING, **FORGETS, OFFSET=0),
        wrong('fencing', 'no_quarantine', ASSERTION, **FORGETS, OFFSET=0),
        wrong('fencing', 'counter_deleted_with_lock', RISING, TTL=1, COUNTERS=0, HORIZON=2),
        wrong('fencing', 'first_below_clock', RISING, LOSSES=1, HORIZON=4, OFFSET=0, STARTS=FROM_ONE, **FIRST),
        wrong('fencing', 'first_without_limit', RISING, LOSSES=1, HORIZON=4, OFFSET=0, STARTS=4, **FIRST),
    ],
    # Rules that the rest makes redundant: without them no error either, at this scope.
    'redundant in fencing': [
        redundant('fencing', 'raise_without_lock_check', TTL=1),
        redundant('fencing', 'raise_accepts_above', TTL=1),
    ],
    'beyond the assumptions': [
        holds('fencing', 'tokens differ when a clock leaps', TTL=1, STEPS=1),
        wrong('fencing', 'raise_without_lock_check', UNIQUE, TTL=1, STEPS=1),
        # Each of these assumptions is needed.
        beyond('memory', 'a replica while connected', EXCLUSION, FAULTS=1, CONNECTED=1),
        beyond('memory', 'a server comes back', EXCLUSION, FAULTS=1, RETURNS=1),
        beyond('memory', 'a step before the handshake', EXCLUSION, FAULTS=2, ONLY=7, UNNOTICED=1),
    ],
}

LARGE = [
    holds('acquire', 'two attempts', TTL=2, ATTEMPTS=2, OTHERS_ATTEMPTS=2),
    holds('acquire', 'loses its data, and a connection breaks', TTL=2, LOSSES=1, BREAKS=1),
    holds('acquire', 'extension and memory', TTL=3, EXTENDS=1, LOSSES=1),
    holds('acquire', 'extension, a connection breaks', TTL=2, EXTENDS=1, BREAKS=1),
    holds('acquire', 'three clients', TTL=2, CLIENTS=3),
    holds('extension', 'deletions and losses', ROUNDS=2, DELETIONS=2, LOSSES=1),
    holds('extension', 'more time', TTL=3, ROUNDS=2, DELETIONS=2),
    holds('extension', 'four masters, a loss', MASTERS=4, ROUNDS=2, LOSSES=1),
    holds('extension', 'five masters, a loss', MASTERS=5, LOSSES=1),
    holds('extension', 'five masters, two deletions', MASTERS=5, DELETIONS=2),
    holds('memory', 'any three faults', FAULTS=3),
    holds('memory', 'more time', FAULTS=2, TTL=3),
    holds('certificate', 'any two faults, a round', FAULTS=2, ROUNDS=1),
    holds('certificate', 'any fault, two rounds', HELD=1, FAULTS=1, ROUNDS=2),
    holds('certificate', 'two attempts', FAULTS=1, ATTEMPTS=2),
    beyond('certificate', 'a step before a heal', EXCLUSION, **EXTENDING, FAULTS=2, ONLY=FLUSH + STEP),
    holds('certificate', 'a step, counted here as well', **EXTENDING, FAULTS=2, ONLY=FLUSH + STEP, WAITS=1),
    redundant('certificate', 'vouched_by_heal', HELD=1, ROUNDS=2, FAULTS=2, ONLY=FLUSH + BROKEN),
    wrong('certificate', 'certificate_carried_over', EXCLUSION, FAULTS=2, ONLY=FLUSH + RESTART),
    wrong('certificate', 'record_adopted', EXCLUSION, **FLUSHED, ATTEMPTS=2),
    wrong('certificate', 'vouched_by_missing', EXCLUSION, HELD=1, ROUNDS=2, FAULTS=2, ONLY=FLUSH + BROKEN),
    holds('founding', 'two losses', FORGETS=2),
    redundant('founding', 'returned_by_one', FORGETS=2),
    holds('changes', 'one is added, two losses', FORGETS=2),
    holds('changes', 'one of four is removed, two losses', FORGETS=2, **REMOVED_OF_FOUR),
    holds('changes', 'one is added, another removed, and a round', FORGETS=1, ROUNDS=1, **ADDED_REMOVED),
    holds('changes', 'one is added, another removed, two losses', FORGETS=2, **ADDED_REMOVED),
    holds('changes', 'one is removed, another added, and a round', FORGETS=1, ROUNDS=1, **REMOVED_ADDED),
    holds('changes', 'one is removed, another added, two losses', FORGETS=2, **REMOVED_ADDED),
    holds('changes', 'two are added to three', FORGETS=1, LATER=1 + 2 + 4 + 8 + 16, MASTERS=5),
    holds('changes', 'two are removed of four', FORGETS=1, **TWO_REMOVED),
    holds('changes', 'two are removed of five', FORGETS=1, **TWO_REMOVED_OF_FIVE),
    holds('changes', 'one becomes three', FORGETS=1, ROUNDS=1, BEFORE=1, AFTER=1 + 2, LATER=1 + 2 + 4, MASTERS=3),
    holds('changes', 'two become four', FORGETS=1, BEFORE=1 + 2, AFTER=1 + 2 + 4, LATER=1 + 2 + 4 + 8),
    holds('changes', 'one adds, one removes, and a round', FORGETS=1, ROUNDS=1, **ADD_OR_REMOVE),
    holds('changes', 'the same, with two looks', LOOKS=1, **AGREE, **ADD_OR_REMOVE),
    holds('changes', 'both add one', **AGREE, **BOTH_ADD),
    holds('changes', 'rivals after an addition', FORGETS=1, **ADDED_BOTH_REMOVE),
    holds('changes', 'rivals after a removal', FORGETS=1, **REMOVED_BOTH_REMOVE),
    holds('changes', 'a majority, two changes', MAJORITY_PROMISES=1, FORGETS=1, **ADDED_REMOVED),
    holds('changes', 'a majority, two other changes', MAJORITY_PROMISES=1, FORGETS=1, **REMOVED_ADDED),
    holds('changes', 'a majority, rivals', MAJORITY_PROMISES=1, FORGETS=2, **BOTH_REMOVE),
    holds('changes', 'a majority, both add one', MAJORITY_PROMISES=1, **AGREE, **BOTH_ADD),
    holds('changes', 'a majority, with two looks', MAJORITY_PROMISES=1, LOOKS=1, **AGREE, **BOTH_REMOVE),
    redundant('changes', 'votes_added_up', FORGETS=1, **ADDED_REMOVED),
    redundant('changes', 'votes_added_up', FORGETS=1, ROUNDS=1, **REMOVED_ADDED),
    redundant('changes', 'new_member_does_not_promise', FORGETS=1, **ADDED_REMOVED),
    redundant('changes', 'new_member_does_not_promise', **AGREE, **ADDED_BOTH_REMOVE),
    redundant('changes', 'healed_without_blocking', ROUNDS=1, **ADDED_REMOVED),
    holds('readers', 'two readers, a round, a downgrade', READERS=2, ROUNDS=1, DOWNGRADES=1),
    holds('readers', 'a loss, two rounds', LOSSES=1, ROUNDS=2, DOWNGRADES=1),
    holds('readers', 'two readers, a loss, a round', READERS=2, LOSSES=1, ROUNDS=1),
    holds('readers', 'a deletion, two rounds', **{**DELETED, 'ROUNDS': 2}),
    holds('readers', 'more time', READERS=2, TTL=3, ROUNDS=1),
    holds('fencing', 'more history and time', TTL=2, COUNTERS=3),
    holds('fencing', 'two attempts', TTL=1, ATTEMPTS=2, COUNTERS=2),
    holds('fencing', 'a master loses its data, clocks differ', **FORGETS),
    wrong('fencing', 'offset_counted_once', RISING, LOSSES=1, HORIZON=4, STARTS=2, **FIRST),
    holds('fencing', 'a connection breaks', TTL=1, BREAKS=1),
    redundant('fencing', 'raise_without_lock_check', TTL=1, BREAKS=1),
    redundant('fencing', 'raise_without_lock_check', **FORGETS),
    redundant('fencing', 'raise_accepts_above', **FORGETS),
]

# Each of these must be found failing.
SELF_TEST = [
    Case('acquire', 'a broken rule, said to hold', {'WRONG': 'quorum_half', 'TTL': 2}, holds=True),
    Case('acquire', 'the protocol, said to be wrong', {'TTL': 2}),
    Case('acquire', 'another error than expected', {'WRONG': 'quorum_half', 'TTL': 2}, expect=ORDER),
    Case('acquire', 'a search cut short', {'TTL': 3, 'DRIFTS': 1}, holds=True, memory=20),
]
