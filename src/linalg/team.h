/* team.h - threads that go through many short phases together.
 *
 * One parallel region serves a whole factorisation.  A phase is a range of tasks, cut into one
 * share a thread; a thread that has finished its share from the front takes from the end of
 * another. Tasks write to different places and their arithmetic knows nothing of threads, so the
 * bits do not depend on who does what.
 *
 *     frgi_team_offer_equal(t, me, n);    before the barrier that opens the phase
 *     frgi_team_meet(t);
 *     while ((u = frgi_team_take(t, me)) >= 0) ...
 *     frgi_team_meet(t);
 *
 * Shares of consecutive phases lie in different words: a thread that still looks for work of the
 * last phase never finds work of the next.
 *
 * Where phase after phase goes over the rows of one matrix, rows are dealt by turns: what a thread
 * has written it finds in its own cache, whatever the shape of the phase. */
#ifndef FRGI_TEAM_H
#define FRGI_TEAM_H

#include <stdatomic.h>

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { TEAM_LINE = 64 };

typedef struct {
    _Alignas(TEAM_LINE) _Atomic uint64_t range[2]; /* of even and odd phases: lo | hi << 32 */
    unsigned phase;                                /* the owner's count */
} frgi_team_share;

typedef struct {
    int threads;
    frgi_team_share *share; /* one a thread */
    _Alignas(TEAM_LINE) atomic_int arrived;
    _Alignas(TEAM_LINE) atomic_uint round;
    atomic_int asleep; /* threads that wait without spinning */
} frgi_team;

/** Threads for a problem: those of the context, or one inside a parallel region or where there is
 *  too little. */
int frgi_team_size(const frg_context *ctx, bool worth_it);
/** Runs body(user, me) on `threads` threads, or fewer where there are fewer; share: `threads` of
 *  them. */
void frgi_team_run(frgi_team *t, frgi_team_share *share, int threads,
                   void (*body)(void *user, int me), void *user);
/** The barrier. */
void frgi_team_meet(frgi_team *t);
/** An equal share of 0 .. count-1. */
void frgi_team_offer_equal(frgi_team *t, int me, ptrdiff_t count);

/** Tasks in rows that are dealt to the threads by turns: row i has `each` of them, or (i + 1) each
 *  where the rows are those of a triangle; `more` (0 or 1) is for one task beside them, which
 *  counts as a row behind the last. */
typedef struct {
    ptrdiff_t rows, each;
    bool triangle;
    int more;
} frgi_team_rows;
void frgi_team_deal(frgi_team *t, int me, const frgi_team_rows *r);
/** frgi_team_take for tasks so dealt: *row and the number within it, -1 when none is left. */
ptrdiff_t frgi_team_take_dealt(frgi_team *t, int me, const frgi_team_rows *r, ptrdiff_t *row);
/** The next task, -1 when none is left. */
ptrdiff_t frgi_team_take(frgi_team *t, int me);

#pragma GCC visibility pop
#endif
