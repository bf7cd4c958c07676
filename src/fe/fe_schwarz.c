/* fe_schwarz.c - the graphs of the preconditioners of fe_schwarz.h, their factor, its application.
 */
#include "fe/fe_schwarz.h"

#include <string.h>

#include "fe/fe_coupling.h"
#include "fe/fe_runs.h"

/** The graphs of all subdomains: the upper triangle, row by row of copies. */
typedef struct {
    const fe_rows *g;
    frg_context *ctx;
    int64_t rows, used, capacity; /* rows begun, entries, entries there is memory for */
    int64_t *starts;
    int32_t *columns;
    double *values;
} subdomains;

/** Rows of the design by the level of one factor: the level of the other, and the weight. */
typedef struct {
    int q, s;
    int64_t *starts; /* levels of q + 1 */
    int32_t *other;  /* n */
    double *weight;  /* n, or NULL */
    double *sum;     /* levels of s */
    int32_t *seen;   /* levels of s */
} cells;

static frg_status reserve(subdomains *d, int64_t more)
{
    if (d->used + more <= d->capacity) {
        return FRG_OK;
    }
    int64_t capacity = d->capacity + d->capacity / 2;
    capacity = capacity < d->used + more ? d->used + more : capacity;
    TRY(GROW(d->ctx, &d->columns, capacity, "graphs of pairs"));
    TRY(GROW(d->ctx, &d->values, capacity, "graphs of pairs"));
    d->capacity = capacity;
    return FRG_OK;
}

static void put(subdomains *d, int64_t column, double value)
{
    d->columns[d->used] = (int32_t)column;
    d->values[d->used++] = value;
}

static void close_row(subdomains *d)
{
    d->starts[++d->rows] = d->used;
}

/** S_qq of every factor: what S has within it. */
static frg_status add_blocks(subdomains *d, const fe_schur *s)
{
    TRY(reserve(d, (s->starts[s->n] + s->n) / 2));
    for (int r = 0; r < d->g->n_remaining; r++) {
        const int64_t first = fe_remaining(d->g, r)->first,
                      end = first + fe_remaining(d->g, r)->levels;
        for (int64_t i = first; i < end; i++) {
            for (int64_t e = s->starts[i]; e < s->starts[i + 1]; e++) {
                if (s->columns[e] >= i && s->columns[e] < end) {
                    put(d, s->columns[e], s->values[e]);
                }
            }
            close_row(d);
        }
    }
    return FRG_OK;
}

/** Counts the rows of every level of q, then brings them together. */
static frg_status sort_rows(const subdomains *d, cells *c)
{
    const int64_t first = fe_remaining(d->g, c->q)->first, other = fe_remaining(d->g, c->s)->first;
    const int64_t levels = fe_remaining(d->g, c->q)->levels;
    const int step = d->g->n_remaining;
    memset(c->starts, 0, (size_t)(levels + 1) * sizeof *c->starts);
    for (int pass = 0; pass < 2; pass++) {
        fe_runs runs = frgi_fe_runs(d->g, d->ctx);
        for (const fe_rows *w; (w = frgi_fe_runs_next(&runs));) {
            for (int64_t i = 0; i < w->n; i++) {
                const int32_t *const index = w->index + i * step;
                int64_t *const at = &c->starts[index[c->q] - first];
                if (pass == 0) {
                    at[1]++;
                    continue;
                }
                c->other[*at] = (int32_t)(index[c->s] - other);
                if (c->weight) {
                    c->weight[*at] = w->weight[i];
                }
                ++*at;
            }
        }
        const frg_status status = frgi_fe_runs_close(&runs);
        if (status != FRG_OK) {
            return status;
        }
        for (int64_t l = 0; pass == 0 && l < levels; l++) {
            c->starts[l + 1] += c->starts[l];
        }
    }
    memmove(c->starts + 1, c->starts, (size_t)levels * sizeof *c->starts);
    c->starts[0] = 0;
    return FRG_OK;
}

/** The cells of a pair, as edges between the copies of q's levels and those of s' levels behind
 *  them.  A graph's vertex needs no diagonal. */
static frg_status add_cells(subdomains *d, cells *c)
{
    const int64_t levels = fe_remaining(d->g, c->q)->levels,
                  n_other = fe_remaining(d->g, c->s)->levels;
    const int64_t behind = d->rows + levels;
    memset(c->sum, 0, (size_t)n_other * sizeof *c->sum);
    for (int64_t l = 0; l < levels; l++) {
        int64_t count = 0;
        for (int64_t i = c->starts[l]; i < c->starts[l + 1]; i++) {
            const int32_t o = c->other[i];
            const double w = c->weight ? c->weight[i] : 1;
            if (c->sum[o] == 0 && w > 0) {
                c->seen[count++] = o;
            }
            c->sum[o] += w;
        }
        TRY(reserve(d, count));
        for (int64_t i = 0; i < count; i++) {
            put(d, behind + c->seen[i], -c->sum[c->seen[i]]);
            c->sum[c->seen[i]] = 0;
        }
        close_row(d);
    }
    for (int64_t l = 0; l < n_other; l++) {
        close_row(d);
    }
    return FRG_OK;
}

static frg_status add_pair(subdomains *d, int q, int s)
{
    const int64_t levels = fe_remaining(d->g, q)->levels, others = fe_remaining(d->g, s)->levels;
    cells c = {.q = q, .s = s};
    frg_status status;
    TRY_TO(done, NEW(d->ctx, &c.starts, levels + 1, "cells of a pair"));
    TRY_TO(done, NEW(d->ctx, &c.other, d->g->n, "cells of a pair"));
    if (d->g->weighted) {
        TRY_TO(done, NEW(d->ctx, &c.weight, d->g->n, "cells of a pair"));
    }
    TRY_TO(done, NEW(d->ctx, &c.sum, others, "cells of a pair"));
    TRY_TO(done, NEW(d->ctx, &c.seen, others, "cells of a pair"));
    status = sort_rows(d, &c);
    status = status == FRG_OK ? add_cells(d, &c) : status;
done:
    DROP(d->ctx, &c.starts);
    DROP(d->ctx, &c.other);
    DROP(d->ctx, &c.weight);
    DROP(d->ctx, &c.sum);
    DROP(d->ctx, &c.seen);
    return status;
}

/** The copies in the order of the subdomains: each unknown once, then the levels of the pairs. */
static frg_status make_copies(fe_schwarz *p, frg_context *ctx, const fe_rows *g, bool pairs)
{
    p->n = g->n_reduced;
    if (!pairs) {
        return FRG_OK;
    }
    p->n *= g->n_remaining;
    TRY(NEW(ctx, &p->level, p->n, "copies of the unknowns"));
    TRY(NEW(ctx, &p->sign, p->n, "copies of the unknowns"));
    int64_t at = 0;
    for (; at < g->n_reduced; at++) {
        p->level[at] = (int32_t)at;
        p->sign[at] = 1;
    }
    for (int q = 0; q < g->n_remaining; q++) {
        for (int s = q + 1; s < g->n_remaining; s++) {
            for (int half = 0; half < 2; half++) {
                const int64_t first = fe_remaining(g, half ? s : q)->first;
                for (int64_t l = 0; l < fe_remaining(g, half ? s : q)->levels; l++, at++) {
                    p->level[at] = (int32_t)(first + l);
                    p->sign[at] = half ? -1 : 1;
                }
            }
        }
    }
    assert(at == p->n);
    return FRG_OK;
}

frg_status frgi_fe_schwarz_create(fe_schwarz *p, frg_context *ctx, const fe_rows *g,
                                  const fe_schur *s, bool pairs)
{
    subdomains d = {.g = g, .ctx = ctx};
    frg_status status = make_copies(p, ctx, g, pairs);
    if (status != FRG_OK) {
        goto done;
    }
    TRY_TO(done, NEW(ctx, &d.starts, p->n + 1, "graphs of pairs"));
    d.starts[0] = 0;
    status = add_blocks(&d, s);
    for (int q = 0; pairs && q < g->n_remaining; q++) {
        for (int r = q + 1; status == FRG_OK && r < g->n_remaining; r++) {
            status = add_pair(&d, q, r);
        }
    }
    if (status == FRG_OK) {
        const frgi_symmetric graphs = {p->n, d.starts, d.columns, d.values, 1};
        frgi_ac_opts o;
        frgi_ac_defaults(&o);
        o.seed = frg_seed(ctx);
        o.solver = "fe";
        status = frgi_ac_create(&p->ac, ctx, &graphs, &o);
    }
done:
    DROP(ctx, &d.starts);
    DROP(ctx, &d.columns);
    DROP(ctx, &d.values);
    if (status != FRG_OK) {
        frgi_fe_schwarz_destroy(p, ctx);
    }
    return status;
}

size_t frgi_fe_schwarz_scratch(const fe_schwarz *p, int lanes)
{
    const size_t copies = p->level ? frgi_mul((size_t)p->n, (size_t)lanes) : 0;
    return frgi_add(copies, frgi_ac_scratch(p->ac, lanes));
}

frg_status frgi_fe_schwarz_apply(const fe_schwarz *p, const fe_rows *g, int lanes, const double *r,
                                 double *z, double *scratch)
{
    const fe_system_steps *const steps = &g->steps->reduced;
    if (!p->level) {
        return steps->precondition(p->ac, lanes, r, z, scratch);
    }
    double energy[FE_MAX_LANES];
    double *const v = scratch;
    TRY(steps->gather(p->n, lanes, p->level, r, v));
    TRY(steps->times_diagonal(p->n, lanes, p->sign, v, v));
    TRY(steps->precondition(p->ac, lanes, v, v, scratch + p->n * lanes));
    TRY(steps->times_diagonal(p->n, lanes, p->sign, v, v));
    TRY(steps->copy(g->n_reduced, lanes, NULL, z));
    return steps->scatter(p->n, lanes, p->level, v, r, z, energy);
}

frg_status frgi_fe_schwarz_get(fe_schwarz *p, frg_context *ctx, const frg_checkpoint *from,
                               const fe_rows *g, bool pairs)
{
    TRY(make_copies(p, ctx, g, pairs));
    return frgi_ac_get(&p->ac, ctx, from, p->n);
}

size_t frgi_fe_schwarz_bytes(const fe_schwarz *p)
{
    const size_t copies = p->level ? (size_t)p->n * (sizeof *p->level + sizeof *p->sign) : 0;
    return copies + (p->ac ? frgi_ac_bytes(p->ac) : 0);
}

void frgi_fe_schwarz_destroy(fe_schwarz *p, frg_context *ctx)
{
    frgi_ac_destroy(p->ac);
    p->ac = NULL;
    DROP(ctx, &p->level);
    DROP(ctx, &p->sign);
    p->n = 0;
}
