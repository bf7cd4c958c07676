/* gw_audit.c - whether a plan P whose marginals are relaxed or partial is stationary, behind its
 * run: by steps on exact costs.
 *
 * Of mass s and L the cost of P / s, which is what a step is linearised at (gw_level.c), with the
 * linear cost M,
 *
 *     L = (1 - theta) (C^2 r 1' + 1 (D^2 c)' - 2 C P D) / s + theta M,      r = P 1, c = P' 1
 *     G(Q) = <L, Q> + epsilon H(Q) + rho_a KL(Q 1 | a) + rho_b KL(Q' 1 | b)
 *
 * H is sum q (log q - 1), or KL(Q | a b') - 1 a unit of mass; a marginal that holds has no penalty
 * and is a constraint, and partial plans are those of the mass asked for with Q 1 <= a, Q' 1 <= b,
 * whose H is that of a - Q 1 and b - Q' 1 as well, the dummy points of the passes.  P is stationary
 * where it minimises G: G(P) - min G is the gap of Frank and Wolfe (1956) with the entropy in it.
 * It is at least the gain G(P) - G(Q) of two plans Q that satisfy the constraints,
 *
 *     blurred   what Sinkhorn's iteration on L comes to from the potentials of P
 *     vertex    the least <L, Q> of the same marginals, of partial plans of all, which is lower by
 *               more than its entropy costs where epsilon is too small for passes to come to an end
 *
 * of which the larger is taken; and at most G(P) less the dual value of the potentials f, g that
 * the iteration comes to,
 *
 *     sum a phi_a(f) + sum b phi_b(g) - epsilon sum exp((f_i + g_j - L_ij) / epsilon),
 *     phi(f) = rho (1 - exp(-f / rho)), f where the marginal holds
 *
 * (with the points of the dummies, or times a b').  The steps of a run see few pairs, so that some
 * gain is left of every plan: less than LOWER of <L, P>, or than KEPT epsilon a unit of mass, which
 * is a divergence of P from Q by KEPT, is noise.
 */
#include <math.h>
#include <string.h>

#include "gw/gw_align.h"
#include "gw/gw_sinkhorn.h"
#include "linalg/product.h"

enum { LEAST_PASSES = 200, MOST_PASSES = 5000, CHUNKS = 16 };
#define MOST_WORK      5e8  /* n m (n + m): multiply-adds of L */
#define TRANSPORT_WORK 1e7  /* the same up to which there is time for a vertex */
#define PASS_WORK      1e8  /* n m times passes */
#define FAR            1e25 /* of costs that frg_emd takes */
#define LOWER          0.02
#define KEPT           0.5
#define TOL            1e-8
#define ROUNDING       1e-6 /* of the largest cost: that of exponents in floats */

typedef struct {
    frg_gw *g;
    int64_t n, m;
    double *c, *d;        /* all distances, scaled */
    double *p, *q, *cost; /* n x m: P, Q, L */
    double *product;      /* n x m: C P; n + m at least */
    double *sums;         /* n + m: of rows and of columns */
    double mass;          /* of P */
    double linear;        /* <L, P> */
    double most;          /* the largest cost */
    double dual;          /* below G of every plan */
    double gap;           /* G(P) - dual, as the gain leaves penalties out */
} audit;

static void take_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const audit *const v = user;
    (void)chunk;
    memcpy(v->p + i * v->m, row, (size_t)v->m * sizeof *row);
}

/** The sums of rows, and behind them of columns. */
static void take_sums(const audit *v, const double *plan, double *sums)
{
    memset(sums, 0, (size_t)(v->n + v->m) * sizeof *sums);
    for (int64_t e = 0; e < v->n * v->m; e++) {
        sums[e / v->m] += plan[e];
        sums[v->n + e % v->m] += plan[e];
    }
}

/** cost <- L. */
static void linearise(audit *v)
{
    const frgi_level *const l = &v->g->level;
    const int64_t n = v->n, m = v->m;
    const double theta = l->o->linear_weight, share = (1 - theta) / v->mass;
    take_sums(v, v->p, v->sums);
    frgi_product_dense(l->ctx, 'N', 'N', n, m, n, 1, v->c, v->p, 0, v->product);
    frgi_product_dense(l->ctx, 'N', 'N', n, m, m, -2 * share, v->product, v->d, 0, v->cost);
    double *const of_column = v->product; /* its first row: C P is in the cost */
    for (int64_t j = 0; j < m; j++) {
        of_column[j] = share * frgi_square_term(v->d + j * m, v->sums + n, m);
    }
    for (int64_t i = 0; i < n; i++) {
        const double of_row = share * frgi_square_term(v->c + i * n, v->sums, n);
        for (int64_t j = 0; j < m; j++) {
            v->cost[i * m + j] += of_row + of_column[j];
            if (l->linear) {
                v->cost[i * m + j] += theta * (double)l->linear[i * l->t.s.ld + j];
            }
        }
    }
}

static double largest(const double *x, int64_t count)
{
    double most = 0;
    for (int64_t e = 0; e < count; e++) {
        most = fmax(most, fabs(x[e]));
    }
    return most;
}

/* ---- the gain of a step ---------------------------------------------------------------------- */

/** rho KL(x | w); 0 where the marginal holds. */
static double penalty(double rho, const double *x, const double *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n && isfinite(rho); i++) {
        sum += w[i] - x[i] + (x[i] > 0 ? x[i] * log(x[i] / w[i]) : 0);
    }
    return isfinite(rho) ? rho * sum : 0;
}

/** What a side's penalty loses, rho (KL(x | w) - KL(y | w)); 0 where the marginal holds, and where
 *  sums x of P and y of Q agree as well as passes are asked to.  However large rho is, what they
 *  cannot reach says nothing then. */
static double penalty_gain(const audit *v, double rho, const double *x, const double *y,
                           const double *w, int64_t n)
{
    double apart = 0;
    for (int64_t i = 0; i < n; i++) {
        apart += fabs(x[i] - y[i]);
    }
    return apart > v->g->o.polish_tol * v->mass ? penalty(rho, x, w, n) - penalty(rho, y, w, n) : 0;
}

static double entropy_of(double q, double base)
{
    return q > 0 ? q * (log(q / base) - 1) : 0;
}

/** <L, plan> + epsilon H(plan), and <L, plan>; sums: those of the plan. */
static double value_of(const audit *v, const double *plan, const double *sums, double *linear)
{
    const frg_gw *const g = v->g;
    const bool product = g->o.reference == FRG_GW_REFERENCE_PRODUCT;
    double entropy = 0;
    *linear = 0;
    for (int64_t e = 0; e < v->n * v->m; e++) {
        *linear += v->cost[e] * plan[e];
        entropy += entropy_of(plan[e], product ? g->a[e / v->m] * g->b[e % v->m] : 1);
    }
    for (int64_t i = 0; i < v->n + v->m && g->o.mass > 0; i++) {
        entropy += entropy_of((i < v->n ? g->a[i] : g->b[i - v->n]) - sums[i], 1);
    }
    return *linear + g->level.epsilon * entropy;
}

/** step_gain <- G(P) - G(Q), if that is more; the gap where Q is the blurred step. */
static void take_gain(audit *v, bool blurred)
{
    frg_gw *const g = v->g;
    double *const of_p = v->sums, *const of_q = v->product, of_best; /* n + m: C P is in the cost */
    take_sums(v, v->p, of_p);
    take_sums(v, v->q, of_q);
    const double now = value_of(v, v->p, of_p, &v->linear),
                 best = value_of(v, v->q, of_q, &of_best),
                 gain = now - best + penalty_gain(v, g->o.rho_source, of_p, of_q, g->a, v->n) +
                        penalty_gain(v, g->o.rho_target, of_p + v->n, of_q + v->n, g->b, v->m);
    g->report.step_gain = fmax(g->report.step_gain, gain);
    if (blurred) {
        const double of_both = best + penalty(g->o.rho_source, of_q, g->a, v->n) +
                               penalty(g->o.rho_target, of_q + v->n, g->b, v->m);
        v->gap = gain + of_both - v->dual;
    }
}

/** Columns to b where they hold and rows are relaxed: passes leave rows exact alone. */
static void hold_columns(audit *v)
{
    const frg_gw *const g = v->g;
    if (isfinite(g->o.rho_target) || !isfinite(g->o.rho_source)) {
        return;
    }
    take_sums(v, v->q, v->sums);
    for (int64_t e = 0; e < v->n * v->m; e++) {
        const double sum = v->sums[v->n + e % v->m];
        v->q[e] *= sum > 0 ? g->b[e % v->m] / sum : 0;
    }
}

/** sum w phi(f); product: the entropy is relative to the weights, f has epsilon times their
 *  logarithm. */
static double dual_of_side(double rho, const double *w, const double *f, int64_t n, double log_unit)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        if (w[i] > 0) {
            const double x = f[i] - log_unit * log(w[i]);
            sum += w[i] * (isfinite(rho) ? -rho * expm1(-x / rho) : x);
        }
    }
    return sum;
}

/** What a dummy point of weight w adds to the dual value at its best potential: w (log w - log sum
 *  exp(f / epsilon) - 1) in units of epsilon. */
static double dual_of_dummy(double epsilon, double w, const double *weights, const double *f,
                            int64_t n)
{
    double top = -(double)INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        top = weights[i] > 0 ? fmax(top, f[i] / epsilon) : top;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += weights[i] > 0 ? exp(f[i] / epsilon - top) : 0;
    }
    return w > 0 ? epsilon * w * (log(w) - top - log(sum) - 1) : 0;
}

/** dual <- the value of f (n) and g (m). */
static void take_dual(audit *v, const double *f, const double *g)
{
    const frg_gw *const s = v->g;
    const frg_gw_opts *const o = &s->o;
    const double epsilon = s->level.epsilon,
                 log_unit = o->reference == FRG_GW_REFERENCE_PRODUCT ? epsilon : 0;
    double mass = 0;
    for (int64_t e = 0; e < v->n * v->m; e++) {
        const int64_t i = e / v->m, j = e % v->m;
        mass += s->a[i] > 0 && s->b[j] > 0 ? exp((f[i] + g[j] - v->cost[e]) / epsilon) : 0;
    }
    v->dual = dual_of_side(o->rho_source, s->a, f, v->n, log_unit) +
              dual_of_side(o->rho_target, s->b, g, v->m, log_unit) - epsilon * mass;
    if (o->mass > 0) {
        const double all_a = frgi_transport_sum(s->a, v->n), all_b = frgi_transport_sum(s->b, v->m);
        v->dual += dual_of_dummy(epsilon, all_a - o->mass, s->a, f, v->n) +
                   dual_of_dummy(epsilon, all_b - o->mass, s->b, g, v->m);
    }
}

/** q <- the blurred step.  Positive: stopped. */
static frg_status blurred_step(audit *v)
{
    const frg_gw *const g = v->g;
    const double passes = PASS_WORK / ((double)v->n * (double)v->m);
    frg_sinkhorn_opts o;
    frg_sinkhorn *k = NULL;
    double *const f = v->sums;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.epsilon = g->level.epsilon;
    o.tol = TOL;
    o.max_iter = (int64_t)fmin(fmax(passes, LEAST_PASSES), MOST_PASSES);
    o.cost_store = FRG_GW_STORE_F64;
    o.rho_source = g->o.rho_source;
    o.rho_target = g->o.rho_target;
    o.reference = g->o.reference;
    o.mass = g->o.mass;
    TRY(frg_gw_potentials(g, f, f + v->n));
    frg_status status = frgi_sinkhorn_open(
        &k, g->ctx, (frgi_sinkhorn_place){.dev = g->where.dev, .group = g->where.group},
        frg_matrix(v->cost, FRG_F64, v->n, v->m, v->m), g->a, g->b, &o);
    status = status < 0 ? status : frg_sinkhorn_start(k, f, f + v->n);
    status = status < 0 ? status : frgi_sinkhorn_solve(k, NULL);
    if (status == FRG_OK || status == FRG_MAX_ITER || status == FRG_STALLED) {
        TRY_TO(done, frg_sinkhorn_potentials(k, f, f + v->n));
        take_dual(v, f, f + v->n);
        status = frg_plan_rows(frg_sinkhorn_plan(k), 0, v->n,
                               frg_matrix(v->q, FRG_F64, v->n, v->m, v->m));
        hold_columns(v);
    }
done:
    frg_sinkhorn_destroy(k);
    return status;
}

/** Rows and columns of a transport problem: those of P; of a partial plan those of all points, and
 *  one more a side that takes what is not carried, none of it from the other, which costs `far`. */
static void fill_transport(const audit *v, bool partial, double far, double *cost, double *w)
{
    const int64_t n = v->n, m = v->m, rows = n + partial, columns = m + partial;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            cost[i * columns + j] = i < n && j < m ? v->cost[i * m + j] : i < n || j < m ? 0 : far;
        }
    }
    take_sums(v, v->p, v->sums);
    memcpy(w, partial ? v->g->a : v->sums, (size_t)n * sizeof *w);
    memcpy(w + rows, partial ? v->g->b : v->sums + n, (size_t)m * sizeof *w);
    if (partial) {
        w[n] = fmax(frgi_transport_sum(v->g->b, m) - v->mass, 0);
        w[rows + m] = fmax(frgi_transport_sum(v->g->a, n) - v->mass, 0);
    }
}

/** q <- the vertex.  Positive: stopped. */
static frg_status vertex_step(audit *v)
{
    const char *const what = "the audit of a plan";
    frg_context *const ctx = v->g->ctx;
    const bool partial = v->g->o.mass > 0;
    const int64_t n = v->n + partial, m = v->m + partial;
    double *cost = NULL, *plan = NULL, *w = NULL;
    frg_status status = FRG_OK;
    TRY_TO(done, NEW(ctx, &cost, n * m, what));
    TRY_TO(done, NEW(ctx, &plan, n * m, what));
    TRY_TO(done, NEW(ctx, &w, n + m, what));
    fill_transport(v, partial, 2 * v->most * (double)(n + m), cost, w);
    status = frgi_emd_solve(ctx, frg_matrix(cost, FRG_F64, n, m, m), w, w + n,
                            frg_matrix(plan, FRG_F64, n, m, m), NULL, NULL, NULL);
    status = status == FRG_MAX_ITER ? FRG_OK : status; /* a vertex none the less */
    for (int64_t i = 0; i < v->n && status == FRG_OK; i++) {
        memcpy(v->q + i * v->m, plan + i * m, (size_t)v->m * sizeof *plan);
    }
done:
    DROP(ctx, &cost);
    DROP(ctx, &plan);
    DROP(ctx, &w);
    return status;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

/** What the gain says, and what is then said of the plan. */
static void conclude(audit *v)
{
    frg_gw_report *const r = &v->g->report;
    const double epsilon = v->g->level.epsilon, noise = KEPT * epsilon * v->mass,
                 allowed = fmax(LOWER * fabs(v->linear), noise) + ROUNDING * v->most * v->mass;
    r->verdict = v->gap <= allowed ? "the plan is stationary"
                                   : "not told: the passes of a step on exact costs came to no end";
    if (!(r->step_gain > allowed)) {
        return;
    }
    r->verdict = "a step from the plan is lower";
    frgi_warn(v->g->ctx, W_STATIONARY,
              "a step on exact costs is lower by %.2g, where the plan's cost is %.3g and epsilon "
              "times its mass %.2g",
              r->step_gain, v->linear, epsilon * v->mass);
    frgi_gw_deny(v->g);
}

static frg_status open_audit(audit *v)
{
    frg_context *const ctx = v->g->ctx;
    const char *const what = "the audit of a plan";
    const size_t cells = frgi_mul((size_t)v->n, (size_t)v->m);
    TRY(frgi_distances_all(&v->g->x, &v->c));
    TRY(frgi_distances_all(&v->g->y, &v->d));
    TRY(NEW(ctx, &v->p, cells, what));
    TRY(NEW(ctx, &v->q, cells, what));
    TRY(NEW(ctx, &v->cost, cells, what));
    TRY(NEW(ctx, &v->product, frgi_add(cells, (size_t)(v->n + v->m)), what));
    return NEW(ctx, &v->sums, v->n + v->m, what);
}

static void close_audit(audit *v)
{
    frg_context *const ctx = v->g->ctx;
    DROP(ctx, &v->c);
    DROP(ctx, &v->d);
    DROP(ctx, &v->p);
    DROP(ctx, &v->q);
    DROP(ctx, &v->cost);
    DROP(ctx, &v->product);
    DROP(ctx, &v->sums);
}

/** Why there is no step beside the plan; NULL: there is. */
static const char *left_out(const frg_gw *g)
{
    const double n = (double)g->x.n, m = (double)g->y.n;
    return g->o.scale == FRG_GW_SCALE_BATCH_MAX
               ? "not compared: the unit of costs changes by the step"
           : n * m * (n + m) > MOST_WORK ? "not compared: too many points for a step on exact costs"
                                         : NULL;
}

static frg_status compare(audit *v)
{
    frg_gw *const g = v->g;
    const double n = (double)v->n, m = (double)v->m;
    TRY(open_audit(v));
    v->mass = g->plan.report.mass;
    frgi_transport_rows(&g->level.t, 0, v->n, CHUNKS, take_row, v);
    linearise(v);
    v->most = largest(v->cost, v->n * v->m);
    frg_status status = frgi_level_beat(&g->level, "verdict", 1, 2, (double)NAN, (double)NAN);
    status = status == FRG_OK ? blurred_step(v) : status;
    if (status == FRG_OK) {
        g->report.step_gain = 0; /* P itself is as good as P */
        take_gain(v, true);
        const bool few = n * m * (n + m) <= TRANSPORT_WORK && v->most * (n + m) < FAR;
        status = few ? vertex_step(v) : status;
    }
    if (status == FRG_OK) {
        take_gain(v, false);
        conclude(v);
    }
    return status;
}

/** A plan all of whose entries vanish in double is where no step of a run leads away from. */
static void say_empty(frg_gw *g)
{
    g->report.verdict = "the plan has no mass";
    frgi_warn(g->ctx, W_STATIONARY,
              "the plan has no mass: costs are too many times epsilon %g, and penalties too small",
              g->level.epsilon);
    frgi_gw_deny(g);
}

frg_status frgi_gw_audit(frg_gw *g)
{
    if (!(g->plan.report.mass > 0)) {
        say_empty(g);
        return FRG_OK;
    }
    g->report.verdict = left_out(g);
    if (g->report.verdict) {
        return FRG_OK;
    }
    audit v = {.g = g, .n = g->x.n, .m = g->y.n};
    const frg_status status = compare(&v);
    if (status > 0) {
        g->report.verdict = "not compared: stopped";
        g->report.step_gain = (double)NAN;
    }
    close_audit(&v);
    return status;
}
