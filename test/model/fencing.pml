/* The order of the fencing tokens: counters of each master, the maximum and its RAISE, replies that
 * take time, lost counters. What is left out is in test/model/README.md.
 *
 * Scope, by cases.py:  ATTEMPTS of the first client and OTHERS_ATTEMPTS of the other one; LOSSES of
 *                      memory, BREAKS of connections; TTL and HORIZON in
 *                      ticks; COUNTERS that a master may start with; STEPS: clocks that leap, beyond assumption A2;
 *                      STARTS: ticks by which the value from which a missing counter starts is ahead of the
 *                      slowest clock, or FROM_ONE; a client proposes it, or none;
 *                      OFFSET=0: the clocks of the masters do not differ
 */

#define MASTERS 3
#define CLIENTS 2
#define QUORUM 2

#include "common.pml"
#include "attempts.pml"

/* What can be wrong. */
#define no_raise 1
#define raise_not_awaited 2
#define raise_without_lock_check 3
#define raise_accepts_above 4
#define minimum 5
#define counter_restarts 6
#define stale_counter_trusted 7
#define counter_deleted_with_lock 8
#define no_quarantine 9
#define deadline_restarted_at_raise 10
#define raise_counted_late 11
#define first_below_clock 12
#define first_without_limit 13
#define offset_counted_once 14

/* What must be reachable. */
#define succession 1 /* both clients have been given a token */
#define raised 2 /* a token that a raise made valid */
#define raise_refused 3 /* the lock was gone when the raise came */
#define reseeded 5
#define refused_in_quarantine 6
#define first_taken 7

#define VALIDITY TTL
#define NOT_AFTER VALIDITY
#define LONG_AGO (NOT_AFTER + 1)
/* By which the clocks of two masters may differ: the margin of A4. */
#define MARGIN (HORIZON > 0 -> OFFSET : 0)
#define QUARANTINE (wrong(no_quarantine) -> 0 : TTL + (wrong(offset_counted_once) -> MARGIN : 2 * MARGIN))

/* A reseeded counter must be ahead of all that were counted by one: a tick is longer than the grants
 * that fit into a run. */
#define COUNTS_PER_TICK 8
#define CLOCK(m) ((now_tick + master[m].offset) * COUNTS_PER_TICK)
/* The value that a client proposes may be any: what it knows of the clocks may be wrong. */
#define FROM_ONE 255
#define PROPOSED (STARTS == FROM_ONE -> 1 : (now_tick + STARTS) * COUNTS_PER_TICK)
#define TAKES_FIRST(m, value) \
    (((value) >= CLOCK(m) || wrong(first_below_clock)) && (value) > 0 && \
     ((value) <= CLOCK(m) + MARGIN * COUNTS_PER_TICK || wrong(first_without_limit)))


#define RAISE 2
#define RAISED 128

typedef Master {
    byte owner;
    byte left; /* ticks until its key expires */
    byte counter; /* 0: missing */
    byte quarantine; /* ticks until it may vote */
    byte floor; /* a counter below was lost, or is from before the last possible loss */
    bit offset;
    bit broken[CLIENTS];
    byte vote[CLIENTS]; /* 0 none, 1 granted, 2 its counter is the token */
    byte given[SLOTS]; /* the counter that it answered */
    byte pending[SLOTS];
};
Master master[MASTERS];

mtype = { idle, asking, raising, held };
mtype phase[CLIENTS] = idle;
byte tries[CLIENTS];
byte validity[CLIENTS];
byte first[SLOTS]; /* from which a missing counter may start */
byte target[SLOTS]; /* the token that is raised to, or was issued */
byte age[SLOTS] = LONG_AGO;
byte issued[SLOTS];
byte last; /* the token that was issued last */
byte last_slot;
byte now_tick = 1;
bit lively;
byte losses = LOSSES;
byte breaks = BREAKS;
byte steps = STEPS;

/* Scratch, 0 between steps. */
byte i;
byte j;
byte referred;
byte token;


/* Ends each step: drops what can never have an effect again. */
inline settle()
{
    lively = 0;
    for (j : 1 .. SLOTS - 1) {
        referred = !OVER(j);
        clear(first[j], ((master[0].pending[j] | master[1].pending[j] | master[2].pending[j]) & (9 * ACQUIRE)) == 0);
        for (i : 0 .. MASTERS - 1) {
            drop(9 * ACQUIRE, age[j] > NOT_AFTER);
            if
            :: master[i].owner != j && (master[i].pending[j] & (9 * ACQUIRE)) == 0 ->
                drop(9 * RELEASE, true);
                assert(GOAL != raise_refused || (master[i].pending[j] & (9 * RAISE)) == 0);
                drop(9 * RAISE, !wrong(raise_without_lock_check))
            :: else
            fi;
            drop(GRANTED + RAISED, OVER(j));
            /* The answer is of use until it is counted and the token is known. */
            clear(master[i].given[j], OVER(j) || phase[CLIENT_OF(j)] == held);
            referred = referred || master[i].pending[j] != 0 || master[i].owner == j
        }
        if
        :: referred -> lively = lively || age[j] < LONG_AGO
        :: else ->
            age[j] = LONG_AGO;
            target[j] = 0;
            issued[j] = (STEPS == 0 -> 0 : issued[j])
        fi;
        lively = lively || validity[CLIENT_OF(j)] > 0
    }
    i = 0;
    j = 0;
    referred = 0;
    token = 0;
    sort_masters()
}

/* The client. */

/* Ownership begins with the token. Where clocks leap two may own at once, in no order; then the
 * tokens must still differ. */
inline issue()
{
    printf("client %d has token %d\n", c, token);
    assert(token > last || STEPS > 0);
    for (i : 1 .. SLOTS - 1) {
        assert(issued[i] == 0 || issued[i] != token)
    }
    assert(last_slot == 0 || CLIENT_OF(last_slot) == c || phase[CLIENT_OF(last_slot)] != held ||
           validity[CLIENT_OF(last_slot)] == 0 || STEPS > 0);
    assert(GOAL != succession || last_slot == 0 || CLIENT_OF(last_slot) == c);
    assert(GOAL != raised || phase[c] != raising);
    last = token;
    last_slot = CURRENT(c);
    issued[last_slot] = token;
    target[last_slot] = token;
    phase[c] = held
}

inline mark_voters_at_token()
{
    for (i : 0 .. MASTERS - 1) {
        master[i].vote[c] = (master[i].vote[c] > 0 && master[i].given[slot] == token -> 2 : master[i].vote[c])
    }
}

inline choose_token()
{
    for (i : 0 .. MASTERS - 1) {
        token = (master[i].vote[c] > 0 &&
            (token == 0 || (wrong(minimum) -> master[i].given[slot] < token : master[i].given[slot] > token)) ->
            master[i].given[slot] : token)
    }
}

inline send_raise()
{
    printf("client %d raises to %d\n", c, token);
    target[slot] = token;
    for (i : 0 .. MASTERS - 1) {
        master[i].pending[slot] = master[i].pending[slot] | (master[i].vote[c] == 1 -> RAISE : 0)
    }
}

inline decide()
{
    choose_token();
    mark_voters_at_token();
    if
    :: VOTES(c, 2) >= QUORUM || wrong(no_raise) || wrong(minimum) -> issue()
    :: else ->
        send_raise();
        if
        :: wrong(raise_not_awaited) -> issue()
        :: else ->
            phase[c] = raising;
            validity[c] = (wrong(deadline_restarted_at_raise) -> VALIDITY : validity[c])
        fi
    fi
}

inline complete_raise()
{
    if
    :: VOTES(c, 2) >= QUORUM && (validity[c] > 0 || wrong(raise_counted_late)) ->
        token = target[slot];
        issue()
    :: else
    fi
}

inline count_grant()
{
    if
    :: phase[c] == asking ->
        master[m].vote[c] = 1;
        if
        :: VOTES(c, 1) >= QUORUM && validity[c] > 0 -> decide()
        :: else
        fi
    :: phase[c] == raising ->
        /* A straggler: it is of use if it is at the token already. */
        master[m].vote[c] = (master[m].given[slot] == target[slot] -> 2 : 1);
        complete_raise()
    :: else
    fi
}

inline count_raise()
{
    if
    :: phase[c] == raising ->
        master[m].vote[c] = 2;
        complete_raise()
    :: else
    fi
}

inline begin(proposed)
{
    printf("client %d asks, attempt %d\n", c, tries[c] + 1);
    phase[c] = asking;
    tries[c]++;
    age[CURRENT(c)] = 0;
    first[CURRENT(c)] = proposed;
    validity[c] = VALIDITY;
    for (i : 0 .. MASTERS - 1) {
        master[i].pending[CURRENT(c)] = ACQUIRE
    }
}

/* Rollback or release: any attempt ends with it, at any time, for any reason. */
inline end_attempt()
{
    printf("client %d gives up or releases\n", c);
    for (i : 0 .. MASTERS - 1) {
        master[i].pending[CURRENT(c)] = master[i].pending[CURRENT(c)] | RELEASE;
        master[i].vote[c] = 0
    }
    target[CURRENT(c)] = (phase[c] == held || phase[c] == raising -> target[CURRENT(c)] : 0);
    validity[c] = 0;
    phase[c] = idle
}

proctype client(byte c)
{
end:
    do
    :: d_step { phase[c] == idle && MAY_TRY(c) -> begin(0); settle() }
    :: d_step { STARTS != 0 && phase[c] == idle && MAY_TRY(c) -> begin(PROPOSED); settle() }
    :: d_step { phase[c] != idle -> end_attempt(); settle() }
    od
}

/* The scripts, on master m. */

inline acquire(live)
{
    if
    :: master[m].owner != 0
    :: master[m].owner == 0 && master[m].quarantine > 0 -> reached(refused_in_quarantine)
    :: else ->
        if
        :: master[m].counter >= master[m].floor || wrong(counter_restarts) || wrong(stale_counter_trusted) ->
            master[m].counter++
        :: else ->
            if
            :: TAKES_FIRST(m, first[slot]) ->
                master[m].counter = first[slot];
                reached(first_taken)
            :: else -> master[m].counter = CLOCK(m)
            fi;
            reached(reseeded)
        fi;
        printf("master %d grants to client %d, counter %d\n", m, c, master[m].counter);
        master[m].owner = slot;
        master[m].left = TTL;
        if
        :: live && !OVER(slot) && master[m].vote[c] == 0 && (master[m].pending[slot] & GRANTED) == 0 ->
            master[m].given[slot] = master[m].counter;
            master[m].pending[slot] = master[m].pending[slot] | GRANTED
        :: else
        fi
    fi
}

inline raise(live)
{
    if
    :: master[m].owner == slot || wrong(raise_without_lock_check) ->
        master[m].counter = (master[m].counter < target[slot] -> target[slot] : master[m].counter);
        printf("master %d raised by client %d, counter %d\n", m, c, master[m].counter);
        if
        :: master[m].counter > target[slot] && !wrong(raise_accepts_above)
        :: else ->
            master[m].pending[slot] = master[m].pending[slot] | (live -> RAISED : 0)
        fi
    :: else
    fi
}

inline release()
{
    if
    :: master[m].owner == slot ->
        printf("master %d removes for client %d\n", m, c);
        delete_key(m);
        /* A release levels the counters; a rollback has no token to level them to. */
        if
        :: wrong(counter_deleted_with_lock) -> master[m].counter = 0
        :: issued[slot] > master[m].counter && !wrong(counter_deleted_with_lock) -> master[m].counter = issued[slot]
        :: else
        fi
    :: else
    fi
}

inline execute(live, times)
{
    if
    :: (master[m].pending[slot] & (times * ACQUIRE)) != 0 ->
        master[m].pending[slot] = master[m].pending[slot] - times * ACQUIRE;
        acquire(live)
    :: (master[m].pending[slot] & (times * (ACQUIRE + RAISE))) == times * RAISE ->
        master[m].pending[slot] = master[m].pending[slot] - times * RAISE;
        raise(live)
    :: else ->
        master[m].pending[slot] = master[m].pending[slot] - times * RELEASE;
        release()
    fi
}

/* Between client c and master m. What waits, waits as long as it likes; what waits forever is lost. */
proctype link(byte c; byte m)
{
    byte slot;
end:
    do
    :: d_step { FIRST(LIVE, 0) -> slot = SLOT(c, 0); execute(true, 1); slot = 0; settle() }
#if ATTEMPTS > 1
    :: d_step { FIRST(LIVE, 1) -> slot = SLOT(c, 1); execute(true, 1); slot = 0; settle() }
#endif
    :: d_step { FIRST(LATE * LIVE, 0) -> slot = SLOT(c, 0); execute(false, LATE); slot = 0; settle() }
#if ATTEMPTS > 1
    :: d_step {
        FIRST(LATE * LIVE, 1) ->
        slot = SLOT(c, 1);
        execute(false, LATE);
        slot = 0;
        settle()
    }
#endif
    :: d_step { breaks > 0 && !master[m].broken[c] && tries[c] > 0 -> break_connection(); settle() }
    :: d_step {
        tries[c] > 0 && (master[m].pending[CURRENT(c)] & GRANTED) != 0 ->
        slot = CURRENT(c);
        master[m].pending[slot] = master[m].pending[slot] - GRANTED;
        count_grant();
        slot = 0;
        settle()
    }
    :: d_step {
        tries[c] > 0 && (master[m].pending[CURRENT(c)] & (GRANTED + RAISED)) == RAISED ->
        slot = CURRENT(c);
        master[m].pending[slot] = master[m].pending[slot] - RAISED;
        count_raise();
        slot = 0;
        settle()
    }
    od
}

/* What happens to a master's memory and clock. */
proctype fate(byte m)
{
end:
    do
    /* A restart. What it knew is gone, or older than it was. */
    :: d_step {
        losses > 0 ->
        printf("master %d forgets\n", m);
        losses--;
        delete_key(m);
        master[m].counter = wrong(stale_counter_trusted);
        master[m].quarantine = QUARANTINE;
        master[m].floor = CLOCK(m) + QUARANTINE * COUNTS_PER_TICK;
        for (j : 1 .. SLOTS - 1) {
            master[m].pending[j] = master[m].pending[j] & (GRANTED + RAISED)
        }
        settle()
    }
    :: d_step {
        steps > 0 && master[m].owner != 0 ->
        printf("clock of master %d leaps, its key expires\n", m);
        steps--;
        delete_key(m);
        settle()
    }
    :: false
    od
}

#define TICKING(m) (master[m].left > 0 || master[m].quarantine > 0)

inline tick()
{
    printf("tick\n");
    now_tick = now_tick + (HORIZON > 0);
    for (i : 0 .. MASTERS - 1) {
        pass(i)
    }
    for (i : 0 .. CLIENTS - 1) {
        count_down(validity[i])
    }
    for (i : 1 .. SLOTS - 1) {
        age[i] = (age[i] < LONG_AGO -> age[i] + 1 : LONG_AGO)
    }
    settle()
}

init
{
    byte c;
    byte m;
    atomic {
        /* Some history: counters that differ, clocks that differ. */
        for (m : 0 .. MASTERS - 1) {
            master[m].floor = 1;
            if
            :: COUNTERS > 1 -> master[m].counter = 1
            :: COUNTERS > 2 -> master[m].counter = 2
            :: COUNTERS > 0 -> master[m].counter = 3
            :: COUNTERS == 0
            fi;
            if
            :: true
            :: MARGIN > 0 -> master[m].offset = 1
            fi;
        }
        run_all()
    }
    /* Time passes as long as that changes anything, so that an end in which somebody waits is seen. */
end:
    do
    :: d_step { (EVERY(||, TICKING) || lively) && (HORIZON == 0 || now_tick < HORIZON) -> tick() }
    NOBODY_WAITS
    od
}
