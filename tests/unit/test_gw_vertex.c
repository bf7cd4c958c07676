/* test_gw_vertex.c - linear problems of a vertex: assignments and transport, against all
 * permutations and by duality. */
#include <float.h>

#include "gw_data.h"

#include "gw/gw_vertex.h"
#include "transport/assign.h"

static frgi_costs costs_of(int64_t n, int64_t m, bool single)
{
    const int64_t ld = frgi_costs_ld(m);
    return (frgi_costs){calloc((size_t)(n * ld), frgi_costs_size(single)), n, m, ld, single};
}

static void put(frgi_costs *c, int64_t i, int64_t j, double x)
{
    if (c->single)
        ((float *)c->at)[i * c->ld + j] = (float)x;
    else
        ((double *)c->at)[i * c->ld + j] = x;
}

/* Kinds: independent; whole numbers (ties); squared distances of points (smooth); a product of rank
 * one. */
static void draw(frgi_costs *c, int kind)
{
    double *const x = malloc((size_t)(2 * (c->rows + c->columns)) * sizeof *x);
    for (int64_t i = 0; i < 2 * (c->rows + c->columns); i++)
        x[i] = test_normal();
    memset(c->at, 0, (size_t)(c->rows * c->ld) * frgi_costs_size(c->single));
    const double *const y = x + 2 * c->rows;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++) {
            const double square = pow(x[2 * i] - y[2 * j], 2) + pow(x[2 * i + 1] - y[2 * j + 1], 2);
            const double of[] = {test_normal(), floor(4 * test_uniform()), square,
                                 x[2 * i] * y[2 * j]};
            put(c, i, j, of[kind]);
        }
    free(x);
}

static double least_by_all(const frgi_costs *c, int64_t i, unsigned taken)
{
    double least = i == c->rows ? 0 : (double)INFINITY;
    for (int64_t j = 0; i < c->rows && j < c->columns; j++)
        if (!(taken >> j & 1))
            least = fmin(least, frgi_costs_get(c, i, j) + least_by_all(c, i + 1, taken | 1u << j));
    return least;
}

static double assigned(const frgi_assign *a, const frgi_costs *c)
{
    double sum = 0;
    for (int64_t i = 0; i < a->n; i++) {
        CHECK(a->column[i] >= 0 && a->column[i] < a->n && a->row[a->column[i]] == i);
        sum += frgi_costs_get(c, i, a->column[i]);
    }
    return sum;
}

/* The dual value sum_i min_j (c_ij - v_j) + sum_j v_j of any v is below the cost of any
 * assignment. */
static double dual_value(const frgi_assign *a, const frgi_costs *c)
{
    double sum = 0;
    for (int64_t i = 0; i < a->n; i++) {
        double least = (double)INFINITY;
        for (int64_t j = 0; j < a->n; j++) {
            const double v =
                c->single ? (double)((const float *)a->v)[j] : ((const double *)a->v)[j];
            least = fmin(least, frgi_costs_get(c, i, j) - v);
        }
        sum += least + (c->single ? (double)((const float *)a->v)[i] : ((const double *)a->v)[i]);
    }
    return sum;
}

/* A dual moves a few times by sums of costs of size c: its error is some units of c, as many as
 * moves, n of them at most, and an assignment is as far off as n duals are. */
static double slack_of(const frgi_costs *c)
{
    double most = 0;
    for (int64_t i = 0; i < c->rows; i++)
        for (int64_t j = 0; j < c->columns; j++)
            most = fmax(most, fabs(frgi_costs_get(c, i, j)));
    return (double)(c->rows + c->columns) * 32 * most * (c->single ? 0x1p-23 : 0x1p-52);
}

static void assignments(void)
{
    frg_context *ctx = test_context();
    const int64_t sizes[] = {1, 2, 3, 5, 7, 16, 17, 60, 230, 520};
    for (int k = 0; k < 10 * 4 * 2; k++) {
        const int64_t n = sizes[k % 10];
        const bool single = k / 40;
        frgi_costs c = costs_of(n, n, single);
        frgi_assign a = {0};
        double slack = 0;
        CHECK_OK(ctx, frgi_assign_open(&a, ctx, n, single));
        for (int turn = 0; turn < 3;
             turn++) { /* another cost from the last duals, and one near it */
            if (turn < 2)
                draw(&c, k / 10 % 4);
            for (int64_t i = 0; turn == 2 && i < n; i++)
                put(&c, i, i, frgi_costs_get(&c, i, i) - 0.1);
            frgi_assign_solve(&a, &c, false);
            const double cost = assigned(&a, &c);
            slack = fmax(slack, slack_of(&c)); /* duals begin as those of the costs before */
            CHECK(cost - dual_value(&a, &c) <= slack);
            if (n <= 7)
                CHECK(fabs(cost - least_by_all(&c, 0, 0)) <= slack);
        }
        frgi_assign_close(&a, ctx);
        free(c.at);
    }
    frg_context_destroy(ctx);
}

/* Costs of which each row, and the column that it had, became more by the same: the duals that are
 * told of it are those of the new costs but for rounding, so that as many rows are read as for the
 * old costs again (entries that cost as much as the assigned ones are taken as they come: within a
 * factor of 1.3 in 400 draws), and without that over twice as many. */
static void moved_costs(void)
{
    frg_context *ctx = test_context();
    for (int kind = 0; kind < 4; kind++) {
        const int64_t n = kind % 2 ? 520 : 150;
        const bool single = kind / 2;
        frgi_costs c = costs_of(n, n, single);
        double *const more = malloc(sizeof *more * (size_t)n);
        int32_t *const was = malloc(sizeof *was * (size_t)n);
        int64_t scans[3] = {0};
        frgi_assign a = {0};
        draw(&c, 0);
        CHECK_OK(ctx, frgi_assign_open(&a, ctx, n, single));
        for (int turn = 0; turn < 3; turn++) { /* new, the same, moved */
            for (int64_t i = 0; i < n; i++)
                more[i] = turn < 2 ? 0 : 3 * test_normal();
            memcpy(was, a.row, sizeof *was * (size_t)(turn < 2 ? 0 : n));
            for (int64_t i = 0; i < n && turn == 2; i++)
                for (int64_t j = 0; j < n; j++)
                    put(&c, i, j, frgi_costs_get(&c, i, j) + more[i] + more[was[j]]);
            frgi_assign_solve(&a, &c, turn == 2);
            CHECK(assigned(&a, &c) - dual_value(&a, &c) <= slack_of(&c));
            scans[turn] = a.scans;
        }
        const int64_t same = scans[1] - scans[0], moved = scans[2] - scans[1];
        CHECK_SAYS(2 * moved <= 3 * same, "%lld, %lld for the same costs", (long long)moved,
                   (long long)same);
        frgi_assign_close(&a, ctx);
        free(c.at);
        free(more);
        free(was);
    }
    frg_context_destroy(ctx);
}

static void check_transport(const frgi_simplex *s, const frgi_costs *c, const double *a,
                            const double *b, const frgi_entry *plan, int64_t count)
{
    const int64_t n = c->rows, m = c->columns;
    double *const u = calloc((size_t)(2 * (n + m)), sizeof *u), *const v = u + n;
    double *const row = v + m, *const column = row + n;
    double cost = 0, value = 0;
    frgi_simplex_duals(s, u, v);
    CHECK(count <= n + m - 1);
    for (int64_t e = 0; e < count; e++) {
        CHECK(plan[e].mass > 0 && (e == 0 || plan[e].i >= plan[e - 1].i));
        row[plan[e].i] += plan[e].mass;
        column[plan[e].j] += plan[e].mass;
        cost += plan[e].mass * frgi_costs_get(c, plan[e].i, plan[e].j);
    }
    for (int64_t i = 0; i < n; i++) /* sums of as many terms as there are nodes */
        CHECK_NEAR(row[i], a[i], 1e-16 * (double)(n + m));
    for (int64_t j = 0; j < m; j++)
        CHECK_NEAR(column[j], b[j], 1e-16 * (double)(n + m));
    for (int64_t j = 0; j < m; j++)
        value += b[j] * v[j];
    for (int64_t i = 0; i < n; i++) {
        double least = (double)INFINITY;
        for (int64_t j = 0; j < m; j++)
            least = fmin(least, frgi_costs_get(c, i, j) - v[j]);
        value += a[i] * least;
    }
    CHECK(cost - value <= slack_of(c));
    free(u);
}

/** Two problems, the second from the tree of the first. */
static void solve_transports(frg_context *ctx, int64_t n, int64_t m, bool single, bool uniform,
                             int kind)
{
    double *const a = calloc((size_t)(n + m), sizeof *a), *const b = a + n;
    double of_a = 0, of_b = 0;
    for (int64_t i = 0; i < n + m; i++) {
        a[i] = uniform ? 1 : exp(2 * test_normal());
        *(i < n ? &of_a : &of_b) += a[i];
    }
    for (int64_t i = 0; i < n + m; i++)
        a[i] /= i < n ? of_a : of_b;
    frgi_costs c = costs_of(n, m, single);
    frgi_entry *const plan = calloc((size_t)(n + m), sizeof *plan);
    frgi_simplex *s;
    CHECK_OK(ctx, frgi_simplex_open(&s, ctx, a, n, b, m, single));
    for (int turn = 0; turn < 2; turn++) {
        int64_t count = 0;
        draw(&c, kind);
        CHECK(frgi_simplex_solve(s, &c, plan, &count));
        check_transport(s, &c, a, b, plan, count);
    }
    frgi_simplex_close(&s, ctx);
    free(plan);
    free(c.at);
    free(a);
}

static void transports(void)
{
    frg_context *ctx = test_context();
    const int64_t sizes[][2] = {{1, 1},   {1, 5},   {5, 1},   {2, 3},  {7, 4},
                                {20, 33}, {33, 20}, {24, 24}, {70, 90}};
    for (int k = 0; k < 9 * 4 * 2 * 2; k++)
        solve_transports(ctx, sizes[k % 9][0], sizes[k % 9][1], k / 72, k / 36 % 2, k / 9 % 4);
    frg_context_destroy(ctx);
}

/** Memory that was used before: all reals in it are far below any cost. */
static void *used_memory(size_t bytes, void *user)
{
    void *const p = frg_system_allocator()->alloc(bytes, user);
    return p ? memset(p, 0xf5, bytes) : NULL;
}

/** Transports that begin from half of their points, with padding in the halved costs. */
static void used(void)
{
    frg_allocator memory = *frg_system_allocator();
    memory.alloc = used_memory;
    frg_context *ctx = test_context_with(1, &memory, NULL);
    for (int k = 0; k < 4; k++)
        solve_transports(ctx, 520, 514, k / 2, k % 2, 2);
    frg_context_destroy(ctx);
}

/* ---- alignments ------------------------------------------------------------------------------ */

static frg_gw_opts default_options(frg_gw_distance distance)
{
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.distance = distance;
    return o;
}

static frg_gw_opts vertex_options(frg_gw_distance distance)
{
    frg_gw_opts o = default_options(distance);
    o.mode = FRG_GW_VERTEX;
    return o;
}

static void points(double *x, int64_t n, int64_t d)
{
    for (int64_t i = 0; i < n * d; i++)
        x[i] = test_normal() / (double)(1 + i % d);
}

/* By default: a copy of a cloud of random points in another order and turned has the energy 0,
 * which nothing else has: each point is found, and the energy is that of distances rounded to
 * floats (2^-23 of the largest, squared). */
static void copies(void)
{
    const int64_t sizes[] = {3, 8, 30, 90, 140, 300, 470};
    frg_context *ctx = test_context();
    for (int k = 0; k < test_size(7, 5); k++) {
        const int64_t n = sizes[k];
        double *const x = malloc(sizeof(double) * (size_t)(6 * n + n * n)), *const y = x + 3 * n;
        double *const plan = y + 3 * n;
        int64_t *const order = malloc(sizeof *order * (size_t)n);
        points(x, n, 3);
        for (int64_t i = 0; i < n; i++)
            order[i] = i;
        for (int64_t i = n - 1; i > 0; i--) {
            const int64_t j = test_below(i + 1), was = order[i];
            order[i] = order[j];
            order[j] = was;
        }
        for (int64_t i = 0; i < n; i++) { /* a turn by 0.6, 0.8 and a mirror */
            const double *const at = x + 3 * i;
            double *const to = y + 3 * order[i];
            to[0] = 0.6 * at[0] - 0.8 * at[1];
            to[1] = 0.8 * at[0] + 0.6 * at[1];
            to[2] = 5 - at[2];
        }
        const frg_gw_opts o = default_options(FRG_GW_DISTANCE_EUCLIDEAN);
        const frg_gw_report r = align_sides(
            ctx, (frg_gw_side){.data = &(frg_array[]){matrix(x, n, 3)}[0]},
            (frg_gw_side){.data = &(frg_array[]){matrix(y, n, 3)}[0]}, NULL, &o, plan, NULL);
        int64_t found = 0;
        for (int64_t i = 0; i < n; i++)
            found += plan[i * n + order[i]] > 0.5 / (double)n;
        CHECK_SAYS(found == n, "%lld of %lld found, energy %g of %g from %s", (long long)found,
                   (long long)n, r.energy, r.energy_product, frg_gw_start_name(r.started_from));
        CHECK(r.energy <= 1e-10 * r.energy_product && r.vertex);
        CHECK(r.mode == FRG_GW_VERTEX && r.reason == FRG_GW_STATIONARY &&
              r.lower_bound <= r.energy + 1e-10 * r.energy_product);
        if (n == 30) /* 64 starts, and more only where fewer than 3 of these agree */
            CHECK_SAYS(r.starts == 64 || (r.starts > 64 && r.starts_agree < r.starts - 64 + 3),
                       "%lld starts, %lld agree", (long long)r.starts, (long long)r.starts_agree);
        free(x);
        free(order);
    }
    frg_context_destroy(ctx);
}

static double least_energy(const double *c, const double *d, int n, int *order, int done)
{
    double least = done == n ? 0 : (double)INFINITY;
    for (int i = 0; done == n && i < n; i++)
        for (int k = 0; k < n; k++)
            least += pow(c[i * n + k] - d[order[i] * n + order[k]], 2) / (n * n);
    for (int j = done; j < n; j++) {
        int was = order[j];
        order[j] = order[done];
        order[done] = was;
        least = fmin(least, least_energy(c, d, n, order, done + 1));
        was = order[j];
        order[j] = order[done];
        order[done] = was;
    }
    return least;
}

/* Independent clouds and random symmetric matrices of six points: no permutation is lower.
 * Distances are floats: an error of 2^-24 in each of them, twice the largest of which is the
 * derivative of a square. */
static void all_permutations(void)
{
    frg_context *ctx = test_context();
    for (int k = 0; k < 20; k++) {
        const int n = 2 + k % 5;
        double x[12], y[18], c[36], d[36], most = 0;
        int order[6] = {0, 1, 2, 3, 4, 5};
        points(x, n, 2);
        points(y, n, 3);
        distances_of(x, n, 2, c);
        distances_of(y, n, 3, d);
        for (int i = 0; i < n && k % 2; i++)
            for (int j = 0; j < i; j++)
                c[i * n + j] = c[j * n + i] = test_uniform();
        for (int i = 0; i < n * n; i++)
            most = fmax(most, fmax(c[i], d[i]));
        const frg_array ac = matrix(c, n, n), ad = matrix(d, n, n);
        const frg_gw_opts o = vertex_options(FRG_GW_DISTANCE_MATRIX);
        const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &ac},
                                            (frg_gw_side){.data = &ad}, NULL, &o, NULL, NULL);
        const double least = least_energy(c, d, n, order, 0);
        CHECK_SAYS(r.energy <= least + 4 * most * most * 0x1p-23, "%g, a permutation has %g",
                   r.energy, least);
    }
    frg_context_destroy(ctx);
}

/* Weights, some of them 0, other numbers of points, a linear cost: marginals hold, the energy is
 * that of the plan, and no vertex of the linearisation is lower to first order. */
static void stationary(void)
{
    frg_context *ctx = test_context();
    const int64_t sizes[][2] = {{9, 14}, {40, 25}, {30, 30}, {135, 150}};
    for (int k = 0; k < 8; k++) {
        if (!test_turn(k, 4))
            continue;
        const int64_t n = sizes[k / 2][0], m = sizes[k / 2][1];
        const bool fused = k % 2;
        const double theta = fused ? 0.3 : 0;
        double *const x =
            malloc(sizeof(double) * (size_t)(2 * n + 3 * m + n * n + m * m + 4 * n * m + n + m));
        double *const y = x + 2 * n, *const c = y + 3 * m, *const d = c + n * n,
                      *const cost = d + m * m;
        double *const plan = cost + n * m, *const cp = plan + n * m, *const a = cp + 2 * n * m;
        double *const b = a + n, of_a = 0, of_b = 0;
        points(x, n, 2);
        points(y, m, 3);
        distances_of(x, n, 2, c);
        distances_of(y, m, 3, d);
        for (int64_t i = 0; i < n * m; i++)
            cost[i] = test_uniform();
        for (int64_t i = 0; i < n; i++)
            of_a += a[i] = i % 7 == 3 ? 0 : 0.1 + test_uniform();
        for (int64_t j = 0; j < m; j++)
            of_b += b[j] = j % 5 == 2 ? 0 : 0.1 + test_uniform();
        for (int64_t i = 0; i < n; i++)
            a[i] /= of_a;
        for (int64_t j = 0; j < m; j++)
            b[j] /= of_b;
        frg_gw_opts o = vertex_options(FRG_GW_DISTANCE_MATRIX);
        o.linear_weight = theta;
        const frg_array ac = matrix(c, n, n), ad = matrix(d, m, m), linear = matrix(cost, n, m);
        frg_plan_report p = {0};
        const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &ac, .weights = a},
                                            (frg_gw_side){.data = &ad, .weights = b},
                                            fused ? &linear : NULL, &o, plan, &p);
        CHECK(p.source_error < 1e-12 && p.target_error < 1e-12);
        CHECK(r.reason == FRG_GW_STATIONARY);
        double energy;
        CHECK_OK(ctx, frg_gw_energy(ctx, ac, ad, matrix(plan, n, m), &energy));
        if (!fused) /* distances are floats, their sums are not */
            CHECK_NEAR(r.energy, energy, 1e-6 * r.energy_product);
        /* half the gradient at the plan, distances scaled by the largest of a side where a linear
         * cost is weighed */
        double most_c = 0, most_d = 0, of_plan = 0, of_best = 0;
        for (int64_t i = 0; i < n * n; i++)
            most_c = fmax(most_c, c[i]);
        for (int64_t i = 0; i < m * m; i++)
            most_d = fmax(most_d, d[i]);
        const double unit = fused ? most_c * most_d : 1;
        int64_t rows = 0, columns = 0, count = 0;
        double *const wa = malloc(sizeof(double) * (size_t)(n + m)), *const wb = wa + n;
        for (int64_t i = 0; i < n; i++)
            if (a[i] > 0)
                wa[rows++] = a[i];
        for (int64_t j = 0; j < m; j++)
            if (b[j] > 0)
                wb[columns++] = b[j];
        frgi_costs k_of = costs_of(rows, columns, false);
        for (int64_t i = 0, u = 0; i < n; i++) {
            for (int64_t l = 0; l < m; l++) {
                cp[l] = 0;
                for (int64_t q = 0; q < n; q++)
                    cp[l] += c[i * n + q] * plan[q * m + l];
            }
            for (int64_t j = 0, v = 0; j < m && a[i] > 0; j++) {
                double g = theta * cost[i * m + j];
                for (int64_t l = 0; l < m; l++)
                    g -= 2 * (1 - theta) * cp[l] * d[l * m + j] / unit;
                of_plan += plan[i * m + j] * g;
                if (b[j] > 0)
                    put(&k_of, u, v++, g);
            }
            u += a[i] > 0;
        }
        frgi_simplex *s;
        frgi_entry *const best = malloc(sizeof *best * (size_t)(n + m));
        CHECK_OK(ctx, frgi_simplex_open(&s, ctx, wa, rows, wb, columns, false));
        CHECK(frgi_simplex_solve(s, &k_of, best, &count));
        for (int64_t e = 0; e < count; e++)
            of_best += best[e].mass * frgi_costs_get(&k_of, best[e].i, best[e].j);
        /* the last step gained less than 1e-7 of the constant (of floats), and its length is at
         * most 1: where J is curved by q the slope is at most sqrt(4 gain q), and q is below 8 of
         * the constant */
        const double constant = fused ? 2 : r.energy_product + 2 * most_c * most_d;
        CHECK_SAYS(of_plan - of_best <= 1e-3 * constant, "slope %g, constant %g", of_plan - of_best,
                   constant);
        frgi_simplex_close(&s, ctx);
        free(k_of.at);
        free(best);
        free(wa);
        free(x);
    }
    frg_context_destroy(ctx);
}

/* ---- parts of a descent ---------------------------------------------------------------------- */

/* Distances of n points a side, of their own (kind 0) or any symmetric numbers with a diagonal
 * (kind 1), equal weights. */
static frgi_spaces spaces_of(frg_context *ctx, int64_t n, bool single, int kind, float *linear)
{
    frgi_spaces s = {
        .ctx = ctx, .n = n, .m = n, .single = single, .linear = linear, .ld_linear = n};
    s.theta = linear ? 0.3 : 0;
    for (int side = 0; side < 2; side++) {
        frgi_costs *const c = side ? &s.y : &s.x;
        double *const x = malloc(sizeof(double) * (size_t)(2 * n + n * n)), *const all = x + 2 * n;
        points(x, n, 2);
        distances_of(x, n, 2, all);
        *c = costs_of(n, n, single);
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k <= i; k++) {
                const double of = kind ? test_uniform() : all[i * n + k];
                put(c, i, k, of);
                put(c, k, i, of);
            }
        free(x);
    }
    s.a = malloc(sizeof(double) * (size_t)(2 * n));
    s.b = s.a + n;
    for (int64_t i = 0; i < 2 * n; i++)
        s.a[i] = 1 / (double)n;
    frgi_spaces_finish(&s);
    return s;
}

static void free_spaces(frgi_spaces *s)
{
    free(s->x.at);
    free(s->y.at);
    free(s->a);
}

/* Two sides of n and m points in the plane, the same for every seed: y the first m of x along an
 * axis, moved a little. */
static frgi_spaces cropped_spaces(frg_context *ctx, int64_t n, int64_t m)
{
    frgi_spaces s = {.ctx = ctx, .n = n, .m = m};
    double *const x = malloc(sizeof(double) * (size_t)(4 * n)), *const y = x + 2 * n;
    for (int64_t i = 0; i < n; i++) {
        const double u = (double)i * 0.754877666, v = (double)i * 0.569840291;
        x[2 * i] = ((double)i + u - floor(u)) / (double)n;
        x[2 * i + 1] = v - floor(v);
        y[2 * i] = x[2 * i] + 0.01 * sin(97.3 * (double)i);
        y[2 * i + 1] = x[2 * i + 1] + 0.01 * cos(97.3 * (double)i);
    }
    s.x = costs_of(n, n, false);
    s.y = costs_of(m, m, false);
    distances_of(x, n, 2, s.x.at);
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < m; k++)
            put(&s.y, i, k, hypot(y[2 * i] - y[2 * k], y[2 * i + 1] - y[2 * k + 1]));
    for (int64_t i = n - 1; i >= 0; i--) /* n apart to ld apart */
        memmove((double *)s.x.at + i * s.x.ld, (double *)s.x.at + i * n,
                sizeof(double) * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = n; k < s.x.ld; k++)
            ((double *)s.x.at)[i * s.x.ld + k] = 0;
    s.a = malloc(sizeof(double) * (size_t)(n + m));
    s.b = s.a + n;
    for (int64_t i = 0; i < n + m; i++)
        s.a[i] = 1 / (double)(i < n ? n : m);
    frgi_spaces_finish(&s);
    free(x);
    return s;
}

/* One product into rows that hold NaN beside sums in double, in the orders that it is cut in: few
 * rows across, many rows down.  An entry is a sum of COUNT terms, rounded as often as
 * test_product.c says; its padding is 0, and the caller's denormals are numbers again. */
static void check_product(frg_context *ctx, int64_t rows, int64_t columns, bool single, double *all)
{
    enum { COUNT = 70 };
    const double rounding = (COUNT + 32) * (single ? 0x1p-24 : 0x1p-53);
    const int64_t ld_left = frgi_costs_ld(rows), ld = frgi_costs_ld(columns);
    frgi_costs left = costs_of(COUNT, rows, single), right = costs_of(COUNT, columns, single),
               to = costs_of(rows, columns, single);
    frgi_products w;
    CHECK_OK(ctx, frgi_products_open(&w, ctx, frg_threads(ctx), single));
    for (int64_t k = 0; k < COUNT; k++)
        for (int64_t i = 0; i < rows + columns; i++)
            put(i < rows ? &left : &right, k, i < rows ? i : i - rows, test_uniform() - 0.5);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < ld; j++)
            put(&to, i, j, (double)NAN);
    frgi_costs_blend(&w, 0, &to, left.at, ld_left, right.at, ld, COUNT, -2);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < ld; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < COUNT && j < columns; k++) {
                const double x = -2 * frgi_costs_get(&left, k, i) * frgi_costs_get(&right, k, j);
                sum += x;
                size += fabs(x);
            }
            all[i * ld + j] = frgi_costs_get(&to, i, j);
            CHECK_NEAR(all[i * ld + j], sum, rounding * size);
        }
    volatile double least = DBL_MIN;
    CHECK(least / 2 > 0);
    frgi_products_close(&w);
    free(left.at);
    free(right.at);
    free(to.at);
}

static void products(void)
{
    enum { SHAPES = 2, MOST = 300 * 1008 };
    static const int64_t shapes[SHAPES][2] = {{64, 1001}, {300, 70}};
    double *const one = calloc(2 * MOST, sizeof *one), *const two = one + MOST;
    for (int k = 0; k < 2 * SHAPES; k++) {
        const uint64_t drawn = test_now.random;
        for (int threads = 1; threads <= 2; threads++) {
            test_now.random = drawn;
            frg_context *ctx = test_context_with(threads, NULL, NULL);
            check_product(ctx, shapes[k / 2][0], shapes[k / 2][1], k % 2, threads > 1 ? two : one);
            frg_context_destroy(ctx);
        }
        CHECK_BITS(one, two, MOST * sizeof *one);
    }
    free(one);
}

/* Costs of a list with several entries to a row and to a column are the plain sum over it, more
 * rows than columns or fewer: sums of up to 90 products of distances up to 3 and masses below 1 /
 * 30, in doubles. */
static void costs_of_lists(void)
{
    enum { N = 30, M = 17, COUNT = 90 };
    frg_context *ctx = test_context();
    for (int k = 0; k < 2; k++) {
        frgi_spaces s = k ? cropped_spaces(ctx, N, M) : cropped_spaces(ctx, N, N);
        frgi_descent d;
        CHECK_OK(ctx, frgi_descent_open(&d, &s, 2));
        for (int e = 0; e < COUNT; e++)
            d.plan.entries[e] =
                (frgi_entry){e / 3, (int32_t)((e % 3 * 5 + e / 3 * 7) % s.m), test_uniform() / N};
        d.plan.count = COUNT;
        frgi_descent_costs(&d, &d.plan, 1, &d.k_plan);
        for (int64_t i = 0; i < s.n; i++)
            for (int64_t j = 0; j < s.m; j++) {
                double sum = 0;
                for (int e = 0; e < COUNT; e++)
                    sum -= 2 * d.plan.entries[e].mass *
                           frgi_costs_get(&s.x, i, d.plan.entries[e].i) *
                           frgi_costs_get(&s.y, d.plan.entries[e].j, j);
                CHECK_NEAR(frgi_costs_get(&d.k_plan, i, j), sum, 1e-13 * COUNT);
            }
        frgi_descent_close(&d);
        free_spaces(&s);
    }
    frg_context_destroy(ctx);
}

/* Behind a descent and its exchanges no exchange of two images is lower, J summed anew for each; J
 * has fallen. */
static void exchanges(void)
{
    frg_context *ctx = test_context();
    int64_t fell = 0;
    for (int k = 0; k < 40; k++) {
        const int64_t n = 5 + k % 9;
        float linear[13 * 13];
        for (int q = 0; q < 13 * 13; q++)
            linear[q] = (float)test_uniform();
        frgi_spaces s = spaces_of(ctx, n, false, k / 2 % 2, k % 2 ? linear : NULL);
        frgi_descent d;
        graph_tasks tasks = {0};
        CHECK_OK(ctx, frgi_descent_open(&d, &s, 2));
        d.tasks = &tasks;
        draw(&d.k_plan, 0);
        frgi_descent_begin(&d);
        frgi_descend(&d, 100);
        const double before = d.energy;
        const bool lower = d.is_vertex && frgi_descent_swap(&d);
        const double found = frgi_sparse_energy(&s, &d.plan), slack = 1e-8 * s.constant;
        CHECK_NEAR(d.energy, found, 1e-13 * s.constant);
        CHECK(lower ? d.energy < before : d.energy == before);
        fell += lower;
        for (int64_t i = 0; d.is_vertex && i < n; i++)
            for (int64_t q = 0; q < i; q++) {
                frgi_entry *const e = d.plan.entries;
                const int32_t was = e[i].j;
                e[i].j = e[q].j;
                e[q].j = was;
                CHECK(frgi_sparse_energy(&s, &d.plan) >= found - slack);
                e[q].j = e[i].j;
                e[i].j = was;
            }
        frgi_descent_close(&d);
        free_spaces(&s);
    }
    CHECK_SAYS(fell > 0, "of 40 problems %lld", (long long)fell); /* about 30 */
    frg_context_destroy(ctx);
}

/* Of as many axes as points Q W Q' is all of C, but for roundings of floats in sums of n terms three
 * times over; of fewer, random numbers lose what the eigenvalues of such a matrix have behind the
 * 64th: more than a tenth of 200.  Costs on distances of low rank are then those of the list. */
static void low_rank(void)
{
    frg_context *ctx = test_context();
    for (int k = 0; k < 11; k++) {
        const int64_t n = k < 10 ? 4 + 6 * k : 200;
        frgi_spaces s = spaces_of(ctx, n, true, k % 2 || k == 10, NULL);
        frgi_lifted l[2] = {{0}};
        frgi_descent d;
        CHECK_OK(ctx, frgi_lifted_open(l, &s));
        CHECK_OK(ctx, frgi_descent_open(&d, &s, 2));
        const double tail = fmax(frgi_lifted_tail(&l[0], &s.x), frgi_lifted_tail(&l[1], &s.y));
        CHECK_SAYS(k == 10 ? tail > 0.1 : tail <= pow((double)n * 0x1p-20, 2), "%g of %lld", tail,
                   (long long)n);
        for (int64_t i = 0; i < n; i++)
            d.plan.entries[i] = (frgi_entry){(int32_t)i, (int32_t)test_below(n), s.a[i]};
        d.plan.count = n;
        frgi_descent_costs(&d, &d.plan, 1, &d.k_vertex);
        frgi_lifted_costs(l, &d.plan, &d);
        double largest = 0, error = 0;
        for (int64_t q = 0; q < n * n; q++) {
            const double cost = frgi_costs_get(&d.k_vertex, q / n, q % n);
            largest = fmax(largest, fabs(cost));
            error = fmax(error, fabs(cost - frgi_costs_get(&d.k_plan, q / n, q % n)));
        }
        CHECK_SAYS(k == 10 || error <= largest * (double)n * 0x1p-19, "%g of %g", error, largest);
        frgi_descent_close(&d);
        frgi_lifted_close(l, ctx);
        free_spaces(&s);
    }
    frg_context_destroy(ctx);
}

/* Points of a line with weights that rise along it, of which more are wanted than farthest ones: the
 * k-th from the left stands for the weight from k / count to (k + 1) / count, but for one point at
 * each of the ten cuts that make a part; all have one share.  Of as many as there are each has its
 * own. */
static void spread_points(void)
{
    enum { N = 1500, COUNT = 600 };
    frg_context *ctx = test_context();
    double *const w = malloc(sizeof(double) * N), total = 0, most = 0, sum = 0, before = 0;
    frgi_costs c = costs_of(N, N, true), out[2];
    double *share[2] = {NULL, NULL};
    int32_t *chosen[2] = {NULL, NULL};
    for (int i = 0; i < N; i++)
        total += w[i] = 0.1 + test_uniform() + 4 * (double)i / N;
    for (int i = 0; i < N; i++) {
        w[i] /= total;
        most = fmax(most, w[i]);
        for (int q = 0; q < N; q++)
            put(&c, i, q, abs(i - q));
    }
    for (int k = 0; k < 2; k++)
        CHECK_OK(ctx,
                 frgi_coarse_side(ctx, &c, w, k ? N : COUNT, true, &out[k], &share[k], &chosen[k]));
    const bool turned = chosen[0][0] > chosen[0][COUNT - 1];
    for (int q = 0, i = 0; q < COUNT; q++) {
        const int at = chosen[0][turned ? COUNT - 1 - q : q];
        CHECK(q == 0 || at >= i);
        for (; i <= at; i++)
            sum += w[i];
        CHECK_SAYS(sum >= (double)q / COUNT - 10 * most &&
                       sum - w[at] <= (double)(q + 1) / COUNT + 10 * most,
                   "%d: %g", q, sum);
        CHECK(sum > before && share[0][q] == 1.0 / COUNT);
        before = sum;
    }
    for (int q = 0; q < N; q++)
        CHECK(share[1][q] == w[chosen[1][q]]);
    for (int k = 0; k < 2; k++) {
        char *costs = out[k].at;
        DROP(ctx, &costs);
        DROP(ctx, &share[k]);
        DROP(ctx, &chosen[k]);
    }
    free(c.at);
    free(w);
    frg_context_destroy(ctx);
}

/* Random numbers for distances and their copy in reverse order: of plans in random order and the
 * copy's own, be it of some points alone, the latter is taken, as its points keep their images. */
static void placed_among_all(void)
{
    enum { N = 60 };
    frg_context *ctx = test_context();
    for (int k = 0; k < 8; k++) {
        frgi_spaces s = spaces_of(ctx, N, true, 1, NULL);
        frgi_sparse plans[4];
        frgi_entry entries[4][N];
        int64_t count = k < 7 ? 4 : 1;
        const int truth = k % 4, step = 1 + k % 2;
        graph_tasks tasks = {0};
        for (int64_t q = 0; q < N * N; q++)
            put(&s.y, N - 1 - q / N, N - 1 - q % N, frgi_costs_get(&s.x, q / N, q % N));
        for (int p = 0; p < 4; p++) {
            plans[p] = (frgi_sparse){entries[p], N / step};
            for (int i = 0; i < N / step; i++) {
                const int32_t image = p == truth ? N - 1 - i * step : (int32_t)test_below(N);
                entries[p][i] = (frgi_entry){i * step, image, (double)step / N};
            }
        }
        CHECK_OK(ctx, frgi_place_best(&s, plans, &count, &tasks));
        CHECK_INT(count, 1);
        CHECK_SAYS(plans[0].entries == entries[k < 7 ? truth : 0], "%d", k);
        free_spaces(&s);
    }
    frg_context_destroy(ctx);
}

/* Of as many axes as points Q W Q' is all of C; costs of the annealed plan are those of a plan
 * whose vertex is no higher than the product, as J is concave for Euclidean distances and each step
 * of cooling lowers it but for its entropy. */
static void annealed(void)
{
    frg_context *ctx = test_context();
    for (int k = 0; k < 10; k++) {
        const int64_t n = 4 + 6 * k;
        frgi_spaces s = spaces_of(ctx, n, true, 0, NULL);
        frgi_features f;
        frgi_descent d;
        graph_tasks tasks = {0};
        double worst = 0, most = 0;
        CHECK_OK(ctx, frgi_features_open(&f, &s, false));
        CHECK_OK(ctx, frgi_features_lift(&f));
        CHECK_OK(ctx, frgi_descent_open(&d, &s, 2));
        d.tasks = &tasks;
        const frgi_lifted *const l = f.lifted;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t p = 0; p < n; p++)
                    for (int64_t q = 0; q < n; q++)
                        sum += (double)l->rows[i * l->ld + p] * (double)l->inner[p * l->ld + q] *
                               (double)l->rows[j * l->ld + q];
                most = fmax(most, frgi_costs_get(&s.x, i, j));
                worst = fmax(worst, fabs(sum - frgi_costs_get(&s.x, i, j)));
            }
        CHECK_SAYS(worst <= most * (double)n * 0x1p-20, "%g of %g", worst, most);
        frgi_start_costs(&f, 2, &d);
        frgi_descent_begin(&d);
        CHECK_SAYS(d.energy <= s.product, "%g, product %g", d.energy, s.product);
        frgi_descent_close(&d);
        frgi_features_close(&f);
        free_spaces(&s);
    }
    frg_context_destroy(ctx);
}

/* Eigenvectors of distances of full rank: C u = n l u.  The lifting is a product of floats of n
 * terms, as the eigenvalues are. The costs of a copy in another order are symmetric behind it:
 * signs of eigenvectors and turns among those of equal eigenvalues cancel.  They move as the
 * eigenvalues do, times 2 / BAND^3 = 75 and the largest eigenvalue over l, sqrt(n). */
static void spectra(void)
{
    frg_context *ctx = test_context();
    for (int k = 0; k < 8; k++) {
        const int64_t n = 5 + 8 * k;
        frgi_spaces s = spaces_of(ctx, n, true, k % 2, NULL);
        frgi_features f;
        frgi_descent d;
        double error = 0, most = 0, apart = 0, largest = 0;
        for (int64_t i = 0; i < n * n; i++)
            put(&s.y, n - 1 - i / n, n - 1 - i % n, frgi_costs_get(&s.x, i / n, i % n));
        CHECK_OK(ctx, frgi_features_open(&f, &s, false));
        CHECK_OK(ctx, frgi_features_lift(&f));
        CHECK_OK(ctx, frgi_features_more(&f));
        CHECK_OK(ctx, frgi_descent_open(&d, &s, 2));
        const frgi_spectrum *const e = f.spectrum;
        for (int64_t r = 0; r < n; r++)
            for (int64_t i = 0; i < n; i++) {
                double image = -(double)n * e->value[r] * (double)e->vectors[r * s.x.ld + i];
                for (int64_t j = 0; j < n; j++)
                    image += frgi_costs_get(&s.x, i, j) * (double)e->vectors[r * s.x.ld + j];
                error = fmax(error, fabs(image));
                most = fmax(most, (double)n * fabs(e->value[r]));
            }
        CHECK_SAYS(error <= most * (double)n * 0x1p-20, "%g of %g", error, most);
        frgi_start_costs(&f, FRGI_SPECTRAL, &d);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const double x = frgi_costs_get(&d.k_plan, i, n - 1 - j);
                largest = fmax(largest, fabs(x));
                apart = fmax(apart, fabs(x - frgi_costs_get(&d.k_plan, j, n - 1 - i)));
            }
        CHECK_SAYS(apart <= largest * 75 * pow((double)n, 1.5) * 0x1p-22, "%g of %g", apart,
                   largest);
        frgi_descent_close(&d);
        frgi_features_close(&f);
        free_spaces(&s);
    }
    frg_context_destroy(ctx);
}

/* A descent goes on from a plan of more entries than a vertex has, the product, and falls; the list
 * of its last vertex has room for n + m. */
static void resumed(void)
{
    enum { N = 12 };
    frg_context *ctx = test_context();
    for (int kind = 0; kind < 2; kind++) {
        frgi_spaces s = spaces_of(ctx, N, kind, kind, NULL);
        frgi_entry entries[N * N];
        frgi_descent d;
        graph_tasks tasks = {0};
        for (int32_t e = 0; e < N * N; e++)
            entries[e] = (frgi_entry){e / N, e % N, 1.0 / (N * N)};
        CHECK_OK(ctx, frgi_descent_open(&d, &s, 2));
        d.tasks = &tasks;
        frgi_descent_resume(&d, &(frgi_sparse){entries, N * N}, s.product, false, false);
        frgi_descend(&d, 100);
        CHECK_SAYS(d.energy < s.product, "%g, product %g", d.energy, s.product);
        CHECK(d.last.count <= 2 * N);
        frgi_descent_close(&d);
        free_spaces(&s);
    }
    frg_context_destroy(ctx);
}

static int by_value(const void *p, const void *q)
{
    const double x = *(const double *)p, y = *(const double *)q;
    return (x > y) - (x < y);
}

/* Near distances are 1 - exp(-(x / r)^2), r the quantile of the positive ones, and their start is
 * no worse than the product. */
static void near(void)
{
    frg_context *ctx = test_context();
    const double quantiles[FRGI_NEAR] = {0.05, 0.2};
    for (int k = 0; k < 6; k++) {
        const int64_t n = 6 + 10 * k;
        frgi_spaces s = spaces_of(ctx, n, true, 0, NULL);
        double *const all = malloc(sizeof(double) * (size_t)(n * n));
        frgi_features f;
        frgi_descent d;
        graph_tasks tasks = {0};
        int64_t count = 0;
        for (int64_t i = 0; i < n * n; i++) {
            all[count] = frgi_costs_get(&s.x, i / n, i % n);
            count += all[count] > 0;
        }
        qsort(all, (size_t)count, sizeof *all, by_value);
        CHECK_OK(ctx, frgi_features_open(&f, &s, false));
        CHECK_OK(ctx, frgi_features_lift(&f));
        CHECK_OK(ctx, frgi_features_more(&f));
        CHECK_OK(ctx, frgi_descent_open(&d, &s, 2));
        d.tasks = &tasks;
        for (int q = 0; q < FRGI_NEAR; q++) {
            const frgi_lifted *const l = f.near[q];
            const double range = all[(int64_t)(quantiles[q] * (double)(count - 1))];
            double worst = 0;
            for (int64_t i = 0; i < n * n; i++) {
                double sum = 0;
                for (int64_t t = 0; t < n * n; t++)
                    sum += (double)l->rows[i / n * l->ld + t / n] *
                           (double)l->inner[t / n * l->ld + t % n] *
                           (double)l->rows[i % n * l->ld + t % n];
                const double x = frgi_costs_get(&s.x, i / n, i % n) / range;
                worst = fmax(worst, fabs(sum + expm1(-x * x)));
            }
            CHECK_SAYS(worst <= (double)n * 0x1p-20, "%g", worst);
            for (int held = 0; held < 2; held++) {
                frgi_start_costs(&f, held ? FRGI_HELD + 1 + q : FRGI_FIRST_NEAR + q, &d);
                frgi_descent_begin(&d);
                frgi_descend(&d, 100);
                CHECK_SAYS(d.energy <= s.product, "%g, product %g", d.energy, s.product);
            }
        }
        frgi_descent_close(&d);
        frgi_features_close(&f);
        free_spaces(&s);
        free(all);
    }
    frg_context_destroy(ctx);
}

/* Powers and a pass, against doubles: 1.5e-7 of a power, sums of up to 37 terms, a scaling from two
 * of them. */
static void passes(void)
{
    frg_context *ctx = test_context();
    const frgi_anneal_ops *const ops = frgi_anneal_ops_of(ctx);
    enum { N = 23, M = 37 };
    frgi_costs c = costs_of(N, M, true), k = costs_of(N, M, true);
    float f[N], g[48] = {0}, a[N], b[48] = {0}, u[N], v[48] = {0}, sums[48];
    draw(&c, 0);
    for (int i = 0; i < N; i++) {
        f[i] = (float)test_normal();
        a[i] = (float)(0.1 + test_uniform());
        u[i] = 1;
    }
    for (int j = 0; j < M; j++) {
        g[j] = (float)test_normal();
        b[j] = (float)(0.1 + test_uniform());
        v[j] = (float)(0.1 + test_uniform());
    }
    double was[M], image[M] = {0};
    for (int j = 0; j < M; j++)
        was[j] = (double)v[j];
    ops->kernel(&c, f, g, 2.5f, &k);
    ops->pass(&k, a, b, u, v, sums);
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int j = 0; j < M; j++) {
            const double z = (double)f[i] + (double)g[j] - 2.5 * frgi_costs_get(&c, i, j);
            CHECK_NEAR(frgi_costs_get(&k, i, j), exp2(z), 1e-5 * exp2(z));
            sum += exp2(z) * was[j];
        }
        CHECK_NEAR((double)u[i], (double)a[i] / sum, 1e-4 * (double)a[i] / sum);
        for (int j = 0; j < M; j++)
            image[j] += (double)a[i] / sum * frgi_costs_get(&k, i, j);
    }
    for (int j = 0; j < M; j++)
        CHECK_NEAR((double)v[j], (double)b[j] / image[j], 1e-4 * (double)b[j] / image[j]);
    free(c.at);
    free(k.at);
    frg_context_destroy(ctx);
}

/* The same bits from any number of threads: other numbers of points, a copy, and so many that
 * starts are cut and reheated. */
static void threads(void)
{
    const int64_t sizes[][2] = {{150, 140}, {150, 150}, {460, 460}};
    for (int k = 0; k < 3; k++) {
        if (!test_turn(k, 3))
            continue;
        const int64_t n = sizes[k][0], m = sizes[k][1];
        double *const x = malloc(sizeof(double) * (size_t)(2 * n + 3 * m + 2 * n * m));
        double *const y = x + 2 * n, *const first = y + 3 * m, *const other = first + n * m;
        points(x, n, 2);
        points(y, m, 3);
        const frg_array ax = matrix(x, n, 2), ay = k == 1 ? ax : matrix(y, m, 3);
        for (int t = 1; t <= 3; t++) {
            frg_context *ctx = test_context_with(t, NULL, NULL);
            const frg_gw_opts o = vertex_options(FRG_GW_DISTANCE_EUCLIDEAN);
            align_sides(ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay}, NULL, &o,
                        t == 1 ? first : other, NULL);
            if (t > 1)
                CHECK_BITS(other, first, sizeof(double) * (size_t)(n * m));
            frg_context_destroy(ctx);
        }
        free(x);
    }
}

static double distance_of(const double *x, int64_t i, int64_t k)
{
    return hypot(hypot(x[3 * i] - x[3 * k], x[3 * i + 1] - x[3 * k + 1]),
                 x[3 * i + 2] - x[3 * k + 2]);
}

/* A noisy copy in another order, the same for every seed: the starts that come first agree, so that
 * there are no others (24 coarse ones; 4 of their plans and profiles; of 460 points at most 4
 * starts in between and the one that these agree on; of 2501, of equal weights and of others, six
 * plans of each level in between and two more starts there, then one), and the plan is as low as the
 * copy's own but for float distances, 2^-23 of the largest: (e + 2^-23)^2 where their mean error e
 * is a hundredth. */
static void agreeing(void)
{
    frg_context *ctx = test_context();
    const int64_t sizes[] = {300, 460, 2501, 2501};
    for (int k = 0; k < 4; k++) {
        const int64_t n = sizes[k];
        double *const x = malloc(sizeof(double) * (size_t)(8 * n)), *const y = x + 3 * n;
        double *const a = y + 3 * n, *const b = a + n, truth = 0, total = 0;
        for (int64_t i = 0; i < n; i++)
            total += a[i] = k < 3 ? 1 : 1 + (double)(i * i % 7);
        for (int64_t i = 0; i < n; i++)
            b[n - 1 - i] = a[i] /= total;
        for (int64_t i = 0; i < 3 * n; i++) { /* in a box, denser at one corner of it */
            const double u = (double)i * 0.754877666 * (double)(1 + i % 3);
            x[i] = pow(u - floor(u), 2) / (double)(1 + i % 3);
            y[i] = x[i] + 0.005 * sin(97.3 * (double)i);
        }
        for (int64_t i = 0; i < n; i++)
            for (int64_t q = 0; q < n; q++)
                truth += a[i] * a[q] * pow(distance_of(x, i, q) - distance_of(y, i, q), 2);
        for (int64_t i = 0; i < n / 2; i++)
            for (int c = 0; c < 3; c++) {
                const double was = y[3 * i + c];
                y[3 * i + c] = y[3 * (n - 1 - i) + c];
                y[3 * (n - 1 - i) + c] = was;
            }
        const frg_array ax = matrix(x, n, 3), ay = matrix(y, n, 3);
        const frg_gw_opts o = vertex_options(FRG_GW_DISTANCE_EUCLIDEAN);
        const frg_gw_report r =
            align_sides(ctx, (frg_gw_side){.data = &ax, .weights = a},
                        (frg_gw_side){.data = &ay, .weights = b}, NULL, &o, NULL, NULL);
        CHECK(k < 2 || (r.started_from == FRG_GW_START_COARSE && r.reason == FRG_GW_STATIONARY));
        CHECK_SAYS(r.starts <= (k < 2 ? 24 + 5 : 24 + 8 + 8 + 1 + 32), "%lld of %lld",
                   (long long)r.starts, (long long)n);
        CHECK_SAYS(r.energy <= truth * (1 + 1e-4), "%g, truth %g", r.energy, truth);
        free(x);
    }
    frg_context_destroy(ctx);
}

/* Random numbers for distances: no starts agree, so that there are all of them and groups of those
 * that are reheated. */
static void disagreeing(void)
{
    enum { N = 140 };
    static double c[N * N], d[N * N];
    frg_context *ctx = test_context();
    for (int i = 0; i < N; i++)
        for (int q = 0; q <= i; q++) {
            c[i * N + q] = c[q * N + i] = i == q ? 0 : test_uniform();
            d[i * N + q] = d[q * N + i] = i == q ? 0 : test_uniform();
        }
    const frg_array ac = matrix(c, N, N), ad = matrix(d, N, N);
    const frg_gw_opts o = vertex_options(FRG_GW_DISTANCE_MATRIX);
    const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &ac}, (frg_gw_side){.data = &ad},
                                        NULL, &o, NULL, NULL);
    CHECK_SAYS(r.starts >= 24 + 4 + 8, "%lld", (long long)r.starts);
    frg_context_destroy(ctx);
}

/* E of a plan with one image for every row, from the distances that were given, in long double. */
static long double energy_of(const double *c, const double *d, const int32_t *image, int64_t n)
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++) {
            const long double gap = (long double)c[i * n + k] - d[image[i] * n + image[k]];
            sum += gap * gap;
        }
    return sum / (long double)(n * n);
}

/* E and its plan by one type. */
static frg_gw_report by_dtype(frg_context *ctx, const double *c, const double *d, int64_t n,
                              frg_gw_dtype dtype, double *plan, int32_t *image)
{
    const frg_array ac = matrix(c, n, n), ad = matrix(d, n, n);
    frg_gw_opts o = vertex_options(FRG_GW_DISTANCE_MATRIX);
    o.dtype = dtype;
    const frg_gw_report r = align_sides(ctx, (frg_gw_side){.data = &ac}, (frg_gw_side){.data = &ad},
                                        NULL, &o, plan, NULL);
    for (int64_t i = 0; i < n; i++) {
        image[i] = 0;
        for (int64_t j = 1; j < n; j++)
            image[i] = plan[i * n + j] > plan[i * n + image[i]] ? (int32_t)j : image[i];
    }
    return r;
}

/* By doubles E is that of the plan and the distances given but for n + 8 roundings of sums of all
 * squares, 2^-52 each, twice.  Floats round distances by 2^-25 on average, and 2 sqrt(E) 2^-25 / n
 * of that remains in the mean: far more for 40 points.  Both find the same images (but for some of
 * equal energy), doubles no higher ones. */
static void doubles(void)
{
    frg_context *ctx = test_context();
    const int64_t sizes[] = {40, 140, 200};
    int64_t further = 0;
    for (int k = 0; k < 3; k++) {
        const int64_t n = sizes[k];
        double *const x = malloc(sizeof(double) * (size_t)(6 * n + 3 * n * n)), *const y =
                                                                                    x + 3 * n;
        double *const c = y + 3 * n, *const d = c + n * n, *const plan = d + n * n;
        int32_t *const image = malloc(sizeof(int32_t) * (size_t)(2 * n)), *const other = image + n;
        double squares = 0;
        int64_t same = 0;
        points(x, n, 3);
        for (int64_t i = 0; i < 3 * n; i++)
            y[3 * (n - 1 - i / 3) + i % 3] = x[i] + 0.02 * test_normal();
        distances_of(x, n, 3, c);
        distances_of(y, n, 3, d);
        for (int64_t q = 0; q < n * n; q++)
            squares += (c[q] * c[q] + d[q] * d[q]) / (double)(n * n);
        const frg_gw_report f = by_dtype(ctx, c, d, n, FRG_GW_DTYPE_F32, plan, other);
        const frg_gw_report r = by_dtype(ctx, c, d, n, FRG_GW_DTYPE_F64, plan, image);
        const long double energy = energy_of(c, d, image, n), of_floats = energy_of(c, d, other, n);
        const double bound = 2 * (double)(n + 8) * 0x1p-52 * squares;
        CHECK(f.dtype == FRG_GW_DTYPE_F32 && r.dtype == FRG_GW_DTYPE_F64);
        CHECK(r.vertex && r.reason == FRG_GW_STATIONARY);
        CHECK_SAYS(fabsl(r.energy - energy) <= bound, "%g of %g", (double)(r.energy - energy),
                   bound);
        CHECK_SAYS(energy <= of_floats + bound, "%g, floats %g", (double)energy, (double)of_floats);
        further += fabsl(f.energy - of_floats) > bound;
        for (int64_t i = 0; i < n; i++)
            same += image[i] == other[i];
        CHECK_SAYS(k == 0 || 10 * same >= 9 * n, "%lld of %lld", (long long)same, (long long)n);
        free(image);
        free(x);
    }
    CHECK_SAYS(further > 0, "%lld", (long long)further);
    frg_context_destroy(ctx);
}

/* What has no doubles says so and names what has. */
static void doubles_refused(void)
{
    enum { N = 12 };
    frg_context *ctx = test_context();
    double x[N * 3], cost[N * N] = {0};
    points(x, N, 3);
    const frg_array ax = matrix(x, N, 3), linear = matrix(cost, N, N);
    static const struct {
        frg_gw_mode mode;
        frg_gw_distance distance;
        double epsilon, weight;
        const char *says;
    } cases_of[] = {{FRG_GW_SAMPLED, FRG_GW_DISTANCE_EUCLIDEAN, 0.001, 0, "take vertex"},
                    {FRG_GW_EXACT, FRG_GW_DISTANCE_EUCLIDEAN, 0.001, 0, "mode exact"},
                    {FRG_GW_AUTO, FRG_GW_DISTANCE_EUCLIDEAN, 0.01, 0, "epsilon is given"},
                    {FRG_GW_VERTEX, FRG_GW_DISTANCE_AUTO, 0.001, 0, "euclidean and matrix"},
                    {FRG_GW_VERTEX, FRG_GW_DISTANCE_EUCLIDEAN, 0.001, 0.5, "a linear cost"}};
    for (size_t k = 0; k < sizeof cases_of / sizeof *cases_of; k++) {
        frg_gw_opts o = default_options(cases_of[k].distance);
        frg_gw *s = NULL;
        o.mode = cases_of[k].mode;
        o.epsilon = cases_of[k].epsilon;
        o.linear_weight = cases_of[k].weight;
        o.k = 3;
        o.dtype = FRG_GW_DTYPE_F64;
        const frg_gw_side side = {.data = &ax};
        const frg_status status =
            frg_gw_create(&s, ctx, side, side, o.linear_weight > 0 ? &linear : NULL, &o);
        CHECK_STATUS(status, FRG_UNSUPPORTED);
        CHECK_SAYS(strstr(frg_message(ctx), cases_of[k].says), "%s", frg_message(ctx));
    }
    frg_gw_opts o = default_options(FRG_GW_DISTANCE_EUCLIDEAN);
    frg_gw *s = NULL;
    o.dtype = FRG_GW_DTYPE_F64;
    const frg_gw_side side = {.data = &ax};
    CHECK_OK(ctx, frg_gw_create(&s, ctx, side, side, NULL, &o));
    CHECK_STATUS(frg_gw_start_plan(s, linear), FRG_UNSUPPORTED);
    CHECK_OK(ctx, frg_gw_run(s, NULL));
    CHECK(frg_gw_get(s)->dtype == FRG_GW_DTYPE_F64 && frg_gw_get(s)->mode == FRG_GW_VERTEX);
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
}

/* An epsilon beside auto: sampled steps begin at the vertex, which finds every point of a copy, and
 * end in its basin.  At the last epsilon, 5e-4 of the largest squared distance, a point shares its
 * mass with those within a few hundredths of the diameter; of a hundred random points most keep
 * half of it.  Another start that is given is taken. */
static void entropic(void)
{
    enum { N = 100 };
    frg_context *ctx = test_context();
    double x[N * 3], y[N * 3];
    points(x, N, 3);
    for (int i = 0; i < N; i++)
        for (int c = 0; c < 3; c++)
            y[3 * i + c] = (c == 2 ? -1 : 1) * x[3 * (N - 1 - i) + c];
    const frg_array ax = matrix(x, N, 3), ay = matrix(y, N, 3);
    for (int k = 0; k < 5; k++) {
        const bool at_vertex = k < 2 || k == 4;
        frg_gw_opts o = default_options(FRG_GW_DISTANCE_EUCLIDEAN);
        int64_t match[N], found = 0;
        o.epsilon = 0.005;
        o.mode = k == 1 ? FRG_GW_SAMPLED : FRG_GW_AUTO;
        o.start_from = k == 1   ? FRG_GW_START_VERTEX
                       : k == 2 ? FRG_GW_START_PRODUCT
                                : FRG_GW_START_AUTO;
        o.n_start = k == 3 ? 2 : o.n_start;
        o.scale = k == 4 ? FRG_GW_SCALE_NONE : o.scale; /* no start: only part of "multiscale" */
        frg_gw *s = NULL;
        if (!CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax},
                                         (frg_gw_side){.data = &ay}, NULL, &o)))
            continue;
        const frg_status status = frg_gw_run(s, NULL);
        const frg_gw_report r = *frg_gw_get(s);
        /* other starts may end above this one, and say so; unscaled, epsilon is a smaller one */
        CHECK_SAYS(status == FRG_OK || (k >= 2 && r.reason == FRG_GW_BEATEN) ||
                       (k == 4 && status == FRG_MAX_ITER),
                   "%d: %s", k, frg_status_name(status));
        CHECK_OK(ctx, frg_plan_argmax(frg_gw_plan(s), match));
        for (int i = 0; i < N; i++)
            found += match[i] == N - 1 - i;
        CHECK_SAYS((r.started_from == FRG_GW_START_VERTEX) == at_vertex, "%d: from %s", k,
                   frg_gw_start_name(r.started_from));
        CHECK_SAYS(k >= 2 || (found >= N / 2 && r.vertex_energy <= 1e-10 * r.energy_product &&
                              r.energy < 0.1 * r.energy_product),
                   "%d: %lld of %d found, energy %g, of the vertex %g, of the product %g", k,
                   (long long)found, N, r.energy, r.vertex_energy, r.energy_product);
        CHECK(r.mode == FRG_GW_SAMPLED && isnan(r.vertex_energy) == !at_vertex);
        frg_gw_destroy(s);
    }
    frg_context_destroy(ctx);
}

/* What auto takes, and what it says of it: vertex, but where something is given that this mode has
 * no part in, be it at its default, where not all mass is carried or marginals are relaxed, and
 * where there are too many points. */
static void choices(void)
{
    enum { N = 12, MANY = 5001 };
    frg_context *ctx = test_context();
    double x[N * 2], plan[N * N], *const line = calloc(MANY, sizeof *line);
    points(x, N, 2);
    for (int i = 0; i < N * N; i++)
        plan[i] = 1.0 / (N * N);
    for (int i = 0; i < MANY; i++)
        line[i] = i;
    const frg_array ax = matrix(x, N, 2), many = matrix(line, MANY, 1);
    const struct {
        const char *given;  /* by frg_gw_give */
        const char *reason; /* what it is told of */
    } each[] = {{NULL, "no option"},
                {"k", "no option"},
                {"max_iter", "no option"},
                {"epsilon", "epsilon"},
                {"anchors", "anchors"},
                {"multiscale", "multiscale"},
                {"start_from", "start_"},
                {"rank", "rank"},
                {"potentials", "potentials"},
                {NULL, "tol"},
                {NULL, "relaxed"},
                {NULL, "relaxed"},
                {NULL, "a plan to start"},
                {NULL, "potentials to"},
                {NULL, "too many"}};
    for (int k = 0; k < (int)(sizeof each / sizeof *each); k++) {
        frg_gw_opts o = default_options(FRG_GW_DISTANCE_EUCLIDEAN);
        frg_gw_give(&o, each[k].given);
        o.tol = k == 9 ? 1e-4 : o.tol;
        o.mass = k == 10 ? 0.5 : 0;
        o.rho_target = k == 11 ? 0.5 : o.rho_target;
        o.max_iter = 1;
        const frg_gw_side side = {.data = &ax}, other = {.data = k == 14 ? &many : &ax};
        frg_gw *s = NULL;
        if (!CHECK_OK(ctx, frg_gw_create(&s, ctx, side, other, NULL, &o)))
            continue;
        if (k == 12)
            CHECK_OK(ctx, frg_gw_start_plan(s, matrix(plan, N, N)));
        if (k == 13)
            CHECK_OK(ctx, frg_gw_start_potentials(s, plan, NULL));
        if (k < 14) /* of many points it is chosen when they are given as well */
            CHECK(frg_gw_run(s, NULL) >= 0);
        const frg_gw_report r = *frg_gw_get(s);
        CHECK_SAYS((k == 14 || r.mode == (k < 3 ? FRG_GW_VERTEX : FRG_GW_SAMPLED)) &&
                       strncmp(r.mode_reason, "auto: ", 6) == 0 &&
                       strstr(r.mode_reason, each[k].reason),
                   "%d: %s, %s", k, frg_gw_mode_name(r.mode), r.mode_reason);
        frg_gw_destroy(s);
        o.mode = FRG_GW_VERTEX; /* the same options are refused where it is asked for */
        s = NULL;
        if (k >= 3 && k < 12)
            CHECK_STATUS(frg_gw_create(&s, ctx, side, side, NULL, &o), FRG_UNSUPPORTED);
        frg_gw_destroy(s);
    }
    free(line);
    frg_context_destroy(ctx);
}

/* What the mode has no part in is refused by name. */
static void refusals(void)
{
    frg_context *ctx = test_context();
    double x[20], y[20], g[100] = {0};
    points(x, 10, 2);
    points(y, 10, 2);
    const frg_array ax = matrix(x, 10, 2), ay = matrix(y, 10, 2);
    frg_gw *s = NULL;
    for (int k = 0; k < 5; k++) {
        frg_gw_opts o = vertex_options(FRG_GW_DISTANCE_EUCLIDEAN);
        o.epsilon = k == 0 ? 0.02 : o.epsilon;
        o.anchors = k == 1 ? 20 : o.anchors;
        o.rank = k == 2 ? 3 : 0;
        o.mass = k == 3 ? 0.5 : 0;
        o.polish = k != 4;
        const char *const names[] = {"epsilon", "anchors", "rank", "mass", "polish"};
        CHECK_STATUS(frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay},
                                   NULL, &o),
                     FRG_UNSUPPORTED);
        CHECK_SAYS(strstr(frg_message(ctx), names[k]) != NULL, "%s", frg_message(ctx));
    }
    const frg_gw_opts o = vertex_options(FRG_GW_DISTANCE_EUCLIDEAN);
    double f[10];
    if (CHECK_OK(ctx, frg_gw_create(&s, ctx, (frg_gw_side){.data = &ax}, (frg_gw_side){.data = &ay},
                                    NULL, &o))) {
        CHECK_STATUS(frg_gw_start_plan(s, matrix(g, 10, 10)), FRG_UNSUPPORTED);
        CHECK_STATUS(frg_gw_start_potentials(s, f, NULL), FRG_UNSUPPORTED);
        CHECK_OK(ctx, frg_gw_run(s, NULL));
        CHECK_STATUS(frg_gw_potentials(s, f, NULL), FRG_UNSUPPORTED);
        CHECK_STATUS(frg_plan_vjp(frg_gw_plan(s), matrix(g, 10, 10), FRG_GW_GRAD_IMPLICIT,
                                  matrix(g, 10, 10), NULL, NULL),
                     FRG_UNSUPPORTED);
        CHECK(strstr(frg_message(ctx), "epsilon") != NULL);
        frg_gw_destroy(s);
    }
    frg_context_destroy(ctx);
}

/* frg_emd: marginals, and duals that are feasible and have the plan's cost; points without weight,
 * any mass.  Errors: 64 roundings of the largest cost along a path of the tree. */
static void exact_transport(void)
{
    enum { MOST = 40 };
    static double cost[MOST * MOST], plan[MOST * MOST], a[MOST], b[MOST], f[MOST], g[MOST];
    frg_context *ctx = test_context();
    for (int kind = 0; kind < 60; kind++) {
        const int n = 1 + (int)(MOST * test_uniform()),
                  m = kind % 2 ? n : 1 + (int)(MOST * test_uniform());
        double sum_a = 0, sum_b = 0, value = 0, dual = 0;
        frg_emd_report r;
        for (int i = 0; i < n; i++)
            sum_a += a[i] = kind % 2                        ? 2.0 / n
                            : i > 0 && test_uniform() < 0.2 ? 0
                                                            : 0.1 + test_uniform();
        for (int j = 0; j < m; j++)
            sum_b += b[j] = kind % 2                        ? 2.0 / n
                            : j > 0 && test_uniform() < 0.2 ? 0
                                                            : 0.1 + test_uniform();
        for (int j = 0; j < m; j++)
            b[j] *= sum_a / sum_b;
        for (int k = 0; k < n * m; k++)
            cost[k] = kind % 3 ? test_normal() : floor(4 * test_uniform());
        CHECK_STATUS(frg_emd(ctx, frg_matrix(cost, FRG_F64, n, m, m), a, b,
                             frg_matrix(plan, FRG_F64, n, m, m), f, g, &r),
                     FRG_OK);
        for (int i = 0; i < n; i++) {
            double row = 0;
            for (int j = 0; j < m; j++) {
                row += plan[i * m + j];
                value += plan[i * m + j] * cost[i * m + j];
                CHECK(plan[i * m + j] >= 0 && f[i] + g[j] - cost[i * m + j] < 1e-12);
            }
            CHECK(fabs(row - a[i]) < 1e-13 * sum_a);
            dual += f[i] * a[i];
        }
        for (int j = 0; j < m; j++) {
            double column = 0;
            for (int i = 0; i < n; i++)
                column += plan[i * m + j];
            CHECK(fabs(column - b[j]) < 1e-13 * sum_a);
            dual += g[j] * b[j];
        }
        CHECK(fabs(value - r.cost) < 1e-12 * sum_a && fabs(value - dual) < 1e-11 * sum_a);
        CHECK(r.optimal && r.entries <= n + m - 1);
    }
    frg_context_destroy(ctx);
}

/* Costs that are as large as what stands for "above all of them" has units of the last place: paths
 * end, at the least cost of the same numbers near 1, scaled by a power of two. */
static void large_costs(void)
{
    enum { N = 40 };
    frg_context *ctx = test_context();
    double cost[2][N * N], plan[N * N], weight[N];
    for (int uneven = 0; uneven < 2; uneven++) {
        frg_emd_report r[2];
        for (int e = 0; e < N * N; e++)
            cost[0][e] = test_uniform() - 0.5;
        for (int i = 0; i < N; i++)
            weight[i] = uneven ? 1 + (double)(i % 3) : 1;
        for (int k = 0; k < 2; k++) {
            for (int e = 0; e < N * N; e++)
                cost[k][e] = ldexp(cost[0][e], k == 0 ? 0 : 60);
            CHECK_OK(ctx, frg_emd(ctx, frg_matrix(cost[k], FRG_F64, N, N, N), weight, weight,
                                  frg_matrix(plan, FRG_F64, N, N, N), NULL, NULL, &r[k]));
            CHECK(r[k].optimal);
        }
        /* an optimum within the rounding of N sums of duals */
        CHECK_SAYS(fabs(ldexp(r[1].cost, -60) - r[0].cost) <= 1e-12 * N, "%g beside %g",
                   ldexp(r[1].cost, -60), r[0].cost);
    }
    frg_context_destroy(ctx);
}

/* Of a run that is stopped an assignment is complete, and looks at no path any more; frg_emd leaves
 * its outputs alone. */
static void stopped(void)
{
    enum { MOST = 600 };
    frg_context *ctx = test_context();
    double *const plan = malloc(MOST * MOST * sizeof *plan);
    double *const weights = malloc(2 * MOST * sizeof *weights);
    for (int kind = 0; kind < 4; kind++) {
        const int64_t n = kind % 2 ? MOST : 30;
        frgi_costs c = costs_of(n, n, false);
        frgi_assign a;
        draw(&c, 2);
        frg_interrupt_clear(ctx);
        CHECK_OK(ctx, frgi_assign_open(&a, ctx, n, false));
        frgi_assign_solve(&a, &c, false);
        const double best = assigned(&a, &c);
        const int64_t scans = a.scans;
        frg_interrupt(ctx);
        frgi_assign_forget(&a);
        frgi_assign_solve(&a, &c, false);
        CHECK(assigned(&a, &c) >= best - 1e-9 * fabs(best));
        CHECK(kind % 2 == 0 || a.scans - scans < scans);
        frgi_assign_close(&a, ctx);
        for (int64_t i = 0; i < 2 * n; i++)
            weights[i] = kind < 2 ? 1 : 1 + (double)(i % n) / (double)n;
        for (int64_t i = 0; i < n * n; i++)
            plan[i] = 7;
        const frg_array cost = frg_matrix(c.at, FRG_F64, n, n, c.ld);
        frg_emd_report r = {.entries = 7};
        CHECK_STATUS(frg_emd(ctx, cost, weights, weights + n, frg_matrix(plan, FRG_F64, n, n, n),
                             NULL, NULL, &r),
                     FRG_INTERRUPTED);
        for (int64_t i = 0; i < n * n; i++)
            CHECK(plan[i] >= 7 && plan[i] <= 7);
        CHECK(r.entries == 7);
        free(c.at);
    }
    free(plan);
    free(weights);
    frg_context_destroy(ctx);
}

/* The energies of a report by their definitions: E in the caller's units, J in scaled ones, of sides
 * of other sizes, with and without a linear cost, in either mode; E of a copy is not below 0 by
 * rounding.  Distances are floats: 2^-22 of the largest squares. */
static void reported(void)
{
    enum { N = 9, M = 11 };
    frg_context *ctx = test_context();
    for (int way = 0; way < 8; way++) {
        const double theta = (double[]){0, 0.4, 1, 0}[way % 4];
        const bool copy = way % 4 == 3;
        const int m = copy ? N : M;
        double x[N * 2], y[M * 2], c[N * N], d[M * M], linear[N * M], plan[N * M];
        for (int i = 0; i < N * 2; i++)
            x[i] = 50 * test_normal();
        for (int j = 0; j < M * 2; j++)
            y[j] = copy && j < N * 2 ? x[j] : 0.5 * test_normal();
        for (int e = 0; e < N * M; e++)
            linear[e] = (double)(float)test_uniform();
        distances_of(x, N, 2, c);
        distances_of(y, m, 2, d);
        double most_c = 0, most_d = 0, e = 0, scaled = 0, cost = 0, product = 0;
        for (int i = 0; i < N * N; i++)
            most_c = fmax(most_c, c[i]);
        for (int j = 0; j < m * m; j++)
            most_d = fmax(most_d, d[j]);
        const frg_array ac = matrix(c, N, N), ad = matrix(d, m, m), al = matrix(linear, N, m);
        frg_gw_opts o = options(FRG_GW_DISTANCE_MATRIX);
        o.mode = way < 4 ? FRG_GW_VERTEX : FRG_GW_EXACT;
        o.epsilon = way < 4 ? 0.001 : 0.02;
        o.linear_weight = theta;
        const frg_gw_report r =
            align_sides(ctx, (frg_gw_side){.data = &ac}, (frg_gw_side){.data = &ad},
                        theta > 0 ? &al : NULL, &o, plan, NULL);
        for (int p = 0; p < N * m; p++) {
            cost += linear[p] * plan[p];
            for (int q = 0; q < N * m; q++) {
                const double cx = c[p / m * N + q / m], dy = d[p % m * m + q % m];
                e += pow(cx - dy, 2) * plan[p] * plan[q];
                scaled += pow(cx / most_c - dy / most_d, 2) * plan[p] * plan[q];
                product += pow(cx - dy, 2) / (N * m) / (N * m);
            }
        }
        double j = (1 - theta) * scaled + 2 * theta * cost;
        for (int p = 0; p < N * m && way >= 4; p++)
            j += 2 * r.epsilon_end * (plan[p] > 0 ? plan[p] * (log(plan[p]) - 1) : 0);
        CHECK_SAYS(fabs(r.energy - e) <= 0x1p-22 * most_c * most_c && r.energy >= 0,
                   "way %d: E %.9g, not %.9g", way, r.energy, e);
        CHECK_SAYS(fabs(r.objective - j) <= 1e-6, "way %d: J %.9g, not %.9g", way, r.objective, j);
        CHECK_SAYS(way >= 4 || fabs(r.sharpened_energy - (theta > 0 ? j : e)) <=
                                   1e-6 * (theta > 0 ? 1 : product),
                   "way %d: %.9g", way, r.sharpened_energy);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {{"reported energies", reported},
                                  {"exact transport", exact_transport},
                                  {"large costs", large_costs},
                                  {"stopped", stopped},
                                  {"assignments", assignments},
                                  {"moved costs", moved_costs},
                                  {"transports", transports},
                                  {"used memory", used},
                                  {"copies", copies},
                                  {"all permutations", all_permutations},
                                  {"stationary", stationary},
                                  {"exchanges", exchanges},
                                  {"costs of lists", costs_of_lists},
                                  {"products", products},
                                  {"low rank", low_rank},
                                  {"spread points", spread_points},
                                  {"placed among all", placed_among_all},
                                  {"annealed", annealed},
                                  {"spectra", spectra},
                                  {"near", near},
                                  {"resumed", resumed},
                                  {"passes", passes},
                                  {"threads", threads},
                                  {"agreeing", agreeing},
                                  {"disagreeing", disagreeing},
                                  {"doubles", doubles},
                                  {"doubles refused", doubles_refused},
                                  {"choices", choices},
                                  {"entropic", entropic},
                                  {"refusals", refusals}};
TEST_MAIN(cases)
