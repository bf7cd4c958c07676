/* gp_fantasy.c - predictions as they would be after candidates had been observed, many sets of them
 * on one factor.
 *
 * Given the data, test points t and the m candidates c of a set are jointly normal, with the
 * posterior's covariance
 *
 *     C = K_tc - V_t'V_c,   S = K_cc - V_c'V_c + noise = L_S L_S',   V = L^-1 K
 *
 * (and the term of a profiled mean, gp_predict.c).  With B = C L_S^-T an outcome y of the
 * candidates changes
 *
 *     mean_t <- mean_t + B L_S^-1 (y - mean_c),   variance_t <- variance_t - sum_j B_tj^2
 *
 * which is what appending them would give, each of q outputs with its own means and the same
 * variances.  V is computed once for all test points and candidates, n^2 (t + sets m) flop; a set
 * costs n m t more, its outcomes share L_S and B.  Memory n (t + sets m).
 */
#include <math.h>
#include <string.h>

#include "core/opts.h"
#include "gp/gp_create.h"
#include "gp/gp_predict.h"
#include "linalg/blas.h"

enum { CHUNK = 64, TRIES = 6 };

typedef struct {
    frg_gp *gp;
    ptrdiff_t sets, m, s, t; /* s: outcomes times outputs */
    ptrdiff_t all;           /* t + sets m points: the test points first */
    double *points;          /* all x d */
    double *mean, *variance; /* all x q, all */
    double *forward, *basis; /* n x all, profile.count x all */
    double *y;               /* sets x s x m: outcomes, candidates side by side */
    double *noise;           /* sets x m */
    double *cross;           /* t x m, column-major: C, then B */
    double *schur, *root;    /* m x m: S, L_S */
    void *raw;               /* a block as the kernel gives it */
    void *test_memory, *points_memory, *bound_memory;
    frgi_gp_points test;
    double *to_mean, *to_variance; /* sets x t x s, sets x t */
} fantasy;

static void lay_out(frgi_arena *a, fantasy *f)
{
    const frg_gp *const gp = f->gp;
    const size_t all = (size_t)f->all, m = (size_t)f->m, t = (size_t)f->t, s = (size_t)f->s;
    const size_t sets = (size_t)f->sets;
    f->points = TAKE(a, double, frgi_mul(all, (size_t)gp->data.d));
    f->mean = TAKE(a, double, frgi_mul(all, (size_t)gp->data.q));
    f->variance = TAKE(a, double, all);
    f->forward = TAKE(a, double, frgi_mul((size_t)gp->data.n, all));
    f->basis = TAKE(a, double, frgi_mul((size_t)gp->profile.count, all));
    f->y = TAKE(a, double, frgi_mul(frgi_mul(sets, s), m));
    f->noise = TAKE(a, double, frgi_mul(sets, m));
    f->cross = TAKE(a, double, frgi_mul(t, m));
    f->schur = TAKE(a, double, frgi_mul(m, m));
    f->root = TAKE(a, double, frgi_mul(m, m));
    f->raw = TAKE(a, double, frgi_mul(t > m ? t : m, m));
    f->test_memory = frgi_take(a, frgi_gp_points_bytes(gp, f->t));
    f->points_memory = frgi_take(a, frgi_gp_points_bytes(gp, f->m));
    f->bound_memory =
        frgi_take(a, frgi_gp_bound_bytes(gp->model.kernel, frgi_spd_dtype(&gp->own.matrix), f->m,
                                         frg_threads(gp->ctx)));
    f->to_mean = TAKE(a, double, frgi_mul(frgi_mul(sets, t), s));
    f->to_variance = TAKE(a, double, frgi_mul(sets, t));
}

/** out (rows x m) <- k(points, the candidates that b is bound to). */
static frg_status prior_block(const fantasy *f, const frgi_gp_bound *b,
                              const frgi_gp_points *points, double *out)
{
    const ptrdiff_t rows = points->n;
    const bool wide = frgi_spd_dtype(&f->gp->own.matrix) == FRG_F64;
    TRY(frgi_gp_cross(f->gp->ctx, b, points, 0, rows, wide ? (void *)out : f->raw, rows));
    if (!wide) {
        frgi_gp_widen(rows * f->m, f->raw, out);
    }
    for (ptrdiff_t i = 0; f->gp->opts.profile_scale && i < rows * f->m; i++) {
        out[i] *= f->gp->state.scale;
    }
    return FRG_OK;
}

/** out (rows x m, ld) <- out - V_i'V_c + the profiled mean's part, for points from `first` on. */
static void condition(const fantasy *f, ptrdiff_t first, ptrdiff_t rows, ptrdiff_t candidates,
                      double *out, ptrdiff_t ld)
{
    const int n = (int)f->gp->data.n, count = (int)f->gp->profile.count, m = (int)f->m;
    frgi_dgemm('T', 'N', (int)rows, m, n, -1, f->forward + first * n, n,
               f->forward + candidates * n, n, 1, out, (int)ld);
    if (count > 0) {
        frgi_dgemm('T', 'N', (int)rows, m, count, 1, f->basis + first * count, count,
                   f->basis + candidates * count, count, 1, out, (int)ld);
    }
}

/** root <- L_S, with as little jitter as it takes: without noise, candidates that equal each other
 *  or a point of the data make S singular. */
static frg_status factor_set(const fantasy *f, ptrdiff_t set, double unit)
{
    const ptrdiff_t m = f->m;
    const size_t bytes = (size_t)(m * m) * sizeof *f->root;
    double jitter = 0;
    for (int attempt = 0; attempt <= TRIES; attempt++) {
        memcpy(f->root, f->schur, bytes);
        for (ptrdiff_t i = 0; i < m; i++) {
            f->root[i + i * m] += jitter;
        }
        if (frgi_gp_factor_schur(m, f->root)) {
            if (jitter > 0) {
                frgi_log(f->gp->ctx, 1, "set %lld: %.2g was added to its variances",
                         frgi_nth(f->gp->ctx, set), jitter);
            }
            return FRG_OK;
        }
        jitter = attempt == 0 ? 1e-10 * unit : 10 * jitter;
    }
    FAIL(f->gp->ctx, E_NOT_POSDEF, "the candidates of set %lld have no positive covariance",
         frgi_nth(f->gp->ctx, set));
}

/** Test points first .. first + rows - 1 of the set whose candidates lie at `c`. */
static void predict_chunk(const fantasy *f, ptrdiff_t set, ptrdiff_t c, ptrdiff_t first,
                          ptrdiff_t rows)
{
    const ptrdiff_t m = f->m, t = f->t, s = f->s;
    double *const b = f->cross + first;
    condition(f, first, rows, c, b, t);
    frgi_dtrsm('R', 'T', (int)rows, (int)m, 1, f->root, (int)m, b, (int)t);
    for (ptrdiff_t i = 0; i < rows; i++) {
        double v = f->variance[first + i];
        for (ptrdiff_t j = 0; j < m; j++) {
            v -= b[i + j * t] * b[i + j * t];
        }
        f->to_variance[set * t + first + i] = v > 0 ? v : 0;
        for (ptrdiff_t k = 0; k < s; k++) {
            const double *const z = f->y + (set * s + k) * m;
            double mean = f->mean[k % f->gp->data.q * f->all + first + i];
            for (ptrdiff_t j = 0; j < m; j++) {
                mean += b[i + j * t] * z[j];
            }
            f->to_mean[(set * t + first + i) * s + k] = mean;
        }
    }
}

static frg_status predict_set(const fantasy *f, ptrdiff_t set)
{
    frg_gp *const gp = f->gp;
    const ptrdiff_t m = f->m, t = f->t, c = t + set * m;
    double unit = 0;
    frgi_gp_points points;
    frgi_gp_set_points(gp, f->points + c * gp->data.d, m, f->points_memory, &points);
    const frgi_gp_bound *const bound = frgi_gp_bind(gp->ctx, gp->model.kernel, gp->model.theta,
                                                    &points, f->bound_memory, frg_threads(gp->ctx));
    TRY(prior_block(f, bound, &points, f->schur));
    TRY(prior_block(f, bound, &f->test, f->cross));
    for (ptrdiff_t i = 0; i < m; i++) {
        frgi_gp_self_training(bound, &points, i, 1, &f->schur[i + i * m]);
        f->schur[i + i * m] = gp->state.scale * f->schur[i + i * m];
        unit += f->schur[i + i * m] / (double)m;
        f->schur[i + i * m] += gp->state.scale * f->noise[set * m + i];
    }
    const frgi_blas_guard guard = frgi_blas_begin();
    condition(f, c, m, c, f->schur, m);
    const frg_status status = factor_set(f, set, unit);
    if (status == FRG_OK) { /* L_S^-1 (y - mean_c) of all outcomes */
        double *const z = f->y + set * f->s * m;
        for (ptrdiff_t k = 0; k < f->s * m; k++) {
            z[k] -= f->mean[k / m % gp->data.q * f->all + c + k % m];
        }
        frgi_dtrsm('L', 'N', (int)m, (int)f->s, 1, f->root, (int)m, z, (int)m);
#pragma omp parallel num_threads(frg_threads(gp->ctx))
        {
            frgi_blas_single();
#pragma omp for schedule(static)
            for (ptrdiff_t first = 0; first < t; first += CHUNK) {
                predict_chunk(f, set, c, first, t - first < CHUNK ? t - first : CHUNK);
            }
        }
    }
    frgi_blas_end(guard);
    return status;
}

/** Noise and white(...) of observations at the test points. */
static void observe(fantasy *f)
{
    const double noise = frgi_gp_new_noise(f->gp);
    const frgi_gp_bound *const bound = frgi_gp_need_bound(f->gp);
    for (ptrdiff_t i = 0; i < f->t; i++) {
        double white;
        frgi_gp_white(bound, &f->test, i, 1, &white);
        for (ptrdiff_t set = 0; set < f->sets; set++) {
            f->to_variance[set * f->t + i] += f->gp->state.scale * white + noise;
        }
    }
}

static frg_status run(fantasy *f, bool observed)
{
    frg_gp *const gp = f->gp;
    const frgi_gp_wanted w = {
        .mean = f->mean, .variance = f->variance, .forward = f->forward, .basis = f->basis};
    frg_status status = frgi_gp_posterior(gp, f->points, f->all, &w);
    frgi_gp_set_points(gp, f->points, f->t, f->test_memory, &f->test);
    for (ptrdiff_t set = 0; set < f->sets && status == FRG_OK; set++) {
        status = frgi_heartbeat(gp->ctx, &(frg_progress){.solver = "gp",
                                                         .phase = "fantasies",
                                                         .done = set,
                                                         .total = f->sets,
                                                         .residual = (double)NAN,
                                                         .target = (double)NAN});
        if (status == FRG_OK) {
            status = predict_set(f, set);
        }
    }
    if (observed && status == FRG_OK) {
        observe(f);
    }
    return status;
}

/* ---- the public call ------------------------------------------------------------------------- */

#define OPTIONS_OF frg_gp_fantasy_opts
static const frg_option options[] = {
#include "gp/gp_fantasy_opts.def"
    {.name = NULL}};

const frg_option *frg_gp_fantasy_options(void)
{
    return options;
}

void frg_gp_fantasy_defaults(frg_gp_fantasy_opts *o, size_t struct_size)
{
    frg_gp_fantasy_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/** Do the shapes of candidates, outcomes, test points and results fit each other? */
static frg_status check_shapes(const frg_gp *gp, const frg_array *x, const frg_array *y,
                               const frg_array *at, const frg_gp_fantasy_opts *o)
{
    frg_context *const ctx = gp->ctx;
    const unsigned floats = 1u << FRG_F64 | 1u << FRG_F32;
    TRY(frgi_array_check(ctx, x, "x", 3, floats));
    TRY(frgi_array_check(ctx, y, "y", 3, floats));
    TRY(frgi_array_check(ctx, at, "at", 2, floats));
    if (x->shape[2] != gp->data.d || at->shape[1] != gp->data.d || y->shape[0] != x->shape[0] ||
        y->shape[1] != x->shape[1]) {
        FAIL(ctx, E_SHAPE,
             "x must be sets x m x %lld, y sets x m x s, at t x %lld: got %lld x %lld x %lld, "
             "%lld x %lld x %lld, %lld x %lld",
             (long long)gp->data.d, (long long)gp->data.d, (long long)x->shape[0],
             (long long)x->shape[1], (long long)x->shape[2], (long long)y->shape[0],
             (long long)y->shape[1], (long long)y->shape[2], (long long)at->shape[0],
             (long long)at->shape[1]);
    }
    const int64_t sets = x->shape[0], t = at->shape[0], s = y->shape[2];
    if (s % gp->data.q != 0) {
        FAIL(ctx, E_SHAPE, "y has %lld columns a point, which is no multiple of the %lld outputs",
             (long long)s, (long long)gp->data.q);
    }
    if (o->mean) {
        TRY(frgi_array_check(ctx, o->mean, "mean", 3, 1u << FRG_F64));
    }
    if (o->variance) {
        TRY(frgi_array_check(ctx, o->variance, "variance", 2, 1u << FRG_F64));
    }
    if (o->mean &&
        (o->mean->shape[0] != sets || o->mean->shape[1] != t || o->mean->shape[2] != s)) {
        FAIL(ctx, E_SHAPE, "mean must be %lld x %lld x %lld", (long long)sets, (long long)t,
             (long long)s);
    }
    if (o->variance && (o->variance->shape[0] != sets || o->variance->shape[1] != t)) {
        FAIL(ctx, E_SHAPE, "variance must be %lld x %lld", (long long)sets, (long long)t);
    }
    return FRG_OK;
}

static frg_status refuse(const fantasy *f, const char *name, ptrdiff_t set, ptrdiff_t i, double v)
{
    if (isfinite(v)) {
        const frg_gp_opts *const o = &f->gp->opts;
        return frgi_gp_refuse_size(f->gp->ctx, name, i, 0, v,
                                   name[0] == 'y' ? frgi_gp_largest_y(o) : frgi_gp_largest_x(o));
    }
    FAIL(f->gp->ctx, E_NOT_FINITE_GP, "%s: set %lld, point %lld has a value of %g", name,
         frgi_nth(f->gp->ctx, set), frgi_nth(f->gp->ctx, i), v);
}

/** Copies of what is given, test points first. */
static frg_status take_data(fantasy *f, const frg_array *x, const frg_array *y, const frg_array *at,
                            const double *noise)
{
    const frg_gp *const gp = f->gp;
    const ptrdiff_t d = gp->data.d, m = f->m;
    const double learned =
        gp->model.params.noise_count > 0 ? gp->model.theta[gp->model.params.noise_first] : 0;
    const double most_x = frgi_gp_largest_x(&gp->opts), most_y = frgi_gp_largest_y(&gp->opts);
    const frgi_gp_reader tests = frgi_gp_read(at), points = frgi_gp_read(x),
                         values = frgi_gp_read(y);
    for (ptrdiff_t i = 0; i < f->all; i++) {
        const ptrdiff_t set = i < f->t ? 0 : (i - f->t) / m, row = i < f->t ? i : (i - f->t) % m;
        for (ptrdiff_t k = 0; k < d; k++) {
            const double v = i < f->t ? frgi_gp_element(&tests, row, k, 0)
                                      : frgi_gp_element(&points, set, row, k);
            f->points[i * d + k] = v;
            if (!(fabs(v) <= most_x)) {
                return refuse(f, i < f->t ? "at" : "x", set, row, v);
            }
        }
    }
    for (ptrdiff_t i = 0; i < f->sets * m; i++) {
        f->noise[i] = learned + (noise ? noise[i] : 0);
        for (ptrdiff_t k = 0; k < f->s; k++) {
            const double v = frgi_gp_element(&values, i / m, i % m, k);
            f->y[(i / m * f->s + k) * m + i % m] = v;
            if (!(fabs(v) <= most_y)) {
                return refuse(f, "y", i / m, i % m, v);
            }
        }
    }
    return FRG_OK;
}

static void deliver(const fantasy *f, const frg_gp_fantasy_opts *o)
{
    for (ptrdiff_t i = 0; i < f->sets * f->t; i++) {
        const ptrdiff_t set = i / f->t, row = i % f->t;
        if (o->variance) {
            double *const to = (double *)(void *)frgi_array_base(o->variance);
            to[set * o->variance->stride[0] + row * o->variance->stride[1]] = f->to_variance[i];
        }
        for (ptrdiff_t k = 0; k < f->s && o->mean; k++) {
            double *const to = (double *)(void *)frgi_array_base(o->mean);
            const int64_t *const stride = o->mean->stride;
            to[set * stride[0] + row * stride[1] + k * stride[2]] = f->to_mean[i * f->s + k];
        }
    }
}

frg_status frg_gp_predict_fantasies(frg_gp *gp, frg_array x, frg_array y, frg_array at,
                                    const frg_gp_fantasy_opts *given)
{
    if (!gp || !given) {
        return FRG_BAD_ARG;
    }
    frg_gp_fantasy_opts o;
    frg_gp_fantasy_defaults(&o, sizeof o);
    TRY(frgi_take_opts(gp->ctx, &o, sizeof o, given));
    TRY(frgi_options_check(gp->ctx, options, &o));
    frgi_run_begins(gp->ctx);
    TRY(check_shapes(gp, &x, &y, &at, &o));
    fantasy f = {.gp = gp,
                 .sets = (ptrdiff_t)x.shape[0],
                 .m = (ptrdiff_t)x.shape[1],
                 .s = (ptrdiff_t)y.shape[2],
                 .t = (ptrdiff_t)at.shape[0]};
    f.all = f.t + f.sets * f.m;
    TRY(frgi_gp_check_new_noise(gp, o.noise_variances, f.sets * f.m));
    if (f.t == 0 || f.sets == 0 || f.m == 0) {
        REQUIRE(gp->ctx, f.t == 0 || f.sets == 0, "a set of candidates has no points");
        return FRG_OK;
    }
    frgi_arena a = {0};
    lay_out(&a, &f);
    TRY(frgi_arena_open(&a, gp->ctx, "fantasies"));
    lay_out(&a, &f);
    frg_status status = take_data(&f, &x, &y, &at, o.noise_variances);
    if (status == FRG_OK) {
        status = frgi_gp_check_phases(gp, "x or at", f.points, f.all);
    }
    if (status == FRG_OK) {
        status = run(&f, o.observed != 0);
    }
    if (status == FRG_OK) {
        deliver(&f, &o);
    }
    frgi_arena_close(&a, gp->ctx);
    return status;
}
