/* gw.c - alignment of two spaces: options, checks, what an alignment is made of.
 *
 * Sides become distances, weights marginals of unit mass where both are to hold; the exponents of a
 * plan are stored where they fit into memory, else made for every pass.  gw_run.c has the order of
 * things.
 */
#include <math.h>

#include "core/opts.h"
#include "gw/gw_align.h"
#include "gw/gw_level_device.h"
#include "gw/gw_store.h"

#define LEAST_MASS 1e-12 /* of partial plans, as a share of the weights */

const char *frg_gw_reason_name(frg_gw_reason r)
{
    static const char *const names[] = {"running",    "converged_change", "converged_plateau",
                                        "max_iter",   "cancelled",        "stalled_product",
                                        "degenerate", "stationary",       "rounding_floor",
                                        "beaten",     "not_confirmed"};
    return (size_t)r < sizeof names / sizeof *names ? names[r] : "?";
}

const char *frg_gw_start_name(frg_gw_start s)
{
    static const char *const names[] = {"auto",   "product",  "profiles", "vertex",
                                        "given",  "annealed", "axes",     "random",
                                        "coarse", "spectral", "near"};
    return (size_t)s < sizeof names / sizeof *names ? names[s] : "?";
}

const char *frg_gw_mode_name(frg_gw_mode m)
{
    static const char *const names[] = {"auto", "sampled", "exact", "landmark", "vertex"};
    return (size_t)m < sizeof names / sizeof *names ? names[m] : "?";
}

#define OPTIONS_OF frg_gw_opts
static const frg_option options[] = {
#include "gw/gw_opts.def"
    {.name = NULL}};

const frg_option *frg_gw_options(void)
{
    return options;
}

void frg_gw_defaults(frg_gw_opts *o, size_t struct_size)
{
    frg_gw_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
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
    o->start_from = FRG_GW_START_PRODUCT;
    o->polish = 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/** Refuses options that do not go together. */
static frg_status check_together(frg_context *ctx, const frg_gw_opts *o, bool linear)
{
    REQUIRE(ctx, o->linear_weight == 0 || linear, "linear_weight is %g without a linear cost",
            o->linear_weight);
    const bool relaxed = isfinite(o->rho_source) || isfinite(o->rho_target);
    if (o->mass > 0 && relaxed) {
        FAIL(ctx, E_UNSUPPORTED, "mass together with relaxed marginals");
    }
    if (o->mode >= FRG_GW_EXACT && (o->mass > 0 || relaxed)) {
        FAIL(ctx, E_UNSUPPORTED,
             "partial mass and relaxed marginals in the modes exact and landmark, and in vertex");
    }
    const char *const idle = o->mode == FRG_GW_VERTEX ? frgi_gw_entropic_option(o) : NULL;
    if (idle) {
        FAIL(ctx, E_UNSUPPORTED,
             "%s in the mode vertex, which has no entropy and no passes: leave it at its default, "
             "or take the mode sampled or exact",
             idle);
    }
    const bool exact = o->mode == FRG_GW_EXACT || o->mode == FRG_GW_LANDMARK;
    const char *const of_samples = exact ? frgi_exact_idle_option(o) : NULL;
    if (of_samples) {
        FAIL(ctx, E_UNSUPPORTED,
             "%s in the modes exact and landmark, which draw no pairs and have one start and one "
             "size: leave it at its default, or take the mode sampled",
             of_samples);
    }
    const bool sampled = o->mode <= FRG_GW_SAMPLED;
    if (o->rank > 0 && (o->mass > 0 || relaxed || !sampled)) {
        FAIL(
            ctx, E_UNSUPPORTED,
            "plans of low rank with partial mass, relaxed marginals, or a mode other than sampled");
    }
    if (o->start_from >= FRG_GW_START_PROFILES &&
        (o->rank > 0 || o->mass > 0 || relaxed || !sampled ||
         (o->linear_weight > 0 && o->start_from == FRG_GW_START_PROFILES) ||
         o->multiscale == FRG_GW_MULTISCALE_ON)) {
        FAIL(ctx, E_UNSUPPORTED,
             "start_from profiles and vertex with a rank, partial mass, relaxed marginals, a mode "
             "other than sampled, or multiscale, and profiles with a linear cost");
    }
    if (o->cost_store != FRG_GW_STORE_AUTO && o->cost_store != FRG_GW_STORE_F32 &&
        o->cost_store != FRG_GW_STORE_FLY) {
        FAIL(ctx, E_UNSUPPORTED,
             "cost_store other than auto, f32 and fly in alignments, whose costs are f32: fixed "
             "point and f64 are there for Sinkhorn's iteration on a given cost");
    }
    if ((o->store_plan || o->diag_exact) && (o->rank > 0 || !sampled)) {
        FAIL(ctx, E_UNSUPPORTED,
             "store_plan and diag_exact with plans of low rank or a mode other than sampled");
    }
    return FRG_OK;
}

/** dtype f64 beside the other options; what auto takes is checked when it is known. */
static frg_status check_f64_options(frg_context *ctx, const frg_gw_opts *o, bool linear)
{
    if (o->mode != FRG_GW_AUTO && o->mode != FRG_GW_VERTEX) {
        FAIL(ctx, E_UNSUPPORTED, "dtype f64 in the mode %s, which computes in f32: take vertex",
             frg_gw_mode_name(o->mode));
    }
    if (o->distance != FRG_GW_DISTANCE_EUCLIDEAN && o->distance != FRG_GW_DISTANCE_MATRIX) {
        FAIL(ctx, E_UNSUPPORTED,
             "dtype f64 with distances other than euclidean and matrix: lengths of paths are f32");
    }
    if (linear) {
        FAIL(ctx, E_UNSUPPORTED, "dtype f64 with a linear cost, which is f32");
    }
    return FRG_OK;
}

/** dtype f64 beside the mode that is taken and the numbers of points. */
static frg_status check_f64_mode(const frg_gw *s)
{
    if (s->o.dtype != FRG_GW_DTYPE_F64) {
        return FRG_OK;
    }
    if (s->o.mode != FRG_GW_VERTEX) {
        FAIL(s->ctx, E_UNSUPPORTED,
             "dtype f64 in the mode sampled, which computes in f32 (%s): take vertex", s->why);
    }
    if (s->x.n > FRGI_WHOLE_COSTS || s->y.n > FRGI_WHOLE_COSTS) {
        FAIL(s->ctx, E_UNSUPPORTED, "dtype f64 with more than %d points a side", FRGI_WHOLE_COSTS);
    }
    return FRG_OK;
}

static frg_status check_options(frg_context *ctx, frg_gw_opts *o, bool linear)
{
    TRY(frgi_options_check(ctx, options, o));
    if (!(o->epsilon > 0)) {
        frgi_warn(ctx, W_EPSILON, "epsilon was %g", o->epsilon);
        o->epsilon = 1e-4;
    }
    TRY(check_together(ctx, o, linear));
    return o->dtype == FRG_GW_DTYPE_F64 ? check_f64_options(ctx, o, linear) : FRG_OK;
}

static frg_status copy_linear(frg_gw *s, const frg_array *a)
{
    frg_context *const ctx = s->ctx;
    const int64_t n = s->x.n, m = s->y.n;
    if (a->shape[0] != n || a->shape[1] != m) {
        FAIL(ctx, E_SHAPE, "the linear cost is %lld x %lld, %lld x %lld is needed",
             (long long)a->shape[0], (long long)a->shape[1], (long long)n, (long long)m);
    }
    const int64_t rows = (n + FRGI_GROUP - 1) / FRGI_GROUP * FRGI_GROUP;
    const int64_t ld = (m + FRGI_PAD - 1) / FRGI_PAD * FRGI_PAD;
    TRY(NEW0(ctx, &s->linear, frgi_mul((size_t)rows, (size_t)ld), "the linear cost"));
    float most = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            const double x = frgi_array_get(a, i, j);
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

static frg_status take_linear(frg_gw *s, const frg_array *a)
{
    frgi_given given;
    frg_status status = frgi_given_open(&given, s->ctx, s->where.dev, a, "linear");
    if (status >= 0) {
        status = copy_linear(s, &given.here);
    }
    frgi_given_close(&given);
    return status;
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
    s->o.mass = frgi_is_partial(s->o.mass, sum_a, sum_b) ? s->o.mass : 0;
    if (s->o.mass > 0) {
        REQUIRE(ctx, s->o.mass >= LEAST_MASS * least,
                "mass is %g, less than %g of the weights' sum %g, which sums in double do not tell",
                s->o.mass, LEAST_MASS, least);
        TRY(frgi_check_partial(ctx, s->o.reference));
    }
    if (frgi_is_balanced(&s->o)) {
        return frgi_normalise_weights(ctx, (frgi_weights){s->a, s->x.n, sum_a, a != NULL},
                                      (frgi_weights){s->b, s->y.n, sum_b, b != NULL});
    }
    return FRG_OK;
}

/** Whether the level is on a device: outer steps of the mode vertex are the host's, which asks it
 *  for products alone, and those on factors have memory of their own. */
static bool iterates_there(const frg_gw *s)
{
    return s->where.dev && s->o.mode != FRG_GW_VERTEX && s->o.rank == 0;
}

/** Exponents are stored as asked for; left to us, where they fit into a quarter of what is
 *  allowed. */
static frg_status choose_store(frg_gw *s, frgi_cost_storage *storage)
{
    if (iterates_there(s)) { /* the cost lies there; rows of the plan are of exponents in double */
        s->report.cost_store = FRG_GW_STORE_F32;
        *storage = (frgi_cost_storage){.store = FRGI_X64, .there = true};
        return FRG_OK;
    }
    const frgi_form forms[] = {{FRG_GW_STORE_F32, frgi_level_storage(&s->o, true)},
                               {FRG_GW_STORE_FLY, frgi_level_storage(&s->o, false)}};
    const double bytes = 4.0 * (double)s->x.n * (double)s->y.n;
    const bool small = bytes < 0.25 * (double)frgi_memory_allowed(s->ctx);
    const bool fly = s->o.cost_store == FRG_GW_STORE_FLY || s->o.rank > 0 ||
                     s->o.mode == FRG_GW_VERTEX || (s->o.cost_store == FRG_GW_STORE_AUTO && !small);
    const frgi_form *chosen = &forms[fly];
    if (s->o.cost_store == FRG_GW_STORE_F32 && !fly) {
        TRY(frgi_fit_store(s->ctx, s->x.n, s->y.n, forms, 2, s->o.auto_store != 0, &chosen));
    }
    s->report.cost_store = chosen->store;
    *storage = chosen->storage;
    return FRG_OK;
}

bool frgi_gw_is_multiscale(const frg_gw *s)
{
    const frg_gw_opts *const o = &s->o;
    const bool possible = o->mode == FRG_GW_SAMPLED && !s->start && !s->potentials &&
                          frgi_is_balanced(o) && o->linear_weight == 0 &&
                          o->start_from < FRG_GW_START_PROFILES;
    return possible &&
           (o->multiscale == FRG_GW_MULTISCALE_ON ||
            (o->multiscale == FRG_GW_MULTISCALE_AUTO && (double)s->x.n * (double)s->y.n > 1e6));
}

/** Points of positive weight. */
static int64_t with_weight(const double *w, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        count += w[i] > 0;
    }
    return count;
}

/** Whether J is the same for every plan.  Balanced: a side has one point of positive weight, so
 *  that there is one plan, or all distances of a side are 0, so that the cross term is.  Where
 *  marginals are partial or relaxed J depends on them even then, but for distances 0 on both
 *  sides. */
static bool all_plans_alike(const frg_gw *s)
{
    const bool zero_x = !(s->x.most > 0), zero_y = !(s->y.most > 0);
    const bool known = frgi_is_balanced(&s->o);
    const bool single = with_weight(s->a, s->x.n) == 1 || with_weight(s->b, s->y.n) == 1;
    return (known && single) ||
           (s->o.linear_weight == 0 && (known ? zero_x || zero_y : zero_x && zero_y));
}

/** Options whose default depends on the mode.  In the mode exact L(P) depends on the column sums of
 *  the plan, whose errors have to be below the change that the loop stops at. */
static void resolve_options(frg_gw_opts *o)
{
    const bool exact = o->mode == FRG_GW_EXACT;
    o->max_inner = o->max_inner > 0 ? o->max_inner : exact ? 100 : 3;
    if (exact) {
        o->marginal_tol = fmin(o->marginal_tol, fmax(0.1 * o->tol, 1e-6));
    }
}

/** Memory of the outer iteration, where the mode has one. */
static frg_status open_level(frg_gw *s)
{
    frgi_cost_storage storage;
    if (s->o.mode == FRG_GW_VERTEX) { /* lengths of paths that a device has found */
        frgi_distances_forget_there(&s->x);
        frgi_distances_forget_there(&s->y);
    }
    TRY(choose_store(s, &storage));
    storage.steps = s->where.steps;
    TRY(frgi_level_open(&s->level, s->ctx, &s->o, &s->x, &s->y, s->a, s->b, s->linear, storage,
                        (storage.stored || iterates_there(s)) && frgi_gw_is_multiscale(s)));
    s->level.average.on = (storage.stored || iterates_there(s)) && s->o.mode == FRG_GW_SAMPLED;
    s->level.saved.state = &s->state;
    s->level.trace = &s->trace;
    if (s->where.dev && s->o.rank > 0) {
        return frgi_lowrank_device_open(&s->factors_there, &s->level, s->where.dev, s->where.group);
    }
    return iterates_there(s) ? frgi_level_device_open(&s->level, s->where.dev, s->where.group)
                             : FRG_OK;
}

/** A start is given, `what`: where `auto` took the mode vertex, which has its own starts, it takes
 *  sampled instead. */
static frg_status take_start(frg_gw *s, const char *what)
{
    if (!s->by_auto || s->o.mode != FRG_GW_VERTEX) {
        return FRG_OK;
    }
    if (s->o.dtype == FRG_GW_DTYPE_F64) {
        FAIL(s->ctx, E_UNSUPPORTED,
             "dtype f64 with %s: f64 is there in the mode vertex alone, which has its own starts; "
             "leave dtype at auto",
             what);
    }
    frgi_gw_take_sampled(s, what);
    frgi_level_close(&s->level);
    const frg_status status = open_level(s);
    s->stopped = status;
    return status;
}

static frg_status open_all(frg_gw *s, const frg_gw_side *x, const frg_gw_side *y,
                           const frg_array *linear)
{
    frg_context *const ctx = s->ctx;
    TRY(check_options(ctx, &s->o, linear != NULL));
    if (s->where.dev) {
        TRY(frgi_level_device_check(ctx, s->where.dev, &s->o));
    }
    const char *const option = frgi_gw_entropic_option(&s->o); /* before what is left to the mode */
    resolve_options(&s->o);
    if (s->o.mode == FRG_GW_LANDMARK && (s->o.distance == FRG_GW_DISTANCE_AUTO)) {
        s->o.distance = FRG_GW_DISTANCE_LANDMARK;
    }
    frgi_device *const dev = s->where.dev;
    const int group = s->where.group;
    frg_status status = frgi_distances_open_for(&s->x, ctx, dev, group, x, &s->o, "source");
    if (status == FRG_OK) {
        status = frgi_distances_open_for(&s->y, ctx, dev, group, y, &s->o, "target");
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
    if (linear && s->o.linear_weight == 0) { /* the problem without it, not a sum with 0 times it */
        DROP(ctx, &s->linear);
        frgi_warn(ctx, W_LINEAR, "a linear cost was given, and linear_weight is 0");
    }
    s->degenerate = all_plans_alike(s);
    frgi_state_begin(&s->state, s, dev);
    frgi_gw_choose_mode(s, option);
    TRY(check_f64_mode(s));
    s->report.dtype = FRG_GW_DTYPE_F32;
    status = open_level(s);
    TRY(status);
    s->report.n = s->x.n;
    s->report.m = s->y.n;
    s->report.components_source = s->x.components;
    s->report.components_target = s->y.components;
    s->report.graph_seconds = s->x.graph_seconds + s->y.graph_seconds;
    s->report.distances_seconds = s->x.seconds + s->y.seconds;
    return status;
}

frg_status frg_gw_create(frg_gw **out, frg_context *ctx, frg_gw_side x, frg_gw_side y,
                         const frg_array *linear, const frg_gw_opts *o)
{
    REQUIRE(ctx, out && ctx, "frg_gw_create takes a place and a context");
    return frgi_gw_open(out, ctx, (frgi_gw_place){.dev = frgi_device_of(ctx)}, x, y, linear, o);
}

frg_status frgi_gw_open(frg_gw **out, frg_context *ctx, frgi_gw_place where, frg_gw_side x,
                        frg_gw_side y, const frg_array *linear, const frg_gw_opts *o)
{
    *out = NULL;
    const double begin = frgi_seconds();
    frg_gw *s;
    TRY(NEW0(ctx, &s, 1, "an alignment"));
    s->ctx = ctx;
    s->where = where;
    frg_gw_defaults(&s->o, sizeof s->o);
    frg_status status = frgi_take_opts(ctx, &s->o, sizeof s->o, o);
    frg_gw_apply_preset(&s->o, s->o.preset);
    frgi_run_begins(ctx);
    const frgi_device_counts before = frgi_device_counts_now(where.dev);
    s->host_steps.beside = frgi_device_beside(where.dev);
    frgi_host_steps *const outer = frgi_host_steps_begin(ctx, &s->host_steps);
    if (status >= 0) {
        status = open_all(s, &x, &y, linear);
    }
    frgi_host_steps_end(ctx, outer);
    if (status < 0) {
        frg_gw_destroy(s);
        return status;
    }
    s->stopped = status;
    frgi_device_counts_since(where.dev, before, &s->opened);
    frgi_host_steps_keep(&s->host_steps);
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
    frgi_lowrank_device_close(&s->factors_there);
    frgi_level_close(&s->level);
    frgi_state_close(&s->state);
    DROP(s->ctx, &s->trace.rows);
    frgi_distances_close(&s->x);
    frgi_distances_close(&s->y);
    DROP(ctx, &s->a);
    DROP(ctx, &s->b);
    DROP(ctx, &s->linear);
    DROP(ctx, &s->start);
    DROP(ctx, &s->potentials);
    DROP(ctx, &s->list.starts);
    DROP(ctx, &s->list.columns);
    DROP(ctx, &s->list.values);
    frgi_factored_close(&s->factors, ctx);
    DROP(ctx, &s);
}

/* ---- starts ---------------------------------------------------------------------------------- */

/** What rounding may leave below 0 in a plan that was computed: its entries are sums and
 *  differences of numbers up to the largest, 4096 roundings of it in f64, 16 in f32. */
static double plan_noise(const frg_array *plan)
{
    double most = 0;
    for (int64_t i = 0; i < plan->shape[0]; i++) {
        for (int64_t j = 0; j < plan->shape[1]; j++) {
            most = fmax(most, frgi_array_get(plan, i, j));
        }
    }
    return most * (plan->dtype == FRG_F64 ? 0x1p-41 : 0x1p-20);
}

/** copy <- the plan scaled to mass 1. */
static frg_status copy_plan(frg_context *ctx, const frg_array *plan, float *copy)
{
    const int64_t n = plan->shape[0], m = plan->shape[1];
    const double noise = plan_noise(plan);
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            const double given = frgi_array_get(plan, i, j),
                         p = given < 0 && given >= -noise ? 0 : given;
            if (!(p >= 0 && p < (double)INFINITY)) {
                frgi_at(ctx, "plan, row %lld, column %lld", (long long)i + 1, (long long)j + 1);
                FAIL(ctx, E_MARGINAL, "an entry is %g", p);
            }
            copy[i * m + j] = (float)p;
            total += p;
        }
    }
    if (!(total > 0)) {
        FAIL(ctx, E_MARGINAL, "the plan is zero");
    }
    for (int64_t i = 0; i < n * m; i++) {
        copy[i] = (float)((double)copy[i] / total);
    }
    return FRG_OK;
}

static frg_status take_plan(frg_gw *s, const frg_array *plan)
{
    frg_context *const ctx = s->ctx;
    const int64_t n = s->x.n, m = s->y.n;
    if (plan->shape[0] != n || plan->shape[1] != m) {
        FAIL(ctx, E_SHAPE, "the plan is %lld x %lld, %lld x %lld is needed",
             (long long)plan->shape[0], (long long)plan->shape[1], (long long)n, (long long)m);
    }
    float *copy;
    TRY(NEW(ctx, &copy, frgi_mul((size_t)n, (size_t)m), "a plan"));
    const frg_status status = copy_plan(ctx, plan, copy);
    if (status < 0) {
        DROP(ctx, &copy);
        return status;
    }
    DROP(ctx, &s->start);
    s->start = copy;
    s->level.initial.plan = copy;
    return FRG_OK;
}

frg_status frg_gw_start_plan(frg_gw *s, frg_array plan)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    frg_context *const ctx = s->ctx;
    if (s->stopped) {
        return s->stopped;
    }
    TRY(take_start(s, "a plan to start from"));
    if (s->o.mode == FRG_GW_VERTEX) {
        FAIL(ctx, E_UNSUPPORTED,
             "a plan to start from in the mode vertex, which has its own starts");
    }
    if (s->o.max_iter == 0 && s->where.dev) {
        FAIL(ctx, E_DEVICE_STEP,
             "align: a plan to start from and no steps (max_iter 0) does not run on %s",
             frgi_device_name(s->where.dev));
    }
    if (s->o.max_iter == 0 && !frgi_is_balanced(&s->o)) {
        FAIL(ctx, E_UNSUPPORTED,
             "a plan to start from with max_iter 0 where marginals are partial or relaxed: allow "
             "some steps");
    }
    if (s->o.rank > 0 && s->o.max_iter == 0) {
        FAIL(ctx, E_UNSUPPORTED,
             "a plan to start from with max_iter 0 and low rank: allow some steps");
    }
    frgi_given given;
    const frgi_device_counts before = frgi_device_counts_now(s->where.dev);
    frg_status status = frgi_given_open(&given, ctx, s->where.dev, &plan, "plan");
    frgi_device_counts_since(s->where.dev, before, &s->opened);
    if (status >= 0) {
        status = take_plan(s, &given.here);
    }
    frgi_given_close(&given);
    return status;
}

/** to <- potentials of a side without the row or column terms of L that exponents leave out. */
static frg_status take_potentials(const frg_gw *s, int side, const double *from, int64_t count,
                                  double *to)
{
    if (frgi_gw_leaves_out(s)) {
        TRY(frgi_gw_terms(s, side, to));
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = from[i] - to[i];
    }
    return FRG_OK;
}

frg_status frg_gw_start_potentials(frg_gw *s, const double *f, const double *g)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    frg_context *const ctx = s->ctx;
    const int64_t n = s->x.n, m = s->y.n;
    if (s->stopped) {
        return s->stopped;
    }
    TRY(take_start(s, "potentials to start from"));
    if (s->o.mode == FRG_GW_VERTEX) {
        FAIL(ctx, E_UNSUPPORTED, "potentials to start from in the mode vertex, which has none");
    }
    if (s->o.rank > 0 || s->o.max_iter == 0) {
        FAIL(ctx, E_UNSUPPORTED,
             "potentials to start from with max_iter 0, or with a rank, whose steps have no "
             "potentials");
    }
    for (int64_t i = 0; f && i < n; i++) {
        REQUIRE(ctx, isfinite(f[i]), "f is %g at %lld", f[i], (long long)i + 1);
    }
    for (int64_t j = 0; g && j < m; j++) {
        REQUIRE(ctx, isfinite(g[j]), "g is %g at %lld", g[j], (long long)j + 1);
    }
    double *both;
    TRY(NEW0(ctx, &both, n + m, "potentials"));
    frg_status status = f ? take_potentials(s, 0, f, n, both) : FRG_OK;
    if (status >= 0 && g) {
        status = take_potentials(s, 1, g, m, both + n);
    }
    if (status < 0) {
        DROP(ctx, &both);
        return status;
    }
    DROP(ctx, &s->potentials);
    s->potentials = both;
    s->level.initial.f = f ? both : NULL;
    s->level.initial.g = g ? both + n : NULL;
    return FRG_OK;
}
