/* gp_copy.c - copies of a process on contexts of their own: the expression and the names of columns
 * and parameters, which never change, are shared with the original, which must outlive them.
 *
 * A worker copy has the data, parameters and storage of the original, so that two threads search at
 * once and compute the same bits.  An empty copy has no data: a batch parses its expression once
 * and fills one copy a member.  A subset has some of the rows. */
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
    frg_gp *copy;
    frg_status status;
    TRY(NEW(ctx, &copy, 1, "process"));
    *copy = *gp;
    copy->shares = true;
    copy->ctx = copy->params.ctx = ctx;
    copy->params.p = NULL;
    copy->theta = copy->gradient = NULL;
    copy->printed = NULL;
    copy->trace = NULL;
    copy->n_trace = 0;
    copy->starts = NULL;
    copy->save = NULL;
    copy->from = NULL;
    copy->fit_state = NULL;
    copy->memory = copy->loo_memory = copy->information_memory = (frgi_arena){0};
    copy->n = copy->capacity = 0;
    copy->swapped = copy->monotone = false;
    copy->jitter = 0;
    TRY_TO(failed, NEW(ctx, &copy->params.p, count, "parameters"));
    TRY_TO(failed, NEW(ctx, &copy->theta, count, "parameters"));
    TRY_TO(failed, NEW0(ctx, &copy->gradient, count, "the gradient"));
    memcpy(copy->params.p, from, count * sizeof *from);
    copy->params.capacity = copy->params.count;
    memcpy(copy->theta, gp->theta, count * sizeof *gp->theta);
    *out = copy;
    return FRG_OK;
failed:
    frg_gp_destroy(copy);
    return status;
}

frg_status frgi_gp_empty_copy(frg_gp **out, frg_context *ctx, const frg_gp *model)
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

frg_status frgi_gp_subset(frg_gp **out, const frg_gp *gp, ptrdiff_t m, const ptrdiff_t *rows)
{
    frg_gp *subset;
    frg_status status;
    TRY(share(&subset, gp->ctx, gp, gp->params.p));
    subset->opts.precision = FRG_GP_F64;
    subset->opts.jitter = FRG_GP_JITTER_NONE;
    TRY_TO(failed, frgi_gp_resize(subset, m));
    for (ptrdiff_t i = 0; i < m; i++) {
        copy_row(subset, i, gp, rows[i]);
    }
    frgi_gp_refresh(subset);
    frgi_gp_set_monotone(subset, true); /* no warnings about points that nobody asked for */
    *out = subset;
    return FRG_OK;
failed:
    frg_gp_destroy(subset);
    return status;
}

frg_status frgi_gp_worker_copy(frg_gp **out, frg_context *ctx, const frg_gp *gp)
{
    frg_gp *copy;
    frg_status status;
    TRY(share(&copy, ctx, gp, gp->params.p));
    copy->opts.storage = gp->storage;
    TRY_TO(failed, frgi_gp_resize(copy, gp->n));
    copy_data(copy, gp);
    frgi_gp_refresh(copy);
    *out = copy;
    return FRG_OK;
failed:
    frg_gp_destroy(copy);
    return status;
}
