/* Readers and exclusive owners of one resource: the lock's own key has a fixed value while readers have it, so
 * that a bare SET NX is refused beside them. Entries of readers, their extension and healing, a downgrade, lost
 * memory, late commands, the intent of a waiter.
 * test/model/README.md says what is left out, and why that is safe.
 *
 * Scope, by cases.py:  READERS, OWNERS: clients that acquire as such, once; ROUNDS of extension, of all clients
 *                      together; DOWNGRADES=1: an owner may become a reader; LOSSES of memory; TTL in ticks
 *                      GRACE: ticks by which the key outlives the last entry
 *                      INTENTS=1: an owner that meets readers sets the intent
 *                      WHOLE=1: a run continues until all clients have finished, to check all keys
 *                      DELETIONS of a key by an operator, beyond the assumptions; the first reader has a lease
 *                      then, and only that is extended
 */

#define MASTERS 3

#include "common.pml"

/* Of the CLIENTS the readers are first. */
#define QUORUM 2
#define BLOCKING (MASTERS - QUORUM + 1)
#define QUARANTINE (wrong(no_quarantine) -> 0 : TTL + 1)

/* What can be wrong. */
#define deleted_beside_reader 1 /* a release deletes the key while entries remain */
#define shortened_by_release 2 /* the key, to the end of the entry that is removed */
#define shortened_by_acquire 3 /* the key ends with the first entry */
#define not_prolonged 4 /* an extension prolongs the entry, and not the key */
#define value_is_token 5 /* the rollback of an owner deletes a key with the readers' value */
#define entry_is_enough 6 /* an extension looks at the entry only */
#define stale_entries_kept 7 /* by whoever finds the key missing */
#define downgrade_in_two_steps 8
#define downgrade_vouches 9 /* for a key whose SET was not vouched for */
#define readers_heal_over_owner 10
#define owner_heals_over_readers 11
#define value_left_behind 12
#define intent_ignored 13
#define no_quarantine 14
#define heal_in_quarantine 15
#define set_beside_readers 16 /* readers do not write the key: as before */
#define read_beside_owner 17 /* a reader does not look at the key's value */
#define healed_without_blocking 18
#define stale_entries_downgraded 19 /* kept by a downgrade */

/* What must be reachable. */
#define two_readers 1
#define reader_after_owner 2
#define owner_after_readers 3
#define downgraded_beside_reader 4
#define two_owners 5 /* one after the other */
#define extended 6 /* a reader's lease, past its first deadline */
#define healed 7 /* a healed entry was the vote that moved the deadline */
#define late_entry 8 /* an entry for an attempt that was rolled back */
#define late_key 9
#define shortened 10 /* a key, to what the remaining readers need */
#define unvouched_refused 11 /* an entry that was downgraded from an unvouched key is there, and is not counted */
#define comes_after_intent 12
#define refused_to_heal 13
#define gap_hidden 14 /* silence hid that somebody else had the lock */

/* Keys: the token of client c is c + 1. */
#define VALUE 9
#define TOKEN(c) ((c) + 1)

/* EXTEND or HEAL in flight. */
#define none 0
#define to_extend 1
#define to_heal 2

/* A downgrade in flight. */
#define to_swap 1
#define to_add 2 /* the second step of a wrong one */

/* The reply of a master in the present round, with DELETIONS. */
#define silent 0
#define still_there 1
#define missing 2
#define foreign 3
#define quarantined 4

typedef Master {
    byte owner; /* or VALUE */
    byte left; /* ticks until it expires */
    byte intent; /* the same */
    byte quarantine; /* ticks until it may vote */
    byte said; /* to the first client */
    byte blocks; /* ticks for which it cannot have voted for another owner than that client */
    byte entry[CLIENTS]; /* ticks until it ends */
    byte ends[CLIENTS]; /* ticks until its vote ends */
    bit acquires[CLIENTS]; /* an acquire is in flight */
    bit unvouched[CLIENTS];
    byte asked[CLIENTS];
    byte swaps[CLIENTS];
};
Master master[MASTERS];

mtype = { idle, asking, held, over };
mtype phase[CLIENTS] = idle;
bit shared[CLIENTS];
byte validity[CLIENTS]; /* of the acquire; a reader's is not executed past it */
byte rest[CLIENTS]; /* of the present round */
byte acting[CLIENTS]; /* ticks until the last deadline that the holder ever believed in */
bit passing[CLIENTS]; /* a reader that came after the intent of a waiter */
byte rounds = ROUNDS;
byte losses = LOSSES;
byte deletions = DELETIONS;
bit judged = 1;
bit removal_seen;
bit unseen; /* a heal was sent although a master was silent, or a key was deleted after its master's reply */
bit succeeded; /* an owner had the lock since the first client's lease was extended last */
bit shared_before; /* for the goals */
bit owned_before;

/* Scratch, 0 between steps. */
byte i;
byte j;
byte deadline;
byte largest;
byte readers;
byte owners;

#define COUNTED(c) ((master[0].ends[c] > 0) + (master[1].ends[c] > 0) + (master[2].ends[c] > 0))
#define LATE_ENOUGH(c) \
    ((master[0].ends[c] >= deadline) + (master[1].ends[c] >= deadline) + (master[2].ends[c] >= deadline))
#define HAS_INTENT(m) (master[m].intent > 0)
#define HAS_SAID(m) (master[m].said != silent)
#define IS_MISSING(m) (master[m].said == missing)
#define IS_BUSY(m) (master[m].asked[0] != none)
#define IS_BLOCKING(m) \
    (master[m].said == still_there || \
        (!removal_seen && (master[m].said == quarantined || (master[m].said == silent && master[m].blocks > 0))))

#if CLIENTS == 2
#define ALL(op, what) (what(0) op what(1))
#else
#define ALL(op, what) (what(0) op what(1) op what(2))
#endif
#define IS_OPEN(c) (phase[c] != over)
#define IS_OPEN_OWNER(c) (phase[c] != over && !shared[c])
#define READS(c) (acting[c] > 0 && shared[c])
#define OWNS(c) (acting[c] > 0 && !shared[c])

/* From here on nothing that is checked can go wrong: a single client is left. */
#define THROUGH \
    (GOAL == nothing && \
        (ALL(+, IS_OPEN) <= 1 - WHOLE || (DELETIONS > 0 && phase[0] == over)))

inline find_largest(m)
{
    largest = 0;
    for (j : 0 .. CLIENTS - 1) {
        largest = (master[m].entry[j] > largest -> master[m].entry[j] : largest)
    }
}

/* Ends each step: drops what can never have an effect again. */
inline settle()
{
    for (i : 0 .. MASTERS - 1) {
        find_largest(i);
        /* The value is not left behind. */
        assert(master[i].owner != VALUE || master[i].left <= largest + GRACE);
        /* While an entry is alive the key has the value, and outlives the entry. */
        assert(largest == 0 || (master[i].owner == VALUE && master[i].left >= largest + GRACE) ||
            DELETIONS > 0 || WRONG != nothing)
    }
    for (j : 0 .. CLIENTS - 1) {
        phase[j] = ((phase[j] == asking && validity[j] == 0) || (phase[j] == held && acting[j] == 0) ->
            over : phase[j]);
        if
        :: phase[j] == over ->
            rest[j] = 0;
            acting[j] = 0;
            passing[j] = 0;
            validity[j] = (j < READERS -> validity[j] : 0)
        :: else
        fi;
        clear(validity[j], phase[j] == over &&
            !master[0].acquires[j] && !master[1].acquires[j] && !master[2].acquires[j]);
        for (i : 0 .. MASTERS - 1) {
            if
            :: phase[j] == over ->
                master[i].ends[j] = 0;
                master[i].unvouched[j] = 0;
                master[i].asked[j] = 0
            :: else
            fi;
            clear(master[i].acquires[j], j < READERS && validity[j] == 0);
            clear(master[i].asked[j], rest[j] == 0);
            clear(master[i].swaps[j],
                !master[i].acquires[j] && master[i].swaps[j] == to_swap && master[i].owner != TOKEN(j));
            clear(master[i].unvouched[j], rounds == 0 &&
                master[i].asked[j] == none && master[i].swaps[j] == none && !master[i].acquires[j])
        }
    }
    if
    :: DELETIONS > 0 && rounds == 0 && judged && EVERY(+, IS_BUSY) == 0 ->
        for (i : 0 .. MASTERS - 1) {
            master[i].said = silent;
            master[i].blocks = 0
        };
        removal_seen = 0;
        unseen = 0;
        phase[0] = (GOAL == nothing -> over : phase[0])
    :: else
    fi;
    if
    :: THROUGH ->
        reset(master);
        reset(shared);
        reset(validity);
        reset(rest);
        reset(acting);
        reset(passing);
        for (j : 0 .. CLIENTS - 1) {
            phase[j] = over
        };
        rounds = 0;
        losses = 0;
        deletions = 0;
        judged = 1;
        removal_seen = 0;
        unseen = 0;
        succeeded = 0
    :: else
    fi;
    i = 0;
    j = 0;
    deadline = 0;
    largest = 0;
    readers = 0;
    owners = 0;
    sort_masters()
}

/* Two readers may hold at once. After a deletion nothing prevents an owner beside a reader; what is left to
 * show is that the reader's lease does not continue after the owner's. */
inline check_exclusion()
{
    readers = ALL(+, READS);
    owners = ALL(+, OWNS);
    assert(owners == 0 || owners + readers == 1 || DELETIONS > 0);
    if
    :: readers > 1 ->
        reached(two_readers);
        for (j : READERS .. CLIENTS - 1) {
            assert(GOAL != downgraded_beside_reader || !READS(j))
        }
    :: else
    fi;
    assert(GOAL != reader_after_owner || readers == 0 || !owned_before);
    assert(GOAL != owner_after_readers || owners == 0 || !shared_before);
    assert(GOAL != two_owners || owners == 0 || !owned_before)
}

inline move_deadline(c)
{
    find_deadline(LATE_ENOUGH(c) < QUORUM);
    if
    :: deadline > acting[c] ->
        printf("client %d has the lock for %d ticks\n", c, deadline);
        acting[c] = deadline;
        check_exclusion();
        succeeded = succeeded || (phase[c] == asking && DELETIONS > 0 && !shared[c]);
        if
        :: DELETIONS > 0 && c == 0 ->
            assert(!succeeded || unseen);
            assert(GOAL != gap_hidden || !succeeded);
            succeeded = 0
        :: else
        fi;
        if
        :: phase[c] == asking ->
            assert(!passing[c]);
            phase[c] = held
        :: else
        fi
    :: else
    fi
}

inline count_vote(m, c, until)
{
    master[m].ends[c] = (master[m].ends[c] > until -> master[m].ends[c] : until);
    if
    :: DELETIONS > 0 && c == 0 ->
        master[m].said = still_there;
        master[m].blocks = (master[m].blocks > until -> master[m].blocks : until)
    :: else
    fi;
    move_deadline(c)
}

inline count_removal(m, c, what)
{
    master[m].ends[c] = 0;
    if
    :: DELETIONS > 0 && c == 0 ->
        master[m].said = what;
        if
        :: what != quarantined ->
            removal_seen = removal_seen || master[m].blocks > 0;
            master[m].blocks = 0
        :: else
        fi
    :: else
    fi
}

/* The scripts, on master m. A refusal of an acquire is the same as an acquire that is not executed yet. */

inline empty_entries(m)
{
    for (j : 0 .. CLIENTS - 1) {
        master[m].entry[j] = 0
    }
}

inline add_entry(m, c)
{
    if
    :: master[m].owner == 0 && !wrong(stale_entries_kept) -> empty_entries(m)
    :: else
    fi;
    master[m].entry[c] = TTL;
    if
    :: wrong(set_beside_readers)
    :: else ->
        master[m].left =
            (master[m].left > TTL + GRACE || (wrong(shortened_by_acquire) && master[m].left > 0) -> 
                    master[m].left : TTL + GRACE);
        master[m].owner = VALUE
    fi
}

#define MAY_READ(m) \
    (master[m].owner == 0 || master[m].owner == VALUE || wrong(read_beside_owner))
#define MAY_VOTE(m) (master[m].quarantine == 0)

inline acquire_shared(m, c)
{
    printf("master %d grants to reader %d\n", m, c);
    master[m].acquires[c] = 0;
    assert(GOAL != late_entry || phase[c] != over);
    if
    :: wrong(read_beside_owner) && master[m].owner != 0 && master[m].owner != VALUE -> master[m].entry[c] = TTL
    :: else -> add_entry(m, c)
    fi;
    if
    :: phase[c] != over && validity[c] > 0 -> count_vote(m, c, validity[c])
    :: else
    fi
}

/* It looks at nothing but the key. The certificate after it does: without that it is no vote. */
inline acquire_exclusive(m, c)
{
    printf("master %d executes SET of client %d\n", m, c);
    master[m].acquires[c] = 0;
    assert(GOAL != late_key || phase[c] != over);
    master[m].owner = TOKEN(c);
    master[m].left = TTL;
    if
    :: phase[c] != over && validity[c] > 0 && !shared[c] && MAY_VOTE(m) ->
        master[m].unvouched[c] = 0;
        count_vote(m, c, validity[c])
    :: else
    fi
}

/* The key of an unvouched SET counts where nothing can have been forgotten. */
#define COUNTS(m, c) (!master[m].unvouched[c] || master[m].quarantine == 0)
#define IS_THERE(m, c) \
    (shared[c] -> \
        (master[m].entry[c] > 0 && (master[m].owner == VALUE || wrong(entry_is_enough) || wrong(set_beside_readers))) : \
        master[m].owner == TOKEN(c))
#define MAY_HEAL(m, c) \
    ((master[m].quarantine == 0 || wrong(heal_in_quarantine)) && \
        (master[m].owner == 0 || (shared[c] && (master[m].owner == VALUE || wrong(readers_heal_over_owner))) || \
            (!shared[c] && (master[m].owner == TOKEN(c) || wrong(owner_heals_over_readers)))))

#define IS_QUARANTINED(m) (master[m].quarantine > 0 && (master[m].owner == 0 || master[m].owner == VALUE))

inline extend(m, c, counted)
{
    master[m].asked[c] = none;
    if
    :: IS_THERE(m, c) ->
        if
        :: shared[c] ->
            master[m].entry[c] = TTL;
            master[m].left =
                (master[m].left > TTL + GRACE || wrong(not_prolonged) || master[m].owner != VALUE ->
                        master[m].left : TTL + GRACE)
        :: else -> master[m].left = (master[m].left > TTL -> master[m].left : TTL)
        fi;
        if
        :: counted && COUNTS(m, c) ->
            printf("master %d, client %d: still there\n", m, c);
            count_vote(m, c, rest[c]);
            assert(GOAL != extended || !shared[c] || validity[c] > 0)
        :: counted && !COUNTS(m, c) ->
            printf("master %d, client %d: there, but not vouched for\n", m, c);
            assert(GOAL != unvouched_refused || !shared[c])
        :: else
        fi
    :: !IS_THERE(m, c) && MAY_HEAL(m, c) ->
        printf("master %d, client %d: missing\n", m, c);
        count_removal(m, c, missing);
        master[m].asked[c] = (DELETIONS > 0 -> none : to_heal)
    :: !IS_THERE(m, c) && !MAY_HEAL(m, c) && IS_QUARANTINED(m) ->
        printf("master %d, client %d: quarantined\n", m, c);
        count_removal(m, c, quarantined)
    :: else ->
        printf("master %d, client %d: another owner's\n", m, c);
        count_removal(m, c, foreign)
    fi
}

inline heal(m, c, counted)
{
    master[m].asked[c] = none;
    if
    :: MAY_HEAL(m, c) ->
        printf("master %d heals for client %d\n", m, c);
        if
        :: shared[c] -> add_entry(m, c)
        :: else ->
            master[m].owner = TOKEN(c);
            master[m].left = (master[m].left > TTL -> master[m].left : TTL)
        fi;
        if
        :: counted && (DELETIONS == 0 || EVERY(+, IS_BLOCKING) >= BLOCKING || wrong(healed_without_blocking)) ->
            count_vote(m, c, rest[c]);
            assert(GOAL != healed || !shared[c] || acting[c] <= validity[c] || LATE_ENOUGH(c) > QUORUM)
        :: else
        fi
    :: else -> count_removal(m, c, (master[m].quarantine > 0 -> quarantined : foreign))
    fi
}

/* The entry gets the remaining lease. */
inline swap(m, c)
{
    if
    :: master[m].swaps[c] == to_swap && wrong(downgrade_in_two_steps) ->
        printf("master %d deletes the key of client %d\n", m, c);
        delete_key(m);
        master[m].swaps[c] = to_add
    :: master[m].swaps[c] == to_swap && !wrong(downgrade_in_two_steps) ->
        printf("master %d swaps the token of client %d\n", m, c);
        if
        :: !wrong(stale_entries_downgraded) -> empty_entries(m)
        :: else
        fi;
        master[m].entry[c] = master[m].left;
        master[m].left = master[m].left + GRACE;
        master[m].owner = VALUE;
        master[m].swaps[c] = none;
        master[m].unvouched[c] = (wrong(downgrade_vouches) -> 0 : master[m].unvouched[c])
    :: else ->
        printf("master %d adds the entry of client %d\n", m, c);
        master[m].swaps[c] = none;
        add_entry(m, c)
    fi
}

inline release(m, c)
{
    printf("master %d removes for client %d\n", m, c);
    if
    :: master[m].owner == TOKEN(c) || (master[m].owner == VALUE && master[m].entry[c] == 0) ->
        delete_key(m)
    :: else ->
        deadline = master[m].entry[c];
        master[m].entry[c] = 0;
        find_largest(m);
        if
        :: master[m].owner == VALUE && (largest == 0 || wrong(deleted_beside_reader)) && !wrong(value_left_behind) ->
            delete_key(m)
        :: master[m].owner == VALUE && largest > 0 && !wrong(deleted_beside_reader) ->
            assert(GOAL != shortened || master[m].left == largest + GRACE);
            master[m].left = (wrong(shortened_by_release) -> deadline : largest + GRACE)
        :: else
        fi
    fi
}

#define IS_LEFT(m, c) \
    (master[m].owner == TOKEN(c) || master[m].entry[c] > 0 || \
        (wrong(value_is_token) && c >= READERS && master[m].owner == VALUE))

/* The commands of client c to master m, and what each does there. What waits, waits as long as it likes. A
 * removal is executed at any time, and so may be overtaken by the acquire or overtake it. */
#define COMMANDS(c) \
    :: d_step { \
        master[m].acquires[c] && c < READERS && MAY_READ(m) && MAY_VOTE(m) && \
            (master[m].intent == 0 || wrong(intent_ignored)) -> \
        acquire_shared(m, c); \
        settle() \
    } \
    :: d_step { \
        master[m].acquires[c] && c >= READERS && master[m].owner == 0 -> \
        acquire_exclusive(m, c); \
        settle() \
    } \
    :: d_step { master[m].asked[c] == to_extend -> extend(m, c, true); settle() } \
    :: d_step { master[m].asked[c] == to_extend && IS_THERE(m, c) -> extend(m, c, false); settle() } \
    :: d_step { master[m].asked[c] == to_heal && judged -> heal(m, c, true); settle() } \
    :: d_step { master[m].asked[c] == to_heal && MAY_HEAL(m, c) && judged -> heal(m, c, false); settle() } \
    :: d_step { \
        (master[m].swaps[c] == to_swap && master[m].owner == TOKEN(c)) || \
            (master[m].swaps[c] == to_add && (master[m].owner == 0 || master[m].owner == VALUE)) -> \
        swap(m, c); \
        settle() \
    } \
    :: d_step { phase[c] == over && !THROUGH && IS_LEFT(m, c) -> release(m, c); settle() } \
    :: d_step { \
        INTENTS > 0 && phase[c] == asking && !shared[c] && master[m].owner == VALUE && master[m].intent < TTL -> \
        printf("client %d sets the intent on master %d\n", c, m); \
        master[m].intent = TTL; \
        settle() \
    }

inline lose(m)
{
    losses--;
    delete_key(m);
    master[m].intent = 0;
    master[m].quarantine = QUARANTINE;
    empty_entries(m);
    for (j : 0 .. CLIENTS - 1) {
        passing[j] = 0
    }
}

proctype at(byte m)
{
end:
    do
    COMMANDS(0)
    COMMANDS(1)
#if CLIENTS > 2
    COMMANDS(2)
#endif
    :: d_step {
        master[m].intent > 0 && ALL(+, IS_OPEN_OWNER) == 0 && !THROUGH ->
        printf("the intent on master %d is removed\n", m);
        master[m].intent = 0;
        for (j : 0 .. CLIENTS - 1) {
            passing[j] = 0
        };
        settle()
    }
    :: d_step {
        losses > 0 ->
        printf("master %d loses its memory\n", m);
        lose(m);
        settle()
    }
    :: d_step {
        losses > 0 && master[m].owner != 0 ->
        printf("master %d restarts with its data\n", m);
        losses--;
        master[m].quarantine = QUARANTINE;
        settle()
    }
    :: d_step {
        deletions > 0 && phase[0] == held && master[m].owner == VALUE && EVERY(+, IS_BUSY) == 0 && judged ->
        printf("the key on master %d is deleted\n", m);
        deletions--;
        delete_key(m);
        unseen = unseen || master[m].ends[0] > acting[0];
        settle()
    }
    od
}

inline ask(c)
{
    printf("client %d asks\n", c);
    phase[c] = asking;
    validity[c] = TTL;
    passing[c] = (c < READERS && EVERY(+, HAS_INTENT) >= QUORUM);
    assert(GOAL != comes_after_intent || !passing[c]);
    for (i : 0 .. MASTERS - 1) {
        master[i].acquires[c] = 1;
        master[i].unvouched[c] = (c >= READERS)
    }
}

inline begin_round(c)
{
    printf("client %d extends\n", c);
    rounds--;
    rest[c] = TTL;
    for (i : 0 .. MASTERS - 1) {
        master[i].asked[c] = to_extend;
        master[i].said = silent
    }
    judged = (DELETIONS == 0)
}

/* With DELETIONS: when all have answered, or at a time-out. */
inline judge()
{
    printf("client 0 judges the round\n");
    judged = 1;
    if
    :: EVERY(+, IS_BLOCKING) >= BLOCKING || wrong(healed_without_blocking) ->
        for (i : 0 .. MASTERS - 1) {
            unseen = unseen || (master[i].said == missing && !EVERY(&&, HAS_SAID));
            master[i].asked[0] = (master[i].said == missing -> to_heal : master[i].asked[0])
        }
    :: else -> assert(GOAL != refused_to_heal || !EVERY(||, IS_MISSING))
    fi
}

inline downgrade(c)
{
    printf("client %d becomes a reader\n", c);
    shared[c] = 1;
    rest[c] = 0;
    for (i : 0 .. MASTERS - 1) {
        master[i].swaps[c] = to_swap
    }
}

inline tick()
{
    printf("tick\n");
    for (i : 0 .. MASTERS - 1) {
        pass(i);
        if
        :: master[i].intent == 1 ->
            for (j : 0 .. CLIENTS - 1) {
                passing[j] = 0
            }
        :: else
        fi;
        count_down(master[i].intent);
        count_down(master[i].blocks);
        for (j : 0 .. CLIENTS - 1) {
            count_down(master[i].entry[j]);
            count_down(master[i].ends[j])
        }
    }
    for (j : 0 .. CLIENTS - 1) {
        count_down(validity[j]);
        count_down(rest[j]);
        count_down(acting[j])
    }
    settle()
}

#define CLIENT(c) \
    :: d_step { phase[c] == idle -> ask(c); settle() } \
    :: d_step { \
        phase[c] == held && COUNTED(c) >= QUORUM && rounds > 0 && (DELETIONS == 0 || (c == 0 && judged)) -> \
        begin_round(c); \
        settle() \
    } \
    :: d_step { DOWNGRADES > 0 && phase[c] == held && !shared[c] -> downgrade(c); settle() } \
    :: d_step { \
        phase[c] == asking || phase[c] == held -> \
        printf("client %d gives up or releases\n", c); \
        if \
        :: GOAL != nothing && phase[c] == held && shared[c] -> shared_before = 1 \
        :: GOAL != nothing && phase[c] == held && !shared[c] -> owned_before = 1 \
        :: else \
        fi; \
        phase[c] = over; \
        settle() \
    }

proctype clients()
{
end:
    do
    CLIENT(0)
    CLIENT(1)
#if CLIENTS > 2
    CLIENT(2)
#endif
    :: d_step { DELETIONS > 0 && phase[0] == held && !judged -> judge(); settle() }
    od
}

#define TICKING(m) (master[m].left > 0 || master[m].quarantine > 0 || master[m].intent > 0)
#define IS_TIMED(c) (validity[c] > 0 || acting[c] > 0)

init
{
    byte c;
    byte m;
    atomic {
        for (c : 0 .. READERS - 1) {
            shared[c] = 1
        }
        if
        :: DELETIONS > 0 ->
            phase[0] = held;
            acting[0] = TTL;
            for (m : 0 .. QUORUM - 1) {
                master[m].owner = VALUE;
                master[m].left = TTL + GRACE;
                master[m].entry[0] = TTL;
                master[m].ends[0] = TTL;
                master[m].blocks = TTL
            }
        :: else
        fi;
        for (m : 0 .. MASTERS - 1) {
            run at(m)
        }
        run clients();
        c = 0;
        m = 0
    }
    /* Time passes as long as that changes anything. */
end:
    do
    :: d_step { EVERY(||, TICKING) || ALL(||, IS_TIMED) -> tick() }
    od
}
