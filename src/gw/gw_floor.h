/* gw_floor.h - when an iteration has come to where rounding keeps it.
 *
 * What is looked at (an error of marginals, a change of a plan) falls until it is the noise of its
 * own rounding, and then wanders.  The floor is reached where two things hold:
 *
 *     value <= noise                                 a bound of what rounding may leave, from the
 *                                                    arithmetic
 *     no new least value for max(8, steps / 4) steps
 *
 * An iteration that converges slowly keeps setting new least values: one that came from 1 to its
 * noise at a rate of r a step has taken log(noise) / log(r) of them, and falls by a further
 * noise^(1/4) in a quarter as many.
 */
#ifndef FRGI_GW_FLOOR_H
#define FRGI_GW_FLOOR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    double least;  /* the smallest value so far */
    int64_t steps; /* until it */
    int64_t stale; /* since it */
} frgi_floor;

static inline frgi_floor frgi_floor_begin(void)
{
    return (frgi_floor){.least = (double)INFINITY};
}

/** Takes the next value; true: it and those before are at the floor, which is w->least. */
static inline bool frgi_floor_reached(frgi_floor *w, double value, double noise)
{
    enum { PATIENCE = 8 };
    if (value < w->least) {
        w->least = value;
        w->steps += w->stale + 1;
        w->stale = 0;
        return false;
    }
    w->stale++;
    const int64_t share = w->steps / 4, wait = share > PATIENCE ? share : PATIENCE;
    return w->least <= noise && w->stale >= wait;
}

#endif
