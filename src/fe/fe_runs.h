/* fe_runs.h - the run stream: the rows of a plan in windows of whole eliminated levels.
 *
 * Whatever reads rows beside the passes of fe_rows.h reads them so, from the first eliminated level
 * to the last.  In memory one window is all rows and nothing is copied; elsewhere a window is what
 * a buffer holds.
 *
 *     fe_runs runs = frgi_fe_runs(g, ctx);
 *     for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
 *         ...
 *     }
 *     status = frgi_fe_runs_close(&runs);
 *
 * Sums that are kept chunk by chunk have the same bits for every cut into windows: a window holds
 * whole chunks, or a stretch of one, and says so.
 */
#ifndef FRGI_FE_RUNS_H
#define FRGI_FE_RUNS_H

#include "fe/fe_rows.h"

#pragma GCC visibility push(hidden)

/* A window is an fe_rows as if its rows were all there is.  n, n_elim, elim_start (from 0),
 * elim_level, elim_inverse, index, order, weight, n_chunks and chunk_elim (from 0) are its own,
 * `at` says where it stands; n_factors, factor, n_remaining, n_reduced, weighted, level_weight,
 * level_inverse are the plan's.  index and order may be read FE_ROWS_AHEAD rows past the end. */

/** Where rows lie that are not in memory: `source` of fe_rows. */
struct fe_run_source {
    /** *w, which is the plan's, <- a window that begins with eliminated level `elim`; what it
     *  points to holds until the next call.  Levels come in ascending order, or 0: from the
     *  start again.  FRG_OK, a failure, FRG_INTERRUPTED or FRG_TIME_LIMIT, for which it
     *  looks itself. */
    frg_status (*read)(void *state, frg_context *ctx, int64_t elim, fe_rows *w);
    /** The reader has closed; what was read ahead may be dropped. */
    void (*release)(void *state);
    void *state;
};

/** A reader; of rows that are not in memory there is one at a time. */
typedef struct {
    const fe_rows *g;
    frg_context *ctx;
    frg_status status;
    int64_t next_elim; /* -1: no window was given yet */
    fe_rows window;
} fe_runs;

/** A reader in front of the first window; nothing can fail yet. */
fe_runs frgi_fe_runs(const fe_rows *g, frg_context *ctx);
/** The next window, the reader's; NULL at the end, and where it failed or was stopped. */
const fe_rows *frgi_fe_runs_next(fe_runs *r);
/** FRG_OK, also where the reader was left early; a failure; FRG_INTERRUPTED or FRG_TIME_LIMIT,
 *  which TRY does not return with: what was read is then not all there is. */
FRG_MUST_USE frg_status frgi_fe_runs_close(fe_runs *r);

#pragma GCC visibility pop
#endif
