/* align_bodies.h - alignments whose distances, points, linear cost and plan to start from lie on a
 * device, in the caller's memory and queue: the alignment of copies in host memory, but for the
 * copies.
 *
 * Numbers are such that every sum of both is exact, in any order: distances are multiples of 2^-10
 * and at most 4, which is the scale; weights are 1/32 and 1/64, of points that number as many.  The
 * plans have the same bits therefore.
 */
#ifndef FOURGE_ALIGN_BODIES_H
#define FOURGE_ALIGN_BODIES_H

#include "caller.h"
#include "devices.h"
#include "gw/gw_align.h"
#include "gw/gw_stage_device.h"

enum {
    SIDE_X = 32,
    SIDE_Y = 64,
    SIDE_TALL = SIDE_X + 5, /* rows of the matrix that has gaps */
    SIDE_AXES = 3
};

typedef struct {
    double x[SIDE_X * SIDE_TALL]; /* SIDE_X columns of SIDE_TALL, gaps behind each */
    float y[SIDE_Y * SIDE_Y];
    double points_x[SIDE_X * SIDE_AXES];
    float points_y[SIDE_AXES * SIDE_Y]; /* column by column */
    double linear[SIDE_X * SIDE_Y], plan[SIDE_X * SIDE_Y];
} align_input;

static align_input align_in;

static double draw_distance(void)
{
    return floor(4096 * test_uniform()) / 1024;
}

static void draw_alignment(void)
{
    align_input *const in = &align_in;
    for (int k = 0; k < SIDE_X; k++)
        for (int i = 0; i <= k; i++)
            in->x[k * SIDE_TALL + i] = in->x[i * SIDE_TALL + k] = i == k ? 0 : draw_distance();
    for (int l = 0; l < SIDE_Y; l++)
        for (int j = 0; j <= l; j++)
            in->y[l * SIDE_Y + j] = in->y[j * SIDE_Y + l] = j == l ? 0 : (float)draw_distance();
    in->x[1] = in->x[SIDE_TALL] = 4;
    in->y[2] = in->y[2 * SIDE_Y] = 4;
    for (int e = 0; e < SIDE_X * SIDE_AXES; e++)
        in->points_x[e] = draw_distance();
    for (int e = 0; e < SIDE_Y * SIDE_AXES; e++)
        in->points_y[e] = (float)draw_distance();
    for (int e = 0; e < SIDE_X * SIDE_Y; e++) {
        in->linear[e] = draw_distance() / 4;
        in->plan[e] = 0.5 + test_uniform();
    }
}

/** What an alignment is given. */
typedef struct {
    frg_array x, y, linear, plan;
    bool fused, starts;
} align_arrays;

static align_arrays sides_here(bool points)
{
    align_input *const in = &align_in;
    align_arrays s = {.linear = frg_matrix(in->linear, FRG_F64, SIDE_X, SIDE_Y, SIDE_Y),
                      .plan = frg_matrix(in->plan, FRG_F64, SIDE_X, SIDE_Y, SIDE_Y)};
    if (points) {
        s.x = frg_matrix(in->points_x, FRG_F64, SIDE_X, SIDE_AXES, SIDE_AXES);
        s.y = frg_matrix(in->points_y, FRG_F32, SIDE_Y, SIDE_AXES, 1);
        s.y.stride[1] = SIDE_Y;
    } else {
        s.x = frg_matrix(in->x, FRG_F64, SIDE_X, SIDE_X, SIDE_TALL);
        s.y = frg_matrix(in->y, FRG_F32, SIDE_Y, SIDE_Y, SIDE_Y);
    }
    return s;
}

/** The same arrays in memory of the caller's on its device. */
static void move_sides(const caller *c, align_arrays *s)
{
    frg_array *const all[] = {&s->x, &s->y, &s->linear, &s->plan};
    for (int q = 0; q < 4; q++) {
        const frg_array *const a = all[q];
        const int64_t last = (a->shape[0] - 1) * a->stride[0] + (a->shape[1] - 1) * a->stride[1];
        all[q]->data = caller_array(c, a->data, (size_t)(last + 1) * frg_sizeof(a->dtype));
        all[q]->device = c->which;
    }
    caller_wait(c);
}

static void free_sides(const caller *c, align_arrays *s)
{
    caller_free(c, s->x.data);
    caller_free(c, s->y.data);
    caller_free(c, s->linear.data);
    caller_free(c, s->plan.data);
}

static frg_status open_alignment(frg_gw **out, frg_context *ctx, frgi_gw_place where,
                                 const align_arrays *s, const frg_gw_opts *o)
{
    frg_status status = frgi_gw_open(out, ctx, where, (frg_gw_side){.data = &s->x},
                                     (frg_gw_side){.data = &s->y}, s->fused ? &s->linear : NULL, o);
    return status == FRG_OK && s->starts ? frg_gw_start_plan(*out, s->plan) : status;
}

/** A few steps, without a test for an end. */
static frg_gw_opts few_steps(frg_gw_mode mode)
{
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.distance = FRG_GW_DISTANCE_MATRIX;
    o.mode = mode;
    if (mode == FRG_GW_SAMPLED || mode == FRG_GW_EXACT || mode == FRG_GW_LANDMARK) {
        o.epsilon = 0.1;
        o.max_iter = o.min_iter = 3;
    }
    if (mode == FRG_GW_SAMPLED) {
        o.anchors = 15;
        o.n_start = 1;
        o.start_from = FRG_GW_START_PRODUCT;
    }
    return o;
}

typedef struct {
    double plan[SIDE_X * SIDE_Y], numbers[3];
    frg_status status;
    frgi_device_counts opened;
    frg_host_steps host_steps;
    int64_t bytes_in, bytes_out;
} align_outcome;

static align_outcome run_alignment(frg_context *ctx, int group, const align_arrays *sides,
                                   const frg_gw_opts *o)
{
    align_outcome r = {.status = FRG_OK};
    frg_gw *s = NULL;
    frg_warnings_clear(ctx);
    const frgi_gw_place where = {.dev = frgi_device_of(ctx), .group = group};
    if (CHECK_OK(ctx, open_alignment(&s, ctx, where, sides, o))) {
        r.status = frg_gw_run(s, NULL);
        CHECK_SAYS(r.status >= 0, "%s", frg_message(ctx));
        CHECK_OK(ctx, frg_plan_rows(frg_gw_plan(s), 0, SIDE_X,
                                    frg_matrix(r.plan, FRG_F64, SIDE_X, SIDE_Y, SIDE_Y)));
        const frg_gw_report *const of = frg_gw_get(s);
        const double numbers[] = {of->energy, of->lower_bound, of->sharpened_energy};
        memcpy(r.numbers, numbers, sizeof numbers);
        r.opened = s->opened;
        r.host_steps = of->host_steps;
        r.bytes_in = of->device_bytes_in;
        r.bytes_out = of->device_bytes_out;
    }
    frg_gw_destroy(s);
    return r;
}

/** The same plan from arrays on the device as from those of the host. */
static void same_alignment(frg_context *ctx, int group, const align_arrays *here,
                           const align_arrays *there, const frg_gw_opts *o, align_outcome *of)
{
    static align_outcome want;
    want = run_alignment(ctx, group, here, o);
    *of = run_alignment(ctx, group, there, o);
    CHECK_INT(of->status, want.status);
    double gap = 0;
    for (int e = 0; e < SIDE_X * SIDE_Y; e++)
        gap = fmax(gap, fabs(of->plan[e] - want.plan[e]));
    CHECK_SAYS(memcmp(of->plan, want.plan, sizeof want.plan) == 0,
               "mode %d in groups of %d: plans differ by %.3g", (int)o->mode, group, gap);
    CHECK_BITS(of->numbers, want.numbers, sizeof want.numbers);
    of->bytes_in -= want.bytes_in;
    of->bytes_out -= want.bytes_out;
}

enum { ALL_DISTANCES_OF_BOTH = 4 * (SIDE_X * SIDE_X + SIDE_Y * SIDE_Y) };

/** Distances: those of the host's copy, where none goes there and no row comes over before the host
 *  asks for one. */
static void matrices_in_place(frg_context *ctx, const caller *c, int group, bool all)
{
    enum { OF_A_POINT = sizeof(double) * (SIDE_X + SIDE_Y) };
    static align_outcome r;
    align_arrays here = sides_here(false), there = here;
    move_sides(c, &there);
    frg_gw_opts o = few_steps(FRG_GW_SAMPLED);
    same_alignment(ctx, group, &here, &there, &o, &r);
    /* what is seen of every row, and the sums of the rows for their means */
    CHECK_INT(r.opened.bytes_out, (LV_SEEN_COUNT + 1) * OF_A_POINT);
    CHECK_INT(host_calls(&r.host_steps, "distances"), 0);
    CHECK_INT(host_calls(&r.host_steps, "means of distances"), 0);
    CHECK(r.bytes_in <= 8 * OF_A_POINT - ALL_DISTANCES_OF_BOTH);
    CHECK(r.bytes_out <= 20 * OF_A_POINT + ALL_DISTANCES_OF_BOTH);
    if (all) {
        here.fused = there.fused = here.starts = there.starts = true;
        o.linear_weight = 0.25;
        same_alignment(ctx, group, &here, &there, &o, &r);
        here.fused = there.fused = here.starts = there.starts = false;
        o = few_steps(FRG_GW_SAMPLED);
        o.rank = 3;
        same_alignment(ctx, group, &here, &there, &o, &r);
    }
    o = few_steps(FRG_GW_EXACT);
    align_in.x[3] = align_in.x[3 * SIDE_TALL] = (double)INFINITY;
    free_sides(c, &there);
    there = here;
    move_sides(c, &there);
    same_alignment(ctx, group, &here, &there, &o, &r);
    o = few_steps(FRG_GW_AUTO);
    same_alignment(ctx, group, &here, &there, &o, &r);
    align_in.x[3] = align_in.x[3 * SIDE_TALL] = 1;
    free_sides(c, &there);
}

/** Points, which come over for the host's checks. */
static void points_in_place(frg_context *ctx, const caller *c)
{
    static align_outcome r;
    static const frg_gw_distance kinds[] = {FRG_GW_DISTANCE_EUCLIDEAN, FRG_GW_DISTANCE_PRECOMPUTED};
    align_arrays here = sides_here(true), there = here;
    move_sides(c, &there);
    for (int q = 0; q < 2; q++) {
        frg_gw_opts o = few_steps(q ? FRG_GW_SAMPLED : FRG_GW_LANDMARK);
        o.distance = kinds[q];
        o.k = 5;
        same_alignment(ctx, 0, &here, &there, &o, &r);
        CHECK_INT(r.bytes_out, SIDE_X * SIDE_AXES * 8 + SIDE_Y * SIDE_AXES * 4);
        CHECK_INT(r.bytes_in, 0);
    }
    free_sides(c, &there);
}

/** What is wrong with a matrix there is told as of one in host memory. */
static void told_alike(frg_context *ctx, const caller *c, double x01, double x10, int64_t columns)
{
    char says[2][200] = {{0}}, where[2][80] = {{0}};
    frg_status status[2];
    align_in.x[SIDE_TALL * 1] = x10; /* columns one after the other: entry (0, 1) */
    align_in.x[1] = x01;
    for (int q = 0; q < 2; q++) {
        align_arrays s = sides_here(false);
        frg_gw *gw = NULL;
        const frg_gw_opts o = few_steps(FRG_GW_SAMPLED);
        s.x.shape[1] = columns;
        if (q)
            move_sides(c, &s);
        frg_warnings_clear(ctx);
        status[q] = open_alignment(&gw, ctx, (frgi_gw_place){.dev = frgi_device_of(ctx)}, &s, &o);
        snprintf(says[q], sizeof says[q], "%s",
                 status[q] < 0 ? frg_message(ctx) : frg_warning_message(ctx, 0));
        snprintf(where[q], sizeof where[q], "%s", status[q] < 0 ? frg_error_where(ctx) : "");
        frg_gw_destroy(gw);
        if (q)
            free_sides(c, &s);
    }
    CHECK_INT(status[1], status[0]);
    CHECK(says[0][0]);
    CHECK_TEXT(says[1], says[0]);
    CHECK_TEXT(where[1], where[0]);
    align_in.x[SIDE_TALL] = align_in.x[1] = 4;
}

static void refused_alignments(frg_context *ctx, const caller *c)
{
    told_alike(ctx, c, (double)NAN, 4, SIDE_X);
    told_alike(ctx, c, 4, -0.5, SIDE_X);
    told_alike(ctx, c, 1e30, 4, SIDE_X);
    told_alike(ctx, c, 4, 3, SIDE_X); /* a warning */
    told_alike(ctx, c, 4, 4, SIDE_X - 1);
    align_arrays s = sides_here(false);
    frg_gw *gw = NULL;
    frg_gw_opts o = few_steps(FRG_GW_AUTO);
    const frgi_gw_place where = {.dev = frgi_device_of(ctx)};
    move_sides(c, &s);
    o.dtype = FRG_GW_DTYPE_F64;
    CHECK_STATUS(open_alignment(&gw, ctx, where, &s, &o), FRG_UNSUPPORTED);
    CHECK(strstr(frg_message(ctx), "dtype f64 with the source distances on ") &&
          strstr(frg_message(ctx), "give a copy in host memory"));
    o.dtype = FRG_GW_DTYPE_AUTO;
    s.y.device.index = 5;
    CHECK_STATUS(open_alignment(&gw, ctx, where, &s, &o), FRG_BAD_ARG);
    CHECK(strstr(frg_message(ctx), "target lies on ") && !gw);
    s.y.device.index = 0;
    CHECK_STATUS(open_alignment(&gw, ctx, (frgi_gw_place){.dev = NULL}, &s, &o), FRG_NO_DEVICE);
    CHECK_SAYS(strstr(frg_message(ctx), "source") != NULL, "%s", frg_message(ctx));
    free_sides(c, &s);
}

/** The whole of it on a device with double precision; `all`: kernels of every mode, which the
 *  compiler of a driver takes seconds for. */
TEST_UNUSED static void align_in_place_on(frg_device which, bool all)
{
    caller c;
    draw_alignment();
    if (!caller_open(&c, which))
        return;
    frg_context *ctx = caller_context(&c);
    if (ctx) {
        matrices_in_place(ctx, &c, 32, all);
        matrices_in_place(ctx, &c, 256, false);
        if (all)
            points_in_place(ctx, &c);
        refused_alignments(ctx, &c);
    }
    frg_context_destroy(ctx);
    caller_close(&c);
}

#endif
