/* fe_runs.c - see fe_runs.h: rows in memory are one window. */
#include "fe/fe_runs.h"

fe_runs frgi_fe_runs(const fe_rows *g, frg_context *ctx)
{
    return (fe_runs){.g = g, .ctx = ctx, .status = FRG_OK, .next_elim = -1};
}

const fe_rows *frgi_fe_runs_next(fe_runs *r)
{
    const fe_rows *const g = r->g;
    const int64_t elim = r->next_elim < 0 ? 0 : r->next_elim;
    if (r->status != FRG_OK || (r->next_elim >= 0 && elim >= g->n_elim)) {
        return NULL;
    }
    if (!g->source) {
        r->next_elim = g->n_elim;
        return g;
    }
    r->window = *g;
    r->status = g->source->read(g->source->state, r->ctx, elim, &r->window);
    r->next_elim = elim + r->window.n_elim;
    return r->status == FRG_OK ? &r->window : NULL;
}

frg_status frgi_fe_runs_close(fe_runs *r)
{
    if (r->g->source && r->next_elim >= 0) {
        r->g->source->release(r->g->source->state);
    }
    return r->status;
}
