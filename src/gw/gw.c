/* gw.c - alignment of two spaces: options, checks, and the order of things.
 *
 *     distances of both sides
 *     coarse start, or several short starts           (large; small)
 *     outer steps: L(P) from anchors, a few passes of Sinkhorn's iteration, new anchors
 *     polish: accelerated passes on the last L to marginals of polish_tol, then rounding
 *     energy, standard error, lower bound
 *
 * References: Peyre, Cuturi and Solomon (2016), entropic Gromov-Wasserstein; Kerdoncuff, Emonet and Sebban (2021),
 * sampled Gromov-Wasserstein; Altschuler, Weed and Rigollet (2017), rounding; Memoli (2011), lower bounds.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_exact.h"
#include "gw/gw_lowrank.h"
#include "gw/gw_state.h"

enum { TRIAL_STEPS = 5 }; /* of one of several starts: enough to tell a fold from its energy */

/* Multiply-adds of an exact energy that are worth doing unasked. */
#define EXACT_ENERGY 2e9
/* Coordinates, of all pairs of points of both sides, that are worth looking at unasked. */
#define ALL_DISTANCES 1e9

struct frg_gw {
    frg_context *ctx;
    frg_gw_opts o;
    frgi_distances x, y;
    double *a, *b;
    float *linear;
    float *start; /* n x m */
    double *row_sums, *unused;
    frgi_level level;
    frgi_factored factors; /* rank > 0 */
    frg_plan plan;
    frg_gw_report report;
    struct frgi_state state;
    frg_status stopped; /* positive: while distances were made */
    bool degenerate;
};

const char *frg_gw_reason_name(frg_gw_reason r)
{
    static const char *const names[] = {"running",   "converged_change", "converged_plateau",
                                        "max_iter",  "cancelled",        "stalled_product",
                                        "degenerate"};
    return (size_t)r < sizeof names / sizeof *names ? names[r] : "?";
}

void frg_gw_defaults(frg_gw_opts *o, size_t struct_size)
{
    const frg_gw_opts defaults = {.struct_size = sizeof defaults,
                                  .k = 30,
                                  .stitch = 1,
                                  .landmarks = 50,
                                  .anchors = 80,
                                  .epsilon = 0.001,
                                  .damping = 0.9,
                                  .max_iter = 500,
                                  .min_iter = 20,
                                  .tol = 1e-5,
                                  .max_inner = 3,
                                  .marginal_tol = 5e-4,
                                  .rho_source = (double)INFINITY,
                                  .rho_target = (double)INFINITY,
                                  .lambda_ema_beta = 0.5,
                                  .n_start = 4,
                                  .fine_steps = 3,
                                  .polish = 1,
                                  .round = 1,
                                  .polish_tol = 1e-4,
                                  .polish_passes = 400,
                                  .cache_rows = 2000,
                                  .lr_max_iter = 5,
                                  .lr_dykstra_max_iter = 50};
    memcpy(o, &defaults, struct_size < sizeof defaults ? struct_size : sizeof defaults);
    if (struct_size >= sizeof o->struct_size) {
        o->struct_size = struct_size;
    }
}

void frg_gw_apply_preset(frg_gw_opts *o, frg_gw_preset preset)
{
    if (preset != FRG_GW_PRESET_TORCHGW) {
        return;
    }
    o->mode = FRG_GW_SAMPLED;
    o->scale = FRG_GW_SCALE_BATCH_MAX;
    o->anneal = FRG_GW_ANNEAL_ITER;
    o->sampling = FRG_GW_MULTINOMIAL;
    o->max_inner = 10;
    o->min_iter = 50;
    o->lambda_ema_beta = 0;
    o->mass = 0;
    o->multiscale = FRG_GW_MULTISCALE_OFF;
    o->n_start = 1;
    o->polish = 0;
}

/* ---- checks ----------------------------------------------------------------------------------------- */

static frg_status check_options(frg_context *ctx, frg_gw_opts *o, bool linear)
{
    const struct {
        const char *name;
        double value, low, high;
        bool open;
    } ranges[] = {{"anchors", (double)o->anchors, 1, 1e9, false},
                  {"k", (double)o->k, 1, 1e9, false},
                  {"landmarks", (double)o->landmarks, 1, 1e9, false},
                  {"damping", o->damping, 0, 1, true},
                  {"max_iter", (double)o->max_iter, 0, 1e18, false},
                  {"min_iter", (double)o->min_iter, 0, 1e18, false},
                  {"tol", o->tol, 0, (double)INFINITY, false},
                  {"max_inner", (double)o->max_inner, 1, 1e18, false},
                  {"marginal_tol", o->marginal_tol, 0, (double)INFINITY, false},
                  {"linear_weight", o->linear_weight, 0, 1, false},
                  {"lambda_ema_beta", o->lambda_ema_beta, 0, 1, false},
                  {"mass", o->mass, 0, (double)INFINITY, false},
                  {"rho_source", o->rho_source, 0, (double)INFINITY, true},
                  {"rho_target", o->rho_target, 0, (double)INFINITY, true},
                  {"n_start", (double)o->n_start, 1, 1e6, false},
                  {"n_coarse", (double)o->n_coarse, 0, 1e9, false},
                  {"fine_steps", (double)o->fine_steps, 1, 1e9, false},
                  {"polish_tol", o->polish_tol, 0, (double)INFINITY, false},
                  {"polish_passes", (double)o->polish_passes, 0, 1e18, false},
                  {"cache_rows", (double)o->cache_rows, 1, 1e18, false},
                  {"rank", (double)o->rank, 0, 1e9, false},
                  {"lr_max_iter", (double)o->lr_max_iter, 1, 1e18, false},
                  {"lr_dykstra_max_iter", (double)o->lr_dykstra_max_iter, 1, 1e18, false}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const double v = ranges[i].value;
        REQUIRE(ctx,
                v <= ranges[i].high && (ranges[i].open ? v > ranges[i].low : v >= ranges[i].low),
                "%s is %g, it must be %s %g and <= %g", ranges[i].name, v,
                ranges[i].open ? ">" : ">=", ranges[i].low, ranges[i].high);
    }
    REQUIRE(ctx, isfinite(o->epsilon), "epsilon is %g, a finite number is needed", o->epsilon);
    if (!(o->epsilon > 0)) {
        frgi_warn(ctx, W_EPSILON, "epsilon was %g", o->epsilon);
        o->epsilon = 1e-4;
    }
    REQUIRE(ctx, o->linear_weight == 0 || linear, "linear_weight is %g without a linear cost",
            o->linear_weight);
    const bool relaxed = isfinite(o->rho_source) || isfinite(o->rho_target);
    if (o->mass > 0 && relaxed) {
        FAIL(ctx, E_UNSUPPORTED, "mass together with relaxed marginals");
    }
    if ((o->mode == FRG_GW_EXACT || o->mode == FRG_GW_LANDMARK) && (o->mass > 0 || relaxed)) {
        FAIL(ctx, E_UNSUPPORTED,
             "partial mass and relaxed marginals in the modes exact and landmark");
    }
    const bool sampled = o->mode == FRG_GW_AUTO || o->mode == FRG_GW_SAMPLED;
    if (o->rank > 0 && (o->mass > 0 || relaxed || !sampled)) {
        FAIL(
            ctx, E_UNSUPPORTED,
            "plans of low rank with partial mass, relaxed marginals, or a mode other than sampled");
    }
    if ((o->store_plan || o->diag_exact) && (o->rank > 0 || !sampled)) {
        FAIL(ctx, E_UNSUPPORTED,
             "store_plan and diag_exact with plans of low rank or a mode other than sampled");
    }
    return FRG_OK;
}

static frg_status take_linear(frg_gw *s, const frg_array *a)
{
    frg_context *const ctx = s->ctx;
    TRY(frgi_array_check(ctx, a, "linear", 2, 1u << FRG_F32 | 1u << FRG_F64));
    const int64_t n = s->x.n, m = s->y.n;
    if (a->shape[0] != n || a->shape[1] != m) {
        FAIL(ctx, E_SHAPE, "the linear cost is %lld x %lld, %lld x %lld is needed",
             (long long)a->shape[0], (long long)a->shape[1], (long long)n, (long long)m);
    }
    const int64_t rows = (n + FRGI_GROUP - 1) / FRGI_GROUP * FRGI_GROUP;
    const int64_t ld = (m + FRGI_PAD - 1) / FRGI_PAD * FRGI_PAD;
    TRY(NEW0(ctx, &s->linear, frgi_mul((size_t)rows, (size_t)ld), "the linear cost"));
    const char *const base = frgi_array_base(a);
    float most = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            const int64_t at = i * a->stride[0] + j * a->stride[1];
            const double x = a->dtype == FRG_F64 ? ((const double *)(const void *)base)[at]
                                                 : (double)((const float *)(const void *)base)[at];
            if (!(fabs(x) <= FRGI_LENGTH_MAX)) {
                frgi_at(ctx, "linear, row %lld, column %lld", (long long)i + 1, (long long)j + 1);
                FAIL(ctx, E_DISTANCE, "a cost is %g", x);
            }
            s->linear[i * ld + j] = (float)x;
            most = fmaxf(most, fabsf((float)x));
        }
    }
    if (s->o.scale_linear == FRG_GW_LINEAR_MAX && most > 0) {
        const float scale = 1 / most;
        for (int64_t i = 0; i < rows * ld; i++) {
            s->linear[i] *= scale;
        }
    }
    return FRG_OK;
}

static frg_status take_marginals(frg_gw *s, const double *a, const double *b)
{
    frg_context *const ctx = s->ctx;
    double sum_a, sum_b;
    TRY(NEW(ctx, &s->a, s->x.n, "weights"));
    TRY(NEW(ctx, &s->b, s->y.n, "weights"));
    TRY(frgi_take_weights(ctx, a, s->x.n, "source", s->a, &sum_a));
    TRY(frgi_take_weights(ctx, b, s->y.n, "target", s->b, &sum_b));
    const double least = fmin(sum_a, sum_b);
    REQUIRE(ctx, s->o.mass <= least * (1 + 1e-12), "mass is %g, the weights sum to %g and %g",
            s->o.mass, sum_a, sum_b);
    if (s->o.mass >= least * (1 - 1e-12)) {
        s->o.mass = 0;
    }
    if (frgi_is_balanced(&s->o)) {
        return frgi_normalise_weights(ctx, s->a, s->x.n, sum_a, s->b, s->y.n, sum_b);
    }
    return FRG_OK;
}

/** Exponents are stored where they fit into a quarter of what is allowed. */
static bool store_fits(const frg_gw *s)
{
    if (s->o.cost_store == FRG_GW_STORE_FLY) {
        return false;
    }
    const double bytes = 4.0 * (double)s->x.n * (double)s->y.n;
    const double allowed = (double)frgi_memory_allowed(s->ctx);
    return s->o.cost_store == FRG_GW_STORE_F32 || bytes < 0.25 * allowed;
}

static bool is_multiscale(const frg_gw *s)
{
    const frg_gw_opts *const o = &s->o;
    const bool possible = (o->mode == FRG_GW_AUTO || o->mode == FRG_GW_SAMPLED) && !s->start &&
                          frgi_is_balanced(o) && o->linear_weight == 0;
    return possible &&
           (o->multiscale == FRG_GW_MULTISCALE_ON ||
            (o->multiscale == FRG_GW_MULTISCALE_AUTO && (double)s->x.n * (double)s->y.n > 1e6));
}

/** Is every plan with the marginals as good?  One point: there is but one plan.  Zeros alone on a side: no cross term.
 *  What is taken of each point is to be found even then where marginals are partial or relaxed. */
static bool all_plans_alike(const frg_gw *s)
{
    const bool zero_x = !(s->x.most > 0), zero_y = !(s->y.most > 0);
    const bool settled = frgi_is_balanced(&s->o), single = s->x.n == 1 || s->y.n == 1;
    return (settled && single) ||
           (s->o.linear_weight == 0 && (settled ? zero_x || zero_y : zero_x && zero_y));
}

static frg_status open_all(frg_gw *s, const frg_gw_side *x, const frg_gw_side *y,
                           const frg_array *linear)
{
    frg_context *const ctx = s->ctx;
    TRY(check_options(ctx, &s->o, linear != NULL));
    if (s->o.mode == FRG_GW_LANDMARK && (s->o.distance == FRG_GW_DISTANCE_AUTO)) {
        s->o.distance = FRG_GW_DISTANCE_LANDMARK;
    }
    frg_status status = frgi_distances_open(&s->x, ctx, x, &s->o, "source");
    if (status == FRG_OK) {
        status = frgi_distances_open(&s->y, ctx, y, &s->o, "target");
    }
    if (status != FRG_OK) {
        return status;
    }
    if (s->o.mode == FRG_GW_LANDMARK && s->x.metric + s->y.metric != (int)FRG_GW_LANDMARK_L2) {
        FAIL(ctx, E_UNSUPPORTED, "the mode landmark with a landmark_metric other than l2");
    }
    if (s->o.mode == FRG_GW_LANDMARK && (s->x.kind != FRGI_VECTOR || s->y.kind != FRGI_VECTOR)) {
        FAIL(ctx, E_UNSUPPORTED,
             "the mode landmark with distances other than landmark and euclidean");
    }
    if (s->o.diag_exact && (s->x.kind == FRGI_ROWS || s->y.kind == FRGI_ROWS)) {
        FAIL(ctx, E_UNSUPPORTED, "diag_exact with distances that are computed row by row");
    }
    TRY(take_marginals(s, x->weights, y->weights));
    if (linear) {
        TRY(take_linear(s, linear));
    }
    s->degenerate = all_plans_alike(s);
    const bool sampled = s->o.mode == FRG_GW_AUTO || s->o.mode == FRG_GW_SAMPLED;
    const bool store = s->o.rank == 0 && store_fits(s);
    TRY(frgi_level_open(&s->level, ctx, &s->o, &s->x, &s->y, s->a, s->b, s->linear, store,
                        store && is_multiscale(s)));
    s->level.smooths = store && sampled;
    s->state = (struct frgi_state){.ctx = ctx, .report = &s->report, .owner = s};
    s->level.state = &s->state;
    s->report.n = s->x.n;
    s->report.m = s->y.n;
    s->report.components_source = s->x.components;
    s->report.components_target = s->y.components;
    s->report.graph_seconds = s->x.graph_seconds + s->y.graph_seconds;
    s->report.distances_seconds = s->x.seconds + s->y.seconds;
    return FRG_OK;
}

frg_status frg_gw_create(frg_gw **out, frg_context *ctx, frg_gw_side x, frg_gw_side y,
                         const frg_array *linear, const frg_gw_opts *o)
{
    REQUIRE(ctx, out, "out is NULL");
    *out = NULL;
    const double begin = frgi_seconds();
    frg_gw *s;
    TRY(NEW0(ctx, &s, 1, "an alignment"));
    s->ctx = ctx;
    frg_gw_defaults(&s->o, sizeof s->o);
    if (o) {
        frgi_take_opts(&s->o, sizeof s->o, o);
    }
    frg_gw_apply_preset(&s->o, s->o.preset);
    frgi_run_begins(ctx);
    const frg_status status = open_all(s, &x, &y, linear);
    if (status < 0) {
        frg_gw_destroy(s);
        return status;
    }
    s->stopped = status;
    s->report.total_seconds = frgi_seconds() - begin;
    *out = s;
    return status;
}

void frg_gw_destroy(frg_gw *s)
{
    if (!s) {
        return;
    }
    frg_context *const ctx = s->ctx;
    frgi_level_close(&s->level);
    frgi_state_close(&s->state);
    frgi_distances_close(&s->x);
    frgi_distances_close(&s->y);
    DROP(ctx, &s->a);
    DROP(ctx, &s->b);
    DROP(ctx, &s->linear);
    DROP(ctx, &s->start);
    frgi_factored_close(&s->factors, ctx);
    DROP(ctx, &s);
}

/* ---- starts -------------------------------------------------------------------------------------------- */

frg_status frg_gw_start_plan(frg_gw *s, frg_array plan)
{
    frg_context *const ctx = s->ctx;
    const int64_t n = s->x.n, m = s->y.n;
    if (s->stopped) {
        return s->stopped;
    }
    if (s->o.max_iter == 0 && !frgi_is_balanced(&s->o)) {
        FAIL(ctx, E_UNSUPPORTED,
             "a plan to start from and no steps where marginals are partial or relaxed");
    }
    if (s->o.rank > 0) {
        FAIL(ctx, E_UNSUPPORTED, "a plan to start from where the plan has low rank");
    }
    TRY(frgi_array_check(ctx, &plan, "plan", 2, 1u << FRG_F32 | 1u << FRG_F64));
    if (plan.shape[0] != n || plan.shape[1] != m) {
        FAIL(ctx, E_SHAPE, "the plan is %lld x %lld, %lld x %lld is needed",
             (long long)plan.shape[0], (long long)plan.shape[1], (long long)n, (long long)m);
    }
    float *copy;
    TRY(NEW(ctx, &copy, frgi_mul((size_t)n, (size_t)m), "a plan"));
    const char *const base = frgi_array_base(&plan);
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            const int64_t at = i * plan.stride[0] + j * plan.stride[1];
            const double p = plan.dtype == FRG_F64
                                 ? ((const double *)(const void *)base)[at]
                                 : (double)((const float *)(const void *)base)[at];
            if (!(p >= 0 && p < (double)INFINITY)) {
                DROP(ctx, &copy);
                frgi_at(ctx, "plan, row %lld, column %lld", (long long)i + 1, (long long)j + 1);
                FAIL(ctx, E_MARGINAL, "an entry is %g", p);
            }
            copy[i * m + j] = (float)p;
            total += p;
        }
    }
    if (!(total > 0)) {
        DROP(ctx, &copy);
        FAIL(ctx, E_MARGINAL, "the plan is zero");
    }
    for (int64_t i = 0; i < n * m; i++) {
        copy[i] = (float)((double)copy[i] / total);
    }
    DROP(ctx, &s->start);
    s->start = copy;
    s->level.start = copy;
    return FRG_OK;
}

/** Anchors of a plan that is given: independent draws by inversion over all entries. */
static void draw_from_start(frg_gw *s)
{
    frgi_level *const l = &s->level;
    const int64_t m = s->y.n, count = s->x.n * m;
    for (int64_t r = 0; r < l->room; r++) {
        double u[2], below = 0;
        frgi_uniforms(l->seed, STREAM_START, (uint64_t)r, 0, u);
        int64_t at = 0;
        for (; at < count - 1; at++) {
            below += (double)s->start[at];
            if (below > u[0]) {
                break;
            }
        }
        l->ages[0][r] = (frgi_pair){(int32_t)(at / m), (int32_t)(at % m)};
    }
}

/** Several short runs; the one of lowest energy, or objective, goes on from where it was. */
static frg_status short_starts(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_reason reason;
    l->phase = FRGI_STARTS;
    for (int64_t run = frgi_state_turn(l, FRGI_STARTS); run < s->o.n_start; run++) {
        double energy, error;
        TRY(frgi_level_reset(l, (uint64_t)run));
        l->turn = run;
        const frg_status status = frgi_level_loop(l, TRIAL_STEPS, TRIAL_STEPS, false, &reason,
                                                  &s->report.outer_iterations);
        if (status != FRG_OK) {
            return status;
        }
        TRY(frgi_cost_estimate(l, 2 * FRGI_CHECK_PAIRS, &energy, &error));
        if (s->o.linear_weight > 0) { /* the whole of J: a linear cost may be paid for in entropy */
            energy += 2 * l->epsilon * frgi_plan_entropy(l);
        }
        TRY(frgi_level_remember(l, energy, (double)INFINITY));
    }
    frgi_level_recall(l, &l->starts[0]);
    frgi_level_forget(l);
    return FRG_OK;
}

/* ---- running --------------------------------------------------------------------------------------------- */

/** Steps at full size after a coarse start. */
static frg_status fine_steps(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_report *const r = &s->report;
    int64_t t = 0;
    l->phase = FRGI_FINE;
    l->turn = 0;
    l->smooth_from = l->room > frgi_room_of(&s->o, s->o.anchors) ? 2 : 1;
    r->multiscale = 1;
    r->reason = FRG_GW_CONVERGED_PLATEAU;
    TRY(frgi_state_enter(l, s->o.fine_steps, &t));
    for (; t < s->o.fine_steps; t++) {
        TRY(frgi_state_point(l, t));
        /* of a broad plan pairs of the first plan of this size on */
        l->count = t > 0 && l->room > frgi_room_of(&s->o, s->o.anchors) ? l->count_most : l->count;
        TRY(frgi_level_step(l, 5, s->o.marginal_tol));
        r->outer_iterations++;
        const frg_status beat =
            frgi_level_beat(l, "fine", t + 1, s->o.fine_steps, (double)NAN, (double)NAN);
        if (beat != FRG_OK) {
            return beat;
        }
    }
    return FRG_OK;
}

static frg_status sampled_loop(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_gw_report *const r = &s->report;
    TRY(frgi_level_reset(l, 0));
    if (s->start) {
        draw_from_start(s);
    }
    bool coarse = frgi_state_waits(l, FRGI_FINE);
    if (is_multiscale(s) && !coarse) {
        const frg_status status = frgi_coarse_start(l, s->o.n_coarse, r, &coarse);
        if (status > 0) { /* stopped: what the coarse level knows, at full size */
            TRY(frgi_level_step(l, 5, s->o.marginal_tol));
        }
        if (status != FRG_OK) {
            return status;
        }
    }
    if (coarse) {
        return fine_steps(s);
    }
    const bool many =
        s->o.n_start > 1 && !s->start && s->o.max_iter >= 40 && s->o.min_iter < s->o.max_iter;
    if (many && !frgi_state_waits(l, FRGI_MAIN)) {
        const frg_status status = short_starts(s);
        if (status != FRG_OK) {
            return status;
        }
    }
    l->phase = FRGI_MAIN;
    l->turn = 0;
    return frgi_level_loop(l, s->o.max_iter - (many ? s->o.n_start * TRIAL_STEPS : 0),
                           s->o.min_iter, s->o.anneal != FRG_GW_ANNEAL_NONE, &r->reason,
                           &r->outer_iterations);
}

/** Distance to the product plan in total variation, from the rows. */
typedef struct {
    const frg_gw *s;
    double *by_row;
} product_gap;

static void gap_of_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const product_gap *const g = user;
    double sum = 0;
    (void)chunk;
    for (int64_t j = 0; j < g->s->y.n; j++) {
        sum += fabs(row[j] - g->s->a[i] * g->s->b[j]);
    }
    g->by_row[i] = sum / 2;
}

/** Some rows tell: where the plan is the product, every one of them is. */
static frg_status judge_product(frg_gw *s)
{
    enum { ROWS_LOOKED_AT = 128 };
    product_gap g = {.s = s};
    int64_t *first = NULL;
    frg_status status = FRG_OK;
    const int64_t n = s->x.n, looked = n < ROWS_LOOKED_AT ? n : ROWS_LOOKED_AT;
    double gap = 0, mass = 0;
    TRY_TO(done, NEW0(s->ctx, &g.by_row, n, "a plan"));
    TRY_TO(done, NEW0(s->ctx, &first, n + 1, "a plan"));
    for (int64_t q = 0; q < looked; q++) {
        first[q * n / looked + 1] = 1;
        mass += s->a[q * n / looked];
    }
    for (int64_t i = 0; i < n; i++) {
        first[i + 1] += first[i];
    }
    frgi_transport_some_rows(&s->level.t, first, gap_of_row, &g);
    for (int64_t i = 0; i < n; i++) {
        gap += g.by_row[i];
    }
    if (gap < 1e-3 * mass && !s->degenerate && n > 1 && s->y.n > 1) {
        s->report.reason = FRG_GW_STALLED_PRODUCT;
        frgi_warn(s->ctx, W_PRODUCT, "the plan is within %.1e of the product of its marginals",
                  mass > 0 ? gap / mass : 0);
    }
done:
    DROP(s->ctx, &g.by_row);
    DROP(s->ctx, &first);
    return status;
}

/** may_pass: a run that was stopped takes no more passes. */
static frg_status polish(frg_gw *s, bool may_pass)
{
    frgi_level *const l = &s->level;
    frgi_marginal_error before, after;
    frg_status status = FRG_OK;
    if (may_pass && s->o.polish && s->o.polish_passes > 0 && s->o.rank == 0) {
        const bool relaxed = isfinite(s->o.rho_source) || isfinite(s->o.rho_target);
        const int64_t had = l->t.passes;
        l->t.accelerate = !relaxed;
        l->t.since = 0;
        status = frgi_level_settle(l, s->o.polish_tol, s->o.polish_passes);
        l->t.accelerate = false;
        TRY(status);
        l->inner += l->t.passes - had;
        if (status == FRG_OK && l->t.error > s->o.polish_tol && !relaxed) {
            frgi_warn(s->ctx, W_MARGINALS,
                      "after %lld passes the column sums were off by %.1e (L1)",
                      (long long)(l->t.passes - had), l->t.error);
        }
    }
    TRY(frgi_transport_finish(&l->t, s->o.round != 0, &before, &after));
    if (!isfinite(after.mass + after.source_l1 + after.target_l1)) {
        FAIL(s->ctx, E_NUMERIC, "the plan at epsilon %g has mass %g", l->epsilon, after.mass);
    }
    frgi_plan_set(&s->plan, &l->t, before, after);
    s->plan.factored = s->o.rank > 0;
    return status;
}

/** sum_k C_ik^2 a_k of one side, caller's units. */
static frg_status eccentricities(frgi_distances *d, const double *w, double *out)
{
    const double unit = d->scale > 0 ? 1 / (double)d->scale : 1;
    TRY(frgi_distances_squares(d, w, out));
    for (int64_t i = 0; i < d->n; i++) {
        out[i] *= unit * unit;
    }
    return FRG_OK;
}

/** J = (1 - theta) E + 2 theta <Clin, P> + 2 eps sum P (log P - 1), scaled units. */
static double objective_of(const frg_gw *s, const frgi_plan_sums *sums)
{
    const double theta = s->o.linear_weight;
    return (1 - theta) * frgi_energy_of(sums, 1, 1) + 2 * theta * sums->linear +
           2 * s->level.epsilon * sums->entropy;
}

/** Coordinates that a look at all distances of a side takes. */
static double look_at_all(const frgi_distances *d)
{
    const double each = d->kind == FRGI_DENSE    ? 1
                        : d->kind == FRGI_VECTOR ? (double)d->d
                                                 : (double)INFINITY;
    return each * (double)d->n * (double)d->n;
}

/** E from pairs of points, less of it where the marginals hold and all distances may be looked at. */
static frg_status estimate_energy(frg_gw *s, bool centred)
{
    frg_gw_report *const r = &s->report;
    const double mass = s->plan.report.mass;
    frgi_means means = {0};
    frg_status status = FRG_OK;
    s->level.step++;
    if (centred) {
        TRY_TO(done, frgi_means_open(&means, &s->level));
    }
    TRY_TO(done,
           frgi_energy_estimate(&s->level, 1024, 1 / (double)s->x.scale, 1 / (double)s->y.scale,
                                centred ? &means : NULL, &r->energy, &r->energy_standard_error));
    r->energy *= mass * mass;
    r->energy_standard_error *= mass * mass;
done:
    DROP(s->ctx, &means.u);
    return status;
}

static frg_status certify(frg_gw *s)
{
    frg_gw_report *const r = &s->report;
    const double n = (double)s->x.n, m = (double)s->y.n;
    const double unit_x = 1 / (double)s->x.scale, unit_y = 1 / (double)s->y.scale;
    r->lower_bound = (double)NAN;
    r->objective = (double)NAN;
    r->energy_standard_error = 0;
    const bool balanced = frgi_is_balanced(&s->o);
    const bool plain = balanced && s->o.linear_weight == 0;
    const bool cheap = look_at_all(&s->x) + look_at_all(&s->y) <= ALL_DISTANCES;
    if (n * m * (n + m) <= EXACT_ENERGY) {
        frgi_plan_sums sums;
        const bool objective = balanced && s->o.rank == 0;
        TRY(frgi_plan_sums_take(&s->level, objective, &sums));
        r->energy = frgi_energy_of(&sums, unit_x, unit_y);
        r->objective = objective ? objective_of(s, &sums) : r->objective;
    } else {
        TRY(estimate_energy(s, balanced && s->plan.report.rounded && cheap));
    }
    if (plain && cheap) {
        double *square = NULL;
        TRY(NEW(s->ctx, &square, s->x.n + s->y.n, "eccentricities"));
        frg_status status = eccentricities(&s->x, s->a, square);
        if (status >= 0) {
            status = eccentricities(&s->y, s->b, square + s->x.n);
        }
        if (status >= 0) {
            status = frgi_lower_bound(s->ctx, square, s->a, s->x.n, square + s->x.n, s->b, s->y.n,
                                      &r->lower_bound);
        }
        DROP(s->ctx, &square);
        return status;
    }
    return FRG_OK;
}

/** Exponents of the plan to start from: log2(P_ij / a_i), with the potentials that the sweep wants inside. */
static void fill_start(const frgi_sweep *w, int64_t i0, int64_t groups, void *rows)
{
    const float *const plan = w->source;
    float *const out = rows;
    for (int64_t q = 0; q < groups * FRGI_GROUP; q++) {
        const int64_t i = i0 + q;
        const float a = i < w->n && w->a[i] > 0 ? (float)w->a[i] : 1;
        for (int64_t j = 0; j < w->ld; j++) {
            const float p = i < w->n && j < w->m ? plan[i * w->m + j] / a : 0;
            out[q * w->ld + j] = log2f(fmaxf(p, 0x1p-120f)) + w->base_h[i] + w->base_g[j];
        }
    }
}

/** No steps: the plan to start from, its rows and columns scaled to the marginals. */
static frg_status keep_start(frg_gw *s)
{
    frgi_transport *const t = &s->level.t;
    TRY(frgi_level_reset(&s->level, 0));
    frgi_transport_renew(t, s->level.epsilon, fill_start, s->start);
    TRY(frgi_transport_solve(t, s->o.polish_tol, s->o.polish_passes > 1 ? s->o.polish_passes : 1));
    s->level.inner += t->passes;
    return FRG_OK;
}

/** Every plan is as good: a b' is given. */
static frg_status degenerate(frg_gw *s)
{
    frgi_level *const l = &s->level;
    TRY(frgi_level_reset(l, 0));
    memset(l->left, 0, frgi_mul((size_t)l->rank, (size_t)l->t.s.rows) * sizeof *l->left);
    memset(l->right, 0, frgi_mul((size_t)l->rank, (size_t)l->t.s.ld) * sizeof *l->right);
    TRY(frgi_level_solve(l, 3, 0));
    s->report.reason = FRG_GW_DEGENERATE;
    return FRG_OK;
}

static frg_status run(frg_gw *s)
{
    frgi_level *const l = &s->level;
    frg_status status;
    frgi_transport_restart(&l->t);
    l->t.passes = 0;
    l->inner = 0;
    const bool stays = s->o.max_iter == 0 && s->start && !s->degenerate;
    if (stays) {
        status = keep_start(s);
        s->report.reason = FRG_GW_MAX_ITER;
    } else if (s->degenerate || s->o.max_iter == 0) {
        status = degenerate(s);
        s->report.reason = s->degenerate ? FRG_GW_DEGENERATE : FRG_GW_MAX_ITER;
    } else if (s->o.mode == FRG_GW_EXACT || s->o.mode == FRG_GW_LANDMARK) {
        TRY(frgi_level_reset(l, 0));
        status = frgi_exact_loop(l, s->o.mode == FRG_GW_LANDMARK, &s->report.reason,
                                 &s->report.outer_iterations);
    } else if (s->o.rank > 0) {
        status = frgi_lowrank_loop(l, &s->factors, &s->report.reason, &s->report.outer_iterations);
    } else {
        status = sampled_loop(s);
    }
    if (status < 0) {
        return status;
    }
    const double begin = frgi_seconds();
    const frg_status polished = polish(s, status == FRG_OK && !stays);
    TRY(polished);
    status = status == FRG_OK ? polished : status;
    TRY(judge_product(s));
    s->report.polish_seconds = frgi_seconds() - begin;
    TRY(certify(s));
    s->report.reason = status > 0 ? FRG_GW_CANCELLED : s->report.reason;
    return status;
}

/** The state that stopped runs leave, and none that was waiting for another kind of run. */
static frg_status end_states(frg_gw *s, frg_status status)
{
    struct frgi_state *const state = &s->state;
    if (state->from && status >= 0) {
        state->from = NULL;
        FAIL(s->ctx, E_MISMATCH, "the checkpoint is of another kind of run");
    }
    state->from = NULL;
    if (status > 0 && state->save && state->filled) {
        TRY(state->save(state->user, s, 1));
    }
    return status;
}

frg_status frg_gw_run(frg_gw *s, frg_info *info)
{
    frgi_run_begins(s->ctx);
    const double begin = frgi_seconds(),
                 set_up = s->report.graph_seconds + s->report.distances_seconds;
    frg_gw_report *const r = &s->report;
    r->outer_iterations = r->inner_iterations = r->coarse_iterations = 0;
    s->state.filled = false;
    frg_status status = s->stopped ? s->stopped : end_states(s, run(s));
    r->inner_iterations += s->level.inner;
    r->build_seconds = s->level.build_seconds;
    r->inner_seconds = s->level.inner_seconds;
    r->sample_seconds = s->level.sample_seconds;
    r->truncated_ages = s->level.truncated;
    r->anchors = s->o.mode == FRG_GW_EXACT || s->o.mode == FRG_GW_LANDMARK ? 0 : s->level.count;
    r->epsilon_end = s->level.epsilon;
    r->total_seconds = set_up + frgi_seconds() - begin;
    if (status == FRG_OK) {
        status = r->reason == FRG_GW_MAX_ITER && s->o.min_iter < s->o.max_iter ? FRG_MAX_ITER
                 : r->reason == FRG_GW_STALLED_PRODUCT                         ? FRG_STALLED
                                                                               : FRG_OK;
    }
    if (info) {
        *info = (frg_info){.status = status,
                           .iterations = r->outer_iterations,
                           .residual = s->plan.report.target_before,
                           .objective = r->energy,
                           .setup_seconds = set_up,
                           .solve_seconds = frgi_seconds() - begin,
                           .peak_bytes = frg_peak_bytes(s->ctx),
                           .device_name = "cpu"};
    }
    return status;
}

/* ---- saved states ------------------------------------------------------------------------------------------- */

/** Of everything that decides the bits of a run but the data. */
static uint64_t hash_options(const frg_gw *s)
{
    const frg_gw_opts *const o = &s->o;
    const double numbers[] = {(double)o->mode,
                              (double)o->distance,
                              (double)o->anchors,
                              o->epsilon,
                              (double)o->anneal,
                              o->damping,
                              (double)o->max_iter,
                              (double)o->min_iter,
                              o->tol,
                              (double)o->max_inner,
                              o->marginal_tol,
                              o->mass,
                              o->rho_source,
                              o->rho_target,
                              (double)o->reference,
                              o->linear_weight,
                              o->lambda_ema_beta,
                              (double)o->scale,
                              (double)o->sampling,
                              (double)is_multiscale(s),
                              (double)o->n_coarse,
                              (double)o->n_start,
                              (double)o->fine_steps,
                              (double)o->rank,
                              (double)o->lr_max_iter,
                              (double)o->lr_dykstra_max_iter,
                              (double)o->scale_linear,
                              (double)o->store_plan,
                              (double)o->diag_exact,
                              (double)s->level.smooths};
    const uint64_t seed = s->level.seed;
    uint64_t h = frg_hash(0, numbers, sizeof numbers);
    h = frg_hash(h, &seed, sizeof seed);
    h = frg_hash(h, frg_version(), (int64_t)strlen(frg_version()));
    return frg_hash(h, frg_isa(s->ctx), (int64_t)strlen(frg_isa(s->ctx)));
}

static uint64_t hash_data(const frg_gw *s)
{
    const int64_t n = s->x.n, m = s->y.n;
    uint64_t h = frgi_distances_hash(&s->y, frgi_distances_hash(&s->x, 0));
    h = frg_hash(h, s->a, n * (int64_t)sizeof *s->a);
    h = frg_hash(h, s->b, m * (int64_t)sizeof *s->b);
    if (s->linear) {
        h = frg_hash(h, s->linear, n * s->level.t.s.ld * (int64_t)sizeof *s->linear);
    }
    return s->start ? frg_hash(h, s->start, n * m * (int64_t)sizeof *s->start) : h;
}

static void hash_all(frg_gw *s)
{
    s->state.options = hash_options(s);
    s->state.data = hash_data(s);
}

void frg_gw_keep(frg_gw *s, frg_gw_saver save, void *user)
{
    if (s->stopped) {
        return;
    }
    s->state.save = save;
    s->state.user = user;
    hash_all(s);
}

frg_status frg_gw_save(const frg_gw *s, frg_checkpoint *c)
{
    const struct frgi_state *const state = &s->state;
    REQUIRE(s->ctx, c, "c is NULL");
    REQUIRE(s->ctx, state->filled, "there is no state: call frg_gw_keep, and this from its call");
    TRY(frg_checkpoint_put(c, "run", &state->numbers, sizeof state->numbers));
    for (int p = 0; p < state->n_parts; p++) {
        TRY(frg_checkpoint_put(c, state->parts[p].name, state->parts[p].live,
                               (int64_t)state->parts[p].bytes));
    }
    return FRG_OK;
}

frg_status frg_gw_resume(frg_gw *s, const frg_checkpoint *c)
{
    REQUIRE(s->ctx, c, "c is NULL");
    if (s->stopped) {
        return s->stopped;
    }
    hash_all(s);
    return frgi_state_open(&s->state, c, s->o.n_start);
}

const frg_gw_report *frg_gw_get(const frg_gw *s)
{
    return &s->report;
}

const frg_plan *frg_gw_plan(const frg_gw *s)
{
    return s->plan.t ? &s->plan : NULL;
}

/** The row (side 0) or column terms of the last linearisation, which balanced problems leave out of their exponents:
 *  the mean over the pairs of squared distances to them; in the modes without sampling sum_k C_ik^2 a_k. */
static frg_status left_out_terms(const frg_gw *s, int side, double *out)
{
    const frgi_level *const l = &s->level;
    frgi_distances *const d = side ? l->y : l->x;
    const int64_t R = l->count;
    const float *const rows = side ? l->rows_y : l->rows_x; /* centred where there are means */
    const float *const means = l->means && side ? l->means + l->x->n : l->means;
    const double theta = s->o.linear_weight;
    const bool exact = s->o.mode == FRG_GW_EXACT || s->o.mode == FRG_GW_LANDMARK || s->o.diag_exact;
    memset(out, 0, (size_t)d->n * sizeof *out);
    if (exact) {
        TRY(eccentricities(d, side ? s->b : s->a, out));
    }
    const double unit = (double)d->scale * (double)d->scale;
    for (int64_t i = 0; i < d->n; i++) {
        for (int64_t r = 0; r < R && !exact; r++) {
            out[i] += (double)rows[r * d->n + i] * (double)rows[r * d->n + i] / (double)R;
        }
        out[i] += exact || !means ? 0 : (double)means[i] * (double)means[i];
        out[i] *= (1 - theta) * (exact ? unit : 1);
    }
    return FRG_OK;
}

frg_status frg_gw_potentials(const frg_gw *s, double *f, double *g)
{
    const frgi_sweep *const w = &s->level.t.s;
    REQUIRE(s->ctx, s->plan.t, "the alignment has not run");
    REQUIRE(s->ctx, s->o.rank == 0, "a plan of low rank has factors and no potentials");
    const bool left_out = frgi_is_balanced(&s->o) && s->o.max_iter > 0 && !s->degenerate;
    const struct {
        double *to;
        const double *from;
        int64_t count;
    } sides[] = {{f, w->F, w->n}, {g, w->G, w->m}};
    for (int side = 0; side < 2; side++) {
        double *const to = sides[side].to;
        if (to && left_out) {
            TRY(left_out_terms(s, side, to));
        }
        for (int64_t i = 0; to && i < sides[side].count; i++) {
            to[i] = (left_out ? to[i] : 0) + sides[side].from[i] / s->level.t.k;
        }
    }
    return FRG_OK;
}

int64_t frg_gw_rank(const frg_gw *s)
{
    return s->factors.q ? s->factors.rank : 0;
}

frg_status frg_gw_factors(const frg_gw *s, double *q, double *w, double *h)
{
    const frgi_factored *const f = &s->factors;
    REQUIRE(s->ctx, s->plan.t && f->q, "the alignment has no plan of low rank");
    const struct {
        double *to;
        const double *from;
        int64_t count;
    } parts[] = {{q, f->q, f->n * f->rank}, {w, f->w, f->m * f->rank}, {h, f->h, f->rank}};
    for (int p = 0; p < 3; p++) {
        if (parts[p].to) {
            memcpy(parts[p].to, parts[p].from, (size_t)parts[p].count * sizeof(double));
        }
    }
    return FRG_OK;
}

frg_status frg_gw_distances(frg_gw *s, int side, frg_array out)
{
    frg_context *const ctx = s->ctx;
    frgi_distances *const d = side ? &s->y : &s->x;
    if (s->stopped) {
        return s->stopped;
    }
    TRY(frgi_array_check(ctx, &out, "out", 2, 1u << FRG_F32 | 1u << FRG_F64));
    if (out.shape[0] != d->n || out.shape[1] != d->n) {
        FAIL(ctx, E_SHAPE, "out is %lld x %lld, %lld x %lld is needed", (long long)out.shape[0],
             (long long)out.shape[1], (long long)d->n, (long long)d->n);
    }
    float *row;
    TRY(NEW(ctx, &row, d->n, "distances"));
    frg_status status = FRG_OK;
    for (int32_t i = 0; i < d->n && status >= 0; i++) {
        status = frgi_distances_rows(d, &i, 1, row, d->n);
        for (int64_t j = 0; j < d->n && status >= 0; j++) {
            char *const to = frgi_array_base(&out) + (i * out.stride[0] + j * out.stride[1]) *
                                                         (int64_t)frg_sizeof(out.dtype);
            const double x = (double)row[j] / (double)d->scale;
            if (out.dtype == FRG_F64) {
                *(double *)(void *)to = x;
            } else {
                *(float *)(void *)to = (float)x;
            }
        }
    }
    DROP(ctx, &row);
    return status;
}
