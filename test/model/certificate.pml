/* A certificate behind the batch: an acquire is a native SET, which looks at nothing, and then a GET of the
 * master's record on the same connection, which shows that nothing was forgotten in between. And the
 * extensions of a lease whose SET was not vouched for by such a certificate.
 * test/model/README.md says what is left out, and why that is safe.
 *
 * Scope, by cases.py:  FAULTS of any kind but steps, or with ONLY of these kinds (their sum); TTL in ticks;
 *                      ROUNDS of extension, of both clients together; ATTEMPTS of each client;
 *                      NEW=1: a new quorum, without records; HELD=1: the first client has a lease, of two
 *                      vouched votes, and its third SET may be in flight
 * WAITS=1              a heal and an unvouched key count only past the quarantine on the client's own
 *                      clock as well, which the library does not look at
 */

#define MASTERS 3

#include "common.pml"

#define CLIENTS 2
#define QUORUM 2
#define QUARANTINE (TTL + 1)

/* What can happen. */
#define restart 1 /* of a server; or another one, not in use before, gets its address */
#define flush 2
#define promotion 4 /* a replica that lags behind gets the master's address */
#define broken 8 /* a connection breaks; what was sent on it may be executed at any time */
#define raised 16 /* another client's handshake asks for a longer quarantine */
#define step 32 /* a clock is stepped forward */
#define MAY(kind) (faults > 0 && (ONLY & kind) != 0)

/* What can be wrong. */
#define no_certificate 1
#define any_record_vouches 2
#define compared_with_present 3 /* the certificate, with the record that the client knows by then */
#define id_kept 4 /* by a handshake that begins a memory */
#define record_carried_over 5 /* to the next connection */
#define certificate_carried_over 6 /* it may be read on the next connection */
#define queued_in_quarantine 7
#define record_adopted 8 /* from a certificate that does not match */
#define unvouched_counted 9
#define vouched_by_heal 10
#define vouched_by_missing 11
#define heal_finds_and_counts 12 /* a key, without a look at the record */
#define rolled_back_in_lease 13 /* a SET whose certificate did not match, though the lease goes on */

/* What must be reachable. */
#define succession 1 /* both clients have had the lock */
#define mismatched 2 /* a key was set, and its certificate does not match */
#define extended 3
#define unvouched_extended 4 /* a key whose certificate failed was the vote that moved the deadline */
#define unvouched_refused 5 /* an unvouched key is there, and is not counted */
#define healed 6
#define set_late 7 /* in a lease, by a connection that broke */
#define opened 8 /* a lock was granted after the quarantine of a new quorum */
#define counted_in_quarantine 9 /* a vouched key that survived a restart */

/* What the record says. */
#define absent 0
#define ours 1 /* this run id */
#define other_run 2

/* What a client knows of the record. */
#define unknown 0 /* no handshake on this connection, or a certificate that did not match */
#define another 1
#define the_present 2

/* A client's SET on a master. */
#define none 0 /* none that could still have an effect */
#define wanted 1
#define queued 2
#define granted 3 /* and its certificate is still to come */
#define refused 4 /* the same */
#define late 5 /* its connection broke, and it may be executed at any time */

/* EXTEND or HEAL in flight. */
#define to_extend 1
#define to_heal 2

typedef Master {
    byte owner;
    byte left; /* ticks until its key expires */
    byte record;
    byte quarantine; /* ticks until born + Q, by its own clock */
    byte known[CLIENTS];
    byte remainder[CLIENTS]; /* of the quarantine, by the client's clock */
    byte set[CLIENTS];
    bit ticket[CLIENTS]; /* the SET was queued under the present record */
    bit unvouched[CLIENTS];
    byte ends[CLIENTS]; /* ticks until its vote ends */
    byte asked[CLIENTS];
    bit removes[CLIENTS];
};
Master master[MASTERS];

mtype = { idle, asking, held, over };
mtype phase[CLIENTS] = idle;
byte validity[CLIENTS]; /* of the acquire */
byte rest[CLIENTS]; /* of the present round */
byte acting[CLIENTS]; /* ticks until the last deadline that the holder ever believed in */
byte attempts[CLIENTS] = ATTEMPTS;
byte rounds = ROUNDS;
byte faults = FAULTS;
bit succeeded;

/* Scratch, 0 between steps. */
byte i;
byte j;
byte deadline;
byte holders;

#define COUNTED(c) ((master[0].ends[c] > 0) + (master[1].ends[c] > 0) + (master[2].ends[c] > 0))
#define LATE_ENOUGH(c) \
    ((master[0].ends[c] >= deadline) + (master[1].ends[c] >= deadline) + (master[2].ends[c] >= deadline))

/* From here on nothing that is checked can go wrong: a client is through, and so is its lease. */
#define THROUGH ((phase[0] == over || phase[1] == over) && GOAL == nothing)

#define SET_IS(m, c, state) (master[m].set[c] == state)

/* An extension may still find what is there. */
#define MAY_COUNT_LATER(m, c) (rounds > 0 || master[m].asked[c] > 0)
/* A certificate of another record than the ticket's has an effect. */
#define MISMATCH_MATTERS \
    (wrong(any_record_vouches) || wrong(compared_with_present) || wrong(record_adopted) || \
        wrong(rolled_back_in_lease) || GOAL == mismatched)
/* What a client knows of a record matters even when no SET of its waits for that. */
#define KNOWN_MATTERS \
    (wrong(compared_with_present) || wrong(record_adopted) || (ONLY & step) != 0)
#define NEEDS_NO_RECORD(m, c) (phase[c] != idle && attempts[c] == 0 && !SET_IS(m, c, wanted) && !KNOWN_MATTERS)
#define NEEDS_HANDSHAKE(m, c) \
    (!THROUGH && (SET_IS(m, c, wanted) || attempts[c] > 0 || KNOWN_MATTERS) && \
        (master[m].known[c] != the_present || master[m].record != ours))

/* Ends each step: drops what can never have an effect again. The keys of an attempt that is over go at
 * once: as long as they stayed, they could only keep others out. */
inline settle()
{
    for (j : 0 .. CLIENTS - 1) {
        phase[j] = ((phase[j] == asking && validity[j] == 0) || (phase[j] == held && acting[j] == 0) ->
            over : phase[j]);
        if
        :: phase[j] == over ->
            validity[j] = 0;
            rest[j] = 0;
            acting[j] = 0;
            for (i : 0 .. MASTERS - 1) {
                master[i].left = (master[i].owner == j + 1 -> 0 : master[i].left);
                master[i].owner = (master[i].owner == j + 1 -> 0 : master[i].owner);
                master[i].set[j] = none;
                master[i].unvouched[j] = 0;
                master[i].ends[j] = 0;
                master[i].asked[j] = 0;
                master[i].removes[j] = 0
            };
            phase[j] = (attempts[j] > 0 -> idle : over)
        :: else
        fi;
        for (i : 0 .. MASTERS - 1) {
            clear(master[i].asked[j], rest[j] == 0);
            clear(master[i].set[j], validity[j] == 0 &&
                (SET_IS(i, j, wanted) || (!MAY_COUNT_LATER(i, j) && !wrong(rolled_back_in_lease))));
            clear(master[i].set[j], (SET_IS(i, j, late) || SET_IS(i, j, refused)) && !MAY_COUNT_LATER(i, j));
            clear(master[i].set[j],
                (SET_IS(i, j, granted) || SET_IS(i, j, refused)) && !master[i].ticket[j] && !MISMATCH_MATTERS);
            clear(master[i].ticket[j], SET_IS(i, j, none) || SET_IS(i, j, wanted) || SET_IS(i, j, late));
            if
            :: !MAY_COUNT_LATER(i, j) && (master[i].set[j] == none || master[i].set[j] == wanted) ->
                master[i].unvouched[j] = 0;
                if
                :: master[i].owner == j + 1 && master[i].ends[j] == 0 && !wrong(rolled_back_in_lease) -> delete_key(i)
                :: else
                fi
            :: else
            fi;
            clear(master[i].known[j], NEEDS_NO_RECORD(i, j));
            clear(master[i].remainder[j], NEEDS_NO_RECORD(i, j))
        }
    }
    if
    :: THROUGH ->
        reset(master);
        reset(validity);
        reset(rest);
        reset(acting);
        reset(attempts);
        faults = 0;
        rounds = 0;
        for (j : 0 .. CLIENTS - 1) {
            phase[j] = over
        }
    :: else
    fi;
    i = 0;
    j = 0;
    deadline = 0;
    holders = 0;
    sort_masters()
}

/* The record is another one: whatever was queued or learned under the one before is outdated. */
inline draw_id(m)
{
    for (j : 0 .. CLIENTS - 1) {
        master[m].ticket[j] = 0;
        master[m].known[j] = (master[m].known[j] == the_present -> another : master[m].known[j])
    }
}

inline begin_memory(m)
{
    printf("the memory of master %d begins now\n", m);
    if
    :: !wrong(id_kept) -> draw_id(m)
    :: else
    fi;
    master[m].record = ours;
    master[m].quarantine = QUARANTINE
}

/* A client may introduce itself again at any time. */
inline handshake(m, c)
{
    printf("handshake of client %d on master %d\n", c, m);
    if
    :: master[m].record != ours -> begin_memory(m)
    :: else
    fi;
    master[m].known[c] = the_present;
    master[m].remainder[c] =
        (master[m].remainder[c] > master[m].quarantine -> master[m].remainder[c] : master[m].quarantine)
}

inline move_deadline(c)
{
    find_deadline(LATE_ENOUGH(c) < QUORUM);
    if
    :: deadline > acting[c] ->
        printf("client %d has the lock for %d ticks\n", c, deadline);
        acting[c] = deadline;
        if
        :: phase[c] == asking ->
            assert(GOAL != succession || !succeeded);
            assert(GOAL != opened || NEW == 0);
            succeeded = (GOAL == succession);
            phase[c] = held
        :: else
        fi;
        holders = (acting[0] > 0) + (acting[1] > 0);
        assert(holders <= 1)
    :: else
    fi
}

inline count_vote(m, c, until)
{
    master[m].ends[c] = (master[m].ends[c] > until -> master[m].ends[c] : until);
    move_deadline(c)
}

inline queue_set(m, c)
{
    printf("client %d queues SET for master %d\n", c, m);
    master[m].set[c] = queued;
    master[m].ticket[c] = (master[m].known[c] == the_present);
    master[m].unvouched[c] = 1
}

inline execute_set(m, c)
{
    if
    :: master[m].owner == 0 ->
        printf("master %d executes SET of client %d\n", m, c);
        master[m].owner = c + 1;
        master[m].left = TTL;
        assert(GOAL != set_late || phase[c] != held || master[m].set[c] != late);
        master[m].set[c] = (master[m].set[c] == late -> none : granted);
        if
        :: wrong(no_certificate) && validity[c] > 0 && master[m].set[c] == granted ->
            count_vote(m, c, validity[c])
        :: else
        fi
    :: else -> master[m].set[c] = (master[m].set[c] == late -> none : refused)
    fi
}

#define MATCHES(m, c) \
    (master[m].record != absent && \
        (master[m].ticket[c] || wrong(any_record_vouches) || \
            (wrong(compared_with_present) && master[m].known[c] == the_present)))

inline certify(m, c)
{
    if
    :: MATCHES(m, c) ->
        printf("master %d vouches for client %d\n", m, c);
        master[m].unvouched[c] = 0;
        if
        :: master[m].set[c] == granted && validity[c] > 0 -> count_vote(m, c, validity[c])
        :: else
        fi
    :: else ->
        printf("the certificate of master %d for client %d does not match\n", m, c);
        assert(GOAL != mismatched || master[m].set[c] != granted);
        master[m].known[c] = (wrong(record_adopted) && master[m].record != absent -> the_present : unknown);
        master[m].removes[c] = wrong(rolled_back_in_lease)
    fi;
    master[m].set[c] = none
}

#define TRUSTED(m, c) \
    (master[m].record == ours && master[m].quarantine == 0 && (!WAITS || master[m].remainder[c] == 0))
#define COUNTS(m, c) (!master[m].unvouched[c] || TRUSTED(m, c) || wrong(unvouched_counted))

inline extend(m, c, counted)
{
    if
    :: master[m].owner == c + 1 ->
        master[m].left = TTL;
        master[m].asked[c] = 0;
        if
        :: counted && COUNTS(m, c) ->
            printf("master %d, client %d: still there\n", m, c);
            assert(GOAL != counted_in_quarantine || TRUSTED(m, c));
            deadline = acting[c];
            count_vote(m, c, rest[c]);
            assert(GOAL != extended || acting[c] < TTL);
            assert(GOAL != unvouched_extended || acting[c] < TTL || !master[m].unvouched[c] || !SET_IS(m, c, none))
        :: counted && !COUNTS(m, c) ->
            printf("master %d, client %d: there, but not vouched for\n", m, c);
            reached(unvouched_refused)
        :: else
        fi
    :: master[m].owner == 0 && TRUSTED(m, c) ->
        printf("master %d, client %d: missing\n", m, c);
        master[m].ends[c] = 0;
        master[m].unvouched[c] = (wrong(vouched_by_missing) -> 0 : master[m].unvouched[c]);
        master[m].asked[c] = to_heal
    :: else ->
        printf("master %d, client %d: another's, or quarantined\n", m, c);
        master[m].ends[c] = 0;
        master[m].asked[c] = 0
    fi
}

inline heal(m, c, counted)
{
    master[m].asked[c] = 0;
    if
    :: master[m].owner == c + 1 ->
        master[m].left = TTL;
        if
        :: counted && (TRUSTED(m, c) || wrong(heal_finds_and_counts)) ->
            printf("HEAL finds the key of client %d on master %d\n", c, m);
            count_vote(m, c, rest[c])
        :: else
        fi
    :: master[m].owner == 0 && TRUSTED(m, c) ->
        printf("master %d heals for client %d\n", m, c);
        master[m].owner = c + 1;
        master[m].left = TTL;
        master[m].unvouched[c] = (wrong(vouched_by_heal) -> 0 : master[m].unvouched[c]);
        if
        :: counted ->
            count_vote(m, c, rest[c]);
            assert(GOAL != healed || acting[c] < TTL)
        :: else
        fi
    :: else -> master[m].ends[c] = 0
    fi
}

inline ask(c)
{
    printf("client %d asks\n", c);
    attempts[c]--;
    phase[c] = asking;
    validity[c] = TTL;
    for (i : 0 .. MASTERS - 1) {
        master[i].set[c] = wanted
    }
}

inline begin_round(c)
{
    printf("client %d extends\n", c);
    rounds--;
    rest[c] = TTL;
    for (i : 0 .. MASTERS - 1) {
        master[i].asked[c] = to_extend;
        master[i].set[c] = (master[i].set[c] == wanted -> none : master[i].set[c])
    }
}

/* Commands on a connection are executed in their order. None of these is executed after its lease. */
#define MAY_EXECUTE(m, c, what) \
    (master[m].asked[c] == what && acting[c] > 0 && !SET_IS(m, c, queued) && !master[m].removes[c])

/* The commands of client c to master m, and what each does there. What waits, waits as long as it likes. */
#define COMMANDS(c) \
    :: d_step { NEEDS_HANDSHAKE(m, c) -> handshake(m, c); settle() } \
    :: d_step { \
        SET_IS(m, c, wanted) && master[m].known[c] != unknown && \
            (master[m].remainder[c] == 0 || wrong(queued_in_quarantine)) -> \
        queue_set(m, c); \
        settle() \
    } \
    :: d_step { SET_IS(m, c, queued) || SET_IS(m, c, late) -> execute_set(m, c); settle() } \
    :: d_step { \
        SET_IS(m, c, granted) || SET_IS(m, c, refused) -> \
        certify(m, c); \
        settle() \
    } \
    :: d_step { MAY_EXECUTE(m, c, to_extend) -> extend(m, c, true); settle() } \
    :: d_step { MAY_EXECUTE(m, c, to_extend) && master[m].owner == c + 1 -> extend(m, c, false); settle() } \
    :: d_step { MAY_EXECUTE(m, c, to_heal) -> heal(m, c, true); settle() } \
    :: d_step { MAY_EXECUTE(m, c, to_heal) && master[m].owner != 2 - c -> heal(m, c, false); settle() } \
    :: d_step { \
        MAY(restart) && master[m].owner != c + 1 && master[m].ends[c] > 0 -> \
        printf("master %d restarts with an old key of client %d\n", m, c); \
        forget_record(other_run); \
        disconnect_all(); \
        master[m].owner = c + 1; \
        master[m].left = master[m].ends[c]; \
        settle() \
    } \
    :: d_step { \
        MAY(broken) && (master[m].known[c] != unknown || SET_IS(m, c, queued) || SET_IS(m, c, granted) || \
            SET_IS(m, c, refused)) -> \
        printf("the connection of client %d to master %d breaks\n", c, m); \
        faults--; \
        disconnect(c); \
        settle() \
    } \
    :: d_step { \
        master[m].removes[c] && master[m].owner == c + 1 -> \
        printf("the SET of client %d on master %d is rolled back\n", c, m); \
        master[m].removes[c] = 0; \
        delete_key(m); \
        settle() \
    }

/* The connections to master m end. What was sent may be executed at any time. */
inline disconnect(c)
{
    master[m].known[c] = (wrong(record_carried_over) -> master[m].known[c] : unknown);
    if
    :: master[m].set[c] == queued -> master[m].set[c] = late
    :: (master[m].set[c] == granted || master[m].set[c] == refused) && !wrong(certificate_carried_over) ->
        master[m].set[c] = none
    :: else
    fi
}

inline disconnect_all()
{
    for (j : 0 .. CLIENTS - 1) {
        disconnect(j);
        master[m].remainder[j] = (wrong(record_carried_over) -> master[m].remainder[j] : 0)
    }
}

#define COVERED(m, c) (master[m].known[c] == the_present && master[m].remainder[c] >= master[m].quarantine)

/* Master m: what its clients send, and what happens to it. */
proctype at(byte m)
{
end:
    do
    COMMANDS(0)
    COMMANDS(1)
    /* Somebody else's handshake. */
    :: d_step {
        !THROUGH && FAULTS > 0 && master[m].record != ours ->
        begin_memory(m);
        settle()
    }
    /* With nothing, with an old snapshot, with all its data. */
    :: d_step {
        MAY(restart) ->
        printf("master %d restarts empty\n", m);
        forget_record(absent);
        delete_key(m);
        disconnect_all();
        settle()
    }
    :: d_step {
        (MAY(restart) || MAY(promotion)) && (master[m].record != absent || NEW == 0) ->
        printf("master %d restarts with an old snapshot, or a replica takes its place\n", m);
        forget_record(other_run);
        delete_key(m);
        disconnect_all();
        settle()
    }
    :: d_step {
        MAY(restart) && master[m].record != absent && master[m].owner != 0 ->
        printf("master %d restarts with its data\n", m);
        forget_record(other_run);
        disconnect_all();
        settle()
    }
    :: d_step {
        MAY(flush) && master[m].record != absent ->
        printf("master %d is flushed\n", m);
        forget_record(absent);
        delete_key(m);
        settle()
    }
    :: d_step {
        MAY(raised) && master[m].record == ours ->
        printf("another client asks for a longer quarantine on master %d\n", m);
        faults--;
        draw_id(m);
        settle()
    }
    :: d_step {
        MAY(raised) && master[m].record == ours ->
        printf("another client asks for a longer quarantine on master %d, which quarantines it\n", m);
        faults--;
        draw_id(m);
        master[m].quarantine = master[m].quarantine + 1;
        settle()
    }
    :: d_step {
        MAY(step) && master[m].owner == 0 && master[m].quarantine > 0 &&
            (master[m].record != ours || (COVERED(m, 0) && COVERED(m, 1))) ->
        printf("the clock of master %d is stepped\n", m);
        faults--;
        master[m].quarantine = 0;
        settle()
    }
    od
}

#define TICKING(m) \
    (master[m].left > 0 || master[m].quarantine > 0 || master[m].remainder[0] > 0 || master[m].remainder[1] > 0)

inline tick()
{
    printf("tick\n");
    for (i : 0 .. MASTERS - 1) {
        pass(i);
        for (j : 0 .. CLIENTS - 1) {
            count_down(master[i].remainder[j]);
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
    :: d_step { phase[c] == idle && attempts[c] > 0 -> ask(c); settle() } \
    :: d_step { phase[c] == held && COUNTED(c) >= QUORUM && rounds > 0 -> begin_round(c); settle() } \
    :: d_step { \
        (attempts[c] > 0 || GOAL == succession) && (phase[c] == asking || phase[c] == held) -> \
        printf("client %d gives up or releases\n", c); \
        phase[c] = over; \
        settle() \
    }

init
{
    byte c;
    byte m;
    atomic {
        for (m : 0 .. MASTERS - 1) {
            master[m].record = (NEW == 1 -> absent : ours);
            for (c : 0 .. CLIENTS - 1) {
                master[m].known[c] = (NEW == 1 -> unknown : the_present)
            }
        }
        if
        :: HELD == 1 ->
            attempts[0] = 0;
            phase[0] = held;
            acting[0] = TTL;
            for (m : 0 .. QUORUM - 1) {
                master[m].owner = 1;
                master[m].left = TTL;
                master[m].ends[0] = TTL
            }
            if
            :: queue_set(QUORUM, 0)
            :: true
            fi
        :: else
        fi;
        for (m : 0 .. MASTERS - 1) {
            run at(m)
        }
        c = 0;
        m = 0
    }
    /* Time passes as long as that changes anything. */
end:
    do
    CLIENT(0)
    CLIENT(1)
    :: d_step {
        EVERY(||, TICKING) || acting[0] > 0 || acting[1] > 0 || validity[0] > 0 || validity[1] > 0 ->
        tick()
    }
    od
}
