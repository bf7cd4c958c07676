/* test_fe_rows.c - the first pass over the rows against its definition in long double: moments of
 * every column of a block, and b = D_r' W (I - P_1) x. */
#include "test.h"

#include "fe/fe_rows.h"
#include "panel.h"

/** One column of x: what fe_moments should hold, and b. */
typedef struct {
    long double weight, mean, total, within, top;
    long double *unit_weight, *unit_mean, *b;
} truth;

static double weight_of(const panel *d, int64_t i)
{
    return d->weights ? d->weights[i] : 1;
}

static truth study(const panel *d, const fe_rows *g, int column)
{
    const int64_t units = g->factor[g->elim_factor].levels;
    truth t = {.unit_weight = calloc((size_t)units, sizeof(long double)),
               .unit_mean = calloc((size_t)units, sizeof(long double)),
               .b = calloc((size_t)g->n_reduced, sizeof(long double))};
    for (int64_t i = 0; i < d->n; i++) {
        const long double w = weight_of(d, i), x = d->x[column * d->n + i];
        const int32_t u = d->codes[i * d->q + g->elim_factor];
        t.weight += w;
        t.mean += w * x;
        t.unit_weight[u] += w;
        t.unit_mean[u] += w * x;
        t.top = fmaxl(t.top, fabsl(x));
    }
    t.mean /= t.weight;
    for (int64_t u = 0; u < units; u++)
        t.unit_mean[u] /= t.unit_weight[u];
    for (int64_t i = 0; i < d->n; i++) {
        const long double w = weight_of(d, i), x = d->x[column * d->n + i];
        const long double r = x - t.unit_mean[d->codes[i * d->q + g->elim_factor]];
        t.total += w * (x - t.mean) * (x - t.mean);
        t.within += w * r * r;
        for (int q = 0; q < d->q; q++)
            if (q != g->elim_factor)
                t.b[g->factor[q].first + d->codes[i * d->q + q]] += w * r;
    }
    return t;
}

static void truth_free(const truth *t)
{
    free(t->unit_weight);
    free(t->unit_mean);
    free(t->b);
}

/** A sum of n terms is wrong by n u of the sum of their sizes at most: 6e4 1.1e-16 = 7e-12 here.
 *  Differences from the shift are no larger than 10 deviations for normal numbers and the mean is
 *  taken out of the sum of squares by (sum)^2 / weight <= 100 total, hence the factor. */
static void check_moments(const panel *d, const fe_rows *g, const fe_moments *m, const double *b,
                          int lanes, int k)
{
    const truth t = study(d, g, k);
    const double n_u = 7e-12, deviation = sqrt((double)(t.total / t.weight));
    CHECK_NEAR(m->weight[k], (double)t.weight, n_u * (double)t.weight);
    CHECK_NEAR(m->shift[k] + m->sum[k] / m->weight[k], (double)t.mean, 10 * n_u * deviation);
    CHECK_NEAR(m->square[k] - m->sum[k] / m->weight[k] * m->sum[k], (double)t.total,
               200 * n_u * (double)t.total);
    CHECK_NEAR(m->within[k], (double)t.within, 2 * n_u * (double)t.within);
    CHECK(m->max_abs[k] == (double)t.top);
    for (int64_t l = 0; l < g->n_reduced; l++)
        CHECK_NEAR(b[l * lanes + k], (double)t.b[l],
                   10 * n_u * deviation * (double)d->n / (double)g->n_reduced);
    truth_free(&t);
}

/** Of a block of 1 << kind columns: in order of the units or not, with weights or without. */
static void check_pass(frg_context *ctx, int64_t n, int kind, bool weighted, bool in_order)
{
    const int lanes = 1 << kind;
    panel d = panel_make(n, 3, lanes);
    panel_random_codes(&d, (const int64_t[]){n / 5, 40, 7});
    for (int64_t i = 0; i < n; i++) { /* every level occurs, and the first factor has the most */
        d.codes[3 * i] = (int32_t)(in_order ? i / 5 : i % (n / 5));
        d.codes[3 * i + 1] = i < 40 ? (int32_t)i : d.codes[3 * i + 1];
        d.codes[3 * i + 2] = i < 7 ? (int32_t)i : d.codes[3 * i + 2];
        for (int k = 0; k < lanes; k++)
            d.x[k * n + i] = 1000 * k + test_normal();
    }
    if (weighted)
        panel_random_weights(&d, 0.5, 2);
    const frg_array codes = frg_matrix(d.codes, FRG_I32, n, 3, 3),
                    weights = frg_vector(d.weights, FRG_F64, n);
    const fe_row_ops *ops = frgi_fe_row_ops(frgi_context_isa(ctx), 0, lanes);
    fe_rows g = {0};
    if (ops->rhs &&
        CHECK_OK(ctx, frgi_fe_rows_create(&g, ctx, &codes, weighted ? &weights : NULL))) {
        double *b = calloc((size_t)(g.n_reduced * lanes), sizeof *b);
        frgi_arena arena = {0};
        fe_row_work w;
        fe_moments m;
        frgi_fe_row_work_layout(&arena, &g, lanes, &w);
        CHECK_OK(ctx, frgi_arena_open(&arena, ctx, "work"));
        frgi_fe_row_work_layout(&arena, &g, lanes, &w);
        const fe_block x = {(char *)d.x, 1, n, lanes};
        frgi_fe_rhs(&g, ops, &w, frg_threads(ctx), lanes, &x, b, &m);
        for (int k = 0; k < lanes; k++)
            check_moments(&d, &g, &m, b, lanes, k);
        frgi_arena_close(&arena, ctx);
        free(b);
    }
    frgi_fe_rows_destroy(&g, ctx);
    panel_free(&d);
}

static void moments(void)
{
    frg_context *ctx = test_context();
    for (int trial = 0; trial < 48; trial++)
        check_pass(ctx,
                   trial % 3 == 0   ? 200
                   : trial % 3 == 1 ? 3000
                                    : 60000,
                   trial / 3 % 4, trial / 12 % 2, trial / 24 % 2);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"moments", moments}};
TEST_MAIN(cases)
