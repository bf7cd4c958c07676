/* gw_trace.c - epsilon, errors and costs of the outer iterations of a run, one row an iteration.
 *
 * A run that was resumed from a state has the rows since that state.
 * Memory: 56 bytes an iteration, kept by the solver for its next run.
 */
#include <math.h>

#include "gw/gw_align.h"

static const char *phase_name(int phase)
{
    static const char *const names[FRGI_PHASES] = {[FRGI_COARSE_STARTS] = "coarse starts",
                                                   [FRGI_COARSE] = "coarse",
                                                   [FRGI_FINE] = "fine",
                                                   [FRGI_STARTS] = "starts",
                                                   [FRGI_MAIN] = "outer",
                                                   [FRGI_EXACT] = "outer",
                                                   [FRGI_FACTOR_STARTS] = "starts",
                                                   [FRGI_FACTORS] = "outer"};
    return names[phase] ? names[phase] : "outer";
}

frg_status frgi_trace_add(const frgi_level *l)
{
    enum { FIRST_CAPACITY = 128 };
    frgi_trace *const t = l->trace;
    const bool factored = l->o->rank > 0; /* mirror steps: their marginals are projected */
    if (!t) {
        return FRG_OK;
    }
    if (t->n == t->capacity) {
        const int64_t capacity = t->capacity > 0 ? 2 * t->capacity : FIRST_CAPACITY;
        TRY(GROW(l->ctx, &t->rows, capacity, "the trace of an alignment"));
        t->capacity = capacity;
    }
    t->rows[t->n++] =
        (frg_gw_iteration){.phase = l->is_coarse ? "coarse" : phase_name(l->saved.phase),
                           .start = l->saved.turn,
                           .epsilon = l->epsilon,
                           .marginal_error = factored ? (double)NAN : l->t.last.error,
                           .change = factored ? (double)NAN : l->stopping.change,
                           .cost = (double)NAN,
                           .cost_error = (double)NAN};
    return FRG_OK;
}

void frgi_trace_cost(const frgi_level *l, double cost, double error)
{
    frgi_trace *const t = l->trace;
    if (t && t->n > 0) {
        t->rows[t->n - 1].cost = cost;
        t->rows[t->n - 1].cost_error = error;
    }
}

const frg_gw_iteration *frg_gw_trace(const frg_gw *s, int64_t *count)
{
    if (count) {
        *count = s ? s->trace.n : 0;
    }
    return s ? s->trace.rows : NULL;
}
