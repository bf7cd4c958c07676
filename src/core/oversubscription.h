/* oversubscription.h - whether threads that meet after every pass still gain, on a machine whose
 * cores others use too.
 *
 * A pass of 0.05 ms that waits for a thread which another program has put aside takes a time slice,
 * some ms: two threads were then ten times as slow as one.  What passes took tells: where they are
 * slow or uneven, some are done by one thread, and as long as that is faster so are the next ones.
 * For work whose bits do not depend on the number of threads.
 */
#ifndef FRGI_CORE_OVERSUBSCRIPTION_H
#define FRGI_CORE_OVERSUBSCRIPTION_H

#include <stdbool.h>

/** How many of `most` threads a loop of so many multiply-adds is worth: one where they would wait
 *  longer than they work. */
int frgi_team_for(int most, double work);

/** All zeros at the beginning. */
typedef struct {
    bool alone;      /* the next pass is one thread's */
    int passes;      /* of this stretch, all together or all alone */
    int stay;        /* how long the stretch alone is, once it was found the faster */
    int sure;        /* passes together since one thread was tried */
    double seconds;  /* a unit of work, summed over the stretch */
    double together; /* mean of the stretch before */
    double least;    /* of any pass together */
} frgi_oversubscription;

/** A beginning that tries one thread after the first passes together, in place of hundreds: for
 *  passes that can be slow all alike, as beside another library's threads that spin. */
frgi_oversubscription frgi_oversubscription_doubtful(void);

/** How many of the threads the next pass should have. */
static inline int frgi_oversubscription_team(const frgi_oversubscription *c, int threads)
{
    return c->alone ? 1 : threads;
}

/** The same of loops beside the passes, of which nobody takes note: one thread where it was found
 *  the faster, not where it is being tried. */
static inline int frgi_oversubscription_team_beside(const frgi_oversubscription *c, int threads)
{
    return c->alone && c->stay > 0 ? 1 : threads;
}

/** Takes note of a pass by so many threads at hand: seconds per work, in units of the caller's. */
void frgi_oversubscription_note(frgi_oversubscription *c, int threads, double seconds);

#endif
