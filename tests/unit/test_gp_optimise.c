/* test_gp_optimise.c - the three optimisers on plain functions: valleys, boxes, walls, torch's own
 * numbers. */
#include "gp/gp_optimise.h"
#include "test.h"

enum { MOST = 40 };

/** A plain function with what the optimisers ask of it, and what they did. */
typedef struct {
    int n;
    double (*f)(int n, const double *x);
    void (*g)(int n, const double *x, double *g);
    void (*h)(int n, const double *x, double *h);
    const double *matrix, *centre; /* of the quadratic */
    double shown;                  /* what shown_information says */
    double wall;                   /* no value where x_1 is above it */
    double x[MOST], last;
    int64_t stop_after, accepted;
    bool rose, outside;
    const double *lower, *upper;
} plain;

static plain *current; /* the quadratic's matrix reaches its callbacks so */

static frg_status value(void *user, const double *x, double *f)
{
    plain *const p = user;
    memcpy(p->x, x, (size_t)p->n * sizeof *x);
    for (int i = 0; i < p->n; i++)
        p->outside |= x[i] < p->lower[i] || x[i] > p->upper[i];
    *f = p->f(p->n, x);
    return x[0] > p->wall ? FRG_NOT_POSDEF : FRG_OK;
}

static frg_status gradient(void *user, double *g)
{
    plain *const p = user;
    p->g(p->n, p->x, g);
    return FRG_OK;
}

static frg_status information(void *user, double *h)
{
    plain *const p = user;
    p->h(p->n, p->x, h);
    return FRG_OK;
}

static frg_status accepted(void *user, const double *x, double f, double norm)
{
    plain *const p = user;
    (void)x;
    (void)norm;
    p->rose |= f > p->last;
    p->last = f;
    return ++p->accepted == p->stop_after ? FRG_TIME_LIMIT : FRG_OK;
}

static double rosen(int n, const double *x)
{
    double f = 0;
    for (int i = 0; i + 1 < n; i++)
        f += 100 * pow(x[i + 1] - x[i] * x[i], 2) + pow(1 - x[i], 2);
    return f;
}

static void rosen_gradient(int n, const double *x, double *g)
{
    memset(g, 0, (size_t)n * sizeof *g);
    for (int i = 0; i + 1 < n; i++) {
        const double r = x[i + 1] - x[i] * x[i];
        g[i] -= 400 * r * x[i] + 2 * (1 - x[i]);
        g[i + 1] += 200 * r;
    }
}

/** Gauss and Newton's part of the Hessian, 2 J'J: semidefinite, as the average information is. */
static void rosen_gauss(int n, const double *x, double *h)
{
    memset(h, 0, (size_t)(n * n) * sizeof *h);
    for (int i = 0; i + 1 < n; i++) {
        h[i * n + i] += 800 * x[i] * x[i] + 2;
        h[i * n + i + 1] -= 400 * x[i];
        h[(i + 1) * n + i] -= 400 * x[i];
        h[(i + 1) * n + i + 1] += 200;
    }
}

static double quadratic(int n, const double *x)
{
    double f = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            f += 0.5 * (x[i] - current->centre[i]) * current->matrix[i * n + j] *
                 (x[j] - current->centre[j]);
    return f;
}

static void quadratic_gradient(int n, const double *x, double *g)
{
    for (int i = 0; i < n; i++) {
        g[i] = 0;
        for (int j = 0; j < n; j++)
            g[i] += current->matrix[i * n + j] * (x[j] - current->centre[j]);
    }
}

static void quadratic_hessian(int n, const double *x, double *h)
{
    (void)x;
    memcpy(h, current->matrix, (size_t)(n * n) * sizeof *h);
}

static void shown_information(int n, const double *x, double *h)
{
    (void)x;
    for (int i = 0; i < n * n; i++)
        h[i] = current->shown;
}

static void indefinite(int n, const double *x, double *h)
{
    quadratic_hessian(n, x, h);
    h[1] = h[2] = 1 + 1e-7;
}

/** Flat in the second coordinate far away, as a lengthscale that has lost its meaning is. */
static double plateau(int n, const double *x)
{
    (void)n;
    return x[0] * x[0] + 1 / (1 + exp(x[1]));
}

static void plateau_gradient(int n, const double *x, double *g)
{
    (void)n;
    const double s = 1 / (1 + exp(x[1]));
    g[0] = 2 * x[0];
    g[1] = -s * (1 - s);
}

static void plateau_flat(int n, const double *x, double *h)
{
    (void)x;
    memset(h, 0, (size_t)(n * n) * sizeof *h);
    h[0] = 2; /* nothing is known about the other one */
}

typedef frg_status optimiser(frg_context *, const frgi_gp_objective *, const frgi_gp_search *,
                             double *, frgi_gp_found *);

typedef struct {
    double lower[MOST], upper[MOST], x[MOST];
    frgi_gp_found found;
    frg_status status;
} outcome;

static void open_box(outcome *o)
{
    memset(o, 0, sizeof *o);
    for (int i = 0; i < MOST; i++) {
        o->lower[i] = -(double)INFINITY;
        o->upper[i] = (double)INFINITY;
    }
}

static void run(optimiser *method, plain *p, frgi_gp_search s, outcome *o)
{
    frg_context *const ctx = test_context();
    const frgi_gp_objective objective = {.n = p->n,
                                         .lower = o->lower,
                                         .upper = o->upper,
                                         .value = value,
                                         .gradient = gradient,
                                         .information = p->h ? information : NULL,
                                         .accepted = accepted,
                                         .user = p};
    current = p;
    p->last = (double)INFINITY;
    p->accepted = 0;
    p->rose = p->outside = false;
    p->lower = o->lower;
    p->upper = o->upper;
    o->status = method(ctx, &objective, &s, o->x, &o->found);
    CHECK_INT(frg_bytes_held(ctx), 0);
    CHECK_SAYS(!p->outside, "a point outside the box was asked for");
    frg_context_destroy(ctx);
}

static const frgi_gp_search exact = {.max_iter = 500, .tol = 1e-9, .relative = 0};

static void valley(void)
{
    for (int n = 2; n <= 10; n += 8) {
        plain p = {.n = n, .f = rosen, .g = rosen_gradient, .wall = (double)INFINITY};
        outcome o;
        open_box(&o);
        for (int i = 0; i < n; i++)
            o.x[i] = i % 2 ? 1 : -1.2;
        run(frgi_gp_lbfgsb, &p, exact, &o);
        CHECK_INT(o.status, FRG_OK);
        /* the gradient is below 1e-9 and the smallest curvature at 1 is about 0.4 (n = 2), 0.3 (n =
         * 10); with 10 coordinates there is a second minimum near x_1 = -1, which has no gradient
         * either */
        for (int i = 0; i < n && o.found.f < 1; i++)
            CHECK_NEAR(o.x[i], 1, 1e-8);
        CHECK_SAYS(o.found.values < (n == 2 ? 60 : 120), "%d: %" PRId64 " values", n,
                   o.found.values);
        CHECK(!p.rose && o.found.failures == 0 && o.found.gradients <= o.found.values);
        CHECK_INT(p.accepted, o.found.iterations + 1);
    }
}

/** SciPy's optimum of the valley of ten coordinates with x_1 <= 0.5 (its own tolerance leaves 7
 *  digits). */
static void valley_in_box(void)
{
    plain p = {.n = 10, .f = rosen, .g = rosen_gradient, .wall = (double)INFINITY};
    outcome o;
    open_box(&o);
    o.lower[0] = -2;
    o.upper[0] = 0.5;
    for (int i = 0; i < 10; i++)
        o.x[i] = i % 2 ? 1 : -1.2;
    run(frgi_gp_lbfgsb, &p, exact, &o);
    CHECK_INT(o.status, FRG_OK);
    CHECK(o.x[0] == 0.5);
    CHECK_NEAR(o.found.f, 7.594812948951196, 1e-7);
    p.h = rosen_gauss;
    memset(&o.found, 0, sizeof o.found);
    for (int i = 0; i < 10; i++)
        o.x[i] = i % 2 ? 1 : -1.2;
    run(frgi_gp_ai, &p, exact, &o);
    CHECK_INT(o.status, FRG_OK);
    CHECK_NEAR(o.found.f, 7.594812948951196, 1e-7);
}

/** Every subset of active bounds is tried: the one whose free part is stationary and feasible and
 *  whose multipliers have the right sign is the minimum. */
static double best_by_enumeration(int n, const double *matrix, const double *centre,
                                  const double *lower, const double *upper)
{
    double best = (double)INFINITY;
    int codes = 1;
    for (int i = 0; i < n; i++)
        codes *= 3;
    for (int code = 0; code < codes; code++) {
        double x[MOST], a[MOST * MOST], b[MOST];
        int which[MOST], m = 0;
        for (int i = 0, rest = code; i < n; i++, rest /= 3) {
            x[i] = rest % 3 == 1 ? lower[i] : rest % 3 == 2 ? upper[i] : centre[i];
            if (rest % 3 == 0)
                which[m++] = i;
        }
        for (int i = 0; i < m; i++) { /* A_FF dx_F = -A_FB (x_B - c_B) */
            b[i] = 0;
            for (int j = 0; j < n; j++)
                b[i] -= matrix[which[i] * n + j] * (x[j] - centre[j]);
            for (int j = 0; j < m; j++)
                a[i * m + j] = matrix[which[i] * n + which[j]];
        }
        for (int k = 0; k < m; k++)
            for (int i = 0; i < m; i++) {
                const double t = i == k ? 0 : a[i * m + k] / a[k * m + k];
                for (int j = 0; j < m; j++)
                    a[i * m + j] -= t * a[k * m + j];
                b[i] -= t * b[k];
            }
        bool feasible = true;
        for (int i = 0; i < m; i++) {
            x[which[i]] += b[i] / a[i * m + i];
            feasible &= x[which[i]] >= lower[which[i]] && x[which[i]] <= upper[which[i]];
        }
        const double f = quadratic(n, x);
        best = feasible && f < best ? f : best;
    }
    return best;
}

static void boxes(void)
{
    enum { N = 6 };
    for (int round = 0; round < 30; round++) {
        double root[N * N], matrix[N * N], centre[N];
        outcome o;
        open_box(&o);
        for (int i = 0; i < N * N; i++)
            root[i] = test_normal();
        for (int i = 0; i < N; i++) {
            centre[i] = 2 * test_normal();
            o.lower[i] = -test_uniform();
            o.upper[i] = test_uniform();
            o.x[i] = o.lower[i] + test_uniform() * (o.upper[i] - o.lower[i]);
            for (int j = 0; j < N; j++) {
                matrix[i * N + j] = i == j ? 0.1 : 0;
                for (int k = 0; k < N; k++)
                    matrix[i * N + j] += root[i * N + k] * root[j * N + k];
            }
        }
        plain p = {.n = N,
                   .f = quadratic,
                   .g = quadratic_gradient,
                   .h = quadratic_hessian,
                   .matrix = matrix,
                   .centre = centre,
                   .wall = (double)INFINITY};
        current = &p;
        const double best = best_by_enumeration(N, matrix, centre, o.lower, o.upper);
        optimiser *const methods[] = {frgi_gp_lbfgsb, frgi_gp_ai};
        for (int k = 0; k < 2; k++) {
            memset(&o.found, 0, sizeof o.found);
            run(methods[k], &p, exact, &o);
            CHECK_INT(o.status, FRG_OK);
            /* a search ends where its model sees less to be won than 10 roundings of f */
            CHECK_NEAR(o.found.f, best, 1e-13);
            for (int i = 0; i < N; i++)
                o.x[i] = o.lower[i] + test_uniform() * (o.upper[i] - o.lower[i]);
        }
    }
}

/** Beyond a wall there is no value: the search stays on its side and reaches the minimum there. */
static void walls(void)
{
    optimiser *const methods[] = {frgi_gp_lbfgsb, frgi_gp_ai, frgi_gp_adam};
    for (int k = 0; k < 3; k++) {
        const double matrix[4] = {1, 0, 0, 1e-2}, centre[2] = {1, 30};
        plain p = {.n = 2,
                   .f = quadratic,
                   .g = quadratic_gradient,
                   .h = quadratic_hessian,
                   .matrix = matrix,
                   .centre = centre,
                   .wall = 1.01};
        outcome o;
        open_box(&o);
        o.x[0] = -80;
        frgi_gp_search s = exact;
        s.rate = 1.7;
        run(methods[k], &p, s, &o);
        CHECK_INT(o.status, FRG_OK);
        CHECK(o.x[0] <= 1.01);
        CHECK_SAYS(o.found.f < (k == 2 ? 1.0 : 1e-12), "method %d: %g", k, o.found.f);
        p.wall = -100; /* not even the start has a value */
        run(methods[k], &p, s, &o);
        CHECK_INT(o.status, FRG_NOT_POSDEF);
    }
}

/** The minimum lies behind a wall: steps that win less and less before it are no convergence, where
 *  a full step of the model promises more than they win; and neither is the gain of a model whose
 *  matrix has no factor. */
static void no_false_claims(void)
{
    optimiser *const methods[] = {frgi_gp_lbfgsb, frgi_gp_ai};
    for (int k = 0; k < 2; k++) {
        const double matrix[4] = {1, 0, 0, 1}, centre[2] = {1, 0};
        plain p = {.n = 2,
                   .f = quadratic,
                   .g = quadratic_gradient,
                   .h = quadratic_hessian,
                   .matrix = matrix,
                   .centre = centre,
                   .wall = 0.5};
        outcome o;
        open_box(&o);
        frgi_gp_search s = exact;
        s.relative = 2.2e-9;
        o.x[1] = 3;
        run(methods[k], &p, s, &o);
        CHECK_INT(o.status, FRG_STALLED);
        CHECK_SAYS(o.found.norm >= 0.5 && o.found.end == GP_ENDED_OTHERWISE, "method %d: norm %g",
                   k, o.found.norm);
    }
    /* x_1 and x_2 count together alone, and rounding has made the matrix worse than singular */
    const double matrix[4] = {1, 1, 1, 1}, centre[2] = {1, 1};
    plain p = {.n = 2,
               .f = quadratic,
               .g = quadratic_gradient,
               .h = indefinite,
               .matrix = matrix,
               .centre = centre,
               .wall = (double)INFINITY};
    outcome o;
    open_box(&o);
    o.x[0] = -3;
    run(frgi_gp_ai, &p, exact, &o);
    CHECK_INT(o.status, FRG_OK);
    CHECK_NEAR(o.x[0] + o.x[1], 2, 1e-8);               /* the gradient is its distance from 2 */
    CHECK(o.found.gradients == o.found.iterations + 1); /* it did so by itself */
}

static void limits(void)
{
    optimiser *const methods[] = {frgi_gp_lbfgsb, frgi_gp_ai};
    for (int k = 0; k < 2; k++) {
        plain p = {.n = 10,
                   .f = rosen,
                   .g = rosen_gradient,
                   .h = rosen_gauss,
                   .wall = (double)INFINITY,
                   .stop_after = 4};
        outcome o;
        open_box(&o);
        run(methods[k], &p, exact, &o);
        CHECK_INT(o.status, FRG_TIME_LIMIT);
        CHECK(rosen(10, o.x) == o.found.f && o.found.f == p.last);
        open_box(&o);
        frgi_gp_search s = exact;
        s.max_iter = 3;
        p.stop_after = 0;
        run(methods[k], &p, s, &o);
        CHECK_INT(o.status, FRG_MAX_ITER);
        CHECK_INT(o.found.iterations, 3);
    }
}

/** With Gauss and Newton's matrix the valley takes no more values than without it (SciPy: 44);
 *  without knowledge of a coordinate the trust region still moves along it, and what it cannot do
 *  L-BFGS-B does. */
static void information_helps(void)
{
    plain p = {.n = 2, .f = rosen, .g = rosen_gradient, .h = rosen_gauss, .wall = (double)INFINITY};
    outcome o;
    open_box(&o);
    o.x[0] = -1.2;
    o.x[1] = 1;
    run(frgi_gp_ai, &p, exact, &o);
    CHECK_INT(o.status, FRG_OK);
    /* it ends where 10 roundings of 1 can be won at most: sqrt(2 * 2.2e-15 / 0.4) at the smallest
     * curvature */
    CHECK_NEAR(o.x[0], 1, 1.1e-7);
    CHECK_SAYS(o.found.values <= 50, "%" PRId64 " values", o.found.values);
    CHECK(!p.rose);

    plain q = {
        .n = 2, .f = plateau, .g = plateau_gradient, .h = plateau_flat, .wall = (double)INFINITY};
    open_box(&o);
    o.upper[1] = 15;
    o.x[0] = 3;
    run(frgi_gp_ai, &q, exact, &o);
    CHECK_INT(o.status, FRG_OK);
    CHECK_NEAR(o.x[1], 15, 0);
    CHECK_NEAR(o.x[0], 0, 1e-8);
}

/** On f = (x - c)^2 / 2 with an information of h instead of 1 a step is p = -e / (h (1 + mu)), e =
 *  x - c, while |e| <= h; the model expects -(e p + h p^2 / 2), f falls by -(e p + p^2 / 2), and mu
 *  follows their ratio: by max(1/5, 1 - (2 gain - 1)^3) (Nielsen 1999), from 1/100 on.  The
 *  recurrence, step by step. */
static void damping_follows_the_gain(void)
{
    static const double shown[] = {1, 0.75, 0.6, 1.3};
    for (int k = 0; k < 4; k++) {
        const double matrix[1] = {1}, centre[1] = {0.4}, h = shown[k];
        plain p = {.n = 1,
                   .f = quadratic,
                   .g = quadratic_gradient,
                   .h = shown_information,
                   .matrix = matrix,
                   .centre = centre,
                   .shown = h,
                   .wall = (double)INFINITY};
        double e = -0.3, mu = 1e-2;
        for (int steps = 1; steps <= 3; steps++) {
            outcome o;
            open_box(&o);
            frgi_gp_search s = exact;
            s.tol = 0;
            s.max_iter = steps;
            o.x[0] = 0.1;
            run(frgi_gp_ai, &p, s, &o);
            const double step = -e / (h * (1 + mu)), expected = -(e * step + 0.5 * h * step * step);
            const double t = 2 * -(e * step + 0.5 * step * step) / expected - 1;
            mu *= fmax(0.2, 1 - t * t * t);
            e += step;
            CHECK_INT(o.status, FRG_MAX_ITER);
            CHECK_SAYS(fabs(o.x[0] - 0.4 - e) <= 1e-12 * fabs(e) + 1e-15,
                       "h %g, step %d: %.17g, expected %.17g", h, steps, o.x[0] - 0.4, e);
        }
    }
}

/** torch.optim.Adam, version 2.15, lr 0.1, on the valley from (-1.2, 1) in float64. */
static void adam_as_torch(void)
{
    static const struct {
        int64_t steps;
        double x[2];
    } torch[] = {{1, {-1.1000000000046382, 1.0999999999886363}},
                 {2, {-1.017259582788236, 1.1830597533458147}},
                 {10, {-1.0989041046967079, 1.0192858816261177}},
                 {50, {-0.927263596539499, 0.8491801217555051}}};
    for (size_t k = 0; k < sizeof torch / sizeof *torch; k++) {
        plain p = {.n = 2, .f = rosen, .g = rosen_gradient, .wall = (double)INFINITY};
        outcome o;
        open_box(&o);
        o.x[0] = -1.2;
        o.x[1] = 1;
        run(frgi_gp_adam, &p, (frgi_gp_search){.max_iter = torch[k].steps, .rate = 0.1}, &o);
        CHECK_INT(o.status, FRG_OK);
        CHECK_INT(o.found.iterations, torch[k].steps);
        /* the gradient itself is rounded otherwise (x^2 by pow): a few units a step, which the
         * valley multiplies */
        for (int i = 0; i < 2; i++)
            CHECK_NEAR(o.x[i], torch[k].x[i], 1e-13 * (double)torch[k].steps);
        CHECK(o.found.f == rosen(2, o.x));
    }
}

/** A first step is the rate along every coordinate (less eps / |g|).  Where it has no value it is
 *  halved until it has, and where it never has the search stays at its start. */
static void adam_before_a_wall(void)
{
    static const struct {
        double wall, step;
    } all[] = {{2, 1}, {0.6, 0.5}, {0.3, 0.25}, {0, 0}};
    const double matrix[4] = {1, 0, 0, 1}, centre[2] = {10, -10};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        plain p = {.n = 2,
                   .f = quadratic,
                   .g = quadratic_gradient,
                   .matrix = matrix,
                   .centre = centre,
                   .wall = all[k].wall};
        outcome o;
        open_box(&o);
        o.x[0] = o.x[1] = 0;
        run(frgi_gp_adam, &p, (frgi_gp_search){.max_iter = 1, .rate = 1}, &o);
        CHECK_INT(o.status, FRG_OK);
        CHECK_NEAR(o.x[0], all[k].step / (1 + 1e-9), 1e-14);
        CHECK_NEAR(o.x[1], -all[k].step / (1 + 1e-9), 1e-14);
    }
}

static const test_case cases[] = {
    {"valley", valley},
    {"valley_in_box", valley_in_box},
    {"boxes", boxes},
    {"walls", walls},
    {"no false claims", no_false_claims},
    {"limits", limits},
    {"damping follows the gain", damping_follows_the_gain},
    {"information_helps", information_helps},
    {"adam_as_torch", adam_as_torch},
    {"adam_before_a_wall", adam_before_a_wall},
};
TEST_MAIN(cases)
