/* test_gp_batch_lanes.c - one process a lane against plain loops in long double; lanes do not see each
 * other. */
#include <float.h>

#include "core/core.h"
#include "gp/gp_lanes.h"
#include "levels.h"
#include "test.h"

enum { MOST = 64, DIMS = 3 };

/** One lane's problem. */
typedef struct {
    ptrdiff_t n, d;
    frgi_gp_lanes_kind kind;
    double x[MOST * DIMS], r[MOST], noise[MOST], l[DIMS], variance;
} problem;

static problem make(ptrdiff_t n, ptrdiff_t d, frgi_gp_lanes_kind kind)
{
    problem p = {.n = n, .d = d, .kind = kind, .variance = 0.5 + test_uniform()};
    for (ptrdiff_t i = 0; i < n * d; i++)
        p.x[i] = (double)(float)test_uniform();
    for (ptrdiff_t i = 0; i < n; i++) {
        p.r[i] = (double)(float)test_normal();
        p.noise[i] = 0.2 + 0.1 * test_uniform();
    }
    for (ptrdiff_t k = 0; k < d; k++)
        p.l[k] = 0.3 + test_uniform();
    return p;
}

typedef struct {
    long double quad, logdet, scale, length[DIMS], alpha[MOST], diagonal[MOST];
} answer;

/** k and -2 dk/ds, variance included. */
static void radial(const problem *p, long double s, long double *k, long double *slope)
{
    const long double r = sqrtl(s), c = p->kind == LANES_MATERN32 ? sqrtl(3) * r : sqrtl(5) * r;
    switch (p->kind) {
    case LANES_MATERN12:
        *k = expl(-r);
        *slope = r > 0 ? expl(-r) / r : 0;
        break;
    case LANES_MATERN32:
        *k = (1 + c) * expl(-c);
        *slope = 3 * expl(-c);
        break;
    case LANES_MATERN52:
        *k = (1 + c + c * c / 3) * expl(-c);
        *slope = 5 * (1 + c) * expl(-c) / 3;
        break;
    default:
        *k = *slope = expl(-s / 2);
    }
    *k *= p->variance;
    *slope *= p->variance;
}

static long double squared(const problem *p, ptrdiff_t i, ptrdiff_t j, ptrdiff_t k)
{
    const long double u = ((long double)p->x[i * p->d + k] - p->x[j * p->d + k]) / p->l[k];
    return u * u;
}

static void pair(const problem *p, ptrdiff_t i, ptrdiff_t j, long double *k, long double *slope)
{
    long double s = 0;
    for (ptrdiff_t c = 0; c < p->d; c++)
        s += squared(p, i, j, c);
    radial(p, s, k, slope);
}

/** Gauss-Jordan without pivoting on K: determinant and inverse. */
static answer plain(const problem *p)
{
    const ptrdiff_t n = p->n;
    static long double a[MOST * MOST];
    answer w = {0};
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            long double slope;
            pair(p, i, j, &a[i * n + j], &slope);
            a[i * n + j] += i == j ? p->noise[i] : 0;
        }
    for (ptrdiff_t k = 0; k < n; k++) {
        const long double pivot = a[k * n + k];
        w.logdet += logl(pivot);
        for (ptrdiff_t i = 0; i < n; i++) {
            if (i == k)
                continue;
            const long double f = a[i * n + k] / pivot;
            for (ptrdiff_t j = 0; j < n; j++)
                a[i * n + j] = j == k ? -f : a[i * n + j] - f * a[k * n + j];
        }
        for (ptrdiff_t j = 0; j < n; j++)
            a[k * n + j] = (j == k ? 1 : a[k * n + j]) / pivot;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < n; j++)
            w.alpha[i] += a[i * n + j] * p->r[j];
        w.quad += w.alpha[i] * p->r[i];
        w.diagonal[i] = a[i * n + i];
    }
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < i; j++) {
            long double k, slope;
            pair(p, i, j, &k, &slope);
            const long double weight = w.alpha[i] * w.alpha[j] - a[i * n + j];
            w.scale += weight * k;
            for (ptrdiff_t c = 0; c < p->d; c++)
                w.length[c] += weight * slope * squared(p, i, j, c);
        }
    return w;
}

/** The lanes' memory, filled from problems; a NULL problem is an idle lane. */
typedef struct {
    frgi_gp_lanes g;
    const frgi_gp_lanes_ops *ops;
    frg_dtype t;
} room;

static void put(const room *m, const void *at, ptrdiff_t i, int lane, double v)
{
    const ptrdiff_t k = i * m->ops->width + lane;
    if (m->t == FRG_F64)
        ((double *)(uintptr_t)at)[k] = v;
    else
        ((float *)(uintptr_t)at)[k] = (float)v;
}

static double get(const room *m, const void *at, ptrdiff_t i, int lane)
{
    const ptrdiff_t k = i * m->ops->width + lane;
    return m->t == FRG_F64 ? ((const double *)at)[k] : (double)((const float *)at)[k];
}

static void lay_out(frgi_arena *a, room *m)
{
    frgi_gp_lanes *const g = &m->g;
    const size_t vector = (size_t)m->ops->width * frg_sizeof(m->t);
    const void **const n_vectors[] = {&g->live, &g->diagonal, &g->residual};
    for (size_t i = 0; i < 3; i++)
        *n_vectors[i] = frgi_take(a, vector * (size_t)g->n);
    g->x = frgi_take(a, vector * (size_t)(g->n * g->d));
    g->u = frgi_take(a, vector * (size_t)(g->n * g->d));
    g->reciprocal = frgi_take(a, vector * (size_t)g->d);
    g->variance = frgi_take(a, vector);
    g->root = frgi_take(a, vector * (size_t)g->n);
    g->alpha = frgi_take(a, vector * (size_t)g->n);
    g->matrix = frgi_take(a, vector * (size_t)(g->n * g->ld));
}

static void evaluate(frg_context *ctx, room *m, frgi_arena *a, frg_dtype t, const problem *const *p,
                     ptrdiff_t n, ptrdiff_t d, frgi_gp_lanes_kind kind, bool one_length)
{
    const ptrdiff_t rows = (n + LANES_BLOCK - 1) / LANES_BLOCK * LANES_BLOCK;
    *m = (room){.ops = frgi_gp_lanes_of(ctx, t), .t = t};
    m->g = (frgi_gp_lanes){
        .kind = kind, .one_length = one_length, .n = rows, .d = d, .ld = frgi_gp_lanes_ld(rows)};
    lay_out(a, m);
    CHECK_OK(ctx, frgi_arena_open(a, ctx, "test"));
    memset(a->base, 0xff, a->bytes);
    lay_out(a, m);
    for (int l = 0; l < m->ops->width; l++) {
        put(m, m->g.variance, 0, l, p[l] ? p[l]->variance : 1);
        for (ptrdiff_t k = 0; k < d; k++)
            put(m, m->g.reciprocal, k, l, p[l] ? 1 / p[l]->l[k] : 1);
        for (ptrdiff_t i = 0; i < rows; i++) {
            const bool live = p[l] && i < p[l]->n;
            put(m, m->g.live, i, l, live);
            put(m, m->g.diagonal, i, l, live ? p[l]->variance + p[l]->noise[i] : 1);
            put(m, m->g.residual, i, l, live ? p[l]->r[i] : 0);
            for (ptrdiff_t k = 0; k < d; k++)
                put(m, m->g.x, i * d + k, l, live ? p[l]->x[i * d + k] : 0);
        }
    }
    m->ops->value(&m->g);
    m->ops->gradient(&m->g);
}

/** Noise 0.2 and variance at most 1.5: cond(K) <= 1 + 1.5 n / 0.2; errors of n u cond, and u of the
 *  terms added. */
static void compare(const room *m, int lane, const problem *p)
{
    const answer w = plain(p);
    const double u = m->t == FRG_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
    const double n = (double)p->n, tolerance = 4 * n * u * (1 + 8 * n);
    CHECK_INT(m->g.pivot[lane], -1);
    CHECK_NEAR(m->g.quad[lane], (double)w.quad, tolerance);
    CHECK_NEAR(m->g.logdet[lane], (double)w.logdet, tolerance);
    CHECK_NEAR(m->g.scale[lane], (double)w.scale, n * tolerance);
    long double together = 0;
    for (ptrdiff_t k = 0; k < p->d; k++) {
        together += w.length[k];
        if (!m->g.one_length)
            CHECK_NEAR(m->g.length[k][lane], (double)w.length[k], n * tolerance);
    }
    if (m->g.one_length)
        CHECK_NEAR(m->g.length[0][lane], (double)together, n * tolerance * (double)p->d);
    for (ptrdiff_t i = 0; i < p->n; i++) {
        CHECK_NEAR(get(m, m->g.alpha, i, lane), (double)w.alpha[i], tolerance);
        CHECK_NEAR(get(m, m->g.matrix, i * m->g.ld + i, lane), (double)w.diagonal[i], tolerance);
    }
}

static void against_plain(void)
{
    static const ptrdiff_t sizes[] = {1, 2, 3, 4, 5, 8, 11, 20, 33, 50};
    const frg_dtype types[] = {FRG_F64, FRG_F32};
    frg_context *ctx = test_context();
    for (int t = 0; t < 2; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int kind = 0; kind < 2 * LANES_KINDS; kind++) {
                const frgi_gp_lanes_kind leaf = (frgi_gp_lanes_kind)(kind % LANES_KINDS);
                const ptrdiff_t d = 1 + test_below(DIMS);
                problem all[LANES_MOST];
                const problem *p[LANES_MOST];
                for (int l = 0; l < LANES_MOST; l++) { /* ragged: sizes 1 .. n, idle lanes */
                    all[l] = make(l == 0 ? sizes[s] : 1 + test_below(sizes[s]), d, leaf);
                    p[l] = l % 5 == 4 ? NULL : &all[l];
                }
                room m;
                frgi_arena a = {0};
                evaluate(ctx, &m, &a, types[t], p, sizes[s], d, leaf, kind >= LANES_KINDS);
                for (int l = 0; l < m.ops->width; l++)
                    if (p[l])
                        compare(&m, l, p[l]);
                frgi_arena_close(&a, ctx);
            }
    frg_context_destroy(ctx);
}

/** A lane without a factor says where, and the others' bits are what they are without it. */
static void poisoned(void)
{
    const frg_dtype types[] = {FRG_F64, FRG_F32};
    frg_context *ctx = test_context();
    for (int t = 0; t < 2; t++) {
        problem all[LANES_MOST], sick;
        const problem *p[LANES_MOST], *q[LANES_MOST];
        for (int l = 0; l < LANES_MOST; l++) {
            all[l] = make(21, 2, LANES_RBF);
            p[l] = q[l] = &all[l];
        }
        sick = all[1];
        sick.noise[13] = -10;
        q[1] = &sick;
        room one, two;
        frgi_arena a = {0}, b = {0};
        evaluate(ctx, &one, &a, types[t], p, 21, 2, LANES_RBF, false);
        evaluate(ctx, &two, &b, types[t], q, 21, 2, LANES_RBF, false);
        CHECK_INT(two.g.pivot[1], 13);
        CHECK(two.g.bad[1] < 0);
        for (int l = 0; l < one.ops->width; l++) {
            if (l == 1)
                continue;
            CHECK_INT(two.g.pivot[l], -1);
            CHECK(one.g.quad[l] == two.g.quad[l] && one.g.logdet[l] == two.g.logdet[l]);
            CHECK(one.g.scale[l] == two.g.scale[l] && one.g.length[1][l] == two.g.length[1][l]);
        }
        frgi_arena_close(&a, ctx);
        frgi_arena_close(&b, ctx);
    }
    frg_context_destroy(ctx);
}

static void one_level(void)
{
    against_plain();
    poisoned();
}

static void levels(void)
{
    test_at_levels(one_level);
}

static const test_case cases[] = {
    {"against plain", against_plain}, {"poisoned", poisoned}, {"levels", levels}};
TEST_MAIN(cases)
