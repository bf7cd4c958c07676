/* gp_copy.c - copies of a process on contexts of their own: the expression and the names of columns
 * and parameters, which never change, are shared with the original, which must outlive them.
 *
 * A worker copy has the data, parameters and storage of the original, so that two threads search at
 * once and compute the same bits.  An empty copy has no data: a batch parses its expression once
 * and fills one copy a member.  A subset has some of the rows. */
#include <string.h>

#include "gp/gp_process.h"

static void copy_data(frg_gp *to, const frg_gp *from)
{
    const size_t n = (size_t)from->data.n;
    memcpy(to->data.x, from->data.x, n * (size_t)from->data.d * sizeof *to->data.x);
    memcpy(to->data.y, from->data.y, n * (size_t)from->data.q * sizeof *to->data.y);
    if (from->data.known_noise) {
        memcpy(to->data.known_noise, from->data.known_noise, n * sizeof *to->data.known_noise);
    }
    if (from->data.groups) {
        memcpy(to->data.groups, from->data.groups, n * sizeof *to->data.groups);
    }
    if (from->data.given_mean) {
        memcpy(to->data.given_mean, from->data.given_mean, n * sizeof *to->data.given_mean);
    }
}

/** A process without points on ctx; its parameters begin as `from`. */
static frg_status share(frg_gp **out, frg_context *ctx, const frg_gp *gp, const frgi_gp_param *from)
{
    const size_t count = (size_t)gp->model.params.count;
    frg_gp *copy;
    frg_status status;
    TRY(NEW(ctx, &copy, 1, "process"));
    *copy = *gp;
    copy->model.shared = true;
    copy->ctx = copy->model.params.ctx = ctx;
    copy->model.params.p = NULL;
    copy->model.theta = copy->vectors.gradient = NULL;
    copy->model.printed = NULL;
    copy->result.trace = NULL;
    copy->result.n_trace = 0;
    copy->result.starts = NULL;
    copy->saving.save = NULL;
    copy->saving.from = NULL;
    copy->saving.fit_state = NULL;
    copy->memory.arena = copy->memory.loo = copy->memory.information = (frgi_arena){0};
    copy->data.n = copy->data.capacity = 0;
    frgi_gp_open_state(copy);
    TRY_TO(failed, NEW(ctx, &copy->model.params.p, count, "parameters"));
    TRY_TO(failed, NEW(ctx, &copy->model.theta, count, "parameters"));
    TRY_TO(failed, NEW0(ctx, &copy->vectors.gradient, count, "the gradient"));
    memcpy(copy->model.params.p, from, count * sizeof *from);
    copy->model.params.capacity = copy->model.params.count;
    memcpy(copy->model.theta, gp->model.theta, count * sizeof *gp->model.theta);
    *out = copy;
    return FRG_OK;
failed:
    frg_gp_destroy(copy);
    return status;
}

frg_status frgi_gp_empty_copy(frg_gp **out, frg_context *ctx, const frg_gp *model)
{
    return share(out, ctx, model, model->model.unset);
}

static void copy_row(frg_gp *to, ptrdiff_t at, const frg_gp *from, ptrdiff_t row)
{
    const size_t d = (size_t)from->data.d;
    memcpy(to->data.x + at * to->data.d, from->data.x + row * from->data.d, d * sizeof *to->data.x);
    for (ptrdiff_t c = 0; c < from->data.q; c++) {
        to->data.y[c * to->data.n + at] = from->data.y[c * from->data.n + row];
    }
    if (from->data.known_noise) {
        to->data.known_noise[at] = from->data.known_noise[row];
    }
    if (from->data.groups) {
        to->data.groups[at] = from->data.groups[row];
    }
    if (from->data.given_mean) {
        to->data.given_mean[at] = from->data.given_mean[row];
    }
}

frg_status frgi_gp_subset(frg_gp **out, const frg_gp *gp, ptrdiff_t m, const ptrdiff_t *rows)
{
    frg_gp *subset;
    frg_status status;
    TRY(share(&subset, gp->ctx, gp, gp->model.params.p));
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
    TRY(share(&copy, ctx, gp, gp->model.params.p));
    copy->opts.storage = gp->memory.storage;
    TRY_TO(failed, frgi_gp_resize(copy, gp->data.n));
    copy_data(copy, gp);
    frgi_gp_refresh(copy);
    *out = copy;
    return FRG_OK;
failed:
    frg_gp_destroy(copy);
    return status;
}
