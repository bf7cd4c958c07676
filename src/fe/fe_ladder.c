/* fe_ladder.c - the rungs: conjugate gradients through the rows. */
#include "fe/fe_ladder.h"

#include <string.h>

struct fe_ladder {
    const fe_rows *g;
    frg_demean_opts opts;
    const char *method;
    int threads;
    frgi_isa isa;
};

void frgi_fe_block_work_layout(frgi_arena *a, const fe_rows *g, int lanes, fe_block_work *w)
{
    frgi_fe_row_work_layout(a, g, lanes, &w->rows);
    frgi_fe_cg_layout(a, g->n_coef, lanes, &w->cg);
    w->answer = TAKE(a, double, frgi_mul((size_t)g->n_coef, (size_t)lanes));
    w->keep = TAKE(a, double, frgi_mul((size_t)g->n_coef, (size_t)lanes));
}

frg_status frgi_fe_ladder_create(fe_ladder **out, frg_context *ctx, const fe_rows *g,
                                 const frg_demean_opts *o)
{
    *out = NULL;
    fe_ladder *l;
    TRY(NEW0(ctx, &l, 1, "ladder"));
    l->g = g;
    l->opts = *o;
    l->method = "closed form";
    l->threads = frg_threads(ctx);
    l->isa = frgi_context_isa(ctx);
    *out = l;
    return FRG_OK;
}

typedef struct {
    const fe_ladder *l;
    const fe_row_ops *ops;
    const fe_row_work *work;
} row_product;

static void times_rows(const void *data, int lanes, const double *a, double *y)
{
    const row_product *p = data;
    frgi_fe_apply(p->l->g, p->ops, p->work, p->l->threads, lanes, a, y);
}

frg_status frgi_fe_ladder_solve(fe_ladder *l, frg_context *ctx, const fe_block_work *w, int kind,
                                int escalate, const fe_cg_target *target, fe_cg_column *column)
{
    (void)escalate;
    const row_product product = {l, frgi_fe_row_ops(l->isa, 0, kind), &w->rows};
    const fe_system s = {.n = l->g->n_coef,
                         .times = times_rows,
                         .data = &product,
                         .inverse_diag = l->g->level_inverse,
                         .level_inverse = l->g->level_inverse};
    const int lanes = 1 << kind;
    l->method = "cg rows";
    const frg_status status = frgi_fe_cg_run(ctx, &s, frgi_fe_coef_ops(l->isa, kind), &w->cg, lanes,
                                             l->opts.max_iter, "cg rows", target, column);
    memcpy(w->answer, w->cg.x, (size_t)(l->g->n_coef * lanes) * sizeof(double));
    return status;
}

size_t frgi_fe_fill_cap(const frg_context *ctx, const frg_demean_opts *o)
{
    if (o->fill_cap > 0) {
        return o->fill_cap;
    }
    return frgi_memory_allowed(ctx) / 4;
}

const char *frgi_fe_ladder_method(const fe_ladder *l)
{
    return l->method;
}

size_t frgi_fe_ladder_factor_bytes(const fe_ladder *l)
{
    (void)l;
    return 0;
}

int64_t frgi_fe_ladder_rank(const fe_ladder *l)
{
    (void)l;
    return -1;
}

frg_status frgi_fe_ladder_count(fe_ladder *l, frg_context *ctx, int64_t *rank)
{
    (void)l;
    (void)ctx;
    *rank = -1;
    return FRG_OK;
}

void frgi_fe_ladder_destroy(fe_ladder *l, frg_context *ctx)
{
    DROP(ctx, &l);
}
