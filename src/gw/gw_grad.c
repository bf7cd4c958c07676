/* gw_grad.c - derivatives of the value of an alignment, and of a loss through a plan.
 *
 * Value, the minimum over plans P
 *
 *     J(C, D, M, a, b) = min (1-theta) E(P) + 2 theta <M, P> + 2 eps sum P (log P - 1)
 *
 * At the minimum J does not change with P to first order (envelope theorem), so with r = P 1,
 * c = P' 1 and mass 1
 *
 *     dJ/dC = (1-theta) (2 C .* r r' - 2 P D P'),   dJ/dD = (1-theta) (2 D .* c c' - 2 P' C P),
 *     dJ/dM = 2 theta P,                            dJ/da = 2 f,  dJ/db = 2 g
 *
 * where f_i + g_j = T_ij = (1-theta) L(P)_ij + theta M_ij + eps log P_ij.  f and g minimise
 * sum P_ij (f_i + g_j - T_ij)^2, so that entries of P that underflowed have no weight; each is
 * centred.
 *
 * Plan.  P_ij = exp((f_i + g_j - L_ij) / eps) with P 1 = a, P' 1 = b.  For G = dLoss/dP the adjoint
 * system is
 *
 *     | diag(a)    P    | |x|   |rowsum(G .* P)|
 *     |   P'    diag(b) | |y| = |colsum(G .* P)|
 *
 *     dLoss/dL = (P / eps) .* (x_i + y_j - G_ij),  dLoss/da = x,  dLoss/db = y (up to constants)
 *
 * Both systems are the same one: x is eliminated and (diag(b) - P' diag(1/a) P) y = v - P'
 * diag(1/a) u solved by conjugate gradients preconditioned with diag(b); it is positive
 * semidefinite with the null vector 1, which is projected out.  A step is one pass over the rows of
 * P.  Products of n x n x m: O(n m (n + m)); a step: O(n m).
 *
 * References: Peyre, Cuturi and Solomon (2016); Luise et al. (2018), implicit differentiation of
 * Sinkhorn.
 */
#include <math.h>
#include <string.h>

#include "core/host_alone.h"
#include "core/tree_sum.h"
#include "gw/gw_marginals.h"
#include "gw/gw_plan.h"
#include "linalg/product.h"

/* ---- the system ------------------------------------------------------------------------------ */

/** A plan by rows: dense, or made when it is visited. */
typedef struct {
    frg_context *ctx;
    int64_t n, m;
    const double *dense; /* NULL: t */
    const frgi_transport *t;
} plan_rows;

static void visit_rows(const plan_rows *p, frgi_row_visitor visit, void *user)
{
    if (p->t) {
        frgi_transport_rows(p->t, 0, p->n, FRGI_GRAD_CHUNKS, visit, user);
        return;
    }
#pragma omp parallel for schedule(static, 1)                                                       \
    num_threads(frg_threads(p->ctx)) if (p->n * p->m > 20000)
    for (int64_t chunk = 0; chunk < FRGI_GRAD_CHUNKS; chunk++) {
        for (int64_t i = chunk * p->n / FRGI_GRAD_CHUNKS; i < (chunk + 1) * p->n / FRGI_GRAD_CHUNKS;
             i++) {
            visit(user, i, p->dense + i * p->m, chunk);
        }
    }
}

typedef struct {
    plan_rows rows;
    const double *y;
    double *a, *b; /* marginals of the plan */
    double *x;     /* n */
    double *sums;  /* chunks x m */
} bipartite;

/** x_i <- sum_j P_ij y_j; sums of the chunk += P_ij x_i / a_i. */
static void normal_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const bipartite *const s = user;
    const int64_t m = s->rows.m;
    double *const sums = s->sums + chunk * m, dot = 0;
    for (int64_t j = 0; j < m; j++) {
        dot += row[j] * s->y[j];
    }
    s->x[i] = dot;
    const double each = s->a[i] > 0 ? dot / s->a[i] : 0;
    for (int64_t j = 0; j < m; j++) {
        sums[j] += row[j] * each;
    }
}

/** Sums of the chunk += P_ij x_i / a_i. */
static void spread_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const bipartite *const s = user;
    double *const sums = s->sums + chunk * s->rows.m;
    const double each = s->a[i] > 0 ? s->x[i] / s->a[i] : 0;
    for (int64_t j = 0; j < s->rows.m; j++) {
        sums[j] += row[j] * each;
    }
}

void frgi_sum_chunks(const double *sums, int64_t m, double *out)
{
    frgi_tree_rows(sums, FRGI_GRAD_CHUNKS, m, m, out);
}

/** out <- P' diag(1/a) w, where `visit` forms w. */
static void through_rows(bipartite *s, frgi_row_visitor visit, const double *y, double *out)
{
    s->y = y;
    memset(s->sums, 0, (size_t)(FRGI_GRAD_CHUNKS * s->rows.m) * sizeof *s->sums);
    visit_rows(&s->rows, visit, s);
    frgi_sum_chunks(s->sums, s->rows.m, out);
}

void frgi_centre(double *x, const double *weight, int64_t n)
{
    double sum = 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += weight[i] > 0 ? x[i] : 0;
        count += weight[i] > 0;
    }
    for (int64_t i = 0; i < n; i++) {
        x[i] = weight[i] > 0 ? x[i] - sum / count : 0;
    }
}

static double dot(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

static frg_status open_system(bipartite *s, frg_context *ctx)
{
    TRY(NEW0(ctx, &s->a, s->rows.n, "a gradient"));
    TRY(NEW0(ctx, &s->b, s->rows.m, "a gradient"));
    TRY(NEW0(ctx, &s->x, s->rows.n, "a gradient"));
    return NEW(ctx, &s->sums, frgi_mul(FRGI_GRAD_CHUNKS, (size_t)s->rows.m), "a gradient");
}

static void close_system(bipartite *s, frg_context *ctx)
{
    DROP(ctx, &s->a);
    DROP(ctx, &s->b);
    DROP(ctx, &s->x);
    DROP(ctx, &s->sums);
}

/** Solves the system above for x (into s->x) and y, right side u (n) and v (m), by preconditioned
 *  conjugate gradients; s->a and s->b are the marginals. */
static frg_status solve_system(bipartite *s, const double *u, const double *v, double *y,
                               frg_context *ctx)
{
    enum { MOST = 2000 };
    const int64_t n = s->rows.n, m = s->rows.m;
    double *r = NULL, *z, *p, *q;
    TRY(NEW0(ctx, &r, 4 * m, "a gradient"));
    z = r + m;
    p = z + m;
    q = p + m;
    frg_status status = FRG_OK;
    memcpy(s->x, u, (size_t)n * sizeof *u);
    through_rows(s, spread_row, NULL, q);
    for (int64_t j = 0; j < m; j++) {
        r[j] = s->b[j] > 0 ? v[j] - q[j] : 0;
        y[j] = 0;
    }
    frgi_centre(r, s->b, m); /* what rounding left along the null vector */
    const double first = sqrt(dot(r, r, m));
    double rz = 0;
    for (int step = 0; step < MOST && first > 0; step++) {
        for (int64_t j = 0; j < m; j++) {
            z[j] = s->b[j] > 0 ? r[j] / s->b[j] : 0;
        }
        const double now = dot(r, z, m), beta = step > 0 ? now / rz : 0;
        rz = now;
        for (int64_t j = 0; j < m; j++) {
            p[j] = z[j] + beta * p[j];
        }
        frgi_centre(p, s->b, m);
        through_rows(s, normal_row, p, q);
        for (int64_t j = 0; j < m; j++) {
            q[j] = s->b[j] * p[j] - q[j];
        }
        const double curvature = dot(p, q, m);
        if (!(curvature > 0)) {
            break;
        }
        const double alpha = rz / curvature;
        for (int64_t j = 0; j < m; j++) {
            y[j] += alpha * p[j];
            r[j] -= alpha * q[j];
        }
        if (sqrt(dot(r, r, m)) <= 1e-13 * first) {
            break;
        }
        status = step == MOST - 1 ? FRG_MAX_ITER : FRG_OK;
    }
    through_rows(s, normal_row, y, q); /* x <- (u - P y) / a */
    for (int64_t i = 0; i < n; i++) {
        s->x[i] = s->a[i] > 0 ? (u[i] - s->x[i]) / s->a[i] : 0;
    }
    DROP(ctx, &r);
    return status;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static frg_status check_matrix(frg_context *ctx, const frg_array *a, const char *name, int64_t n,
                               int64_t m)
{
    TRY(frgi_array_check(ctx, a, name, 2, 1u << FRG_F64 | 1u << FRG_F32));
    if (a->shape[0] != n || a->shape[1] != m) {
        FAIL(ctx, E_SHAPE, "%s is %lld x %lld, %lld x %lld is needed", name, (long long)a->shape[0],
             (long long)a->shape[1], (long long)n, (long long)m);
    }
    return FRG_OK;
}

static frg_status dense_of(frg_context *ctx, const frg_array *a, double **out)
{
    const int64_t n = a->shape[0], m = a->shape[1];
    TRY(NEW(ctx, out, frgi_mul((size_t)n, (size_t)m), "a gradient"));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            (*out)[i * m + j] = frgi_array_get(a, i, j);
        }
    }
    return FRG_OK;
}

/* ---- gradients of the value ------------------------------------------------------------------ */

typedef struct {
    int64_t n, m;
    double *c, *d, *p; /* dense */
    double *pd;        /* P D, n x m */
    double *cp;        /* C P, n x m */
    double *square;    /* max(n, m)^2: P D P' or P' C P; the column terms of L */
    double *t;         /* n x m */
    bipartite system;
    double *u, *v, *y;
} value_work;

static void close_value(value_work *w, frg_context *ctx)
{
    DROP(ctx, &w->c);
    DROP(ctx, &w->d);
    DROP(ctx, &w->p);
    DROP(ctx, &w->pd);
    DROP(ctx, &w->cp);
    DROP(ctx, &w->square);
    DROP(ctx, &w->t);
    DROP(ctx, &w->u);
    DROP(ctx, &w->v);
    DROP(ctx, &w->y);
    close_system(&w->system, ctx);
}

static frg_status open_value(value_work *w, frg_context *ctx, const frg_gw_point *at)
{
    const int64_t n = w->n, m = w->m, most = n > m ? n : m;
    TRY(dense_of(ctx, &at->c, &w->c));
    TRY(dense_of(ctx, &at->d, &w->d));
    TRY(dense_of(ctx, &at->plan, &w->p));
    TRY(NEW(ctx, &w->pd, frgi_mul((size_t)n, (size_t)m), "a gradient"));
    TRY(NEW(ctx, &w->cp, frgi_mul((size_t)n, (size_t)m), "a gradient"));
    TRY(NEW(ctx, &w->t, frgi_mul((size_t)n, (size_t)m), "a gradient"));
    TRY(NEW(ctx, &w->square, frgi_mul((size_t)most, (size_t)most), "a gradient"));
    TRY(NEW0(ctx, &w->u, n, "a gradient"));
    TRY(NEW0(ctx, &w->v, m, "a gradient"));
    TRY(NEW0(ctx, &w->y, m, "a gradient"));
    w->system.rows = (plan_rows){.ctx = ctx, .n = n, .m = m, .dense = w->p};
    TRY(open_system(&w->system, ctx));
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            w->system.a[i] += w->p[i * m + j];
            w->system.b[j] += w->p[i * m + j];
        }
    }
    frgi_product_dense(ctx, 'N', 'N', n, m, m, 1, w->p, w->d, 0, w->pd);
    frgi_product_dense(ctx, 'N', 'N', n, m, n, 1, w->c, w->p, 0, w->cp);
    return FRG_OK;
}

/** out <- share (2 X .* w w' - 2 cross). */
static void distance_gradient(const double *x, const double *w, const double *cross, int64_t n,
                              double share, const frg_array *out)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++) {
            frgi_array_put(out, i, k, share * 2 * (x[i * n + k] * w[i] * w[k] - cross[i * n + k]));
        }
    }
}

/** u <- rowsum(P .* T), v <- colsum(P .* T): the right side of the least squares problem. */
static void sums_of_t(value_work *w, const frg_context *ctx, const frg_gw_point *at)
{
    const int64_t n = w->n, m = w->m;
    const double theta = at->linear_weight;
    frgi_product_dense(ctx, 'N', 'N', n, m, m, -2, w->cp, w->d, 0, w->t);
    double *const square = w->square;
    for (int64_t i = 0; i < n; i++) {
        w->u[i] = frgi_square_term(w->c + i * n, w->system.a, n);
    }
    for (int64_t j = 0; j < m; j++) {
        square[j] = frgi_square_term(w->d + j * m, w->system.b, m);
    }
    memset(w->v, 0, (size_t)m * sizeof *w->v);
    for (int64_t i = 0; i < n; i++) {
        const double term = w->u[i];
        w->u[i] = 0;
        for (int64_t j = 0; j < m; j++) {
            const double p = w->p[i * m + j];
            if (p > 0) {
                const double linear =
                    at->linear && theta > 0 ? theta * frgi_array_get(at->linear, i, j) : 0;
                const double t = (1 - theta) * (term + square[j] + w->t[i * m + j]) + linear +
                                 at->epsilon * log(p);
                w->u[i] += p * t;
                w->v[j] += p * t;
            }
        }
    }
}

static frg_status weight_gradients(value_work *w, frg_context *ctx, const frg_gw_point *at,
                                   const frg_gw_gradients *out)
{
    sums_of_t(w, ctx, at);
    const frg_status status = solve_system(&w->system, w->u, w->v, w->y, ctx);
    if (status < 0) {
        return status;
    }
    frgi_centre(w->system.x, w->system.a, w->n);
    frgi_centre(w->y, w->system.b, w->m);
    for (int64_t i = 0; out->a && i < w->n; i++) {
        out->a[i] = 2 * w->system.x[i];
    }
    for (int64_t j = 0; out->b && j < w->m; j++) {
        out->b[j] = 2 * w->y[j];
    }
    return status;
}

static frg_status check_point(frg_context *ctx, const frg_gw_point *at, const frg_gw_gradients *out)
{
    const int64_t n = at->plan.shape[0], m = at->plan.shape[1];
    TRY(frgi_array_check(ctx, &at->plan, "plan", 2, 1u << FRG_F64 | 1u << FRG_F32));
    TRY(check_matrix(ctx, &at->c, "c", n, n));
    TRY(check_matrix(ctx, &at->d, "d", m, m));
    REQUIRE(ctx, n <= INT32_MAX && m <= INT32_MAX, "at most 2^31 - 1 points");
    REQUIRE(ctx, at->linear_weight >= 0 && at->linear_weight <= 1,
            "linear_weight is %g, it must be in 0 .. 1", at->linear_weight);
    REQUIRE(ctx, at->linear_weight == 0 || at->linear, "linear_weight is %g without a linear cost",
            at->linear_weight);
    REQUIRE(ctx, (!out->a && !out->b) || (at->epsilon > 0 && isfinite(at->epsilon)),
            "epsilon is %g, the gradients of the weights need one > 0", at->epsilon);
    if (at->linear) {
        TRY(check_matrix(ctx, at->linear, "linear", n, m));
    }
    if (out->c) {
        TRY(check_matrix(ctx, out->c, "the gradient of c", n, n));
    }
    if (out->d) {
        TRY(check_matrix(ctx, out->d, "the gradient of d", m, m));
    }
    if (out->linear) {
        TRY(check_matrix(ctx, out->linear, "the gradient of linear", n, m));
    }
    return FRG_OK;
}

frg_status frg_gw_gradient(frg_context *ctx, const frg_gw_point *at, const frg_gw_gradients *out)
{
    TRY(frgi_host_alone(ctx, "the gradient of the energy"));
    REQUIRE(ctx, at && out, "at and out must not be NULL");
    TRY(check_point(ctx, at, out));
    value_work w = {.n = at->plan.shape[0], .m = at->plan.shape[1]};
    const int64_t n = w.n, m = w.m;
    const double share = 1 - at->linear_weight;
    frg_status status = FRG_OK;
    TRY_TO(done, open_value(&w, ctx, at));
    if (out->a || out->b) {
        TRY_TO(done, weight_gradients(&w, ctx, at, out));
    }
    if (out->c) {
        frgi_product_dense(ctx, 'N', 'T', n, n, m, 1, w.pd, w.p, 0, w.square);
        distance_gradient(w.c, w.system.a, w.square, n, share, out->c);
    }
    if (out->d) {
        frgi_product_dense(ctx, 'T', 'N', m, m, n, 1, w.p, w.cp, 0, w.square);
        distance_gradient(w.d, w.system.b, w.square, m, share, out->d);
    }
    for (int64_t i = 0; out->linear && i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            frgi_array_put(out->linear, i, j, 2 * at->linear_weight * w.p[i * m + j]);
        }
    }
done:
    close_value(&w, ctx);
    return status;
}

/* ---- through a plan -------------------------------------------------------------------------- */

typedef struct {
    bipartite *s;
    frg_array g, out;
    double *u, *v; /* n, m: row and column sums of G .* P */
    double *y;     /* m */
    double per_epsilon;
    bool frozen;
} plan_pull;

/** u_i <- sum_j G_ij P_ij, a_i <- sum_j P_ij; sums of the chunk += G_ij P_ij. */
static void gather_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const plan_pull *const w = user;
    const int64_t m = w->s->rows.m;
    double *const sums = w->s->sums + chunk * m;
    double sum = 0, mass = 0;
    for (int64_t j = 0; j < m; j++) {
        const double pulled = row[j] * frgi_array_get(&w->g, i, j);
        sum += pulled;
        mass += row[j];
        sums[j] += pulled;
    }
    w->u[i] = sum;
    w->s->a[i] = mass;
}

/** Sums of the chunk += P_ij. */
static void mass_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const plan_pull *const w = user;
    double *const sums = w->s->sums + chunk * w->s->rows.m;
    (void)i;
    for (int64_t j = 0; j < w->s->rows.m; j++) {
        sums[j] += row[j];
    }
}

/** out_ij <- (P_ij / eps) (x_i + y_j - G_ij); frozen: x = y = 0. */
static void pull_row(void *user, int64_t i, const double *row, int64_t chunk)
{
    const plan_pull *const w = user;
    (void)chunk;
    for (int64_t j = 0; j < w->s->rows.m; j++) {
        const double shift = w->frozen ? 0 : w->s->x[i] + w->y[j];
        frgi_array_put(&w->out, i, j,
                       w->per_epsilon * row[j] * (shift - frgi_array_get(&w->g, i, j)));
    }
}

static frg_status check_pull(const frg_plan *p, const frg_array *g, frg_gw_grad_mode mode,
                             const frg_array *out)
{
    if (p->t->list) {
        FAIL(p->ctx, E_UNSUPPORTED,
             "the derivative of a plan without entropy, which is 0 or undefined: give an epsilon "
             "and the mode exact or sampled");
    }
    const frgi_marginals *const how = &p->t->how;
    REQUIRE(p->ctx, (unsigned)mode <= FRG_GW_GRAD_FROZEN, "mode is %d", (int)mode);
    TRY(check_matrix(p->ctx, g, "g", p->report.n, p->report.m));
    TRY(check_matrix(p->ctx, out, "out", p->report.n, p->report.m));
    if (p->factored) {
        FAIL(p->ctx, E_UNSUPPORTED, "derivatives of a plan of low rank");
    }
    if (mode == FRG_GW_GRAD_IMPLICIT &&
        (isfinite(how->rho_a) || isfinite(how->rho_b) || how->mass > 0)) {
        FAIL(p->ctx, E_UNSUPPORTED, "implicit derivatives of relaxed and partial plans");
    }
    return FRG_OK;
}

frg_status frg_plan_vjp(const frg_plan *p, frg_array g, frg_gw_grad_mode mode, frg_array out,
                        double *a, double *b)
{
    if (!p) {
        return FRG_BAD_ARG;
    }
    TRY(frgi_host_alone(p->ctx, "the derivative of a plan"));
    TRY(check_pull(p, &g, mode, &out));
    frg_context *const ctx = p->ctx;
    if (mode == FRG_GW_GRAD_UNROLLED) {
        return p->t->steps->unroll(p->t, &g, &out, a, b);
    }
    const int64_t n = p->report.n, m = p->report.m;
    bipartite s = {.rows = {.ctx = ctx, .n = n, .m = m, .t = p->t}};
    plan_pull w = {.s = &s,
                   .g = g,
                   .out = out,
                   .per_epsilon = p->t->k / FRGI_LOG2_E,
                   .frozen = mode == FRG_GW_GRAD_FROZEN};
    frg_status status = FRG_OK;
    TRY_TO(done, open_system(&s, ctx));
    TRY_TO(done, NEW(ctx, &w.u, n, "a derivative"));
    TRY_TO(done, NEW(ctx, &w.v, m, "a derivative"));
    TRY_TO(done, NEW0(ctx, &w.y, m, "a derivative"));
    if (!w.frozen) {
        memset(s.sums, 0, (size_t)(FRGI_GRAD_CHUNKS * m) * sizeof *s.sums);
        visit_rows(&s.rows, mass_row, &w);
        frgi_sum_chunks(s.sums, m, s.b);
        memset(s.sums, 0, (size_t)(FRGI_GRAD_CHUNKS * m) * sizeof *s.sums);
        visit_rows(&s.rows, gather_row, &w);
        frgi_sum_chunks(s.sums, m, w.v);
        TRY_TO(done, solve_system(&s, w.u, w.v, w.y, ctx));
    }
    visit_rows(&s.rows, pull_row, &w);
    frgi_centre(s.x, s.a, n);
    frgi_centre(w.y, s.b, m);
    for (int64_t i = 0; a && i < n; i++) {
        a[i] = s.x[i];
    }
    for (int64_t j = 0; b && j < m; j++) {
        b[j] = w.y[j];
    }
done:
    DROP(ctx, &w.u);
    DROP(ctx, &w.v);
    DROP(ctx, &w.y);
    close_system(&s, ctx);
    return status;
}
