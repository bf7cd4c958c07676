/* gp_twin.c - a process beside another, on a context of its own: what never changes is shared (the expression, names of
 * columns and parameters), and the other one must outlive it.
 *
 * A twin has its data and parameters too, so that two threads can search at once; the way of storing is the other's, so
 * that both compute the same bits.  A sibling has neither yet: members of a batch are parsed once. */
#include <string.h>

#include "gp/gp_room.h"

static void copy_data(frg_gp *to, const frg_gp *from)
{
    const size_t n = (size_t)from->n;
    memcpy(to->x, from->x, n * (size_t)from->d * sizeof *to->x);
    memcpy(to->y, from->y, n * (size_t)from->q * sizeof *to->y);
    if (from->known_noise) {
        memcpy(to->known_noise, from->known_noise, n * sizeof *to->known_noise);
    }
    if (from->groups) {
        memcpy(to->groups, from->groups, n * sizeof *to->groups);
    }
    if (from->given_mean) {
        memcpy(to->given_mean, from->given_mean, n * sizeof *to->given_mean);
    }
}

/** A process without points on ctx; its parameters begin as `from`. */
static frg_status share(frg_gp **out, frg_context *ctx, const frg_gp *gp, const frgi_gp_param *from)
{
    const size_t count = (size_t)gp->params.count;
    frg_gp *twin;
    frg_status status;
    TRY(NEW(ctx, &twin, 1, "process"));
    *twin = *gp;
    twin->shares = true;
    twin->ctx = twin->params.ctx = ctx;
    twin->params.p = NULL;
    twin->theta = twin->gradient = NULL;
    twin->printed = NULL;
    twin->trace = NULL;
    twin->n_trace = 0;
    twin->starts = NULL;
    twin->save = NULL;
    twin->from = NULL;
    twin->keeping = NULL;
    twin->memory = twin->loo_memory = twin->information_memory = (frgi_arena){0};
    twin->n = twin->capacity = 0;
    twin->swapped = twin->sticky = false;
    twin->jitter = 0;
    TRY_TO(failed, NEW(ctx, &twin->params.p, count, "parameters"));
    TRY_TO(failed, NEW(ctx, &twin->theta, count, "parameters"));
    TRY_TO(failed, NEW0(ctx, &twin->gradient, count, "the gradient"));
    memcpy(twin->params.p, from, count * sizeof *from);
    twin->params.room = twin->params.count;
    memcpy(twin->theta, gp->theta, count * sizeof *gp->theta);
    *out = twin;
    return FRG_OK;
failed:
    frg_gp_destroy(twin);
    return status;
}

frg_status frgi_gp_sibling(frg_gp **out, frg_context *ctx, const frg_gp *model)
{
    return share(out, ctx, model, model->unset);
}

static void copy_row(frg_gp *to, ptrdiff_t at, const frg_gp *from, ptrdiff_t row)
{
    const size_t d = (size_t)from->d;
    memcpy(to->x + at * to->d, from->x + row * from->d, d * sizeof *to->x);
    for (ptrdiff_t c = 0; c < from->q; c++) {
        to->y[c * to->n + at] = from->y[c * from->n + row];
    }
    if (from->known_noise) {
        to->known_noise[at] = from->known_noise[row];
    }
    if (from->groups) {
        to->groups[at] = from->groups[row];
    }
    if (from->given_mean) {
        to->given_mean[at] = from->given_mean[row];
    }
}

frg_status frgi_gp_part(frg_gp **out, const frg_gp *gp, ptrdiff_t m, const ptrdiff_t *rows)
{
    frg_gp *part;
    frg_status status;
    TRY(share(&part, gp->ctx, gp, gp->params.p));
    part->opts.precision = FRG_GP_F64;
    part->opts.jitter = FRG_GP_JITTER_NONE;
    TRY_TO(failed, frgi_gp_resize(part, m));
    for (ptrdiff_t i = 0; i < m; i++) {
        copy_row(part, i, gp, rows[i]);
    }
    frgi_gp_refresh(part);
    frgi_gp_set_sticky(part, true); /* no warnings about points that nobody asked for */
    *out = part;
    return FRG_OK;
failed:
    frg_gp_destroy(part);
    return status;
}

frg_status frgi_gp_twin(frg_gp **out, frg_context *ctx, const frg_gp *gp)
{
    frg_gp *twin;
    frg_status status;
    TRY(share(&twin, ctx, gp, gp->params.p));
    twin->opts.storage = gp->storage;
    TRY_TO(failed, frgi_gp_resize(twin, gp->n));
    copy_data(twin, gp);
    frgi_gp_refresh(twin);
    *out = twin;
    return FRG_OK;
failed:
    frg_gp_destroy(twin);
    return status;
}
