/* sinkhorn_bodies.h - entropic transport whose costs lie on a device, in the caller's memory and queue:
 * the solver of a copy on the host, but for the copy. */
#ifndef FOURGE_SINKHORN_BODIES_H
#define FOURGE_SINKHORN_BODIES_H

#include "caller.h"
#include "device/device.h"
#include "gw/gw_sinkhorn.h"
#include "gw/gw_stage_device.h"

enum {
    PLAN_ROWS = 75,
    PLAN_COLUMNS = 130,
    PLAN_ENTRIES = PLAN_ROWS * PLAN_COLUMNS,
    PLAN_TALL = PLAN_COLUMNS + 3, /* rows of the matrix that has gaps */
    /* doubles that tell the range of the costs, of SK_ROWS rows each */
    PLAN_SEEN = SK_SEEN_COUNT * ((PLAN_ROWS + SK_ROWS - 1) / SK_ROWS)
};

/** Costs as floats hold them, row by row, and as columns of PLAN_TALL. */
typedef struct {
    double wide[PLAN_ENTRIES], columns[PLAN_ROWS * PLAN_TALL], a[PLAN_ROWS], b[PLAN_COLUMNS];
    float narrow[PLAN_ENTRIES];
} sinkhorn_input;

static sinkhorn_input sinkhorn_in;

static void draw_sinkhorn(void)
{
    sinkhorn_input *const in = &sinkhorn_in;
    double sum[2] = {0, 0};
    for (int i = 0; i < PLAN_ROWS; i++)
        sum[0] += in->a[i] = 0.5 + test_uniform();
    for (int j = 0; j < PLAN_COLUMNS; j++)
        sum[1] += in->b[j] = 0.5 + test_uniform();
    for (int i = 0; i < PLAN_ROWS; i++)
        in->a[i] /= sum[0];
    for (int j = 0; j < PLAN_COLUMNS; j++)
        in->b[j] /= sum[1];
    for (int i = 0; i < PLAN_ROWS; i++)
        for (int j = 0; j < PLAN_COLUMNS; j++) {
            const float c = (float)test_uniform();
            in->narrow[i * PLAN_COLUMNS + j] = c;
            in->wide[i * PLAN_COLUMNS + j] = (double)c;
            in->columns[i * PLAN_TALL + j] = (double)c;
        }
}

/** As many numbers as the plan has, row by row: of the host, and of the caller's on its device. */
static frg_array plan_here(void *entries, frg_dtype type)
{
    return frg_matrix(entries, type, PLAN_ROWS, PLAN_COLUMNS, PLAN_COLUMNS);
}

static frg_array plan_there(const caller *c, void *array, frg_dtype type)
{
    return caller_matrix(c, array, type, PLAN_ROWS, PLAN_COLUMNS);
}

/** What one solver gave, and what went over meanwhile. */
typedef struct {
    frg_sinkhorn *s;
    double f[PLAN_ROWS], g[PLAN_COLUMNS];
    frgi_device_counts counts;
} sinkhorn_outcome;

static sinkhorn_outcome solve_sinkhorn(frg_context *ctx, frg_array cost, int group,
                                       const frg_sinkhorn_opts *o)
{
    const frgi_sinkhorn_place where = {.dev = frgi_device_of(ctx), .group = group};
    sinkhorn_outcome r = {.s = NULL};
    frgi_device_counts *const now = frgi_device_counted(frgi_device_of(ctx));
    *now = (frgi_device_counts){0};
    if (CHECK_OK(ctx,
                 frgi_sinkhorn_open(&r.s, ctx, where, cost, sinkhorn_in.a, sinkhorn_in.b, o))) {
        CHECK_OK(ctx, frg_sinkhorn_run(r.s, NULL));
        CHECK_OK(ctx, frg_sinkhorn_potentials(r.s, r.f, r.g));
        r.counts = *now;
    }
    return r;
}

/** Entries of the plan by the host's rows and by the device's.  Both make P = p 2^x from the same
 *  potentials with |x| <= 2 log2(e) / epsilon < 60: three roundings of x are 2^-53 180 log 2 of P, and
 *  the exponentials' own are few units more. */
static void check_plans(const double *got, const double *want, double unit)
{
    double most = 0;
    for (int e = 0; e < PLAN_ENTRIES; e++)
        most = fmax(most, fabs(got[e] - want[e]) / want[e]);
    CHECK_SAYS(most <= 200 * 0x1p-53 + unit, "plans differ by %.3g", most);
}

/** Rows into the caller's memory in either type, row by row and column by column. */
static void check_rows_there(frg_context *ctx, const caller *c, const frg_plan *plan,
                             const double *want)
{
    static double got[PLAN_ENTRIES], turned[PLAN_ENTRIES], few[3 * PLAN_COLUMNS];
    static float narrow[PLAN_ENTRIES];
    void *const out = caller_array(c, got, sizeof got);
    const frg_array all = plan_there(c, out, FRG_F64);
    CHECK_OK(ctx, frg_plan_rows(plan, 0, PLAN_ROWS, all));
    caller_read(c, got, out, sizeof got);
    check_plans(got, want, 0);
    frg_array part = all;
    part.shape[0] = 3;
    CHECK_OK(ctx, frg_plan_rows(plan, 10, 13, part));
    caller_read(c, few, out, sizeof few);
    CHECK_BITS(few, got + 10 * PLAN_COLUMNS, sizeof few);
    part.shape[0] = 0;
    CHECK_OK(ctx, frg_plan_rows(plan, 10, 10, part));
    part = all;
    part.stride[0] = 1;
    part.stride[1] = PLAN_ROWS;
    CHECK_OK(ctx, frg_plan_rows(plan, 0, PLAN_ROWS, part));
    caller_read(c, turned, out, sizeof turned);
    for (int i = 0; i < PLAN_ROWS; i++)
        for (int j = 0; j < PLAN_COLUMNS; j++)
            CHECK(turned[j * PLAN_ROWS + i] == got[i * PLAN_COLUMNS + j]);
    part = plan_there(c, out, FRG_F32);
    CHECK_OK(ctx, frg_plan_rows(plan, 0, PLAN_ROWS, part));
    caller_read(c, narrow, out, sizeof narrow);
    for (int e = 0; e < PLAN_ENTRIES; e++)
        CHECK(narrow[e] == (float)got[e]);
    part.device.index = 5;
    CHECK_STATUS(frg_plan_rows(plan, 0, PLAN_ROWS, part), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "out lies on "));
    caller_free(c, out);
}

/** What goes through the rows of a plan whose costs lie on the device. */
static void check_consumers(frg_context *ctx, const frg_plan *plan, const double *want)
{
    static double got[PLAN_ENTRIES], sums[PLAN_COLUMNS], ones[PLAN_ROWS], value[PLAN_ROWS];
    static int64_t best[PLAN_ROWS], index[PLAN_ROWS], starts[PLAN_ROWS + 1];
    CHECK_OK(ctx, frg_plan_rows(plan, 0, PLAN_ROWS, plan_here(got, FRG_F64)));
    check_plans(got, want, 0);
    for (int i = 0; i < PLAN_ROWS; i++)
        ones[i] = 1;
    CHECK_OK(ctx, frg_plan_apply(plan, frg_matrix(ones, FRG_F64, PLAN_ROWS, 1, 1), 1,
                                 frg_matrix(sums, FRG_F64, PLAN_COLUMNS, 1, 1)));
    for (int j = 0; j < PLAN_COLUMNS;
         j++) /* rounded: the marginal, up to a sum of PLAN_ROWS terms */
        CHECK_NEAR(sums[j], sinkhorn_in.b[j], 2 * PLAN_ROWS * 0x1p-53);
    CHECK_OK(ctx, frg_plan_argmax(plan, best));
    CHECK_OK(ctx, frg_plan_top(plan, 1, index, value));
    CHECK_OK(ctx, frg_plan_sparse(plan, 1e-4, starts, NULL, NULL));
    int64_t count = 0;
    for (int i = 0; i < PLAN_ROWS; i++) {
        CHECK_INT(best[i], index[i]);
        CHECK(value[i] == got[i * PLAN_COLUMNS + index[i]]);
        for (int j = 0; j < PLAN_COLUMNS; j++) {
            CHECK(got[i * PLAN_COLUMNS + j] <= value[i]);
            count += got[i * PLAN_COLUMNS + j] >= 1e-4;
        }
        CHECK_INT(starts[i + 1], count);
    }
}

/** The costs in the caller's memory and a copy of the host's, in groups of that size: the same bits,
 *  and n m elements fewer that go over. */
static void same_as_copied(frg_context *ctx, const caller *c, frg_array here, frg_array there,
                           frg_gw_store store, int group)
{
    static double want[PLAN_ENTRIES];
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.cost_store = store;
    const sinkhorn_outcome copied = solve_sinkhorn(ctx, here, group, &o);
    const sinkhorn_outcome placed = solve_sinkhorn(ctx, there, group, &o);
    if (!copied.s || !placed.s)
        return;
    CHECK_BITS(placed.f, copied.f, sizeof copied.f);
    CHECK_BITS(placed.g, copied.g, sizeof copied.g);
    CHECK(frg_sinkhorn_get(placed.s).cost == frg_sinkhorn_get(copied.s).cost);
    CHECK(frg_sinkhorn_get(placed.s).objective == frg_sinkhorn_get(copied.s).objective);
    const int64_t bytes = PLAN_ENTRIES * (int64_t)frg_sizeof(here.dtype);
    CHECK_INT(copied.counts.bytes_in - placed.counts.bytes_in, bytes);
    CHECK_INT(placed.counts.bytes_out - copied.counts.bytes_out,
              PLAN_SEEN * (int64_t)sizeof(double));
    CHECK_OK(ctx,
             frg_plan_rows(frg_sinkhorn_plan(copied.s), 0, PLAN_ROWS, plan_here(want, FRG_F64)));
    check_rows_there(ctx, c, frg_sinkhorn_plan(placed.s), want);
    check_rows_there(ctx, c, frg_sinkhorn_plan(copied.s), want);
    check_consumers(ctx, frg_sinkhorn_plan(placed.s), want);
    frg_sinkhorn_destroy(copied.s);
    frg_sinkhorn_destroy(placed.s);
}

/** Entries that are not finite are found there; other devices and gradients are refused. */
static void refused_sinkhorn(frg_context *ctx, const caller *c)
{
    sinkhorn_input *const in = &sinkhorn_in;
    frg_sinkhorn *s = NULL;
    const double kept = in->wide[41 * PLAN_COLUMNS + 7];
    in->wide[41 * PLAN_COLUMNS + 7] = (double)NAN;
    in->wide[41 * PLAN_COLUMNS + 9] = -(double)INFINITY;
    in->wide[60 * PLAN_COLUMNS] = (double)NAN;
    void *const array = caller_array(c, in->wide, sizeof in->wide);
    frg_array cost = plan_there(c, array, FRG_F64);
    CHECK_STATUS(frg_sinkhorn_create(&s, ctx, cost, NULL, NULL, NULL), FRG_BAD_DATA);
    CHECK_TEXT(frg_error_where(ctx), "cost, row 42, column 8");
    CHECK_SAYS(strstr(frg_message(ctx), "an entry is ") && strstr(frg_message(ctx), "nan"), "%s",
               frg_message(ctx));
    cost.device.index = 3;
    CHECK_STATUS(frg_sinkhorn_create(&s, ctx, cost, NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "cost lies on "));
    CHECK(s == NULL);
    in->wide[41 * PLAN_COLUMNS + 7] = kept;
    caller_free(c, array);
}

/** n numbers there and back, in either type. */
static void vectors_there(frg_context *ctx, const caller *c)
{
    double out[PLAN_ROWS], *const a = sinkhorn_in.a;
    void *const array = caller_array(c, NULL, sizeof out);
    for (int t = 0; t < 2; t++) {
        frg_array v = caller_vector(c, array, t ? FRG_F64 : FRG_F32, PLAN_ROWS);
        CHECK_OK(ctx, frg_array_put(ctx, v, a));
        CHECK_OK(ctx, frg_array_get(ctx, v, out));
        for (int i = 0; i < PLAN_ROWS; i++)
            CHECK(out[i] == (t ? a[i] : (double)(float)a[i]));
        v.stride[0] = 2;
        v.shape[0] = PLAN_ROWS / 2;
        CHECK_STATUS(frg_array_get(ctx, v, out), FRG_BAD_ARG);
        v.ndim = 2;
        CHECK(frg_array_get(ctx, v, out) < 0);
    }
    float host[4] = {0};
    frg_array v = frg_vector(host, FRG_F32, 2);
    v.stride[0] = 2;
    CHECK_OK(ctx, frg_array_put(ctx, v, a));
    CHECK_OK(ctx, frg_array_get(ctx, v, out));
    CHECK(host[0] == (float)a[0] && host[2] == (float)a[1] && out[1] == (double)host[2]);
    CHECK(host[1] == 0 && host[3] == 0);
    caller_free(c, array);
}

/** A solver whose weights are arrays, or pointers where these are NULL, and its report. */
static frg_sinkhorn *solve_arrays(frg_context *ctx, frg_array cost, const frg_array *a,
                                  const frg_array *b, frg_sinkhorn_report *r)
{
    frg_sinkhorn *s = NULL;
    const frg_status status =
        a ? frg_sinkhorn_create_arrays(&s, ctx, cost, a, b, NULL)
          : frg_sinkhorn_create(&s, ctx, cost, sinkhorn_in.a, sinkhorn_in.b, NULL);
    if (status >= 0)
        CHECK_OK(ctx, frg_sinkhorn_run(s, NULL));
    CHECK_SAYS(status >= 0, "%s", frg_message(ctx));
    *r = frg_sinkhorn_get(s);
    return s;
}

/** Vectors that cannot be taken. */
static void refused_vectors(frg_context *ctx, frg_array cost, frg_array a, const frg_sinkhorn *run)
{
    frg_sinkhorn *s = NULL;
    frg_array odd = a;
    odd.shape[0]--;
    CHECK_STATUS(frg_sinkhorn_create_arrays(&s, ctx, cost, &odd, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "a has 74 values, 75 are needed"));
    CHECK_STATUS(frg_sinkhorn_potentials_arrays(run, NULL, &odd), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "g has 74 values, 130 are needed"));
    odd = a;
    odd.device.index = 3;
    CHECK_STATUS(frg_sinkhorn_create_arrays(&s, ctx, cost, &odd, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "a lies on ") && !s);
    odd = a;
    odd.stride[0] = 2;
    CHECK_STATUS(frg_sinkhorn_create_arrays(&s, ctx, cost, &odd, NULL, NULL), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "a has 2 elements from one to the next"));
    CHECK_STATUS(frg_sinkhorn_start_arrays(NULL, NULL, NULL), FRG_BAD_ARG);
    CHECK_STATUS(frg_sinkhorn_potentials_arrays(NULL, NULL, NULL), FRG_BAD_ARG);
}

/** Weights, potentials to start from and potentials in the caller's memory: the bits of those of the
 *  host, and the report counts their bytes. */
static void vectors_in_place(frg_context *ctx, const caller *c, frg_array cost)
{
    enum { MORE = (PLAN_ROWS + PLAN_COLUMNS) * sizeof(double) };
    sinkhorn_input *const in = &sinkhorn_in;
    void *const of_a = caller_array(c, in->a, sizeof in->a);
    void *const of_b = caller_array(c, in->b, sizeof in->b);
    const frg_array a = caller_vector(c, of_a, FRG_F64, PLAN_ROWS),
                    b = caller_vector(c, of_b, FRG_F64, PLAN_COLUMNS);
    double f[2][PLAN_ROWS], g[2][PLAN_COLUMNS];
    float narrow[2 * PLAN_COLUMNS];
    frg_array narrow_g = frg_vector(narrow, FRG_F32, PLAN_COLUMNS);
    narrow_g.stride[0] = 2;
    frg_sinkhorn_report want, got;
    frg_sinkhorn *const one = solve_arrays(ctx, cost, NULL, NULL, &want);
    frg_sinkhorn *const two = solve_arrays(ctx, cost, &a, &b, &got);
    if (one && two) {
        CHECK(want.device_launches > 0 && want.device_waits > 0);
        CHECK_INT(got.device_launches, want.device_launches);
        CHECK_INT(got.device_bytes_in, want.device_bytes_in);
        CHECK_INT(got.device_bytes_out - want.device_bytes_out, MORE);
        CHECK_OK(ctx, frg_sinkhorn_potentials(one, f[0], g[0]));
        CHECK_OK(ctx, frg_sinkhorn_potentials_arrays(two, &a, &narrow_g));
        for (int j = 0; j < PLAN_COLUMNS; j++)
            CHECK(narrow[2 * j] == (float)g[0][j]);
        CHECK_OK(ctx, frg_sinkhorn_potentials_arrays(two, NULL, &b));
        caller_read(c, f[1], of_a, sizeof f[1]);
        caller_read(c, g[1], of_b, sizeof g[1]);
        CHECK_BITS(f[1], f[0], sizeof f[0]);
        CHECK_BITS(g[1], g[0], sizeof g[0]);
        CHECK_OK(ctx, frg_sinkhorn_start_arrays(one, &a, &b)); /* where it has come to */
        CHECK_OK(ctx, frg_sinkhorn_run(one, NULL));
        got = frg_sinkhorn_get(one);
        CHECK_SAYS(got.iterations <= 2, "%" PRId64 " passes", got.iterations);
        refused_vectors(ctx, cost, a, two);
    }
    frg_sinkhorn_destroy(one);
    frg_sinkhorn_destroy(two);
    caller_free(c, of_a);
    caller_free(c, of_b);
}

/** The whole of it on a device with double precision. */
TEST_UNUSED static void sinkhorn_in_place_on(frg_device which)
{
    sinkhorn_input *const in = &sinkhorn_in;
    caller c;
    draw_sinkhorn();
    if (!caller_open(&c, which))
        return;
    frg_context *ctx = caller_context(&c);
    void *const wide = caller_array(&c, in->wide, sizeof in->wide);
    void *const narrow = caller_array(&c, in->narrow, sizeof in->narrow);
    void *const columns = caller_array(&c, in->columns, sizeof in->columns);
    const frg_array host = plan_here(in->wide, FRG_F64);
    frg_array gaps = plan_there(&c, columns, FRG_F64);
    gaps.stride[0] = PLAN_TALL;
    if (ctx) {
        same_as_copied(ctx, &c, host, plan_there(&c, wide, FRG_F64), FRG_GW_STORE_AUTO, 0);
        same_as_copied(ctx, &c, host, gaps, FRG_GW_STORE_U16, 32);
        same_as_copied(ctx, &c, plan_here(in->narrow, FRG_F32), plan_there(&c, narrow, FRG_F32),
                       FRG_GW_STORE_F64, 256);
        refused_sinkhorn(ctx, &c);
        vectors_there(ctx, &c);
        vectors_in_place(ctx, &c, plan_there(&c, wide, FRG_F64));
    }
    frg_context_destroy(ctx);
    caller_free(&c, wide);
    caller_free(&c, narrow);
    caller_free(&c, columns);
    caller_close(&c);
}

#endif
