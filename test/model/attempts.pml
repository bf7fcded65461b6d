/* Attempts, and what is on the way between them and the masters: what acquire.pml and fencing.pml share.
 * A slot is one attempt of one client, and its token of the lock; 0 means no slot. */

#define SLOTS (CLIENTS * ATTEMPTS + 1)
#define SLOT(c, attempt) (1 + (c) * ATTEMPTS + (attempt))
#define CLIENT_OF(slot) (((slot) - 1) / ATTEMPTS)
#define MAY_TRY(c) (tries[c] < (c == 0 -> ATTEMPTS : OTHERS_ATTEMPTS))
#define CURRENT(c) SLOT(c, tries[c] - 1)
#define OVER(slot) (phase[CLIENT_OF(slot)] == idle || CURRENT(CLIENT_OF(slot)) != (slot))

/* Where nothing can happen any more each client has finished. It does not end by itself: its end would be a state more
 * beside each of those of the others. */
#define HAS_FINISHED(c) (phase[c] == idle && !MAY_TRY(c))
#define NOBODY_WAITS \
    :: timeout && !(HAS_FINISHED(0) && HAS_FINISHED(1) && HAS_FINISHED(CLIENTS - 1)) -> assert(false)

/* The order of the commands on a connection is that of the numbers, attempt by attempt. 2 and 128 are of each model. */
#define ACQUIRE 1
#define RELEASE 4
#define LIVE 7
#define LATE 8 /* times a command: on a connection that broke, where it may execute still */
#define GRANTED 64

#define PENDING(attempt) master[m].pending[SLOT(c, attempt)]
#define FIRST(mask, attempt) \
    ((PENDING(attempt) & (mask)) != 0 && ((attempt) == 0 || (PENDING(0) & (mask)) == 0))

#define VOTES(c, least) ((master[0].vote[c] >= least) + (master[1].vote[c] >= least) + (master[2].vote[c] >= least))

inline drop(flags, condition)
{
    master[i].pending[j] = ((condition) -> master[i].pending[j] & (255 - (flags)) : master[i].pending[j])
}

/* Replies are lost; commands may execute still. A removal is owed, and paid on the new connection. */
inline break_connection()
{
    printf("connection of client %d to master %d breaks\n", c, m);
    breaks--;
    master[m].broken[c] = 1;
    for (j : 0 .. ATTEMPTS - 1) {
        PENDING(j) = (PENDING(j) & LIVE) * LATE + (PENDING(j) & RELEASE)
    }
}
