/* gp_batch.c - many independent processes with one expression.
 *
 * Members are sorted by columns and rows, so that those side by side have about the same size, and cut into units: as
 * many as a vector has lanes where a lane can hold them (gp_lanes.h: [variance *] rbf or matern of all columns, one
 * column of y, no profiled mean, up to 128 rows in f64 and 200 in f32), one elsewhere.  Threads take units; each has a
 * context of its own.  A member is a process like any other from frg_gp_create to frg_gp_destroy, so that checks,
 * starts and means are the same; lanes only stand in for its value and gradient.  What a lane cannot do well - a
 * pivot that is not positive or rounding, f32 that is not accurate enough - is done again for that member alone.
 *
 * Memory: per thread one process (a vector of them), n^2 vectors.  Fits run one a core. */
#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "gp/gp_lanes.h"
#include "gp/gp_room.h"
#include "gp/gp_team.h"
#include "gp/gp_tree.h"

enum { ROWS_F64 = 128, ROWS_F32 = 200, LANES_FROM = 3 };
static const double LOG_2PI = 1.8378770664093454836;
static const double SAFETY = 8, SAFETY_PER_POINT = 0.25, SINGULAR = 4; /* as in gp_value.c */

typedef struct {
    int64_t first, count; /* in order */
} unit;

typedef struct {
    frg_context *ctx;
    const char *kernel;
    const frg_gp_opts *opts;
    const frg_gp_fit_opts *fit; /* NULL: value and gradient */
    frg_gp_member *members;
    int64_t count, n_units;
    int64_t *order;
    unit *units;
    frg_dtype lane_type;
    int width; /* lanes to use, 1: none */
    int threads;
    frg_context **contexts; /* one a thread */
    frgi_arena *rooms;      /* one a thread: of its lanes */
} batch;

/* ---- one process in one lane -------------------------------------------------------------------- */

/** The leaf of an expression that lanes know; NULL elsewhere.  *scale: its variance's parameter, -1 for none. */
static const frgi_gp_node *lane_leaf(const frg_gp *gp, int *scale)
{
    const frgi_gp_kernel *const k = gp->kernel;
    const frgi_gp_node *const leaf = &k->node[0];
    *scale = k->n_nodes == 2 && k->node[1].kind == GP_SCALE ? k->node[1].group[0].first : -1;
    if (leaf->kind < GP_RBF || leaf->kind > GP_MATERN52 || k->n_nodes > 2 || (k->n_nodes == 2 && *scale < 0))
        return NULL;
    return leaf->dims <= LANES_MOST_DIMS && gp->q == 1 && gp->mean != GP_MEAN_PROFILED && !gp->opts.reml ? leaf
                                                                                                        : NULL;
}

static frgi_gp_lanes_kind lane_kind(const frgi_gp_node *leaf)
{
    switch (leaf->kind) {
    case GP_MATERN12:
        return LANES_MATERN12;
    case GP_MATERN32:
        return LANES_MATERN32;
    case GP_MATERN52:
        return LANES_MATERN52;
    default:
        return LANES_RBF;
    }
}

/** Processes in the lanes of one vector. */
typedef struct {
    frgi_gp_lanes g;
    const frgi_gp_lanes_ops *ops;
    frg_dtype type;
    frg_gp *gp[LANES_MOST]; /* NULL: idle */
    void *x, *reciprocal, *variance, *live, *diagonal, *residual;
} room;

static void put(const room *r, void *at, ptrdiff_t i, int lane, double v)
{
    const ptrdiff_t k = i * r->ops->width + lane;
    if (r->type == FRG_F64)
        ((double *)at)[k] = v;
    else
        ((float *)at)[k] = (float)v;
}

static double get(const room *r, const void *at, ptrdiff_t i, int lane)
{
    const ptrdiff_t k = i * r->ops->width + lane;
    return r->type == FRG_F64 ? ((const double *)at)[k] : (double)((const float *)at)[k];
}

static void lay_out(frgi_arena *a, room *r)
{
    frgi_gp_lanes *const g = &r->g;
    const size_t vector = (size_t)r->ops->width * frg_sizeof(r->type), rows = vector * (size_t)g->n;
    r->x = frgi_take(a, rows * (size_t)g->d);
    g->u = frgi_take(a, rows * (size_t)g->d);
    r->reciprocal = frgi_take(a, vector * (size_t)g->d);
    r->variance = frgi_take(a, vector);
    r->live = frgi_take(a, rows);
    r->diagonal = frgi_take(a, rows);
    r->residual = frgi_take(a, rows);
    g->root = frgi_take(a, rows);
    g->alpha = frgi_take(a, rows);
    g->matrix = frgi_take(a, rows * (size_t)(g->ld + 1)); /* addresses a row behind the last are formed */
    g->x = r->x;
    g->reciprocal = r->reciprocal;
    g->variance = r->variance;
    g->live = r->live;
    g->diagonal = r->diagonal;
    g->residual = r->residual;
}

static void idle_lane(const room *r, int lane, ptrdiff_t from)
{
    for (ptrdiff_t i = from; i < r->g.n; i++) {
        put(r, r->live, i, lane, 0);
        put(r, r->diagonal, i, lane, 1);
        put(r, r->residual, i, lane, 0);
        for (ptrdiff_t k = 0; k < r->g.d; k++)
            put(r, r->x, i * r->g.d + k, lane, 0);
    }
}

static double length_of(const frg_gp *gp, const frgi_gp_node *leaf, ptrdiff_t k)
{
    return gp->theta[leaf->group[0].first + (leaf->group[0].count > 1 ? (int)k : 0)];
}

static void fill_lane(const room *r, int lane)
{
    const frg_gp *const gp = r->gp[lane];
    int scale = -1;
    const frgi_gp_node *const leaf = gp ? lane_leaf(gp, &scale) : NULL;
    const double variance = scale >= 0 ? gp->theta[scale] : 1;
    put(r, r->variance, 0, lane, variance);
    for (ptrdiff_t k = 0; k < r->g.d; k++)
        put(r, r->reciprocal, k, lane, leaf ? 1 / length_of(gp, leaf, k) : 1);
    for (ptrdiff_t i = 0; gp && i < gp->n; i++) {
        put(r, r->live, i, lane, 1);
        put(r, r->diagonal, i, lane, variance + gp->noise[i]);
        put(r, r->residual, i, lane, gp->residual[i]);
        for (ptrdiff_t k = 0; k < r->g.d; k++) {
            const ptrdiff_t column = gp->kernel->column[leaf->column + k];
            put(r, r->x, i * r->g.d + k, lane, gp->x[i * gp->d + column] - gp->centre[column]);
        }
    }
    idle_lane(r, lane, gp ? gp->n : 0);
}

/** gp->value from a lane; false where the lane's answer is not good enough. */
static bool take_value(const room *r, int lane)
{
    frg_gp *const gp = r->gp[lane];
    const double u = r->type == FRG_F64 ? DBL_EPSILON / 2 : (double)(FLT_EPSILON / 2), n = (double)gp->n;
    double largest = 0, square = 0, inverse = 0;
    bool regular = r->g.pivot[lane] < 0;
    for (ptrdiff_t i = 0; i < gp->n && regular; i++) {
        const double l = get(r, r->g.root, i, lane), d = get(r, r->diagonal, i, lane);
        gp->alpha[i] = get(r, r->g.alpha, i, lane);
        largest = fmax(largest, d);
        square += gp->alpha[i] * gp->alpha[i];
        inverse += 1 / (l * l);
        regular = l * l > SINGULAR * u * d;
    }
    if (!regular)
        return false;
    frg_gp_value *const v = &gp->value;
    *v = (frg_gp_value){.pivot = -1, .closest = {-1, -1}, .trace_residual = (double)NAN, .storage = FRG_GP_FULL};
    v->log_likelihood = -0.5 * (r->g.quad[lane] + r->g.logdet[lane] + n * LOG_2PI);
    v->log_prior = frgi_gp_params_prior(&gp->params, gp->theta, NULL, NULL);
    v->per_point = (v->log_likelihood + v->log_prior) / (double)(gp->n + gp->masked);
    v->error_estimate = fmax(SAFETY, SAFETY_PER_POINT * n) * u * largest * (square + inverse);
    return isfinite(v->log_likelihood) &&
           (r->type == FRG_F64 || v->error_estimate <= gp->opts.accuracy * (fabs(v->log_likelihood) + 1));
}

/** gp->gradient from a lane, and the trace residual. */
static void take_gradient(const room *r, int lane)
{
    frg_gp *const gp = r->gp[lane];
    const frgi_gp_params *const ps = &gp->params;
    double *const out = gp->gradient;
    int scale;
    const frgi_gp_node *const leaf = lane_leaf(gp, &scale);
    memset(out, 0, (size_t)ps->count * sizeof *out);
    double weights = 0, weighted = 0;
    for (ptrdiff_t i = 0; i < gp->n; i++) {
        const double w = gp->alpha[i] * gp->alpha[i] - get(r, r->g.matrix, i * r->g.ld + i, lane);
        weights += w;
        weighted += w * get(r, r->diagonal, i, lane);
        if (ps->noise_count > 0)
            out[ps->noise_first + (gp->groups ? gp->groups[i] : 0)] += w;
    }
    for (int g = 0; g < ps->noise_count; g++)
        out[ps->noise_first + g] *= 0.5 * gp->theta[ps->noise_first + g];
    for (ptrdiff_t k = 0; k < r->g.d; k++)
        out[leaf->group[0].first + (leaf->group[0].count > 1 ? (int)k : 0)] += r->g.length[k][lane];
    if (scale >= 0)
        out[scale] = r->g.scale[lane] + 0.5 * weights * gp->theta[scale];
    frgi_gp_mean_gradient(gp, gp->alpha, out, NULL);
    frgi_gp_params_prior(ps, gp->theta, out, NULL);
    for (int i = 0; i < ps->count; i++)
        out[i] = ps->p[i].fixed ? 0 : out[i];
    /* sum W_ij K_ij = r'a - tr(K^-1 K) */
    const double trace = r->g.quad[lane] - 2 * r->g.scale[lane] - weighted;
    gp->value.trace_residual = fabs(trace - (double)gp->n) / (double)gp->n;
}

/* ---- members ------------------------------------------------------------------------------------ */

static frg_status open_member(frg_gp **gp, frg_context *ctx, const batch *b, const frg_gp_member *m)
{
    TRY(frg_gp_create(gp, ctx, m->x, m->y, b->kernel, b->opts));
    if (!m->theta)
        return FRG_OK;
    const frg_status status = frg_gp_update_parameters(*gp, m->theta);
    if (status < 0) {
        frg_gp_destroy(*gp);
        *gp = NULL;
    }
    return status;
}

static void give(frg_gp_member *m, const frg_gp *gp, bool gradient)
{
    m->value = gp->value;
    if (gradient && m->gradient)
        memcpy(m->gradient, gp->gradient, (size_t)gp->params.count * sizeof *m->gradient);
}

/** A member on its own: value, and the gradient where it is asked for. */
static frg_status evaluate_alone(frg_gp *gp, frg_gp_member *m)
{
    frg_status status = frgi_gp_value(gp);
    if (status == FRG_OK && m->gradient)
        status = frgi_gp_gradient(gp, gp->gradient, NULL, NULL);
    if (status == FRG_OK)
        give(m, gp, true);
    return status;
}

static frg_status fit_alone(const batch *b, frg_gp *gp, frg_gp_member *m)
{
    frg_gp_fit_result result;
    const frg_status fitted = frg_gp_fit(gp, b->fit, &result);
    if (fitted < 0)
        return fitted;
    m->value = result.value;
    if (m->fitted)
        memcpy(m->fitted, gp->theta, (size_t)gp->params.count * sizeof *m->fitted);
    if (m->gradient) {
        const frg_status status = frg_gp_eval_gradient(gp, m->gradient, NULL, NULL, NULL);
        return status == FRG_OK ? fitted : status;
    }
    return fitted;
}

static frg_status run_lanes(frg_context *ctx, frgi_arena *kept, room *r, bool gradient)
{
    for (int l = 0; l < r->ops->width; l++) {
        if (!r->gp[l])
            continue;
        frgi_gp_mean_residual(r->gp[l]);
        frgi_gp_noise(r->gp[l], r->gp[l]->noise);
    }
    frgi_arena measured = {0};
    lay_out(&measured, r);
    if (measured.used > kept->bytes) {
        frgi_arena_close(kept, ctx);
        *kept = measured;
        TRY(frgi_arena_open(kept, ctx, "lanes of small processes"));
    }
    kept->used = 0;
    lay_out(kept, r);
    for (int l = 0; l < r->ops->width; l++)
        fill_lane(r, l);
    r->ops->value(&r->g);
    if (gradient)
        r->ops->gradient(&r->g);
    return FRG_OK;
}

/** Lanes for the members of a unit that can be in them; the others, and those that failed, alone.  What goes into
 *  lanes depends on shapes and expression alone, so that a bad member changes no other's bits. */
static void run_unit(const batch *b, const unit *u, int thread)
{
    frg_context *const ctx = b->contexts[thread];
    frg_gp *gp[LANES_MOST] = {NULL};
    room r = {.ops = frgi_gp_lanes_of(b->ctx, b->lane_type), .type = b->lane_type};
    bool gradient = false;
    int lanes = 0, scale;
    for (int64_t i = 0; i < u->count; i++) {
        frg_gp_member *const m = &b->members[b->order[u->first + i]];
        m->status = open_member(&gp[i], ctx, b, m);
        const frgi_gp_node *const leaf = gp[i] && b->width > 1 && u->count >= LANES_FROM ? lane_leaf(gp[i], &scale) : NULL;
        if (!leaf)
            continue;
        r.gp[i] = gp[i];
        lanes++;
        gradient |= m->gradient != NULL;
        const ptrdiff_t rows = (gp[i]->n + LANES_BLOCK - 1) / LANES_BLOCK * LANES_BLOCK;
        r.g.kind = lane_kind(leaf);
        r.g.d = leaf->dims;
        r.g.n = rows > r.g.n ? rows : r.g.n;
    }
    r.g.ld = frgi_gp_lanes_ld(r.g.n);
    const frg_status ran = lanes > 0 ? run_lanes(ctx, &b->rooms[thread], &r, gradient) : FRG_OK;
    for (int64_t i = 0; i < u->count; i++) {
        frg_gp_member *const m = &b->members[b->order[u->first + i]];
        if (!gp[i])
            continue;
        if (r.gp[i] && ran < 0) {
            m->status = ran;
        } else if (r.gp[i] && take_value(&r, (int)i)) {
            if (m->gradient)
                take_gradient(&r, (int)i);
            give(m, gp[i], true);
            m->status = FRG_OK;
        } else {
            m->status = b->fit ? fit_alone(b, gp[i], m) : evaluate_alone(gp[i], m);
        }
        frg_gp_destroy(gp[i]);
    }
}

/* ---- units -------------------------------------------------------------------------------------- */

/** Largest first: the last units are then short ones, and threads end together. */
static int by_size(const void *one, const void *two, void *members)
{
    const frg_gp_member *const m = members;
    const int64_t i = *(const int64_t *)one, j = *(const int64_t *)two;
    const int64_t di = m[i].x.ndim == 2 ? m[i].x.shape[1] : 0, dj = m[j].x.ndim == 2 ? m[j].x.shape[1] : 0;
    if (di != dj)
        return di > dj ? -1 : 1;
    if (m[i].x.shape[0] != m[j].x.shape[0])
        return m[i].x.shape[0] > m[j].x.shape[0] ? -1 : 1;
    return i < j ? -1 : i > j;
}

static void cut(batch *b)
{
    const int64_t most = b->lane_type == FRG_F64 ? ROWS_F64 : ROWS_F32;
    for (int64_t i = 0; i < b->count; i++)
        b->order[i] = i;
    qsort_r(b->order, (size_t)b->count, sizeof *b->order, by_size, b->members);
    for (int64_t i = 0; i < b->count; i += b->units[b->n_units++].count) {
        const frg_array *const x = &b->members[b->order[i]].x;
        int64_t count = 1;
        while (count < b->width && i + count < b->count && x->ndim == 2 && x->shape[0] <= most) {
            const frg_array *const next = &b->members[b->order[i + count]].x;
            if (next->ndim != 2 || next->shape[1] != x->shape[1])
                break;
            count++;
        }
        b->units[b->n_units] = (unit){i, count};
    }
}

/** An expression or an option that no member could have is the call's mistake: found on the first member. */
static frg_status probe(const batch *b)
{
    static const char *const of_the_call[] = {"FRG-GP-001", "FRG-GP-005", "FRG-CORE-006"};
    frg_gp *gp = NULL;
    const frg_status status = frg_gp_create(&gp, b->ctx, b->members[0].x, b->members[0].y, b->kernel, b->opts);
    frg_gp_destroy(gp);
    for (size_t i = 0; status < 0 && i < sizeof of_the_call / sizeof *of_the_call; i++)
        if (strcmp(frg_error_code(b->ctx), of_the_call[i]) == 0)
            return status;
    return status == FRG_NO_MEMORY ? status : FRG_OK;
}

static frg_status open_threads(batch *b)
{
    TRY(NEW0(b->ctx, &b->contexts, b->threads, "threads of a batch"));
    TRY(NEW0(b->ctx, &b->rooms, b->threads, "threads of a batch"));
    for (int t = 0; t < b->threads; t++)
        TRY(frgi_context_fork(&b->contexts[t], b->ctx, b->threads));
    return FRG_OK;
}

static void close_threads(batch *b)
{
    for (int t = 0; b->contexts && t < b->threads; t++) {
        if (b->contexts[t] && b->rooms)
            frgi_arena_close(&b->rooms[t], b->contexts[t]);
        frg_context_destroy(b->contexts[t]);
    }
    DROP(b->ctx, &b->contexts);
    DROP(b->ctx, &b->rooms);
}

/** The message of the first member that failed: it is done again, on the caller's context. */
static void explain(const batch *b, int64_t i)
{
    frg_gp_member m = b->members[i];
    frg_gp *gp = NULL;
    m.gradient = NULL;
    frgi_at(b->ctx, "member %lld", (long long)i + 1);
    frg_status status = m.status == FRG_NO_MEMORY
                            ? frgi_fail(b->ctx, E_MEMORY, __FILE__, __LINE__, "a member could not be held")
                            : open_member(&gp, b->ctx, b, &m);
    if (status == FRG_OK)
        status = evaluate_alone(gp, &m);
    frg_gp_destroy(gp);
}

static frg_status run_units(batch *b)
{
    int stopped = FRG_OK; /* written by thread 0 alone */
    for (int64_t i = 0; i < b->count; i++)
        b->members[i].status = FRG_INTERRUPTED;
#pragma omp parallel for num_threads(b->threads) schedule(dynamic)
    for (int64_t u = 0; u < b->n_units; u++) {
        const int me = omp_get_thread_num();
        int stop = 0;
        if (me == 0 && stopped == FRG_OK) {
            const frg_progress p = {.solver = "gp", .phase = "batch", .done = u, .total = b->n_units,
                                    .residual = (double)NAN, .target = (double)NAN};
            stop = (int)frgi_heartbeat(b->ctx, &p);
#pragma omp atomic write
            stopped = stop;
        }
#pragma omp atomic read
        stop = stopped;
        if (stop == FRG_OK)
            run_unit(b, &b->units[u], me);
    }
    if (stopped != FRG_OK)
        return (frg_status)stopped;
    for (int64_t i = 0; i < b->count; i++)
        if (b->members[i].status < 0) {
            explain(b, i);
            return FRG_PARTIAL;
        }
    return FRG_OK;
}

static frg_status run_batch(batch *b)
{
    REQUIRE(b->ctx, b->count >= 0 && (b->members || b->count == 0), "a batch takes count >= 0 members");
    REQUIRE(b->ctx, b->kernel, "kernel is NULL");
    if (b->count == 0)
        return FRG_OK;
    frgi_run_begins(b->ctx);
    frg_status status;
    b->lane_type = b->opts && b->opts->precision == FRG_GP_F32 ? FRG_F32 : FRG_F64;
    b->width = b->fit ? 1 : frgi_gp_lanes_of(b->ctx, b->lane_type)->width;
    TRY_TO(done, probe(b));
    TRY_TO(done, NEW(b->ctx, &b->order, b->count, "order of a batch"));
    TRY_TO(done, NEW(b->ctx, &b->units, b->count, "units of a batch"));
    cut(b);
    const int64_t team = frgi_team_size(b->ctx, true);
    b->threads = (int)(team < b->n_units ? team : b->n_units);
    TRY_TO(done, open_threads(b));
    status = run_units(b);
done:
    close_threads(b);
    DROP(b->ctx, &b->order);
    DROP(b->ctx, &b->units);
    return status;
}

frg_status frg_gp_batch_eval(frg_context *ctx, int64_t count, frg_gp_member *members, const char *kernel,
                             const frg_gp_opts *o)
{
    return run_batch(&(batch){.ctx = ctx, .count = count, .members = members, .kernel = kernel, .opts = o});
}

frg_status frg_gp_batch_fit(frg_context *ctx, int64_t count, frg_gp_member *members, const char *kernel,
                            const frg_gp_opts *o, const frg_gp_fit_opts *fit)
{
    frg_gp_fit_opts defaults;
    frg_gp_fit_defaults(&defaults, sizeof defaults);
    return run_batch(&(batch){.ctx = ctx,
                              .count = count,
                              .members = members,
                              .kernel = kernel,
                              .opts = o,
                              .fit = fit ? fit : &defaults});
}
