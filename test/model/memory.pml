/* What a master stores: its record, the handshake, the quarantine, and what takes a memory away.
 * Each client makes one attempt. test/model/README.md says what is left out, and why that is safe.
 *
 * Scope, by cases.py:  FAULTS of any kind, or of one kind with ONLY=kind; TTL in ticks;
 *                      NEW=1: a new quorum, without records
 * Beyond the assumptions: CONNECTED=1: clients stay connected to a master that is made a replica;
 *                      RETURNS=1: a server with a record of its own takes over an address;
 *                      UNNOTICED=1: a clock is stepped before a client has its handshake
 */

#define MASTERS 3
#define CLIENTS 2
#define QUORUM 2

#include "common.pml"

/* What can happen. */
#define restart 1
#define flush 2
#define promotion 3 /* a replica that lags behind gets the master's address */
#define takeover 4 /* another server, up for long, gets the master's address */
#define demotion 5 /* a master is made a replica of one that lags behind, and a master again */
#define step 6 /* a clock is stepped forward */
#define MAY(kind) (faults > 0 && (ONLY == 0 || ONLY == kind || (ONLY == restart + step && (kind == restart || kind == step))))

/* What can be wrong. */
#define uptime_trusted 1
#define durability_trusted 2
#define promotion_trusted 3
#define other_run_trusted 4
#define only_handshake 5
#define remainder_not_counted 6
#define no_quarantine 7
#define half_quarantine 8

/* What must be reachable. */
#define succession 1 /* both clients have had the lock */
#define refused_in_quarantine 2
#define step_refused 3 /* only the client's own clock kept a vote from being counted */
#define opened 4 /* a lock was granted after the quarantine of a new quorum */

#define QUARANTINE (wrong(no_quarantine) -> 0 : (wrong(half_quarantine) -> TTL / 2 : TTL + 1))

/* What the record says. */
#define absent 0
#define ours 1 /* this run id, and whether it was promoted */
#define other_run 2
#define not_the_promotion 3 /* this run id, from before the server was a replica */

typedef Master {
    byte owner;
    byte left; /* ticks until its key expires */
    byte record;
    byte quarantine; /* ticks until born + Q, by its own clock */
    bit up_for_long;
    bit durable; /* it claims so, and its record does */
    bit connected[CLIENTS]; /* the handshake is done */
    bit outdated[CLIENTS]; /* the connection is older than a demotion */
    byte remainder[CLIENTS]; /* of the quarantine, by the client's clock */
    bit asks[CLIENTS];
    bit removes[CLIENTS];
    bit vote[CLIENTS];
};
Master master[MASTERS];

mtype = { idle, asking, held, over };
mtype phase[CLIENTS] = idle;
byte validity[CLIENTS];
byte faults = FAULTS;
byte last; /* the client that had the lock last, and 1 */

/* Scratch, 0 between steps. */
byte i;
byte j;
byte holders;

#define VOTES(c) (master[0].vote[c] + master[1].vote[c] + master[2].vote[c])
/* A holder acts until it lets go or its deadline has passed. */
#define ACTS(c) (phase[c] == held && validity[c] > 0)

/* From here on nothing that is checked can go wrong: a client is through, and so is its lease. */
#define THROUGH (phase[0] == over || phase[1] == over)

/* Ends each step: drops what can never have an effect again. */
inline settle()
{
    for (j : 0 .. CLIENTS - 1) {
        phase[j] = (phase[j] != idle && validity[j] == 0 && GOAL != succession -> over : phase[j])
    }
    for (i : 0 .. MASTERS - 1) {
        for (j : 0 .. CLIENTS - 1) {
            clear(master[i].asks[j], validity[j] == 0);
            clear(master[i].removes[j], !master[i].asks[j] && master[i].owner != j + 1)
        }
    }
    if
    :: THROUGH && GOAL == nothing ->
        reset(master);
        reset(validity);
        faults = 0;
        last = 0;
        for (j : 0 .. CLIENTS - 1) {
            phase[j] = over
        }
    :: else
    fi;
    i = 0;
    j = 0;
    holders = 0;
    sort_masters()
}

/* The handshake and each grant look at the record. The handshake writes a record that cannot be trusted
 * anew; a grant is refused, and the handshake comes again. */
#define TRUSTED(m, c) \
    (master[m].record == ours || \
        (master[m].record == absent && wrong(uptime_trusted) && master[m].up_for_long) || \
        (master[m].record == other_run && (wrong(other_run_trusted) || (wrong(durability_trusted) && master[m].durable))) || \
        (master[m].record == not_the_promotion && (wrong(promotion_trusted) || master[m].outdated[c])))

inline handshake()
{
    printf("client %d is connected to master %d\n", c, m);
    master[m].connected[c] = 1;
    if
    :: !TRUSTED(m, c) ->
        printf("client %d: the memory of master %d begins now\n", c, m);
        master[m].quarantine = QUARANTINE
    :: else
    fi;
    master[m].record = ours;
    master[m].remainder[c] = (wrong(remainder_not_counted) -> 0 : master[m].quarantine)
}

inline acquire()
{
    master[m].asks[c] = 0;
    if
    :: !TRUSTED(m, c) && !wrong(only_handshake) -> master[m].connected[c] = 0
    :: (TRUSTED(m, c) || wrong(only_handshake)) && master[m].quarantine > 0 ->
        reached(refused_in_quarantine);
        master[m].remainder[c] = (wrong(remainder_not_counted) -> 0 : master[m].quarantine)
    :: (TRUSTED(m, c) || wrong(only_handshake)) && master[m].quarantine == 0 && master[m].owner == 0 ->
        printf("master %d grants to client %d\n", m, c);
        master[m].owner = c + 1;
        master[m].left = TTL;
        master[m].vote[c] = (phase[c] == asking);
        if
        :: phase[c] == asking && VOTES(c) >= QUORUM ->
            printf("client %d has the lock\n", c);
            phase[c] = held;
            assert(GOAL != succession || last == 0);
            assert(GOAL != opened || NEW == 0);
            last = c + 1;
            holders = ACTS(0) + ACTS(1);
            assert(holders <= 1)
        :: else
        fi
    :: else
    fi
}

proctype client(byte c)
{
end:
    do
    :: d_step {
        phase[c] == idle ->
        printf("client %d asks\n", c);
        phase[c] = asking;
        validity[c] = TTL;
        for (i : 0 .. MASTERS - 1) {
            master[i].asks[c] = 1
        }
        settle()
    }
    :: d_step {
        phase[c] == asking || phase[c] == held ->
        printf("client %d gives up or releases\n", c);
        phase[c] = over;
        for (i : 0 .. MASTERS - 1) {
            master[i].removes[c] = 1;
            master[i].vote[c] = 0
        }
        settle()
    }
    :: phase[c] == over -> break
    od
}

proctype link(byte c; byte m)
{
end:
    do
    :: d_step { !master[m].connected[c] && !THROUGH -> handshake(); settle() }
    :: d_step { master[m].asks[c] && master[m].connected[c] && master[m].remainder[c] == 0 -> acquire(); settle() }
    :: d_step {
        GOAL == step_refused && master[m].asks[c] && master[m].remainder[c] > 0 && master[m].quarantine == 0 ->
        reached(step_refused)
    }
    :: d_step {
        master[m].removes[c] && !master[m].asks[c] && master[m].owner == c + 1 ->
        delete_key(m);
        settle()
    }
    od
}

inline disconnect()
{
    for (j : 0 .. CLIENTS - 1) {
        master[m].connected[j] = 0;
        master[m].outdated[j] = 0;
        master[m].remainder[j] = 0;
        master[m].asks[j] = 0
    }
}

#define COVERED(m, c) \
    (master[m].connected[c] && (master[m].remainder[c] >= master[m].quarantine || wrong(remainder_not_counted)))

/* What happens to a master. What clients had on the way to it is lost. */
proctype fate(byte m)
{
end:
    do
    /* With nothing, with an old snapshot, with all its data. A server that was just started is young. */
    :: d_step {
        MAY(restart) ->
        printf("master %d restarts empty\n", m);
        forget_record(absent);
        delete_key(m);
        disconnect();
        master[m].up_for_long = 0;
        settle()
    }
    :: d_step {
        MAY(restart) && master[m].record != absent ->
        printf("master %d restarts with an old snapshot\n", m);
        forget_record(other_run);
        delete_key(m);
        disconnect();
        master[m].up_for_long = 0;
        master[m].durable = 0;
        settle()
    }
    :: d_step {
        MAY(restart) && master[m].record != absent && master[m].owner != 0 ->
        printf("master %d restarts with its data\n", m);
        forget_record(other_run);
        disconnect();
        master[m].up_for_long = 0;
        settle()
    }
    /* Connections stay. */
    :: d_step {
        MAY(flush) && master[m].record != absent ->
        printf("master %d is flushed\n", m);
        forget_record(absent);
        delete_key(m);
        settle()
    }
    /* The record came with the data. */
    :: d_step {
        MAY(promotion) && master[m].record != absent ->
        printf("a replica takes the place of master %d\n", m);
        forget_record(other_run);
        delete_key(m);
        disconnect();
        master[m].up_for_long = 1;
        master[m].durable = 1;
        settle()
    }
    :: d_step {
        MAY(takeover) ->
        printf("another server takes the place of master %d\n", m);
        forget_record((RETURNS == 1 -> ours : absent));
        delete_key(m);
        disconnect();
        master[m].up_for_long = 1;
        settle()
    }
    :: d_step {
        MAY(demotion) && master[m].record == ours ->
        printf("master %d was made a replica, and a master again\n", m);
        forget_record(not_the_promotion);
        delete_key(m);
        if
        :: CONNECTED == 0 -> disconnect()
        :: else ->
            for (j : 0 .. CLIENTS - 1) {
                master[m].outdated[j] = master[m].connected[j]
            }
        fi;
        settle()
    }
    /* Not while a key is there (A2), nor in a quarantine before all clients had their handshake. */
    :: d_step {
        MAY(step) && master[m].owner == 0 &&
            (master[m].quarantine > 0 || !master[m].up_for_long) &&
            (UNNOTICED == 1 || master[m].record != ours || (COVERED(m, 0) && COVERED(m, 1))) ->
        printf("the clock of master %d is stepped\n", m);
        faults--;
        master[m].quarantine = 0;
        master[m].up_for_long = 1;
        settle()
    }
    :: false
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
            count_down(master[i].remainder[j])
        }
    }
    for (j : 0 .. CLIENTS - 1) {
        count_down(validity[j])
    }
    settle()
}

init
{
    byte c;
    byte m;
    atomic {
        for (m : 0 .. MASTERS - 1) {
            master[m].record = (NEW == 1 -> absent : ours);
            master[m].up_for_long = 1 - NEW;
            for (c : 0 .. CLIENTS - 1) {
                master[m].connected[c] = 1 - NEW
            }
        }
        run_all()
    }
    /* Time passes as long as that changes anything. */
end:
    do
    :: d_step { EVERY(||, TICKING) || validity[0] > 0 || validity[1] > 0 -> tick() }
    od
}
