/* What the models share. cases.py gives the scope of each search. check.py writes it before the model: what arrays are
 * as long as is a macro, and the rest a variable that the compiled search is given when it starts.
 *
 * WRONG=name           one rule of the protocol broken; the search must find an error
 * GOAL=name            reaching it is an error, which shows that the model is not vacuous
 * -DTRAIL              the counterexample is to be followed, so all of it is a macro
 * -DSYMMETRY           masters are interchangeable: those that differ only in their names are one state
 */

#define nothing 0
#define wrong(rule) (WRONG == rule)
#define reached(goal) assert(GOAL != goal)

#ifdef SYMMETRY
c_decl {
    static void sort(char *all, unsigned size, int count)
    {
        char other[256];
        for (int n = 1; n < count; ++n) {
            for (int k = n; k > 0 && memcmp(all + (k - 1) * size, all + k * size, size) > 0; --k) {
                memcpy(other, all + k * size, size);
                memcpy(all + k * size, all + (k - 1) * size, size);
                memcpy(all + (k - 1) * size, other, size);
            }
        }
    }
};
#define sort_masters() c_code { sort((char *)&now.master[0], sizeof(now.master[0]), MASTERS); }
#ifdef SETS
/* Where states have sets of masters, those that are in the same lists are interchangeable. */
c_code {
    static unsigned lists_of(int m);
    static int compare(int m, int n);
    static void swap(int m, int n);
    static void swap_bits(unsigned char *set, int a, int b)
    {
        int differ = (*set >> a ^ *set >> b) & 1;
        *set ^= differ << a | differ << b;
    }
    #define BY(field) if (now.field[m] != now.field[n]) return (int)now.field[m] - (int)now.field[n]
    #define BY_BIT(set) if ((now.set >> m & 1) != (now.set >> n & 1)) return (now.set >> m & 1) - (now.set >> n & 1)
    static void sort_by_lists(void)
    {
        int m, n;
        for (m = 1; m < MASTERS; ++m) {
            for (n = m; n > 0; --n) {
                int l = n - 1;
                while (l >= 0 && lists_of(l) != lists_of(n)) {
                    --l;
                }
                if (l < 0 || compare(l, n) <= 0) {
                    break;
                }
                swap(l, n);
                n = l + 1;
            }
        }
    }
};
#endif
#else
#define sort_masters() skip
#endif

#if MASTERS == 3
#define EVERY(op, what) (what(0) op what(1) op what(2))
#elif MASTERS == 4
#define EVERY(op, what) (what(0) op what(1) op what(2) op what(3))
#else
#define EVERY(op, what) (what(0) op what(1) op what(2) op what(3) op what(4))
#endif

/* Sets of masters, a bit each. */
#define BIT(m) (1 << (m))
#define IN(m, set) (((set) & BIT(m)) != 0)
#define COUNT(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1) + ((set) >> 3 & 1) + ((set) >> 4 & 1))
#define MAJORITY(of, set) (2 * COUNT((set) & (of)) > COUNT(of))
#define BLOCKING_PART(of, set) (2 * COUNT((set) & (of)) >= COUNT(of)) /* N - q + 1 */
#define ALL_OF(of, set) ((~(set) & (of)) == 0)

/* All of it is 0. (spin itself, which follows a trail, runs no C.) */
#ifdef TRAIL
#define reset(what) skip
#else
#define reset(what) c_code { memset(&now.what, 0, sizeof(now.what)); }
#endif

/* What can have no effect any more is 0, so that states which differ only in it are one. */
inline clear(what, condition)
{
    what = ((condition) -> 0 : what)
}

inline count_down(what)
{
    what = (what > 0 -> what - 1 : 0)
}

inline delete_key(m)
{
    master[m].owner = 0;
    master[m].left = 0
}

/* One tick of the clock of a master. */
inline pass(m)
{
    count_down(master[m].quarantine);
    count_down(master[m].left);
    master[m].owner = (master[m].left == 0 -> 0 : master[m].owner)
}

/* A fault, after which a master's record says this. */
inline forget_record(says)
{
    faults--;
    master[m].record = says;
    master[m].quarantine = 0
}

/* The q-th largest end of a vote: too few end as late as any later one. */
inline find_deadline(too_few)
{
    deadline = TTL;
    do
    :: deadline > 0 && too_few -> deadline--
    :: else -> break
    od
}

/* What happens to each master, what is between it and each client, and what each client does. */
inline run_all()
{
    for (m : 0 .. MASTERS - 1) {
        run fate(m);
        for (c : 0 .. CLIENTS - 1) {
            run link(c, m)
        }
    }
    for (c : 0 .. CLIENTS - 1) {
        run client(c)
    }
    c = 0;
    m = 0
}
