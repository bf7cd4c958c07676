/* gw_emd.c - transport at least cost, without entropy: a vertex of the transport polytope and its
 * duals.
 *
 *     min <C, P>  over  P 1 = a, P' 1 = b, P >= 0       max f a + g b  over  f_i + g_j <= C_ij
 *
 * Both have one value; f_i + g_j = C_ij wherever P has mass.  As many points of one weight on both
 * sides are an assignment (assign.c), others a transport problem (simplex.c), all in double.
 * Points without weight are left out; their potentials are the largest that are feasible.
 */
#include <math.h>

#include "core/host_alone.h"
#include "gw/gw_marginals.h"
#include "transport/assign.h"

#define FARTHEST 1e27 /* of a cost */

/** A problem of the points that have weight. */
typedef struct {
    frg_context *ctx;
    frg_array given;
    int64_t rows, columns, n, m; /* of the caller; with weight */
    double *a, *b;               /* rows, columns; those with weight in front, then */
    int32_t *of_row, *of_column; /* the caller's numbers of those */
    double *u, *v;               /* duals of n and m */
    frgi_costs costs;
    frgi_entry *entries;
    int64_t count;
    bool optimal;
} problem;

static double *real_at(const frg_array *x, int64_t i, int64_t j)
{
    const int64_t at = i * x->stride[0] + j * x->stride[1];
    return (double *)(void *)frgi_array_base(x) + at;
}

/** The points of positive weight in front, with their numbers. */
static int64_t positive_weights(double *w, int64_t n, double scale, int32_t *numbers)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (w[i] > 0) {
            numbers[count] = (int32_t)i;
            w[count++] = scale * w[i];
        }
    }
    return count;
}

static frg_status take_costs(problem *p)
{
    double *at = NULL;
    const int64_t ld = frgi_costs_ld(p->m);
    TRY(NEW0(p->ctx, &at, frgi_mul((size_t)p->n, (size_t)ld), "costs of a transport"));
    p->costs = (frgi_costs){at, p->n, p->m, ld, false};
    for (int64_t i = 0; i < p->rows; i++) { /* those of points without weight too */
        for (int64_t j = 0; j < p->columns; j++) {
            const double x = *real_at(&p->given, i, j);
            if (!(fabs(x) <= FARTHEST)) {
                frgi_at(p->ctx, "cost, row %lld, column %lld", (long long)i + 1, (long long)j + 1);
                FAIL(p->ctx, E_DISTANCE, "an entry is %g, beyond %g", x, FARTHEST);
            }
        }
    }
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t j = 0; j < p->m; j++) {
            at[i * ld + j] = *real_at(&p->given, p->of_row[i], p->of_column[j]);
        }
    }
    return FRG_OK;
}

static frg_status set_up(problem *p, const double *a, const double *b)
{
    frg_context *const ctx = p->ctx;
    const char *const what = "a transport";
    double sum_a, sum_b;
    TRY(NEW(ctx, &p->a, p->rows, what));
    TRY(NEW(ctx, &p->b, p->columns, what));
    TRY(NEW(ctx, &p->of_row, p->rows, what));
    TRY(NEW(ctx, &p->of_column, p->columns, what));
    TRY(NEW(ctx, &p->u, p->rows, what));
    TRY(NEW(ctx, &p->v, p->columns, what));
    TRY(NEW(ctx, &p->entries, p->rows + p->columns, what));
    TRY(frgi_take_weights(ctx, a, p->rows, "source weights", p->a, &sum_a));
    TRY(frgi_take_weights(ctx, b, p->columns, "target weights", p->b, &sum_b));
    if (fabs(sum_a - sum_b) > 1e-6 * fmax(sum_a, sum_b)) {
        FAIL(ctx, E_MARGINAL, "the source weights sum to %g, the target weights to %g", sum_a,
             sum_b);
    }
    p->n = positive_weights(p->a, p->rows, 1, p->of_row);
    p->m = positive_weights(p->b, p->columns, sum_a / sum_b, p->of_column);
    return take_costs(p);
}

static bool is_assignment(const problem *p)
{
    bool equal = p->n == p->m;
    for (int64_t i = 0; i < p->n && equal; i++) {
        equal = fabs(p->a[i] - p->a[0]) <= 1e-14 * p->a[0] &&
                fabs(p->b[i] - p->a[0]) <= 1e-14 * p->a[0];
    }
    return equal;
}

static frg_status assign(problem *p)
{
    frgi_assign s = {0};
    const frg_status status = frgi_assign_open(&s, p->ctx, p->n, false);
    if (status >= 0) {
        frgi_assign_solve(&s, &p->costs, false);
        frgi_assign_duals(&s, &p->costs, p->u, p->v);
        for (int64_t i = 0; i < p->n; i++) {
            p->entries[i] = (frgi_entry){(int32_t)i, frgi_assign_image(&s)[i], p->a[i]};
        }
        p->count = p->n;
        p->optimal = true;
    }
    frgi_assign_close(&s, p->ctx);
    return status;
}

static frg_status transport(problem *p)
{
    frgi_simplex *s = NULL;
    const frg_status status = frgi_simplex_open(&s, p->ctx, p->a, p->n, p->b, p->m, false);
    if (status >= 0) {
        p->optimal = frgi_simplex_solve(s, &p->costs, p->entries, &p->count);
        frgi_simplex_duals(s, p->u, p->v);
    }
    frgi_simplex_close(&s, p->ctx);
    return status;
}

/** Potentials of all points: u and v; elsewhere the largest that are feasible. */
static void write_potentials(const problem *p, double *f, double *g)
{
    for (int64_t j = 0, k = 0; j < p->columns; j++) {
        const bool known = k < p->m && p->of_column[k] == j;
        g[j] = known ? p->v[k++] : (double)INFINITY;
        for (int64_t q = 0; q < p->n && !known; q++) {
            g[j] = fmin(g[j], *real_at(&p->given, p->of_row[q], j) - p->u[q]);
        }
    }
    for (int64_t i = 0, k = 0; i < p->rows; i++) {
        const bool known = k < p->n && p->of_row[k] == i;
        f[i] = known ? p->u[k++] : (double)INFINITY;
        for (int64_t j = 0; j < p->columns && !known; j++) {
            f[i] = fmin(f[i], *real_at(&p->given, i, j) - g[j]);
        }
    }
}

static void write_plan(const problem *p, const frg_array *plan, double *cost)
{
    for (int64_t i = 0; i < p->rows; i++) {
        for (int64_t j = 0; j < p->columns; j++) {
            *real_at(plan, i, j) = 0;
        }
    }
    *cost = 0;
    for (int64_t e = 0; e < p->count; e++) {
        const frgi_entry *const at = &p->entries[e];
        *real_at(plan, p->of_row[at->i], p->of_column[at->j]) = at->mass;
        *cost += at->mass * frgi_costs_get(&p->costs, at->i, at->j);
    }
}

static void close_problem(problem *p)
{
    double *costs = p->costs.at;
    DROP(p->ctx, &costs);
    DROP(p->ctx, &p->a);
    DROP(p->ctx, &p->b);
    DROP(p->ctx, &p->of_row);
    DROP(p->ctx, &p->of_column);
    DROP(p->ctx, &p->u);
    DROP(p->ctx, &p->v);
    DROP(p->ctx, &p->entries);
}

frg_status frg_emd(frg_context *ctx, frg_array cost, const double *a, const double *b,
                   frg_array plan, double *f, double *g, frg_emd_report *report)
{
    TRY(frgi_host_alone(ctx, "exact transport"));
    TRY(frgi_array_check(ctx, &cost, "cost", 2, 1u << FRG_F64));
    TRY(frgi_array_check(ctx, &plan, "plan", 2, 1u << FRG_F64));
    const int64_t n = cost.shape[0], m = cost.shape[1];
    REQUIRE(ctx, n >= 1 && m >= 1 && n < INT32_MAX && m < INT32_MAX,
            "cost is %lld x %lld, 1 to 2^31 - 2 rows and columns are needed", (long long)n,
            (long long)m);
    if (plan.shape[0] != n || plan.shape[1] != m) {
        FAIL(ctx, E_SHAPE, "plan is %lld x %lld, cost %lld x %lld", (long long)plan.shape[0],
             (long long)plan.shape[1], (long long)n, (long long)m);
    }
    REQUIRE(ctx, (f == NULL) == (g == NULL), "f and g: both or neither");
    frgi_run_begins(ctx);
    return frgi_emd_solve(ctx, cost, a, b, plan, f, g, report);
}

frg_status frgi_emd_solve(frg_context *ctx, frg_array cost, const double *a, const double *b,
                          frg_array plan, double *f, double *g, frg_emd_report *report)
{
    problem p = {.ctx = ctx, .given = cost, .rows = cost.shape[0], .columns = cost.shape[1]};
    frg_emd_report r = {0};
    frg_status status = set_up(&p, a, b);
    if (status >= 0) {
        status = is_assignment(&p) ? assign(&p) : transport(&p);
    }
    status = status < 0 ? status : frgi_stopped(ctx);
    if (status == FRG_OK) {
        if (f) {
            write_potentials(&p, f, g);
        }
        write_plan(&p, &plan, &r.cost);
        r.entries = p.count;
        r.optimal = p.optimal;
        if (report) {
            *report = r;
        }
        status = p.optimal ? FRG_OK : FRG_MAX_ITER;
    }
    close_problem(&p);
    return status;
}
