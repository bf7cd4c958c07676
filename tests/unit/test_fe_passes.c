/* test_fe_passes.c - every instance of the passes over the rows against their definitions in long
 * double: both types of columns, 1 to 8 lanes with some idle, rows or columns side by side in
 * memory, 1 to 4 factors, weights and units of none, rows in the order of the units or not,
 * coefficients near and far.
 *
 *     residual   r = (I - P_1)(x - D_r a), D_r' W r, the unit effects P_1 (x - D_r a), the units'
 *                audit
 *     rhs        D_r' W (I - P_1) x
 *     apply      D_r' W (I - P_1) D_r p, in double, of directions in float32, and in float32
 *                throughout
 *
 * A unit without weight has no mean: its effect is the value of its first row.
 */
#include "core/tree_sum.h"
#include "fe/fe_cg.h"
#include "panel.h"

/** How a block of columns lies in memory. */
typedef enum { ROWS, COLUMNS, LAYOUTS } layout;

typedef struct {
    int f32, kind, live, q;
    bool weighted, in_order;
    layout in, out;
    int64_t n, units, levels; /* of each factor but the first */
} design;

static int lanes_of(const design *d)
{
    return 1 << d->kind;
}

/** Codes of a design; every level occurs, and units have about the same rows but the first, which
 *  has 70 more. */
static panel codes_of(const design *d)
{
    panel p = panel_make(d->n, d->q, lanes_of(d));
    for (int64_t i = 0; i < d->n; i++) {
        const int64_t j = i < 70 ? 0 : i - 70, rest = d->n - 70;
        p.codes[i * d->q] = (int32_t)(d->in_order ? j * d->units / rest : j % d->units);
        for (int q = 1; q < d->q; q++)
            p.codes[i * d->q + q] = (int32_t)(i < d->levels ? i : test_below(d->levels));
        for (int k = 0; k < p.p; k++)
            p.x[k * d->n + i] = d->f32 ? (double)(float)(k + test_normal()) : k + test_normal();
    }
    if (d->weighted) {
        panel_random_weights(&p, 0.5, 2);
        for (int64_t i = 0; i < d->n; i++)
            p.weights[i] = p.codes[i * d->q] == 3 ? 0 : p.weights[i];
    }
    return p;
}

/** Column k of a block of numbers of the design's type. */
static double number(const design *d, const void *block, layout how, int64_t i, int k)
{
    const int64_t at = how == ROWS ? i * d->live + k : k * d->n + i;
    return d->f32 ? (double)((const float *)block)[at] : ((const double *)block)[at];
}

static void *block_of(const design *d, const panel *p, layout how, fe_block *b)
{
    char *const base = panel_zeros(d->n * d->live, sizeof(double));
    for (int64_t i = 0; i < d->n; i++)
        for (int k = 0; k < d->live; k++) {
            const int64_t at = how == ROWS ? i * d->live + k : k * d->n + i;
            if (d->f32)
                ((float *)(void *)base)[at] = (float)p->x[k * d->n + i];
            else
                ((double *)(void *)base)[at] = p->x[k * d->n + i];
        }
    *b = how == ROWS ? (fe_block){base, d->live, 1, d->live} : (fe_block){base, 1, d->n, d->live};
    return base;
}

static double weight_of(const panel *p, int64_t i)
{
    return p->weights ? p->weights[i] : 1;
}

/** r[i] <- z[i] less its unit's mean, the first value where the unit has no weight; mean[u]: what
 *  was taken off. */
static void take_means(const design *d, const panel *p, const long double *z,
                       const long double *lone, long double *r, long double *mean)
{
    long double *const mass = panel_zeros(d->units, sizeof *mass);
    bool *const seen = panel_zeros(d->units, sizeof *seen);
    memset(mean, 0, (size_t)d->units * sizeof *mean);
    for (int64_t i = 0; i < d->n; i++) {
        const int32_t u = p->codes[i * d->q];
        mean[u] += weight_of(p, i) * z[i];
        mass[u] += weight_of(p, i);
    }
    for (int64_t i = 0; i < d->n; i++) {
        const int32_t u = p->codes[i * d->q];
        if (!seen[u])
            mean[u] = mass[u] > 0 ? mean[u] / mass[u] : lone[i];
        seen[u] = true;
    }
    for (int64_t i = 0; i < d->n; i++)
        r[i] = z[i] - mean[p->codes[i * d->q]];
    free(mass);
    free(seen);
}

/** to[l] <- sum of w r over the rows of level l;  count[l]: sum of w */
static void gather(const design *d, const fe_rows *g, const panel *p, const long double *r,
                   long double *to, long double *count)
{
    memset(to, 0, (size_t)g->n_reduced * sizeof *to);
    memset(count, 0, (size_t)g->n_reduced * sizeof *count);
    for (int64_t i = 0; i < d->n; i++)
        for (int q = 1; q < d->q; q++) {
            const int64_t l = g->factor[q].first + p->codes[i * d->q + q];
            to[l] += weight_of(p, i) * r[i];
            count[l] += weight_of(p, i);
        }
}

/** The numbers of the reference, long double, and what a pass in double may be from them: the
 *  longest sum has 80 rows of a unit, or as many as a level has, each term and each partial sum
 *  rounded to 2^-53 of `top`, the largest number that a row's terms have between them. */
typedef struct {
    long double *z, *r, *mean, *s, *count, *lone;
    double top;
} truth;

static truth truth_of(const design *d, const fe_rows *g)
{
    return (truth){.z = panel_zeros(d->n, sizeof(long double)),
                   .r = panel_zeros(d->n, sizeof(long double)),
                   .lone = panel_zeros(d->n, sizeof(long double)),
                   .mean = panel_zeros(d->units, sizeof(long double)),
                   .s = panel_zeros(g->n_reduced, sizeof(long double)),
                   .count = panel_zeros(g->n_reduced, sizeof(long double))};
}

static void truth_free(truth *t)
{
    free(t->z);
    free(t->r);
    free(t->lone);
    free(t->mean);
    free(t->s);
    free(t->count);
}

/** Of x - D_r a, a NULL: of x alone. */
static void study(const design *d, const fe_rows *g, const panel *p, const double *a, int k,
                  truth *t)
{
    t->top = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const double x = p->x[k * d->n + i];
        double size = fabs(x);
        t->z[i] = t->lone[i] = x;
        for (int q = 1; a && q < d->q; q++) {
            const double v = a[(g->factor[q].first + p->codes[i * d->q + q]) * lanes_of(d) + k];
            t->z[i] -= v;
            size += fabs(v);
        }
        t->top = fmax(t->top, 2 * size);
    }
    take_means(d, p, t->z, t->lone, t->r, t->mean);
    gather(d, g, p, t->r, t->s, t->count);
}

/** What a sum over a level's rows may be off: its rows each by their own error and by the sum's
 *  roundings, weights to 2. */
static double bound_of_sum(const design *d, const truth *t, int64_t l)
{
    const double rows = 2 * (double)t->count[l] + 1;
    return 2 * rows * (100 + rows + d->q) * 0x1p-53 * t->top;
}

static void check_residual(const design *d, const fe_rows *g, const panel *p, const void *out,
                           const double *a, const double *s, const double *effect,
                           const fe_elim_audit *audit)
{
    truth t = truth_of(d, g);
    const int lanes = lanes_of(d);
    for (int k = 0; k < d->live; k++) {
        study(d, g, p, a, k, &t);
        const double row = (100 + d->q) * 0x1p-53 * t.top;
        const double stored = d->f32 ? 0x1p-24 * t.top : 0;
        double gap = 0, off = 0, square = 0, mass = 0, largest = 0, wrong = 0;
        for (int64_t i = 0; i < d->n; i++) {
            gap = fmax(gap, fabs((double)(number(d, out, d->out, i, k) - t.r[i])));
            square += (double)(weight_of(p, i) * t.r[i] * t.r[i]);
            mass += weight_of(p, i);
        }
        for (int64_t u = 0; u < g->n_elim; u++) {
            off = fmax(off, fabs((double)(effect[u * lanes + k] - t.mean[u])));
            largest = fmax(largest, fabs((double)t.mean[u]));
        }
        for (int64_t l = 0; l < g->n_reduced; l++)
            wrong = fmax(wrong, fabs((double)(s[l * lanes + k] - t.s[l])) / bound_of_sum(d, &t, l));
        CHECK_SAYS(gap <= row + stored, "column %d: r is off by %g", k, gap);
        CHECK_SAYS(off <= row, "column %d: effects are off by %g", k, off);
        CHECK_SAYS(wrong <= 1, "column %d: D_r'W r is off by %g of its bound", k, wrong);
        CHECK_NEAR(audit->square[k], square,
                   mass * t.top * (2 * row + (double)d->n * 0x1p-53 * t.top));
        CHECK_NEAR(audit->effect[k], largest, row);
        CHECK_SAYS(audit->mean[k] <= row && audit->gradient[k] <= mass * row * row &&
                       audit->worst[k] >= 0 && audit->worst[k] < g->n_elim,
                   "column %d: a unit mean of %g", k, audit->mean[k]);
    }
    truth_free(&t);
}

static void check_rhs(const design *d, const fe_rows *g, const panel *p, const double *b)
{
    truth t = truth_of(d, g);
    for (int k = 0; k < d->live; k++) {
        double wrong = 0;
        study(d, g, p, NULL, k, &t);
        for (int64_t l = 0; l < g->n_reduced; l++)
            wrong = fmax(wrong,
                         fabs((double)(b[l * lanes_of(d) + k] - t.s[l])) / bound_of_sum(d, &t, l));
        CHECK_SAYS(wrong <= 1, "column %d: D_r'W (I - P_1) x is off by %g of its bound", k, wrong);
    }
    truth_free(&t);
}

/** y against D_r' W (I - P_1) D_r p; coarser: of the roundings of double. */
static void check_apply(const design *d, const fe_rows *g, const panel *p, const double *direction,
                        const double *y, double coarser, const char *how)
{
    truth t = truth_of(d, g);
    const int lanes = lanes_of(d);
    for (int k = 0; k < lanes; k++) {
        double wrong = 0;
        t.top = 0;
        for (int64_t i = 0; i < d->n; i++) {
            double size = 0;
            t.z[i] = 0;
            for (int q = 1; q < d->q; q++) {
                const double v =
                    direction[(g->factor[q].first + p->codes[i * d->q + q]) * lanes + k];
                t.z[i] += v;
                size += fabs(v);
            }
            t.top = fmax(t.top, 2 * size);
        }
        take_means(d, p, t.z, t.lone, t.r, t.mean);
        gather(d, g, p, t.r, t.s, t.count);
        for (int64_t l = 0; l < g->n_reduced; l++)
            wrong = fmax(wrong, fabs((double)(y[l * lanes + k] - t.s[l])) /
                                    (coarser * bound_of_sum(d, &t, l)));
        CHECK_SAYS(wrong <= 1, "%s: S p is off by %g of its bound", how, wrong);
    }
    truth_free(&t);
}

/** S p of one direction by each product that there is. */
static void products(const design *d, frg_context *ctx, const fe_rows *g, const panel *p,
                     const fe_row_work *w)
{
    const int lanes = lanes_of(d);
    double *const direction = panel_zeros(g->n_reduced * lanes, sizeof *direction);
    double *const y = panel_zeros(g->n_reduced * lanes, sizeof *y);
    float *const rounded = panel_zeros(g->n_reduced * lanes, sizeof *rounded);
    const fe_reduced_ops *ops = frgi_fe_reduced_ops(frgi_context_isa(ctx), d->f32, 1 << d->kind);
    for (int64_t l = 0; l < g->n_reduced * lanes; l++) {
        rounded[l] = (float)test_normal();
        direction[l] = (double)rounded[l];
    }
    const void *const given = d->f32 ? (const void *)rounded : direction;
    frgi_fe_apply(g, ops, w, 2, lanes, false, given, y);
    check_apply(d, g, p, direction, y, 1, "double");
    if (d->q == 2 && !d->weighted) {
        frgi_fe_apply(g, ops, w, 2, lanes, true, given, y);
        check_apply(d, g, p, direction, y, 0x1p29, "float32");
    }
    free(direction);
    free(y);
    free(rounded);
}

static void passes(const design *d, frg_context *ctx)
{
    const fe_row_ops *ops = frgi_fe_row_ops(frgi_context_isa(ctx), d->f32, 1 << d->kind);
    if (!ops->rhs)
        return; /* no registers of that width */
    const int before = test_now.failures, lanes = lanes_of(d);
    panel p = codes_of(d);
    const frg_array codes = frg_matrix(p.codes, FRG_I32, d->n, d->q, d->q),
                    weights = frg_vector(p.weights, FRG_F64, d->n);
    fe_rows g = {0};
    CHECK_OK(ctx, frgi_fe_rows_create(&g, ctx, &codes, d->weighted ? &weights : NULL));
    CHECK(g.elim_factor == 0 && g.n_elim == d->units && !g.order == d->in_order);
    frgi_arena arena = {0};
    fe_row_work w;
    frgi_fe_row_work_layout(&arena, &g, lanes, &w);
    CHECK_OK(ctx, frgi_arena_open(&arena, ctx, "work"));
    frgi_fe_row_work_layout(&arena, &g, lanes, &w);
    double *const a = panel_zeros(g.n_reduced * lanes, sizeof *a);
    double *const s = panel_zeros(g.n_reduced * lanes, sizeof *s);
    double *const effect = panel_zeros(g.n_elim * lanes, sizeof *effect);
    for (int64_t l = 0; l < g.n_reduced * lanes; l++)
        a[l] = test_normal();
    fe_block x, out;
    fe_moments moments;
    fe_elim_audit audit;
    void *const from = block_of(d, &p, d->in, &x), *const to = block_of(d, &p, d->out, &out);
    frgi_fe_rhs(&g, ops, &w, 2, lanes, &x, s, &moments);
    check_rhs(d, &g, &p, s);
    frgi_fe_residual(&g, ops, &w, 2, lanes, &x, &out, a, s, effect, &audit);
    check_residual(d, &g, &p, to, a, s, effect, &audit);
    if (d->q > 1 && d->live == lanes && d->in == ROWS && d->out == ROWS)
        products(d, ctx, &g, &p, &w);
    if (test_now.failures > before)
        printf("# %s, %d of %d lanes, %d factors, %s, %s, in by %s, out by %s, %lld levels\n",
               d->f32 ? "f32" : "f64", d->live, lanes, d->q, d->weighted ? "weighted" : "plain",
               d->in_order ? "in order" : "scattered", d->in == ROWS ? "rows" : "columns",
               d->out == ROWS ? "rows" : "columns", (long long)d->levels);
    free(from);
    free(to);
    free(a);
    free(s);
    free(effect);
    frgi_arena_close(&arena, ctx);
    frgi_fe_rows_destroy(&g, ctx);
    panel_free(&p);
}

/** live: all lanes, all but one, one; false where that is one of those before. */
static bool live_lanes(int lanes, int choice, int *live)
{
    const int counts[] = {lanes, lanes - 1, 1};
    *live = counts[choice];
    return *live > 0 && (choice < 2 || lanes > 2);
}

/** Everything that may differ, on 240 rows. */
static void every_layout(void)
{
    frg_context *ctx = test_context();
    for (int trial = 0; trial < 2 * FE_LANE_KINDS * 3 * 4 * 4 * LAYOUTS * LAYOUTS; trial++) {
        int t = trial;
        design d = {.n = 240, .units = 40, .levels = 11};
        d.f32 = t % 2, t /= 2;
        d.kind = t % FE_LANE_KINDS, t /= FE_LANE_KINDS;
        const bool there = live_lanes(1 << d.kind, t % 3, &d.live);
        t /= 3;
        d.q = 1 + t % 4, t /= 4;
        d.weighted = t % 2, t /= 2;
        d.in_order = t % 2, t /= 2;
        d.in = (layout)(t % LAYOUTS);
        d.out = (layout)(t / LAYOUTS);
        if (there)
            passes(&d, ctx);
    }
    frg_context_destroy(ctx);
}

/** Lines of so many levels that they are fetched ahead: 2 levels lanes 8 bytes > FE_NEAR_BYTES. */
static void far_levels(void)
{
    frg_context *ctx = test_context();
    for (int trial = 0; trial < 2 * FE_LANE_KINDS * 3 * 3 * 2 * LAYOUTS; trial++) {
        if (!test_turn(trial, 5))
            continue;
        int t = trial;
        design d = {.in_order = true};
        d.f32 = t % 2, t /= 2;
        d.kind = t % FE_LANE_KINDS, t /= FE_LANE_KINDS;
        const bool there = live_lanes(1 << d.kind, t % 3, &d.live);
        t /= 3;
        d.q = 2 + t % 3, t /= 3;
        d.weighted = t % 2, t /= 2;
        d.in = d.out = (layout)t;
        const bool general =
            d.weighted || d.live < lanes_of(&d); /* columns have one text of their own */
        d.levels = FE_NEAR_BYTES / 16 / lanes_of(&d) / (d.q - 1) + 10;
        d.units = d.levels + 100;
        d.n = d.units + 200;
        if (there && !(d.in == COLUMNS && general))
            passes(&d, ctx);
    }
    frg_context_destroy(ctx);
}

/** to[j] <- the sum over the chunks' sums of core's tree, number by number. */
static void by_the_tree(const fe_rows *g, const double *x, int64_t stride, int64_t length,
                        double *to)
{
    for (int64_t j = 0; j < length; j++) {
        frgi_tree_sum t = {0};
        for (int k = 0; k < g->n_chunks; k++)
            frgi_tree_add(&t, x[k * stride + j]);
        to[j] = frgi_tree_total(&t);
    }
}

/** The sums of level l in pairs of `lanes`, as doubles, chunk after chunk. */
static void sums_of_pairs(const fe_rows *g, const fe_row_work *w, int lanes, bool low, double *to)
{
    for (int64_t i = 0; i < g->n_chunks * g->n_reduced; i++)
        for (int k = 0; k < lanes; k++) {
            const int64_t at = (2 * i + 1) * lanes + k;
            to[i * lanes + k] =
                low ? (double)((const float *)(const void *)w->partial)[at] : w->partial[at];
        }
}

/** Every sum over chunks has the bits of one tree, whatever the width and the CPU level. */
static void chunks(frg_context *ctx, const design *d)
{
    const fe_row_ops *ops = frgi_fe_row_ops(frgi_context_isa(ctx), d->f32, 1 << d->kind);
    const fe_reduced_ops *reduced =
        frgi_fe_reduced_ops(frgi_context_isa(ctx), d->f32, 1 << d->kind);
    if (!ops->rhs)
        return; /* no registers of that width */
    const int lanes = lanes_of(d);
    panel p = codes_of(d);
    fe_rows g = {0};
    const frg_array codes = frg_matrix(p.codes, FRG_I32, d->n, d->q, d->q);
    CHECK_OK(ctx, frgi_fe_rows_create(&g, ctx, &codes, NULL));
    CHECK(g.n_chunks == 8);
    const int64_t length = g.n_reduced * lanes;
    frgi_arena arena = {0};
    fe_row_work w;
    frgi_fe_row_work_layout(&arena, &g, lanes, &w);
    CHECK_OK(ctx, frgi_arena_open(&arena, ctx, "work"));
    frgi_fe_row_work_layout(&arena, &g, lanes, &w);
    double *const sum = panel_zeros(length, sizeof *sum), *const want = panel_zeros(length, 8);
    double *const part = panel_zeros(g.n_chunks * length, sizeof *part), within[8];
    double *const effect = panel_zeros(g.n_elim * lanes, sizeof *effect);
    fe_block x, out;
    fe_moments moments;
    fe_elim_audit audit;
    void *const from = block_of(d, &p, ROWS, &x), *const to = block_of(d, &p, ROWS, &out);
    frgi_fe_rhs_window(&g, ops, &w, 2, lanes, &x);
    for (int k = 0; k < g.n_chunks; k++)
        within[k] = w.moments[k].within[0];
    frgi_fe_rhs_total(&g, &w, 2, lanes, sum, &moments);
    by_the_tree(&g, w.partial, length, length, want);
    CHECK_BITS(sum, want, (size_t)length * sizeof *sum);
    by_the_tree(&g, within, 1, 1, want);
    CHECK(moments.within[0] == want[0]);
    frgi_fe_residual(&g, ops, &w, 2, lanes, &x, &out, sum, sum, effect, &audit);
    sums_of_pairs(&g, &w, lanes, false, part);
    by_the_tree(&g, part, length, length, want);
    CHECK_BITS(sum, want, (size_t)length * sizeof *sum);
    for (int low = 0; low < 2;
         low++) { /* a direction of zeros leaves the sums of the chunks alone */
        memset(effect, 0, (size_t)length * sizeof *effect);
        frgi_fe_apply_window(&g, reduced, &w, 2, lanes, low, low ? effect : from);
        for (int64_t i = 0; low && i < 2 * g.n_chunks * length; i++)
            ((float *)(void *)w.partial)[i] = (float)test_normal();
        frgi_fe_apply_total(&g, reduced, &w, 2, low, effect, sum);
        sums_of_pairs(&g, &w, lanes, low, part);
        by_the_tree(&g, part, length, length, want);
        CHECK_BITS(sum, want, (size_t)length * sizeof *sum);
    }
    free(from);
    free(to);
    free(sum);
    free(want);
    free(part);
    free(effect);
    frgi_arena_close(&arena, ctx);
    frgi_fe_rows_destroy(&g, ctx);
    panel_free(&p);
}

static void one_tree(void)
{
    frg_context *ctx = test_context();
    for (int kind = 0; kind < FE_LANE_KINDS; kind++)
        for (int f32 = 0; f32 < 2; f32++)
            chunks(ctx, &(design){.f32 = f32,
                                  .kind = kind,
                                  .live = 1 << kind,
                                  .q = 2,
                                  .in_order = true,
                                  .n = 20000,
                                  .units = 900,
                                  .levels = 10});
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"every layout", every_layout}, {"far levels", far_levels}, {"one tree of chunks", one_tree}};
TEST_MAIN(cases)
