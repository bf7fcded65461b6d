/* What the models share. cases.py gives the scope of each search, check.py every name of it by -D.
 *
 * -DWRONG=name         one rule of the protocol broken; the search must find an error
 * -DGOAL=name          reaching it is an error, which shows that the model is not vacuous
 * -DSYMMETRY           masters are interchangeable: those that differ only in their names are one state
 */

#define nothing 0
#ifndef WRONG
#define WRONG nothing
#endif
#define wrong(rule) (WRONG == rule)
#ifndef GOAL
#define GOAL nothing
#endif
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
#else
#define sort_masters() skip
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
