/* gw_barycenter.c - the space in the barycenter of several.
 *
 *     min over C, P_s of  sum_s share_s (E(C, C_s, P_s) + 2 eps sum P_s (log P_s - 1)),
 *     P_s 1 = p,  P_s' 1 = p_s,
 *
 * by turns (Peyre, Cuturi and Solomon 2016; share_s is their lambda_s): every P_s by
 * P <- Sinkhorn(L(P)) from its last value, then
 *
 *     C <- sum_s share_s P_s C_s P_s' / (p p'),
 *
 * the minimiser for given plans.  Distances are divided by the largest of all spaces inside.  All
 * in double; a round costs O(sum_s steps (N n_s (N + n_s))), memory O(sum_s (N n_s + n_s^2)).  The
 * objective falls with every round; which of its minima is reached depends on the start.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/host_alone.h"
#include "core/opts.h"
#include "gw/gw_floor.h"
#include "gw/gw_marginals.h"
#include "linalg/product.h"

typedef struct {
    int64_t n;
    double *c, *w, *plan; /* n x n, n, size x n */
    double *f;            /* potentials: size, then n */
} space;

typedef struct {
    frg_context *ctx;
    const frg_barycenter_opts *o;
    int64_t size, count;
    space *spaces;
    double *p, *share, *c, *next; /* size, count, size x size */
    double *cost, *product;       /* size x the largest n */
    double largest;               /* the largest distance */
    double energy;
    int64_t passes;
} barycenter;

/** What rounding may leave of a relative change of plans, 64 times: exponents are distances of 4 at
 *  most over epsilon, with 64 inside, and steps pass on what those before left. */
static double noise_of(const barycenter *b)
{
    return 64 * 0x1p-53 * (64 + 4 / b->o->epsilon);
}

/* ---- memory and checks ----------------------------------------------------------------------- */

/** A square matrix of finite distances >= 0 as doubles, its symmetric part; *most: at least the
 *  largest. */
static frg_status take_square(frg_context *ctx, const frg_array *a, const char *name, double **out,
                              double *most)
{
    TRY(frgi_array_check(ctx, a, name, 2, 1u << FRG_F64 | 1u << FRG_F32));
    const int64_t n = a->shape[0];
    if (a->shape[1] != n || n < 1 || n > INT32_MAX) {
        FAIL(ctx, E_SHAPE, "%s is %lld x %lld, a square matrix is needed", name, (long long)n,
             (long long)a->shape[1]);
    }
    TRY(NEW(ctx, out, frgi_mul((size_t)n, (size_t)n), "a barycenter"));
    double gap = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            const double d = frgi_array_get(a, i, j);
            if (!(d >= 0 && d < (double)INFINITY)) {
                frgi_at(ctx, "%s, row %lld, column %lld", name, (long long)i + 1, (long long)j + 1);
                FAIL(ctx, E_DISTANCE, "a distance is %g", d);
            }
            const double back = frgi_array_get(a, j, i);
            gap =
                fmax(gap, isfinite(back) ? fabs(d - back) : 0); /* else it is refused in its turn */
            (*out)[i * n + j] = 0.5 * (d + back);
            largest = fmax(largest, d);
        }
    }
    *most = fmax(*most, largest);
    if (gap > 1e-5 * largest) {
        frgi_warn(ctx, W_DISTANCES, "%s is not symmetric (by up to %g): (C + C') / 2 is used", name,
                  gap);
    }
    return FRG_OK;
}

static frg_status take_shares(frg_context *ctx, const double *given, int64_t n, const char *name,
                              double *out)
{
    double sum;
    TRY(frgi_take_weights(ctx, given, n, name, out, &sum));
    for (int64_t i = 0; i < n; i++) {
        out[i] /= sum;
    }
    return FRG_OK;
}

static frg_status open_spaces(barycenter *b, const frg_array *spaces, const double *const *weights,
                              const double *shares, const double *p)
{
    frg_context *const ctx = b->ctx;
    int64_t most = 0;
    TRY(NEW0(ctx, &b->spaces, b->count, "a barycenter"));
    TRY(NEW(ctx, &b->share, b->count, "a barycenter"));
    TRY(NEW(ctx, &b->p, b->size, "a barycenter"));
    TRY(take_shares(ctx, shares, b->count, "shares", b->share));
    TRY(take_shares(ctx, p, b->size, "p", b->p));
    for (int64_t i = 0; i < b->size; i++) {
        REQUIRE(ctx, b->p[i] > 0, "p[%lld] is 0, every point of a barycenter has weight",
                (long long)i);
    }
    for (int64_t s = 0; s < b->count; s++) {
        space *const x = &b->spaces[s];
        char name[40];
        snprintf(name, sizeof name, "space %lld", (long long)s + 1);
        TRY(take_square(ctx, &spaces[s], name, &x->c, &b->largest));
        x->n = spaces[s].shape[0];
        most = x->n > most ? x->n : most;
        const size_t entries = frgi_mul((size_t)b->size, (size_t)x->n);
        TRY(NEW(ctx, &x->w, x->n, "a barycenter"));
        TRY(NEW(ctx, &x->plan, entries, "a barycenter"));
        TRY(NEW0(ctx, &x->f, b->size + x->n, "a barycenter"));
        TRY(take_shares(ctx, weights ? weights[s] : NULL, x->n, name, x->w));
        for (int64_t i = 0; i < b->size * x->n; i++) {
            x->plan[i] = b->p[i / x->n] * x->w[i % x->n];
        }
    }
    b->largest = b->largest > 0 ? b->largest : 1;
    for (int64_t s = 0; s < b->count; s++) {
        for (int64_t i = 0; i < b->spaces[s].n * b->spaces[s].n; i++) {
            b->spaces[s].c[i] /= b->largest;
        }
    }
    TRY(NEW(ctx, &b->cost, frgi_mul((size_t)b->size, (size_t)most), "a barycenter"));
    TRY(NEW(ctx, &b->product, frgi_mul((size_t)b->size, (size_t)most), "a barycenter"));
    return NEW(ctx, &b->next, frgi_mul((size_t)b->size, (size_t)b->size), "a barycenter");
}

static void close_all(barycenter *b)
{
    frg_context *const ctx = b->ctx;
    for (int64_t s = 0; b->spaces && s < b->count; s++) {
        DROP(ctx, &b->spaces[s].c);
        DROP(ctx, &b->spaces[s].w);
        DROP(ctx, &b->spaces[s].plan);
        DROP(ctx, &b->spaces[s].f);
    }
    DROP(ctx, &b->spaces);
    DROP(ctx, &b->share);
    DROP(ctx, &b->p);
    DROP(ctx, &b->c);
    DROP(ctx, &b->next);
    DROP(ctx, &b->cost);
    DROP(ctx, &b->product);
}

/** Farthest points of the first space from its point 0 on; they repeat where there are too few. */
static frg_status spread_start(barycenter *b)
{
    const space *const x = &b->spaces[0];
    int64_t *chosen = NULL;
    double *gap = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW0(b->ctx, &chosen, b->size, "a barycenter"));
    TRY_TO(done, NEW(b->ctx, &gap, x->n, "a barycenter"));
    TRY_TO(done, NEW(b->ctx, &b->c, frgi_mul((size_t)b->size, (size_t)b->size), "a barycenter"));
    for (int64_t k = 0; k < x->n; k++) {
        gap[k] = x->c[k];
    }
    for (int64_t i = 1; i < b->size; i++) {
        int64_t far = 0;
        for (int64_t k = 0; k < x->n; k++) {
            far = gap[k] > gap[far] ? k : far;
        }
        chosen[i] = gap[far] > 0 ? far : i % x->n;
        for (int64_t k = 0; k < x->n; k++) {
            gap[k] = fmin(gap[k], x->c[chosen[i] * x->n + k]);
        }
    }
    for (int64_t i = 0; i < b->size; i++) {
        for (int64_t j = 0; j < b->size; j++) {
            b->c[i * b->size + j] = x->c[chosen[i] * x->n + chosen[j]];
        }
    }
done:
    DROP(b->ctx, &chosen);
    DROP(b->ctx, &gap);
    return status;
}

/* ---- a round --------------------------------------------------------------------------------- */

/** b->cost <- L(P); *energy <- <L, P>. */
static void linearise(barycenter *b, const space *x, double *energy)
{
    frgi_product_dense(b->ctx, 'N', 'N', b->size, x->n, b->size, 1, b->c, x->plan, 0, b->product);
    frgi_product_dense(b->ctx, 'N', 'N', b->size, x->n, x->n, 1, b->product, x->c, 0, b->cost);
    for (int64_t j = 0; j < x->n; j++) { /* the row of product that is not needed any more */
        b->product[j] = frgi_square_term(x->c + j * x->n, x->w, x->n);
    }
    double sum = 0;
    for (int64_t i = 0; i < b->size; i++) {
        const double row = frgi_square_term(b->c + i * b->size, b->p, b->size);
        for (int64_t j = 0; j < x->n; j++) {
            double *const at = &b->cost[i * x->n + j];
            *at = row + b->product[j] - 2 * *at;
            sum += *at * x->plan[i * x->n + j];
        }
    }
    *energy = sum;
}

/** P <- Sinkhorn(L(P)); *change: in the Frobenius norm, as *norm, that of P. */
static frg_status plan_step(barycenter *b, space *x, double *energy, double *change, double *norm)
{
    frg_sinkhorn_opts o;
    frg_sinkhorn *s = NULL;
    linearise(b, x, energy);
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = b->o->epsilon;
    o.tol = 1e-9;
    o.max_iter = b->o->max_inner;
    o.cost_store = FRG_GW_STORE_F64;
    TRY(frg_sinkhorn_create(&s, b->ctx, frg_matrix(b->cost, FRG_F64, b->size, x->n, x->n), b->p,
                            x->w, &o));
    frg_status status = frg_sinkhorn_start(s, x->f, x->f + b->size);
    if (status >= 0) {
        status = frgi_sinkhorn_solve(s, NULL);
    }
    if (status >= 0) {
        status = status == FRG_MAX_ITER || status == FRG_STALLED ? FRG_OK : status;
        b->passes += frg_sinkhorn_get(s).iterations;
        const frg_status read = frg_plan_rows(frg_sinkhorn_plan(s), 0, b->size,
                                              frg_matrix(b->product, FRG_F64, b->size, x->n, x->n));
        status = read < 0 ? read : status;
    }
    if (status >= 0) {
        const frg_status read = frg_sinkhorn_potentials(s, x->f, x->f + b->size);
        status = read < 0 ? read : status;
    }
    double square = 0, whole = 0;
    for (int64_t i = 0; status >= 0 && i < b->size * x->n; i++) {
        whole += b->product[i] * b->product[i];
        square += (b->product[i] - x->plan[i]) * (b->product[i] - x->plan[i]);
        x->plan[i] = b->product[i];
    }
    *change = sqrt(square);
    *norm = sqrt(whole);
    frg_sinkhorn_destroy(s);
    return status;
}

static frg_status align_space(barycenter *b, space *x, double share)
{
    double energy = 0, change = (double)INFINITY, norm;
    const double tol = b->o->outer_tol;
    frgi_floor floor = frgi_floor_begin();
    bool at_floor = false;
    for (int64_t t = 0; t < b->o->max_outer && change > tol && !at_floor; t++) {
        const frg_status status = plan_step(b, x, &energy, &change, &norm);
        if (status != FRG_OK) {
            return status;
        }
        at_floor = tol > 0 && frgi_floor_reached(&floor, change, noise_of(b) * norm);
    }
    linearise(b, x, &energy);
    b->energy += share * energy * b->largest * b->largest;
    /* next += share P C_s P' */
    frgi_product_dense(b->ctx, 'N', 'N', b->size, x->n, x->n, 1, x->plan, x->c, 0, b->product);
    frgi_product_dense(b->ctx, 'N', 'T', b->size, b->size, x->n, share, b->product, x->plan, 1,
                       b->next);
    return FRG_OK;
}

static frg_status one_round(barycenter *b, double *change)
{
    const int64_t n = b->size;
    memset(b->next, 0, (size_t)(n * n) * sizeof *b->next);
    b->energy = 0;
    for (int64_t s = 0; s < b->count; s++) {
        const frg_status status = align_space(b, &b->spaces[s], b->share[s]);
        if (status != FRG_OK) {
            return status;
        }
    }
    double moved = 0, square = 0;
    for (int64_t i = 0; i < n * n; i++) {
        const double c = b->next[i] / (b->p[i / n] * b->p[i % n]);
        moved += (c - b->c[i]) * (c - b->c[i]);
        square += c * c;
        b->c[i] = c;
    }
    *change = square > 0 ? sqrt(moved / square) : 0;
    return FRG_OK;
}

static frg_status rounds(barycenter *b, frg_barycenter_report *r)
{
    frgi_floor floor = frgi_floor_begin();
    for (int64_t t = 0; t < b->o->max_iter; t++) {
        frg_status status = one_round(b, &r->change);
        if (status == FRG_OK) {
            r->iterations = t + 1;
            r->inner_iterations = b->passes;
            r->energy = b->energy;
            r->converged = r->change <= b->o->tol;
            status = frgi_heartbeat(b->ctx, &(frg_progress){.solver = "gw",
                                                            .phase = "barycenter",
                                                            .done = t + 1,
                                                            .total = b->o->max_iter,
                                                            .residual = r->change,
                                                            .target = b->o->tol});
        }
        if (status != FRG_OK || r->converged) {
            return status;
        }
        if (b->o->tol > 0 && frgi_floor_reached(&floor, r->change, noise_of(b))) {
            r->rounding_floor = floor.least;
            return FRG_STALLED;
        }
    }
    return FRG_MAX_ITER;
}

/* ---- public ---------------------------------------------------------------------------------- */

#define OPTIONS_OF frg_barycenter_opts
static const frg_option options[] = {
#include "gw/barycenter_opts.def"
    {.name = NULL}};

const frg_option *frg_barycenter_options(void)
{
    return options;
}

void frg_barycenter_defaults(frg_barycenter_opts *o, size_t struct_size)
{
    frg_barycenter_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

static frg_status open_all(barycenter *b, const frg_array *spaces, const double *const *weights,
                           const double *shares, const double *p, const frg_array *start)
{
    frg_context *const ctx = b->ctx;
    TRY(open_spaces(b, spaces, weights, shares, p));
    if (!start) {
        return spread_start(b);
    }
    double unused = 0;
    TRY(take_square(ctx, start, "start", &b->c, &unused));
    if (start->shape[0] != b->size) {
        FAIL(ctx, E_SHAPE, "start has %lld points, out has %lld", (long long)start->shape[0],
             (long long)b->size);
    }
    for (int64_t i = 0; i < b->size * b->size; i++) {
        b->c[i] /= b->largest;
    }
    return FRG_OK;
}

frg_status frg_gw_barycenter(frg_context *ctx, const frg_array *spaces,
                             const double *const *weights, const double *shares, int64_t n_spaces,
                             const double *p, const frg_array *start, const frg_barycenter_opts *o,
                             frg_array out, frg_barycenter_report *report)
{
    TRY(frgi_host_alone(ctx, "a barycenter"));
    frg_barycenter_opts opts;
    frg_barycenter_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(ctx, &opts, sizeof opts, o));
    REQUIRE(ctx, spaces && n_spaces >= 1, "a barycenter needs spaces");
    TRY(frgi_options_check(ctx, options, &opts));
    TRY(frgi_array_check(ctx, &out, "out", 2, 1u << FRG_F64));
    if (out.shape[0] != out.shape[1] || out.shape[0] < 1) {
        FAIL(ctx, E_SHAPE, "out is %lld x %lld, a square matrix is needed", (long long)out.shape[0],
             (long long)out.shape[1]);
    }
    barycenter b = {.ctx = ctx, .o = &opts, .size = out.shape[0], .count = n_spaces};
    frg_barycenter_report r = {.rounding_floor = (double)NAN};
    frgi_run_begins(ctx);
    frg_status status = open_all(&b, spaces, weights, shares, p, start);
    if (status >= 0) {
        status = rounds(&b, &r);
    }
    for (int64_t i = 0; status >= 0 && i < b.size; i++) {
        for (int64_t j = 0; j < b.size; j++) {
            ((double *)(void *)frgi_array_base(&out))[i * out.stride[0] + j * out.stride[1]] =
                b.largest * b.c[i * b.size + j];
        }
    }
    if (status >= 0 && report) {
        *report = r;
    }
    close_all(&b);
    return status;
}
