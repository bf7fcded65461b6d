/* Founding a quorum, and what a wrong list can do: each client counts only masters whose record has its own list
 * of masters. A record gets a list when the quorum is founded, by all masters of the list, and again after its
 * master has lost it. test/model/README.md says what is left out, and why that is safe.
 *
 * Scope, by cases.py:  MASTERS that exist; FIRST, SECOND: the lists of the two clients, a bit for each master;
 *                      LISTS=3, THIRD: a third list; SPELLED=1: the first two lists differ although they are of the same
 *                      masters, by other names; FORGETS: how often a master loses its data; ALL=1: all that two
 *                      lists have in common may be without a record at once; VIEW=1: the record is not compared at
 *                      the vote, it is enough that the client has read its final list on some master before;
 *                      LOCKS=0: no votes; it is an error already if two lists are made final
 *
 * Time. A wait of Q is over once every attempt has ended that was made when it began. A run shows the last attempt
 * of each client, which does not end: an error needs two holders. So a memory that began during an attempt is
 * young for good. A founder may replace an unfinished list at any moment, as an operator's command does.
 */

#define SETS
#include "common.pml"

/* What can be wrong. */
#define founded_by_majority 1
#define any_list_served 2
#define agreed_replaced 3 /* a list that all masters of it had at once */
#define final_replaced 4
#define written_at_once 5 /* the list is final as soon as it is written */
#define id_not_compared 6 /* of the record that was read, when the list is agreed or final */
#define replaced_unread 7 /* whatever is there when another list is replaced that was read */
#define returned_without_evidence 8
#define returned_by_one 9
#define no_quarantine 10
#define unfinished_counts 11 /* as evidence, and at the vote */
#define not_confirmed 12 /* that the list was on all masters at once */
#define agreed_skipped 13 /* final as soon as it was on all masters at once */
#define counted 14 /* the same, but a list is replaced only if it was read on N - q + 1 of its masters */

/* What must be reachable. */
#define founded 1 /* and the second client has the lock */
#define returned 2 /* a vote of a master that had forgotten */
#define replaced 3 /* a list is final that replaced another one */

/* Records: without one; founding, agreed, and final, of each list. */
#define blank 0
#define NAME(l) ((l) == 1 && FIRST == SECOND && !SPELLED -> 0 : (l))
#define FOUNDING(l) (1 + NAME(l))
#define AGREED(l) (1 + LISTS + NAME(l))
#define FINAL(l) (1 + 2 * LISTS + NAME(l))
#define IS_FOUNDING(r) ((r) != blank && (r) <= LISTS)
#define IS_FINAL(r) ((r) > 2 * LISTS)
#define NAME_OF(r) (((r) - 1) % LISTS)
#define OF(l, r) ((r) != blank && NAME_OF(r) == NAME(l))
#define SAME_LIST(a, b) ((a) != blank && (b) != blank && NAME_OF(a) == NAME_OF(b))

#define LIST(l) ((l) == 0 -> FIRST : ((l) == 1 -> SECOND : THIRD))

byte record[MASTERS];
bit young[MASTERS];
byte key[MASTERS]; /* the client + 1 */

/* A founder writes its list, and reads all records twice: there was a moment at which all had it, by these ids. Then
 * it writes that the list is agreed, reads twice again, and makes it final. It may begin again at any moment. */
#define writing 0
#define agreeing 1
#define finishing 2
byte phase[LISTS];
byte present[LISTS]; /* masters whose record is the one of that moment, by its id */
byte done[LISTS]; /* those that it has read at all, of a wrong rule */
byte seen[LISTS * LISTS]; /* where it has read another list that is not final, of wrong rules */
bit whole[LISTS]; /* all masters of the list had it as agreed at once */
byte evidence[LISTS]; /* final records that clients with this list have read */
byte votes[LISTS];
bit asking[LISTS];
bit held[LISTS];
byte finals; /* the lists that were made final */
byte over; /* goal: lists that were written over another one */
byte forgets = FORGETS;
byte back; /* goal */

/* Scratch, 0 between steps. */
byte i;
byte holders;
bit remembered;
bit common;

#ifdef SYMMETRY
c_code {
    static unsigned lists_of(int m)
    {
        return now.FIRST >> m & 1 | (now.SECOND >> m & 1) << 1 | (now.THIRD >> m & 1) << 2;
    }
    static int compare(int m, int n)
    {
        int l;
        BY(record);
        BY(young);
        BY(key);
        BY_BIT(back);
        for (l = 0; l < LISTS; ++l) {
            BY_BIT(present[l]);
            BY_BIT(done[l]);
            BY_BIT(evidence[l]);
            BY_BIT(votes[l]);
        }
        for (l = 0; l < LISTS * LISTS; ++l) {
            BY_BIT(seen[l]);
        }
        return 0;
    }
    static void swap(int m, int n)
    {
        #define SWAP(field) { unsigned char kept = now.field[m]; now.field[m] = now.field[n]; now.field[n] = kept; }
        int l;
        SWAP(record);
        SWAP(young);
        SWAP(key);
        swap_bits(&now.back, m, n);
        for (l = 0; l < LISTS; ++l) {
            swap_bits(&now.present[l], m, n);
            swap_bits(&now.done[l], m, n);
            swap_bits(&now.evidence[l], m, n);
            swap_bits(&now.votes[l], m, n);
        }
        for (l = 0; l < LISTS * LISTS; ++l) {
            swap_bits(&now.seen[l], m, n);
        }
    }
};
#define settle() c_code { sort_by_lists(); }
#else
#define settle() skip
#endif

#define ATTEMPTS (asking[0] || asking[1])
#define LASTING(l) (wrong(agreed_skipped) || wrong(counted) -> FOUNDING(l) : AGREED(l))

inline new_record(m, what)
{
    record[m] = what;
    for (i : 0 .. LISTS - 1) {
        present[i] = present[i] & ~BIT(m)
    }
    i = 0
}

/* Whether all masters of the list have it, as no less than this. */
#define HAS(k, l, least) (!IN(k, LIST(l)) || (OF(l, record[(k) % MASTERS]) && record[(k) % MASTERS] >= least))
#define ALL_HAVE(l, least) \
    (HAS(0, l, least) && HAS(1, l, least) && HAS(2, l, least) && HAS(3, l, least) && HAS(4, l, least))
#define LOOSE (wrong(not_confirmed) || wrong(founded_by_majority))
#define VERIFIED(l, least) \
    (ALL_HAVE(l, least) || (wrong(not_confirmed) && ALL_OF(LIST(l), done[l])) || \
        (wrong(founded_by_majority) && MAJORITY(LIST(l), done[l])))

#define OTHER(l, r) ((r) != blank && !OF(l, r))
#define SEEN(l, other) seen[(l) * LISTS + (other)]
#define MAY_REPLACE(l, m) \
    (OTHER(l, record[m]) && \
        ((IS_FOUNDING(record[m]) && (!wrong(counted) || \
            BLOCKING_PART(LIST(NAME_OF(record[m])), SEEN(l, NAME_OF(record[m])) & LIST(l)))) || \
        (wrong(replaced_unread) && IN(m, SEEN(l, 0))) || \
        (wrong(agreed_replaced) && !IS_FINAL(record[m])) || (wrong(final_replaced) && IS_FINAL(record[m]))))

#define FOUNDER(l) \
    :: d_step { \
        IN(m, LIST(l)) && (record[m] == blank || MAY_REPLACE(l, m)) -> \
        printf("list %d: founding is written on master %d, in place of %d\n", l, m, record[m]); \
        over = (GOAL == replaced && record[m] != blank -> over | BIT(l) : over); \
        new_record(m, FOUNDING(l)); \
        record[m] = (wrong(written_at_once) -> FINAL(l) : FOUNDING(l)); \
        whole[l] = whole[l] || ALL_HAVE(l, LASTING(l)); \
        settle() \
    } \
    :: d_step { \
        (wrong(replaced_unread) || wrong(counted)) && IN(m, LIST(l)) && IS_FOUNDING(record[m]) && \
            OTHER(l, record[m]) -> \
        i = (wrong(counted) -> NAME_OF(record[m]) : 0); \
        SEEN(l, i) = SEEN(l, i) | BIT(m); \
        i = 0; \
        settle() \
    } \
    :: d_step { \
        LOOSE && IN(m, LIST(l) & ~(done[l] & present[l])) && OF(l, record[m]) && \
            (phase[l] == writing || record[m] >= AGREED(l)) -> \
        done[l] = done[l] | BIT(m); \
        present[l] = present[l] | BIT(m); \
        settle() \
    } \
    :: d_step { \
        phase[l] == writing && VERIFIED(l, FOUNDING(l)) -> \
        phase[l] = (LASTING(l) == FOUNDING(l) -> finishing : agreeing); \
        present[l] = (LOOSE -> present[l] : LIST(l)); \
        done[l] = 0; \
        settle() \
    } \
    :: d_step { \
        phase[l] == agreeing && VERIFIED(l, AGREED(l)) -> \
        phase[l] = finishing; \
        whole[l] = whole[l] || LOOSE; \
        present[l] = (LOOSE -> present[l] : LIST(l)); \
        done[l] = 0; \
        settle() \
    } \
    :: d_step { \
        phase[l] == agreeing && IN(m, LIST(l)) && \
            ((record[m] == FOUNDING(l) && IN(m, present[l])) || \
                (wrong(id_not_compared) && OTHER(l, record[m]))) -> \
        printf("list %d: it is agreed on master %d\n", l, m); \
        new_record(m, AGREED(l)); \
        whole[l] = whole[l] || ALL_HAVE(l, LASTING(l)); \
        settle() \
    } \
    :: d_step { \
        phase[l] == finishing && IN(m, LIST(l)) && \
            ((record[m] == LASTING(l) && IN(m, present[l])) || \
                (wrong(id_not_compared) && OTHER(l, record[m]))) -> \
        printf("list %d: it is final on master %d\n", l, m); \
        new_record(m, FINAL(l)); \
        finals = (LOCKS -> 0 : finals | BIT(NAME(l))); \
        holders = COUNT(finals); \
        assert(holders <= 1); \
        holders = 0; \
        assert(GOAL != replaced || !IN(l, over)); \
        settle() \
    } \
    :: d_step { \
        phase[l] != writing && !ALL_OF(LIST(l), present[l]) -> \
        phase[l] = writing; \
        present[l] = 0; \
        done[l] = 0; \
        settle() \
    }

#define MAY_RETURN(l) \
    (wrong(returned_without_evidence) || (wrong(returned_by_one) && evidence[l] != 0) || \
        BLOCKING_PART(LIST(l), evidence[l] & ~BIT(m)))

#define CLIENT(c) \
    :: d_step { \
        IN(m, LIST(c)) && !IN(m, evidence[c]) && \
            (record[m] == FINAL(c) || (OF(c, record[m]) && wrong(unfinished_counts))) -> \
        evidence[c] = evidence[c] | BIT(m); \
        settle() \
    } \
    :: d_step { \
        IN(m, LIST(c)) && !IS_FINAL(record[m]) && \
            (MAY_RETURN(c) || (record[m] == AGREED(c) && evidence[c] != 0)) -> \
        printf("list %d: master %d is back\n", c, m); \
        new_record(m, FINAL(c)); \
        settle() \
    } \
    :: d_step { \
        LOCKS && asking[c] && IN(m, LIST(c)) && !young[m] && key[m] == 0 && \
            (record[m] == FINAL(c) || (VIEW && evidence[c] != 0) || \
                (wrong(any_list_served) && IS_FINAL(record[m])) || \
                (wrong(unfinished_counts) && OF(c, record[m]))) -> \
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
        fi; \
        settle() \
    }

#define LASTS(r) (whole[NAME_OF(r)])

/* Another one of the masters in common keeps this list, as what nothing replaces. */
inline look_kept(m)
{
    common = false;
    remembered = false;
    for (i : 0 .. MASTERS - 1) {
        remembered = remembered || (i != m && IN(i, FIRST & SECOND & THIRD) && SAME_LIST(record[i], record[m]) &&
            record[i] >= LASTING(NAME_OF(record[i])));
        common = common || (i == m && IN(i, FIRST & SECOND & THIRD))
    }
    i = 0
}

proctype at(byte m)
{
end:
    do
    FOUNDER(0)
    FOUNDER(1)
#if LISTS > 2
    FOUNDER(2)
#endif
    CLIENT(0)
    CLIENT(1)
    :: d_step {
        forgets > 0 && record[m] != blank ->
        look_kept(m);
        if
        :: !common || remembered || !LASTS(record[m]) || ALL ->
            printf("master %d forgets\n", m);
            forgets--;
            new_record(m, blank);
            young[m] = (wrong(no_quarantine) -> 0 : ATTEMPTS);
            key[m] = 0;
            back = (GOAL == returned -> back | BIT(m) : 0)
        :: else
        fi;
        remembered = false;
        common = false;
        settle()
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
    :: d_step { LOCKS && !asking[0] -> asking[0] = true }
    :: d_step { LOCKS && !asking[1] -> asking[1] = true }
    od
}
