/* reg_wild.c - the wild cluster bootstrap, the null imposed (Cameron, Gelbach and Miller 2008).
 *
 * For b_c = c'b = b0: restricted residuals e0 = e + x_a d, x_a = Z- a, a = L^-1 c, d = (b_c - b0) /
 * a'a; y* = fit + v_g e0 with one random v_g a cluster, E v = 0, E v^2 = 1.  Of Z- as in
 * reg_cluster_space.h, s_g = Z-_g' W e_g, h_g = Z-_g' W x_a,g and U = sum_g v_g (s_g + d h_g):
 *
 *     b*_c - b0 = a'U,   the cluster's score  v_g a'(s_g + d h_g) - h_g'U
 *     t* = a'U / (factor sum_g score^2)^(1/2),   p = #(|t*| >= |t|) / reps
 *
 * so that a draw takes O(G K), no regression and no pass over rows, and t*(d)^2 is a quotient of
 * quadratics: each draw keeps five numbers, from which p at any b0 follows, and the interval, the
 * b0 with p > 1 - level (Roodman, MacKinnon, Nielsen and Webb 2019; MacKinnon 2023).
 *
 *     rademacher  -1, 1 (all 2^G vectors once where that is no more than reps)
 *     webb        +-(1/2)^(1/2), +-1, +-(3/2)^(1/2)        mammen  two points, E v^3 = 1
 *
 * The matrix is that of cluster=; p_value and the interval are the bootstrap's.
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "regress/reg_cluster_space.h"

enum { REPS = 9999, HALVINGS = 60, DOUBLINGS = 60 };
static const uint64_t STREAM = 0x77696c64;
static const double ROUNDING = 1e-12;
static const double TIE = 1e-10; /* a draw that gives t itself counts, but for its rounding */

/** t*(d)^2 = (b0 + b1 d)^2 / (v0 + v1 d + v2 d^2). */
typedef struct {
    double b0, b1, v0, v1, v2;
} draw;

typedef struct {
    frgi_cluster_space space;
    int64_t reps;
    bool all;      /* every vector of signs once */
    double *score; /* G x K: s_g */
    double *C;     /* K x K, of one cluster */
    double *h;     /* G x K: h_g of the coefficient at hand */
    double *own;   /* G x 2: a's_g, a'h_g */
    draw *draws;   /* reps */
    double factor; /* of the covariance */
} wild;

/* ---- weights --------------------------------------------------------------------------------- */

/** v of cluster g in draw r. */
static double weight(const wild *b, int kind, uint64_t seed, int64_t r, int64_t g)
{
    if (b->all) {
        return r >> g & 1 ? -1 : 1;
    }
    static const double six[] = {-1.224744871391589, -1, -0.7071067811865476,
                                 0.7071067811865476, 1,  1.224744871391589};
    double u[2];
    frgi_uniforms(seed, STREAM, (uint64_t)r, (uint64_t)(g / 2), u);
    const double v = u[g % 2], root = sqrt(5);
    if (kind == 1) {
        return six[(int)(6 * v)];
    }
    if (kind == 2) {
        return v < (root + 1) / (2 * root) ? -(root - 1) / 2 : (root + 1) / 2;
    }
    return v < 0.5 ? -1 : 1;
}

/* ---- draws ----------------------------------------------------------------------------------- */

static double dot(int n, const double *x, const double *y)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

/** h_g = Z-_g' W Z-_g a, row by row, and a's_g, a'h_g. */
static void fill_coefficient(const wild *b, const double *a)
{
    const frgi_cluster_space *const s = &b->space;
    const double *const weights = s->w->f->data.frame.weights;
    const int K = s->K;
    memset(b->h, 0, sizeof *b->h * (size_t)(s->G * K));
#pragma omp parallel for schedule(dynamic, 1) num_threads(frgi_pass_threads(s->w->f->ctx, s->n *K))
    for (int64_t g = 0; g < s->G; g++) {
        double *const h = b->h + g * K;
        for (int64_t r = s->start[g]; r < s->start[g + 1]; r++) {
            const double *const z = s->orthogonal + s->row[r] * K;
            const double x = (weights ? weights[s->row[r]] : 1) * dot(K, z, a);
            for (int p = 0; p < K; p++) {
                h[p] += x * z[p];
            }
        }
        b->own[2 * g] = dot(K, a, b->score + g * K);
        b->own[2 * g + 1] = dot(K, a, h);
    }
}

/** x - h'u, 0 where that is but rounding: of a draw with equal v the d of the score cancels, t* is
 *  t at every b0, and a rest would grow with d. */
static double rest_of(double x, int K, const double *h, const double *u)
{
    double size = fabs(x);
    for (int p = 0; p < K; p++) {
        size += fabs(h[p] * u[p]);
    }
    const double rest = x - dot(K, h, u);
    return fabs(rest) > ROUNDING * size ? rest : 0;
}

/** One draw; u: 2 K: U of s and of h; v: G. */
static draw make_draw(const wild *b, const double *a, const double *v, double *u)
{
    const frgi_cluster_space *const s = &b->space;
    const int K = s->K;
    memset(u, 0, sizeof *u * 2 * (size_t)K);
    for (int64_t g = 0; g < s->G; g++) {
        for (int p = 0; p < K; p++) {
            u[p] += v[g] * b->score[g * K + p];
            u[K + p] += v[g] * b->h[g * K + p];
        }
    }
    draw d = {.b0 = dot(K, a, u), .b1 = dot(K, a, u + K)};
    for (int64_t g = 0; g < s->G; g++) {
        const double *const h = b->h + g * K;
        const double c0 = v[g] * b->own[2 * g] - dot(K, h, u),
                     c1 = rest_of(v[g] * b->own[2 * g + 1], K, h, u + K);
        d.v0 += b->factor * c0 * c0;
        d.v1 += b->factor * 2 * c0 * c1;
        d.v2 += b->factor * c1 * c1;
    }
    return d;
}

/** All draws of a coefficient: runs of them side by side, each draw by one thread. */
static frg_status fill_draws(wild *b, const double *a)
{
    const frgi_cluster_space *const s = &b->space;
    frg_context *const ctx = s->w->f->ctx;
    const double asked = s->w->v->request.choice[VCOV_WEIGHTS];
    const int kind = isnan(asked) ? 0 : (int)asked;
    const int threads = frgi_pass_threads(ctx, b->reps * s->G), K = s->K;
    const int64_t each = s->G + 2 * (int64_t)K;
    double *memory;
    TRY(NEW(ctx, &memory, threads * each, "bootstrap weights"));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t r = 0; r < b->reps; r++) {
        double *const v = memory + omp_get_thread_num() * each;
        if (r % 64 == 0 && frgi_stopped(ctx) != FRG_OK) {
            continue; /* the call ends with NaN */
        }
        for (int64_t g = 0; g < s->G; g++) {
            v[g] = weight(b, kind, frg_seed(ctx), r, g);
        }
        b->draws[r] = make_draw(b, a, v, v + s->G);
    }
    s->w->ended = frgi_stopped(ctx) != FRG_OK ? frgi_stopped(ctx) : s->w->ended;
    DROP(ctx, &memory);
    return FRG_OK;
}

/* ---- p and the interval ---------------------------------------------------------------------- */

/** p of b_c = b_c - d a'a. */
static double p_of(const wild *b, double d, double norm, double variance)
{
    const double t2 = d * norm * (d * norm) / variance;
    int64_t above = 0;
    for (int64_t r = 0; r < b->reps; r++) {
        const draw *const q = &b->draws[r];
        const double top = (q->b0 + q->b1 * d) * (q->b0 + q->b1 * d),
                     bottom = fmax(q->v0 + d * (q->v1 + d * q->v2), 0);
        above += top >= t2 * (1 - TIE) * bottom;
    }
    return (double)above / (double)b->reps;
}

/** The d beyond 0 to one side where p falls to 1 - level; infinite where it never does. */
static double bound(const wild *b, double step, double norm, double variance, double alpha)
{
    double inside = 0, outside = step;
    int i = 0;
    while (p_of(b, outside, norm, variance) > alpha && i++ < DOUBLINGS) {
        inside = outside;
        outside *= 2;
    }
    if (i > DOUBLINGS) {
        return step > 0 ? INFINITY : -INFINITY;
    }
    for (int k = 0; k < HALVINGS; k++) {
        const double middle = 0.5 * (inside + outside);
        if (p_of(b, middle, norm, variance) > alpha) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    return 0.5 * (inside + outside);
}

static frg_status test_coefficient(wild *b, int j)
{
    const frgi_cluster_space *const s = &b->space;
    frgi_vcov_work *const w = s->w;
    const frg_fe *const f = w->f;
    frg_coefficient *const out = &w->v->coefficients[j];
    const double *const a = s->contrast + (int64_t)j * s->K;
    const double variance = w->v->matrix[(int64_t)j * f->fit.k + j];
    const int power = w->a + w->c[j];
    const double norm = dot(s->K, a, a), estimate = ldexp(f->fit.b[j], -power);
    if (!(variance > 0)) {
        return FRG_OK; /* NaN as in the table */
    }
    fill_coefficient(b, a);
    TRY(fill_draws(b, a));
    const double alpha = 1 - f->policy.options.level, step = 2 * sqrt(variance) / norm;
    if (w->ended > 0) {
        out->p_value = out->conf_low = out->conf_high = (double)NAN;
        return FRG_OK;
    }
    out->p_value = p_of(b, estimate / norm, norm, variance);
    /* b0 = b_c - d a'a: the upper bound is at the least d */
    out->conf_low = out->estimate - ldexp(norm * bound(b, step, norm, variance, alpha), power);
    out->conf_high = out->estimate - ldexp(norm * bound(b, -step, norm, variance, alpha), power);
    return FRG_OK;
}

static frg_status run(wild *b, frgi_vcov_work *w)
{
    frg_context *const ctx = w->f->ctx;
    frgi_cluster_space *const s = &b->space;
    TRY(frgi_cluster_space_open(s, w));
    const double asked = w->v->request.choice[VCOV_REPS], kind = w->v->request.choice[VCOV_WEIGHTS];
    b->reps = isnan(asked) ? REPS : (int64_t)asked;
    b->all = !(kind > 0) && s->G < 40 && (int64_t)1 << s->G <= b->reps;
    b->reps = b->all ? (int64_t)1 << s->G : b->reps;
    w->v->v.reps = b->reps;
    w->v->v.weights = frgi_vcov_word(&w->v->request, VCOV_WEIGHTS);
    TRY(NEW0(ctx, &b->score, s->G * s->K, "scores by cluster"));
    TRY(NEW(ctx, &b->C, (int64_t)s->K * s->K, "scores by cluster"));
    TRY(NEW(ctx, &b->h, s->G * s->K, "scores by cluster"));
    TRY(NEW(ctx, &b->own, 2 * s->G, "scores by cluster"));
    TRY(NEW0(ctx, &b->draws, b->reps, "draws"));
    for (int64_t g = 0; g < s->G; g++) {
        frgi_cluster_space_fill(s, g, b->C, b->score + g * s->K);
    }
    for (int j = 0; j < s->k; j++) {
        TRY(test_coefficient(b, j));
    }
    return FRG_OK;
}

frg_status frgi_vcov_wild_tests(frgi_vcov_work *w, double factor)
{
    frg_context *const ctx = w->f->ctx;
    const double G = (double)w->groups[0];
    wild b = {.factor = factor * (w->v->ssc.cluster_adj ? G / (G - 1) : 1)};
    const frg_status status = run(&b, w);
    frgi_cluster_space_close(&b.space);
    DROP(ctx, &b.score);
    DROP(ctx, &b.C);
    DROP(ctx, &b.h);
    DROP(ctx, &b.own);
    DROP(ctx, &b.draws);
    return status;
}
