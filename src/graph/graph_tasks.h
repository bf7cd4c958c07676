/* graph_tasks.h - tasks of a search that threads take by turns: how many are done, and whether it
 * was stopped.
 *
 * Integers alone, which come out the same in any order.
 */
#ifndef FRGI_GRAPH_TASKS_H
#define FRGI_GRAPH_TASKS_H

#include "core/core.h"

#include <math.h>
#include <omp.h>

typedef struct {
    const char
        *solver;  /* of frg_progress; NULL: the caller reports, and stops are asked for here */
    int status;   /* of the stop, or of what failed; FRG_OK: go on */
    int64_t done; /* tasks */
} graph_tasks;

static inline bool graph_tasks_go_on(graph_tasks *p)
{
    int now;
#pragma omp atomic read
    now = p->status;
    return now == FRG_OK;
}

/** Why it stops, a failure or not, if it does; what was said before stays. */
static inline void graph_tasks_stop(graph_tasks *p, int why)
{
    if (why != FRG_OK && graph_tasks_go_on(p)) {
#pragma omp atomic write
        p->status = why;
    }
}

/** Asks whether to stop, in any thread, and reports no progress; returns whether to go on. */
static inline bool graph_tasks_poll(graph_tasks *p, const frg_context *ctx)
{
    graph_tasks_stop(p, frgi_stopped(ctx));
    return graph_tasks_go_on(p);
}

/** One more is done.  The first thread of the team reports that `each` of `total` a part are, and
 *  asks whether to stop; ctx NULL: neither. */
static inline void graph_tasks_count(graph_tasks *p, frg_context *ctx, const char *phase,
                                     int64_t each, int64_t total)
{
    int64_t done;
#pragma omp atomic capture
    done = ++p->done;
    if (!ctx || omp_get_thread_num() != 0) {
        return;
    }
    const frg_progress now = {.solver = p->solver,
                              .phase = phase,
                              .done = done * each,
                              .total = total,
                              .residual = (double)NAN,
                              .target = (double)NAN};
    const int beat = p->solver ? frgi_heartbeat(ctx, &now) : frgi_stopped(ctx);
    graph_tasks_stop(p, beat);
}

#endif
