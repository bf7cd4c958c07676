/* test_fe_device.c - conjugate gradients and LSMR on every machine that is there against the host's,
 * and against the audit, which the host makes in double.
 *
 * Bounds.  Both solves end where every level mean of a column is below tol sd(r), so that each
 * residual is within sqrt(levels) tol sd(r) / sqrt(lambda) of the solution; designs here have at
 * most 700 levels and lambda above 0.01: 300 tol, and twice that between two of them.
 */
#include "devices.h"
#include "fault.h"
#include "fe/fe_demean.h"
#include "fourge/fe.h"
#include "test.h"

enum { N = 3000, P = 16 };

typedef struct {
    int32_t *codes;
    double *weights, *x, *slopes; /* slopes: three, N values each */
    int factors;
} design;

/** Workers, firms, and years with many rows each; ids of the first two are random. */
static design make(int factors)
{
    design d = {malloc((size_t)(N * factors) * sizeof(int32_t)), malloc(N * sizeof(double)),
                malloc(N * P * sizeof(double)), malloc(3 * N * sizeof(double)), factors};
    static const double levels[] = {500, 150, 9};
    for (int64_t i = 0; i < N; i++) {
        for (int f = 0; f < factors; f++)
            d.codes[i * factors + f] = (int32_t)(test_uniform() * levels[f]);
        d.weights[i] = 0.1 + test_uniform();
        for (int c = 0; c < P; c++)
            d.x[i * P + c] = test_uniform() + 0.3 * d.codes[i * factors] * (c % 3);
    }
    for (int64_t i = 0; i < 3 * N; i++)
        d.slopes[i] = test_normal() + (double)(i / N);
    return d;
}

static void release(design *d)
{
    free(d->codes);
    free(d->weights);
    free(d->x);
    free(d->slopes);
}

static frg_demean_opts options(void)
{
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    o.method = FRG_FE_CG;
    return o;
}

static frg_demean_opts options_lsmr(frg_fe_fused fused)
{
    frg_demean_opts o = options();
    o.method = FRG_FE_LSMR;
    o.fused = fused;
    return o;
}

/** Demeans the first `count` columns; the largest of the audits. */
static double demean(frg_context *ctx, fe_device_place where, const design *d, bool weighted,
                     int count, const frg_demean_opts *o, double *out)
{
    frg_demean *plan = NULL;
    const frg_array codes = frg_matrix(d->codes, FRG_I32, N, d->factors, d->factors);
    const frg_array weights = frg_vector(d->weights, FRG_F64, N);
    if (!CHECK_OK(ctx, frgi_fe_demean_open(&plan, ctx, where, codes, weighted ? &weights : NULL,
                                           &(fe_slopes_asked){NULL, 0, 0}, o)))
        return 1;
    frg_demean_column columns[P];
    frg_info info;
    CHECK_OK(ctx, frg_demean_run(plan, frg_matrix(d->x, FRG_F64, N, count, P),
                                 frg_matrix(out, FRG_F64, N, count, P), columns, &info));
    double worst = 0;
    for (int c = 0; c < count; c++) {
        CHECK(columns[c].converged);
        worst = fmax(worst, columns[c].audit);
    }
    const bool passes = where.dev && frgi_device_is(where.dev)->f64;
    CHECK_TEXT(frg_demean_get(plan).passes_on, passes ? frgi_device_name(where.dev) : "cpu");
    const frg_demean_report report = frg_demean_get(plan);
    CHECK_INT(report.device_launches > 0, where.dev != NULL);
    CHECK_INT(report.device_waits > 0, where.dev != NULL);
    CHECK_INT(report.device_bytes_in > 0, where.dev != NULL);
    CHECK_INT(report.device_bytes_out > 0, where.dev != NULL);
    const bool named = strstr(frg_demean_get(plan).method, "on a device") != NULL;
    CHECK_SAYS(named == (where.dev != NULL), "%s", frg_demean_get(plan).method);
    frg_demean_destroy(plan);
    return worst;
}

/** The columns are demeaned with o there and with the same method on the host. */
static void compare(frg_context *ctx, frgi_device *dev, int group, const design *d, bool weighted,
                    int count, const frg_demean_opts *o)
{
    double *const here = calloc(N * P, sizeof *here), *const there = calloc(N * P, sizeof *there);
    frg_demean_opts host = *o;
    host.dtype = FRG_FE_F64;
    host.fused = FRG_FE_FUSED_AUTO;
    demean(ctx, (fe_device_place){NULL, 0, NULL}, d, weighted, count, &host, here);
    demean(ctx, (fe_device_place){dev, group, NULL}, d, weighted, count, o, there);
    double gap = 0;
    for (int64_t i = 0; i < N * P; i++)
        gap = fmax(gap, fabs(here[i] - there[i]));
    CHECK_SAYS(gap <= 600e-10, "%d factors, %d columns: %.3g apart", d->factors, count, gap);
    free(here);
    free(there);
}

static void parity_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const int counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 5, 11};
    design d[] = {make(2), make(3)};
    for (size_t q = 0; q < sizeof counts / sizeof *counts; q++) {
        frg_demean_opts o = options();
        o.dtype = q > 12 ? FRG_FE_MIXED : FRG_FE_F64; /* solves in float, refined */
        compare(ctx, dev, group, &d[q % 2], q / 2 % 2, counts[q], &o);
    }
    release(&d[0]);
    release(&d[1]);
}

static void parity(void)
{
    on_host(parity_on);
}

static void parity_opencl(void)
{
    on_opencl(parity_on);
}

/** Scalars there and here; in float, too, where the kernels are not compiled for both sizes of
 *  group. */
static void lsmr_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const struct {
        int factors, weighted, columns;
        frg_fe_fused fused;
        frg_fe_dtype dtype;
    } runs[] = {
        {2, 0, 11, FRG_FE_FUSED_ON, FRG_FE_F64},  {3, 1, 5, FRG_FE_FUSED_AUTO, FRG_FE_F64},
        {3, 1, 3, FRG_FE_FUSED_OFF, FRG_FE_F64},  {2, 0, 1, FRG_FE_FUSED_OFF, FRG_FE_F64},
        {2, 1, 16, FRG_FE_FUSED_ON, FRG_FE_F64},  {2, 0, 12, FRG_FE_FUSED_OFF, FRG_FE_F64},
        {3, 1, 5, FRG_FE_FUSED_ON, FRG_FE_MIXED}, {2, 0, 3, FRG_FE_FUSED_OFF, FRG_FE_MIXED}};
    for (size_t q = 0; q < sizeof runs / sizeof *runs; q++) {
        if (group == 256 && runs[q].dtype != FRG_FE_F64)
            continue;
        design d = make(runs[q].factors);
        frg_demean_opts o = options_lsmr(runs[q].fused);
        o.dtype = runs[q].dtype;
        compare(ctx, dev, group, &d, runs[q].weighted, runs[q].columns, &o);
        release(&d);
    }
}

static void lsmr(void)
{
    on_host(lsmr_on);
}

static void lsmr_opencl(void)
{
    on_opencl(lsmr_on);
}

/** What is said of a column is the same whatever stands beside it, to the bit, and in plain C, whose
 *  groups have one work-item, however many columns do. */
static void neighbours_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const frg_fe_method methods[] = {FRG_FE_CG, FRG_FE_LSMR, FRG_FE_AUTO};
    static const int counts[] = {11, 5};
    const bool plain = strncmp(frgi_device_name(dev), "cpu", 3) == 0;
    design d = make(2);
    double *const out = calloc(2 * N * P, sizeof *out), *const other = out + N * P;
    double own[N];
    for (int64_t i = 0; i < N; i++)
        own[i] = d.x[i * P + 3];
    for (int q = 0; q < 6; q++) {
        const int count = counts[q % 2];
        frg_demean_opts o = options();
        o.method = methods[q / 2];
        demean(ctx, (fe_device_place){dev, group, NULL}, &d, true, count, &o, out);
        for (int64_t i = 0; i < N * P; i++)
            d.x[i] = i % P == 3 ? d.x[i] : 1e3 * test_normal();
        demean(ctx, (fe_device_place){dev, group, NULL}, &d, true, count, &o, other);
        for (int64_t i = 0; i < N; i++)
            if (!CHECK(other[i * P + 3] == out[i * P + 3]))
                break;
        for (int64_t i = 0; i < N && plain; i++)
            d.x[i * P] = own[i];
        if (plain)
            demean(ctx, (fe_device_place){dev, group, NULL}, &d, true, 1, &o, other);
        for (int64_t i = 0; i < N && plain; i++)
            if (!CHECK(other[i * P] == out[i * P + 3]))
                break;
    }
    free(out);
    release(&d);
}

static void neighbours(void)
{
    on_host(neighbours_on);
}

static void neighbours_opencl(void)
{
    on_opencl(neighbours_on);
}

/** Widths by the bytes of a column of p (fe_device.c), and by the largest block of memory. */
static void widths_on(frg_context *ctx, frgi_device *dev, int group)
{
    (void)ctx;
    (void)group;
    static const struct {
        int64_t unknowns;
        int lanes, lanes_float;
    } runs[] = {{1, 16, 16},    {262144, 16, 16}, {262145, 8, 16},  {524288, 8, 16},
                {524289, 4, 8}, {1048576, 4, 8},  {1048577, 16, 4}, {100000000, 16, 16}};
    for (size_t q = 0; q < sizeof runs / sizeof *runs; q++) {
        const fe_rows g = {.n = 1000, .n_reduced = runs[q].unknowns, .n_remaining = 1};
        CHECK_INT(frgi_fe_device_lanes_of(dev, &g, FRG_FE_F64), runs[q].lanes);
        CHECK_INT(frgi_fe_device_lanes_of(dev, &g, FRG_FE_MIXED), runs[q].lanes_float);
    }
    const int64_t most = (int64_t)(frgi_device_is(dev)->largest / (16 * 16));
    fe_rows g = {.n = most, .n_reduced = 10, .n_remaining = 1};
    CHECK_INT(frgi_fe_device_lanes_of(dev, &g, FRG_FE_F64), 16);
    g.n++;
    CHECK_INT(frgi_fe_device_lanes_of(dev, &g, FRG_FE_F64), 8);
}

static void widths(void)
{
    on_host(widths_on);
}

/** With the device's double precision hidden: solves in float, refined by audited residuals. */
static void floats_opencl(void)
{
    setenv("FOURGE_OPENCL_F64", "0", 1);
    on_opencl(parity_on);
    setenv("FOURGE_OPENCL_F64", "1", 1);
}

/* ---- method auto ----------------------------------------------------------------------------- */

/** A chain of firms: each `workers` of them begin at the next firm, and each is at `reach` firms
 *  that follow one another. */
static design make_chain(int reach, int workers)
{
    design d = make(2);
    for (int64_t i = 0; i < N; i++) {
        const int64_t worker = i / reach;
        d.codes[2 * i] = (int32_t)worker;
        d.codes[2 * i + 1] = (int32_t)(worker / workers + i % reach);
    }
    return d;
}

typedef struct {
    char method[64], place[64];
    int64_t steps;
} chosen;

enum { AUTO_P = 11 }; /* 8 and 3 for a factor of the host's */

/** Demeans AUTO_P columns by method auto; what it chose. */
static chosen demean_auto(frg_context *ctx, fe_device_place where, const design *d,
                          const frg_demean_opts *o, double *out)
{
    frg_demean *plan = NULL;
    frg_demean_column columns[AUTO_P];
    frg_info info;
    chosen c = {.steps = 0};
    if (!CHECK_OK(ctx,
                  frgi_fe_demean_open(&plan, ctx, where, frg_matrix(d->codes, FRG_I32, N, 2, 2),
                                      NULL, &(fe_slopes_asked){NULL, 0, 0}, o)))
        return c;
    CHECK_OK(ctx, frg_demean_run(plan, frg_matrix(d->x, FRG_F64, N, AUTO_P, P),
                                 frg_matrix(out, FRG_F64, N, AUTO_P, AUTO_P), columns, &info));
    for (int k = 0; k < AUTO_P; k++)
        CHECK(columns[k].converged && columns[k].audit <= o->tol);
    snprintf(c.method, sizeof c.method, "%s", frg_demean_get(plan).method);
    snprintf(c.place, sizeof c.place, "%s", info.device_name);
    c.steps = info.iterations;
    frg_demean_destroy(plan);
    return c;
}

/** Auto on a device begins where it does on the host and says what it ended with: CG through the
 *  rows there; a factor beyond 30 steps, or at once where it is cheaper than 20; the rows to the end
 *  where no memory is left for S.  The smallest eigenvalue of a chain is below that of this file's
 *  head, so that the two results are held to each other by their own certificates: each is within
 *  1e3 tol ||x - mean|| of the solution (FE_BOUND_MOST of fe_verify.h). */
static void auto_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const struct {
        int reach, workers; /* 0: random firms */
        size_t fill_cap;
        frg_fe_dtype dtype;
        const char *method;
    } runs[] = {{0, 0, 0, FRG_FE_F64, "cg rows on a device"},
                {0, 0, 0, FRG_FE_MIXED, "cg rows on a device, float32"},
                {2, 10, 0, FRG_FE_F64, "direct, on the host"},
                {6, 2, 0, FRG_FE_F64, "direct, on the host"},
                {6, 2, 1, FRG_FE_F64, "cg rows on a device"}};
    double *const out[2] = {calloc(N * AUTO_P, sizeof(double)), calloc(N * AUTO_P, sizeof(double))};
    for (size_t q = 0; q < sizeof runs / sizeof *runs; q++) {
        if (group == 256 && runs[q].dtype != FRG_FE_F64)
            continue;
        design d = runs[q].reach ? make_chain(runs[q].reach, runs[q].workers) : make(2);
        frg_demean_opts o = options();
        o.method = FRG_FE_AUTO;
        o.max_iter = 4000;
        demean_auto(ctx, (fe_device_place){NULL, 0, NULL}, &d, &o, out[0]);
        o.dtype = runs[q].dtype;
        o.fill_cap = runs[q].fill_cap;
        const chosen c = demean_auto(ctx, (fe_device_place){dev, group, NULL}, &d, &o, out[1]);
        CHECK_SAYS(strncmp(c.method, runs[q].method, strlen(runs[q].method)) == 0, "%s, not %s",
                   c.method, runs[q].method);
        CHECK_TEXT(c.place, frgi_device_name(dev)); /* the passes are there, whoever solves */
        printf("# %s on %s, %lld steps\n", c.method, c.place, (long long)c.steps);
        double gap2 = 0, size2 = 0;
        for (int64_t i = 0; i < N * AUTO_P; i++) {
            const double x = d.x[i / AUTO_P * P + i % AUTO_P];
            gap2 += (out[0][i] - out[1][i]) * (out[0][i] - out[1][i]);
            size2 += x * x;
        }
        CHECK_SAYS(sqrt(gap2) <= 2e3 * o.tol * sqrt(size2), "%.3g apart", sqrt(gap2 / size2));
        release(&d);
    }
    free(out[0]);
    free(out[1]);
}

static void auto_host(void)
{
    on_host(auto_on);
}

static void auto_opencl(void)
{
    on_opencl(auto_on);
}

/* ---- varying slopes -------------------------------------------------------------------------- */

typedef struct {
    int factors, slopes, of[3]; /* the slopes' factors */
    uint64_t no_intercept;
    bool weighted;
    int columns;
    frg_fe_fused fused;
    frg_fe_dtype dtype;
} slopes_run;

/** Demeans with slopes by LSMR; the largest of the audits. */
static double demean_slopes(frg_context *ctx, fe_device_place where, const design *d,
                            const slopes_run *r, const frg_demean_opts *o, double *out)
{
    frg_slope slopes[3];
    frg_demean *plan = NULL;
    frg_demean_column columns[P];
    double worst = 0;
    for (int s = 0; s < r->slopes; s++) /* values that the design has nothing else of */
        slopes[s] = (frg_slope){r->of[s], d->slopes + s * N};
    const frg_array weights = frg_vector(d->weights, FRG_F64, N);
    if (!CHECK_OK(ctx,
                  frgi_fe_demean_open(&plan, ctx, where,
                                      frg_matrix(d->codes, FRG_I32, N, r->factors, d->factors),
                                      r->weighted ? &weights : NULL,
                                      &(fe_slopes_asked){slopes, r->slopes, r->no_intercept}, o)))
        return 1;
    const frg_status status =
        frg_demean_run(plan, frg_matrix(d->x, FRG_F64, N, r->columns, P),
                       frg_matrix(out, FRG_F64, N, r->columns, P), columns, NULL);
    for (int c = 0; c < r->columns; c++) {
        worst = fmax(worst, columns[c].audit);
        CHECK_INT(columns[c].converged, status == FRG_OK);
    }
    CHECK_INT(strstr(frg_demean_get(plan).method, "on a device") != NULL, where.dev != NULL);
    frg_demean_destroy(plan);
    return worst;
}

/** The largest difference over the largest value, column by column. */
static double apart(const double *x, const double *y, const double *scale, int columns)
{
    double worst = 0;
    for (int c = 0; c < columns; c++) {
        double gap = 0, most = 0;
        for (int64_t i = 0; i < N; i++) {
            gap = fmax(gap, fabs(x[i * P + c] - y[i * P + c]));
            most = fmax(most, fabs(scale[i * P + c]));
        }
        worst = fmax(worst, gap / most);
    }
    return worst;
}

/** The iterates after 5 steps are the host's, by the bound of count_lsmr_on; the ends are within
 *  1e3 tol of the solution each, by their certificates, in the norm over the rows: times sqrt(N) for
 *  a row. */
static void slopes_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const slopes_run runs[] = {
        {2, 1, {0}, 0, false, 11, FRG_FE_FUSED_ON, FRG_FE_F64},
        {2, 1, {1}, 0, true, 3, FRG_FE_FUSED_OFF, FRG_FE_F64},
        {3, 3, {1, 0, 1}, 0, true, 8, FRG_FE_FUSED_AUTO, FRG_FE_F64},
        {2, 2, {0, 1}, 3, false, 1, FRG_FE_FUSED_ON, FRG_FE_F64}, /* slopes alone */
        {3, 2, {1, 2}, 0, true, 4, FRG_FE_FUSED_ON, FRG_FE_MIXED}};
    design d = make(3);
    double *const here = calloc(N * P, sizeof *here), *const there = calloc(N * P, sizeof *there);
    for (size_t q = 0; q < sizeof runs / sizeof *runs; q++) {
        const slopes_run *const r = &runs[q];
        frg_demean_opts o = options_lsmr(r->fused), host = options_lsmr(FRG_FE_FUSED_AUTO);
        if (group == 256 && r->dtype != FRG_FE_F64)
            continue;
        o.dtype = r->dtype;
        demean_slopes(ctx, (fe_device_place){NULL, 0, NULL}, &d, r, &host, here);
        const double audit =
            demean_slopes(ctx, (fe_device_place){dev, group, NULL}, &d, r, &o, there);
        double gap = apart(here, there, d.x, r->columns);
        CHECK_SAYS(audit <= o.tol, "design %zu: an audit of %.3g", q, audit);
        CHECK_SAYS(gap <= 2e3 * o.tol * sqrt(N), "design %zu: %.3g apart", q, gap);
        o.max_iter = host.max_iter = 5;
        if (r->dtype == FRG_FE_F64) {
            demean_slopes(ctx, (fe_device_place){NULL, 0, NULL}, &d, r, &host, here);
            demean_slopes(ctx, (fe_device_place){dev, group, NULL}, &d, r, &o, there);
            gap = apart(here, there, d.x, r->columns);
            CHECK_SAYS(gap <= 4e-11, "design %zu: %.3g apart after 5 steps", q, gap);
        }
    }
    free(here);
    free(there);
    release(&d);
}

static void slopes_host(void)
{
    on_host(slopes_on);
}

static void slopes_opencl(void)
{
    on_opencl(slopes_on);
}

/* ---- columns stored in float ----------------------------------------------------------------- */

enum { NARROW_N = 400, NARROW_P = 2, NARROW_LEVELS = 42 };

typedef struct {
    int32_t codes[NARROW_N * 2];
    double weights[NARROW_N];
    float x[NARROW_N * NARROW_P], out[NARROW_N * NARROW_P];
    double right[NARROW_N * NARROW_P]; /* the host's result, of the same values in double */
} narrow_design;

/** 30 and 12 levels of a few rows each; nothing of the columns lies in them but chance. */
static void make_narrow(narrow_design *d)
{
    for (int64_t i = 0; i < NARROW_N; i++) {
        d->codes[2 * i] = (int32_t)(test_uniform() * 30);
        d->codes[2 * i + 1] = (int32_t)(test_uniform() * 12);
        d->weights[i] = 0.1 + test_uniform();
        for (int c = 0; c < NARROW_P; c++)
            d->x[i * NARROW_P + c] = (float)test_normal();
    }
}

static frg_status demean_narrow(frg_context *ctx, fe_device_place where, const narrow_design *d,
                                bool weighted, const frg_demean_opts *o, frg_array in,
                                frg_array out, frg_demean_column *columns)
{
    frg_demean *plan = NULL;
    const frg_array weights = frg_vector(d->weights, FRG_F64, NARROW_N);
    if (!CHECK_OK(ctx, frgi_fe_demean_open(
                           &plan, ctx, where, frg_matrix(d->codes, FRG_I32, NARROW_N, 2, 2),
                           weighted ? &weights : NULL, &(fe_slopes_asked){NULL, 0, 0}, o)))
        return FRG_BAD_ARG;
    const frg_status status = frg_demean_run(plan, in, out, columns, NULL);
    frg_demean_destroy(plan);
    return status;
}

/** The largest level mean of column c as it came out. */
static double worst_mean(const narrow_design *d, bool weighted, int c)
{
    double sum[NARROW_LEVELS] = {0}, weight[NARROW_LEVELS] = {0}, worst = 0;
    for (int64_t i = 0; i < NARROW_N; i++) {
        for (int f = 0; f < 2; f++) {
            const int32_t l = d->codes[2 * i + f] + 30 * f;
            const double w = weighted ? d->weights[i] : 1;
            sum[l] += w * (double)d->out[i * NARROW_P + c];
            weight[l] += w;
        }
    }
    for (int l = 0; l < NARROW_LEVELS; l++)
        worst = weight[l] > 0 ? fmax(worst, fabs(sum[l] / weight[l])) : worst;
    return worst;
}

/** Bounds.  A round of refinement stores the column and rounds each number by 2^-24 of it; numbers
 *  are below 6, rounds at most 4 and the first store: 5 * 6 * 2^-24.  Beside that are 300 tol of
 *  each solve as at the head of this file, and 0.9 < sd(r) < 1.1.  A level mean is the audit's, or
 *  that of the numbers as they are before the last store: 6 * 2^-24 more.  An audit is
 *  below tol, or at the floor of what is accepted of floats: 16 roundings of sd(x) < 1.1, over
 *  sd(r). */
static void check_narrow(const narrow_design *d, bool weighted, frg_status status, double tol,
                         const frg_demean_column *columns)
{
    static const double rounding = 6 * 0x1p-24;
    double gap = 0;
    for (int i = 0; i < NARROW_N * NARROW_P; i++)
        gap = fmax(gap, fabs((double)d->out[i] - d->right[i]));
    CHECK_SAYS(gap <= 600 * tol + 5 * rounding, "%.3g from the host", gap);
    CHECK_INT(status, FRG_OK);
    for (int c = 0; c < NARROW_P; c++) {
        const double mean = worst_mean(d, weighted, c), audit = columns[c].audit;
        CHECK(columns[c].converged && !columns[c].absorbed && columns[c].status == FRG_OK);
        CHECK_SAYS(audit > 0 && audit <= fmax(tol, 1.3 * 0x1p-20), "an audit of %.3g", audit);
        CHECK_SAYS(mean <= 1.1 * audit + rounding, "level means of %.3g, an audit of %.3g", mean,
                   audit);
        CHECK_SAYS(columns[c].iterations < 100, "%lld steps", (long long)columns[c].iterations);
    }
}

/** Columns of float by each method and arithmetic against the host's of the same values in double:
 *  what is left of them, its level means as it came out, and what is said of both. */
static void narrow_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const frg_fe_dtype types[] = {FRG_FE_F64, FRG_FE_MIXED, FRG_FE_F32};
    narrow_design *const d = calloc(1, sizeof *d);
    double x[NARROW_N * NARROW_P];
    make_narrow(d);
    for (int i = 0; i < NARROW_N * NARROW_P; i++)
        x[i] = (double)d->x[i];
    const frg_array wide = frg_matrix(x, FRG_F64, NARROW_N, NARROW_P, NARROW_P);
    const frg_array right = frg_matrix(d->right, FRG_F64, NARROW_N, NARROW_P, NARROW_P);
    const frg_array in = frg_matrix(d->x, FRG_F32, NARROW_N, NARROW_P, NARROW_P);
    const frg_array out = frg_matrix(d->out, FRG_F32, NARROW_N, NARROW_P, NARROW_P);
    for (int q = 0; q < 12 && group != 256; q++) {
        const bool weighted = q % 2, by_cg = q / 2 % 2;
        frg_demean_opts o = by_cg ? options() : options_lsmr(FRG_FE_FUSED_AUTO);
        frg_demean_column columns[NARROW_P] = {{0}};
        demean_narrow(ctx, (fe_device_place){NULL, 0, NULL}, d, weighted, &o, wide, right, NULL);
        o.dtype = types[q / 4];
        o.tol = o.dtype == FRG_FE_F32 ? 1e-6 : o.tol; /* what columns of float can reach */
        const frg_status status = demean_narrow(ctx, (fe_device_place){dev, group, NULL}, d,
                                                weighted, &o, in, out, columns);
        check_narrow(d, weighted, status, o.tol, columns);
    }
    free(d);
}

static void narrow(void)
{
    on_host(narrow_on);
}

static void narrow_opencl(void)
{
    on_opencl(narrow_on);
}

/** Of `count` columns, `block` at a time: four kernels a step of a block, one wait a batch of its
 *  steps, which brings 8 scalars and 3 counts a column, and 2 numbers a step and column in the end. */
static void count_steps(frg_context *ctx, frgi_device *dev, int group, const design *d, int count,
                        int block, double *out)
{
    frgi_device_counts at[2];
    const int blocks = block > 0 ? (count + block - 1) / block : 1;
    const int64_t real = frgi_device_is(dev)->f64 ? 8 : 4;
    for (int q = 0; q < 2; q++) {
        frg_demean_column columns[P];
        frg_demean_opts o = options();
        o.max_iter = 7 + 8 * q; /* batches of 1, 2, 4, and one of 8 more */
        o.tol = 1e-300;         /* not to be reached */
        o.block = block;
        frg_demean *plan = NULL;
        CHECK_OK(ctx, frgi_fe_demean_open(&plan, ctx, (fe_device_place){dev, group, NULL},
                                          frg_matrix(d->codes, FRG_I32, N, 3, 3), NULL,
                                          &(fe_slopes_asked){NULL, 0, 0}, &o));
        *frgi_device_counted(dev) = (frgi_device_counts){0};
        const frg_status status =
            frg_demean_run(plan, frg_matrix(d->x, FRG_F64, N, count, P),
                           frg_matrix(out, FRG_F64, N, count, P), columns, NULL);
        CHECK(status != FRG_OK);
        for (int c = 0; c < count; c++) /* a bound that tol does not allow is no convergence */
            CHECK_INT(columns[c].converged, columns[c].status == FRG_OK);
        at[q] = *frgi_device_counted(dev);
        frg_demean_destroy(plan);
    }
    printf("# %lld %lld launches, %lld %lld waits\n", (long long)at[0].launches,
           (long long)at[1].launches, (long long)at[0].waits, (long long)at[1].waits);
    CHECK_INT(at[1].launches - at[0].launches, 8 * 4 * blocks);
    CHECK_INT(at[1].waits - at[0].waits, blocks);
    CHECK_INT(at[1].bytes_in - at[0].bytes_in, 0);
    CHECK_INT(at[1].bytes_out - at[0].bytes_out, count * ((8 + 2 * 8) * real + 3 * 4));
}

/** The same bits from run to run, and the model's launches, waits and bytes; blocks of any width. */
static void counts_on(frg_context *ctx, frgi_device *dev, int group)
{
    static const int runs[][2] = {{4, 0}, {5, 0}, {11, 0}, {11, 8}, {16, 32}, {16, 5}};
    design d = make(3);
    double *const out[2] = {calloc(N * P, sizeof(double)), calloc(N * P, sizeof(double))};
    for (size_t q = 0; q < sizeof runs / sizeof *runs; q++)
        count_steps(ctx, dev, group, &d, runs[q][0], runs[q][1], out[0]);
    const frg_demean_opts methods[] = {options(), options_lsmr(FRG_FE_FUSED_ON)};
    for (int m = 0; m < 2; m++) {
        for (int q = 0; q < 2; q++)
            demean(ctx, (fe_device_place){dev, group, NULL}, &d, true, P, &methods[m], out[q]);
        CHECK_BITS(out[0], out[1], N * P * sizeof(double));
    }
    free(out[0]);
    free(out[1]);
    release(&d);
}

/** What a second run of `count` columns moves that ends after `steps` steps of LSMR. */
static frgi_device_counts count_lsmr(frg_context *ctx, frgi_device *dev, int group, const design *d,
                                     frg_fe_fused fused, int count, int steps, double *out)
{
    frg_demean_opts o = options_lsmr(fused);
    frg_demean *plan = NULL;
    o.max_iter = steps;
    o.tol = 1e-300; /* not to be reached */
    CHECK_OK(ctx, frgi_fe_demean_open(&plan, ctx, (fe_device_place){dev, group, NULL},
                                      frg_matrix(d->codes, FRG_I32, N, 3, 3), NULL,
                                      &(fe_slopes_asked){NULL, 0, 0}, &o));
    for (int q = 0; q < 2 && plan; q++) {
        if (dev)
            *frgi_device_counted(dev) = (frgi_device_counts){0};
        CHECK_INT(frg_demean_run(plan, frg_matrix(d->x, FRG_F64, N, count, P),
                                 frg_matrix(out, FRG_F64, N, count, count), NULL, NULL),
                  FRG_MAX_ITER);
    }
    frg_demean_destroy(plan);
    return dev ? *frgi_device_counted(dev) : (frgi_device_counts){0};
}

/** Of the model in fe_device.h and fe_lsmr_device.c, with R = 159 levels beside the 500, so that
 *  sums are left by 2 groups of rows and 1 of levels; 19 scalars, 5 coefficients, 4 goals and 3
 *  counts a column.  Three passes of six kernels (the right-hand side, its projection, the residual,
 *  whose effects go there), each of which brings R sums and 5 totals back; the columns once in and
 *  out, a kernel and one that scales each, and a copy for the solve.  Fused: steps 1, 2, 4, 8 at a time, one more than asked for, which finds out
 *  that the last has been made; a wait a batch.  Eager: a wait a step.
 *
 *  The iterates of both are the host's: sums of 3000 numbers are within 3000 roundings, 6.7e-13,
 *  5 steps of a condition below 10 carry them on: 4e-11. */
static void count_lsmr_of(frg_context *ctx, frgi_device *dev, int group, const design *d, int k)
{
    enum { R = 159, REALS = 8, PASSES = 3 * 6 + 2 * 2 + 1 };
    const int64_t start = (N + 3 * R + 19 + 5 + 4 + 2) * k * REALS + 3 * k * 4;
    const int64_t passes = (N + 3 * (R + 5)) * k * REALS;
    double *const out = calloc((size_t)(3 * N * k), sizeof *out);
    frgi_device_counts at[2];
    for (int q = 0; q < 2; q++)
        at[q] = count_lsmr(ctx, dev, group, d, FRG_FE_FUSED_ON, k, 6 + 8 * q, out);
    CHECK_INT(at[0].launches, PASSES + 4 * 7);
    CHECK_INT(at[1].launches - at[0].launches, 4 * 8);
    CHECK_INT(at[1].waits - at[0].waits, 1);
    CHECK_INT(at[0].bytes_in, start);
    CHECK_INT(at[1].bytes_in, start);
    CHECK_INT(at[0].bytes_out, passes + (R + 3 * 19 + 2 * 6) * k * REALS + 3 * 3 * k * 4);
    CHECK_INT(at[1].bytes_out - at[0].bytes_out, (19 + 2 * 8) * k * REALS + 3 * k * 4);
    for (int q = 0; q < 2; q++)
        at[q] = count_lsmr(ctx, dev, group, d, FRG_FE_FUSED_OFF, k, 6 + 8 * q, out);
    CHECK_INT(at[1].launches - at[0].launches, 4 * 8);
    CHECK_INT(at[1].waits - at[0].waits, 8);
    CHECK_INT(at[1].bytes_in - at[0].bytes_in, 8 * (5 * k * REALS + 3 * k * 4));
    CHECK_INT(at[1].bytes_out - at[0].bytes_out, 8 * (2 + 2) * k * REALS);
    count_lsmr(ctx, NULL, 0, d, FRG_FE_FUSED_AUTO, k, 5, out);
    count_lsmr(ctx, dev, group, d, FRG_FE_FUSED_ON, k, 5, out + N * k);
    count_lsmr(ctx, dev, group, d, FRG_FE_FUSED_OFF, k, 5, out + 2 * N * k);
    for (int64_t i = 0; i < N * k; i++)
        if (!CHECK_NEAR(out[N * k + i], out[i], 4e-11) ||
            !CHECK_NEAR(out[2 * N * k + i], out[i], 4e-11))
            break;
    free(out);
}

static void count_lsmr_on(frg_context *ctx, frgi_device *dev, int group)
{
    design d = make(3);
    count_lsmr_of(ctx, dev, group, &d, 4);
    count_lsmr_of(ctx, dev, group, &d, 11);
    release(&d);
}

static void count_lsmr_host(void)
{
    on_host(count_lsmr_on);
}

static void count_lsmr_opencl(void)
{
    on_opencl(count_lsmr_on);
}

/** A plan that is given other weights computes as one that was made with them, and sends nothing but
 *  these and what the levels have of them: n + U + 3 R numbers, and no rows. */
static void reweighted_on(frg_context *ctx, frgi_device *dev, int group)
{
    enum { R = 150 };
    design d = make(2);
    double other[N], *const out = calloc(2 * N, sizeof *out);
    const frg_demean_opts o = options();
    const fe_device_place where = {dev, group, NULL};
    const frg_array codes = frg_matrix(d.codes, FRG_I32, N, 2, 2);
    const frg_array x = frg_matrix(d.x, FRG_F64, N, 1, P);
    const double *const weights[] = {d.weights, other};
    frg_demean *plans[2] = {NULL};
    for (int64_t i = 0; i < N; i++)
        other[i] = 0.1 + test_uniform();
    for (int q = 0; q < 2; q++) {
        const frg_array w = frg_vector(weights[q], FRG_F64, N);
        CHECK_OK(ctx, frgi_fe_demean_open(&plans[q], ctx, where, codes, &w,
                                          &(fe_slopes_asked){NULL, 0, 0}, &o));
        CHECK_OK(ctx, frg_demean_run(plans[q], x, frg_matrix(out + q * N, FRG_F64, N, 1, 1), NULL,
                                     NULL));
    }
    *frgi_device_counted(dev) = (frgi_device_counts){0};
    CHECK_OK(ctx, frgi_demean_reweight(plans[0], other, o.tol));
    const int64_t reals = frgi_device_is(dev)->f64 ? 8 : 4;
    const int64_t levels = frg_demean_get(plans[0]).levels; /* U + R */
    CHECK_INT(frgi_device_counted(dev)->bytes_in, (N + levels + 2 * R) * reals);
    CHECK_INT(frgi_device_counted(dev)->bytes_out, 0);
    CHECK_OK(ctx, frg_demean_run(plans[0], x, frg_matrix(out, FRG_F64, N, 1, 1), NULL, NULL));
    CHECK_BITS(out, out + N, N * sizeof *out);
    for (int q = 0; q < 2; q++)
        frg_demean_destroy(plans[q]);
    free(out);
    release(&d);
}

static void reweighted(void)
{
    on_host(reweighted_on);
}

static void reweighted_opencl(void)
{
    on_opencl(reweighted_on);
}

/** Behind the last digit: the residual's audit may hold by its rounding where the bound of the error
 *  does not hold tol, and a column that is not accepted for that is not called converged. */
static void beyond_on(frg_context *ctx, frgi_device *dev, int group)
{
    design d = make(3);
    double *const out = calloc(N * P, sizeof *out);
    const frg_demean_opts methods[] = {options(), options_lsmr(FRG_FE_FUSED_ON)};
    for (int m = 0; m < 2; m++) {
        frg_demean_column columns[4];
        frg_demean_opts o = methods[m];
        frg_demean *plan = NULL;
        o.tol = 1e-16;
        o.max_iter = 400;
        CHECK_OK(ctx, frgi_fe_demean_open(&plan, ctx, (fe_device_place){dev, group, NULL},
                                          frg_matrix(d.codes, FRG_I32, N, 3, 3), NULL,
                                          &(fe_slopes_asked){NULL, 0, 0}, &o));
        const frg_status status = frg_demean_run(plan, frg_matrix(d.x, FRG_F64, N, 4, P),
                                                 frg_matrix(out, FRG_F64, N, 4, P), columns, NULL);
        CHECK(status >= 0);
        for (int c = 0; c < 4; c++)
            CHECK_INT(columns[c].converged, columns[c].status == FRG_OK);
        frg_demean_destroy(plan);
    }
    free(out);
    release(&d);
}

static void beyond(void)
{
    on_host(beyond_on);
}

static void counts(void)
{
    on_host(counts_on);
}

static void counts_opencl(void)
{
    on_opencl(counts_on);
}

static void refused_on(frg_context *ctx, frgi_device *dev, int group)
{
    design d = make(2);
    frg_demean_opts o[6] = {options(), options(), options(), options(), options(), options()};
    static const char *const says[] = {"precond ac",     "method mlsmr",    "method direct",
                                       "varying slopes", "fused on or off", "fused on or off"};
    o[0].precond = FRG_FE_PRECOND_AC;
    o[1].method = FRG_FE_MLSMR;
    o[2].method = FRG_FE_DIRECT;
    o[4].fused = FRG_FE_FUSED_OFF;
    o[5].fused = FRG_FE_FUSED_ON;
    o[5].method = FRG_FE_AUTO;
    const frg_slope slope = {0, d.slopes};
    for (int q = 0; q < 6; q++) {
        frg_demean *plan = (frg_demean *)ctx;
        CHECK_STATUS(frgi_fe_demean_open(&plan, ctx, (fe_device_place){dev, group, NULL},
                                         frg_matrix(d.codes, FRG_I32, N, 2, 2), NULL,
                                         &(fe_slopes_asked){&slope, q == 3, 0}, &o[q]),
                     FRG_UNSUPPORTED);
        CHECK(!plan);
        CHECK_SAYS(strstr(frg_message(ctx), says[q]) != NULL, "%s", frg_message(ctx));
    }
    release(&d);
}

static void refused(void)
{
    on_host(refused_on);
}

/** Columns of the first rows of a design with three effects. */
typedef struct {
    const design *d;
    frg_demean_opts o;
    int slopes;
    bool weighted;
    int64_t rows, columns;
} few;

static frg_status demean_few(frg_context *ctx, fe_device_place where, const few *f, double *out)
{
    const design *const d = f->d;
    const frg_slope slopes[] = {{0, d->slopes}, {1, d->slopes + N}};
    const frg_array weights = frg_vector(d->weights, FRG_F64, f->rows);
    frg_demean *plan = NULL;
    frg_status status = frgi_fe_demean_open(
        &plan, ctx, where, frg_matrix(d->codes, FRG_I32, f->rows, 3, 3),
        f->weighted ? &weights : NULL, &(fe_slopes_asked){slopes, f->slopes, 0}, &f->o);
    if (status >= 0)
        status =
            frg_demean_run(plan, frg_matrix(d->x, FRG_F64, f->rows, f->columns, P),
                           frg_matrix(out, FRG_F64, f->rows, f->columns, f->columns), NULL, NULL);
    frg_demean_destroy(plan);
    return status;
}

/** Groups of 8, which tests/build/kernel_races.sh holds under a checker of races: two groups of rows,
 *  levels whose rows a group adds; 3 columns, which leave two items over, and 11, more than items.  The iterates are the host's, by the bound of count_lsmr_on. */
static void small_groups(void)
{
    enum { ROWS = 700 };
    frg_context *ctx = test_context();
    frgi_device *dev = open_opencl(ctx);
    design d = make(3);
    double here[11 * ROWS], there[11 * ROWS];
    few runs[] = {{&d, options(), 0, true, ROWS, 3},
                  {&d, options(), 0, false, ROWS, 11},
                  {&d, options_lsmr(FRG_FE_FUSED_ON), 0, false, ROWS, 3},
                  {&d, options_lsmr(FRG_FE_FUSED_OFF), 2, true, ROWS, 5}};
    for (size_t q = 0; dev && q < sizeof runs / sizeof *runs; q++) {
        runs[q].o.max_iter = 3;
        CHECK_STATUS(demean_few(ctx, (fe_device_place){dev, 8, NULL}, &runs[q], there),
                     FRG_MAX_ITER);
        runs[q].o.fused = FRG_FE_FUSED_AUTO; /* which is of devices */
        CHECK_STATUS(demean_few(ctx, (fe_device_place){NULL, 0, NULL}, &runs[q], here),
                     FRG_MAX_ITER);
        for (int64_t i = 0; i < runs[q].columns * ROWS; i++)
            if (!CHECK_NEAR(there[i], here[i], 4e-11))
                break;
    }
    release(&d);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    frgi_device *dev = NULL;
    double out[200];
    frg_status status = frgi_device_open(&dev, ctx, (frg_device){FRG_CPU, 0});
    if (status >= 0)
        status = demean_few(ctx, (fe_device_place){dev, 0, NULL}, user, out);
    if (status >= 0)
        fault_hash(hash, out, sizeof out);
    frgi_device_close(&dev);
    return status;
}

static void faults(void)
{
    design d = make(3);
    few f = {&d, options(), 0, false, 100, 2};
    fault_sweep("demeaning on a device", body, &f, 1);
    f.o = options_lsmr(FRG_FE_FUSED_ON);
    fault_sweep("LSMR on a device", body, &f, 1);
    f.o = options_lsmr(FRG_FE_FUSED_OFF);
    fault_sweep("eager LSMR on a device", body, &f, 1);
    f.slopes = 2;
    fault_sweep("slopes on a device", body, &f, 1);
    release(&d);
}

static const test_case cases[] = {{"parity", parity},
                                  {"parity on OpenCL", parity_opencl},
                                  {"floats on OpenCL", floats_opencl},
                                  {"neighbours", neighbours},
                                  {"neighbours on OpenCL", neighbours_opencl},
                                  {"widths", widths},
                                  {"lsmr", lsmr},
                                  {"lsmr on OpenCL", lsmr_opencl},
                                  {"method auto", auto_host},
                                  {"method auto on OpenCL", auto_opencl},
                                  {"slopes", slopes_host},
                                  {"slopes on OpenCL", slopes_opencl},
                                  {"columns of float", narrow},
                                  {"columns of float on OpenCL", narrow_opencl},
                                  {"counts", counts},
                                  {"beyond the last digit", beyond},
                                  {"counts on OpenCL", counts_opencl},
                                  {"counts of LSMR", count_lsmr_host},
                                  {"counts of LSMR on OpenCL", count_lsmr_opencl},
                                  {"other weights", reweighted},
                                  {"other weights on OpenCL", reweighted_opencl},
                                  {"refused", refused},
                                  {"small groups on OpenCL", small_groups},
                                  {"faults", faults}};
TEST_MAIN(cases)
