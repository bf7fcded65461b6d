/* The lock without fencing tokens: votes, rollback, late commands, lost memory, deadlines, extension
 * without healing, and a holder that acts until it lets go or its last deadline has passed.
 * test/model/README.md says what is left out, and why that is safe.
 *
 * Scope, by cases.py:  CLIENTS; ATTEMPTS and EXTENDS of each, OTHERS_ATTEMPTS of all but the first;
 *                      LOSSES of memory, BREAKS of connections, DRIFTS of clocks; TTL in ticks;
 *                      DELAYED=1: replies take time
 */

#define MASTERS 3

#include "common.pml"
#include "attempts.pml"

/* What can be wrong. */
#define quorum_half 1
#define set_without_nx 2
#define blind_rollback 3
#define blind_release 4
#define no_quarantine 5
#define half_quarantine 6
#define uptime_quarantine 7
#define no_drift_allowance 8
#define elapsed_not_subtracted 9
#define extended_without_quorum 10
#define extend_without_compare 11
#define old_grant_counted 12
#define busy_is_grant 13
#define no_late_check 14
#define believing_past_deadline 15
#define token_reused 16
#define fewer_masters 17
#define believing_while_releasing 18
#define no_rollback_of_unknown 19
#define unordered_rollback 20
#define extend_after_deadline 21
#define extended_from_reply 22
#define any_reply_extends 23
#define set_then_pexpire 24
#define suspended_clock 25
#define removed_at_stop 26

/* What must be reachable. */
#define succession 1 /* both clients have held the lock, one after the other */
#define takeover 2 /* the second one got it because the first one's keys expired */
#define rollback 3 /* a failed attempt had a vote, which is taken back */
#define refused_in_quarantine 4
#define orphan 6 /* a late ACQUIRE makes a key for an attempt that is long over */
#define extended 7 /* the belief goes on past the deadline of the acquire */
#define acts_after_loss 8 /* a holder acts after its loss was signalled */

/* A master deviates by one tick at most in a run, so drift(ttl) is one tick. */
#define DRIFT (DRIFTS == 0 || wrong(no_drift_allowance) -> 0 : 1)
#define VALIDITY (TTL - DRIFT)
#define QUARANTINE (wrong(no_quarantine) -> 0 : (wrong(half_quarantine) -> TTL / 2 : TTL + 1))

/* not_after is an upper bound of the master's clock at the end of the validity; it errs by a tick
 * and on the side of executing. */
#define NOT_AFTER VALIDITY
#define KEY_BOUND (NOT_AFTER + TTL)
#define LONG_AGO (KEY_BOUND + 1)

#define TOKEN(slot) (wrong(token_reused) -> SLOT(CLIENT_OF(slot), 0) : (slot))

#define EXTEND 2
#define EXTENDED 128

typedef Master {
    byte owner; /* token */
    byte left; /* ticks until its key expires */
    byte quarantine; /* ticks until it may vote */
    bit record; /* the memory record is there */
    bit drifted;
    bit broken[CLIENTS];
    byte vote[CLIENTS]; /* for the present attempt: 0 none, 1 granted, 2 extended as well */
    byte pending[SLOTS];
};
Master master[MASTERS];

mtype = { idle, asking, held, lost, releasing };
mtype phase[CLIENTS] = idle;
byte tries[CLIENTS]; /* attempts begun */
byte extends[CLIENTS];
byte validity[CLIENTS]; /* ticks until votes that were granted end */
byte extension[CLIENTS]; /* and those that were extended */
byte acting[CLIENTS]; /* until the last deadline that it ever believed in */
byte age[SLOTS] = LONG_AGO; /* ticks since t0 */
byte extend_age[SLOTS] = LONG_AGO; /* ticks since te */
bit won[SLOTS]; /* was held once */
byte newest; /* whose belief began last */
bit lively; /* some age still counts */
byte losses = LOSSES;
byte breaks = BREAKS;
byte drifts = DRIFTS;

/* Scratch, 0 between steps. */
byte i;
byte j;
byte referred;
byte holders;

#define QUORUM(c) (wrong(quorum_half) -> MASTERS / 2 : (wrong(fewer_masters) && c == 1 -> 1 : MASTERS / 2 + 1))
#define CONFIGURED(c, m) (!(wrong(fewer_masters) && c == 1 && m != 0))

/* now < the q-th largest e[i]: an extended vote ends later than one that was only granted. */
#define VALID(c) \
    ((validity[c] > 0 && VOTES(c, 1) >= QUORUM(c)) || \
        (extension[c] > 0 && VOTES(c, 2) >= (wrong(extended_without_quorum) -> 1 : QUORUM(c))))
#define DEADLINE(c) \
    (extension[c] > validity[c] && VOTES(c, 2) >= (wrong(extended_without_quorum) -> 1 : QUORUM(c)) -> \
            extension[c] : (VOTES(c, 1) >= QUORUM(c) -> validity[c] : 0))

/* After its loss was signalled a holder acts until it lets go, or until the last deadline that it
 * believed in. Only `held` may extend. */
#define ACTS(c) \
    ((phase[c] == held || phase[c] == lost || phase[c] == releasing) && \
        (acting[c] > 0 || wrong(believing_past_deadline)))

/* Ends each step. Drops what can have no effect any more, so that states which differ only in it are one:
 * commands past their not_after, removals of keys that are missing and stay so, replies to attempts
 * that have ended, ages that are never compared. */
inline settle()
{
    lively = 0;
    for (j : 1 .. SLOTS - 1) {
        referred = 0;
        for (i : 0 .. MASTERS - 1) {
            drop(9 * ACQUIRE, age[j] > NOT_AFTER && !wrong(no_late_check));
            drop(9 * EXTEND, extend_age[j] > NOT_AFTER && !wrong(no_late_check) && !wrong(set_then_pexpire));
            if
            :: master[i].owner != TOKEN(j) && (master[i].pending[j] & (9 * ACQUIRE)) == 0 ->
                drop(9 * RELEASE, !wrong(blind_rollback) && !wrong(blind_release));
                drop(9 * EXTEND, !wrong(extend_without_compare) && !wrong(any_reply_extends))
            :: else
            fi;
            drop(GRANTED + EXTENDED, OVER(j) && !wrong(old_grant_counted));
            referred = referred || master[i].pending[j] != 0 || master[i].owner == TOKEN(j)
        }
        if
        :: referred -> lively = lively || age[j] < LONG_AGO || extend_age[j] < LONG_AGO
        :: else ->
            age[j] = LONG_AGO;
            extend_age[j] = LONG_AGO
        fi;
        lively = lively || validity[CLIENT_OF(j)] > 0 || extension[CLIENT_OF(j)] > 0
    }
    i = 0;
    j = 0;
    referred = 0;
    holders = 0;
    if
    :: wrong(fewer_masters) /* which is true of certain masters */
    :: else -> sort_masters()
    fi
}

inline check_exclusion()
{
#if CLIENTS > 2
    holders = ACTS(0) + ACTS(1) + ACTS(2);
#else
    holders = ACTS(0) + ACTS(1);
#endif
    assert(holders <= 1)
}

inline check_keys()
{
    for (i : 0 .. MASTERS - 1) {
        j = master[i].owner;
        if
        :: j != 0 ->
            assert(age[j] <= KEY_BOUND || extend_age[j] <= KEY_BOUND || wrong(token_reused));
            /* What was given up, and removed on a connection that never broke, is gone. */
            assert(!OVER(j) || master[i].pending[j] != 0 || master[i].broken[CLIENT_OF(j)] || wrong(token_reused))
        :: else
        fi
    }
}

/* The client's side of a reply, on behalf of which master m has set a flag. */

inline count_grant()
{
    if
    :: phase[c] != idle && (!OVER(slot) || wrong(old_grant_counted)) && master[m].vote[c] == 0 ->
        master[m].vote[c] = 1;
        if
        :: phase[c] == asking && (VALID(c) || (wrong(elapsed_not_subtracted) && VOTES(c, 1) >= QUORUM(c))) ->
            printf("client %d holds, for %d ticks\n", c, validity[c]);
            phase[c] = held;
            validity[c] = (wrong(elapsed_not_subtracted) -> VALIDITY : validity[c]);
            acting[c] = validity[c];
            assert(GOAL != succession || newest == 0 || CLIENT_OF(newest) == c);
            assert(GOAL != takeover || newest == 0 || CLIENT_OF(newest) == c || phase[CLIENT_OF(newest)] == idle);
            won[CURRENT(c)] = 1;
            newest = CURRENT(c)
        :: else
        fi;
        check_exclusion()
    :: else
    fi
}

inline count_extension()
{
    if
    :: phase[c] == held && !OVER(slot) && (VALID(c) || wrong(extend_after_deadline)) ->
        printf("client %d: extended by master %d\n", c, m);
        master[m].vote[c] = 2;
        extension[c] = (wrong(extended_from_reply) -> VALIDITY : extension[c]);
        acting[c] = (DEADLINE(c) > acting[c] -> DEADLINE(c) : acting[c]);
        if
        :: ACTS(c) ->
            /* A lease that ended does not come back after somebody else's. */
            assert(newest == slot);
            assert(GOAL != extended || validity[c] != 0)
        :: else
        fi;
        check_exclusion()
    :: else
    fi
}

/* A refusal is not delivered: without it, a client relies on its lease at least as long, and may give up
 * at any time. A reply at once lets it rely on the lease longest; DELAYED checks that. */
inline answer(live, reply)
{
    if
    :: live && DELAYED == 1 -> master[m].pending[slot] = master[m].pending[slot] | reply
    :: live && DELAYED == 0 && reply == GRANTED -> count_grant()
    :: live && DELAYED == 0 && reply == EXTENDED -> count_extension()
    :: else
    fi
}

/* The scripts, on master m. */

inline acquire(live)
{
    if
    :: master[m].owner != 0 && !wrong(set_without_nx) ->
        answer(live && wrong(busy_is_grant), GRANTED)
    :: else ->
        master[m].quarantine = (master[m].record -> master[m].quarantine : QUARANTINE);
        master[m].record = 1;
        if
        :: master[m].quarantine > 0 -> reached(refused_in_quarantine)
        :: else ->
            printf("master %d grants to client %d\n", m, c);
            master[m].owner = TOKEN(slot);
            master[m].left = (wrong(set_then_pexpire) -> 10 * TTL : TTL);
            assert(GOAL != orphan || !OVER(slot));
            answer(live, GRANTED)
        fi
    fi
}

inline extend(live)
{
    if
    :: master[m].owner == TOKEN(slot) || (master[m].owner != 0 && wrong(extend_without_compare)) ->
        master[m].left = (master[m].left > TTL && !wrong(set_then_pexpire) -> master[m].left : TTL);
        answer(live, EXTENDED)
    :: else -> answer(live && wrong(any_reply_extends), EXTENDED)
    fi
}

inline release()
{
    if
    :: master[m].owner == TOKEN(slot) || (won[slot] && wrong(blind_release)) || (!won[slot] && wrong(blind_rollback)) ->
        printf("master %d removes for client %d\n", m, c);
        assert(GOAL != rollback || won[slot]);
        delete_key(m)
    :: else
    fi
}

/* What a client does. */

inline send(what, only_to_voters)
{
    for (i : 0 .. MASTERS - 1) {
        if
        :: CONFIGURED(c, i) && !(only_to_voters && master[i].vote[c] == 0) ->
            master[i].pending[CURRENT(c)] = master[i].pending[CURRENT(c)] | (what)
        :: else
        fi
    }
}

inline begin()
{
    printf("client %d asks, attempt %d\n", c, tries[c] + 1);
    phase[c] = asking;
    tries[c]++;
    age[CURRENT(c)] = 0;
    validity[c] = VALIDITY;
    send(ACQUIRE + (wrong(set_then_pexpire) -> EXTEND : 0), false)
}

inline end_attempt()
{
    phase[c] = idle;
    validity[c] = 0;
    extension[c] = 0;
    acting[c] = 0;
    for (i : 0 .. MASTERS - 1) {
        master[i].vote[c] = 0
    }
}

inline begin_release()
{
    printf("client %d releases\n", c);
    send(RELEASE, false);
    if
    :: wrong(believing_while_releasing) -> phase[c] = releasing
    :: else -> end_attempt()
    fi
}

inline lose()
{
    printf("client %d is signalled to stop\n", c);
    phase[c] = lost;
    assert(GOAL != acts_after_loss || acting[c] == 0);
    if
    :: wrong(removed_at_stop) -> send(RELEASE, false)
    :: else
    fi
}

inline begin_extend()
{
    printf("client %d extends\n", c);
    extends[c]++;
    extend_age[CURRENT(c)] = 0;
    extension[c] = VALIDITY;
    send(EXTEND, false)
}

/* An attempt may be abandoned at any time: time-out, cancellation. A holder may let go at any time. A
 * loss may be signalled at any time: stop_margin, a manager that closes, an answer that moves the
 * deadline back. Its keys are removed when it lets go, or at some time after its last deadline. */
proctype client(byte c)
{
end:
    do
    :: d_step { phase[c] == idle && MAY_TRY(c) -> begin(); settle() }
    :: d_step {
        phase[c] == asking ->
        printf("client %d gives up\n", c);
        send(RELEASE, wrong(no_rollback_of_unknown));
        end_attempt();
        settle()
    }
    :: d_step { phase[c] == held || phase[c] == lost -> begin_release(); settle() }
    :: d_step { phase[c] == held -> lose(); settle() }
    :: d_step { phase[c] == releasing -> end_attempt(); settle() }
    :: d_step {
        phase[c] == held && extends[c] < EXTENDS && (VALID(c) || wrong(extend_after_deadline)) ->
        begin_extend();
        settle()
    }
    /* A clock that stands still while the machine is suspended. */
    :: d_step {
        wrong(suspended_clock) && validity[c] > 0 && validity[c] < VALIDITY ->
        validity[c]++;
        acting[c] = (phase[c] == held -> validity[c] : 0);
        settle()
    }
    od
}

#define SENT(commands) ((master[m].pending[slot] & (times * (commands))) != 0)

/* The oldest command of a connection. */
inline execute(live, times)
{
    if
    :: SENT(RELEASE) && (wrong(unordered_rollback) || !SENT(ACQUIRE + EXTEND)) ->
        master[m].pending[slot] = master[m].pending[slot] - times * RELEASE;
        release()
    :: SENT(ACQUIRE) && !(wrong(unordered_rollback) && SENT(RELEASE)) ->
        master[m].pending[slot] = master[m].pending[slot] - times * ACQUIRE;
        acquire(live)
    :: else ->
        master[m].pending[slot] = master[m].pending[slot] - times * EXTEND;
        extend(live)
    fi
}

/* The oldest reply of a connection: `before` are those that would come before it. */
#define REPLY(attempt, reply, before, count) \
    :: d_step { \
        (PENDING(attempt) & (before)) == reply && (attempt == 0 || (PENDING(0) & (GRANTED + EXTENDED)) == 0) -> \
        PENDING(attempt) = PENDING(attempt) - reply; \
        slot = SLOT(c, attempt); \
        count; \
        slot = 0; \
        settle() \
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
    :: d_step { FIRST(LATE * LIVE, 1) -> slot = SLOT(c, 1); execute(false, LATE); slot = 0; settle() }
#endif
    :: d_step {
        breaks > 0 && !master[m].broken[c] && (PENDING(0) != 0 || PENDING(ATTEMPTS - 1) != 0) ->
        break_connection();
        settle()
    }
    REPLY(0, GRANTED, GRANTED, count_grant())
    REPLY(0, EXTENDED, GRANTED + EXTENDED, count_extension())
#if ATTEMPTS > 1
    REPLY(1, GRANTED, GRANTED, count_grant())
    REPLY(1, EXTENDED, GRANTED + EXTENDED, count_extension())
#endif
    od
}

inline forget()
{
    printf("master %d forgets\n", m);
    losses--;
    delete_key(m)
}

#define TICKING(m) (master[m].left > 0 || master[m].quarantine > 0)

/* What happens to a master's memory and clock. */
proctype fate(byte m)
{
end:
    do
    /* A restart: the connections go with it, and the handshake tells of it. */
    :: d_step {
        losses > 0 ->
        forget();
        master[m].quarantine = QUARANTINE;
        for (j : 1 .. SLOTS - 1) {
            master[m].pending[j] = master[m].pending[j] & (GRANTED + EXTENDED)
        }
        settle()
    }
    /* FLUSHALL: no client is notified, the next grant notices that the record is missing. */
    :: d_step {
        losses > 0 && master[m].record && master[m].owner != 0 ->
        forget();
        master[m].record = wrong(uptime_quarantine);
        settle()
    }
    :: d_step {
        drifts > 0 && !master[m].drifted && TICKING(m) ->
        drifts--;
        master[m].drifted = 1;
        printf("clock of master %d is a tick fast\n", m);
        pass(m);
        settle()
    }
    :: d_step {
        drifts > 0 && !master[m].drifted && TICKING(m) ->
        drifts--;
        master[m].drifted = 1;
        printf("clock of master %d is a tick slow\n", m);
        master[m].left = (master[m].left > 0 -> master[m].left + 1 : 0);
        master[m].quarantine = (master[m].quarantine > 0 -> master[m].quarantine + 1 : 0);
        settle()
    }
    :: false
    od
}

inline tick()
{
    printf("tick\n");
    for (i : 0 .. MASTERS - 1) {
        pass(i)
    }
    for (i : 0 .. CLIENTS - 1) {
        count_down(validity[i]);
        count_down(extension[i]);
        count_down(acting[i])
    }
    for (i : 1 .. SLOTS - 1) {
        age[i] = (age[i] < LONG_AGO -> age[i] + 1 : LONG_AGO);
        extend_age[i] = (extend_age[i] < LONG_AGO -> extend_age[i] + 1 : LONG_AGO)
    }
    check_keys();
    settle()
}

init
{
    byte c;
    byte m;
    atomic {
        for (m : 0 .. MASTERS - 1) {
            master[m].record = 1
        }
        run_all()
    }
    /* Time passes as long as that changes anything, so that an end in which somebody waits is seen. */
end:
    do
    :: d_step { EVERY(||, TICKING) || lively -> tick() }
    NOBODY_WAITS
    od
}
