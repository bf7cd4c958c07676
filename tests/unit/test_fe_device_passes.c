/* test_fe_device_passes.c - right-hand sides, residuals and audits on every machine that is there:
 * held against their definitions in long double, and whole runs of columns that go there once and
 * come back once, or that lie there.
 *
 * Bounds.  A sum of m numbers is within m 2^-53 of the sum of their sizes, whatever the order; designs
 * have ROWS rows: BOUND times that sum.  Numbers of a row are at most SIZE in size, each rounded a
 * few times beside the mean of its level: 2 BOUND SIZE.
 */
#include <float.h>

#include "caller.h"
#include "devices.h"
#include "fe/fe_demean_plan.h"

enum { ROWS = 12000, LONG = 9000, P = 11, OTHERS = 30 };
static const double BOUND = ROWS * 0x1p-53, SIZE = 32;

typedef struct {
    int32_t codes[3 * ROWS]; /* of the eliminated factor, of two others */
    double weights[ROWS], x[ROWS * P];
} design;

/** Levels of 9000, 600, 70 and then 1 to 5 rows, in order or not; one level without weight. */
static design *make(bool shuffled)
{
    design *const d = calloc(1, sizeof *d);
    for (int64_t i = 0; i < ROWS; i++) {
        const bool goes_on = i > LONG + 670 && i % 5 && test_uniform() < 0.7;
        const int32_t level = i < LONG         ? 0
                              : i < LONG + 600 ? 1
                              : i < LONG + 670 ? 2
                              : goes_on        ? d->codes[3 * (i - 1)]
                                               : d->codes[3 * (i - 1)] + 1;
        d->codes[3 * i] = level;
        d->codes[3 * i + 1] = i % 2 ? 0 : (int32_t)test_below(OTHERS);
        d->codes[3 * i + 2] = (int32_t)test_below(9);
        d->weights[i] = level == 7 ? 0 : 0.1 + test_uniform();
        for (int c = 0; c < P; c++)
            d->x[i * P + c] = c + test_uniform() + (level % 10) * 0.1 * (c % 3);
    }
    for (int64_t i = ROWS - 1; i > 0 && shuffled; i--) {
        const int64_t j = test_below(i + 1);
        for (int f = 0; f < 3; f++) {
            const int32_t code = d->codes[3 * i + f];
            d->codes[3 * i + f] = d->codes[3 * j + f];
            d->codes[3 * j + f] = code;
        }
        const double w = d->weights[i];
        d->weights[i] = d->weights[j];
        d->weights[j] = w;
    }
    return d;
}

/** A plan there, with `factors` of the design's; nothing is written of one that is NULL. */
static frg_demean *plan_of(frg_context *ctx, frgi_device *dev, int group, const design *d,
                           int factors, bool weighted, const frg_demean_opts *o)
{
    frg_demean *plan = NULL;
    const frg_array codes = frg_matrix(d->codes, FRG_I32, ROWS, factors, 3);
    const frg_array weights = frg_vector(d->weights, FRG_F64, ROWS);
    CHECK_OK(ctx,
             frgi_fe_demean_open(&plan, ctx, (fe_device_place){dev, group, NULL}, codes,
                                 weighted ? &weights : NULL, &(fe_slopes_asked){NULL, 0, 0}, o));
    return plan;
}

static frg_demean_opts options(frg_fe_method method)
{
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    o.method = method;
    return o;
}

/* ---- the passes ------------------------------------------------------------------------------ */

/** What a pass says of a column, and the sizes of what its sums add. */
typedef struct {
    long double weight, square, within, largest, gradient, mean, effect;
    int64_t worst;
    long double sums[64], sizes[64]; /* of the reduced unknowns */
    double left[ROWS], means[ROWS];  /* what is left of rows of the caller; the levels' means */
} truth;

static int64_t row_of(const fe_rows *g, int64_t i)
{
    return g->order ? g->order[i] : i;
}

static long double weight_of(const fe_rows *g, int64_t i)
{
    return g->weight ? (long double)g->weight[i] : 1;
}

/** x of row i (the caller's, `stride` apart) without the effects a (`lanes` apart; NULL: none). */
static long double value_of(const fe_rows *g, int64_t i, const double *x, int stride,
                            const double *a, int lanes)
{
    long double y = (long double)x[row_of(g, i) * stride];
    for (int f = 0; f < g->n_remaining && a; f++)
        y -= (long double)a[g->index[i * g->n_remaining + f] * lanes];
    return y;
}

/** The pass by its definition: a right-hand side without a, else a residual. */
static void define(const fe_rows *g, const double *x, int stride, const double *a, int lanes,
                   truth *t)
{
    long double all = 0;
    memset(t, 0, sizeof *t);
    for (int64_t u = 0; u < g->n_elim; u++) {
        const long double base = (long double)x[row_of(g, g->elim_start[u]) * stride];
        long double weight = 0, sum = 0;
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            weight += weight_of(g, i);
            sum += weight_of(g, i) * (value_of(g, i, x, stride, a, lanes) - base);
        }
        /* of a level without weight the first row's value */
        const long double gap = weight > 0 ? sum / weight : 0, mean = base + gap;
        t->weight += weight;
        all += weight * mean;
        t->means[u] = (double)mean;
        t->effect = fmaxl(t->effect, fabsl(mean));
        for (int64_t i = g->elim_start[u]; i < g->elim_start[u + 1]; i++) {
            const long double y = value_of(g, i, x, stride, a, lanes), r = y - base - gap;
            const long double w = weight_of(g, i);
            t->left[row_of(g, i)] = (double)r;
            t->within += w * r * r;
            t->largest = fmaxl(t->largest, fabsl(y));
            for (int f = 0; f < g->n_remaining; f++) {
                const int32_t l = g->index[i * g->n_remaining + f];
                t->sums[l] += w * r;
                t->sizes[l] += w * (fabsl(y) + fabsl(mean));
            }
        }
    }
    for (int64_t i = 0; i < g->n; i++) {
        const long double gap = value_of(g, i, x, stride, a, lanes) - all / t->weight;
        t->square += weight_of(g, i) * gap * gap;
    }
}

static void check_sums(const fe_rows *g, const truth *t, const double *sums, int lanes, int k)
{
    for (int64_t l = 0; l < g->n_reduced; l++)
        if (!CHECK_NEAR(sums[l * lanes + k], (double)t->sums[l],
                        4 * BOUND * (double)t->sizes[l] + DBL_MIN))
            return;
}

static void check_moments(const fe_rows *g, const fe_moments *m, const truth *t, int k)
{
    const double bound = 8 * BOUND;
    CHECK_NEAR(m->weight[k], (double)t->weight, bound * (double)t->weight);
    CHECK_NEAR(m->within[k], (double)t->within, bound * (double)(t->within + t->weight));
    CHECK_NEAR(m->square[k], (double)t->square, bound * (double)(t->square + t->weight));
    CHECK_INT(m->sum[k], 0);
    CHECK(m->max_abs[k] == (double)t->largest);
    CHECK_INT(m->rows, g->n);
}

/** The means of the levels that are left are rounding: below it, and those of the level that is
 *  called the worst. */
static void check_audit(const fe_rows *g, const fe_elim_audit *a, const truth *t, int k)
{
    CHECK_NEAR(a->square[k], (double)t->within, 8 * BOUND * (double)(t->within + t->weight));
    CHECK_NEAR(a->effect[k], (double)t->effect, 2 * BOUND * SIZE);
    CHECK(a->mean[k] >= 0 && a->mean[k] <= 2 * BOUND * SIZE);
    CHECK(a->gradient[k] <= a->mean[k] * a->mean[k] * (double)t->weight * (1 + BOUND));
    CHECK(a->gradient[k] > 0 && a->worst[k] >= 0 && a->worst[k] < g->n_elim);
}

static void check_rows(const truth *t, const double *got, int stride, double rounding)
{
    for (int64_t i = 0; i < ROWS; i++)
        if (!CHECK_NEAR(got[i * stride], t->left[i], 2 * BOUND * SIZE + rounding * SIZE))
            return;
}

static void check_effects(frg_context *ctx, fe_device *there, const fe_device_block *b, int k,
                          const fe_rows *g, const double *want)
{
    double got[ROWS];
    CHECK_OK(ctx, frgi_fe_device_elim_effects(there, b, k, got));
    for (int64_t u = 0; u < g->n_elim; u++)
        if (!CHECK_NEAR(got[u], want[u], 4 * BOUND * SIZE))
            return;
}

typedef struct {
    int factors, lanes, live;
    bool weighted, shuffled;
} passes_run;

/** One block: right-hand side, residual of random effects, and both of its column 1 once more. */
static void check_passes(frg_context *ctx, frgi_device *dev, int group, const passes_run *r)
{
    design *const d = make(r->shuffled);
    const frg_demean_opts o = options(FRG_FE_CG);
    frg_demean *const plan = plan_of(ctx, dev, group, d, r->factors, r->weighted, &o);
    const fe_rows *const g = &plan->rows;
    fe_device *const there = frgi_fe_cascade_passes(plan->cascade);
    truth *const t = calloc(1, sizeof *t);
    double a[64 * FE_MAX_LANES], sums[64 * FE_MAX_LANES];
    double *const out = calloc(ROWS * P, sizeof *out);
    fe_moments m;
    fe_elim_audit audit;
    const fe_device_block b = {0, 3, r->lanes, r->live};
    const fe_device_run run = {0, 3 + r->lanes, r->lanes, NULL, NULL};
    const fe_block x = {(char *)d->x, P, 1, r->live}, y = {(char *)out, P, 1, r->live};
    const int k = r->live > 1;
    CHECK_OK(ctx, frgi_fe_device_columns_open(there, &run));
    CHECK_OK(ctx, frgi_fe_device_columns_take(there, &b, &x));
    CHECK_OK(ctx, frgi_fe_device_rhs(there, &b, -1, sums, &m));
    for (int c = 0; c < r->live; c++) {
        define(g, d->x + c, P, NULL, 0, t);
        check_sums(g, t, sums, r->lanes, c);
        check_moments(g, &m, t, c);
    }
    for (int i = 0; i < 64 * FE_MAX_LANES; i++)
        a[i] = test_normal();
    CHECK_OK(ctx, frgi_fe_device_residual(there, &b, -1, FE_RESIDUALS_FIRST, a, sums, &audit));
    CHECK_OK(ctx, frgi_fe_device_columns_give(there, &b, &y));
    for (int c = 0; c < r->live; c++) {
        define(g, d->x + c, P, a + c, r->lanes, t);
        check_sums(g, t, sums, r->lanes, c);
        check_audit(g, &audit, t, c);
        check_rows(t, out + c, P, 0);
        check_effects(ctx, there, &b, c, g, t->means);
    }
    double *const before = malloc(ROWS * P * sizeof *before), *const means =
                                                                  before + ROWS * (P - 1);
    memcpy(before, out, ROWS * P * sizeof *before);
    define(g, d->x + k, P, a + k, r->lanes, t);
    memcpy(means, t->means, ROWS * sizeof *means);
    CHECK_OK(ctx, frgi_fe_device_rhs(there, &b, k, sums, &m));
    define(g, out + k, P, NULL, 0, t);
    check_sums(g, t, sums, 1, 0);
    CHECK(m.max_abs[0] == (double)t->largest);
    CHECK_OK(ctx, frgi_fe_device_residual(there, &b, k, FE_RESIDUALS_ADDED, a, sums, &audit));
    define(g, out + k, P, a, 1, t);
    check_sums(g, t, sums, 1, 0);
    CHECK_OK(ctx, frgi_fe_device_columns_give(there, &b, &y));
    check_rows(t, out + k, P, 0);
    for (int64_t u = 0; u < g->n_elim; u++)
        means[u] += t->means[u];
    check_effects(ctx, there, &b, k, g, means);
    for (int64_t i = 0; i < ROWS; i++)
        for (int c = 0; c < r->live; c++)
            CHECK_SAYS(c == k || i * P + c >= ROWS * (P - 1) || out[i * P + c] == before[i * P + c],
                       "row %lld of column %d is another", (long long)i, c);
    frg_demean_destroy(plan);
    free(before);
    free(out);
    free(t);
    free(d);
}

static void passes_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const passes_run runs[] = {{2, 1, 1, false, false}, {2, 4, 3, true, true},
                                      {3, 8, 7, false, true},  {3, 2, 2, true, false},
                                      {1, 5, 5, true, true},   {2, 11, 11, false, false}};
    for (size_t q = 0; q < sizeof runs / sizeof *runs; q++)
        check_passes(ctx, dev, group, &runs[q]);
}

static void passes(void)
{
    on_host(passes_on);
}

static void passes_opencl(void)
{
    on_opencl(passes_on);
}

/** Groups of 8, which tests/build/kernel_races.sh holds under a checker of races. */
static void small_groups(void)
{
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    if (dev)
        check_passes(ctx, dev, 8, &(passes_run){2, 3, 3, true, true});
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/** What a second run of `columns` of the plan launches, waits for and copies: what it reports. */
static frgi_device_counts second_run(frg_context *ctx, frgi_device *dev, frg_demean *plan,
                                     frg_array in, frg_array out)
{
    CHECK_OK(ctx, frg_demean_run(plan, in, out, NULL, NULL));
    const frg_demean_report before = frg_demean_get(plan);
    *frgi_device_counted(dev) = (frgi_device_counts){0};
    CHECK_OK(ctx, frg_demean_run(plan, in, out, NULL, NULL));
    const frgi_device_counts c = *frgi_device_counted(dev);
    const frg_demean_report now = frg_demean_get(plan);
    CHECK(c.launches > 0 && c.waits > 0);
    CHECK_INT(now.device_launches - before.device_launches, c.launches);
    CHECK_INT(now.device_waits - before.device_waits, c.waits);
    CHECK_INT(now.device_bytes_in - before.device_bytes_in, c.bytes_in);
    CHECK_INT(now.device_bytes_out - before.device_bytes_out, c.bytes_out);
    CHECK_TEXT(now.passes_on, frgi_device_name(dev));
    return c;
}

/** Columns go there once and come back once, of either type, whatever the rounds of refinement; for
 *  a solve by conjugate gradients go R K numbers there and 2 R K back, by a factor of the host's R K
 *  and R K, by LSMR 2 R K and R K; the right-hand side is R K, the residual 2 R K.  That is the least, and the rest of a run
 *  (scalars, their history, refinements column by column) less than a fifth of it. */
static void bytes_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const frg_fe_method methods[] = {FRG_FE_CG, FRG_FE_AUTO, FRG_FE_LSMR};
    design *const d = make(true);
    double *const out = calloc(ROWS * P, sizeof *out);
    float *const narrow = calloc(ROWS * P, sizeof *narrow);
    for (int64_t i = 0; i < ROWS * P; i++)
        narrow[i] = (float)d->x[i];
    for (int q = 0; q < 6; q++) {
        const bool f32 = q > 2;
        frg_demean_opts o = options(methods[q % 3]);
        o.dtype = q == 3 || q == 5 ? FRG_FE_MIXED : FRG_FE_F64;
        frg_demean *const plan = plan_of(ctx, dev, group, d, 3, true, &o);
        const frg_array in =
            f32 ? frg_matrix(narrow, FRG_F32, ROWS, P, P) : frg_matrix(d->x, FRG_F64, ROWS, P, P);
        const frg_array to =
            f32 ? frg_matrix(narrow, FRG_F32, ROWS, P, P) : frg_matrix(out, FRG_F64, ROWS, P, P);
        const frgi_device_counts c = second_run(ctx, dev, plan, in, to);
        const int64_t unknowns = plan->rows.n_reduced * P * (int64_t)sizeof(double);
        const int64_t least = ROWS * P * (f32 ? 4 : 8);
        printf("# %s: %lld bytes in, %lld out, of %lld\n", frg_demean_get(plan).method,
               (long long)c.bytes_in, (long long)c.bytes_out, (long long)least);
        CHECK(c.bytes_in >= least && c.bytes_out >= least);
        CHECK((double)c.bytes_in <= 1.2 * (double)(least + 3 * unknowns));
        CHECK((double)c.bytes_out <= 1.2 * (double)(least + 4 * unknowns));
        frg_demean_destroy(plan);
    }
    free(narrow);
    free(out);
    free(d);
}

static void bytes(void)
{
    on_host(bytes_on);
}

static void bytes_opencl(void)
{
    on_opencl(bytes_on);
}

/** One factor: r = x - m in closed form, of values of 1e9 that differ by 1, too; exactly n K numbers
 *  go there and come back, and 5 K totals of two passes; by lsmr the scales of columns go there, too. */
static void closed_form_on(frg_context *ctx, frgi_device *dev, int group)
{
    enum { K = 4 };
    for (int q = 0; q < 4; q++) {
        const bool lsmr = q > 1;
        design *const d = make(q % 2 == 0);
        double *const out = calloc(ROWS * K, sizeof *out);
        truth *const t = calloc(1, sizeof *t);
        const frg_demean_opts o = options(lsmr ? FRG_FE_LSMR : FRG_FE_AUTO);
        frg_demean *const plan = plan_of(ctx, dev, group, d, 1, q % 2 == 1, &o);
        for (int64_t i = 0; i < ROWS; i++)
            d->x[i * P + 2] = 1e9 + floor(64 * test_uniform()) / 64;
        const frgi_device_counts c =
            second_run(ctx, dev, plan, frg_matrix(d->x, FRG_F64, ROWS, K, P),
                       frg_matrix_columns(out, FRG_F64, ROWS, K, ROWS));
        for (int k = 0; k < K; k++) {
            define(&plan->rows, d->x + k, P, NULL, 0, t);
            check_rows(t, out + k * ROWS, 1, 0);
        }
        CHECK_INT(c.bytes_in, (ROWS + 2 * lsmr) * K * 8);
        CHECK_INT(c.bytes_out, (ROWS + 2 * 5) * K * 8);
        CHECK_TEXT(frg_demean_get(plan).method,
                   lsmr ? "lsmr rows on a device" : "closed form on a device");
        frg_demean_destroy(plan);
        free(t);
        free(out);
        free(d);
    }
}

static void closed_form(void)
{
    on_host(closed_form_on);
}

static void closed_form_opencl(void)
{
    on_opencl(closed_form_on);
}

/** The same bits wherever columns lie on the host: as a whole matrix, beside other columns, column
 *  by column, in place, with other strides; what is taken out is x - r, as the effects say, also
 *  after refinements (solves in float). */
static void check_layouts(frg_context *ctx, frgi_device *dev, int group, frg_fe_method method,
                          int block)
{
    design *const d = make(true);
    frg_demean_opts o = options(method);
    o.dtype = FRG_FE_MIXED;
    o.block = block;
    frg_demean *const plan = plan_of(ctx, dev, group, d, 2, true, &o);
    double *const whole = calloc(4 * ROWS * P, sizeof *whole), *const wide = whole + ROWS * P,
                  *const columns = whole + 3 * ROWS * P;
    CHECK_OK(ctx, frg_demean_run(plan, frg_matrix(d->x, FRG_F64, ROWS, P, P),
                                 frg_matrix(whole, FRG_F64, ROWS, P, P), NULL, NULL));
    CHECK_OK(ctx, frg_demean_run(plan, frg_matrix(d->x, FRG_F64, ROWS, P, P),
                                 frg_matrix_columns(columns, FRG_F64, ROWS, P, ROWS), NULL, NULL));
    for (int64_t i = 0; i < ROWS * P; i++)
        wide[i / P * 2 * P + i % P * 2] = d->x[i];
    frg_array spread = frg_matrix(wide, FRG_F64, ROWS, P, 2 * P);
    spread.stride[1] = 2;
    CHECK_OK(ctx, frg_demean_run(plan, spread, spread, NULL, NULL));
    for (int64_t i = 0; i < ROWS * P; i++)
        if (!CHECK(whole[i] == columns[i % P * ROWS + i / P]) ||
            !CHECK(whole[i] == wide[i / P * 2 * P + i % P * 2]))
            break;
    double alpha[ROWS];
    for (int c = 0; c < P; c += 5) {
        CHECK_OK(ctx, frg_demean_effects(plan, c, alpha));
        const fe_factor *const f = plan->rows.factor;
        for (int64_t i = 0; i < ROWS; i++) {
            const double taken = alpha[d->codes[3 * i]] + alpha[f[0].levels + d->codes[3 * i + 1]];
            if (!CHECK_NEAR(d->x[i * P + c] - taken, whole[i * P + c], 8 * BOUND * SIZE))
                break;
        }
    }
    CHECK_OK(ctx, frg_demean_run(plan, frg_matrix(d->x, FRG_F64, ROWS, P, P),
                                 frg_matrix(d->x, FRG_F64, ROWS, P, P), NULL, NULL));
    CHECK_BITS(d->x, whole, ROWS * P * sizeof *whole);
    frg_demean_destroy(plan);
    free(whole);
    free(d);
}

static void layouts_on(frg_context *ctx, frgi_device *dev, int group)
{
    check_layouts(ctx, dev, group, FRG_FE_CG, 8);
    check_layouts(ctx, dev, group, FRG_FE_LSMR, 4);
}

static void layouts(void)
{
    on_host(layouts_on);
}

static void layouts_opencl(void)
{
    on_opencl(layouts_on);
}

/** Values that cannot be squared and added are refused by row and column before anything is
 *  written. */
static void refused_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const double values[] = {(double)NAN, (double)INFINITY, -1e200};
    design *const d = make(true);
    frg_demean_opts o[] = {options(FRG_FE_CG), options(FRG_FE_LSMR)};
    o[0].block = o[1].block = 8;
    frg_demean *const plans[] = {plan_of(ctx, dev, group, d, 2, false, &o[0]),
                                 plan_of(ctx, dev, group, d, 2, false, &o[1])};
    double *const out = calloc(ROWS * P, sizeof *out), *const untouched =
                                                           calloc(ROWS * P, sizeof *out);
    for (int q = 0; q < 12; q++) {
        frg_demean *const plan = plans[q / 6];
        const int64_t at = 777 * P + (q % 2 ? 9 : 0);
        const double kept = d->x[at];
        d->x[at] = values[q / 2 % 3];
        const frg_array to = q % 6 < 3 ? frg_matrix(out, FRG_F64, ROWS, P, P)
                                       : frg_matrix_columns(out, FRG_F64, ROWS, P, ROWS);
        CHECK_STATUS(frg_demean_run(plan, frg_matrix(d->x, FRG_F64, ROWS, P, P), to, NULL, NULL),
                     FRG_BAD_DATA);
        CHECK_SAYS(strstr(frg_message(ctx), q % 2 ? "column 10, row 778" : "column 1, row 778") !=
                       NULL,
                   "%s", frg_message(ctx));
        CHECK_BITS(out, untouched, ROWS * P * sizeof *out);
        d->x[at] = kept;
    }
    frg_demean_destroy(plans[0]);
    frg_demean_destroy(plans[1]);
    free(untouched);
    free(out);
    free(d);
}

static void refused(void)
{
    on_host(refused_on);
}

/* ---- arrays that lie there ------------------------------------------------------------------- */

static bool open_caller(caller *c)
{
    const frg_device which = {kind_asked(), 0};
    if (DEVICES_SANITIZED || frg_device_count(which.kind) == 0) {
        test_skip("no driver that is run here");
        return false;
    }
    return caller_open(c, which);
}

/** By lsmr, the eliminated factor with a slope. */
static frg_demean *sloped(frg_context *ctx, frgi_device *dev, const design *d)
{
    frg_demean *plan = NULL;
    frg_demean_opts o = options(FRG_FE_LSMR);
    const frg_slope slope = {0, d->weights};
    o.block = 8;
    CHECK_OK(ctx,
             frgi_fe_demean_open(&plan, ctx, (fe_device_place){dev, 32, NULL},
                                 frg_matrix((int32_t *)(uintptr_t)d->codes, FRG_I32, ROWS, 2, 3),
                                 NULL, &(fe_slopes_asked){&slope, 1, 0}, &o));
    return plan;
}

/** Of either order, behind other numbers of their block: the bits of host arrays, and no number of a
 *  column copied. */
static void arrays_there(void)
{
    caller c;
    if (!open_caller(&c))
        return;
    enum { K = 3, SKIPPED = 512 };
    frg_context *const ctx = caller_context(&c);
    design *const d = make(true);
    double *const here = calloc(3 * (SKIPPED + ROWS * P), sizeof *here),
                  *const got = here + SKIPPED + ROWS * P, *const sent = got + SKIPPED + ROWS * P;
    frg_demean_opts o[] = {options(FRG_FE_CG), options(FRG_FE_LSMR)};
    o[0].block = o[1].block = 8;
    frgi_device *const dev = frgi_device_of(ctx);
    frg_demean *const plans[] = {dev ? plan_of(ctx, dev, 32, d, 2, true, &o[0]) : NULL,
                                 dev ? plan_of(ctx, dev, 32, d, 2, true, &o[1]) : NULL,
                                 dev ? sloped(ctx, dev, d) : NULL};
    for (int q = 0; q < 12 && plans[2]; q++) {
        frg_demean *const plan = plans[q / 4];
        const int columns = q % 4 == 3 ? P : K; /* of several blocks */
        for (int64_t i = 0; i < ROWS * columns; i++)
            sent[SKIPPED + (q % 2 ? i : i % columns * ROWS + i / columns)] =
                d->x[i / columns * P + i % columns];
        void *const block = caller_array(&c, sent, (size_t)(SKIPPED + ROWS * columns) * 8);
        frg_array there = q % 2 ? caller_matrix(&c, block, FRG_F64, ROWS, columns)
                                : frg_matrix_columns(block, FRG_F64, ROWS, columns, ROWS);
        there.device = (frg_device){kind_asked(), 0};
        there.offset = SKIPPED * sizeof(double);
        CHECK_OK(ctx,
                 frg_demean_run(plan, frg_matrix(d->x, FRG_F64, ROWS, columns, P),
                                frg_matrix(here, FRG_F64, ROWS, columns, columns), NULL, NULL));
        const frg_demean_report before = frg_demean_get(plan);
        frg_array elsewhere = there;
        elsewhere.device.index = 3;
        CHECK_STATUS(frg_demean_run(plan, there, elsewhere, NULL, NULL), FRG_BAD_ARG);
        CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-015");
        CHECK_SAYS(strstr(frg_message(ctx), "out lies on"), "%s", frg_message(ctx));
        CHECK_OK(ctx, frg_demean_run(plan, there, there, NULL, NULL));
        const frg_demean_report now = frg_demean_get(plan);
        const int64_t copied = now.device_bytes_in + now.device_bytes_out - before.device_bytes_in -
                               before.device_bytes_out;
        CHECK_SAYS(copied < ROWS * 8, "%lld bytes were copied", (long long)copied);
        caller_read(&c, got, block, (size_t)(SKIPPED + ROWS * columns) * 8);
        CHECK_BITS(got, sent, SKIPPED * sizeof *got);
        for (int64_t i = 0; i < ROWS * columns; i++)
            if (!CHECK(got[SKIPPED + (q % 2 ? i : i % columns * ROWS + i / columns)] == here[i]))
                break;
        caller_free(&c, block);
    }
    for (int q = 0; q < 3; q++)
        frg_demean_destroy(plans[q]);
    frg_context_destroy(ctx);
    caller_close(&c);
    free(here);
    free(d);
}

/** A value that is refused there is named, and nothing is written; a plan whose passes are the
 *  host's takes no array of a device. */
static void refused_there(void)
{
    caller c;
    if (!open_caller(&c))
        return;
    frg_context *const ctx = caller_context(&c);
    design *const d = make(true);
    double *const got = calloc(ROWS * P, sizeof *got);
    frgi_device *const dev = frgi_device_of(ctx);
    frg_demean_opts o = options(FRG_FE_CG), lsmr = options(FRG_FE_LSMR);
    o.block = lsmr.block = 8;
    frg_demean *const plans[] = {plan_of(ctx, dev, 32, d, 2, true, &o),
                                 plan_of(ctx, dev, 32, d, 2, true, &lsmr), sloped(ctx, dev, d),
                                 plan_of(ctx, NULL, 0, d, 2, true, &lsmr)};
    d->x[777 * P + 9] = (double)NAN;
    void *const block = caller_array(&c, d->x, sizeof d->x);
    const frg_array there = caller_matrix(&c, block, FRG_F64, ROWS, P);
    for (int q = 0; q < 3; q++) {
        CHECK_STATUS(frg_demean_run(plans[q], there, there, NULL, NULL), FRG_BAD_DATA);
        CHECK_SAYS(strstr(frg_message(ctx), "column 10, row 778") != NULL, "%s", frg_message(ctx));
    }
    CHECK_STATUS(frg_demean_run(plans[3], there, there, NULL, NULL), FRG_BAD_ARG);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-015");
    CHECK_SAYS(strstr(frg_message(ctx), "passes over columns take a device with double") != NULL,
               "%s", frg_message(ctx));
    caller_read(&c, got, block, sizeof d->x);
    CHECK_BITS(got, d->x, sizeof d->x);
    caller_free(&c, block);
    for (int q = 0; q < 4; q++)
        frg_demean_destroy(plans[q]);
    frg_context_destroy(ctx);
    caller_close(&c);
    free(got);
    free(d);
}

static const test_case cases[] = {{"passes", passes},
                                  {"passes on OpenCL", passes_opencl},
                                  {"small groups on OpenCL", small_groups},
                                  {"bytes", bytes},
                                  {"bytes on OpenCL", bytes_opencl},
                                  {"closed form", closed_form},
                                  {"closed form on OpenCL", closed_form_opencl},
                                  {"layouts", layouts},
                                  {"layouts on OpenCL", layouts_opencl},
                                  {"refused", refused},
                                  {"arrays there on OpenCL", arrays_there},
                                  {"refused there on OpenCL", refused_there}};
TEST_MAIN(cases)
