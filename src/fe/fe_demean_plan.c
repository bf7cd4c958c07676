/* fe_demean_plan.c - the demeaner's plan: options, creation, the memory of a run, the report.
 *
 * A run of p columns takes them in blocks as wide as the CPU level's lanes.  Every block keeps its
 * effects (n_elim and n_reduced numbers a lane); the work memory of a width is shared by all blocks
 * of that width.  One layout, taken with and without a base, is both the allocation and the bound
 * that a dry run prints.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/opts.h"
#include "device/device.h"
#include "fe/fe_demean_plan.h"
#include "fe/fe_device.h"
#include "fe/fe_graph.h"
#include "fe/fe_steps.h"
#include "fe/fe_subproblems.h"

static const double SECONDS_PER_ROW_AND_COLUMN = 4e-9; /* seen on easy designs, one thread */
static const double RANK_MOST = 4e9, RANK_CHEAP = 3e7,
                    RANK_CHEAP_PER_ROW = 20; /* multiply-adds modulo a prime, 3 ns each */
static const double MODULAR_MOST = 2e9, RANK_PER_ENTRY = 300; /* that an entry takes to order */
static const double TOL_F32 =
    3.6e-7; /* three roundings of float32: what float32 columns can reach */

/* ---- options and plan ------------------------------------------------------------------------ */

#define OPTIONS_OF frg_demean_opts
static const frg_option options[] = {
#include "fe/demean_opts.def"
    {.name = NULL}};

const frg_option *frg_demean_options(void)
{
    return options;
}

void frg_demean_defaults(frg_demean_opts *o, size_t struct_size)
{
    frg_demean_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

static frg_status check_opts(frg_context *ctx, const frg_demean_opts *o)
{
    return frgi_options_check(ctx, options, o);
}

static bool is_by_rows(const frg_demean_opts *o)
{
    return o->method == FRG_FE_LSMR || o->method == FRG_FE_MLSMR || o->method == FRG_FE_MAP;
}

/** Refuses options that the chosen method does not have. */
static frg_status check_use(frg_context *ctx, const frg_demean_opts *o, bool slopes, bool device)
{
    frg_demean_opts usual;
    frg_demean_defaults(&usual, sizeof usual);
    const bool map = o->method == FRG_FE_MAP, direct = o->method == FRG_FE_DIRECT;
    const bool by_rows = is_by_rows(o), by_lsmr = !map && (by_rows || slopes);
    const struct {
        bool wrong;
        const char *says;
    } rules[] = {
        {!by_lsmr && o->cond_limit > 0,
         "cond_limit stops lsmr alone: take method lsmr, or leave cond_limit out"},
        {(by_rows || direct) && o->precond != FRG_FE_PRECOND_AUTO,
         "precond is of methods auto and cg; lsmr, map and direct have what they need"},
        {slopes && (o->precond == FRG_FE_PRECOND_AC || o->precond == FRG_FE_PRECOND_SCHWARZ),
         "varying slopes have no approximate Cholesky factor: leave precond at auto"},
        {(by_rows || slopes || direct) && o->dtype == FRG_FE_MIXED && !(by_rows && device),
         "dtype mixed is of conjugate gradients: methods auto and cg, without varying slopes"},
        {map && o->max_iter != usual.max_iter,
         "max_iter counts Krylov steps: leave it out, method map has max_sweeps"},
        {!map && o->max_sweeps != usual.max_sweeps,
         "max_sweeps is of method map: leave it out, other methods have max_iter"},
        {o->fused != FRG_FE_FUSED_AUTO && !device,
         "fused says where a device computes the scalars of its steps, and this runs on the cpu: "
         "leave fused at auto, or give a device (--device, device=)"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].wrong) {
            FAIL(ctx, E_OPTION, "%s", rules[i].says);
        }
    }
    return FRG_OK;
}

void frgi_fe_say_raised(frg_context *ctx, double tol, double raised, const char *what)
{
    char text[128];
    snprintf(text, sizeof text, "tol was raised from %g to %.2g, what %s can reach", tol, raised,
             what);
    if (!frgi_has_said(ctx, text)) {
        frgi_warn(ctx, W_TOL_RAISED, "%s", text);
    }
}

void frgi_fe_take_tol(frg_demean *d, double tol)
{
    const bool raised = d->opts.dtype == FRG_FE_F32 && tol < TOL_F32;
    if (raised) {
        frgi_fe_say_raised(d->ctx, tol, TOL_F32, "float32");
    }
    d->opts.tol = d->tol_used = raised ? TOL_F32 : tol;
}

/** The device's half of the cascade or of the row-space path, which owns it. */
static frg_status open_device(frg_demean *d, fe_device_place where)
{
    fe_device *device = NULL;
    const bool closed = d->rows.n_reduced == 0;
    if (where.dev && !(closed && !frgi_device_is(where.dev)->f64)) {
        const fe_basis *const slopes = d->has_slopes ? frgi_fe_row_lsmr_basis(d->row_lsmr) : NULL;
        TRY(frgi_fe_device_create(&device, d->ctx, where, &d->rows, slopes, &d->opts));
        if (d->row_lsmr) {
            frgi_fe_row_lsmr_take_device(d->row_lsmr, device);
        } else {
            frgi_fe_cascade_take_device(d->cascade, device);
            d->lanes_there = frgi_fe_device_has_passes(device) ? frgi_fe_device_lanes(device) : 0;
        }
    }
    return FRG_OK;
}

frg_status frg_demean_create(frg_demean **out, frg_context *ctx, frg_array codes,
                             const frg_array *weights, const frg_slope *slopes, int n_slopes,
                             uint64_t no_intercept, const frg_demean_opts *o)
{
    if (ctx) {
        frgi_run_begins(ctx);
    }
    return frgi_fe_demean_create(out, ctx, codes, weights, slopes, n_slopes, no_intercept, o,
                                 &frgi_fe_host_steps);
}

frg_status frgi_fe_demean_create(frg_demean **out, frg_context *ctx, frg_array codes,
                                 const frg_array *weights, const frg_slope *slopes, int n_slopes,
                                 uint64_t no_intercept, const frg_demean_opts *o,
                                 const fe_steps *steps)
{
    if (!out || !ctx) {
        return FRG_BAD_ARG;
    }
    const fe_device_place where = {frgi_device_of(ctx), 0, steps};
    return frgi_fe_demean_open(out, ctx, where, codes, weights,
                               &(fe_slopes_asked){slopes, n_slopes, no_intercept}, o);
}

/* ---- rows on the disk ------------------------------------------------------------------------ */

/** What a plan is made of: the caller's arrays, or copies in the order of the eliminated levels. */
typedef struct {
    frg_array codes, weights;
    fe_slopes_asked asked;
    bool weighted, stay; /* stay: the codes do, as long as the plan */
    int32_t *own_codes;
    double *own_weights, *own_values; /* of the slopes */
    frg_slope *own_slopes;
    const frg_layout_files *files; /* that keep the layout; NULL: it is not kept */
} plan_rows;

static void drop_rows(plan_rows *r, frg_context *ctx)
{
    DROP(ctx, &r->own_codes);
    DROP(ctx, &r->own_weights);
    DROP(ctx, &r->own_values);
    DROP(ctx, &r->own_slopes);
}

/** Slopes that are no numbers are refused in the rows' own order, which names the row. */
static bool are_numbers(const plan_rows *r)
{
    bool numbers = true;
    for (int k = 0; k < r->asked.count; k++) {
        const double *const z = r->asked.slopes[k].z;
        for (int64_t i = 0; z && i < r->codes.shape[0] && numbers; i++) {
            numbers = isfinite(z[i]);
        }
        numbers &= z != NULL;
    }
    return numbers;
}

/** The columns of an array in the order of the levels, row after row. */
static frg_status bring(frg_demean *d, const frg_array *a, void *to)
{
    const int count = a->ndim > 1 ? (int)a->shape[1] : 1;
    const size_t size = frg_sizeof(a->dtype);
    const frgi_columns x = {frgi_array_base(a), a->stride[0], count > 1 ? a->stride[1] : 1, count,
                            size};
    const frgi_columns y = {to, count, 1, count, size};
    return frgi_row_order_bring(&d->detour.order, d->ctx, &x, &y);
}

/** Slopes with the same values keep them together. */
static frg_status bring_slopes(frg_demean *d, plan_rows *r)
{
    const frg_slope *const slopes = r->asked.slopes;
    const int64_t n = r->codes.shape[0];
    const int count = r->asked.count;
    TRY(NEW(d->ctx, &r->own_slopes, count, "slopes"));
    TRY(NEW(d->ctx, &r->own_values, frgi_mul((size_t)count, (size_t)n), "slopes by level"));
    for (int k = 0; k < count; k++) {
        double *const to = r->own_values + k * n;
        int same = 0;
        while (slopes[same].z != slopes[k].z) {
            same++;
        }
        r->own_slopes[k] = slopes[k];
        r->own_slopes[k].z = same < k ? r->own_slopes[same].z : to;
        const frg_array z = frg_vector((double *)(uintptr_t)slopes[k].z, FRG_F64, n);
        TRY(same < k ? FRG_OK : bring(d, &z, to));
    }
    r->asked.slopes = r->own_slopes;
    return FRG_OK;
}

/** Weights and slopes in the order of the levels. */
static frg_status bring_values(frg_demean *d, plan_rows *r)
{
    const int64_t n = r->codes.shape[0];
    if (r->weighted) {
        TRY(NEW(d->ctx, &r->own_weights, n, "weights by level"));
        TRY(bring(d, &r->weights, r->own_weights));
        r->weights = frg_vector(r->own_weights, FRG_F64, n);
    }
    return r->asked.count ? bring_slopes(d, r) : FRG_OK;
}

/** The rows in the order of the eliminated levels, where they are on the disk and scattered. */
static frg_status bring_together(frg_demean *d, plan_rows *r)
{
    frg_context *const ctx = d->ctx;
    const int64_t n = r->codes.shape[0], q = r->codes.shape[1];
    int32_t *level;
    int64_t levels = 0;
    if (!frgi_spools(ctx) || !are_numbers(r)) {
        return FRG_OK;
    }
    TRY(frgi_fe_rows_scattered(ctx, &r->codes, r->weighted ? &r->weights : NULL, &level, &levels));
    if (!level) {
        return FRG_OK;
    }
    d->detour.there = true;
    const frg_status status = frgi_row_order_create(&d->detour.order, ctx, level, n, levels);
    DROP(ctx, &level);
    TRY(status);
    TRY(NEW(ctx, &r->own_codes, frgi_mul((size_t)n, (size_t)q), "codes by level"));
    TRY(bring(d, &r->codes, r->own_codes));
    r->codes = frg_matrix(r->own_codes, FRG_I32, n, q, q);
    return bring_values(d, r);
}

/** The layout of the rows from the file that keeps it, or made, and put there. */
static frg_status lay_out(frg_demean *d, plan_rows *r)
{
    const frg_layout_files *const files = r->files;
    frg_context *const ctx = d->ctx;
    const int64_t n = r->codes.shape[0];
    bool read = false;
    if (files && n > 0) {
        TRY(frgi_fe_layout_load(d, files, n, (int)r->codes.shape[1], &read));
    }
    if (read) {
        frgi_log(ctx, 1, "the order of the rows is that of '%s'", files->order);
        TRY(d->detour.there ? bring_values(d, r) : FRG_OK);
        if (r->stay && !d->detour.there) {
            frgi_fe_rows_lend(&d->rows, ctx, &r->codes);
        }
        return frgi_fe_rows_weigh(&d->rows, ctx, r->weighted ? &r->weights : NULL);
    }
    TRY(bring_together(d, r));
    d->rows.index_lent = r->stay && !r->own_codes;
    TRY(frgi_fe_rows_create(&d->rows, ctx, &r->codes, r->weighted ? &r->weights : NULL));
    if (files && n > 0) {
        frgi_log(ctx, 1, "the order of the rows is made");
        return frgi_fe_layout_save(d, files);
    }
    return FRG_OK;
}

/* ---- a plan ---------------------------------------------------------------------------------- */

/** The layout of the rows and what solves on it. */
static frg_status make_plan(frg_demean *d, fe_device_place where, plan_rows *r)
{
    frg_context *const ctx = d->ctx;
    const fe_slopes_asked *const s = &r->asked;
    const bool by_rows = is_by_rows(&d->opts);
    frgi_host_step(ctx, FRGI_HOST_ROWS);
    TRY(lay_out(d, r));
    TRY(frgi_fe_cascade_create(&d->cascade, ctx, &d->rows, &d->opts));
    if (by_rows || d->has_slopes) {
        TRY(frgi_fe_row_lsmr_create(&d->row_lsmr, ctx, &d->rows, s->slopes, s->count,
                                    s->no_intercept, &d->opts));
    }
    TRY(open_device(d, where));
    if (!by_rows && d->has_slopes && d->opts.method != FRG_FE_CG &&
        d->opts.precond == FRG_FE_PRECOND_AUTO) {
        TRY(frgi_fe_row_lsmr_factor(d->row_lsmr, ctx, frgi_fe_fill_cap(ctx, &d->opts),
                                    d->opts.method == FRG_FE_DIRECT));
    }
    return FRG_OK;
}

static frg_status check_rows(frg_context *ctx, const frg_array *codes, const frg_array *weights)
{
    TRY(frgi_array_check(ctx, codes, "codes", 2, 1u << FRG_I32));
    REQUIRE(ctx, codes->shape[1] >= 1 && codes->shape[1] <= FE_MAX_FACTORS,
            "codes must have 1 .. %d columns, got %lld", FE_MAX_FACTORS,
            (long long)codes->shape[1]);
    if (weights) {
        TRY(frgi_array_check(ctx, weights, "weights", 1, 1u << FRG_F64));
        if (weights->shape[0] != codes->shape[0]) {
            FAIL(ctx, E_SHAPE, "weights has %lld rows, codes has %lld",
                 (long long)weights->shape[0], (long long)codes->shape[0]);
        }
    }
    return FRG_OK;
}

static frg_status open_plan(frg_demean **out, frg_context *ctx, fe_device_place where, plan_rows r,
                            const frg_demean_opts *o)
{
    *out = NULL;
    const double began = frgi_seconds();
    const bool has_slopes = r.asked.count != 0 || r.asked.no_intercept;
    frg_demean_opts opts;
    frg_demean_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(ctx, &opts, sizeof opts, o));
    TRY(check_opts(ctx, &opts));
    TRY(check_use(ctx, &opts, has_slopes, where.dev != NULL));
    if (where.dev) {
        TRY(frgi_fe_device_check(ctx, where.dev, &opts, has_slopes));
    }
    TRY(check_rows(ctx, &r.codes, r.weighted ? &r.weights : NULL));
    frg_demean *d;
    TRY(NEW0(ctx, &d, 1, "plan"));
    d->ctx = ctx;
    d->dev = where.dev;
    d->opts = opts;
    frgi_fe_take_tol(d, opts.tol);
    d->has_slopes = has_slopes;
    d->rows.steps = where.steps ? where.steps : &frgi_fe_host_steps;
    d->host_steps.beside = frgi_device_beside(where.dev);
    frgi_host_steps *const outer = frgi_host_steps_begin(ctx, &d->host_steps);
    const frgi_device_counts before = frgi_device_counts_now(d->dev);
    const frg_status status = make_plan(d, where, &r);
    frgi_device_counts_since(d->dev, before, &d->counted);
    frgi_host_steps_end(ctx, outer);
    drop_rows(&r, ctx);
    if (status < 0) {
        frg_demean_destroy(d);
        return status;
    }
    d->setup_seconds = frgi_seconds() - began;
    *out = d;
    return FRG_OK;
}

static plan_rows rows_of(frg_array codes, const frg_array *weights, const fe_slopes_asked *asked,
                         bool stay)
{
    return (plan_rows){.codes = codes,
                       .weights = weights ? *weights : codes,
                       .asked = *asked,
                       .weighted = weights != NULL,
                       .stay = stay};
}

frg_status frgi_fe_demean_open(frg_demean **out, frg_context *ctx, fe_device_place where,
                               frg_array codes, const frg_array *weights,
                               const fe_slopes_asked *asked, const frg_demean_opts *o)
{
    return open_plan(out, ctx, where, rows_of(codes, weights, asked, false), o);
}

frg_status frg_demean_create_kept(frg_demean **out, frg_context *ctx, frg_array codes,
                                  const frg_array *weights, const frg_slope *slopes, int n_slopes,
                                  uint64_t no_intercept, const frg_demean_opts *o,
                                  const frg_layout_files *files)
{
    if (!out || !ctx) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(ctx);
    const fe_device_place where = {frgi_device_of(ctx), 0, &frgi_fe_host_steps};
    const fe_slopes_asked asked = {slopes, n_slopes, no_intercept};
    plan_rows r = rows_of(codes, weights, &asked, false);
    r.files = files && files->order ? files : NULL;
    return open_plan(out, ctx, where, r, o);
}

frg_status frgi_fe_demean_within(frg_demean **out, frg_context *ctx, frg_array codes,
                                 const frg_array *weights, const fe_slopes_asked *asked,
                                 const frg_demean_opts *o)
{
    const fe_device_place where = {frgi_device_of(ctx), 0, &frgi_fe_host_steps};
    return open_plan(out, ctx, where, rows_of(codes, weights, asked, false), o);
}

frg_status frgi_fe_demean_lent(frg_demean **out, frg_context *ctx, frg_array codes,
                               const frg_array *weights, const fe_slopes_asked *asked,
                               const frg_demean_opts *o, const frg_layout_files *files)
{
    const fe_device_place where = {frgi_device_of(ctx), 0, &frgi_fe_host_steps};
    plan_rows r = rows_of(codes, weights, asked, true);
    r.files = files && files->order ? files : NULL;
    return open_plan(out, ctx, where, r, o);
}

static void close_run(frg_demean *d)
{
    frgi_arena_close(&d->lists, d->ctx);
    if (d->arena.base) {
        d->rows.steps->close(&d->arena, d->ctx);
    }
    DROP(d->ctx, &d->detour.columns);
}

void frg_demean_destroy(frg_demean *d)
{
    if (!d) {
        return;
    }
    frg_context *ctx = d->ctx;
    close_run(d);
    frgi_fe_row_lsmr_destroy(d->row_lsmr, ctx);
    frgi_fe_cascade_destroy(d->cascade, ctx);
    frgi_fe_rows_destroy(&d->rows, ctx);
    frgi_row_order_destroy(&d->detour.order, ctx);
    DROP(ctx, &d);
}

/** Iteratively reweighted least squares changes the weights at every step and nothing else.  Of a
 *  plan these decide N_u and N_l, the weighted counts, and what the cascade has made of S; codes,
 *  order and chunks, and the order of a factor, do not depend on them.  One pass over the rows. */
frg_status frgi_demean_reweight(frg_demean *d, const double *weights, double tol)
{
    fe_rows *const g = &d->rows;
    if (d->row_lsmr || d->has_slopes || !g->weight) {
        return FRG_UNSUPPORTED;
    }
    const frgi_weight_range range = frgi_weights_study(weights, 1, g->n);
    if (frgi_weights_apart(&range)) {
        FAIL(d->ctx, E_WEIGHT, "row %lld has the weight %g, which vanishes beside %g",
             (long long)range.least_at + 1, range.least, range.largest);
    }
    frgi_fe_take_tol(d, tol);
    if (frgi_fe_cascade_subproblems(d->cascade)) { /* they have copies of their rows */
        fe_cascade *fresh;
        TRY(frgi_fe_cascade_create(&fresh, d->ctx, g, &d->opts));
        frgi_fe_cascade_destroy(d->cascade, d->ctx);
        d->cascade = fresh;
    } else {
        frgi_fe_cascade_renew(d->cascade, d->ctx, d->opts.tol);
    }
    if (d->detour.there) { /* into their place, and scaled there */
        const frg_array w = frg_vector((double *)(uintptr_t)weights, FRG_F64, g->n);
        TRY(bring(d, &w, g->weight));
        weights = g->weight;
    }
    frgi_host_steps *const outer = frgi_host_steps_begin(d->ctx, &d->host_steps);
    frgi_host_step(d->ctx, FRGI_HOST_ROWS);
    frgi_fe_rows_take_weights(g, weights, 1, &range, frg_threads(d->ctx));
    const frgi_device_counts before = frgi_device_counts_now(d->dev);
    const frg_status status = frgi_fe_cascade_reweight_device(d->cascade);
    frgi_device_counts_since(d->dev, before, &d->counted);
    frgi_host_steps_end(d->ctx, outer);
    return status;
}

/* ---- memory of a run ------------------------------------------------------------------------- */

/** Columns carried together: the widest the device or the CPU level has, or fewer where fewer are
 *  asked for. */
static int widest(const frg_demean *d)
{
    const int most = d->lanes_there > 0
                         ? d->lanes_there
                         : frgi_fe_host_lanes(frgi_context_isa(d->ctx), FE_HOST_LANES);
    return d->opts.block > 0 && d->opts.block < most ? d->opts.block : most;
}

/** Columns of the next block, and its lanes: on a device as many; on the host 8, 4, 2 or 1, with
 *  one lane idle where that saves a pass. */
static int next_width(const frg_demean *d, int64_t left, int *lanes)
{
    static const struct {
        int64_t from;
        int take;
    } cuts[] = {{7, 8}, {3, 4}, {2, 2}, {1, 1}};
    const int block = widest(d);
    if (d->lanes_there > 0) {
        return *lanes = (int)(left < block ? left : block);
    }
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        if (left >= cuts[i].from && block >= (cuts[i].take < left ? cuts[i].take : left)) {
            *lanes = cuts[i].take;
            return (int)(cuts[i].take < left ? cuts[i].take : left);
        }
    }
    return *lanes = 1;
}

static void lay_out_run(frgi_arena *lists, frgi_arena *a, frg_demean *d, int64_t p)
{
    const fe_rows *g = &d->rows;
    d->reports = TAKE(lists, frg_demean_column, p);
    if (d->row_lsmr) {
        return; /* it has work memory of its own */
    }
    bool used[FE_MAX_LANES + 1] = {[1] = true}; /* refinements go column by column */
    d->n_blocks = 0;
    d->blocks = TAKE(lists, fe_block_effects, p);
    const bool here = d->lanes_there == 0;
    const int64_t n_elim = here ? g->n_elim : 0;
    for (int64_t c = 0, lane = 0; c < p;) {
        int lanes;
        const int live = next_width(d, p - c, &lanes);
        double *elim = TAKE(a, double, n_elim *lanes);
        double *reduced = TAKE(a, double, g->n_reduced *lanes);
        if (lists->base) {
            d->blocks[d->n_blocks] = (fe_block_effects){c, lane, live, lanes, elim, reduced};
        }
        used[lanes] = true;
        if (d->opts.method == FRG_FE_AUTO) { /* a factor of the host's may solve for it */
            used[frgi_fe_host_lanes(frgi_context_isa(d->ctx), lanes)] = true;
        }
        d->n_blocks++;
        lane += lanes;
        c += live;
    }
    for (int lanes = 1; lanes <= FE_MAX_LANES; lanes++) {
        if (used[lanes]) {
            frgi_fe_block_work_layout(a, g, lanes, here, &d->work[lanes]);
        }
    }
    d->refined_elim = TAKE(a, double, n_elim);
    d->left = TAKE(a, double, g->n_reduced);
}

/** Columns that are in the order of the levels at once: a block, or all where rows are solved for.
 */
static int64_t detour_width(const frg_demean *d, int64_t p)
{
    const int64_t most = widest(d);
    return d->row_lsmr || p < most ? p : most;
}

static frg_status open_detour(frg_demean *d, int64_t p)
{
    fe_detour *const t = &d->detour;
    const int64_t width = detour_width(d, p);
    if (!t->there || p == 0) {
        return FRG_OK;
    }
    const int64_t together = width < FRGI_ORDER_COLUMNS ? width : FRGI_ORDER_COLUMNS;
    TRY(frgi_row_order_room(&t->order, d->ctx, (size_t)together * sizeof(double)));
    const size_t bytes = frgi_mul(frgi_mul((size_t)d->rows.n, (size_t)width), sizeof(double));
    TRY(frgi_alloc(d->ctx, (void **)&t->columns, bytes, "columns by level"));
    t->width = width;
    return FRG_OK;
}

/** Bytes of the order of n rows of q factors with `levels` levels and of the columns there, `width`
 *  of them, or of the codes, weights and slopes while the plan is made. */
static size_t detour_bytes(const frg_demean_shape *s, int64_t levels, int64_t width)
{
    const int64_t codes = 4 * (int64_t)s->n_factors, few = 4 * FRGI_ORDER_COLUMNS;
    const int64_t values = 8 * ((s->weighted != 0) + (int64_t)s->n_slopes);
    const int64_t moved = codes > few ? few : codes < 8 ? 8 : codes;
    const int64_t made = 4 + codes + values + moved;
    const int64_t run = 8 * (width + (width < FRGI_ORDER_COLUMNS ? width : FRGI_ORDER_COLUMNS));
    return frgi_add(frgi_mul((size_t)s->n, (size_t)(5 + (made > run ? made : run))),
                    (size_t)levels * sizeof(uint32_t));
}

frg_status frgi_fe_demean_prepare(frg_demean *d, int64_t p)
{
    if (d->arena.base && d->columns == p) {
        return FRG_OK;
    }
    frgi_arena lists = {0}, fresh = {0};
    close_run(d);
    lay_out_run(&lists, &fresh, d, p);
    TRY(frgi_arena_open(&lists, d->ctx, "reports of the demeaner"));
    d->lists = lists;
    TRY(open_detour(d, p));
    TRY(d->rows.steps->open(&fresh, d->ctx, "work memory of the demeaner"));
    d->arena = fresh;
    lay_out_run(&d->lists, &d->arena, d, p);
    d->columns = p;
    return FRG_OK;
}

/* ---- what the plan knows --------------------------------------------------------------------- */

/** The eliminated levels' effects of column k of a block, in the order of the factor's levels. */
static frg_status get_elim_effects(const frg_demean *d, const fe_block_effects *b, int k,
                                   double *alpha)
{
    enum { PIECE = 512 };
    double piece[PIECE];
    const fe_rows *const g = &d->rows;
    fe_device *const there = frgi_fe_cascade_passes(d->cascade);
    if (there) {
        const fe_device_block block = fe_block_on_device(b);
        return frgi_fe_device_effects(there, &block, k, 1, alpha);
    }
    if (!g->elim_level) {
        return g->steps->reduced.get_column(g->n_elim, b->lanes, k, b->elim, alpha);
    }
    for (int64_t u = 0; u < g->n_elim; u += PIECE) {
        const int64_t count = u + PIECE < g->n_elim ? PIECE : g->n_elim - u;
        TRY(g->steps->reduced.get_column(count, b->lanes, k, b->elim + u * b->lanes, piece));
        for (int64_t i = 0; i < count; i++) {
            alpha[g->elim_level[u + i]] = piece[i];
        }
    }
    return FRG_OK;
}

frg_status frg_demean_effects(const frg_demean *d, int64_t column, double *alpha)
{
    if (!d || !alpha) {
        return FRG_BAD_ARG;
    }
    REQUIRE(d->ctx, d->arena.base && column >= 0 && column < d->columns,
            "column %lld is not one of the last run's %lld", (long long)column,
            (long long)d->columns);
    if (d->row_lsmr) {
        return frgi_fe_row_lsmr_effects(d->row_lsmr, column, alpha);
    }
    const fe_rows *g = &d->rows;
    const fe_block_effects *b = d->blocks;
    while (column >= b->first_column + b->live) {
        b++;
    }
    const int k = (int)(column - b->first_column);
    for (int q = 0; q < g->n_factors; q++) {
        const int64_t levels = g->factor[q].levels;
        if (q == g->elim_factor) {
            TRY(get_elim_effects(d, b, k, alpha));
        } else {
            const double *const own = b->reduced + g->factor[q].first * b->lanes;
            TRY(g->steps->reduced.get_column(levels, b->lanes, k, own, alpha));
        }
        alpha += levels;
    }
    return FRG_OK;
}

static int64_t count_subproblems(const frg_demean *d)
{
    const fe_subproblems *subproblems = frgi_fe_cascade_subproblems(d->cascade);
    return subproblems ? frgi_fe_subproblems_count(subproblems) : 0;
}

frg_demean_report frg_demean_get(const frg_demean *d)
{
    if (!d)
        return (frg_demean_report){0};
    const fe_rows *g = &d->rows;
    const size_t own = d->row_lsmr ? frgi_fe_row_lsmr_factor_bytes(d->row_lsmr) : 0;
    const size_t factor = frgi_fe_cascade_factor_bytes(d->cascade) + own;
    const size_t row_lsmr = d->row_lsmr ? frgi_fe_row_lsmr_bytes(d->row_lsmr) - own : 0;
    const fe_detour *const t = &d->detour;
    const size_t columns = t->columns ? (size_t)(g->n * t->width) * sizeof(double) : 0;
    const size_t detour = t->there ? (size_t)g->n * 5 + t->order.bytes + columns : 0;
    const int64_t levels =
        d->row_lsmr ? frgi_fe_row_lsmr_levels(d->row_lsmr) : g->n_elim + g->n_reduced;
    return (frg_demean_report){
        .n = g->n,
        .n_factors = g->n_factors,
        .levels = levels,
        .method =
            d->row_lsmr ? frgi_fe_row_lsmr_method(d->row_lsmr) : frgi_fe_cascade_method(d->cascade),
        .plan_bytes =
            frgi_fe_rows_bytes(g) + factor + row_lsmr + d->lists.bytes + d->arena.bytes + detour,
        .factor_bytes = factor,
        .n_parts = count_subproblems(d),
        .tol = d->tol_used,
        .passes_on = frgi_fe_row_lsmr_passes(d->row_lsmr) ? frgi_fe_row_lsmr_place(d->row_lsmr)
                     : frgi_fe_cascade_passes(d->cascade) ? frgi_fe_cascade_place(d->cascade)
                                                          : "cpu",
        .device_launches = d->counted.launches,
        .device_waits = d->counted.waits,
        .device_bytes_in = d->counted.bytes_in,
        .device_bytes_out = d->counted.bytes_out,
        .host_steps = d->host_steps.list};
}

frg_status frg_demean_get_part(const frg_demean *d, int64_t i, frg_demean_part *out)
{
    if (!d || !out) {
        return FRG_BAD_ARG;
    }
    REQUIRE(d->ctx, i >= 0 && i < count_subproblems(d), "part %lld is not one of the plan's %lld",
            (long long)i, (long long)count_subproblems(d));
    *out = frgi_fe_subproblems_get(frgi_fe_cascade_subproblems(d->cascade), i);
    return FRG_OK;
}

/** Multiply-adds that an exact count may take. */
static double rank_work(const frg_demean *d, bool cheap_only)
{
    return cheap_only ? RANK_CHEAP + RANK_CHEAP_PER_ROW * (double)d->rows.n : RANK_MOST;
}

/** A count in integers, by bounds that meet, or in a prime field where that is short, else the
 *  pivots of a factor, which is not proven.
 *  *rank is -1 where neither is cheap. */
static frg_status count_rank(const frg_demean *d, bool cheap_only, int64_t *rank, bool *verified)
{
    const fe_rows *g = &d->rows;
    const double work = rank_work(d, cheap_only);
    const frgi_prime_limits most = {.work = work,
                                    .entries =
                                        cheap_only ? work / RANK_PER_ENTRY : (double)INFINITY,
                                    .bytes = frgi_fe_fill_cap(d->ctx, &d->opts),
                                    .solver = "fe"};
    frg_status status = frgi_fe_modular_rank(g, d->ctx, fmin(work, MODULAR_MOST), rank);
    if (status == FRG_OK && *rank < 0) {
        status = frgi_fe_bounded_rank(g, d->ctx, most.bytes, rank);
    }
    if (status == FRG_OK && *rank < 0) {
        status = frgi_fe_sparse_rank(g, d->ctx, &most, rank);
    }
    *verified = *rank >= 0;
    if (status == FRG_OK && *rank < 0) {
        int64_t rank_s = -1;
        status = frgi_fe_cascade_count(d->cascade, d->ctx, cheap_only, &rank_s);
        *rank = status == FRG_OK && rank_s >= 0 ? g->n_elim + rank_s : -1;
    }
    return status;
}

/** Of a plan without slopes; *r has its components and whether the pairwise count is exact. */
static frg_status count_by(const frg_demean *d, frg_fe_dof asked, frg_demean_rank *r)
{
    static const char *const names[] = {"exact", "naive", "firstpair", "pairwise", "exact"};
    const bool tries = asked == FRG_DOF_EXACT || asked == FRG_DOF_AUTO;
    const frg_fe_dof how = tries ? FRG_DOF_PAIRWISE : asked;
    int64_t rank = -1;
    bool verified = false;
    frg_status status = FRG_OK;
    if (!r->exact && tries) {
        status = count_rank(d, asked == FRG_DOF_AUTO, &rank, &verified);
    }
    if (status == FRG_OK && !verified) {
        status = frgi_fe_count_rank(&d->rows, d->ctx, how, &r->rank);
        r->method = r->exact ? "exact" : names[how];
    }
    if (verified || (rank >= 0 && rank < r->rank)) {
        r->rank = rank;
        r->method = verified ? "exact" : "pivots";
        r->exact |= verified;
    }
    return status;
}

frg_status frg_demean_get_rank(frg_demean *d, frg_demean_rank *out)
{
    if (!d || !out) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(d->ctx);
    return frgi_fe_demean_rank(d, out);
}

frg_status frgi_fe_demean_rank(frg_demean *d, frg_demean_rank *out)
{
    const frg_fe_dof asked = d->opts.dof;
    frg_demean_rank r = {.exact = d->rows.n_factors <= 2 && asked != FRG_DOF_NAIVE};
    frg_status status = frgi_fe_components(&d->rows, d->ctx, 0, -1, &r.components);
    if (status == FRG_OK && d->has_slopes) {
        status = frgi_fe_row_lsmr_rank(d->row_lsmr, d->ctx, rank_work(d, asked == FRG_DOF_AUTO),
                                       &r.rank, &r.method);
        r.exact = status == FRG_OK && strcmp(r.method, "exact") == 0;
    } else if (status == FRG_OK) {
        status = count_by(d, asked, &r);
    }
    if (status == FRG_OK) {
        *out = r;
    }
    return status;
}

/** Bytes of a plan after its run, but for a factor, whose eliminated levels are the factor
 *  g->elim_factor. */
static size_t shape_bytes(frg_context *ctx, const frg_demean_shape *shape, const fe_rows *g,
                          bool grouped, const frg_demean_opts *opts)
{
    const frgi_device *const dev = frgi_device_of(ctx);
    const bool by_rows = is_by_rows(opts) || shape->n_slopes || shape->no_intercept;
    frg_demean d = {.ctx = ctx, .opts = *opts, .rows = *g};
    if (dev && (by_rows || frgi_device_is(dev)->f64)) {
        d.lanes_there = frgi_fe_device_lanes_of(dev, g, opts->dtype);
    }
    frgi_arena lists = {0}, a = {0};
    size_t row_lsmr = 0, detour = 0;
    if (frgi_spools(ctx) && !grouped) {
        detour = detour_bytes(shape, g->n_elim, by_rows ? shape->p : detour_width(&d, shape->p));
    }
    if (by_rows) {
        d.opts.block = d.lanes_there > 0 ? widest(&d) : opts->block;
        row_lsmr = frgi_fe_row_lsmr_shape(g, shape->slopes, shape->n_slopes, shape->no_intercept,
                                          &d.opts, shape->p);
        TAKE(&lists, frg_demean_column, shape->p);
    } else {
        lay_out_run(&lists, &a, &d, shape->p);
    }
    return frgi_add(frgi_fe_rows_bytes(g) + row_lsmr + lists.used + a.used, detour);
}

static frg_status check_shape(frg_context *ctx, const frg_demean_shape *s)
{
    REQUIRE(ctx, s->n >= 0 && s->p >= 0 && s->n_factors >= 1 && s->n_factors <= FE_MAX_FACTORS,
            "a shape has n and p >= 0 and 1 .. %d factors, got %lld, %lld and %d", FE_MAX_FACTORS,
            (long long)s->n, (long long)s->p, s->n_factors);
    TRY(frgi_fe_rows_fit(ctx, s->n));
    REQUIRE(ctx, s->n_slopes >= 0 && (s->slopes || s->n_slopes == 0),
            "%d slopes, but no array of them", s->n_slopes);
    for (int q = 0; s->levels && q < s->n_factors; q++) {
        REQUIRE(ctx, s->levels[q] >= 0 && s->levels[q] <= s->n,
                "factor %d has %lld levels in %lld rows", q + 1, (long long)s->levels[q],
                (long long)s->n);
    }
    return FRG_OK;
}

/** The eliminated levels are the levels of the largest factor; of several that are equal the order
 *  of the rows decides, so that each is tried. */
static size_t plan_bound(frg_context *ctx, const frg_demean_shape *shape, bool grouped,
                         const frg_demean_opts *opts)
{
    fe_factor factor[FE_MAX_FACTORS] = {0};
    int64_t most_levels = 0;
    size_t most = 0;
    for (int q = 0; q < shape->n_factors; q++) {
        factor[q].levels = shape->levels ? shape->levels[q] : shape->n;
        most_levels = factor[q].levels > most_levels ? factor[q].levels : most_levels;
    }
    for (int q = 0; q < shape->n_factors; q++) {
        if (factor[q].levels == most_levels) {
            fe_rows g = {.n = shape->n, .n_factors = shape->n_factors, .factor = factor};
            frgi_fe_rows_shape(&g, q, shape->weighted);
            const size_t bytes = shape_bytes(ctx, shape, &g, grouped, opts);
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

frg_status frgi_fe_demean_estimate(frg_context *ctx, const frg_demean_shape *shape, bool grouped,
                                   const frg_demean_opts *o, size_t *plan_bytes,
                                   size_t *with_factor_bytes, double *seconds)
{
    TRY(check_shape(ctx, shape));
    frg_demean_opts opts;
    frg_demean_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(ctx, &opts, sizeof opts, o));
    TRY(check_opts(ctx, &opts));
    TRY(check_use(ctx, &opts, shape->n_slopes > 0 || shape->no_intercept,
                  frgi_device_of(ctx) != NULL));
    *plan_bytes = plan_bound(ctx, shape, grouped, &opts);
    *with_factor_bytes = frgi_add(*plan_bytes, frgi_fe_fill_cap(ctx, &opts));
    *seconds = SECONDS_PER_ROW_AND_COLUMN * (double)shape->n *
               (double)(shape->p + shape->n_factors) / frg_threads(ctx);
    return FRG_OK;
}

frg_status frg_demean_estimate(frg_context *ctx, const frg_demean_shape *shape,
                               const frg_demean_opts *o, size_t *plan_bytes,
                               size_t *with_factor_bytes, double *seconds)
{
    if (!ctx || !shape || !plan_bytes || !with_factor_bytes || !seconds) {
        return FRG_BAD_ARG;
    }
    return frgi_fe_demean_estimate(ctx, shape, false, o, plan_bytes, with_factor_bytes, seconds);
}
