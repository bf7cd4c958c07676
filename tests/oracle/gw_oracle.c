#include "gw_oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *array(int64_t n)
{
    double *const x = calloc((size_t)n + 1, sizeof *x);
    if (!x)
        abort();
    return x;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static double gap(const gw_oracle *o, int64_t i, int64_t j, int64_t k, int64_t l)
{
    const double x = o->c[i * o->n + k] - o->d[j * o->m + l];
    return x * x;
}

static void add_linear(const gw_oracle *o, double *cost)
{
    for (int64_t e = 0; e < o->n * o->m && o->linear; e++)
        cost[e] = (1 - o->theta) * cost[e] + o->theta * o->linear[e];
}

void gw_oracle_cost(const gw_oracle *o, const double *plan, double *cost)
{
    for (int64_t i = 0; i < o->n; i++)
        for (int64_t j = 0; j < o->m; j++) {
            double sum = 0;
            for (int64_t k = 0; k < o->n; k++)
                for (int64_t l = 0; l < o->m; l++)
                    sum += gap(o, i, j, k, l) * plan[k * o->m + l];
            cost[i * o->m + j] = sum;
        }
    add_linear(o, cost);
}

void gw_oracle_cost_of_pairs(const gw_oracle *o, const gw_oracle_pair *pair, int64_t R,
                             double *cost)
{
    double *const plan = array(o->n * o->m);
    for (int64_t r = 0; r < R; r++)
        plan[pair[r].i * o->m + pair[r].j] += 1 / (double)R;
    gw_oracle_cost(o, plan, cost);
    free(plan);
}

void gw_oracle_cost_of_centred_pairs(const gw_oracle *o, const gw_oracle_pair *pair, int64_t R,
                                     double *cost)
{
    for (int64_t i = 0; i < o->n; i++)
        for (int64_t j = 0; j < o->m; j++) {
            double u = 0, v = 0, sum = 0;
            for (int64_t k = 0; k < o->n; k++)
                u += o->c[i * o->n + k] * o->a[k];
            for (int64_t l = 0; l < o->m; l++)
                v += o->d[j * o->m + l] * o->b[l];
            for (int64_t r = 0; r < R; r++)
                sum += (o->c[i * o->n + pair[r].i] - u) * (o->d[j * o->m + pair[r].j] - v);
            cost[i * o->m + j] = -2 * sum / (double)R - 2 * u * v;
        }
    add_linear(o, cost);
}

double gw_oracle_energy(const gw_oracle *o, const double *plan)
{
    double sum = 0;
    for (int64_t i = 0; i < o->n; i++)
        for (int64_t j = 0; j < o->m; j++)
            for (int64_t k = 0; k < o->n; k++)
                for (int64_t l = 0; l < o->m; l++)
                    sum += gap(o, i, j, k, l) * plan[i * o->m + j] * plan[k * o->m + l];
    return sum;
}

double gw_oracle_apart(const gw_oracle *o, const double *p, const double *q)
{
    double sum = 0;
    for (int64_t e = 0; e < o->n * o->m; e++)
        sum += fabs(p[e] - q[e]) / 2;
    return sum;
}

/* ---- Sinkhorn -------------------------------------------------------------------------------- */

/** A problem whose points are those of o, and a dummy one a side where mass is left. */
typedef struct {
    int64_t n, m;
    double *cost, *a, *b, *f, *g;
} transport;

static transport open_transport(const gw_oracle *o, double epsilon, const double *cost)
{
    const bool partial = o->mass > 0;
    transport t = {.n = o->n + partial, .m = o->m + partial};
    t.cost = array(t.n * t.m);
    t.a = array(t.n);
    t.b = array(t.m);
    t.f = array(t.n);
    t.g = array(t.m);
    memcpy(t.a, o->a, (size_t)o->n * sizeof *t.a);
    memcpy(t.b, o->b, (size_t)o->m * sizeof *t.b);
    for (int64_t e = 0; e < o->n * o->m; e++)
        t.cost[e / o->m * t.m + e % o->m] = cost[e];
    if (partial) {
        t.a[o->n] = t.b[o->m] = 1 - o->mass;
        t.cost[t.n * t.m - 1] = 1e4 * epsilon; /* never */
    }
    return t;
}

double gw_oracle_log_sum_exp(const double *g, const double *c, int64_t n, int64_t stride,
                             double epsilon)
{
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++)
        top = fmax(top, g[j] - c[j * stride]);
    for (int64_t j = 0; j < n; j++)
        sum += exp((g[j] - c[j * stride] - top) / epsilon);
    return top + epsilon * log(sum);
}

/** The potential of one point of weight w; tau = rho / (rho + epsilon). */
static double potential(const gw_oracle *o, double rho, double epsilon, double w, double soft)
{
    const double tau = isinf(rho) ? 1 : rho / (rho + epsilon);
    return (o->product ? 1 : tau) * epsilon * log(w) - tau * soft;
}

int64_t gw_oracle_sinkhorn(const gw_oracle *o, double epsilon, const double *cost, double *plan)
{
    transport t = open_transport(o, epsilon, cost);
    double moved = 1;
    int64_t count = 0;
    for (; count < 100000 && moved > 1e-13; count++) {
        moved = 0;
        for (int64_t i = 0; i < t.n; i++)
            t.f[i] = potential(o, o->rho_source, epsilon, t.a[i],
                               gw_oracle_log_sum_exp(t.g, t.cost + i * t.m, t.m, 1, epsilon));
        for (int64_t j = 0; j < t.m; j++) {
            const double g = potential(o, o->rho_target, epsilon, t.b[j],
                                       gw_oracle_log_sum_exp(t.f, t.cost + j, t.n, t.m, epsilon));
            moved = fmax(moved, isfinite(g) ? fabs(g - t.g[j]) / epsilon : 0);
            t.g[j] = g;
        }
    }
    for (int64_t e = 0; e < o->n * o->m; e++) {
        const int64_t i = e / o->m, j = e % o->m;
        plan[e] = exp((t.f[i] + t.g[j] - t.cost[i * t.m + j]) / epsilon);
    }
    free(t.cost);
    free(t.a);
    free(t.b);
    free(t.f);
    free(t.g);
    return count;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static double noise_of(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-52 - 1;
}

void gw_oracle_exact(const gw_oracle *o, const double *epsilon, int64_t steps, double damping,
                     double noise, uint64_t state, double *plan)
{
    double *const mean = array(o->n * o->m), *const cost = array(o->n * o->m);
    for (int64_t e = 0; e < o->n * o->m; e++)
        mean[e] = plan[e] = o->a[e / o->m] * o->b[e % o->m];
    for (int64_t t = 0; t < steps; t++) {
        gw_oracle_cost(o, mean, cost);
        for (int64_t e = 0; e < o->n * o->m && noise > 0; e++)
            cost[e] += noise * noise_of(&state);
        gw_oracle_sinkhorn(o, epsilon[t], cost, plan);
        for (int64_t e = 0; e < o->n * o->m; e++)
            mean[e] += damping * (plan[e] - mean[e]);
    }
    free(mean);
    free(cost);
}

void gw_oracle_round(const gw_oracle *o, double *plan)
{
    double *const u = array(o->n), *const v = array(o->m), missing = 0;
    for (int64_t i = 0; i < o->n; i++) {
        double row = 0;
        for (int64_t j = 0; j < o->m; j++)
            row += plan[i * o->m + j];
        for (int64_t j = 0; j < o->m; j++)
            plan[i * o->m + j] *= row > o->a[i] ? o->a[i] / row : 1;
    }
    for (int64_t j = 0; j < o->m; j++) {
        double column = 0;
        for (int64_t i = 0; i < o->n; i++)
            column += plan[i * o->m + j];
        v[j] = o->b[j];
        for (int64_t i = 0; i < o->n; i++) {
            plan[i * o->m + j] *= column > o->b[j] ? o->b[j] / column : 1;
            v[j] -= plan[i * o->m + j];
        }
    }
    for (int64_t i = 0; i < o->n; i++) {
        u[i] = o->a[i];
        for (int64_t j = 0; j < o->m; j++)
            u[i] -= plan[i * o->m + j];
        missing += u[i];
    }
    for (int64_t e = 0; e < o->n * o->m && missing > 0; e++)
        plan[e] += u[e / o->m] * v[e % o->m] / missing;
    free(u);
    free(v);
}

/* ---- vertices -------------------------------------------------------------------------------- */

/** The plan on the cells of a tree, from its leaves; false: they have a cycle, or the plan an entry
 *  below 0. */
static bool fill_tree(const gw_oracle *o, unsigned cells, double *plan)
{
    double left[32];
    int degree[32] = {0};
    memset(plan, 0, (size_t)(o->n * o->m) * sizeof *plan);
    for (int64_t i = 0; i < o->n + o->m; i++)
        left[i] = i < o->n ? o->a[i] : o->b[i - o->n];
    for (int64_t e = 0; e < o->n * o->m; e++)
        if (cells >> e & 1) {
            degree[e / o->m]++;
            degree[o->n + e % o->m]++;
        }
    for (bool any = true; cells && any;) {
        any = false;
        for (int64_t e = 0; e < o->n * o->m; e++) {
            const int64_t i = e / o->m, j = o->n + e % o->m;
            if (!(cells >> e & 1) || (degree[i] > 1 && degree[j] > 1))
                continue;
            const double x = degree[i] == 1 ? left[i] : left[j];
            if (x < 0)
                return false;
            plan[e] = x;
            left[i] -= x;
            left[j] -= x;
            degree[i]--;
            degree[j]--;
            cells &= ~(1u << e);
            any = true;
        }
    }
    return cells == 0;
}

static bool rows_hold(const gw_oracle *o, const double *plan)
{
    for (int64_t i = 0; i < o->n; i++) {
        double row = 0;
        for (int64_t j = 0; j < o->m; j++)
            row += plan[i * o->m + j];
        if (fabs(row - o->a[i]) > 1e-12)
            return false;
    }
    return true;
}

double gw_oracle_lowest_vertex(const gw_oracle *o, const double *cost)
{
    const int64_t all = o->n * o->m;
    double *const plan = array(all), lowest = INFINITY;
    for (unsigned cells = 1; cells < 1u << all; cells++) {
        double sum = 0;
        if (__builtin_popcount(cells) != o->n + o->m - 1 || !fill_tree(o, cells, plan) ||
            !rows_hold(o, plan))
            continue;
        for (int64_t e = 0; e < all && cost; e++)
            sum += cost[e] * plan[e];
        lowest = fmin(lowest, cost ? sum : gw_oracle_energy(o, plan));
    }
    free(plan);
    return lowest;
}
