/* The members of a quorum, which the masters keep themselves, and how one of them is added, removed or replaced
 * while locks are taken. docs/model.md says what is left out, and why that is safe.
 *
 * A change is accepted by a majority of the present members, with a ballot. Q later it is final. In between a lock
 * needs a majority of the members before and of those after; or, with STEPS, of those before.
 *
 * Scope, each by -D:   STEPS=1: one master is added or removed at a time, and no majority counts twice; MASTERS
 *                      that answer; BEFORE, AFTER: the members before and after the change, a bit each; RIVAL: those
 *                      after it as the second changer wants them; LATER: those after another change (0: there is
 *                      none); CHANGERS, each with a ballot; FORGETS: how often a master loses its data; ROUNDS of
 *                      extension, of both clients together; LOCKS=0: there are no clients
 * -DWRONG=name         one rule of the protocol broken; the search must find an error
 * -DGOAL=name          reaching it is an error, which shows that the model is not vacuous
 *
 * Time. Attempts, leases, rounds and ballots do not outlast the quarantine Q. So a wait of Q is over once
 * everything has ended that was going on when it began. Nothing else is said of time. A run shows the last attempt
 * of each client, which does not end: an error needs two holders. A lease moves on when it is extended.
 */

#ifndef STEPS
#define STEPS 0
#endif
#ifndef MASTERS
#define MASTERS 4
#endif
#ifndef BEFORE
#define BEFORE 7 /* 0, 1, 2 */
#endif
#ifndef AFTER
#define AFTER 11 /* 0, 1, 3 */
#endif
#ifndef RIVAL
#define RIVAL AFTER
#endif
#ifndef LATER
#define LATER 0
#endif
#ifndef CHANGERS
#define CHANGERS 1
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef ROUNDS
#define ROUNDS 0
#endif

#ifndef LOCKS
#define LOCKS 1
#endif

#define CLIENTS 2

/* What can be wrong. */
#define nothing 0
#define no_joint_majority 1 /* a majority of the new members is enough */
#define written_to_new_members 2 /* the change is accepted by a majority of the new members */
#define new_member_not_quarantined 3
#define committed_at_once 4
#define compared_by_client 5 /* the record, at any time before */
#define removed_member_votes 6
#define read_before_quarantine 7
#define read_from_one 8
#define no_ballots 9 /* whoever comes first to a majority */
#define ballots_last 10 /* a ballot is not over after Q */
#define votes_added_up 11 /* that were given under different views */
#define behind_served 12 /* a client that is a step behind */
#define healed_without_blocking 13 /* majority of the members that have the key */
#define accepted_not_read 14 /* by a master that returns */
#define promised_not_read 15 /* the same */
#define commit_skips_ballots 16 /* the wait before the commit leaves them out */
#define old_members_read 17 /* and not the new ones */
#ifndef WRONG
#define WRONG nothing
#endif
#define wrong(rule) (WRONG == rule)

/* What must be reachable. */
#define changed 1 /* a client has the lock of the new members alone */
#define carried_over 2 /* the same, and it had the lock before the change */
#define joint_lease 3 /* with a vote of a new member */
#define succeeded 4 /* a second changer finished what the first had begun */
#define rival_won 5
#define returned_joint 6 /* a master that had forgotten the change has it again, and votes */
#ifndef GOAL
#define GOAL nothing
#endif
#define reached(goal) assert(GOAL != goal)

/* Records, and views of clients. The order is that of time, but for the two joint ones, of which the ballot
 * decides. */
#define marked 0 /* a master without a record, that has a mark in its place */
#define first 1
#define joint 2
#define joint_rival 3
#define second 4
#define second_rival 5
#define joint_later 6
#define third 7

#define OLD_OF(r) ((r) <= joint_rival -> BEFORE : ((r) == second_rival -> RIVAL : ((r) == third -> LATER : AFTER)))
#define NEW_OF(r) \
    ((r) == first -> BEFORE : \
        ((r) == joint || (r) == second -> AFTER : \
            ((r) == joint_rival || (r) == second_rival -> RIVAL : LATER)))
#define IS_JOINT(r) ((r) == joint || (r) == joint_rival || (r) == joint_later)
#define BASE_OF(r) ((r) == joint_later -> second : first) /* of a joint one */
#define FINAL_OF(r) ((r) == joint_later -> third : (r) + 2)
/* View v is one step after record r. */
#define STEP_AFTER(v, r) ((IS_JOINT(v) && BASE_OF(v) == r) || (IS_JOINT(r) && FINAL_OF(r) == v))

/* STEPS: a joint record only promises the next one, and serves as the one before. */
#define SERVED_AS(r) (STEPS && IS_JOINT(r) -> BASE_OF(r) : (r))
#define NEXT_BUT_ONE(v, r) (((v) == second || (v) == second_rival) && (r) == first || (v) == third && (r) == second)
#define FOLLOWS(v, r) ((!STEPS && STEP_AFTER(v, r)) || (STEPS && NEXT_BUT_ONE(v, SERVED_AS(r))))

#define BIT(m) (1 << (m))
#define COUNT(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1) + ((set) >> 3 & 1) + ((set) >> 4 & 1))
#define MAJORITY(of, set) (2 * COUNT((set) & (of)) > COUNT(of))
#define BLOCKING(of, set) (2 * COUNT((set) & (of)) >= COUNT(of)) /* N - q + 1 */
#define WINS(view, set) \
    ((MAJORITY(OLD_OF(view), set) || wrong(no_joint_majority)) && MAJORITY(NEW_OF(view), set))

/* What goes on, a bit each: leases and attempts, rounds, ballots. */
#define LEASE(c) BIT(c)
#define ROUND(c) BIT(2 + (c))
#define BALLOT(k) BIT(3 + (k))

/* Keys: the owner, and what they expire with. */
#define KEY(c) (1 + (c))
#define KEY_OF_ROUND(c) (3 + (c))
#define OWNS(m, c) (master[m].key == KEY(c) || master[m].key == KEY_OF_ROUND(c))

typedef Master {
    byte record;
    byte ballot; /* with which it accepted the joint record */
    byte promised;
    byte key;
    byte wait; /* while it is marked: what was going on when it was */
    byte read; /* the masters whose records were read for it, and the highest of these */
    byte top;
    byte top_ballot;
    byte top_promised;
};
Master master[MASTERS];

mtype = { idle, asking, held };
mtype phase[CLIENTS] = idle;
byte view[CLIENTS]; /* of the present attempt or round */
byte votes[CLIENTS];

mtype = { preparing, accepting, waiting, done };
mtype stage[3] = preparing;
byte value[3];
byte highest[CHANGERS]; /* the ballot of the value, if it was adopted */
byte promises[CHANGERS];
byte accepts[CHANGERS];
byte wait[CHANGERS];

byte going_on;
byte known = BIT(first); /* the records that anybody may have seen */
byte forgets = FORGETS;
byte rounds = ROUNDS;
byte carried; /* goals */

/* Scratch, 0 between steps. */
byte i;
byte holders;
byte finals;

#ifdef SYMMETRY
c_decl {
    static void swap_bits(unsigned char *set, int a, int b)
    {
        int differ = (*set >> a ^ *set >> b) & 1;
        *set ^= differ << a | differ << b;
    }
};
c_code {
    /* Masters that are members of the same sets are interchangeable, and so are clients. */
    static int rank_of_master(int m, int n)
    {
        #define BY(field) if (now.master[m].field != now.master[n].field) \
            return (int)now.master[m].field - (int)now.master[n].field
        #define BY_BIT(set) if ((now.set >> m & 1) != (now.set >> n & 1)) return (now.set >> m & 1) - (now.set >> n & 1)
        int k;
        BY(record);
        BY(key);
        BY(ballot);
        BY(promised);
        BY(wait);
        BY(top);
        BY(top_ballot);
        BY(top_promised);
        for (k = 0; k < CLIENTS; ++k) {
            BY_BIT(votes[k]);
        }
        for (k = 0; k < CHANGERS; ++k) {
            BY_BIT(promises[k]);
            BY_BIT(accepts[k]);
        }
        for (k = 0; k < MASTERS; ++k) {
            if (k != m && k != n) {
                BY_BIT(master[k].read);
            }
        }
        return 0;
    }
    static void swap_masters(int m, int n)
    {
        int k;
        struct Master kept = now.master[m];
        now.master[m] = now.master[n];
        now.master[n] = kept;
        for (k = 0; k < MASTERS; ++k) {
            swap_bits(&now.master[k].read, m, n);
        }
        for (k = 0; k < CLIENTS; ++k) {
            swap_bits(&now.votes[k], m, n);
        }
        for (k = 0; k < CHANGERS; ++k) {
            swap_bits(&now.promises[k], m, n);
            swap_bits(&now.accepts[k], m, n);
        }
    }
    static int same_role(int m, int n)
    {
        return !((BEFORE >> m ^ BEFORE >> n) & 1) && !((AFTER >> m ^ AFTER >> n) & 1) &&
            !((RIVAL >> m ^ RIVAL >> n) & 1) && !((LATER >> m ^ LATER >> n) & 1);
    }
    static void swap_clients(void)
    {
        int m;
        unsigned char kept = now.phase[0];
        now.phase[0] = now.phase[1];
        now.phase[1] = kept;
        kept = now.view[0];
        now.view[0] = now.view[1];
        now.view[1] = kept;
        kept = now.votes[0];
        now.votes[0] = now.votes[1];
        now.votes[1] = kept;
        swap_bits(&now.going_on, 0, 1);
        swap_bits(&now.going_on, 2, 3);
        swap_bits(&now.carried, 0, 1);
        for (m = 0; m < CHANGERS; ++m) {
            swap_bits(&now.wait[m], 0, 1);
            swap_bits(&now.wait[m], 2, 3);
        }
        for (m = 0; m < MASTERS; ++m) {
            swap_bits(&now.master[m].wait, 0, 1);
            swap_bits(&now.master[m].wait, 2, 3);
            if (now.master[m].key != 0) {
                now.master[m].key = (now.master[m].key - 1 ^ 1) + 1;
            }
        }
    }
    static void sort_all(void)
    {
        int m, n;
        int order = (int)now.phase[0] - (int)now.phase[1];
        if (order == 0) {
            order = (int)now.view[0] - (int)now.view[1];
        }
        if (order == 0) {
            order = (now.going_on >> 2 & 1) - (now.going_on >> 3 & 1);
        }
        if (order == 0) {
            order = __builtin_popcount(now.votes[0]) - __builtin_popcount(now.votes[1]);
        }
        if (order < 0) {
            swap_clients();
        }
        for (m = 1; m < MASTERS; ++m) {
            for (n = m; n > 0; --n) {
                int l = n - 1;
                while (l >= 0 && !same_role(l, n)) {
                    --l;
                }
                if (l < 0 || rank_of_master(l, n) <= 0) {
                    break;
                }
                swap_masters(l, n);
                n = l + 1;
            }
        }
    }
};
#define sort_all() c_code { sort_all(); }
#else
#define sort_all() skip
#endif

#define HELD(c) (phase[c] == held)
#define IN_ROUND(c) ((going_on & ROUND(c)) != 0)
#define VOTING(c) (phase[c] == asking || IN_ROUND(c))
#define KNOWN(r) ((known & BIT(r)) != 0)

#define SERVES(m, v) \
    (master[m].record != marked && \
        (SERVED_AS(master[m].record) == v || FOLLOWS(v, master[m].record) || \
            (wrong(compared_by_client) && v < master[m].record) || \
            (wrong(behind_served) && FOLLOWS(master[m].record, v)) || \
            (wrong(removed_member_votes) && v < master[m].record && (NEW_OF(master[m].record) & BIT(m)) == 0)))
#define ASKS(c, m) \
    (VOTING(c) && ((OLD_OF(view[c]) | NEW_OF(view[c])) & BIT(m)) != 0 && (votes[c] & BIT(m)) == 0 && \
        SERVES(m, view[c]))

#define ALIVE(k) ((going_on & BALLOT(k + 1)) != 0)
#define SAME_GOAL (RIVAL == AFTER && LATER == 0)

/* Changer k may still write what a promise of p forbids. */
#define HINDERS(p, k) (k < CHANGERS && p >= k + 1 && (stage[k] == preparing || ALIVE(k)))

/* Ends each step: drops what can never have an effect again. */
inline settle()
{
    for (i : 0 .. MASTERS - 1) {
        master[i].promised =
            (HINDERS(master[i].promised, 0) || HINDERS(master[i].promised, 1) || HINDERS(master[i].promised, 2) ->
                master[i].promised : 0);
        master[i].top_promised =
            (HINDERS(master[i].top_promised, 0) || HINDERS(master[i].top_promised, 1) || HINDERS(master[i].top_promised, 2) ->
                master[i].top_promised : 0);
        master[i].ballot = (SAME_GOAL -> 0 : master[i].ballot);
        master[i].top_ballot = (SAME_GOAL -> 0 : master[i].top_ballot)
    }
    i = 0;
    sort_all()
}

inline is_over(what)
{
    going_on = going_on & ~(what);
    for (i : 0 .. MASTERS - 1) {
        master[i].wait = master[i].wait & ~(what)
    }
    for (i : 0 .. CHANGERS - 1) {
        wait[i] = wait[i] & ~(what)
    }
}

inline begin_votes(c, v)
{
    view[c] = v;
    votes[c] = 0
}

inline ask(c, v)
{
    printf("client %d asks, as of record %d\n", c, v);
    phase[c] = asking;
    going_on = going_on | LEASE(c);
    begin_votes(c, v)
}

inline extend(c, v)
{
    printf("client %d extends, as of record %d\n", c, v);
    rounds--;
    /* Keys of the round before last as long as the lease. */
    for (i : 0 .. MASTERS - 1) {
        master[i].key = (master[i].key == KEY_OF_ROUND(c) -> KEY(c) : master[i].key)
    }
    is_over(ROUND(c));
    going_on = going_on | ROUND(c);
    begin_votes(c, v)
}

/* The lease lasts as long as the round: what it does not cover has ended. */
#define MOVED(set, c) (((set) & ~(LEASE(c) | ROUND(c))) | (((set) & ROUND(c)) >> 2))

inline count_vote(m, c)
{
    votes[c] = votes[c] | BIT(m);
    if
    :: WINS(view[c], votes[c]) ->
        printf("client %d has the lock\n", c);
        holders = HELD(1 - c) + 1;
        assert(holders <= 1);
        holders = 0;
        assert(GOAL != changed || view[c] < second);
        assert(GOAL != carried_over || view[c] < second || (carried & BIT(c)) == 0);
        assert(GOAL != joint_lease || !IS_JOINT(view[c]) || (votes[c] & NEW_OF(view[c]) & ~OLD_OF(view[c])) == 0);
        carried = (GOAL == carried_over && view[c] == first -> carried | BIT(c) : carried);
        if
        :: IN_ROUND(c) ->
            for (i : 0 .. MASTERS - 1) {
                master[i].key = (master[i].key == KEY(c) -> 0 : master[i].key);
                master[i].key = (master[i].key == KEY_OF_ROUND(c) -> KEY(c) : master[i].key);
                master[i].wait = MOVED(master[i].wait, c)
            }
            for (i : 0 .. CHANGERS - 1) {
                wait[i] = MOVED(wait[i], c)
            }
            going_on = going_on & ~ROUND(c)
        :: else
        fi;
        phase[c] = held;
        begin_votes(c, 0)
    :: else
    fi
}

#define MAY_HEAL(c, m) \
    (master[m].key == 0 && (wrong(healed_without_blocking) || BLOCKING(OLD_OF(view[c]), votes[c])))

inline grant(m, c, what)
{
    printf("master %d votes for client %d\n", m, c);
    master[m].key = what;
    assert(GOAL != returned_joint || master[m].top != joint);
    count_vote(m, c)
}

#define CLIENT(c) \
    :: d_step { ASKS(c, m) && phase[c] == asking && master[m].key == 0 -> grant(m, c, KEY(c)); settle() } \
    :: d_step { ASKS(c, m) && IN_ROUND(c) && OWNS(m, c) -> grant(m, c, KEY_OF_ROUND(c)); settle() } \
    :: d_step { \
        ASKS(c, m) && IN_ROUND(c) && MAY_HEAL(c, m) -> \
        printf("healed\n"); \
        grant(m, c, KEY_OF_ROUND(c)); \
        settle() \
    }

/* Changer k, with ballot k + 1. The last one makes the later change, if there is one. */
#define WANTS(k) (LATER != 0 && k == CHANGERS - 1 -> joint_later : (k == 0 || RIVAL == AFTER -> joint : joint_rival))
#define BEGUN(k) (stage[k] != preparing || ALIVE(k))
#define MAY_ACT(k) (ALIVE(k) || (!BEGUN(k) && KNOWN(BASE_OF(WANTS(k)))))
#define OF_CHANGE(m, k) \
    (master[m].record == BASE_OF(WANTS(k)) || (IS_JOINT(master[m].record) && BASE_OF(master[m].record) == BASE_OF(WANTS(k))))
#define ELECTORS(k) (wrong(written_to_new_members) -> NEW_OF(WANTS(k)) : OLD_OF(WANTS(k)))
#define ELECTOR(m, k) \
    (MAY_ACT(k) && (ELECTORS(k) & BIT(m)) != 0 && \
        (OF_CHANGE(m, k) || (wrong(written_to_new_members) && master[m].record == marked && master[m].wait == 0)))

inline begin(k)
{
    if
    :: !ALIVE(k) ->
        printf("changer %d begins\n", k);
        going_on = going_on | BALLOT(k + 1);
        value[k] = WANTS(k)
    :: else
    fi
}

inline prepare(m, k)
{
    begin(k);
    printf("master %d promises ballot %d\n", m, k + 1);
    master[m].promised = k + 1;
    promises[k] = promises[k] | BIT(m);
    if
    :: IS_JOINT(master[m].record) && master[m].ballot > highest[k] ->
        highest[k] = master[m].ballot;
        value[k] = master[m].record
    :: else
    fi;
    if
    :: MAJORITY(ELECTORS(k), promises[k]) ->
        stage[k] = accepting;
        promises[k] = 0;
        highest[k] = 0
    :: else
    fi
}

inline accept(m, k)
{
    begin(k);
    stage[k] = (stage[k] == preparing -> accepting : stage[k]);
    printf("master %d accepts record %d with ballot %d\n", m, value[k], k + 1);
    master[m].promised = k + 1;
    master[m].ballot = k + 1;
    master[m].record = value[k];
    known = known | BIT(value[k]);
    if
    :: stage[k] == accepting ->
        accepts[k] = accepts[k] | BIT(m);
        if
        :: MAJORITY(ELECTORS(k), accepts[k]) ->
            printf("which is a majority\n");
            stage[k] = waiting;
            accepts[k] = 0;
            wait[k] = (wrong(committed_at_once) -> 0 : going_on & ~BALLOT(k + 1));
            wait[k] = (wrong(commit_skips_ballots) -> wait[k] & 15 : wait[k])
        :: else
        fi
    :: else
    fi
}

inline commit(k)
{
    printf("changer %d has finished: record %d\n", k, FINAL_OF(value[k]));
    known = known | BIT(FINAL_OF(value[k]));
    finals = KNOWN(second) + KNOWN(second_rival);
    assert(finals <= 1);
    finals = 0;
    assert(GOAL != rival_won || !KNOWN(second_rival));
    assert(GOAL != succeeded || k == 0 || value[k] == WANTS(k));
    stage[k] = done;
    value[k] = 0;
    is_over(BALLOT(k + 1))
}

/* Promises only hinder, and where all want the same nobody needs that. */
#define NO_PROMISES (SAME_GOAL || wrong(no_ballots))

#define CHANGER(k) \
    :: d_step { \
        ELECTOR(m, k) && stage[k] == preparing && !NO_PROMISES && (promises[k] & BIT(m)) == 0 && \
            (master[m].promised < k + 1 || wrong(no_ballots)) -> \
        prepare(m, k); \
        settle() \
    } \
    :: d_step { \
        ELECTOR(m, k) && (stage[k] == accepting || stage[k] == waiting || NO_PROMISES) && \
            (master[m].promised <= k + 1 || wrong(no_ballots)) && \
            (master[m].record != (BEGUN(k) -> value[k] : WANTS(k)) || (master[m].ballot != k + 1 && !SAME_GOAL) || \
                (stage[k] == accepting && (accepts[k] & BIT(m)) == 0)) -> \
        accept(m, k); \
        settle() \
    }

inline forget_reading(m)
{
    master[m].read = 0;
    master[m].top = 0;
    master[m].top_ballot = 0;
    master[m].top_promised = 0
}

/* It loses its data, and comes back under its name; somebody marks it. */
inline forget(m)
{
    printf("master %d forgets\n", m);
    forgets--;
    master[m].record = marked;
    master[m].ballot = 0;
    master[m].promised = 0;
    master[m].key = 0;
    master[m].wait = (wrong(ballots_last) -> going_on & 15 : going_on);
    if
    :: wrong(new_member_not_quarantined) && (BEFORE & BIT(m)) == 0 -> master[m].wait = 0
    :: else
    fi;
    forget_reading(m)
}

inline read_record(m, from)
{
    printf("master %d: the record of master %d is read\n", m, from);
    master[m].read = master[m].read | BIT(from);
    if
    :: master[from].promised > master[m].top_promised && !wrong(promised_not_read) ->
        master[m].top_promised = master[from].promised
    :: else
    fi;
    if
    :: wrong(accepted_not_read) && IS_JOINT(master[from].record) ->
        master[m].top = (BASE_OF(master[from].record) > master[m].top -> BASE_OF(master[from].record) : master[m].top)
    :: IS_JOINT(master[from].record) && IS_JOINT(master[m].top) && BASE_OF(master[from].record) == BASE_OF(master[m].top) ->
        if
        :: master[from].ballot > master[m].top_ballot ->
            master[m].top = master[from].record;
            master[m].top_ballot = master[from].ballot
        :: else
        fi
    :: else ->
        if
        :: master[from].record > master[m].top ->
            master[m].top = master[from].record;
            master[m].top_ballot = (IS_JOINT(master[from].record) -> master[from].ballot : 0)
        :: else
        fi
    fi
}

#define ENOUGH_READ(m) \
    (master[m].top != 0 && \
        (wrong(read_from_one) || \
            (BLOCKING(OLD_OF(master[m].top), master[m].read) && \
                (wrong(old_members_read) || BLOCKING(NEW_OF(master[m].top), master[m].read)))))

inline return_to(m)
{
    printf("master %d is a member again, by record %d\n", m, master[m].top);
    master[m].record = master[m].top;
    master[m].ballot = master[m].top_ballot;
    master[m].promised = (IS_JOINT(master[m].top) || master[m].top == first || LATER != 0 -> master[m].top_promised : 0);
    forget_reading(m);
    master[m].top = (GOAL == returned_joint && FORGETS > forgets && (BEFORE & BIT(m)) != 0 -> master[m].record : 0)
}

#define FINISH(r) \
    :: d_step { \
        KNOWN(r) && master[m].record != marked && master[m].record < r -> \
        printf("record %d is written on master %d\n", r, m); \
        master[m].record = r; \
        master[m].ballot = 0; \
        master[m].promised = 0; \
        settle() \
    }

#define READ(from) \
    :: d_step { \
        from < MASTERS && master[m].record == marked && (master[m].wait == 0 || wrong(read_before_quarantine)) && from != m && \
            master[from].record != marked && (master[m].read & BIT(from)) == 0 -> \
        read_record(m, from); \
        settle() \
    }

proctype at(byte m)
{
end:
    do
    CLIENT(0)
    CLIENT(1)
    CHANGER(0)
#if CHANGERS > 1
    CHANGER(1)
#endif
#if CHANGERS > 2
    CHANGER(2)
#endif
    FINISH(second)
    FINISH(second_rival)
    FINISH(third)
    READ(0)
    READ(1)
    READ(2)
#if MASTERS > 3
    READ(3)
#endif
#if MASTERS > 4
    READ(4)
#endif
    :: d_step {
        master[m].record == marked && master[m].wait == 0 && ENOUGH_READ(m) &&
            ((OLD_OF(master[m].top) | NEW_OF(master[m].top)) & BIT(m)) != 0 ->
        return_to(m);
        settle()
    }
    :: d_step { forgets > 0 && (master[m].record != marked || master[m].read != 0) -> forget(m); settle() }
    od
}

#define VIEWS(c, v) \
    :: d_step { LOCKS && KNOWN(v) && phase[c] == idle -> ask(c, v); settle() } \
    :: d_step { KNOWN(v) && HELD(c) && rounds > 0 -> extend(c, v); settle() } \
    :: d_step { wrong(votes_added_up) && KNOWN(v) && VOTING(c) && view[c] < v -> view[c] = v; settle() }

proctype client(byte c)
{
end:
    do
    VIEWS(c, first)
#if !STEPS
    VIEWS(c, joint)
#if CHANGERS > 1
    VIEWS(c, joint_rival)
#endif
#if LATER
    VIEWS(c, joint_later)
#endif
#endif
#if CHANGERS > 1
    VIEWS(c, second_rival)
#endif
    VIEWS(c, second)
#if LATER
    VIEWS(c, third)
#endif
    od
}

proctype changer(byte k)
{
end:
    do
    :: d_step {
        ALIVE(k) ->
        printf("ballot %d is over\n", k + 1);
        is_over(BALLOT(k + 1));
        if
        :: stage[k] != waiting ->
            stage[k] = done;
            value[k] = 0;
            highest[k] = 0;
            promises[k] = 0;
            accepts[k] = 0
        :: else
        fi;
        settle()
    }
    :: d_step { stage[k] == waiting && wait[k] == 0 -> commit(k); settle() }
    od
}

init
{
    byte n;
    atomic {
        for (n : 0 .. MASTERS - 1) {
            master[n].record = ((BEFORE & BIT(n)) != 0 -> first : marked)
        }
        for (n : 0 .. MASTERS - 1) {
            run at(n)
        }
        for (n : 0 .. CLIENTS - 1) {
            run client(n)
        }
        for (n : 0 .. CHANGERS - 1) {
            run changer(n)
        }
        n = 0
    }
}
