/* The members of a quorum, which the masters keep themselves, and how one of them is added or removed while locks
 * are taken. test/model/README.md says what is left out, and why that is safe.
 *
 * All members after the change promise it. Once all had the promise at the same moment, and Q has passed since then,
 * the change is final. Until then a lock needs a majority of the members before the change.
 *
 * Scope, by cases.py:  MASTERS that answer; BEFORE, AFTER: the members before and after the change, a bit each;
 *                      RIVAL: those after another change at the same time (0: there is none); LATER, LATER_RIVAL:
 *                      those after a second change, and after its rival (0: there is none);
 *                      MAJORITY_PROMISES=1: a majority of the members before the change promises it;
 *                      LOOKS=1: a changer reads the records twice, otherwise it needs no proof;
 *                      FORGETS: how often a master loses its data; ROUNDS of extension, of both clients together;
 *                      LOCKS=0: there are no clients
 *
 * Time. Attempts, leases and rounds do not outlast the quarantine Q. So a wait of Q is over once everything has
 * ended that was going on when it began. Nothing else is said of time: a change may rest for any time, and any
 * client may continue it. A run shows the last attempt of each client, which does not end: an error needs two
 * holders. A lease moves on when it is extended.
 */

#define SETS
#include "common.pml"

#define CLIENTS 2

/* What can be wrong. */
#define committed_at_once 1
#define promise_overwritten 2 /* by that of the rival */
#define promised_by_majority 3 /* and the rest is as if all had promised */
#define new_member_does_not_promise 4
#define written_on_any_blank 5 /* a new member without a record promises without evidence */
#define no_second_look 6
#define id_not_compared 7 /* by the second look */
#define rest_not_seen_again 8 /* after the second look found another record */
#define read_from_one 9
#define read_before_blank 10 /* by a master that returns */
#define rival_taken 11 /* a master that returns takes any of two promises */
#define old_members_read 12 /* and not the new ones */
#define no_quarantine 13
#define new_member_not_quarantined 14
#define behind_served 15 /* a client that is a step behind */
#define votes_added_up 16 /* that were given under different views */
#define healed_without_blocking 17 /* majority of the members that have the key */

/* What must be reachable. */
#define changed 1 /* a client has the lock of the members after the change */
#define changed_twice 2
#define carried_over 3 /* a client has it that had it before the change */
#define rival_won 4
#define returned_promised 5 /* a master that had forgotten has a promise again, and votes */
#define returned_among_rivals 6

/* Records, and views of clients. The order is that of time, but for rivals. */
#define blank 0
#define first 1
#define promised 2
#define promised_rival 3
#define second 4
#define second_rival 5
#define promised_later 6
#define promised_later_rival 7
#define third 8
#define third_rival 9

#define IS_PROMISE(r) (PAIR(r) % 2 == 1)
#define BASE_OF(r) ((r) >= promised_later -> second : first) /* of a promise */
#define FINAL_OF(r) ((r) + 2)
#define PAIR(r) ((r) >> 1)
#define OTHER(r) ((r) ^ 1) /* of a pair of rivals */
#define SERVED_AS(r) (IS_PROMISE(r) -> BASE_OF(r) : (r))
#define LIST(v) \
    ((v) == first -> BEFORE : \
        ((v) == second -> AFTER : ((v) == second_rival -> RIVAL : ((v) == third -> LATER : LATER_RIVAL))))
#define FOLLOWS(v, r) (((r) == first && PAIR(v) == PAIR(second)) || ((r) == second && PAIR(v) == PAIR(third)))

#define OLD_OF(p) LIST(BASE_OF(p))
#define NEW_OF(p) LIST(FINAL_OF(p))


/* What goes on, a bit each: leases and attempts, rounds. */
#define LEASE(c) BIT(c)
#define ROUND(c) BIT(2 + (c))

/* Keys: the owner, and what they expire with. */
#define KEY(c) (1 + (c))
#define KEY_OF_ROUND(c) (3 + (c))
#define OWNS(m, c) (master[m].key == KEY(c) || master[m].key == KEY_OF_ROUND(c))

typedef Master {
    byte record;
    byte key;
    byte wait; /* what was going on when it forgot: it votes once all that has ended */
    byte read; /* the masters whose records were read for it, and the highest of these */
    byte top;
    byte had[2]; /* if the highest is a promise that has a rival: the masters that had each of both */
};
Master master[MASTERS];

mtype = { idle, asking, held };
mtype phase[CLIENTS] = idle;
byte view[CLIENTS]; /* of the present attempt or round */
byte votes[CLIENTS];

/* Changes, by their promise: 0 the first, 1 its rival, 2 the later one, 3 the rival of that. */
#define CHANGES 4
#define PROMISE(k) (k >= 2 -> promised_later + k - 2 : promised + k)
byte written[CHANGES]; /* the promise was written there, or read */
byte same[CHANGES]; /* and the record is still the same */
byte seen[CHANGES]; /* as the second look found */
bit whole[CHANGES]; /* all had the promise at once */
byte wait[CHANGES]; /* what was going on then */

byte going_on;
short known = BIT(first); /* the final records that clients may have read */
byte forgets = FORGETS;
byte rounds = ROUNDS;
byte carried; /* goals */

/* Scratch, 0 between steps. */
byte i;
byte holders;
byte finals;

#ifdef SYMMETRY
c_code {
    static unsigned lists_of(int m)
    {
        return now.BEFORE >> m & 1 | (now.AFTER >> m & 1) << 1 | (now.RIVAL >> m & 1) << 2 |
            (now.LATER >> m & 1) << 3 | (now.LATER_RIVAL >> m & 1) << 4;
    }
    static int compare(int m, int n)
    {
        #define BY_MASTERS(field) \
            if (now.master[m].field != now.master[n].field) return (int)now.master[m].field - (int)now.master[n].field
        int k;
        BY_MASTERS(record);
        BY_MASTERS(key);
        BY_MASTERS(wait);
        BY_MASTERS(top);
        for (k = 0; k < CLIENTS; ++k) {
            BY_BIT(votes[k]);
        }
        for (k = 0; k < CHANGES; ++k) {
            BY_BIT(written[k]);
            BY_BIT(same[k]);
            BY_BIT(seen[k]);
        }
        for (k = 0; k < MASTERS; ++k) {
            if (k != m && k != n) {
                BY_BIT(master[k].read);
                BY_BIT(master[k].had[0]);
                BY_BIT(master[k].had[1]);
            }
        }
        return 0;
    }
    static void swap(int m, int n)
    {
        int k;
        struct Master kept = now.master[m];
        now.master[m] = now.master[n];
        now.master[n] = kept;
        for (k = 0; k < MASTERS; ++k) {
            swap_bits(&now.master[k].read, m, n);
            swap_bits(&now.master[k].had[0], m, n);
            swap_bits(&now.master[k].had[1], m, n);
        }
        for (k = 0; k < CLIENTS; ++k) {
            swap_bits(&now.votes[k], m, n);
        }
        for (k = 0; k < CHANGES; ++k) {
            swap_bits(&now.written[k], m, n);
            swap_bits(&now.same[k], m, n);
            swap_bits(&now.seen[k], m, n);
        }
    }
    /* So are clients. */
    static void swap_clients(void)
    {
        #define SWAP(pair) { unsigned char kept = pair[0]; pair[0] = pair[1]; pair[1] = kept; }
        int m;
        SWAP(now.phase);
        SWAP(now.view);
        SWAP(now.votes);
        swap_bits(&now.going_on, 0, 1);
        swap_bits(&now.going_on, 2, 3);
        swap_bits(&now.carried, 0, 1);
        for (m = 0; m < CHANGES; ++m) {
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
        int order = ((int)now.phase[0] - (int)now.phase[1])
            ?: ((int)now.view[0] - (int)now.view[1])
            ?: ((now.going_on >> 2 & 1) - (now.going_on >> 3 & 1))
            ?: (__builtin_popcount(now.votes[0]) - __builtin_popcount(now.votes[1]));
        if (order < 0) {
            swap_clients();
        }
        sort_by_lists();
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
    (master[m].record != blank && master[m].wait == 0 && \
        (SERVED_AS(master[m].record) == v || FOLLOWS(v, SERVED_AS(master[m].record)) || \
            (wrong(behind_served) && FOLLOWS(SERVED_AS(master[m].record), v))))
#define ASKS(c, m) (VOTING(c) && IN(m, LIST(view[c])) && !IN(m, votes[c]) && SERVES(m, view[c]))

#define DECIDED(k) (whole[k] || KNOWN(FINAL_OF(PROMISE(k))))
#define PROMISERS(p) (wrong(new_member_does_not_promise) -> OLD_OF(p) & NEW_OF(p) : NEW_OF(p))
#define COMPLETE(k, set) \
    (MAJORITY_PROMISES || wrong(promised_by_majority) -> \
        MAJORITY(OLD_OF(PROMISE(k)), set) : \
        ALL_OF(PROMISERS(PROMISE(k)), set))

inline forget_reading(m)
{
    master[m].read = 0;
    master[m].top = 0;
    master[m].had[0] = 0;
    master[m].had[1] = 0
}

/* Every write draws a new id. */
inline new_record(m, r)
{
    master[m].record = r;
    for (i : 0 .. CHANGES - 1) {
        same[i] = same[i] & ~BIT(m)
    }
    if
    :: !wrong(read_before_blank) || r != blank -> forget_reading(m)
    :: else
    fi
}

inline forget_promises(k)
{
    written[k] = 0;
    same[k] = 0;
    seen[k] = 0
}

inline is_whole(k)
{
    printf("change %d was promised by all at once\n", k);
    whole[k] = 1;
    forget_promises(k)
}

/* A changer knows the promise of master m, unless it has finished the first look. */
inline acknowledged(m, k)
{
    if
    :: LOOKS && !DECIDED(k) && !COMPLETE(k, written[k]) ->
        written[k] = written[k] | BIT(m);
        same[k] = same[k] | BIT(m);
        if
        :: COMPLETE(k, written[k]) ->
            wait[k] = (wrong(committed_at_once) -> 0 : going_on);
            if
            :: wrong(no_second_look) -> is_whole(k)
            :: else
            fi
        :: else
        fi
    :: else
    fi
}

/* Without looks a changer knows at once that all have the promise. */
inline need_no_look(k)
{
    if
    :: NEW_OF(PROMISE(k)) != 0 && !DECIDED(k) ->
        for (i : 0 .. MASTERS - 1) {
            written[k] = written[k] | (master[i].record == PROMISE(k) -> BIT(i) : 0)
        }
        if
        :: COMPLETE(k, written[k]) ->
            wait[k] = (wrong(committed_at_once) -> 0 : going_on);
            is_whole(k)
        :: else
        fi;
        written[k] = 0
    :: else
    fi
}

/* Ends each step. */
inline settle()
{
    if
    :: !LOOKS ->
        need_no_look(0);
        need_no_look(1);
        need_no_look(2);
        need_no_look(3)
    :: else
    fi;
    i = 0;
    sort_all()
}

inline is_over(what)
{
    going_on = going_on & ~(what);
    for (i : 0 .. MASTERS - 1) {
        master[i].wait = master[i].wait & ~(what)
    }
    for (i : 0 .. CHANGES - 1) {
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
    :: MAJORITY(LIST(view[c]), votes[c]) ->
        printf("client %d has the lock\n", c);
        holders = HELD(1 - c) + 1;
        assert(holders <= 1);
        holders = 0;
        assert(GOAL != changed || view[c] < second);
        assert(GOAL != changed_twice || view[c] < third);
        assert(GOAL != carried_over || view[c] < second || !IN(c, carried));
        carried = (GOAL == carried_over && view[c] == first -> carried | BIT(c) : carried);
        if
        :: IN_ROUND(c) ->
            for (i : 0 .. MASTERS - 1) {
                master[i].key = (master[i].key == KEY(c) -> 0 : master[i].key);
                master[i].key = (master[i].key == KEY_OF_ROUND(c) -> KEY(c) : master[i].key);
                master[i].wait = MOVED(master[i].wait, c)
            }
            for (i : 0 .. CHANGES - 1) {
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
    (master[m].key == 0 && (wrong(healed_without_blocking) || BLOCKING_PART(LIST(view[c]), votes[c])))

inline grant(m, c, what)
{
    printf("master %d votes for client %d\n", m, c);
    master[m].key = what;
    assert(GOAL != returned_promised || !IS_PROMISE(master[m].top));
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

/* A promise is written over the record that it is based on. A blank master gets it only as one that returns. */
#define MAY_PROMISE(m, k) \
    (NEW_OF(PROMISE(k)) != 0 && KNOWN(BASE_OF(PROMISE(k))) && \
        (IN(m, NEW_OF(PROMISE(k))) || (MAJORITY_PROMISES && IN(m, OLD_OF(PROMISE(k))))) && \
        (master[m].record == BASE_OF(PROMISE(k)) || \
            (wrong(promise_overwritten) && master[m].record == OTHER(PROMISE(k))) || \
            (wrong(written_on_any_blank) && master[m].record == blank && !IN(m, OLD_OF(PROMISE(k))))))

#define PROMISER(k) \
    :: d_step { \
        MAY_PROMISE(m, k) -> \
        printf("master %d promises change %d\n", m, k); \
        new_record(m, PROMISE(k)); \
        acknowledged(m, k); \
        settle() \
    }

#define LOOKER(k) \
    :: d_step { \
        LOOKS && !DECIDED(k) && !COMPLETE(k, written[k]) && master[m].record == PROMISE(k) && !IN(m, same[k]) -> \
        printf("change %d: master %d has promised it\n", k, m); \
        acknowledged(m, k); \
        settle() \
    } \
    :: d_step { \
        LOOKS && !DECIDED(k) && COMPLETE(k, written[k]) && \
            IN(m, ~seen[k] & (wrong(id_not_compared) && master[m].record == PROMISE(k) -> written[k] : same[k])) -> \
        printf("change %d: master %d has the same record still\n", k, m); \
        seen[k] = seen[k] | BIT(m); \
        if \
        :: COMPLETE(k, seen[k]) -> is_whole(k) \
        :: else \
        fi; \
        settle() \
    } \
    :: d_step { \
        LOOKS && !DECIDED(k) && COMPLETE(k, written[k]) && IN(m, written[k] & ~same[k]) -> \
        printf("change %d: master %d has another record\n", k, m); \
        written[k] = written[k] & ~BIT(m); \
        seen[k] = (wrong(rest_not_seen_again) -> seen[k] & ~BIT(m) : 0); \
        wait[k] = 0; \
        settle() \
    }

inline commit(k)
{
    printf("change %d is final\n", k);
    known = known | BIT(FINAL_OF(PROMISE(k)));
    finals = KNOWN(second) + KNOWN(second_rival);
    assert(finals <= 1);
    finals = KNOWN(third) + KNOWN(third_rival);
    assert(finals <= 1);
    finals = 0;
    assert(GOAL != rival_won || !KNOWN(second_rival));
    whole[k] = 0;
    forget_promises(k)
}

/* It loses its data, and comes back under its name; its record is read as blank. */
inline forget(m)
{
    printf("master %d forgets\n", m);
    forgets--;
    new_record(m, blank);
    master[m].key = 0;
    master[m].wait = (wrong(no_quarantine) -> 0 : going_on)
}

#define RIVALS(r) \
    ((RIVAL != 0 && PAIR(r) == PAIR(promised)) || (LATER_RIVAL != 0 && PAIR(r) == PAIR(promised_later)))

inline read_record(m, from)
{
    printf("master %d: the record of master %d is read: %d\n", m, from, master[from].record);
    master[m].read = master[m].read | BIT(from);
    if
    :: PAIR(master[from].record) > PAIR(master[m].top) ->
        master[m].had[0] = 0;
        master[m].had[1] = 0
    :: else
    fi;
    if
    :: RIVALS(master[from].record) && PAIR(master[from].record) >= PAIR(master[m].top) ->
        master[m].had[master[from].record & 1] = master[m].had[master[from].record & 1] | BIT(from)
    :: else
    fi;
    master[m].top = (master[from].record > master[m].top -> master[from].record : master[m].top)
}

#define ENOUGH_READ(m, r) \
    (wrong(read_from_one) || \
        (IS_PROMISE(r) -> \
            (BLOCKING_PART(OLD_OF(r), master[m].read) && \
                (wrong(old_members_read) || BLOCKING_PART(NEW_OF(r), master[m].read))) : \
            BLOCKING_PART(LIST(r), master[m].read)))
#define MEMBER(m, r) (IS_PROMISE(r) -> IN(m, OLD_OF(r) | NEW_OF(r)) : IN(m, LIST(r)))

/* Promise p was read, and as far as records were read, all of its masters may have had it at once. */
#define NOT_REFUTED(m, p) \
    (HAD(m, p) != 0 && \
        (MAJORITY_PROMISES -> \
            !BLOCKING_PART(OLD_OF(p), master[m].read & ~HAD(m, p)) : \
            ALL_OF(NEW_OF(p) & master[m].read, HAD(m, p))))
#define HAD(m, p) master[m].had[(p) & 1]

/* The highest record; of two promises one only if the other was refuted. */
#define MAY_TAKE(m, r) \
    (RIVALS(r) -> \
        (master[m].top == r || master[m].top == OTHER(r)) && HAD(m, r) != 0 && \
            (wrong(rival_taken) || !NOT_REFUTED(m, OTHER(r))) : \
        master[m].top == r)

inline return_to(m, r)
{
    printf("master %d is a member again, by record %d\n", m, r);
    assert(GOAL != returned_among_rivals || master[m].had[0] == 0 || master[m].had[1] == 0);
    new_record(m, r);
    master[m].wait =
        (wrong(new_member_not_quarantined) && IS_PROMISE(r) && !IN(m, OLD_OF(r)) -> 0 : master[m].wait);
    master[m].top = (GOAL == returned_promised && IN(m, BEFORE) -> r : 0)
}

#define RETURN(r) \
    :: d_step { \
        master[m].record == blank && MAY_TAKE(m, r) && ENOUGH_READ(m, r) && MEMBER(m, r) -> \
        return_to(m, r); \
        settle() \
    }

#define FINISH(r) \
    :: d_step { \
        KNOWN(r) && master[m].record != blank && master[m].record < r -> \
        printf("record %d is written on master %d\n", r, m); \
        new_record(m, r); \
        settle() \
    }

#define READ(from) \
    :: d_step { \
        from < MASTERS && (master[m].record == blank || (wrong(read_before_blank) && forgets > 0)) && from != m && \
            master[from].record != blank && !IN(from, master[m].read) -> \
        read_record(m, from); \
        settle() \
    }

#define CHANGE(k) \
    PROMISER(k) \
    LOOKER(k) \
    FINISH(FINAL_OF(PROMISE(k))) \
    RETURN(PROMISE(k)) \
    RETURN(FINAL_OF(PROMISE(k)))

proctype at(byte m)
{
end:
    do
    CLIENT(0)
    CLIENT(1)
    CHANGE(0)
    CHANGE(1)
    CHANGE(2)
    CHANGE(3)
    RETURN(first)
    READ(0)
    READ(1)
    READ(2)
#if MASTERS > 3
    READ(3)
#endif
#if MASTERS > 4
    READ(4)
#endif
    :: d_step { forgets > 0 && (master[m].record != blank || master[m].read != 0) -> forget(m); settle() }
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
    VIEWS(c, second)
    VIEWS(c, second_rival)
    VIEWS(c, third)
    VIEWS(c, third_rival)
    od
}

proctype changer(byte k)
{
end:
    do
    :: d_step { whole[k] && wait[k] == 0 -> commit(k); settle() }
    od
}

init
{
    byte n;
    atomic {
        for (n : 0 .. MASTERS - 1) {
            master[n].record = (IN(n, BEFORE) -> first : blank)
        }
        for (n : 0 .. MASTERS - 1) {
            run at(n)
        }
        for (n : 0 .. CLIENTS - 1) {
            run client(n)
        }
        for (n : 0 .. CHANGES - 1) {
            run changer(n)
        }
        n = 0
    }
}
