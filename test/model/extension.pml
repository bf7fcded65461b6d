/* How a lease is extended: rounds that are judged once, healing as a second step, the blocking rule.
 * One holder extends, one challenger acquires. test/model/README.md says what is left out, and why that is safe.
 *
 * Scope, by cases.py:  MASTERS; ROUNDS of extension; LOSSES of memory; DELETIONS of the holder's key by
 *                      an operator, beyond the assumptions; TTL in ticks
 */

#include "common.pml"

#define QUORUM (MASTERS / 2 + 1)
#define BLOCKING (MASTERS - QUORUM + 1) /* so many keep everybody else from a majority */
#define QUARANTINE (TTL + 1)

/* What can be wrong. */
#define recreated_by_extend 1
#define healed_without_blocking 2
#define heal_in_quarantine 3
#define heal_after_deadline 4
#define silent_block_after_removal 5
#define quarantined_block_after_removal 6
#define removal_forgotten 7
#define quarantined_not_counted 8
#define silent_not_counted 9
#define quarantine_unblocks 10
#define removed_at_stop 11

/* What must be reachable. */
#define extended 1 /* by answers of "still there" alone */
#define healed 2 /* a healed key was the vote that moved the deadline */
#define extended_in_quarantine 3 /* a key that survived a restart counts */
#define refused 4 /* the blocking rule refused to heal */
#define acts_after_loss 5
#define gap_hidden 6 /* silence or a lost memory hid that somebody else had the lock */

/* The reply of a master in the present round. */
#define silent 0
#define still_there 1
#define missing 2
#define foreign 3
#define quarantined 4

/* Keys. */
#define holders_key 1
#define challengers_key 2

typedef Master {
    byte owner;
    byte left; /* ticks until its key expires */
    byte quarantine; /* ticks until it may vote */
    bit record;
    byte ends; /* e[i]: ticks until its vote ends */
    byte blocks; /* b[i]: ticks for which it cannot have voted for another */
    byte said;
    bit extends; /* EXTEND is in flight */
    byte heals; /* HEAL is in flight: 1 in this round, 2 in one before */
    bit acquires; /* ACQUIRE of the challenger, and its removal */
    bit releases;
    bit vote; /* for the challenger */
    bit deleted; /* and no answer told of it */
};
Master master[MASTERS];

mtype = { held, lost, idle, asking, over };
mtype holder = held;
byte acting = TTL; /* ticks until the last deadline that the holder ever believed in */
byte rest; /* ticks until votes of the present round end */
byte rounds;
bit judged = 1;
bit removal_seen;
mtype challenger = idle;
byte validity;
bit succeeded; /* the challenger had the lock since the lease was extended last */
bit known; /* an answer told of a deletion */
bit unseen; /* no deletion was known when a heal was sent, or one came after that */
byte losses = LOSSES;
byte deletions = DELETIONS;

/* Scratch, 0 between steps. */
byte i;
byte deadline;
byte blocking;
byte holders;

#define IS_VOTE(m) (master[m].vote)
#define IS_MISSING(m) (master[m].said == missing)
#define IS_COUNTED(m) (master[m].ends > 0)
#define IS_BEING_HEALED(m) (master[m].heals > 0)
#define IS_DELETED(m) (master[m].deleted)
#define ENDS_LATE_ENOUGH(m) (master[m].ends >= deadline)

/* From here on nothing that is checked can go wrong. */
#define THROUGH \
    (acting == 0 || (DELETIONS > 0 && (holder == lost || (unseen && GOAL != gap_hidden))) || \
        (DELETIONS == 0 && challenger == over && (holder == lost || (judged && rounds == ROUNDS && GOAL == nothing))))

/* Ends each step. A command may stay in flight without end, so it is dropped where it could only keep
 * the challenger out. */
inline settle()
{
    for (i : 0 .. MASTERS - 1) {
        clear(master[i].said, judged && EVERY(+, IS_BEING_HEALED) == 0 && master[i].said != still_there);
        if
        :: holder == lost ->
            master[i].extends = 0;
            master[i].heals = 0;
            master[i].ends = 0;
            master[i].blocks = 0;
            master[i].said = 0;
            master[i].deleted = 0
        :: else
        fi;
        clear(master[i].acquires, validity == 0);
        clear(master[i].releases, !master[i].acquires && master[i].owner != challengers_key)
    }
    if
    :: THROUGH && !wrong(heal_after_deadline) ->
        reset(master);
        acting = 0;
        rest = 0;
        rounds = 0;
        judged = 0;
        removal_seen = 0;
        known = 0;
        unseen = 0;
        succeeded = 0;
        holder = lost;
        challenger = over;
        validity = 0;
        losses = 0;
        deletions = 0
    :: else
    fi;
    i = 0;
    deadline = 0;
    blocking = 0;
    holders = 0;
    sort_masters()
}

inline check_exclusion()
{
    holders = (acting > 0) + (challenger == held && validity > 0);
    assert(holders <= 1 || DELETIONS > 0)
}

/* After a deletion nothing prevents two holders at once. What is left to show: the lease does not continue
 * after another owner's. There are three exceptions: silence or a lost memory hid each deletion when the round
 * was judged; a key was deleted after its master had replied; a HEAL was in flight. */
inline move_deadline()
{
    find_deadline(EVERY(+, ENDS_LATE_ENOUGH) < QUORUM);
    if
    :: deadline > acting ->
        printf("the lease lasts %d ticks\n", deadline);
        acting = deadline;
        assert(!succeeded || unseen);
        assert(GOAL != gap_hidden || !succeeded);
        succeeded = 0;
        check_exclusion()
    :: else
    fi
}

/* The holder's side of an answer of master m. */

inline count_vote()
{
    master[m].said = still_there;
    master[m].ends = (master[m].ends < rest -> rest : master[m].ends);
    master[m].blocks = (master[m].blocks < rest -> rest : master[m].blocks);
    move_deadline()
}

inline count_removal(what)
{
    master[m].said = what;
    master[m].ends = 0;
    master[m].deleted = 0;
    removal_seen = removal_seen || master[m].blocks > 0;
    known = known || master[m].blocks > 0;
    master[m].blocks = 0
}

inline count_quarantine()
{
    master[m].said = quarantined;
    master[m].ends = 0;
    master[m].blocks = (wrong(quarantine_unblocks) -> 0 : master[m].blocks)
}

/* The scripts, on master m. A reply that is counted is counted at once. */

/* The blocking rule. It is looked at again when a HEAL answers: what was believed of a master that had
 * been silent may have turned out wrong. */
#define IS_BLOCKING(m) \
    (master[m].said == still_there || \
        (master[m].said == quarantined && !wrong(quarantined_not_counted) && \
            (!removal_seen || wrong(quarantined_block_after_removal))) || \
        (master[m].said == silent && master[m].blocks > 0 && !wrong(silent_not_counted) && \
            (!removal_seen || wrong(silent_block_after_removal))))

inline extend(counted)
{
    master[m].extends = 0;
    if
    :: master[m].owner == holders_key ->
        master[m].left = TTL;
        if
        :: counted ->
            printf("master %d: still there\n", m);
            assert(GOAL != extended_in_quarantine || master[m].quarantine == 0);
            count_vote();
            assert(GOAL != extended || acting < TTL)
        :: else
        fi
    :: master[m].owner == challengers_key ->
        printf("master %d: another owner's\n", m);
        count_removal(foreign)
    :: master[m].owner == 0 && (master[m].quarantine > 0 || !master[m].record) ->
        printf("master %d: quarantined\n", m);
        count_quarantine()
    :: else ->
        if
        :: wrong(recreated_by_extend) ->
            printf("master %d re-creates\n", m);
            master[m].owner = holders_key;
            master[m].left = TTL;
            count_vote()
        :: else ->
            printf("master %d: missing\n", m);
            count_removal(missing)
        fi
    fi
}

inline heal(counted)
{
    if
    :: master[m].owner == challengers_key ->
        if
        :: counted -> count_removal(foreign)
        :: else
        fi
    :: master[m].owner == 0 && (master[m].quarantine > 0 || !master[m].record) && !wrong(heal_in_quarantine) ->
        if
        :: counted -> count_quarantine()
        :: else
        fi
    :: else ->
        printf("master %d heals\n", m);
        master[m].owner = holders_key;
        master[m].left = TTL;
        if
        :: counted && (EVERY(+, IS_BLOCKING) >= BLOCKING || wrong(healed_without_blocking) || wrong(heal_after_deadline)) ->
            count_vote();
            assert(GOAL != healed || acting < TTL)
        :: else
        fi
    fi;
    master[m].heals = 0
}

inline acquire()
{
    master[m].acquires = 0;
    if
    :: master[m].owner == 0 ->
        master[m].quarantine = (master[m].record -> master[m].quarantine : QUARANTINE);
        master[m].record = 1;
        if
        :: master[m].quarantine == 0 ->
            printf("master %d grants to the challenger\n", m);
            master[m].owner = challengers_key;
            master[m].left = TTL;
            master[m].vote = (challenger == asking);
            if
            :: challenger == asking && EVERY(+, IS_VOTE) >= QUORUM ->
                printf("the challenger has the lock\n");
                challenger = held;
                succeeded = 1;
                check_exclusion()
            :: else
            fi
        :: else
        fi
    :: else
    fi
}

/* What the holder does. */

inline begin_round()
{
    printf("the holder extends\n");
    rounds++;
    judged = 0;
    rest = TTL;
    removal_seen = (wrong(removal_forgotten) -> 0 : removal_seen);
    for (i : 0 .. MASTERS - 1) {
        master[i].said = silent;
        master[i].extends = 1;
        master[i].heals = (master[i].heals > 0 -> 2 : 0)
    }
}

inline judge()
{
    judged = 1;
    blocking = EVERY(+, IS_BLOCKING);
    /* Nobody else can have had a majority, so a heal that is refused is a lease lost needlessly. */
    assert(blocking >= BLOCKING || DELETIONS > 0 || !EVERY(||, IS_MISSING));
    if
    :: blocking >= BLOCKING || wrong(healed_without_blocking) ->
        for (i : 0 .. MASTERS - 1) {
            master[i].heals = (master[i].said == missing -> 1 : master[i].heals)
        };
        unseen = unseen || (EVERY(||, IS_BEING_HEALED) && !known && EVERY(||, IS_DELETED))
    :: else -> assert(GOAL != refused || !EVERY(||, IS_MISSING))
    fi
}

inline lose()
{
    printf("the holder is signalled to stop\n");
    reached(acts_after_loss);
    holder = lost;
    for (i : 0 .. MASTERS - 1) {
        if
        :: wrong(removed_at_stop) && master[i].owner == holders_key ->
            delete_key(i)
        :: else
        fi
    }
}

#define RUNNING (acting > 0 || wrong(heal_after_deadline))

proctype holding()
{
end:
    do
    :: d_step {
        holder == held && acting > 0 && judged && EVERY(+, IS_COUNTED) >= QUORUM && rounds < ROUNDS ->
        begin_round();
        settle()
    }
    /* When all have answered, or at a time-out. */
    :: d_step { holder == held && acting > 0 && !judged -> judge(); settle() }
    /* When all heals have answered, or at a time-out. */
    :: d_step { holder == held && acting > 0 && judged && EVERY(+, IS_COUNTED) < QUORUM -> lose(); settle() }
    :: !RUNNING -> break
    od
}

proctype challenging()
{
end:
    do
    :: d_step {
        RUNNING && challenger == idle ->
        printf("the challenger asks\n");
        challenger = asking;
        validity = TTL;
        for (i : 0 .. MASTERS - 1) {
            master[i].acquires = 1
        }
        settle()
    }
    :: d_step {
        RUNNING && (challenger == asking || challenger == held) ->
        printf("the challenger gives up or releases\n");
        challenger = over;
        for (i : 0 .. MASTERS - 1) {
            master[i].vote = 0;
            master[i].releases = 1
        }
        settle()
    }
    :: !RUNNING -> break
    od
}

/* Master m and its connections. What waits, waits as long as it likes; what waits forever is lost. */
proctype at(byte m)
{
end:
    do
    :: d_step { RUNNING && master[m].extends -> extend(true); settle() }
    /* The reply is lost; it matters where something was done. */
    :: d_step {
        RUNNING && master[m].extends && master[m].owner == holders_key ->
        extend(false);
        settle()
    }
    :: d_step { RUNNING && master[m].heals == 1 -> heal(true); settle() }
    :: d_step { RUNNING && master[m].heals > 0 -> heal(false); settle() }
    :: d_step { RUNNING && master[m].acquires -> acquire(); settle() }
    :: d_step {
        RUNNING && master[m].releases && !master[m].acquires && master[m].owner == challengers_key ->
        master[m].releases = 0;
        delete_key(m);
        settle()
    }
    :: d_step {
        RUNNING && holder == held && deletions > 0 && master[m].owner == holders_key ->
        printf("the key on master %d is deleted\n", m);
        deletions--;
        delete_key(m);
        master[m].deleted = 1;
        unseen = unseen || EVERY(||, IS_BEING_HEALED) || master[m].ends > acting ||
            (!judged && master[m].said == still_there);
        settle()
    }
    /* A restart, with its data or without. The handshake tells of it. */
    :: d_step {
        RUNNING && losses > 0 ->
        printf("master %d restarts and forgets\n", m);
        losses--;
        delete_key(m);
        master[m].quarantine = QUARANTINE;
        master[m].acquires = 0;
        settle()
    }
    :: d_step {
        RUNNING && losses > 0 && master[m].owner != 0 ->
        printf("master %d restarts and remembers\n", m);
        losses--;
        master[m].quarantine = QUARANTINE;
        master[m].acquires = 0;
        settle()
    }
    /* FLUSHALL: the next grant notices that the record is missing. */
    :: d_step {
        RUNNING && losses > 0 && master[m].owner != 0 ->
        printf("master %d is flushed\n", m);
        losses--;
        delete_key(m);
        master[m].record = 0;
        master[m].quarantine = 0;
        settle()
    }
    :: !RUNNING -> break
    od
}

inline tick()
{
    printf("tick\n");
    for (i : 0 .. MASTERS - 1) {
        pass(i);
        count_down(master[i].ends);
        count_down(master[i].blocks)
    }
    count_down(acting);
    count_down(rest);
    count_down(validity);
    settle()
}

init
{
    byte m;
    atomic {
        /* A majority granted; each of the others granted, or its answer was lost, or it was never reached. */
        for (m : 0 .. MASTERS - 1) {
            master[m].record = 1;
            if
            :: true ->
                master[m].owner = holders_key;
                master[m].ends = TTL;
                master[m].blocks = TTL
            :: m >= QUORUM -> master[m].owner = holders_key
            :: m >= QUORUM
            fi;
            master[m].left = (master[m].owner == 0 -> 0 : TTL)
        }
        for (m : 0 .. MASTERS - 1) {
            run at(m)
        }
        run holding();
        run challenging();
        m = 0
    }
end:
    do
    :: d_step { acting > 0 -> tick() }
    od
}
