/* driver_bodies.h - what tests do on the stand-in of every driver, behind its with_driver(): work that
 * runs late, each call failing once, a lost device, little memory. */
#ifndef FOURGE_DRIVER_BODIES_H
#define FOURGE_DRIVER_BODIES_H

#include "align_bodies.h"
#include "caller_bodies.h"
#include "device_bodies.h"
#include "driver.h"
#include "fault.h"
#include "fe/fe_demean.h"
#include "sinkhorn_bodies.h"

static void on_driver(device_body body, int size)
{
    on_device(test_context(), driven, body, size);
    check_clean("the end");
}

static void arena_late(void)
{
    if (with_driver())
        on_driver(arena, 64);
}

/** Nothing has run before somebody waits, and the counts of both sides are the same. */
static void late(frg_context *ctx, frgi_device *dev, int size)
{
    enum { COUNT = 100 };
    double in[COUNT], out[COUNT];
    const frgi_program *p;
    frgi_buffer x = {0};
    for (int i = 0; i < COUNT; i++) {
        in[i] = i;
        out[i] = -1;
    }
    CHECK_OK(ctx, frgi_device_load(dev, &frgi_kernels_basic, FRGI_F64, &p));
    CHECK_OK(ctx, frgi_device_alloc(dev, sizeof in, "x", &x));
    CHECK_OK(ctx, frgi_device_put(dev, x, in, sizeof in));
    CHECK_OK(ctx, LAUNCH(dev, p, "axpy", 1, 1, size, BUFFER(x), BUFFER(x), REAL(1), INT64(COUNT)));
    CHECK_OK(ctx, frgi_device_get(dev, out, x, sizeof out));
    CHECK(out[1] == -1);
    CHECK_INT(driver->waits, 0);
    CHECK_OK(ctx, frgi_device_wait(dev));
    CHECK(out[1] == 2 && out[COUNT - 1] == 2 * (COUNT - 1));
    const frgi_device_counts *const ours = frgi_device_counted(dev);
    CHECK_INT(driver->launches, ours->launches);
    CHECK_INT(driver->waits, ours->waits);
    CHECK_INT(driver->copies, ours->copies);
    CHECK_INT(driver->bytes_in, ours->bytes_in);
    CHECK_INT(driver->bytes_out, ours->bytes_out);
    frgi_device_free(dev, &x);
}

static void runs_late(void)
{
    if (with_driver())
        on_driver(late, 32);
}

static frg_status whole_body(frg_context *ctx, frg_device which, const void *user, double *out)
{
    return whole_on(ctx, which, user, out);
}

static void each_call_fails(void)
{
    static input in;
    double want[4], got[4];
    if (!with_driver())
        return;
    draw(&in, FRGI_F64);
    fail_each_call(whole_body, &in, 40, want, got, sizeof want);
}

enum { ROWS_MOST = 3000 };

/** Two weighted columns of two effects, the first of them with a slope or without. */
typedef struct {
    frg_fe_method method;
    int rows, levels[2], slopes;
} demeaning;

typedef struct {
    int32_t codes[2 * ROWS_MOST];
    double in[2 * ROWS_MOST], weights[ROWS_MOST], z[ROWS_MOST];
} demeaned;

/** A plan of the columns on dev. */
static frg_status plan_on(frg_context *ctx, frgi_device *dev, const demeaning *job, demeaned *d,
                          frg_demean **plan)
{
    const int n = job->rows;
    const frg_slope slope = {0, d->z};
    frg_demean_opts o;
    frg_demean_defaults(&o, sizeof o);
    o.method = job->method;
    for (int i = 0; i < n; i++) {
        d->codes[2 * i] = i % job->levels[0];
        d->codes[2 * i + 1] = (int32_t)((int64_t)i * i % 7919 % job->levels[1]);
        d->weights[i] = 1 + i % 3;
        d->z[i] = i * 7 % 31;
        d->in[2 * i] = i % 11;
        d->in[2 * i + 1] = (double)((int64_t)i * i % 13);
    }
    const frg_array w = frg_vector(d->weights, FRG_F64, n);
    return frgi_fe_demean_open(plan, ctx, (fe_device_place){dev, 0, NULL},
                               frg_matrix(d->codes, FRG_I32, n, 2, 2), &w,
                               &(fe_slopes_asked){&slope, job->slopes, 0}, &o);
}

/** They are demeaned on a device of their own. */
static frg_status demean_on(frg_context *ctx, frg_device which, const void *user, double *out)
{
    static demeaned d;
    const demeaning *const job = user;
    const int n = job->rows;
    frgi_device *dev = NULL;
    frg_demean *plan = NULL;
    frg_status status = frgi_device_open(&dev, ctx, which);
    if (status >= 0)
        status = plan_on(ctx, dev, job, &d, &plan);
    if (status >= 0)
        status = frg_demean_run(plan, frg_matrix(d.in, FRG_F64, n, 2, 2),
                                frg_matrix(out, FRG_F64, n, 2, 2), NULL, NULL);
    frg_demean_destroy(plan);
    frgi_device_close(&dev);
    return status;
}

/** Columns in the caller's memory, which nobody has waited for, are demeaned in place: the bits of
 *  the host's machine, and no column goes over. */
static void demeaning_in_place(void)
{
    static const demeaning job = {FRG_FE_CG, ROWS_MOST, {900, 20}, 0};
    static double want[2 * ROWS_MOST], got[2 * ROWS_MOST];
    static demeaned d;
    caller c;
    frg_demean *plan = NULL;
    if (!with_driver() || !caller_open(&c, driven))
        return;
    frg_context *ctx = caller_context(&c);
    CHECK_OK(ctx, demean_on(ctx, (frg_device){FRG_CPU, 0}, &job, want));
    CHECK_OK(ctx, plan_on(ctx, frgi_device_of(ctx), &job, &d, &plan));
    void *const columns = caller_array(&c, d.in, sizeof d.in);
    const frg_array x = caller_matrix(&c, columns, FRG_F64, ROWS_MOST, 2);
    CHECK_OK(ctx, frg_demean_run(plan, x, x, NULL, NULL));
    caller_read(&c, got, columns, sizeof got);
    CHECK_BITS(got, want, sizeof want);
    const frg_demean_report before = frg_demean_get(plan); /* the rows, too */
    CHECK_OK(ctx, frg_demean_run(plan, x, x, NULL, NULL));
    const frg_demean_report now = frg_demean_get(plan);
    CHECK(now.device_bytes_in + now.device_bytes_out - before.device_bytes_in -
              before.device_bytes_out <
          ROWS_MOST * 8);
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    caller_free(&c, columns);
    caller_close(&c);
    check_clean("demeaned in place");
}

static void each_call_of_demeaning_fails(void)
{
    enum { FEW = 40 };
    static const demeaning jobs[] = {{FRG_FE_CG, FEW, {9, 5}, 0}, {FRG_FE_LSMR, FEW, {9, 5}, 1}};
    double want[2 * FEW], got[2 * FEW];
    for (int m = 0; m < 2 && with_driver(); m++)
        fail_each_call(demean_on, &jobs[m], 60, want, got, sizeof want);
}

/** Groups of a launch in random order, launches late: the bits of the host's machine, which runs the
 *  same plain C one group after another, so that no group takes from another of its launch. */
static void demeaning_in_any_order(void)
{
    static const demeaning jobs[] = {{FRG_FE_CG, ROWS_MOST, {900, 700}, 0},
                                     {FRG_FE_LSMR, ROWS_MOST, {900, 700}, 0},
                                     {FRG_FE_LSMR, ROWS_MOST, {900, 700}, 1}};
    static double want[2 * ROWS_MOST], got[2 * ROWS_MOST];
    frg_context *ctx = test_context();
    for (int m = 0; m < 3 && with_driver(); m++) {
        CHECK_OK(ctx, demean_on(ctx, (frg_device){FRG_CPU, 0}, &jobs[m], want));
        CHECK_OK(ctx, demean_on(ctx, driven, &jobs[m], got));
        CHECK_BITS(got, want, sizeof want);
        check_clean("demeaned");
    }
    frg_context_destroy(ctx);
}

/** A device that is lost in the middle stays so until it is opened again. */
static void lost(void)
{
    frgi_device *dev;
    frgi_buffer x = {0};
    if (!with_driver())
        return;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, frgi_device_open(&dev, ctx, driven));
    CHECK_OK(ctx, frgi_device_alloc(dev, 100, "x", &x));
    driver->lose_at = driver->calls + 1;
    CHECK_STATUS(frgi_device_fill(dev, x, 0, 100), FRG_NO_DEVICE);
    CHECK_TEXT(frg_error_code(ctx), "FRG-CORE-014");
    const int64_t calls = driver->calls;
    CHECK_STATUS(frgi_device_wait(dev), FRG_NO_DEVICE);
    CHECK(strstr(frg_message(ctx), "has failed before"));
    CHECK_INT(driver->calls, calls);
    driver->lose_at = 0;
    frgi_device_free(dev, &x);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    check_clean("lost");
}

static void in_place(void)
{
    if (with_driver()) {
        in_place_on(driven);
        check_clean("in place");
    }
}

/** Work on the caller's arrays in place whose k-th call fails; was there one? */
typedef bool (*kth_call)(const caller *c, const void *arrays, int64_t k, int64_t *refused);

/** Each call of it fails, each `step`-th of them, and at least `least` are made. */
static void each_call_of(kth_call work, const caller *c, const void *arrays, int64_t step,
                         int64_t least)
{
    int64_t k = 1 - step, tried = 0, refused = 0;
    do {
        k += step;
        tried++;
    } while (work(c, arrays, k, &refused));
    CHECK_SAYS(refused > tried / 2 && k > least, "%" PRId64 " of %" PRId64 " were told", refused,
               tried);
}

/** arrays: one vector, which is added to another. */
static bool kth_call_in_place_fails(const caller *c, const void *arrays, int64_t k,
                                    int64_t *refused)
{
    static const float ones[PLACED] = {1};
    const frg_array x = *(const frg_array *)arrays;
    float got = 0;
    const int64_t before = driver->objects;
    frg_context *ctx = caller_context(c);
    void *const py = caller_array(c, ones, sizeof ones);
    if (!ctx)
        return false;
    fail_call(k);
    frg_status status = add_in_place(frgi_device_of(ctx), caller_vector(c, py, FRG_F32, PLACED), x);
    if (status >= 0)
        status = frg_context_set_stream(ctx, NULL);
    if (status >= 0)
        status = frg_context_set_stream(ctx, c->queue);
    const bool made = call_was_made(status, refused);
    if (status < 0)
        CHECK(strstr(frg_message(ctx), ":0: ") && frg_error_code(ctx)[0]);
    frg_context_destroy(ctx);
    caller_read(c, &got, py, sizeof got);
    CHECK(status < 0 ? got == 1 || got == 1 + 2 * (SKIPPED + 1) : got == 1 + 2 * (SKIPPED + 1));
    caller_free(c, py);
    CHECK_INT(driver->objects, before);
    return made;
}

static void each_call_in_place_fails(void)
{
    static float in[SKIPPED + PLACED];
    caller c;
    for (int i = 0; i < SKIPPED + PLACED; i++)
        in[i] = (float)(i + 1);
    if (!with_driver() || !caller_open(&c, driven))
        return;
    void *const px = caller_array(&c, in, sizeof in);
    frg_array x = caller_vector(&c, px, FRG_F32, PLACED);
    x.offset = SKIPPED * sizeof(float);
    each_call_of(kth_call_in_place_fails, &c, &x, 1, 10);
    caller_free(&c, px);
    caller_close(&c);
    check_clean("in place, with a call that failed");
}

static void sinkhorn_in_place(void)
{
    if (with_driver()) {
        sinkhorn_in_place_on(driven);
        check_clean("transport in place");
    }
}

static void alignments_in_place(void)
{
    if (with_driver()) {
        align_in_place_on(driven, true);
        check_clean("alignments in place");
    }
}

/** arrays: the sides of an alignment that is opened. */
static bool kth_call_of_opening_fails(const caller *c, const void *arrays, int64_t k,
                                      int64_t *refused)
{
    frg_gw_opts o = few_steps(FRG_GW_SAMPLED);
    const frgi_program *p;
    frg_gw *gw = NULL;
    frg_context *ctx = caller_context(c);
    if (!ctx)
        return false;
    const frgi_gw_place where = {.dev = frgi_device_of(ctx)};
    o.linear_weight = 0.25;
    for (int type = 0; type < FRGI_TYPES; type++)
        CHECK_OK(ctx, frgi_device_load(where.dev, &frgi_kernels_gw, type, &p));
    const int64_t before = driver->objects;
    const size_t held = driver->held, bytes = frg_bytes_held(ctx);
    fail_call(k);
    const frg_status status = open_alignment(&gw, ctx, where, arrays, &o);
    frg_gw_destroy(gw);
    const bool made = call_was_made(status, refused);
    CHECK_INT(driver->objects, before);
    CHECK(driver->held == held && frg_bytes_held(ctx) == bytes);
    frg_context_destroy(ctx);
    return made;
}

static void each_call_of_opening_fails(void)
{
    caller c;
    if (!with_driver() || !caller_open(&c, driven))
        return;
    draw_alignment();
    align_arrays s = sides_here(false);
    s.fused = true;
    move_sides(&c, &s);
    each_call_of(kth_call_of_opening_fails, &c, &s, 1, 40);
    free_sides(&c, &s);
    caller_close(&c);
    check_clean("alignments in place, with a call that failed");
}

enum { SMALL_ROWS = 5, SMALL_COLUMNS = 6, SMALL = SMALL_ROWS * SMALL_COLUMNS };

/** Transport of few costs of the caller's into its array `plan`, the first of them its weights, and
 *  the potentials back. */
static frg_status few_in_place(frg_context *ctx, frg_array cost, frg_array plan)
{
    frg_sinkhorn_opts o;
    frg_sinkhorn *s = NULL;
    frg_array vector = cost;
    vector.ndim = 1;
    vector.shape[0] = SMALL_ROWS;
    vector.stride[0] = 1;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.max_iter = 2;
    frg_status status = frg_sinkhorn_create_arrays(&s, ctx, cost, &vector, NULL, &o);
    if (status >= 0)
        status = frg_sinkhorn_run(s, NULL);
    if (status >= 0)
        status = frg_plan_rows(frg_sinkhorn_plan(s), 0, SMALL_ROWS, plan);
    vector.data = plan.data;
    if (status >= 0)
        status = frg_sinkhorn_potentials_arrays(s, &vector, NULL);
    if (status >= 0)
        status = frg_sinkhorn_start_arrays(s, &vector, NULL);
    frg_sinkhorn_destroy(s);
    return status;
}

/** arrays: the costs of that. */
static bool kth_call_of_transport_fails(const caller *c, const void *arrays, int64_t k,
                                        int64_t *refused)
{
    const frg_array cost = *(const frg_array *)arrays;
    const frgi_program *p;
    frg_context *ctx = caller_context(c);
    if (!ctx)
        return false;
    frgi_device *const dev = frgi_device_of(ctx);
    CHECK_OK(ctx, frgi_device_load(dev, &frgi_kernels_gw, FRGI_F32, &p));
    CHECK_OK(ctx, frgi_device_load(dev, &frgi_kernels_gw, FRGI_F64, &p));
    void *const plan = caller_array(c, NULL, SMALL * sizeof(double));
    const int64_t before = driver->objects;
    const size_t held = driver->held, bytes = frg_bytes_held(ctx);
    fail_call(k);
    const frg_status status =
        few_in_place(ctx, cost, caller_matrix(c, plan, FRG_F64, SMALL_ROWS, SMALL_COLUMNS));
    const bool made = call_was_made(status, refused);
    if (status < 0)
        CHECK(strstr(frg_message(ctx), ":0: ") && frg_error_code(ctx)[0]);
    else
        CHECK(status == FRG_OK || status == FRG_MAX_ITER);
    CHECK_INT(driver->objects, before);
    CHECK(driver->held == held && frg_bytes_held(ctx) == bytes);
    frg_context_destroy(ctx);
    caller_free(c, plan);
    return made;
}

static void each_call_of_transport_fails(void)
{
    double costs[SMALL];
    caller c;
    for (int e = 0; e < SMALL; e++)
        costs[e] = e * 7 % 11 / 26.0; /* the first five, weights, sum to 1 */
    if (!with_driver() || !caller_open(&c, driven))
        return;
    void *const array = caller_array(&c, costs, sizeof costs);
    caller_wait(&c);
    frg_array cost = caller_matrix(&c, array, FRG_F64, SMALL_ROWS, SMALL_COLUMNS);
    each_call_of(kth_call_of_transport_fails, &c, &cost, test_size(1, 7), 60);
    caller_free(&c, array);
    caller_close(&c);
    check_clean("transport in place, with a call that failed");
}

static void less_memory(void)
{
    frgi_device *dev;
    frgi_buffer x = {0}, y = {0};
    if (!with_driver())
        return;
    driver->memory = 1 << 20;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, frgi_device_open(&dev, ctx, driven));
    CHECK_STATUS(frgi_device_alloc(dev, 2 << 20, "x", &x), FRG_NO_MEMORY);
    CHECK_OK(ctx, frgi_device_alloc(dev, 600000, "x", &x));
    CHECK_STATUS(frgi_device_alloc(dev, 600000, "y", &y), FRG_NO_MEMORY);
    CHECK(strstr(frg_message(ctx), driven.kind == FRG_CUDA ? "cuMemAlloc" : "clCreateBuffer"));
    frgi_device_free(dev, &x);
    CHECK_OK(ctx, frgi_device_alloc(dev, 600000, "y", &y)); /* no error that stays */
    frgi_device_free(dev, &y);
    frgi_device_close(&dev);
    frg_context_destroy(ctx);
    check_clean("little memory");
}

static frg_status whole(frg_context *ctx, void *user, uint64_t *hash)
{
    double out[4];
    TRY(whole_on(ctx, driven, user, out));
    fault_hash(hash, out, sizeof out);
    return FRG_OK;
}

static void faults(void)
{
    static input in;
    if (!with_driver())
        return;
    draw(&in, FRGI_F64);
    CHECK(fault_sweep("a device of a driver", whole, &in, 1) > 4);
    check_clean("memory refused");
}

#endif
