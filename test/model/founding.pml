/* Founding a quorum, and what a wrong list can do: each client counts only masters whose record has its own list
 * of masters. A record gets a list when the quorum is founded, by all masters of the list, and again after its
 * master has lost it. docs/model.md says what is left out, and why that is safe.
 *
 * Scope, each by -D:   MASTERS that exist; FIRST, SECOND: the lists of the two clients, a bit for each master;
 *                      FORGETS: how often a master loses its data; ALL=1: all that both lists have in common may
 *                      be without a record at once; VIEW=1: the record is not compared at the vote, it is enough
 *                      that the client has read its final list on some master before
 * -DWRONG=name         one rule of the protocol broken; the search must find an error
 * -DGOAL=name          reaching it is an error, which shows that the model is not vacuous
 *
 * Time. A wait of Q is over once every attempt has ended that was made when it began. A run shows the last attempt
 * of each client, which does not end: an error needs two holders. So a memory that began during an attempt is
 * young for good.
 */

#ifndef MASTERS
#define MASTERS 4
#endif
#ifndef FIRST
#define FIRST 7 /* 0, 1, 2 */
#endif
#ifndef SECOND
#define SECOND 11 /* 0, 1, 3 */
#endif
#ifndef FORGETS
#define FORGETS 0
#endif
#ifndef ALL
#define ALL 0
#endif
#ifndef VIEW
#define VIEW 0
#endif

#define LISTS 2 /* and a client and a founder with each */

/* What can be wrong. */
#define nothing 0
#define founded_by_majority 1
#define any_list_served 2
#define founding_overwritten 3 /* by that of another list */
#define written_at_once 4 /* the list is final as soon as it is written */
#define id_not_compared 5 /* of the founding, when it is made final */
#define returned_without_evidence 6
#define returned_by_one 7
#define no_quarantine 8
#define founding_is_evidence 9
#define not_confirmed 10 /* that the founding was on all masters at once */
#ifndef WRONG
#define WRONG nothing
#endif
#define wrong(rule) (WRONG == rule)

/* What must be reachable. */
#define founded 1 /* and the second client has the lock */
#define returned 2 /* a vote of a master that had forgotten */
#ifndef GOAL
#define GOAL nothing
#endif

/* Records: without one; founding, and final, of each list. */
#define blank 0
#define FOUNDING(l) (1 + (FIRST == SECOND -> 0 : (l)))
#define FINAL(l) (3 + (FIRST == SECOND -> 0 : (l)))
#define SAME_LIST(a, b) ((a) != blank && (((a) ^ (b)) & 1) == 0)

#define LIST(l) (l == 0 -> FIRST : SECOND)
#define COMMON (FIRST & SECOND)
#define BIT(m) (1 << (m))
#define IN(m, set) (((set) & BIT(m)) != 0)
#define COUNT(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1) + ((set) >> 3 & 1) + ((set) >> 4 & 1))
#define MAJORITY(of, set) (2 * COUNT((set) & (of)) > COUNT(of))
#define BLOCKING(of, set) (2 * COUNT((set) & (of)) >= COUNT(of)) /* N - q + 1 */
#define ALL_OF(of, set) ((~(set) & (of)) == 0)

byte record[MASTERS];
bit young[MASTERS];
byte key[MASTERS]; /* the client + 1 */

byte written[LISTS]; /* the founder has written its list there, or found it */
byte present[LISTS]; /* that is still there, by its id */
byte confirmed[LISTS]; /* it has seen so once it had written all */
bit whole[LISTS]; /* all masters of the list had it at once */
byte evidence[LISTS]; /* final records that clients with this list have read */
byte votes[LISTS];
bit asking[LISTS];
bit held[LISTS];
byte forgets = FORGETS;
byte back; /* goals */

/* Scratch, 0 between steps. */
byte i;
byte holders;
bit remembered;

#define ATTEMPTS (asking[0] || asking[1])

inline new_record(m, what)
{
    record[m] = what;
    for (i : 0 .. LISTS - 1) {
        present[i] = present[i] & ~BIT(m)
    }
    i = 0
}

#define COMPLETE(l, by) (wrong(founded_by_majority) -> MAJORITY(LIST(l), by[l]) : ALL_OF(LIST(l), by[l]))
#define FOUNDED(l) (COMPLETE(l, confirmed) || (wrong(not_confirmed) && COMPLETE(l, written)))

inline acknowledged(m, l)
{
    written[l] = written[l] | BIT(m);
    present[l] = present[l] | BIT(m);
    whole[l] = whole[l] || COMPLETE(l, present)
}

#define FOUNDER(l) \
    :: d_step { \
        IN(m, LIST(l)) && !COMPLETE(l, written) && \
            (record[m] == blank || (record[m] == FOUNDING(1 - l) && wrong(founding_overwritten))) -> \
        printf("list %d: founding is written on master %d\n", l, m); \
        new_record(m, FOUNDING(l)); \
        record[m] = (wrong(written_at_once) -> FINAL(l) : FOUNDING(l)); \
        acknowledged(m, l) \
    } \
    :: d_step { \
        record[m] == FOUNDING(l) && !IN(m, written[l] & present[l]) && !COMPLETE(l, written) -> \
        printf("list %d: founding is read on master %d\n", l, m); \
        acknowledged(m, l) \
    } \
    :: d_step { \
        COMPLETE(l, written) && !COMPLETE(l, confirmed) && IN(m, LIST(l) & ~present[l]) && !wrong(not_confirmed) -> \
        printf("list %d: the founder begins again, as the record of master %d is another one\n", l, m); \
        written[l] = 0; \
        confirmed[l] = 0 \
    } \
    :: d_step { \
        COMPLETE(l, written) && IN(m, present[l] & ~confirmed[l]) -> \
        confirmed[l] = confirmed[l] | BIT(m) \
    } \
    :: d_step { \
        FOUNDED(l) && record[m] == FOUNDING(l) && (IN(m, present[l]) || wrong(id_not_compared)) -> \
        printf("list %d: founding is final on master %d\n", l, m); \
        new_record(m, FINAL(l)) \
    }

#define MAY_RETURN(l) \
    (wrong(returned_without_evidence) || (wrong(returned_by_one) && evidence[l] != 0) || \
        BLOCKING(LIST(l), evidence[l] & ~BIT(m)))

#define CLIENT(c) \
    :: d_step { \
        IN(m, LIST(c)) && !IN(m, evidence[c]) && \
            (record[m] == FINAL(c) || (record[m] == FOUNDING(c) && wrong(founding_is_evidence))) -> \
        evidence[c] = evidence[c] | BIT(m) \
    } \
    :: d_step { \
        IN(m, LIST(c)) && record[m] < FINAL(0) && MAY_RETURN(c) -> \
        printf("list %d: master %d is back\n", c, m); \
        new_record(m, FINAL(c)) \
    } \
    :: d_step { \
        asking[c] && IN(m, LIST(c)) && !young[m] && key[m] == 0 && \
            (record[m] == FINAL(c) || (VIEW && evidence[c] != 0) || \
                (wrong(any_list_served) && record[m] >= FINAL(0))) -> \
        printf("master %d votes for client %d\n", m, c); \
        assert(GOAL != returned || !IN(m, back)); \
        key[m] = c + 1; \
        votes[c] = votes[c] | BIT(m); \
        if \
        :: MAJORITY(LIST(c), votes[c]) -> \
            printf("client %d has the lock\n", c); \
            held[c] = true; \
            holders = held[0] + held[1]; \
            assert(holders <= 1); \
            holders = 0; \
            assert(GOAL != founded || c == 0) \
        :: else \
        fi \
    }

#define LASTS(l) (whole[l] || (wrong(not_confirmed) && COMPLETE(l, written)))
#define OF_FOUNDED(r) ((r == FOUNDING(0) || r == FINAL(0)) -> LASTS(0) : LASTS(1))

proctype at(byte m)
{
end:
    do
    FOUNDER(0)
    FOUNDER(1)
    CLIENT(0)
    CLIENT(1)
    :: d_step {
        forgets > 0 && record[m] != blank ->
        for (i : 0 .. MASTERS - 1) {
            remembered = (IN(i, COMMON & ~BIT(m)) && SAME_LIST(record[i], record[m]) -> 1 : remembered)
        }
        i = 0;
        if
        :: !IN(m, COMMON) || remembered || !OF_FOUNDED(record[m]) || ALL ->
            printf("master %d forgets\n", m);
            forgets--;
            new_record(m, blank);
            young[m] = (wrong(no_quarantine) -> 0 : ATTEMPTS);
            key[m] = 0;
            back = (GOAL == returned -> back | BIT(m) : 0)
        :: else
        fi;
        remembered = 0
    }
    od
}

init
{
    byte n;
    atomic {
        for (n : 0 .. MASTERS - 1) {
            run at(n)
        }
        n = 0
    }
end:
    do
    :: d_step { !asking[0] -> asking[0] = true }
    :: d_step { !asking[1] -> asking[1] = true }
    od
}
