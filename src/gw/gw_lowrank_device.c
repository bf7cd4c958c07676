/* gw_lowrank_device.c - plans in factors on a device: the host's side of
 * kernels/gw_lowrank/gw_lowrank.cl.h.
 *
 * There run: draws of components and columns, distances to the pairs, gradients, mirror steps, the
 * passes of Dykstra's algorithm, energies from pairs.  All are in double.  Distances lie there
 * whole, n^2 + m^2 floats, and a linear cost, n m.  On the host stay the rows that are drawn (which
 * the weights and the seed decide), random starts and the start of groups of points, which go over
 * once, and the end: rounding and the plan that is made of the factors, which come back then.
 *
 * Of an outer step rows and random numbers go over.  A state comes back every eighth pass, with a
 * linear cost the value of each mirror step, and every fifth step an energy.
 */
#include <math.h>

#include "gw/gw_level_there.h"
#include "gw/gw_lowrank.h"
#include "gw/gw_lowrank_at.h"

enum { BATCH = 8, SIDES = 2, PARTS = 3 };

extern const frgi_kernels frgi_kernels_gw_lowrank;

struct frgi_lowrank_device {
    const frgi_level *l;
    int64_t n, m, rank;
    frgi_stage_place place;
    const frgi_program *program, *products, *energies; /* f64, f64, mixed */
    frgi_device_arena memory;
    frgi_buffer v, at, counts, uniforms;
    frgi_buffer kept[2][PARTS]; /* copies of Q, W and h: the best, those before a step */
    int64_t reals;              /* of v */
    frgi_pairs_there pairs;     /* the anchors, then two sets to look at */
    int64_t drawn;              /* pairs at once, at most */
    struct {                    /* the queue's until a wait */
        int64_t at[LR_AT_COUNT];
        int32_t counts[LRC_COUNT];
        double numbers[LRN_COUNT];
        int32_t *rows;
        double *uniforms; /* of components, of columns */
    } host;
};

/* ---- opening --------------------------------------------------------------------------------- */

/** Reals of array q of `at`. */
static int64_t reals_of(const frgi_lowrank_device *d, int q)
{
    const int64_t *const of = d->host.at + (q < LR_OF_SIDE ? 0 : LR_OF_SIDE);
    const int64_t n = of[LR_POINTS], groups = of[LR_CHUNKS], r = d->host.at[LR_RANK],
                  R = d->host.at[LR_PAIRS];
    const int64_t counts[LR_OF_SIDE] = {
        [LR_WEIGHTS] = n,    [LR_FACTOR] = n * r,   [LR_ROWS] = R * n,
        [LR_MIDDLE] = R * r, [LR_GRADIENT] = n * r, [LR_LOG] = n * r,
        [LR_KERNEL] = n * r, [LR_SHIFT] = n,        [LR_U] = n,
        [LR_V] = r,          [LR_SUMS] = r,         [LR_PARTS] = LR_KINDS * groups * r,
        [LR_ERRORS] = groups};
    return q < LR_RANK ? counts[q % LR_OF_SIDE] : q == LR_NUMBERS ? LRN_COUNT : r;
}

/** That array, there; second: of side 1. */
static frgi_buffer array_of(const frgi_lowrank_device *d, int q, int second)
{
    const int at = q + second * LR_OF_SIDE;
    return frgi_device_slice(d->v, (size_t)d->host.at[at] * sizeof(double),
                             (size_t)reals_of(d, at) * sizeof(double));
}

/** Q, W or h. */
static frgi_buffer factor_of(const frgi_lowrank_device *d, int part)
{
    return part < SIDES ? array_of(d, LR_FACTOR, part) : array_of(d, LR_H, 0);
}

/** Places of the arrays in v, each where a part of a block may begin. */
static void set_places(frgi_lowrank_device *d)
{
    const int64_t align = (int64_t)(d->memory.align / sizeof(double)), unit = align > 1 ? align : 1;
    d->reals = 0;
    for (int q = 0; q < LR_AT_COUNT; q++) {
        const bool is_array =
            q < LR_RANK ? q % LR_OF_SIDE >= LR_WEIGHTS : q >= LR_H; /* not a length */
        if (is_array) {
            d->host.at[q] = d->reals;
            d->reals += (reals_of(d, q) + unit - 1) / unit * unit;
        }
    }
}

static void layout_pairs(frgi_lowrank_device *d)
{
    frgi_device_arena *const a = &d->memory;
    frgi_pairs_there *const p = &d->pairs;
    const size_t n = (size_t)p->n, m = (size_t)p->m, one = sizeof(float),
                 places = (size_t)(p->other + p->count) * sizeof(int32_t);
    p->x = frgi_distances_take(d->l->x, a);
    p->y = frgi_distances_take(d->l->y, a);
    p->linear = d->l->linear ? frgi_device_take(a, frgi_mul(n, m) * one) : p->x;
    p->row = frgi_device_take(a, places);
    p->column = frgi_device_take(a, places);
    p->sides = frgi_device_take(a, 2 * (size_t)p->count * sizeof(double));
    p->moments = frgi_device_take(a, LV_MOMENTS * sizeof(double));
}

static void layout(frgi_lowrank_device *d)
{
    frgi_device_arena *const a = &d->memory;
    d->v = frgi_device_take(a, frgi_mul((size_t)d->reals, sizeof(double)));
    for (int copy = 0; copy < 2; copy++) {
        for (int part = 0; part < PARTS; part++) {
            d->kept[copy][part] = frgi_device_take(a, factor_of(d, part).bytes);
        }
    }
    d->at = frgi_device_take(a, sizeof d->host.at);
    d->counts = frgi_device_take(a, sizeof d->host.counts);
    d->uniforms = frgi_device_take(a, 2 * (size_t)d->drawn * sizeof(double));
    layout_pairs(d);
}

/** The linear cost, without the padding of its rows; through the memory for copies. */
static frg_status put_linear(const frgi_lowrank_device *d)
{
    const frgi_level *const l = d->l;
    const int64_t m = d->pairs.m;
    for (int64_t i = 0; l->linear && i < d->pairs.n; i++) {
        const size_t row = (size_t)m * sizeof(float);
        const frgi_buffer to = frgi_device_slice(d->pairs.linear, (size_t)i * row, row);
        TRY(frgi_device_put(d->place.dev, to, l->linear + i * l->t.s.ld, row));
    }
    return frgi_device_wait(d->place.dev);
}

static frg_status put(const frgi_lowrank_device *d, frgi_buffer to, const void *from)
{
    TRY(frgi_device_put(d->place.dev, to, from, to.bytes));
    return frgi_device_wait(d->place.dev);
}

static void set_sizes(frgi_lowrank_device *d)
{
    const int64_t sizes[SIDES] = {d->n, d->m};
    for (int second = 0; second < SIDES; second++) {
        int64_t *const of = d->host.at + second * LR_OF_SIDE;
        of[LR_POINTS] = sizes[second];
        of[LR_CHUNKS] = (sizes[second] + LR_CHUNK - 1) / LR_CHUNK;
    }
    d->host.at[LR_RANK] = d->rank;
    d->host.at[LR_PAIRS] = d->l->o->anchors;
    d->drawn = d->l->o->anchors > FRGI_CHECK_PAIRS ? d->l->o->anchors : FRGI_CHECK_PAIRS;
    d->pairs = (frgi_pairs_there){.n = sizes[0],
                                  .m = sizes[1],
                                  .first = d->l->o->anchors,
                                  .other = d->l->o->anchors + FRGI_CHECK_PAIRS,
                                  .count = FRGI_CHECK_PAIRS};
}

/** Distances, weights, a linear cost.  Positive: stopped. */
static frg_status fill(const frgi_lowrank_device *d)
{
    const frgi_level *const l = d->l;
    frg_status status = frgi_distances_all_there(l->x, d->pairs.x);
    status = status == FRG_OK ? frgi_distances_all_there(l->y, d->pairs.y) : status;
    if (status != FRG_OK) {
        return status;
    }
    TRY(frgi_device_fill(d->place.dev, d->v, 0, d->v.bytes));
    for (int part = 0; part < PARTS; part++) { /* a state has them before there is a best start */
        TRY(frgi_device_fill(d->place.dev, d->kept[0][part], 0, d->kept[0][part].bytes));
    }
    TRY(put(d, d->at, d->host.at));
    TRY(put(d, array_of(d, LR_WEIGHTS, 0), l->a));
    TRY(put(d, array_of(d, LR_WEIGHTS, 1), l->b));
    return put_linear(d);
}

frg_status frgi_lowrank_device_open(frgi_lowrank_device **out, const frgi_level *l,
                                    frgi_device *dev, int group)
{
    const int64_t n = l->x->n, m = l->y->n, rank = frgi_lowrank_rank(l),
                  longest = (n > m ? n : m) * rank;
    frgi_lowrank_device *d;
    TRY(NEW0(l->ctx, &d, 1, "factors on a device"));
    *out = d;
    d->l = l;
    d->n = n;
    d->m = m;
    d->rank = rank;
    TRY(frgi_stage_place_open(&d->place, l->ctx, dev, group, longest));
    TRY(frgi_device_load(dev, &frgi_kernels_gw_lowrank, FRGI_F64, &d->program));
    TRY(frgi_device_load(dev, &frgi_kernels_gw, FRGI_F64, &d->products));
    TRY(frgi_device_load(dev, &frgi_kernels_gw, FRGI_MIXED, &d->energies));
    set_sizes(d);
    TRY(NEW(l->ctx, &d->host.rows, d->drawn, "pairs"));
    TRY(NEW(l->ctx, &d->host.uniforms, 2 * d->drawn, "pairs"));
    d->memory.align = frgi_device_is(dev)->align;
    set_places(d);
    layout(d);
    TRY(frgi_device_arena_open(&d->memory, dev, "factors on a device"));
    layout(d);
    return fill(d);
}

void frgi_lowrank_device_close(frgi_lowrank_device **out)
{
    frgi_lowrank_device *const d = *out;
    if (!d) {
        return;
    }
    frg_context *const ctx = d->l->ctx;
    if (d->memory.block.handle) { /* host memory belongs to the queue until then */
        const frg_status ended = frgi_device_wait(d->place.dev);
        (void)ended;
    }
    frgi_device_arena_close(&d->memory, d->place.dev);
    DROP(ctx, &d->host.rows);
    DROP(ctx, &d->host.uniforms);
    frgi_stage_place_close(&d->place);
    DROP(ctx, out);
}

/* ---- projection ------------------------------------------------------------------------------ */

/** Groups of the larger side: a launch has as many for either. */
static int64_t chunks(const frgi_lowrank_device *d)
{
    const int64_t x = d->host.at[LR_CHUNKS], y = d->host.at[LR_OF_SIDE + LR_CHUNKS];
    return x > y ? x : y;
}

/** The logarithm of the least that h may be. */
static double least_log(const frgi_lowrank_device *d)
{
    return frgi_lowrank_least(d->rank);
}

/** Counts and numbers as they are there, in one wait. */
static frg_status poll(frgi_lowrank_device *d)
{
    TRY(frgi_device_get(d->place.dev, d->host.counts, d->counts, sizeof d->host.counts));
    TRY(frgi_device_get(d->place.dev, d->host.numbers, array_of(d, LR_NUMBERS, 0),
                        sizeof d->host.numbers));
    TRY(frgi_device_wait(d->place.dev));
    const double most = d->host.numbers[LRN_MOST], value = d->host.numbers[LRN_VALUE],
                 error = d->host.numbers[LRN_ERROR];
    if (!(most < (double)INFINITY) || !isfinite(value)) {
        FAIL(d->l->ctx, E_NUMERIC, "a gradient of outer step %lld is %g", (long long)d->l->step + 1,
             most < (double)INFINITY ? value : most);
    }
    if (d->host.counts[LRC_DONE] == LRD_NOT_A_NUMBER) {
        FAIL(d->l->ctx, E_NUMERIC, "the projection of outer step %lld gave %g",
             (long long)d->l->step + 1, error);
    }
    return FRG_OK;
}

static frg_status pass(const frgi_lowrank_device *d)
{
    TRY(LAUNCH(d->place.dev, d->program, "lowrank_scale", chunks(d), SIDES, d->place.group,
               BUFFER(d->v), BUFFER(d->counts), BUFFER(d->at)));
    return LAUNCH(d->place.dev, d->program, "lowrank_columns", 1, 1, d->place.group, BUFFER(d->v),
                  BUFFER(d->counts), BUFFER(d->at), REAL(least_log(d)));
}

/** Columns beyond the range of reals into the logarithms. */
static frg_status absorb(const frgi_lowrank_device *d)
{
    TRY(LAUNCH(d->place.dev, d->program, "lowrank_tops", chunks(d), SIDES, d->place.group,
               BUFFER(d->v), BUFFER(d->counts), BUFFER(d->at)));
    return LAUNCH(d->place.dev, d->program, "lowrank_absorb", chunks(d), SIDES, d->place.group,
                  BUFFER(d->v), BUFFER(d->counts), BUFFER(d->at));
}

/** The factors <- the projection of xi, which is made first; pace: as lowrank_mirror has it. */
static frg_status project(frgi_lowrank_device *d, double pace, int64_t passes)
{
    TRY(LAUNCH(d->place.dev, d->program, "lowrank_mirror", chunks(d), SIDES, d->place.group,
               BUFFER(d->v), BUFFER(d->counts), BUFFER(d->at), REAL(d->l->epsilon), REAL(pace)));
    for (int64_t left = passes; left > 0; left = passes - d->host.counts[LRC_PASSES]) {
        for (int64_t q = 0; q < BATCH && q < left; q++) {
            TRY(pass(d));
        }
        TRY(poll(d));
        if (d->host.counts[LRC_DONE] == LRD_WITHIN) {
            break;
        }
        if (d->host.counts[LRC_DONE] == LRD_LOST) {
            TRY(absorb(d));
        }
    }
    return LAUNCH(d->place.dev, d->program, "lowrank_factors", chunks(d), SIDES, d->place.group,
                  BUFFER(d->v), BUFFER(d->at), REAL(least_log(d)));
}

frg_status frgi_lowrank_device_mirror(frgi_lowrank_device *d, double pace)
{
    return project(d, pace, d->l->o->lr_dykstra_max_iter);
}

frg_status frgi_lowrank_device_again(frgi_lowrank_device *d, int64_t passes, double *error)
{
    TRY(project(d, 0, passes));
    *error = d->host.numbers[LRN_ERROR];
    return FRG_OK;
}

frg_status frgi_lowrank_device_random(frgi_lowrank_device *d, uint64_t run)
{
    double *const log_k = d->place.buffer;
    for (int second = 0; second < SIDES; second++) {
        frgi_lowrank_random(d->l, run, second, (second ? d->m : d->n) * d->rank, log_k);
        TRY(put(d, array_of(d, LR_LOG, second), log_k));
    }
    for (int64_t c = 0; c < d->rank; c++) {
        log_k[c] = -log((double)d->rank);
    }
    TRY(put(d, array_of(d, LR_LOG_H, 0), log_k));
    return project(d, -1, d->l->o->lr_dykstra_max_iter);
}

/* ---- an outer step --------------------------------------------------------------------------- */

/** Pairs of P at places first, first + 1, ... */
static frg_status draw(const frgi_lowrank_device *d, int64_t first, int64_t count, uint64_t stream)
{
    const size_t bytes = (size_t)count * sizeof(int32_t);
    const frgi_buffer rows =
        frgi_device_slice(d->pairs.row, (size_t)first * sizeof(int32_t), bytes);
    frgi_lowrank_rows(d->l, count, stream, d->host.rows, d->host.uniforms);
    TRY(frgi_device_put(d->place.dev, rows, d->host.rows, bytes));
    TRY(frgi_device_put(d->place.dev, d->uniforms, d->host.uniforms,
                        2 * (size_t)count * sizeof *d->host.uniforms));
    TRY(LAUNCH(d->place.dev, d->program, "lowrank_draw", count, 1, d->place.group,
               BUFFER(d->pairs.column), BUFFER(d->pairs.row), BUFFER(d->uniforms), BUFFER(d->v),
               BUFFER(d->at), INT64(first), INT64(count)));
    return frgi_device_wait(d->place.dev);
}

frg_status frgi_lowrank_device_linearise(frgi_lowrank_device *d)
{
    const int64_t R = d->l->o->anchors;
    const double share = -2 * (1 - d->l->o->linear_weight) / (double)R;
    TRY(draw(d, 0, R, 0));
    return LAUNCH(d->place.dev, d->program, "lowrank_rows", R, SIDES, d->place.group, BUFFER(d->v),
                  BUFFER(d->at), BUFFER(d->pairs.x), BUFFER(d->pairs.y), BUFFER(d->pairs.row),
                  BUFFER(d->pairs.column), INT64(0), REAL(share));
}

/** A side's gradient, not yet divided by h. */
static frg_status gradient(const frgi_lowrank_device *d, int second)
{
    const int64_t n = second ? d->m : d->n, r = d->rank, R = d->l->o->anchors;
    TRY(LAUNCH(d->place.dev, d->products, "vertex_product", (n + LV_TILE - 1) / LV_TILE,
               (r + LV_TILE - 1) / LV_TILE, d->place.group,
               BUFFER(array_of(d, LR_GRADIENT, second)), BUFFER(array_of(d, LR_ROWS, second)),
               BUFFER(array_of(d, LR_MIDDLE, second)), INT64(n), INT64(r), INT64(R), INT32(0),
               REAL(1)));
    if (!d->l->linear) {
        return FRG_OK;
    }
    return LAUNCH(d->place.dev, d->program, "lowrank_linear", n, 1, d->place.group, BUFFER(d->v),
                  BUFFER(d->at), BUFFER(d->pairs.linear), REAL(d->l->o->linear_weight),
                  INT32(second));
}

frg_status frgi_lowrank_device_derive(frgi_lowrank_device *d, double *value)
{
    TRY(LAUNCH(d->place.dev, d->program, "lowrank_middle", d->l->o->anchors, SIDES * d->rank,
               d->place.group, BUFFER(d->v), BUFFER(d->at)));
    TRY(gradient(d, 0));
    TRY(gradient(d, 1));
    TRY(LAUNCH(d->place.dev, d->program, "lowrank_parts", chunks(d), SIDES, d->place.group,
               BUFFER(d->v), BUFFER(d->at)));
    TRY(LAUNCH(d->place.dev, d->program, "lowrank_derived", 1, 1, d->place.group, BUFFER(d->v),
               BUFFER(d->at), REAL(d->l->epsilon)));
    if (value) {
        TRY(poll(d));
        *value = d->host.numbers[LRN_VALUE];
    }
    return FRG_OK;
}

frg_status frgi_lowrank_device_copy(const frgi_lowrank_device *d, frgi_copy what)
{
    const bool back = what == FRGI_RECALL_BEST || what == FRGI_RECALL_BEFORE;
    const int copy = what == FRGI_KEEP_BEST || what == FRGI_RECALL_BEST ? 0 : 1;
    for (int part = 0; part < PARTS; part++) {
        const frgi_buffer now = factor_of(d, part), kept = d->kept[copy][part];
        TRY(frgi_device_copy(d->place.dev, back ? now : kept, back ? kept : now, now.bytes));
    }
    return FRG_OK;
}

frg_status frgi_lowrank_device_estimate(const frgi_lowrank_device *d, frgi_pair_moments *out)
{
    const double scales[2] = {1, 1};
    double moments[LV_MOMENTS];
    TRY(draw(d, d->pairs.first, d->pairs.count, 3));
    TRY(draw(d, d->pairs.other, d->pairs.count, 6));
    return frgi_pairs_there_moments(&d->place, d->energies, &d->pairs, NULL, d->l->linear != NULL,
                                    scales, moments, out);
}

/* ---- factors to the device and back ---------------------------------------------------------- */

void frgi_lowrank_device_arrays(const frgi_lowrank_device *d, frgi_array *own)
{
    for (int part = 0; part < PARTS; part++) {
        own[part].there[0] = factor_of(d, part);
        own[PARTS].there[part] = d->kept[0][part];
    }
}

frg_status frgi_lowrank_device_put(const frgi_lowrank_device *d, const frgi_factored *f)
{
    TRY(put(d, factor_of(d, 0), f->q));
    TRY(put(d, factor_of(d, 1), f->w));
    return put(d, factor_of(d, 2), f->h);
}

frg_status frgi_lowrank_device_fetch(const frgi_lowrank_device *d, frgi_factored *f)
{
    double *const to[PARTS] = {f->q, f->w, f->h};
    for (int part = 0; part < PARTS; part++) {
        const frgi_buffer from = factor_of(d, part);
        TRY(frgi_device_get(d->place.dev, to[part], from, from.bytes));
    }
    return frgi_device_wait(d->place.dev);
}
