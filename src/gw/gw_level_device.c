/* gw_level_device.c - the host's side of kernels/gw/gw_steps.cl.h.
 *
 *     L(P) from pairs             frgi_level_device_rows; make_cost, its average over the steps
 *     L(P) of the mode exact      frgi_level_device_linearise; make_cost
 *     Sinkhorn's iteration        frgi_level_device_solve (a pass: gw_stage_device.c)
 *     P <- (1 - alpha) P + alpha Pnew       frgi_level_device_draw, as pairs of Pnew;
 *                                 frgi_level_device_average in the mode exact,
 *                                 frgi_level_device_keep_fold with store_plan or diag_exact
 *
 * The passes have floats over the cost of the step.  Kernels around them are those of the type
 * mixed: elements float, the sums that pairs and energies come from double.  What is made of the
 * plan: gw_plan_device.c.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_level_there.h"

enum { CHECK_MOST = 1024 }; /* pairs of a set to look at */
enum { NEAR_PASSES = 10 };
enum { TERMS = 2 }; /* rows of the terms of rows and columns, behind those of the pairs */

/* ---- what does not run there ----------------------------------------------------------------- */

frg_status frgi_level_device_check(frg_context *ctx, frgi_device *dev, const frg_gw_opts *o)
{
    const struct {
        bool is;
        const char *what;
    } refused[] = {{o->cost_store == FRG_GW_STORE_FLY,
                    "cost_store fly, which would spare n m floats beside the n n + m m of the "
                    "distances that lie there (leave it at auto),"},
                   {o->auto_store != 0,
                    "auto_store, as costs have no smaller form there than f32 (leave it out),"},
                   {!frgi_device_is(dev)->f64, "an alignment, which needs doubles at its end,"}};
    for (size_t q = 0; q < sizeof refused / sizeof *refused; q++) {
        if (refused[q].is) {
            FAIL(ctx, E_DEVICE_STEP, "align: %s does not run on %s", refused[q].what,
                 frgi_device_name(dev));
        }
    }
    return FRG_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

static frgi_buffer take_if(frgi_device_arena *a, bool is, size_t bytes)
{
    return is ? frgi_device_take(a, bytes) : (frgi_buffer){0};
}

/** Groups of SK_FOLD points, the least number that has all of them. */
static int64_t folds(int64_t points)
{
    return (points + SK_FOLD - 1) / SK_FOLD;
}

static void layout_kept(const frgi_level *l, frgi_device_arena *a)
{
    frgi_level_device *const d = l->device;
    const size_t n = (size_t)l->x->n, m = (size_t)l->y->n, one = sizeof(double);
    const bool plan = frgi_keeps_plan(l), sums = frgi_keeps_sums(l);
    d->kept.plan = take_if(a, plan, frgi_mul(n, m) * sizeof(float));
    d->kept.by_row = take_if(a, plan, 3 * n * one);
    d->kept.sums[0] = take_if(a, sums, n * one);
    d->kept.sums[1] = take_if(a, sums, m * one);
    d->kept.squares = take_if(a, sums, (n > m ? n : m) * one);
}

static void layout(const frgi_level *l, frgi_device_arena *a)
{
    frgi_level_device *const d = l->device;
    const size_t n = (size_t)l->x->n, m = (size_t)l->y->n, rank = (size_t)l->product.rank,
                 capacity = (size_t)d->pairs.count, one = sizeof(float);
    d->x = frgi_distances_take(l->x, a);
    d->y = frgi_distances_take(l->y, a);
    d->of_pairs.mean_x = frgi_device_take(a, n * one);
    d->of_pairs.mean_y = frgi_device_take(a, m * one);
    d->of_pairs.rows_x = frgi_device_take(a, (rank + TERMS) * n * one);
    d->of_pairs.rows_y = frgi_device_take(a, (rank + TERMS) * m * one);
    d->costs = frgi_device_take(a, frgi_mul(n, m) * one);
    /* kernels get a buffer in any case, which they do not touch without a linear cost */
    d->linear = l->linear ? frgi_device_take(a, frgi_mul(n, m) * one) : d->costs;
    d->by_row = l->linear ? frgi_device_take(a, 2 * n * sizeof(double)) : d->costs;
    d->pairs.row = frgi_device_take(a, FRGI_AREAS * capacity * sizeof(int32_t));
    d->pairs.column = frgi_device_take(a, FRGI_AREAS * capacity * sizeof(int32_t));
    d->pairs.index = frgi_device_take(a, capacity * sizeof(int32_t));
    d->uniforms = frgi_device_take(a, FRGI_STAGES_OF_PAIRS * 2 * capacity * sizeof(double));
    d->of_pairs.most = take_if(a, l->o->scale == FRG_GW_SCALE_BATCH_MAX, rank * one);
    layout_kept(l, a);
    d->sides = frgi_device_take(a, 2 * CHECK_MOST * sizeof(double));
    d->moments = frgi_device_take(a, LV_MOMENTS * sizeof(double));
    d->loop.costs = d->end.costs = d->costs;
    frgi_stage_take(a, &d->loop);
    frgi_stage_take(a, &d->end);
}

static frg_status put_waiting(const frgi_level_device *d, frgi_buffer to, const void *from,
                              size_t bytes)
{
    TRY(frgi_device_put(d->place.dev, to, from, bytes));
    return frgi_device_wait(d->place.dev);
}

frg_status frgi_level_device_put_means(const frgi_level *l, frgi_buffer to_x, frgi_buffer to_y,
                                       const float *u, const float *v)
{
    frgi_level_device *const d = l->device;
    const size_t x = (size_t)l->x->n * sizeof(float), y = (size_t)l->y->n * sizeof(float);
    if (!u) {
        TRY(frgi_device_fill(d->place.dev, to_x, 0, x));
        return frgi_device_fill(d->place.dev, to_y, 0, y);
    }
    TRY(frgi_device_put(d->place.dev, to_x, u, x));
    TRY(frgi_device_put(d->place.dev, to_y, v, y));
    return frgi_device_wait(d->place.dev);
}

/** The means that pairs are centred by. */
static frg_status put_centres(const frgi_level *l)
{
    const frgi_level_device *const d = l->device;
    const float *const means = l->product.means;
    return frgi_level_device_put_means(l, d->of_pairs.mean_x, d->of_pairs.mean_y, means,
                                       means ? means + l->x->n : NULL);
}

/** The linear cost, without the padding of its rows; through host.costs, which nobody needs before
 *  the end. */
static frg_status put_linear(const frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, m = l->y->n;
    if (!l->linear) {
        return FRG_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(d->host.costs + i * m, l->linear + i * l->t.s.ld, (size_t)m * sizeof *l->linear);
    }
    return put_waiting(d, d->linear, d->host.costs, d->linear.bytes);
}

/** What does not change in a run.  Positive: stopped. */
static frg_status put_data(const frgi_level *l)
{
    frg_status status = frgi_distances_all_there(l->x, l->device->x);
    if (status == FRG_OK) {
        status = frgi_distances_all_there(l->y, l->device->y);
    }
    if (status != FRG_OK) {
        return status;
    }
    TRY(put_linear(l));
    return put_centres(l);
}

/** The arrays of gw_kept.c that belong to a saved state. */
static void keep_in_states(frgi_level *l)
{
    const frgi_level_device *const d = l->device;
    frgi_array *const own = l->saved.own;
    int *const count = &l->saved.n_own;
    if (frgi_keeps_plan(l)) {
        own[(*count)++] =
            (frgi_array){.name = "plan", .bytes = d->kept.plan.bytes, .there = {d->kept.plan}};
    }
    if (frgi_keeps_sums(l)) {
        own[(*count)++] = (frgi_array){.name = "sums",
                                       .bytes = d->kept.sums[0].bytes + d->kept.sums[1].bytes,
                                       .there = {d->kept.sums[0], d->kept.sums[1]}};
    }
}

/** Memory of the host beside it. */
static frg_status open_host(const frgi_level *l)
{
    frgi_level_device *const d = l->device;
    TRY(NEW(l->ctx, &d->host.index, d->pairs.count, "pairs"));
    for (int q = 0; q < FRGI_STAGES_OF_PAIRS; q++) {
        TRY(NEW(l->ctx, &d->host.drawn[q].rows, d->pairs.count, "pairs"));
        TRY(NEW(l->ctx, &d->host.drawn[q].uniforms, 2 * d->pairs.count, "pairs"));
    }
    return NEW(l->ctx, &d->host.costs, frgi_mul((size_t)l->x->n, (size_t)l->y->n), "the last cost");
}

/** The passes of the loop and of the end, in floats and in doubles, both over costs in floats, and
 *  the kernels around them. */
static frg_status open_programs(const frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, m = l->y->n;
    TRY(frgi_stage_open(&d->place, &d->loop, FRGI_F32, n, m));
    TRY(frgi_stage_open(&d->place, &d->end, FRGI_F64, n, m));
    d->loop.rows = "sinkhorn_rows";
    d->loop.columns = "sinkhorn_columns";
    d->end.rows = "sinkhorn_rows_float";
    d->end.columns = "sinkhorn_columns_float";
    return frgi_device_load(d->place.dev, &frgi_kernels_gw, FRGI_MIXED, &d->steps);
}

frg_status frgi_level_device_open(frgi_level *l, frgi_device *dev, int group)
{
    const int64_t n = l->x->n, m = l->y->n, most = frgi_drawn_of(l->o, l->sampled.count_most);
    frgi_level_device *d;
    TRY(NEW0(l->ctx, &d, 1, "an alignment on a device"));
    l->device = d;
    TRY(frgi_stage_place_open(&d->place, l->ctx, dev, group, n > m ? n : m));
    TRY(open_programs(l));
    d->pairs.count = most > CHECK_MOST ? most : CHECK_MOST;
    TRY(open_host(l));
    d->memory.align = frgi_device_is(dev)->align;
    layout(l, &d->memory);
    TRY(frgi_device_arena_open(&d->memory, dev, "an alignment on a device"));
    layout(l, &d->memory);
    keep_in_states(l);
    return put_data(l);
}

frg_status frgi_level_device_lend(frgi_level *l, const frgi_level *from)
{
    const frgi_level_device *const lender = from->device;
    const int64_t n = l->x->n, m = l->y->n;
    frgi_level_device *d;
    TRY(NEW0(l->ctx, &d, 1, "an alignment on a device"));
    *d = *lender;
    d->lent = true;
    d->memory = d->exact.memory = d->landmark.memory = (frgi_device_arena){0};
    memset(&d->host, 0, sizeof d->host);
    d->place = (frgi_stage_place){0};
    l->device = d;
    TRY(frgi_stage_place_open(&d->place, l->ctx, lender->place.dev, lender->place.group,
                              n > m ? n : m));
    TRY(open_host(l));
    return put_centres(l);
}

void frgi_level_device_close(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    if (!d) {
        return;
    }
    if (d->lent || d->memory.block.handle) { /* host memory belongs to the queue until then */
        const frg_status ended = frgi_device_wait(d->place.dev);
        (void)ended;
    }
    frgi_device_arena_close(&d->memory, d->place.dev);
    DROP(l->ctx, &d->host.index);
    for (int q = 0; q < FRGI_STAGES_OF_PAIRS; q++) {
        DROP(l->ctx, &d->host.drawn[q].rows);
        DROP(l->ctx, &d->host.drawn[q].uniforms);
    }
    DROP(l->ctx, &d->host.costs);
    frgi_stage_place_close(&d->place);
    DROP(l->ctx, &l->device);
}

/* ---- potentials and pairs between host and device -------------------------------------------- */

frg_status frgi_level_device_potentials(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const double tol = l->o->marginal_tol;
    const frgi_stage_problem of = {.epsilon = l->epsilon, .tol = tol};
    d->state = (frgi_stage_state){0};
    d->ahead = false;
    /* the stage takes from l->t whether its passes are accelerated; the host's of a step are not */
    l->t.accelerate = frgi_is_balanced(l->o) && tol > 0 && tol < FRGI_CLOSE;
    const frg_status status = frgi_stage_set(&d->place, &d->loop, &l->t, &of);
    l->t.accelerate = false;
    TRY(status);
    return frgi_stage_begin(&d->place, &d->loop, &l->t);
}

frgi_buffer frgi_level_device_area(const frgi_level_device *d, frgi_buffer all, int area,
                                   int64_t count)
{
    return frgi_device_slice(all, (size_t)area * (size_t)d->pairs.count * sizeof(int32_t),
                             (size_t)count * sizeof(int32_t));
}

frg_status frgi_level_device_put_pairs(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const int area = l->sampled.area[0];
    const int64_t count = l->sampled.lagged_count[0];
    const size_t bytes = (size_t)count * sizeof(int32_t);
    for (int column = 0; column < 2; column++) {
        for (int64_t r = 0; r < count; r++) {
            const frgi_pair *const p = &l->sampled.lagged[0][r];
            d->host.drawn[0].rows[r] = column ? p->j : p->i;
        }
        TRY(put_waiting(
            d, frgi_level_device_area(d, column ? d->pairs.column : d->pairs.row, area, count),
            d->host.drawn[0].rows, bytes));
    }
    return FRG_OK;
}

frg_status frgi_level_device_fetch(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const int64_t count = l->sampled.lagged_count[0];
    TRY(frgi_stage_end(&d->place, &d->loop, &l->t, &d->state));
    d->ahead = false;
    for (int row = 0; row < 2; row++) {
        const frgi_buffer from = frgi_level_device_area(d, row ? d->pairs.row : d->pairs.column,
                                                        l->sampled.area[0], count);
        TRY(frgi_device_get(d->place.dev, d->host.index, from, from.bytes));
        TRY(frgi_device_wait(d->place.dev));
        for (int64_t r = 0; r < count; r++) {
            frgi_pair *const p = &l->sampled.lagged[0][r];
            *(row ? &p->i : &p->j) = d->host.index[r];
        }
    }
    return FRG_OK;
}

/* ---- a step ---------------------------------------------------------------------------------- */

int32_t *frgi_level_device_index(const frgi_level *l)
{
    return l->device->host.index;
}

int32_t frgi_level_device_place(const frgi_level *l, int area, int64_t at)
{
    return (int32_t)(area * l->device->pairs.count + at);
}

/** The next cost is -scale left' right, of `rank` rows each, and -of_means times the product of the
 *  means of both sides. */
static void set_cost(frgi_level_device *d, frgi_buffer left, frgi_buffer right, int64_t rank,
                     double scale, double of_means)
{
    d->of_cost.left = left;
    d->of_cost.right = right;
    d->of_cost.rank = rank;
    d->of_cost.scale = scale;
    d->of_cost.of_means = of_means;
}

/** The next cost is that of R rows of both sides. */
static void take_rows(frgi_level_device *d, int64_t R, bool centred)
{
    set_cost(d, d->of_pairs.rows_x, d->of_pairs.rows_y, R, 2 / (double)R, centred ? 2 : 0);
}

/** The terms of rows and columns, as two rows more. */
static frg_status add_terms(const frgi_level *l, int64_t R)
{
    frgi_level_device *const d = l->device;
    for (int second = 0; second < 2; second++) {
        const int64_t points = second ? l->y->n : l->x->n;
        TRY(LAUNCH(d->place.dev, d->steps, "level_terms", folds(points), 1, d->place.group,
                   BUFFER(second ? d->of_pairs.rows_y : d->of_pairs.rows_x), INT64(points),
                   INT64(R), INT32(second)));
    }
    d->of_cost.rank = R + TERMS;
    return FRG_OK;
}

/** The same of the averaged marginals, R sum_k C_ik^2 r_k / sum_k r_k in the place of the sums. */
static frg_status put_kept_terms(const frgi_level *l, int64_t R)
{
    frgi_level_device *const d = l->device;
    for (int second = 0; second < 2; second++) {
        const int64_t points = second ? l->y->n : l->x->n;
        TRY(LAUNCH(d->place.dev, d->end.program, "level_squares", points, 1, d->place.group,
                   BUFFER(d->kept.squares), BUFFER(second ? d->y : d->x),
                   BUFFER(d->kept.sums[second]), INT64(points)));
        TRY(LAUNCH(d->place.dev, d->steps, "level_kept_terms", folds(points), 1, d->place.group,
                   BUFFER(second ? d->of_pairs.rows_y : d->of_pairs.rows_x),
                   BUFFER(d->kept.squares), BUFFER(d->kept.sums[second]), INT64(points), INT64(R),
                   INT32(second)));
    }
    d->of_cost.rank = R + TERMS;
    return FRG_OK;
}

/** Scale batch_max: the rows of a side divided by their largest number. */
static frg_status divide(const frgi_level_device *d, frgi_buffer rows, int64_t points, int64_t R)
{
    TRY(LAUNCH(d->place.dev, d->steps, "level_row_most", R, 1, d->place.group,
               BUFFER(d->of_pairs.most), BUFFER(rows), INT64(points)));
    return LAUNCH(d->place.dev, d->steps, "level_divide", R, 1, d->place.group, BUFFER(rows),
                  BUFFER(d->of_pairs.most), INT64(points), INT64(R));
}

/** Rows of a side's distances at R pairs, less the means that these are centred by. */
static frg_status gather_rows(const frgi_level *l, bool second, int64_t R)
{
    const frgi_level_device *const d = l->device;
    const frgi_buffer rows = second ? d->of_pairs.rows_y : d->of_pairs.rows_x;
    const int64_t points = second ? l->y->n : l->x->n;
    TRY(LAUNCH(d->place.dev, d->steps, "level_rows", R, 1, d->place.group, BUFFER(rows),
               BUFFER(second ? d->y : d->x), BUFFER(second ? d->pairs.column : d->pairs.row),
               BUFFER(d->pairs.index), BUFFER(second ? d->of_pairs.mean_y : d->of_pairs.mean_x),
               INT64(points)));
    return l->o->scale == FRG_GW_SCALE_BATCH_MAX ? divide(d, rows, points, R) : FRG_OK;
}

frg_status frgi_level_device_rows(frgi_level *l, int64_t R)
{
    frgi_level_device *const d = l->device;
    TRY(frgi_device_put(d->place.dev, d->pairs.index, d->host.index, (size_t)R * sizeof(int32_t)));
    TRY(gather_rows(l, false, R));
    TRY(gather_rows(l, true, R));
    take_rows(d, R, l->product.means != NULL);
    return frgi_keeps_sums(l)       ? put_kept_terms(l, R)
           : frgi_is_balanced(l->o) ? FRG_OK
                                    : add_terms(l, R);
}

frg_status frgi_level_device_pack(frgi_level *l, int64_t R)
{
    frgi_level_device *const d = l->device;
    const size_t x = (size_t)(R * l->x->n) * sizeof(float),
                 y = (size_t)(R * l->y->n) * sizeof(float);
    TRY(frgi_device_put(d->place.dev, d->of_pairs.rows_x, l->product.rows_x, x));
    TRY(frgi_device_put(d->place.dev, d->of_pairs.rows_y, l->product.rows_y, y));
    take_rows(d, R, false);
    return frgi_device_wait(d->place.dev);
}

static int64_t tiles(int64_t points)
{
    return (points + LV_TILE - 1) / LV_TILE;
}

/** out (rows x columns) <- left' right, of `rank` rows each. */
frg_status frgi_level_device_product(const frgi_level_device *d, const frgi_program *p,
                                     frgi_buffer out, frgi_buffer left, frgi_buffer right,
                                     int64_t rows, int64_t columns, int64_t rank)
{
    return LAUNCH(d->place.dev, p, "level_product", tiles(rows), tiles(columns), d->place.group,
                  BUFFER(out), BUFFER(left), BUFFER(right), BUFFER(left), BUFFER(left),
                  BUFFER(right), INT64(rows), INT64(columns), INT64(rank), REAL(0), REAL(1),
                  REAL(0), REAL(0));
}

/** The cost of the step: a share of it in the average. */
static frg_status make_cost(const frgi_level *l, double share)
{
    const frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, m = l->y->n;
    const double theta = l->o->linear_weight, cross = -share * (1 - theta);
    return LAUNCH(d->place.dev, d->steps, "level_product", tiles(n), tiles(m), d->place.group,
                  BUFFER(d->costs), BUFFER(d->of_cost.left), BUFFER(d->of_cost.right),
                  BUFFER(d->of_pairs.mean_x), BUFFER(d->of_pairs.mean_y), BUFFER(d->linear),
                  INT64(n), INT64(m), INT64(d->of_cost.rank), REAL(1 - share),
                  REAL(cross * d->of_cost.scale), REAL(cross * d->of_cost.of_means),
                  REAL(l->linear ? share * theta : 0));
}

/** Potentials into the exponents at l->epsilon, a new state, tol of the passes. */
static frg_status renew(frgi_level *l, double tol)
{
    frgi_level_device *const d = l->device;
    const double k = FRGI_LOG2_E / l->epsilon, ratio = l->t.k > 0 ? k / l->t.k : 1;
    const int64_t n = l->x->n, m = l->y->n, most = n > m ? n : m;
    l->t.k = k;
    TRY(LAUNCH(d->place.dev, d->steps, "level_renew", folds(most), 1, d->place.group,
               BUFFER(d->loop.v), BUFFER(d->loop.counts), BUFFER(d->loop.at), INT32(d->loop.slot),
               REAL(k), REAL(ratio), REAL(tol)));
    d->loop.slot = 1 - d->loop.slot;
    return l->o->mass > 0 ? LAUNCH(d->place.dev, d->steps, "level_log_sum", 1, 1, d->place.group,
                                   BUFFER(d->loop.v), BUFFER(d->loop.at), INT32(d->loop.slot))
                          : FRG_OK;
}

/** The change of the potentials over the step and the state behind its passes, in one wait. */
static frg_status poll_step(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const frgi_buffer from = frgi_stage_vector(&d->loop, SK_CHANGE, 1);
    TRY(LAUNCH(d->place.dev, d->steps, "level_change", 1, 1, d->place.group, BUFFER(d->loop.v),
               BUFFER(d->loop.at), INT32(d->loop.place[SK_ACCELERATE] != 0)));
    TRY(frgi_device_get(d->place.dev, &d->host.change, from, sizeof d->host.change));
    TRY(frgi_stage_poll(&d->place, &d->loop, &d->state));
    l->stopping.change = (double)d->host.change / 2 / FRGI_LOG2_E;
    return FRG_OK;
}

static bool is_out_of_range(const frgi_level_device *d)
{
    return d->state.count[SKC_FAR] > 0 || d->state.of[SKS_INCREMENT] > FRGI_STAGE_FAR;
}

frg_status frgi_level_device_solve(frgi_level *l, double share, int64_t passes, double tol)
{
    frgi_level_device *const d = l->device;
    TRY(make_cost(l, share));
    TRY(renew(l, tol));
    d->ahead = true;
    int64_t batch = passes;
    for (int64_t more = 0; more <= NEAR_PASSES; more++) {
        TRY(frgi_stage_submit(&d->place, &d->loop, batch));
        TRY(poll_step(l));
        if (d->state.count[SKC_DONE] == SKD_NOT_A_NUMBER) {
            FAIL(l->ctx, E_NUMERIC, "outer step %lld at epsilon %g gave %g", (long long)l->step + 1,
                 l->epsilon, d->state.of[SKS_ERROR]);
        }
        if (d->state.count[SKC_DONE] || !is_out_of_range(d)) {
            break;
        }
        /* rows of the plan are drawn from and read, so that exponents have to be near 0: potentials
         * go into them, and one more pass tells whether that is near enough */
        TRY(frgi_stage_fold(&d->place, &d->loop));
        batch = 1;
    }
    l->t.last.error = d->state.of[SKS_ERROR];
    l->t.last.at_floor = d->state.count[SKC_DONE] == SKD_AT_FLOOR;
    l->t.passes += d->state.count[SKC_PASSES];
    l->spent.passes += d->state.count[SKC_PASSES];
    return FRG_OK;
}

/* ---- the mode exact -------------------------------------------------------------------------- */

static void layout_exact(const frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const size_t n = (size_t)l->x->n, all = frgi_mul(n, (size_t)l->y->n) * sizeof(float);
    d->exact.plan = frgi_device_take(&d->exact.memory, all);
    d->exact.middle = frgi_device_take(&d->exact.memory, all);
    d->exact.by_row = frgi_device_take(&d->exact.memory, 3 * n * sizeof(double));
}

/** to <- the plan to start from, or a b'; through host.costs, which nobody needs before the end. */
static frg_status put_initial(const frgi_level *l, frgi_buffer to)
{
    const frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, m = l->y->n;
    for (int64_t e = 0; e < n * m; e++) {
        d->host.costs[e] =
            l->initial.plan ? l->initial.plan[e] : (float)(l->a[e / m] * l->b[e % m]);
    }
    return put_waiting(d, to, d->host.costs, to.bytes);
}

frg_status frgi_level_device_exact_open(frgi_level *l, frgi_buffer *plan)
{
    frgi_level_device *const d = l->device;
    d->exact.memory = (frgi_device_arena){.align = d->memory.align};
    layout_exact(l);
    TRY(frgi_device_arena_open(&d->exact.memory, d->place.dev, "exact linearisation"));
    layout_exact(l);
    *plan = d->exact.plan;
    return put_initial(l, d->exact.plan);
}

void frgi_level_device_averaged_close(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    frgi_device_arena_close(&d->exact.memory, d->place.dev);
    frgi_device_arena_close(&d->landmark.memory, d->place.dev);
}

frg_status frgi_level_device_linearise(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, m = l->y->n;
    TRY(frgi_level_device_product(d, d->steps, d->exact.middle, d->exact.plan, d->x, m, n,
                                  n)); /* P' C */
    set_cost(d, d->exact.middle, d->y, m, 2, 0);
    return FRG_OK;
}

/** The plan into the averaged one, alpha its share; changes[0], [1] <- the sums of the squares of
 *  the change and of the plan. */
static frg_status average(const frgi_level *l, frgi_buffer plan, frgi_buffer by_row, double alpha,
                          double *changes)
{
    const frgi_level_device *const d = l->device;
    const int64_t n = l->x->n;
    TRY(LAUNCH(d->place.dev, d->steps, "level_average", n, 1, d->place.group, BUFFER(plan),
               BUFFER(by_row), BUFFER(d->costs), BUFFER(d->loop.v), BUFFER(d->loop.at),
               INT32(d->loop.slot), WIDE(alpha)));
    TRY(LAUNCH(d->place.dev, d->steps, "level_two_sums", 1, 1, d->place.group, BUFFER(d->moments),
               BUFFER(by_row), INT64(n)));
    TRY(frgi_device_get(d->place.dev, changes, d->moments, 2 * sizeof *changes));
    return frgi_device_wait(d->place.dev);
}

frg_status frgi_level_device_average(frgi_level *l, double *change, double *norm)
{
    frgi_level_device *const d = l->device;
    double *const squares = d->host.moments;
    TRY(average(l, d->exact.plan, d->exact.by_row, l->o->damping, squares));
    *change = sqrt(squares[0]);
    *norm = sqrt(squares[1]);
    return FRG_OK;
}

/* ---- what is kept of the plan (gw_kept.c) ---------------------------------------------------- */

frg_status frgi_level_device_keep_reset(frgi_level *l, bool known)
{
    frgi_level_device *const d = l->device;
    const frgi_buffer plan = d->kept.plan;
    d->kept.known = known;
    if (frgi_keeps_plan(l)) {
        TRY(known ? put_initial(l, plan) : frgi_device_fill(d->place.dev, plan, 0, plan.bytes));
    }
    if (frgi_keeps_sums(l)) {
        TRY(put_waiting(d, d->kept.sums[0], l->a, d->kept.sums[0].bytes));
        TRY(put_waiting(d, d->kept.sums[1], l->b, d->kept.sums[1].bytes));
    }
    return FRG_OK;
}

void frgi_level_device_keep_taken(const frgi_level *l, const char *plan)
{
    const int64_t count = l->x->n * l->y->n;
    bool known = false;
    for (int64_t e = 0; e < count && !known; e++) {
        float p;
        memcpy(&p, plan + (size_t)e * sizeof p, sizeof p); /* a section begins anywhere */
        known = p > 0;
    }
    l->device->kept.known = known;
}

frg_status frgi_level_device_keep_fold(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    double *const squares = d->host.moments;
    if (frgi_keeps_plan(l)) { /* of a plan that nothing is known of the new one is taken whole */
        const bool known = d->kept.known;
        TRY(average(l, d->kept.plan, d->kept.by_row, known ? l->o->damping : 1, squares));
        l->stopping.change = known ? sqrt(squares[0]) : (double)INFINITY;
        d->kept.known = true;
    }
    for (int second = 0; second < 2 && frgi_keeps_sums(l); second++) {
        const int64_t points = second ? l->y->n : l->x->n;
        TRY(LAUNCH(d->place.dev, d->steps, "level_keep_sums", folds(points), 1, d->place.group,
                   BUFFER(d->kept.sums[second]), BUFFER(d->loop.v), BUFFER(d->loop.at),
                   WIDE(l->o->damping), INT32(second)));
    }
    return FRG_OK;
}

/* ---- the mode landmark ----------------------------------------------------------------------- */

static void layout_landmark(const frgi_level *l)
{
    frgi_level_device *const d = l->device;
    frgi_device_arena *const a = &d->landmark.memory;
    const size_t n = (size_t)l->x->n, m = (size_t)l->y->n, x = (size_t)d->landmark.wide_x,
                 y = (size_t)d->landmark.wide_y, one = sizeof(double);
    d->landmark.u_x = frgi_device_take(a, n * x * one);
    d->landmark.v_x = frgi_device_take(a, n * x * one);
    d->landmark.v_y = frgi_device_take(a, m * y * one);
    d->landmark.image = frgi_device_take(a, n * y * one);
    d->landmark.core = frgi_device_take(a, x * y * one);
    d->landmark.left = frgi_device_take(a, n * y * sizeof(float));
    d->landmark.right = frgi_device_take(a, m * y * sizeof(float));
}

/** right <- U_y', in floats. */
static frg_status put_right(const frgi_level *l, const double *u_y)
{
    const frgi_level_device *const d = l->device;
    const int64_t m = l->y->n, wide = d->landmark.wide_y;
    float *right;
    TRY(NEW(l->ctx, &right, wide * m, "landmark factors"));
    for (int64_t b = 0; b < wide; b++) {
        for (int64_t j = 0; j < m; j++) {
            right[b * m + j] = (float)u_y[j * wide + b];
        }
    }
    const frg_status status = put_waiting(d, d->landmark.right, right, d->landmark.right.bytes);
    DROP(l->ctx, &right);
    return status;
}

frg_status frgi_level_device_landmark_open(frgi_level *l, const frgi_landmark_factors *f,
                                           frgi_buffer *core)
{
    frgi_level_device *const d = l->device;
    d->landmark.memory = (frgi_device_arena){.align = d->memory.align};
    d->landmark.wide_x = f->wide_x;
    d->landmark.wide_y = f->wide_y;
    layout_landmark(l);
    TRY(frgi_device_arena_open(&d->landmark.memory, d->place.dev, "landmark factors"));
    layout_landmark(l);
    TRY(put_waiting(d, d->landmark.u_x, f->u_x, d->landmark.u_x.bytes));
    TRY(put_waiting(d, d->landmark.v_x, f->v_x, d->landmark.v_x.bytes));
    TRY(put_waiting(d, d->landmark.v_y, f->v_y, d->landmark.v_y.bytes));
    TRY(put_waiting(d, d->landmark.core, f->core, d->landmark.core.bytes));
    *core = d->landmark.core;
    return put_right(l, f->u_y);
}

frg_status frgi_level_device_landmark_linearise(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, wide = d->landmark.wide_y;
    TRY(LAUNCH(d->place.dev, d->steps, "level_left", folds(n), wide, d->place.group,
               BUFFER(d->landmark.left), BUFFER(d->landmark.u_x), BUFFER(d->landmark.core),
               INT64(n), INT64(d->landmark.wide_x), INT64(wide)));
    set_cost(d, d->landmark.left, d->landmark.right, wide, 2, 0);
    return FRG_OK;
}

frg_status frgi_level_device_landmark_average(frgi_level *l)
{
    frgi_level_device *const d = l->device;
    const int64_t n = l->x->n, rows = d->landmark.wide_x, columns = d->landmark.wide_y;
    TRY(LAUNCH(d->place.dev, d->steps, "level_image", n, 1, d->place.group,
               BUFFER(d->landmark.image), BUFFER(d->landmark.v_y), BUFFER(d->costs),
               BUFFER(d->loop.v), BUFFER(d->loop.at), INT64(columns)));
    return LAUNCH(d->place.dev, d->steps, "level_core", rows, columns, d->place.group,
                  BUFFER(d->landmark.core), BUFFER(d->landmark.v_x), BUFFER(d->landmark.image),
                  INT64(n), INT64(rows), INT64(columns), WIDE(l->o->damping));
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/** The draw whose host memory pairs of an area go through: one of all lags, each check its own. */
static int memory_of(int area)
{
    return area < FRGI_AREA_CHECK ? 0 : area - FRGI_AREA_CHECK + 1;
}

double *frgi_level_device_uniforms(const frgi_level *l, int area)
{
    return l->device->host.drawn[memory_of(area)].uniforms;
}

frg_status frgi_level_device_draw(frgi_level *l, int area, bool averaged, const frgi_pair *pairs,
                                  int64_t count)
{
    frgi_level_device *const d = l->device;
    const int memory = memory_of(area);
    int32_t *const rows = d->host.drawn[memory].rows;
    const int64_t from = memory * 2 * d->pairs.count;
    const size_t bytes = (size_t)(pairs ? count : 2 * count) * sizeof(double);
    for (int64_t r = 0; r < count && pairs; r++) {
        rows[r] = pairs[r].i;
    }
    TRY(frgi_device_put(d->place.dev,
                        frgi_device_slice(d->uniforms, (size_t)from * sizeof(double), bytes),
                        d->host.drawn[memory].uniforms, bytes));
    if (pairs) {
        TRY(frgi_device_put(d->place.dev, frgi_level_device_area(d, d->pairs.row, area, count),
                            rows, (size_t)count * sizeof *rows));
    } else {
        TRY(LAUNCH(d->place.dev, d->steps, "level_draw_rows", 1, 1, d->place.group,
                   BUFFER(d->pairs.row), BUFFER(d->moments), BUFFER(d->uniforms), BUFFER(d->loop.v),
                   BUFFER(d->loop.at), BUFFER(averaged ? d->kept.by_row : d->uniforms),
                   INT32(averaged), INT64(area * d->pairs.count), INT64(from + count),
                   INT64(count)));
    }
    return LAUNCH(d->place.dev, d->steps, "level_draw", count, 1, d->place.group,
                  BUFFER(d->pairs.column), BUFFER(d->pairs.row), BUFFER(d->uniforms),
                  BUFFER(averaged ? d->kept.plan : d->costs), BUFFER(d->loop.v), BUFFER(d->loop.at),
                  INT32(averaged), INT64(area * d->pairs.count), INT64(from));
}
