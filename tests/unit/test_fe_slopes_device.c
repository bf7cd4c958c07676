/* test_fe_slopes_device.c - varying slopes on every machine that is there: residuals and their audit
 * held against their definitions in long double, and whole runs of columns that go there once and
 * come back once.
 *
 * Bounds.  A sum of m numbers is within m 2^-53 of the sum of their sizes, whatever the order; designs
 * have ROWS rows: BOUND times that sum.  With weights of 0.1 to 1.1 an orthonormal column of a level
 * has w phi^2 <= 1, so that no number of a row is beyond SIZE times the column's largest.
 */
#include <float.h>

#include "devices.h"
#include "fe/fe_demean_plan.h"
#include "fe/fe_row_lsmr_plan.h"

enum { ROWS = 9100, LONG = 8250, P = 3, OTHERS = 30, SLOPES = 3, LEVELS = 64 };
static const double BOUND = ROWS * 0x1p-53, SIZE = 32, FAR = 1e9;

typedef struct {
    int32_t codes[3 * ROWS]; /* of the eliminated factor, of two others */
    double weights[ROWS], x[ROWS * P], z[SLOPES * ROWS];
} design;

/** Levels of 8250, 600, 70 and then 1 to 5 rows, not in order; one without weight; the last column
 *  lies far from 0. */
static design *make(void)
{
    design *const d = calloc(1, sizeof *d);
    for (int64_t i = 0, level = 0; i < ROWS; i++) {
        const bool goes_on = i < LONG || (i > LONG && i < LONG + 600) ||
                             (i > LONG + 600 && i < LONG + 670) ||
                             (i > LONG + 670 && i % 5 && test_uniform() < 0.7);
        level += !goes_on && i > 0;
        const int64_t to = i * 4001 % ROWS; /* 4001 and 9100 have no common factor */
        d->codes[3 * to] = (int32_t)level;
        d->codes[3 * to + 1] = i % 2 ? 0 : (int32_t)test_below(OTHERS);
        d->codes[3 * to + 2] = (int32_t)test_below(9);
        d->weights[to] = level == 7 ? 0 : 0.1 + test_uniform();
        for (int c = 0; c < P; c++)
            d->x[to * P + c] = c + test_uniform() + (double)(level % 10) * 0.1 * c;
        d->x[to * P + P - 1] += FAR;
        for (int s = 0; s < SLOPES; s++)
            d->z[s * ROWS + to] = s + test_uniform();
    }
    return d;
}

typedef struct {
    int factors, slopes, of[SLOPES]; /* the slopes' factors */
    uint64_t no_intercept;
    bool weighted;
} model;

static const model models[] = {
    {2, 1, {0}, 0, true},        /* of the eliminated factor */
    {3, 2, {1, 2}, 0, true},     /* of others */
    {3, 3, {0, 0, 1}, 0, false}, /* of both */
    {2, 2, {0, 1}, 3, true},     /* slopes alone */
    {1, 2, {0, 0}, 0, true}      /* closed form */
};
enum { MODELS = sizeof models / sizeof *models };

static frg_demean_opts options(void)
{
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    o.method = FRG_FE_LSMR;
    return o;
}

static frg_demean *plan_of(frg_context *ctx, frgi_device *dev, int group, const design *d,
                           const model *m, const frg_demean_opts *o)
{
    frg_slope slopes[SLOPES];
    frg_demean *plan = NULL;
    const frg_array weights = frg_vector((double *)(uintptr_t)d->weights, FRG_F64, ROWS);
    const frg_array codes =
        frg_matrix((int32_t *)(uintptr_t)d->codes, FRG_I32, ROWS, m->factors, 3);
    for (int s = 0; s < m->slopes; s++)
        slopes[s] = (frg_slope){m->of[s], d->z + s * ROWS};
    CHECK_OK(ctx, frgi_fe_demean_open(&plan, ctx, (fe_device_place){dev, group, NULL}, codes,
                                      m->weighted ? &weights : NULL,
                                      &(fe_slopes_asked){slopes, m->slopes, m->no_intercept}, o));
    return plan;
}

/* ---- a residual ------------------------------------------------------------------------------ */

/** What it says of a column, and the sizes of what its sums add. */
typedef struct {
    long double square, weight, effect;
    long double sums[LEVELS * 4], sizes[LEVELS * 4]; /* of the reduced unknowns, as D_r has them */
    long double y[ROWS];                             /* what is left, in the order of the rows */
    double *elim, *scale; /* what is taken out of each eliminated level, and what that may be */
} truth;

static int64_t row_of(const fe_rows *g, int64_t i)
{
    return g->order ? g->order[i] : i;
}

static long double weight_of(const fe_rows *g, int64_t i)
{
    return g->weight ? (long double)g->weight[i] : 1;
}

/** Row i of factor r's columns in D_r: dummies, and phi of slopes. */
static double value_of(const fe_basis_factor *f, int64_t i, int j)
{
    return j < f->intercept ? 1 : f->phi[i * f->slopes + j - f->intercept];
}

static int64_t place_of(const fe_basis *b, const fe_basis_factor *f, int64_t i, int j)
{
    const int64_t level = b->g->index[i * b->g->n_remaining + f->position] - f->index_base;
    return f->first + level * f->width + j;
}

/** y <- y - D_r a, a `lanes` apart. */
static void take_effects(const fe_basis *b, const double *a, int lanes, truth *t)
{
    for (int64_t i = 0; i < ROWS; i++) {
        for (int r = 0; r < b->g->n_remaining; r++) {
            const fe_basis_factor *const f = &b->remaining[r];
            long double effect = 0;
            for (int j = 0; j < f->width; j++)
                effect += (long double)value_of(f, i, j) * a[place_of(b, f, i, j) * lanes];
            t->y[i] -= effect;
            t->effect = fmaxl(t->effect, fabsl(effect));
        }
    }
}

/** phi_j m of an eliminated level is taken out of y; elim += m. */
static void take_column(const fe_basis *b, int64_t u, int j, bool twice, truth *t)
{
    const fe_rows *const g = b->g;
    const bool dummy = b->elim.slopes == 0;
    long double m = 0, weight = 0;
    for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
        const long double w = weight_of(g, i);
        m += w * (dummy ? 1 : (long double)fe_basis_value(&b->elim, u, i, j)) * t->y[i];
        weight += w;
    }
    m = dummy ? (weight > 0 ? m / weight : 0) : m;
    for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
        const long double effect = dummy ? m : m * (long double)fe_basis_value(&b->elim, u, i, j);
        t->y[i] -= effect;
        t->effect = twice ? t->effect : fmaxl(t->effect, fabsl(effect));
    }
    const int64_t at = dummy ? u : u * b->elim.width + j;
    t->elim[at] += (double)m;
    t->scale[at] = dummy ? 1 : sqrt((double)weight) + 1;
}

static void define(const fe_basis *b, const double *x, int stride, const double *a, int lanes,
                   truth *t)
{
    const fe_rows *const g = b->g;
    t->square = t->weight = t->effect = 0;
    memset(t->sums, 0, sizeof t->sums);
    memset(t->sizes, 0, sizeof t->sizes);
    for (int64_t i = 0; i < ROWS; i++)
        t->y[i] = (long double)x[row_of(g, i) * stride];
    take_effects(b, a, lanes, t);
    for (int64_t u = 0; u < g->n_elim; u++)
        for (int q = 0; q < 2; q++)
            for (int j = 0; j < b->elim.width; j++)
                take_column(b, u, j, q > 0, t);
    for (int64_t i = 0; i < ROWS; i++) {
        const long double w = weight_of(g, i);
        t->square += w * t->y[i] * t->y[i];
        t->weight += w;
        for (int r = 0; r < g->n_remaining; r++) {
            const fe_basis_factor *const f = &b->remaining[r];
            for (int j = 0; j < f->width; j++) {
                t->sums[place_of(b, f, i, j)] += w * value_of(f, i, j) * t->y[i];
                t->sizes[place_of(b, f, i, j)] += w * fabs(value_of(f, i, j));
            }
        }
    }
}

/** `size`: of the column.  Means that are left are roundings of the rest, not of that. */
static void check_audit(const fe_elim_audit *a, const truth *t, int k, double size)
{
    const double weight = (double)t->weight, rest = sqrt((double)t->square / weight);
    CHECK_NEAR(a->square[k], (double)t->square, 4 * BOUND * size * weight);
    CHECK_NEAR(a->effect[k], (double)t->effect, 4 * BOUND * size);
    CHECK_SAYS(a->mean[k] >= 0 && a->mean[k] <= 4 * BOUND * SIZE * fmax(rest, 1),
               "a mean of %g beside %g", a->mean[k], rest);
    CHECK(a->gradient[k] >= 0 && a->gradient[k] <= P * a->mean[k] * a->mean[k] * weight + DBL_MIN);
    CHECK(a->worst[k] >= 0);
}

static void check_sums(const fe_basis *b, const truth *t, const double *sums, int lanes, int k,
                       double size)
{
    for (int64_t l = 0; l < b->n_reduced; l++)
        if (!CHECK_NEAR(sums[l * lanes + k], (double)t->sums[l],
                        8 * BOUND * size * (double)t->sizes[l] + DBL_MIN))
            return;
}

/** Rows of levels without weight have no residual that is defined. */
static void check_rows(const fe_rows *g, const truth *t, const double *got, int stride, double size)
{
    for (int64_t i = 0; i < ROWS; i++)
        if (weight_of(g, i) > 0 &&
            !CHECK_NEAR(got[row_of(g, i) * stride], (double)t->y[i], 4 * BOUND * size))
            return;
}

static void check_elim(frg_context *ctx, fe_device *there, const fe_device_block *block, int k,
                       const fe_basis *b, const truth *t, double size)
{
    const int64_t count = b->elim.slopes ? b->n_elim_columns : b->g->n_elim;
    double *const got = calloc((size_t)count, sizeof *got);
    CHECK_OK(ctx, frgi_fe_device_elim_effects(there, block, k, got));
    for (int64_t e = 0; e < count; e++) /* of levels without weight dummies have x */
        if (b->elim.root[e / (b->elim.slopes ? b->elim.width : 1)] > 0 &&
            !CHECK_NEAR(got[e], t->elim[e], 8 * BOUND * size * t->scale[e]))
            break;
    free(got);
}

/** Of a block of P columns, the residual of random effects; of its column 1 one that is tried, and
 *  one whose effects are added. */
static void check_residuals(frg_context *ctx, frgi_device *dev, int group, const model *m)
{
    design *const d = make();
    const frg_demean_opts o = options();
    frg_demean *const plan = plan_of(ctx, dev, group, d, m, &o);
    const fe_basis *const b = &plan->row_lsmr->basis;
    fe_device *const there = plan->row_lsmr->device;
    truth *const t = calloc(1, sizeof *t);
    double a[LEVELS * 4 * P], sums[LEVELS * 4 * P];
    double *const out = calloc(2 * ROWS * P, sizeof *out), *const again = out + ROWS * P;
    const fe_device_block block = {0, 2, P, P};
    const fe_device_run run = {0, 2 + P, P, NULL, NULL};
    const fe_block x = {(char *)d->x, P, 1, P}, y = {(char *)out, P, 1, P},
                   z = {(char *)again, P, 1, P};
    fe_moments moments;
    fe_elim_audit audit;
    t->elim = calloc(2 * (size_t)(ROWS * b->elim.width), sizeof *t->elim);
    t->scale = t->elim + ROWS * b->elim.width;
    for (int i = 0; i < LEVELS * 4 * P; i++)
        a[i] = test_normal();
    CHECK_OK(ctx, frgi_fe_device_columns_open(there, &run));
    CHECK_OK(ctx, frgi_fe_device_columns_take(there, &block, &x));
    CHECK_OK(ctx, frgi_fe_device_rhs(there, &block, -1, sums, &moments));
    CHECK_OK(ctx, frgi_fe_device_residual(there, &block, -1, FE_RESIDUALS_FIRST, a, sums, &audit));
    CHECK_OK(ctx, frgi_fe_device_columns_give(there, &block, &y));
    for (int c = 0; c < P; c++) {
        const double size = c == P - 1 ? SIZE * FAR : SIZE;
        memset(t->elim, 0, (size_t)(ROWS * b->elim.width) * sizeof *t->elim);
        define(b, d->x + c, P, a + c, P, t);
        check_audit(&audit, t, c, size);
        check_sums(b, t, sums, P, c, size);
        check_rows(b->g, t, out + c, P, size);
        check_elim(ctx, there, &block, c, b, t, size);
        CHECK_NEAR(moments.weight[c], (double)t->weight, 4 * BOUND * (double)t->weight);
    }
    memset(t->elim, 0, (size_t)(ROWS * b->elim.width) * sizeof *t->elim);
    define(b, d->x + 1, P, a + 1, P, t);
    define(b, out + 1, P, a, 1, t); /* added to the same */
    for (int q = 0; q < 2; q++) {
        const fe_device_residuals what = q ? FE_RESIDUALS_ADDED : FE_RESIDUALS_TRIED;
        CHECK_OK(ctx, frgi_fe_device_residual(there, &block, 1, what, a, sums, &audit));
        check_audit(&audit, t, 0, SIZE);
        check_sums(b, t, sums, 1, 0, SIZE);
        CHECK_OK(ctx, frgi_fe_device_columns_give(there, &block, &z));
        for (int64_t i = 0; i < ROWS * P; i++)
            if (!CHECK((i % P == 1 && q > 0) || again[i] == out[i]))
                break;
    }
    check_rows(b->g, t, again + 1, P, SIZE);
    check_elim(ctx, there, &block, 1, b, t, SIZE);
    frg_demean_destroy(plan);
    free(t->elim);
    free(t);
    free(out);
    free(d);
}

static void residuals_on(frg_context *ctx, frgi_device *dev, int group)
{
    for (int q = 0; q < MODELS; q++)
        check_residuals(ctx, dev, group, &models[q]);
}

static void residuals(void)
{
    on_host(residuals_on);
}

static void residuals_opencl(void)
{
    on_opencl(residuals_on);
}

/** Groups of 8, which tests/build/kernel_races.sh holds under a checker of races. */
static void small_groups(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    if (dev)
        check_residuals(ctx, dev, 8, &models[2]);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/** What a second run launches, waits for and copies. */
static frgi_device_counts second_run(frgi_device *dev, frg_demean *plan, frg_array in,
                                     frg_array out, frg_status status)
{
    CHECK_INT(frg_demean_run(plan, in, out, NULL, NULL), status);
    *frgi_device_counted(dev) = (frgi_device_counts){0};
    CHECK_INT(frg_demean_run(plan, in, out, NULL, NULL), status);
    CHECK_TEXT(frg_demean_get(plan).passes_on, frgi_device_name(dev));
    return *frgi_device_counted(dev);
}

/** The model of count_lsmr_of in test_fe_device.c, with R coefficients: of three passes (right-hand
 *  side, projection, residual) the last two have seven kernels where the eliminated levels have
 *  slopes.  One factor is two passes without the sums of other levels, n K numbers there and back.
 *  The same bits from run to run; the host has made rows and orthonormal columns, nothing else. */
static void counts_on(frg_context *ctx, frgi_device *dev, int group)
{
    enum { STEPS = 6, REALS = 8 };
    design *const d = make();
    double *const out = calloc(2 * ROWS * P, sizeof *out);
    for (int q = 0; q < MODELS; q++) {
        const model *const m = &models[q];
        const bool closed = m->factors == 1;
        frg_demean_opts o = options();
        o.max_iter = STEPS;
        o.tol = closed ? o.tol : 1e-300; /* not to be reached */
        frg_demean *const plan = plan_of(ctx, dev, group, d, m, &o);
        const int64_t r = plan->row_lsmr->basis.n_reduced, own = plan->row_lsmr->basis.elim.slopes;
        frgi_device_counts c[2];
        for (int run = 0; run < 2; run++)
            c[run] = second_run(dev, plan, frg_matrix(d->x, FRG_F64, ROWS, P, P),
                                frg_matrix(out + run * ROWS * P, FRG_F64, ROWS, P, P),
                                closed ? FRG_OK : FRG_MAX_ITER);
        const int64_t rhs = closed ? 4 : 6, residual = rhs + (own > 0), passes = closed ? 1 : 2;
        CHECK_INT(c[0].launches, 4 + rhs + passes * residual + (closed ? 0 : 1 + 4 * (STEPS + 1)));
        CHECK_INT(c[0].bytes_in, (ROWS + 2) * P * REALS +
                                     (closed ? 0 : (3 * r + 19 + 5 + 4) * P * REALS + 3 * P * 4));
        CHECK_INT(c[0].bytes_out,
                  (ROWS + (passes + 1) * (r + 5)) * P * REALS +
                      (closed ? 0 : (r + 3 * 19 + 2 * STEPS) * P * REALS + 3 * 3 * P * 4));
        CHECK_BITS(&c[0], &c[1], sizeof c[0]);
        CHECK_BITS(out, out + ROWS * P, ROWS * P * sizeof *out);
        const frg_host_steps left = frg_demean_get(plan).host_steps;
        if (CHECK_INT(left.count, 2)) {
            CHECK_TEXT(left.steps[0].name, "rows: order, index, weights");
            CHECK_TEXT(left.steps[1].name, "orthonormal columns of slopes");
        }
        frg_demean_destroy(plan);
    }
    free(out);
    free(d);
}

static void counts(void)
{
    on_host(counts_on);
}

static void counts_opencl(void)
{
    on_opencl(counts_on);
}

/** x - r is what the effects say: alpha_l + sum z_s beta_ls of each factor. */
static void check_effects(frg_context *ctx, const frg_demean *plan, const design *d, const model *m,
                          int c, const double *r)
{
    double *const alpha = calloc((size_t)frg_demean_get(plan).levels, sizeof *alpha);
    CHECK_OK(ctx, frg_demean_effects(plan, c, alpha));
    for (int64_t i = 0; i < ROWS; i++) {
        const double *at = alpha;
        long double taken = 0, size = fabs(d->x[i * P + c]);
        for (int f = 0; f < m->factors; f++) {
            const int64_t levels = plan->rows.factor[f].levels;
            for (int s = -1; s < m->slopes; s++) {
                const bool has = s < 0 ? !(m->no_intercept >> f & 1) : m->of[s] == f;
                const double z = s < 0 ? 1 : d->z[s * ROWS + i];
                taken += has ? (long double)z * at[d->codes[3 * i + f]] : 0;
                size += has ? fabsl((long double)z * at[d->codes[3 * i + f]]) : 0;
                at += has ? levels : 0;
            }
        }
        if (!CHECK_NEAR(d->x[i * P + c] - (double)taken, r[i * P + c], BOUND * (double)size))
            break;
    }
    free(alpha);
}

/** Solves in float, refined by passes in double, in blocks of two columns: within the tolerance of
 *  the host's, whose levels of 8250 rows are added by several groups; the same bits column by
 *  column; effects and residuals belong together. */
static void check_run(frg_context *ctx, frgi_device *dev, int group, const model *m)
{
    enum { K = P - 1 };
    design *const d = make();
    frg_demean_opts o = options(), host = options();
    o.dtype = FRG_FE_MIXED;
    o.block = K - 1;
    frg_demean *const plan = plan_of(ctx, dev, group, d, m, &o), *const here = plan_of(ctx, NULL, 0,
                                                                                       d, m, &host);
    double *const out = calloc(3 * ROWS * P, sizeof *out), *const want = out + ROWS * P,
                  *const columns = want + ROWS * P;
    const frg_array in = frg_matrix(d->x, FRG_F64, ROWS, K, P);
    frg_demean_column reports[K];
    CHECK_OK(ctx, frg_demean_run(here, in, frg_matrix(want, FRG_F64, ROWS, K, P), NULL, NULL));
    CHECK_OK(ctx, frg_demean_run(plan, in, frg_matrix(out, FRG_F64, ROWS, K, P), reports, NULL));
    CHECK_OK(ctx, frg_demean_run(plan, in, frg_matrix_columns(columns, FRG_F64, ROWS, K, ROWS),
                                 NULL, NULL));
    for (int64_t i = 0; i < ROWS; i++)
        for (int c = 0; c < K; c++) {
            const bool weightless = m->weighted && d->weights[i] == 0;
            CHECK(columns[c * ROWS + i] == out[i * P + c]);
            if (!weightless &&
                !CHECK_NEAR(out[i * P + c], want[i * P + c], 2e3 * o.tol * sqrt(ROWS)))
                i = ROWS;
        }
    for (int c = 0; c < K; c++) {
        CHECK(reports[c].converged && reports[c].audit <= o.tol);
        check_effects(ctx, plan, d, m, c, out);
    }
    frg_demean_destroy(plan);
    frg_demean_destroy(here);
    free(out);
    free(d);
}

static void runs_on(frg_context *ctx, frgi_device *dev, int group)
{
    for (int q = 0; q < MODELS && group < 256; q++)
        check_run(ctx, dev, group, &models[q]);
}

static void runs(void)
{
    on_host(runs_on);
}

static void runs_opencl(void)
{
    on_opencl(runs_on);
}

static const test_case cases[] = {{"residuals", residuals},
                                  {"residuals on OpenCL", residuals_opencl},
                                  {"small groups on OpenCL", small_groups},
                                  {"counts", counts},
                                  {"counts on OpenCL", counts_opencl},
                                  {"runs", runs},
                                  {"runs on OpenCL", runs_opencl}};
TEST_MAIN(cases)
