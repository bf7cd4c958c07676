/* gp_batch_lanes.c - processes into the lanes of a vector, and their values and gradients out
 * again.
 *
 * What gp_value.c and gp_gradient.c do for one matrix in tiles is done here for a matrix in a lane;
 * centring, means, noise, priors and the order of the parameters are the process's own. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gp/gp_batch.h"
#include "gp/gp_coordinates.h"
#include "gp/gp_lanes.h"
#include "gp/gp_optimise.h"
#include "gp/gp_trust.h"

static const double LOG_2PI = 1.8378770664093454836;
static const double SINGULAR = 4; /* as in gp_matrix.c */

/** The leaf of an expression that lanes know, of a process that they can hold; NULL elsewhere.
 *  *scale: its variance's parameter, -1 for none. */
static const frgi_gp_node *lane_leaf(const frg_gp *gp, int *scale)
{
    const frgi_gp_kernel *const k = gp->model.kernel;
    const frgi_gp_node *const leaf = &k->node[0];
    *scale = k->n_nodes == 2 && k->node[1].kind == GP_SCALE ? k->node[1].group[0].first : -1;
    if (leaf->kind < GP_RBF || leaf->kind > GP_MATERN52 || k->n_nodes > 2 ||
        (k->n_nodes == 2 && *scale < 0))
        return NULL;
    return leaf->dims <= LANES_MOST_DIMS && gp->data.q == 1 && gp->mean.kind != GP_MEAN_PROFILED &&
                   !gp->opts.reml && !gp->opts.profile_scale
               ? leaf
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

static void put(const frgi_gp_batch_lanes *r, void *at, ptrdiff_t i, int lane, double v)
{
    const ptrdiff_t k = i * r->ops->width + lane;
    if (r->type == FRG_F64)
        ((double *)at)[k] = v;
    else
        ((float *)at)[k] = (float)v;
}

static double get(const frgi_gp_batch_lanes *r, const void *at, ptrdiff_t i, int lane)
{
    const ptrdiff_t k = i * r->ops->width + lane;
    return r->type == FRG_F64 ? ((const double *)at)[k] : (double)((const float *)at)[k];
}

static void lay_out(frgi_arena *a, frgi_gp_batch_lanes *r)
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
    g->matrix =
        frgi_take(a, rows * (size_t)(g->ld + 1)); /* addresses a row behind the last are formed */
    g->x = r->x;
    g->reciprocal = r->reciprocal;
    g->variance = r->variance;
    g->live = r->live;
    g->diagonal = r->diagonal;
    g->residual = r->residual;
}

size_t frgi_gp_lanes_bytes(const frgi_gp_lanes_ops *ops, frg_dtype type, ptrdiff_t n, ptrdiff_t d)
{
    frgi_arena measured = {0};
    frgi_gp_batch_lanes r = {.ops = ops, .type = type, .g = {.n = n + LANES_BLOCK, .d = d}};
    r.g.ld = frgi_gp_lanes_ld(r.g.n);
    lay_out(&measured, &r);
    return measured.used;
}

static void idle_lane(const frgi_gp_batch_lanes *r, int lane, ptrdiff_t from)
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
    return gp->model.theta[leaf->group[0].first + (leaf->group[0].count > 1 ? (int)k : 0)];
}

/** n numbers of a lane, `step` vectors apart: from[i * width] - less. */
static void put_column(const frgi_gp_batch_lanes *r, void *at, ptrdiff_t step, int lane,
                       ptrdiff_t n, const double *from, ptrdiff_t width, double less)
{
    const ptrdiff_t stride = step * r->ops->width;
    double *const wide = (double *)at + lane;
    float *const narrow = (float *)at + lane;
    for (ptrdiff_t i = 0; r->type == FRG_F64 && i < n; i++)
        wide[i * stride] = from[i * width] - less;
    for (ptrdiff_t i = 0; r->type == FRG_F32 && i < n; i++)
        narrow[i * stride] = (float)(from[i * width] - less);
}

static char *vector_at(const frgi_gp_batch_lanes *r, void *at, ptrdiff_t i)
{
    return (char *)at + (size_t)(i * r->ops->width) * frg_sizeof(r->type);
}

static void fill_lane(const frgi_gp_batch_lanes *r, int lane)
{
    frg_gp *const gp = r->gp[lane];
    int scale = -1;
    const frgi_gp_node *const leaf = gp ? lane_leaf(gp, &scale) : NULL;
    const double variance = scale >= 0 ? gp->model.theta[scale] : 1, one = 1;
    put(r, r->variance, 0, lane, variance);
    for (ptrdiff_t k = 0; k < r->g.d; k++)
        put(r, r->reciprocal, k, lane, leaf ? 1 / length_of(gp, leaf, k) : 1);
    if (gp) {
        put_column(r, r->live, 1, lane, gp->data.n, &one, 0, 0);
        put_column(r, r->diagonal, 1, lane, gp->data.n, gp->vectors.noise, 1, -variance);
        put_column(r, r->residual, 1, lane, gp->data.n, gp->vectors.residual, 1, 0);
        for (ptrdiff_t k = 0; k < r->g.d; k++) {
            const ptrdiff_t column = gp->model.kernel->column[leaf->column + k];
            put_column(r, vector_at(r, r->x, k), r->g.d, lane, gp->data.n, gp->data.x + column,
                       gp->data.d, gp->columns.centre[column]);
        }
    }
    idle_lane(r, lane, gp ? gp->data.n : 0);
}

bool frgi_gp_take_value(const frgi_gp_batch_lanes *r, int lane)
{
    frg_gp *const gp = r->gp[lane];
    const double u = r->type == FRG_F64 ? DBL_EPSILON / 2 : (double)(FLT_EPSILON / 2),
                 n = (double)gp->data.n;
    double largest = 0, square = 0, inverse = 0;
    bool regular = r->g.pivot[lane] < 0 && frgi_gp_unresolved(gp) < 0;
    for (ptrdiff_t i = 0; i < gp->data.n && regular; i++) {
        const double l = get(r, r->g.root, i, lane), d = get(r, r->diagonal, i, lane);
        gp->vectors.alpha[i] = get(r, r->g.alpha, i, lane);
        largest = d > largest ? d : largest;
        square += gp->vectors.alpha[i] * gp->vectors.alpha[i];
        inverse += 1 / (l * l);
        regular = l * l > SINGULAR * u * sqrt((double)i + 1) * d;
    }
    if (!regular)
        return false;
    frg_gp_value *const v = &gp->result.value;
    *v = (frg_gp_value){
        .pivot = -1, .closest = {-1, -1}, .trace_residual = (double)NAN, .storage = FRG_GP_FULL};
    v->log_likelihood = -0.5 * (r->g.quad[lane] + r->g.logdet[lane] + n * LOG_2PI);
    v->log_prior = frgi_gp_params_prior(&gp->model.params, gp->model.theta, NULL, NULL);
    v->per_point = (v->log_likelihood + v->log_prior) / (double)(gp->data.n + gp->data.masked);
    v->error_estimate = frgi_gp_rounding_bound(r->type, gp->data.n, largest * (square + inverse));
    const double most = gp->opts.accuracy * (fabs(v->log_likelihood) + 1);
    return isfinite(v->log_likelihood) && v->error_estimate <= most;
}

void frgi_gp_take_gradient(const frgi_gp_batch_lanes *r, int lane)
{
    frg_gp *const gp = r->gp[lane];
    const frgi_gp_params *const ps = &gp->model.params;
    double *const out = gp->result.gradient;
    int scale;
    const frgi_gp_node *const leaf = lane_leaf(gp, &scale);
    memset(out, 0, (size_t)ps->count * sizeof *out);
    double weights = 0, weighted = 0;
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        const double w = gp->vectors.alpha[i] * gp->vectors.alpha[i] -
                         get(r, r->g.matrix, i * r->g.ld + i, lane);
        weights += w;
        weighted += w * get(r, r->diagonal, i, lane);
        if (gp->data.groups)
            out[ps->noise_first + gp->data.groups[i]] += w;
    }
    if (!gp->data.groups && ps->noise_count > 0) /* in the loop every sum would go through memory */
        out[ps->noise_first] = weights;
    for (int g = 0; g < ps->noise_count; g++)
        out[ps->noise_first + g] *= 0.5 * gp->model.theta[ps->noise_first + g];
    for (int k = 0; k < leaf->group[0].count; k++)
        out[leaf->group[0].first + k] += r->g.length[k][lane];
    if (scale >= 0)
        out[scale] = r->g.scale[lane] + 0.5 * weights * gp->model.theta[scale];
    frgi_gp_mean_gradient(gp, gp->vectors.alpha, out, NULL);
    frgi_gp_params_prior(ps, gp->model.theta, out, NULL);
    for (int i = 0; i < ps->count; i++)
        out[i] = ps->p[i].fixed ? 0 : out[i];
    /* sum W_ij K_ij = r'a - tr(K^-1 K) */
    const double trace = r->g.quad[lane] - 2 * r->g.scale[lane] - weighted;
    gp->result.value.trace_residual = fabs(trace - (double)gp->data.n) / (double)gp->data.n;
}

void frgi_gp_lanes_open(frgi_gp_batch_lanes *r, const frg_context *ctx, const frgi_gp_steps *steps,
                        frg_dtype type, frg_gp *const *gp, int count)
{
    *r = (frgi_gp_batch_lanes){.steps = steps, .ops = frgi_gp_lanes_of(ctx, type), .type = type};
    for (int l = 0; l < count; l++) {
        int scale;
        const frgi_gp_node *const leaf = gp[l] ? lane_leaf(gp[l], &scale) : NULL;
        if (!leaf)
            continue;
        const ptrdiff_t rows = (gp[l]->data.n + LANES_BLOCK - 1) / LANES_BLOCK * LANES_BLOCK;
        r->gp[l] = gp[l];
        r->g.kind = lane_kind(leaf);
        r->g.one_length = leaf->group[0].count == 1;
        r->g.d = leaf->dims;
        r->g.n = rows > r->g.n ? rows : r->g.n;
    }
    r->g.ld = frgi_gp_lanes_ld(r->g.n);
}

frg_status frgi_gp_fill_and_run(frgi_gp_batch_lanes *r, bool gradient)
{
    for (int l = 0; l < r->ops->width; l++) {
        if (!r->gp[l])
            continue;
        frgi_gp_mean_residual(r->gp[l]);
        frgi_gp_noise(r->gp[l]);
    }
    for (int l = 0; l < r->ops->width; l++)
        fill_lane(r, l);
    r->ops->value(&r->g);
    if (gradient)
        r->ops->gradient(&r->g);
    return FRG_OK;
}

frg_status frgi_gp_run_lanes(frg_context *ctx, frgi_arena *kept, frgi_gp_batch_lanes *r,
                             bool gradient)
{
    frgi_arena measured = {0};
    lay_out(&measured, r);
    if (measured.used > kept->bytes) {
        r->steps->close(kept, ctx);
        *kept = measured;
        const frg_status status = r->steps->open(kept, ctx, "lanes of small processes");
        if (status < 0) {
            *kept = (frgi_arena){0};
            return status;
        }
    }
    kept->used = 0;
    lay_out(kept, r);
    return r->steps->lanes.run(r, gradient);
}

/* ---- kernels for the machine at hand --------------------------------------------------------- */

const frgi_gp_lanes_ops *frgi_gp_lanes_of(const frg_context *ctx, frg_dtype dtype)
{
    static const frgi_gp_lanes_ops *const levels[ISA_COUNT] = EACH_LEVEL(frgi_gp_lanes_ops);
    return &levels[frgi_context_isa(ctx)][dtype == FRG_F64 ? 0 : 1];
}

/* ---- Adam side by side ----------------------------------------------------------------------- */

/* Adam on the processes of one vector side by side.
 *
 * The steps and coordinates are those of a fit of one process (gp_optimise.h, gp_coordinates.h).  A
 * process whose lane has no good value at some point returns to its start and is fitted alone
 * afterwards; its lane is no longer updated. */

/** One process's search. */
typedef struct {
    frgi_gp_coordinates to;
    double *u, *g, *m, *v; /* of each coordinate: place, gradient, moments */
    double *start;         /* parameters */
} search;

static void lay_out_search(frgi_arena *a, const frg_gp *gp, search *s)
{
    const int p = gp->model.params.count;
    frgi_gp_coordinates_take(a, gp, &s->to);
    s->u = TAKE(a, double, p);
    s->g = TAKE(a, double, p);
    s->m = TAKE(a, double, p);
    s->v = TAKE(a, double, p);
    s->start = TAKE(a, double, p);
}

static void start_search(const frg_gp *gp, bool standardize, search *s)
{
    frgi_gp_coordinates_set(&s->to, true, standardize);
    frgi_gp_coordinates_of(&s->to, gp->model.theta, s->u);
    memset(s->m, 0, (size_t)gp->model.params.count * sizeof *s->m);
    memset(s->v, 0, (size_t)gp->model.params.count * sizeof *s->v);
    memcpy(s->start, gp->model.theta, (size_t)gp->model.params.count * sizeof *s->start);
}

static frg_status move(frg_gp *gp, const frg_gp_fit_opts *o, int64_t t, search *s, double *theta)
{
    const frgi_gp_adam_step now = frgi_gp_adam_at(o->learning_rate, t);
    memcpy(theta, gp->model.theta, (size_t)gp->model.params.count * sizeof *theta);
    frgi_gp_coordinates_gradient(&s->to, gp->result.gradient, s->g);
    for (int k = 0; k < s->to.count; k++) {
        const double g = -s->g[k] / (double)gp->data.n;
        s->u[k] -= frgi_gp_adam_move(&now, g, &s->m[k], &s->v[k]);
        s->u[k] = fmin(fmax(s->u[k], s->to.lower[k]), s->to.upper[k]);
    }
    frgi_gp_coordinates_values(&s->to, s->u, theta);
    return frgi_gp_set_theta(gp, theta);
}

/** The process returns to its start, to be fitted alone. */
static frg_status leave_lane(frg_gp *gp, const search *s, bool *done)
{
    *done = false;
    return frgi_gp_set_theta(gp, s->start);
}

static frg_status steps(frg_context *ctx, frgi_arena *kept, frgi_gp_batch_lanes *r,
                        const frg_gp_fit_opts *o, search s[LANES_MOST], double *theta,
                        bool done[LANES_MOST])
{
    for (int64_t t = 1; t <= o->max_iter + 1; t++) {
        frg_status status = frgi_gp_run_lanes(ctx, kept, r, true);
        for (int l = 0; l < r->ops->width && status == FRG_OK; l++) {
            if (!done[l])
                continue;
            if (!r->steps->lanes.take_value(r, l)) {
                status = leave_lane(r->gp[l], &s[l], &done[l]);
                continue;
            }
            r->steps->lanes.take_gradient(r, l);
            if (t <= o->max_iter)
                status = move(r->gp[l], o, t, &s[l], theta);
        }
        if (status == FRG_OK)
            status = frgi_heartbeat(ctx, &(frg_progress){.solver = "gp",
                                                         .phase = "adam",
                                                         .done = t,
                                                         .total = o->max_iter,
                                                         .residual = (double)NAN,
                                                         .target = o->tol});
        if (status != FRG_OK)
            return status;
    }
    return FRG_OK;
}

frg_status frgi_gp_adam_lanes(frg_context *ctx, frgi_arena *kept, frgi_gp_batch_lanes *r,
                              const frg_gp_fit_opts *o, bool done[LANES_MOST])
{
    search s[LANES_MOST];
    frgi_arena a = {0};
    int most = 0;
    for (int l = 0; l < r->ops->width; l++) {
        done[l] = r->gp[l] != NULL;
        if (!done[l])
            continue;
        lay_out_search(&a, r->gp[l], &s[l]);
        most = r->gp[l]->model.params.count > most ? r->gp[l]->model.params.count : most;
    }
    double *theta = TAKE(&a, double, most);
    TRY(frgi_arena_open(&a, ctx, "searches of fits side by side"));
    for (int l = 0; l < r->ops->width; l++)
        if (done[l]) {
            lay_out_search(&a, r->gp[l], &s[l]);
            start_search(r->gp[l], o->standardize, &s[l]);
        }
    theta = TAKE(&a, double, most);
    const frg_status status = steps(ctx, kept, r, o, s, theta, done);
    frgi_arena_close(&a, ctx);
    return status;
}
