/* gw_sinkhorn.c - entropic transport of a given cost matrix.
 *
 *     min <C, P> + epsilon sum P (log P - 1)   over P 1 = a, P' 1 = b (or relaxed, or of a part of
 *                                              the mass)
 *
 * The reduced and kernel forms store what is left after the potentials are taken out.  They need
 * potentials, so two passes over the caller's costs in f32 come first.
 *
 * A plan is always of the caller's costs.  Fixed point and bf16 round these: the potentials that
 * their passes end at are off by as much, so that the last passes, one at least, are over the costs
 * as they were given, filled in f32 for each pass.  Their error is the one that is reported.
 */
#include <math.h>

#include "core/opts.h"
#include "gw/gw_build.h"
#include "gw/gw_marginals.h"
#include "gw/gw_sinkhorn.h"
#include "gw/gw_store.h"

enum { WARM_PASSES = 2 };
enum { MOST_MORE = 64 }; /* passes at a time behind the first plan: 127 in all */

#define OPTIONS_OF frg_sinkhorn_opts
static const frg_option options[] = {
#include "gw/sinkhorn_opts.def"
    {.name = NULL}};

const frg_option *frg_sinkhorn_options(void)
{
    return options;
}

void frg_sinkhorn_defaults(frg_sinkhorn_opts *o, size_t struct_size)
{
    frg_sinkhorn_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/* ---- exponents from the caller's matrix ------------------------------------------------------ */

static const char *cost_row(const frg_array *c, int64_t i)
{
    return frgi_array_base(c) + i * c->stride[0] * (int64_t)frg_sizeof(c->dtype);
}

static double cost_at(const frg_array *c, int64_t i, int64_t j)
{
    const char *const row = cost_row(c, i);
    return c->dtype == FRG_F64 ? ((const double *)(const void *)row)[j * c->stride[1]]
                               : (double)((const float *)(const void *)row)[j * c->stride[1]];
}

#define NO_WEIGHT (-1e30) /* an exponent in rows of the padding */

/** Row i of the exponents, in `real`, from costs of either type and any stride. */
#define FILL_ROW(name, real)                                                                       \
    static void name(const frgi_sweep *s, const frg_array *c, double k, int64_t i, real *row)      \
    {                                                                                              \
        for (int64_t j = 0; j < s->m; j++) {                                                       \
            row[j] = (real)(i < s->n ? (s->base.G0[j] + s->base.H0[i]) - k * cost_at(c, i, j)      \
                                     : NO_WEIGHT);                                                 \
        }                                                                                          \
        for (int64_t j = s->m; j < s->ld; j++) {                                                   \
            row[j] = 0;                                                                            \
        }                                                                                          \
    }
FILL_ROW(fill_row, float)
FILL_ROW(fill_wide_row, double)
#undef FILL_ROW

/** x_ij = G0_j + H0_i - k c_ij, a frgi_fill. */
static void fill_exponents(const frgi_sweep *s, int64_t i0, int64_t groups, void *rows)
{
    const frg_sinkhorn *const job = s->x.source;
    const frg_array *const c = &job->cost;
    const double k = job->t.k;
    const bool wide = s->x.store == FRGI_X64, plain = c->dtype == FRG_F32 && c->stride[1] == 1;
    const frgi_build_ops *const ops = frgi_build_ops_of(job->ctx);
    for (int64_t i = i0; i < i0 + groups * FRGI_GROUP; i++) {
        const int64_t at = (i - i0) * s->ld;
        if (wide) {
            fill_wide_row(s, c, k, i, (double *)rows + at);
        } else if (plain && i < s->n) {
            const float *const costs = (const float *)(const void *)cost_row(c, i);
            ops->from_costs(s, i, costs, (float)k, (float *)rows + at);
        } else {
            fill_row(s, c, k, i, (float *)rows + at);
        }
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static frg_status check_cost(frg_context *ctx, const frg_array *c, double *low, double *high)
{
    int64_t bad = INT64_MAX;
    double least = (double)INFINITY, most = -(double)INFINITY;
#pragma omp parallel for schedule(static) num_threads(frg_threads(ctx)) reduction(min              \
                                                                                  : bad, least)    \
    reduction(max                                                                                  \
              : most)
    for (int64_t i = 0; i < c->shape[0]; i++) {
        double row_least = (double)INFINITY, row_most = -(double)INFINITY, sum = 0;
        for (int64_t j = 0; j < c->shape[1]; j++) {
            const double x = cost_at(c, i, j);
            row_least = x < row_least ? x : row_least;
            row_most = x > row_most ? x : row_most;
            sum += x - x; /* NaN where x is not finite */
        }
        bad = sum == 0 ? bad : (i < bad ? i : bad);
        least = row_least < least ? row_least : least;
        most = row_most > most ? row_most : most;
    }
    if (bad < INT64_MAX) {
        int64_t j = 0;
        while (isfinite(cost_at(c, bad, j))) {
            j++;
        }
        frgi_at(ctx, "cost, row %lld, column %lld", (long long)bad + 1, (long long)j + 1);
        FAIL(ctx, E_DISTANCE, "an entry is %g", cost_at(c, bad, j));
    }
    *low = least;
    *high = most;
    return FRG_OK;
}

frg_status frgi_take_weights(frg_context *ctx, const double *given, int64_t n, const char *name,
                             double *w, double *sum)
{
    *sum = 0;
    for (int64_t i = 0; i < n; i++) {
        w[i] = given ? given[i] : 1.0 / (double)n;
        if (!(w[i] >= 0 && w[i] < (double)INFINITY)) {
            frgi_at(ctx, "%s, value %lld", name, (long long)i + 1);
            FAIL(ctx, E_MARGINAL, "a weight is %g", w[i]);
        }
        *sum += w[i];
    }
    if (!(*sum > 0 && *sum < (double)INFINITY)) {
        FAIL(ctx, E_MARGINAL, "%s sums to %g", name, *sum);
    }
    return FRG_OK;
}

static bool same_sum(double x, double y)
{
    return fabs(x - y) <= 1e-6 * fmax(x, y);
}

bool frgi_is_partial(double mass, double sum_a, double sum_b)
{
    return mass > 0 && (mass < fmin(sum_a, sum_b) * (1 - 1e-12) || !same_sum(sum_a, sum_b));
}

static void divide(frgi_weights side)
{
    for (int64_t i = 0; i < side.n; i++) {
        side.w[i] /= side.sum;
    }
}

frg_status frgi_normalise_weights(frg_context *ctx, frgi_weights a, frgi_weights b)
{
    if (a.given && b.given && !same_sum(a.sum, b.sum)) {
        FAIL(ctx, E_MARGINAL, "the source weights sum to %.9g, the target weights to %.9g", a.sum,
             b.sum);
    }
    const double sum = a.given ? a.sum : b.sum;
    if (!same_sum(sum, 1)) {
        frgi_warn(ctx, W_TOTALS, "the weights sum to %g and were divided by that", sum);
    }
    divide(a);
    divide(b);
    return FRG_OK;
}

frg_status frgi_check_partial(frg_context *ctx, frg_gw_reference reference)
{
    if (reference == FRG_GW_REFERENCE_PRODUCT) {
        FAIL(ctx, E_UNSUPPORTED, "partial mass with the reference product: leave it at counting");
    }
    return FRG_OK;
}

static bool is_relaxed(const frg_sinkhorn_opts *o)
{
    return isfinite(o->rho_source) || isfinite(o->rho_target);
}

static frg_status check_options(frg_context *ctx, const frg_sinkhorn_opts *o)
{
    TRY(frgi_options_check(ctx, options, o));
    if (o->mass > 0 && is_relaxed(o)) {
        FAIL(ctx, E_UNSUPPORTED, "mass together with relaxed marginals");
    }
    if (o->domain == FRG_GW_DOMAIN_KERNEL && o->mass > 0) {
        FAIL(ctx, E_UNSUPPORTED, "partial mass in the kernel domain");
    }
    if (o->domain == FRG_GW_DOMAIN_KERNEL && o->cost_store == FRG_GW_STORE_FLY) {
        FAIL(
            ctx, E_UNSUPPORTED,
            "cost_store fly in the kernel domain, whose entries are kept: leave cost_store at auto "
            "or take the log domain");
    }
    return FRG_OK;
}

/** The form of the exponents: the one that is asked for, or where that may fall a smaller one.  Of
 *  fixed point that is the one with the potentials inside, which takes any range of the costs. */
static frg_status choose_store(frg_sinkhorn *s, frgi_cost_storage *storage)
{
    static const frgi_form in_logarithms[] =
        {{FRG_GW_STORE_F64, {.store = FRGI_X64, .stored = true}},
         {FRG_GW_STORE_F32, {.store = FRGI_X32, .stored = true}},
         {FRG_GW_STORE_U16, {.store = FRGI_X16, .stored = true}},
         {FRG_GW_STORE_U16R, {.store = FRGI_X16, .stored = true}},
         {FRG_GW_STORE_FLY, {.store = FRGI_X32}}},
                           kernels[] = {{FRG_GW_STORE_AUTO, {.store = FRGI_K32, .stored = true}},
                                        {FRG_GW_STORE_AUTO, {.store = FRGI_K16, .stored = true}}};
    enum { FORMS = sizeof in_logarithms / sizeof *in_logarithms };
    const frg_gw_store asked =
        s->o.cost_store == FRG_GW_STORE_AUTO ? FRG_GW_STORE_F32 : s->o.cost_store;
    frgi_form forms[FORMS];
    int count = 0;
    for (int q = 0; q < FORMS; q++) {
        const frg_gw_store store = in_logarithms[q].store;
        if (store == asked || (count > 0 && store != FRG_GW_STORE_U16)) {
            forms[count++] = in_logarithms[q];
        }
    }
    if (s->o.domain == FRG_GW_DOMAIN_KERNEL) {
        forms[0] = kernels[s->o.kernel_store == FRG_GW_KERNEL_BF16];
        count = 1;
    }
    const frgi_form *chosen;
    TRY(frgi_fit_store(s->ctx, s->cost.shape[0], s->cost.shape[1], forms, count,
                       s->o.auto_store != 0, &chosen));
    s->report.cost_store = chosen->store;
    *storage = chosen->storage;
    return FRG_OK;
}

/** On a device the host keeps vectors alone; rows of the plan are of exponents in double. */
static frg_status choose_device_store(frg_sinkhorn *s, frgi_device *dev, frgi_cost_storage *storage)
{
    TRY(frgi_sinkhorn_device_check(s, dev));
    s->report.cost_store =
        s->o.cost_store == FRG_GW_STORE_AUTO ? FRG_GW_STORE_F32 : s->o.cost_store;
    *storage = (frgi_cost_storage){.store = FRGI_X64};
    return FRG_OK;
}

/** *w <- the weights of a side; NULL: uniform ones. */
static frg_status take_side(frg_context *ctx, const frg_array *given, int64_t n, const char *name,
                            double **w, double *sum)
{
    TRY(NEW(ctx, w, n, "weights"));
    if (given) {
        TRY(frgi_vector_get(ctx, given, name, n, *w));
    }
    return frgi_take_weights(ctx, given ? *w : NULL, n, name, *w, sum);
}

/** The weights of both sides, and *how they hold. */
static frg_status take_marginals(frg_sinkhorn *s, const frg_array *a, const frg_array *b,
                                 frgi_marginals *how)
{
    frg_context *const ctx = s->ctx;
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    double sum_a, sum_b;
    TRY(take_side(ctx, a, n, "a", &s->a, &sum_a));
    TRY(take_side(ctx, b, m, "b", &s->b, &sum_b));
    REQUIRE(ctx, s->o.mass < fmin(sum_a, sum_b) * (1 + 1e-12),
            "mass is %g, the weights sum to %g and %g", s->o.mass, sum_a, sum_b);
    const bool partial = frgi_is_partial(s->o.mass, sum_a, sum_b);
    if (partial) {
        TRY(frgi_check_partial(ctx, s->o.reference));
    } else if (!is_relaxed(&s->o)) {
        TRY(frgi_normalise_weights(ctx, (frgi_weights){s->a, n, sum_a, a != NULL},
                                   (frgi_weights){s->b, m, sum_b, b != NULL}));
    }
    *how = (frgi_marginals){.a = s->a,
                            .b = s->b,
                            .rho_a = s->o.rho_source,
                            .rho_b = s->o.rho_target,
                            .product = s->o.reference == FRG_GW_REFERENCE_PRODUCT,
                            .mass = partial ? s->o.mass : 0};
    return FRG_OK;
}

static frg_status set_up(frg_sinkhorn *s, frgi_sinkhorn_place where, const frg_array *a,
                         const frg_array *b)
{
    frg_context *const ctx = s->ctx;
    frgi_cost_storage storage;
    frgi_marginals how;
    TRY(where.dev ? choose_device_store(s, where.dev, &storage) : choose_store(s, &storage));
    storage.steps = where.steps;
    if (where.dev) {
        TRY(frgi_sinkhorn_device_take(s, where));
    }
    if (!frgi_sinkhorn_is_away(s)) {
        TRY(check_cost(ctx, &s->cost, &s->low, &s->high));
    }
    REQUIRE(ctx,
            s->report.cost_store != FRG_GW_STORE_U16 || (s->high - s->low) / s->o.epsilon <= 1300,
            "the costs span %g, more than 1300 epsilon: u16r or f32 stores them", s->high - s->low);
    TRY(take_marginals(s, a, b, &how));
    TRY(frgi_transport_open(&s->t, ctx, s->cost.shape[0], s->cost.shape[1], storage, &how));
    s->t.accelerate = s->o.accel == FRG_GW_ACCEL_MOMENTUM && !is_relaxed(&s->o);
    return where.dev ? frgi_sinkhorn_device_open(s) : FRG_OK;
}

frg_status frg_sinkhorn_create(frg_sinkhorn **out, frg_context *ctx, frg_array cost,
                               const double *a, const double *b, const frg_sinkhorn_opts *o)
{
    REQUIRE(ctx, ctx && out, "frg_sinkhorn_create takes a place and a context");
    return frgi_sinkhorn_open(out, ctx, (frgi_sinkhorn_place){.dev = frgi_device_of(ctx)}, cost, a,
                              b, o);
}

frg_status frg_sinkhorn_create_arrays(frg_sinkhorn **out, frg_context *ctx, frg_array cost,
                                      const frg_array *a, const frg_array *b,
                                      const frg_sinkhorn_opts *o)
{
    REQUIRE(ctx, ctx && out, "frg_sinkhorn_create_arrays takes a place and a context");
    return frgi_sinkhorn_open_arrays(out, ctx, (frgi_sinkhorn_place){.dev = frgi_device_of(ctx)},
                                     cost, a, b, o);
}

frg_status frgi_sinkhorn_open(frg_sinkhorn **out, frg_context *ctx, frgi_sinkhorn_place where,
                              frg_array cost, const double *a, const double *b,
                              const frg_sinkhorn_opts *o)
{
    const frg_array of_a = frg_vector((void *)(uintptr_t)a, FRG_F64, cost.shape[0]),
                    of_b = frg_vector((void *)(uintptr_t)b, FRG_F64, cost.shape[1]);
    return frgi_sinkhorn_open_arrays(out, ctx, where, cost, a ? &of_a : NULL, b ? &of_b : NULL, o);
}

frg_status frgi_sinkhorn_open_arrays(frg_sinkhorn **out, frg_context *ctx,
                                     frgi_sinkhorn_place where, frg_array cost, const frg_array *a,
                                     const frg_array *b, const frg_sinkhorn_opts *o)
{
    REQUIRE(ctx, out, "out is NULL");
    *out = NULL;
    const double begin = frgi_seconds();
    TRY(frgi_device_array_check(where.dev, ctx, &cost, "cost", 2, 1u << FRG_F32 | 1u << FRG_F64));
    REQUIRE(ctx,
            cost.shape[0] >= 1 && cost.shape[1] >= 1 && cost.shape[0] < INT32_MAX &&
                cost.shape[1] < INT32_MAX,
            "cost is %lld x %lld, 1 to 2^31 - 2 rows and columns are needed",
            (long long)cost.shape[0], (long long)cost.shape[1]);
    frg_sinkhorn *s;
    TRY(NEW0(ctx, &s, 1, "a Sinkhorn solver"));
    s->ctx = ctx;
    s->cost = cost;
    s->counts_on = where.dev;
    const frgi_device_counts before = frgi_device_counts_now(where.dev);
    frg_sinkhorn_defaults(&s->o, sizeof s->o);
    frg_status status = frgi_take_opts(ctx, &s->o, sizeof s->o, o);
    if (status >= 0) {
        status = check_options(ctx, &s->o);
    }
    s->host_steps.beside = frgi_device_beside(where.dev);
    frgi_host_steps *const outer = frgi_host_steps_begin(ctx, &s->host_steps);
    if (status >= 0) {
        status = set_up(s, where, a, b);
    }
    frgi_host_steps_end(ctx, outer);
    if (status < 0) {
        frg_sinkhorn_destroy(s);
        return status;
    }
    frgi_device_counts_since(where.dev, before, &s->counted);
    frgi_host_steps_keep(&s->host_steps);
    s->report.build_seconds = frgi_seconds() - begin;
    *out = s;
    return FRG_OK;
}

void frg_sinkhorn_destroy(frg_sinkhorn *s)
{
    if (!s) {
        return;
    }
    frg_context *const ctx = s->ctx;
    frgi_sinkhorn_device_close(s);
    frgi_transport_close(&s->t);
    DROP(ctx, &s->a);
    DROP(ctx, &s->b);
    DROP(ctx, &s);
}

/* ---- running --------------------------------------------------------------------------------- */

frg_status frg_sinkhorn_start(frg_sinkhorn *s, const double *f, const double *g)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    const double k = FRGI_LOG2_E / s->o.epsilon;
    frgi_sweep *const w = &s->t.s;
    for (int64_t i = 0; f && i < w->n; i++) {
        REQUIRE(s->ctx, isfinite(f[i]), "f is %g at %lld", f[i], (long long)i + 1);
    }
    for (int64_t j = 0; g && j < w->m; j++) {
        REQUIRE(s->ctx, isfinite(g[j]), "g is %g at %lld", g[j], (long long)j + 1);
    }
    double *F, *G;
    TRY(NEW(s->ctx, &F, w->n + w->m, "potentials to start from"));
    G = F + w->n;
    for (int64_t i = 0; f && i < w->n; i++) {
        F[i] = w->to.a[i] > 0 ? k * f[i] : w->to.log_a[i];
    }
    for (int64_t j = 0; g && j < w->m; j++) {
        G[j] = k * g[j];
    }
    if (f) {
        frgi_transport_copy(&s->t, w->F, F, (size_t)w->n * sizeof *F);
    }
    frgi_transport_set_dummy(&s->t);
    if (g) {
        frgi_transport_copy(&s->t, w->G, G, (size_t)w->m * sizeof *G);
    }
    s->t.k = k;
    DROP(s->ctx, &F);
    return FRG_OK;
}

frg_status frg_sinkhorn_start_arrays(frg_sinkhorn *s, const frg_array *f, const frg_array *g)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    const frgi_device_counts before = frgi_device_counts_now(s->counts_on);
    double *both;
    TRY(NEW(s->ctx, &both, n + m, "potentials to start from"));
    frg_status status = f ? frgi_vector_get(s->ctx, f, "f", n, both) : FRG_OK;
    if (status >= 0 && g) {
        status = frgi_vector_get(s->ctx, g, "g", m, both + n);
    }
    if (status >= 0) {
        status = frg_sinkhorn_start(s, f ? both : NULL, g ? both + n : NULL);
    }
    frgi_device_counts_since(s->counts_on, before, &s->counted);
    DROP(s->ctx, &both);
    return status;
}

static bool is_reduced(const frg_sinkhorn *s)
{
    const frgi_store store = s->t.s.x.store;
    return store == FRGI_K16 || store == FRGI_K32 || s->report.cost_store == FRG_GW_STORE_U16R;
}

/** The passes are over the costs as they were given: exponents are not stored, but filled in f32
 *  for each pass. */
static void pass_over_given(frgi_transport *t)
{
    t->s.x.at = NULL;
    t->s.x.store = FRGI_X32;
}

/** Two passes over the caller's costs give the potentials that the reduced forms take out. */
static frg_status warm_up(frg_sinkhorn *s)
{
    frgi_transport *const t = &s->t;
    const frgi_store store = t->s.x.store;
    void *const x = t->s.x.at;
    pass_over_given(t);
    frgi_transport_renew(t, s->o.epsilon, fill_exponents, s);
    const frg_status status = frgi_transport_solve(
        t, s->o.tol, WARM_PASSES < s->o.max_iter ? WARM_PASSES : s->o.max_iter);
    t->s.x.at = x;
    t->s.x.store = store;
    return status;
}

static frg_status verdict(const frg_sinkhorn *s)
{
    const frgi_transport *const t = &s->t;
    return t->last.error <= s->o.tol          ? FRG_OK
           : s->o.tol > 0 && t->last.at_floor ? FRG_STALLED
                                              : FRG_MAX_ITER;
}

/** The passes on a device, then exponents in double with the potentials that they gave. */
static frg_status device_passes(frg_sinkhorn *s)
{
    frgi_transport *const t = &s->t;
    t->k = FRGI_LOG2_E / s->o.epsilon;
    const frg_status status = frgi_sinkhorn_device_passes(s);
    if (status < 0) {
        return status;
    }
    const double error = t->last.error;
    frgi_transport_renew(t, s->o.epsilon, fill_exponents, s);
    t->last.error = error;
    return status == FRG_OK ? verdict(s) : status;
}

/** Passes to an error of tol (0: none) until `most` are done in all; a heartbeat every 10. */
static frg_status pass_on(frg_sinkhorn *s, double tol, int64_t most)
{
    frgi_transport *const t = &s->t;
    while (t->passes < most) {
        const int64_t left = most - t->passes;
        TRY(frgi_transport_solve(t, tol, left < 10 ? left : 10));
        if (tol > 0 && (t->last.error <= tol || t->last.at_floor)) {
            break;
        }
        const frg_status beat = frgi_heartbeat(s->ctx, &(frg_progress){.solver = "gw",
                                                                       .phase = "sinkhorn",
                                                                       .done = t->passes,
                                                                       .total = s->o.max_iter,
                                                                       .residual = t->last.error,
                                                                       .target = s->o.tol});
        if (beat != FRG_OK) {
            return beat;
        }
    }
    return FRG_OK;
}

/** Whether the passes are over costs that are rounded to less than floats. */
static bool is_coarse(const frg_sinkhorn *s)
{
    return s->t.storage.store == FRGI_X16 || s->t.storage.store == FRGI_K16;
}

/** The end of coarse passes, over the costs as they were given, which the plan is of; one pass
 *  where they were stopped. */
static frg_status end_exact(frg_sinkhorn *s, frg_status status)
{
    frgi_transport *const t = &s->t;
    pass_over_given(t);
    frgi_transport_watch(t);
    frgi_transport_renew(t, s->o.epsilon, fill_exponents, s);
    if (status != FRG_OK) {
        TRY(frgi_transport_solve(t, s->o.tol, 1));
        return status;
    }
    return pass_on(s, s->o.tol, s->o.max_iter);
}

static frg_status passes(frg_sinkhorn *s)
{
    frgi_transport *const t = &s->t;
    frgi_transport_restart(t);
    t->passes = 0;
    t->bytes = 0;
    if (s->device) {
        return device_passes(s);
    }
    double error = (double)INFINITY; /* of the last pass, which renewing forgets */
    if (is_reduced(s)) {
        TRY(warm_up(s));
        error = t->last.error;
    }
    frgi_transport_renew(t, s->o.epsilon, fill_exponents, s);
    t->last.error = error;
    if (s->o.tol > 0 && error <= s->o.tol) {
        return FRG_OK;
    }
    const bool coarse = is_coarse(s);
    frg_status status = pass_on(s, s->o.tol, s->o.max_iter - coarse);
    if (status >= 0 && coarse && t->passes < s->o.max_iter) {
        status = end_exact(s, status);
    }
    return status == FRG_OK ? verdict(s) : status;
}

typedef struct {
    const frg_array *cost;
    double *by_row;
} cost_sum;

static void add_cost(void *user, int64_t i, const double *row, int64_t chunk)
{
    const cost_sum *const c = user;
    double sum = 0;
    (void)chunk;
    for (int64_t j = 0; j < c->cost->shape[1]; j++) {
        sum += row[j] * cost_at(c->cost, i, j);
    }
    c->by_row[i] = sum;
}

/** Potentials beyond what the exponents' base can take, floats, leave no plan. */
static frg_status check_plan(const frg_sinkhorn *s, frgi_marginal_error e)
{
    if (!isfinite(e.mass + e.source_l1 + e.target_l1)) {
        FAIL(s->ctx, E_NUMERIC, "the plan at epsilon %g has mass %g", s->o.epsilon, e.mass);
    }
    return FRG_OK;
}

static frg_status finish(frg_sinkhorn *s)
{
    frgi_marginal_error before, after;
    double *by_row;
    if (frgi_sinkhorn_device_finishes(s)) {
        TRY(frgi_sinkhorn_device_finish(s, &before, &after));
        TRY(check_plan(s, after));
        frgi_plan_set(&s->plan, &s->t, before, after);
        s->plan.there = s;
        s->plan.away = frgi_sinkhorn_is_away(s);
        return FRG_OK;
    }
    TRY(NEW(s->ctx, &by_row, s->cost.shape[0], "costs"));
    const double error = s->t.last.error; /* may be forgotten with the exponents of its pass */
    frg_status status = frgi_transport_finish(&s->t, s->o.round != 0, &before, &after);
    s->t.last.error = error;
    status = status < 0 ? status : check_plan(s, after);
    if (status >= 0) {
        frgi_plan_set(&s->plan, &s->t, before, after);
        cost_sum c = {&s->cost, by_row};
        frgi_transport_rows(&s->t, 0, s->cost.shape[0], 64, add_cost, &c);
        s->report.cost = 0;
        for (int64_t i = 0; i < s->cost.shape[0]; i++) {
            s->report.cost += by_row[i];
        }
    }
    DROP(s->ctx, &by_row);
    return status;
}

/** What `tol` is compared with: the error of the last pass, or of the plan where it is larger. */
static double error_of(const frg_sinkhorn *s)
{
    const frgi_targets *const to = &s->t.s.to;
    const frg_plan_report *const plan = &s->plan.report;
    const bool holds = to->tau_a == 1 && to->tau_b == 1 && !(s->t.how.mass > 0);
    return fmax(s->t.last.error,
                holds ? (plan->source_before + plan->target_before) / s->t.total : 0);
}

/** The plan.  Where it is further from the marginals than tol allows, as sums of floats may tell
 *  less, a few passes more. */
static frg_status finish_to_tol(frg_sinkhorn *s, frg_status status)
{
    frgi_transport *const t = &s->t;
    const bool accelerate = t->accelerate;
    TRY(finish(s));
    double least = error_of(s);
    t->accelerate = false;
    for (int64_t more = 1; status == FRG_OK && s->o.tol > 0 && error_of(s) > s->o.tol; more *= 2) {
        if (more > MOST_MORE || frgi_sinkhorn_device_finishes(s)) {
            t->floor.least = least;
            status = FRG_STALLED;
        } else if (t->passes == s->o.max_iter) {
            status = FRG_MAX_ITER;
        } else {
            const int64_t left = s->o.max_iter - t->passes;
            frgi_transport_unround(t);
            status = pass_on(s, 0, t->passes + (more < left ? more : left));
            const frg_status finished = status < 0 ? status : finish(s);
            status = finished < 0 ? finished : status;
            least = fmin(least, error_of(s));
        }
    }
    t->accelerate = accelerate;
    return status;
}

/** What a device has counted since `before`, and until the run began. */
static void report_counts(frg_sinkhorn *s, frgi_device_counts before)
{
    frgi_device_counts all = s->counted;
    frg_sinkhorn_report *const r = &s->report;
    frgi_device_counts_since(s->counts_on, before, &all);
    r->device_launches = all.launches;
    r->device_waits = all.waits;
    r->device_bytes_in = all.bytes_in;
    r->device_bytes_out = all.bytes_out;
}

/** The least <C, P> + epsilon sum P (log P - 1), from the dual problem at the potentials,
 *
 *     <f, a> + <g, b> - epsilon sum P,
 *
 *  which is off by the square of what they are.  NaN where marginals are relaxed or partial. */
static frg_status take_objective(frg_sinkhorn *s)
{
    const frgi_targets *const to = &s->t.s.to;
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    double *both, sum = -s->o.epsilon * s->t.total;
    s->report.objective = (double)NAN;
    if (to->tau_a < 1 || to->tau_b < 1 || s->t.how.mass > 0) {
        return FRG_OK;
    }
    TRY(NEW(s->ctx, &both, n + m, "potentials"));
    const frg_status status = frg_sinkhorn_potentials(s, both, both + n);
    if (status < 0) {
        DROP(s->ctx, &both);
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += s->a[i] > 0 ? s->a[i] * both[i] : 0;
    }
    for (int64_t j = 0; j < m; j++) {
        sum += s->b[j] > 0 ? s->b[j] * both[n + j] : 0;
    }
    DROP(s->ctx, &both);
    s->report.objective = sum;
    return status;
}

frg_status frgi_sinkhorn_solve(frg_sinkhorn *s, frg_info *info)
{
    const double begin = frgi_seconds();
    const frgi_device_counts before = frgi_device_counts_now(s->counts_on);
    frgi_host_steps_rewind(&s->host_steps);
    frgi_host_steps *const outer = frgi_host_steps_begin(s->ctx, &s->host_steps);
    frg_status status = passes(s);
    const double solved = frgi_seconds();
    double error = s->t.last.error;
    if (status >= 0) {
        status = finish_to_tol(s, status);
    }
    if (status >= 0) {
        error = error_of(s);
        s->report.iterations = s->t.passes;
        s->report.marginal_error = error;
        s->report.converged = error <= s->o.tol;
        s->report.rounding_floor = status == FRG_STALLED ? s->t.floor.least : (double)NAN;
        const frg_status taken = take_objective(s);
        status = taken < 0 ? taken : status;
    }
    frgi_host_steps_end(s->ctx, outer);
    s->report.host_steps = s->host_steps.list;
    const double end = frgi_seconds();
    s->report.inner_seconds = solved - begin;
    s->report.polish_seconds = end - solved;
    s->report.total_seconds = s->report.build_seconds + end - begin;
    s->report.bytes_read = s->t.bytes;
    report_counts(s, before);
    if (info) {
        *info = (frg_info){.status = status,
                           .iterations = s->t.passes,
                           .residual = error,
                           .objective = s->report.cost,
                           .setup_seconds = s->report.build_seconds,
                           .solve_seconds = end - begin,
                           .peak_bytes = frg_peak_bytes(s->ctx),
                           .device_name = frgi_sinkhorn_device_name(s)};
    }
    return status;
}

frg_status frg_sinkhorn_run(frg_sinkhorn *s, frg_info *info)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    frgi_run_begins(s->ctx);
    return frgi_sinkhorn_solve(s, info);
}

frg_sinkhorn_report frg_sinkhorn_get(const frg_sinkhorn *s)
{
    if (!s) {
        return (frg_sinkhorn_report){0};
    }
    return s->report;
}

const frg_plan *frg_sinkhorn_plan(const frg_sinkhorn *s)
{
    if (!s) {
        return NULL;
    }
    return s->plan.t ? &s->plan : NULL;
}

frg_status frg_sinkhorn_potentials(const frg_sinkhorn *s, double *f, double *g)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    const frgi_sweep *const w = &s->t.s;
    REQUIRE(s->ctx, s->t.k > 0, "the solver has not run");
    const struct {
        double *to;
        const double *from;
        int64_t count;
    } sides[] = {{f, w->F, w->n}, {g, w->G, w->m}};
    for (int side = 0; side < 2; side++) {
        double *const to = sides[side].to;
        if (to) {
            frgi_transport_copy(&s->t, to, sides[side].from,
                                (size_t)sides[side].count * sizeof *to);
        }
        for (int64_t i = 0; to && i < sides[side].count; i++) {
            to[i] /= s->t.k;
        }
    }
    return FRG_OK;
}

frg_status frg_sinkhorn_potentials_arrays(const frg_sinkhorn *s, const frg_array *f,
                                          const frg_array *g)
{
    if (!s) {
        return FRG_BAD_ARG;
    }
    const int64_t n = s->cost.shape[0], m = s->cost.shape[1];
    double *both;
    TRY(NEW(s->ctx, &both, n + m, "potentials"));
    frg_status status = frg_sinkhorn_potentials(s, both, both + n);
    if (status >= 0 && f) {
        status = frgi_vector_put(s->ctx, f, "f", n, both);
    }
    if (status >= 0 && g) {
        status = frgi_vector_put(s->ctx, g, "g", m, both + n);
    }
    DROP(s->ctx, &both);
    return status;
}
