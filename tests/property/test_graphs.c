/* test_graphs.c - badly connected graphs: the right answer or an honest status, never a false
 * "converged".
 *
 * Rows are edges between the levels of two factors.  A planted residual is known without solving
 * anything: around an even cycle of edges the signs +1, -1, ... are orthogonal to every dummy, so
 *
 *     b = D g + r*,   r*_i = c_i / w_i,   c a sum of such cycles,   D' W r* = 0 exactly,
 *
 * with cycles closed by edges outside a spanning forest.  On a forest r* = 0.
 *
 * What has to hold of each column.  FRG_OK: the audit recomputed here passes, and ||W^(1/2)(r -
 * r*)|| <= 1e3 tol ||W^(1/2)(b - mean)||, which is what fe.h promises (a larger error bound goes on
 * to the direct factor, or is FRG_STALLED); ten times that is allowed, for the bound rests on an
 * estimated eigenvalue.  Any other status: positive, and the column says that it did not converge.
 */
#include "panel.h"

static const double tol = 1e-10;

typedef struct {
    int64_t m[2];    /* vertices of each side */
    int64_t n, room; /* edges */
    int32_t *end;    /* n x 2 */
} graph;

static void edge(graph *g, int64_t a, int64_t b)
{
    if (g->n == g->room) {
        g->room = g->room ? 2 * g->room : 1024;
        g->end = realloc(g->end, (size_t)g->room * 2 * sizeof *g->end);
        if (!g->end)
            abort();
    }
    g->end[2 * g->n] = (int32_t)a;
    g->end[2 * g->n + 1] = (int32_t)b;
    g->n++;
    g->m[0] = a >= g->m[0] ? a + 1 : g->m[0];
    g->m[1] = b >= g->m[1] ? b + 1 : g->m[1];
}

/* ---- the graphs ------------------------------------------------------------------------------ */

static graph path(int64_t edges)
{
    graph g = {0};
    for (int64_t i = 0; i < edges; i++)
        edge(&g, (i + 1) / 2, i / 2);
    return g;
}

static graph ring(int64_t p)
{
    graph g = {0};
    for (int64_t i = 0; i < 2 * p; i++)
        edge(&g, i / 2, (i + 1) / 2 % p);
    return g;
}

static graph star(int64_t leaves)
{
    graph g = {0};
    for (int64_t i = 0; i < leaves; i++)
        edge(&g, 0, i);
    return g;
}

/** Small complete blocks in a row, each joined to the next by one edge. */
static graph chain(int64_t blocks, int64_t size)
{
    graph g = {0};
    for (int64_t k = 0; k < blocks; k++) {
        for (int64_t a = 0; a < size; a++)
            for (int64_t b = 0; b < size; b++)
                edge(&g, k * size + a, k * size + b);
        if (k > 0)
            edge(&g, k * size, (k - 1) * size);
    }
    return g;
}

/** A square of side x side vertices, coloured like a chess board. */
static graph grid(int64_t side)
{
    graph g = {0};
    for (int64_t y = 0; y < side; y++) {
        for (int64_t x = 0; x < side; x++) {
            const int64_t here = (y * side + x) / 2, right = (y * side + x + 1) / 2;
            const int64_t below = ((y + 1) * side + x) / 2;
            const bool white = (x + y) % 2 == 0;
            if (x + 1 < side)
                white ? edge(&g, here, right) : edge(&g, right, here);
            if (y + 1 < side)
                white ? edge(&g, here, below) : edge(&g, below, here);
        }
    }
    return g;
}

/** Every left vertex to `degree` random right ones. */
static graph expander(int64_t m, int degree)
{
    graph g = {0};
    for (int64_t a = 0; a < m; a++)
        for (int k = 0; k < degree; k++)
            edge(&g, a, k == 0 ? a : test_below(m));
    return g;
}

/** Levels j drawn with probability like j^-1.5. */
static graph power_law(int64_t edges, int64_t m)
{
    graph g = {0};
    for (int64_t i = 0; i < edges; i++) {
        const double u = 1 - test_uniform() * (1 - pow((double)m, -0.5));
        edge(&g, i / 3, (int64_t)(1 / (u * u)) - 1);
    }
    return g;
}

/** Two copies of a graph joined by one edge, the last. */
static graph joined(graph half)
{
    const int64_t n = half.n, left = half.m[0], right = half.m[1];
    for (int64_t i = 0; i < n; i++)
        edge(&half, half.end[2 * i] + left, half.end[2 * i + 1] + right);
    edge(&half, 0, right);
    return half;
}

/* ---- planted residuals ----------------------------------------------------------------------- */

typedef struct {
    int64_t *parent_edge, *parent, *depth; /* of a vertex; parent -1 at a root */
} forest;

/** Breadth-first from every vertex; vertex of side 1 is m[0] + index. */
static forest span(const graph *g)
{
    const int64_t v = g->m[0] + g->m[1];
    forest f = {panel_zeros(v, 8), panel_zeros(v, 8), panel_zeros(v, 8)};
    int64_t *start = panel_zeros(v + 2, 8), *list = panel_zeros(2 * g->n, 8),
            *queue = panel_zeros(v, 8);
    for (int64_t i = 0; i < 2 * g->n; i++)
        start[g->end[i] + (i % 2) * g->m[0] + 2]++;
    for (int64_t i = 0; i < v; i++)
        start[i + 2] += start[i + 1];
    for (int64_t i = 0; i < 2 * g->n; i++)
        list[start[g->end[i] + (i % 2) * g->m[0] + 1]++] = i;
    for (int64_t i = 0; i < v; i++)
        f.parent[i] = -2;
    for (int64_t root = 0; root < v; root++) {
        if (f.parent[root] != -2)
            continue;
        f.parent[root] = -1;
        queue[0] = root;
        for (int64_t head = 0, tail = 1; head < tail; head++) {
            const int64_t a = queue[head];
            for (int64_t k = start[a]; k < start[a + 1]; k++) {
                const int64_t i = list[k] / 2, other = list[k] % 2 ? 0 : 1;
                const int64_t b = g->end[2 * i + other] + other * g->m[0];
                if (f.parent[b] != -2)
                    continue;
                f.parent[b] = a;
                f.parent_edge[b] = i;
                f.depth[b] = f.depth[a] + 1;
                queue[tail++] = b;
            }
        }
    }
    free(start);
    free(list);
    free(queue);
    return f;
}

/** Adds `value` around the cycle that edge i closes; nothing when i is in the forest. */
static void add_cycle(const graph *g, const forest *f, int64_t i, double value, double *c)
{
    int64_t a = g->end[2 * i], b = g->end[2 * i + 1] + g->m[0];
    if ((f->parent[a] >= 0 && f->parent_edge[a] == i) ||
        (f->parent[b] >= 0 && f->parent_edge[b] == i))
        return;
    c[i] += value;
    double from_a = -value, from_b = -value; /* signs alternate away from both ends */
    while (a != b) {
        int64_t *const low = f->depth[a] >= f->depth[b] ? &a : &b;
        double *const sign = low == &a ? &from_a : &from_b;
        c[f->parent_edge[*low]] += *sign;
        *sign = -*sign;
        *low = f->parent[*low];
    }
}

/** A panel on the graph with planted residuals: *want is n x p. */
static panel plant(graph *g, bool weighted, double **want)
{
    panel d = panel_make(g->n, 2, 2);
    memcpy(d.codes, g->end, (size_t)g->n * 2 * sizeof *d.codes);
    if (weighted)
        panel_random_weights(&d, 0.5, 2);
    double *r = panel_zeros(d.n * d.p, sizeof *r);
    const forest f = span(g);
    double *effect = panel_zeros(g->m[0] + g->m[1], sizeof *effect);
    for (int c = 0; c < d.p; c++) {
        for (int64_t i = 0; i < g->m[0] + g->m[1]; i++)
            effect[i] = test_normal();
        const int64_t cycles = g->n < 200 ? g->n : 200;
        for (int64_t k = 0; k < cycles; k++)
            add_cycle(g, &f, g->n <= 200 ? k : test_below(g->n), test_normal(), r + c * d.n);
        if (g->n > 200) /* rings have one edge outside the forest: try them all once */
            for (int64_t i = 0; i < g->n && g->n <= g->m[0] + g->m[1]; i++)
                add_cycle(g, &f, i, 1, r + c * d.n);
        for (int64_t i = 0; i < d.n; i++) {
            r[c * d.n + i] /= weighted ? d.weights[i] : 1;
            d.x[c * d.n + i] =
                effect[g->end[2 * i]] + effect[g->m[0] + g->end[2 * i + 1]] + r[c * d.n + i];
        }
    }
    free(effect);
    free(f.parent_edge);
    free(f.parent);
    free(f.depth);
    free(g->end);
    *want = r;
    return d;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/** Returns the largest relative error of the columns that say they converged. */
static double check_honest(const panel *d, const frg_demean_opts *o, const double *want,
                           const char *name, bool must_converge)
{
    double *r = panel_zeros(d->n * d->p, sizeof *r), worst = 0;
    frg_demean_column columns[PANEL_COLUMNS] = {0};
    panel_report report = {0};
    frg_context *ctx = test_context();
    const frg_status s = panel_demean(ctx, d, o, r, columns, &report);
    CHECK_SAYS(s == FRG_OK || (s > 0 && !must_converge), "%s: %s after %s: %s", name,
               frg_status_name(s), s >= 0 ? report.plan.method : "nothing", frg_message(ctx));
    for (int c = 0; c < d->p && s >= 0; c++) {
        const double *const b = d->x + c * d->n;
        const frg_demean_column *const column = &columns[c];
        CHECK_SAYS(column->converged == (column->status == FRG_OK), "%s: converged %d, but %s",
                   name, column->converged, frg_status_name(column->status));
        if (column->status != FRG_OK)
            continue;
        const panel_audit a = panel_check(d, b, r + c * d->n);
        double largest = 0;
        for (int64_t i = 0; i < d->n; i++)
            largest = fmax(largest, fabs(b[i]));
        /* the level means at the rounding floor of what was subtracted; effects grow along a
         * path */
        const double floor_mean = 64 * DBL_EPSILON * largest * sqrt((double)d->n);
        CHECK_SAYS(a.gradient <= 1.01 * tol + 1e-14, "%s: eta is %.3g, reported %.3g", name,
                   a.gradient, column->gradient);
        CHECK_SAYS(column->absorbed || a.audit <= 1.01 * tol || a.mean <= floor_mean,
                   "%s: the audit is %.3g, reported %.3g", name, a.audit, column->audit);
        const double error =
            panel_norm(d, r + c * d->n, want + c * d->n) / panel_centred_norm(d, b);
        CHECK_SAYS(error <= 1e4 * tol, "%s: false convergence by %s: error %.3g, bound %.3g", name,
                   report.plan.method, error, column->error_bound);
        worst = fmax(worst, error);
    }
    frg_context_destroy(ctx);
    free(r);
    return worst;
}

typedef graph (*builder)(bool large);

static graph paths(bool large)
{
    return path(large ? 100000 : 501);
}
static graph rings(bool large)
{
    return ring(large ? 10000 : 200);
}
static graph stars(bool large)
{
    return star(large ? 20000 : 300);
}
static graph chains(bool large)
{
    return large ? chain(2000, 3) : chain(60, 3);
}
static graph barbells(bool large)
{
    return joined(chain(1, large ? 60 : 12));
}
static graph grids(bool large)
{
    return grid(large ? 121 : 21);
}
static graph expanders(bool large)
{
    return expander(large ? 5000 : 150, 3);
}
static graph power_laws(bool large)
{
    return power_law(large ? 30000 : 600, large ? 3000 : 100);
}
static graph bridges(bool large)
{
    return joined(expander(large ? 3000 : 100, 3));
}

static const struct {
    const char *name;
    builder build;
} graphs[] = {
    {"path", paths},         {"ring", rings},           {"star", stars},
    {"chain", chains},       {"barbell", barbells},     {"grid", grids},
    {"expander", expanders}, {"power law", power_laws}, {"two expanders and a bridge", bridges},
};

/** `large` by the cascade has to converge; the forced methods on the small graphs have to be
 *  honest. */
static void all_graphs(frg_fe_method method, bool large, int64_t max_iter, bool must_converge)
{
    frg_demean_opts o = panel_options();
    o.method = method;
    o.max_iter = max_iter;
    o.tol = tol;
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        for (int weighted = 0; weighted < 2; weighted++) {
            graph g = graphs[k].build(large && test_size(1, 0));
            double *want;
            panel d = plant(&g, weighted, &want);
            char name[64];
            snprintf(name, sizeof name, "%s%s", graphs[k].name, weighted ? ", weights" : "");
            check_honest(&d, &o, want, name, must_converge);
            free(want);
            panel_free(&d);
        }
    }
}

static void cascade(void)
{
    all_graphs(FRG_FE_AUTO, true, 1000, true);
}
static void cascade_small(void)
{
    all_graphs(FRG_FE_AUTO, false, 1000, true);
}
static void cg(void)
{
    all_graphs(FRG_FE_CG, false, 1000, false);
}
static void lsmr(void)
{
    all_graphs(FRG_FE_LSMR, false, 1000, false);
}
static void lsmr_three_steps(void)
{
    all_graphs(FRG_FE_LSMR, false, 3, false);
}
static void cg_three_steps(void)
{
    all_graphs(FRG_FE_CG, false, 3, false);
}
static void direct(void)
{
    all_graphs(FRG_FE_DIRECT, false, 1000, true);
}

/** The even cycle of 20 000 rows, right to 1e-9. */
static void long_ring(void)
{
    graph g = ring(10000);
    double *want;
    panel d = plant(&g, false, &want);
    const double error = check_honest(&d, NULL, want, "ring of 20000", true);
    CHECK_SAYS(error <= 1e-9, "relative error %.3g", error);
    free(want);
    panel_free(&d);
}

/** Two expanders whose only cell in common weighs 1e-8: the slow mode is nearly invisible in g. */
static void faint_bridge(void)
{
    for (int large = 0; large < 2; large++) {
        graph g = bridges(large && test_size(1, 0));
        double *want;
        panel d = plant(&g, true, &want);
        d.weights[d.n - 1] = 1e-8; /* the bridge is in no cycle, so r* does not change */
        check_honest(&d, NULL, want, "bridge of weight 1e-8", false);
        free(want);
        panel_free(&d);
    }
}

/** Effects 1e8 times the residual: the first result has level means that are their rounding, 1e-8
 *  of it.  The audit holds to tol all the same, with CG (an expander) and with the factor (a ring,
 *  a chain). */
static void faint_residuals(void)
{
    graph all[] = {ring(10000), expander(3000, 3), chain(500, 3)};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const int64_t vertices = all[k].m[0] + all[k].m[1];
        double *want, *effect = panel_zeros(vertices, sizeof *effect);
        const int64_t side = all[k].m[0];
        panel d = plant(&all[k], false, &want);
        for (int64_t v = 0; v < vertices; v++)
            effect[v] = 1e8 * test_normal();
        for (int64_t i = 0; i < d.n * d.p; i++) {
            const int32_t *const ends = d.codes + 2 * (i % d.n);
            d.x[i] += effect[ends[0]] + effect[side + ends[1]];
        }
        double *r = panel_zeros(d.n * d.p, sizeof *r);
        frg_demean_column columns[PANEL_COLUMNS] = {0};
        frg_context *ctx = test_context();
        CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, columns, NULL));
        for (int c = 0; c < d.p; c++) {
            const panel_audit a = panel_check(&d, d.x + c * d.n, r + c * d.n);
            CHECK(!columns[c].absorbed);
            CHECK_SAYS(a.audit <= 1.01 * tol && columns[c].audit <= tol,
                       "graph %zu: the audit is %.3g, reported %.3g", k, a.audit, columns[c].audit);
        }
        frg_context_destroy(ctx);
        free(r);
        free(effect);
        free(want);
        panel_free(&d);
    }
}

/** Three factors: a third that is a function of the others' parity adds null directions, not
 *  residuals. */
static void third_factor(void)
{
    for (size_t k = 0; k < sizeof graphs / sizeof *graphs; k++) {
        graph g = graphs[k].build(false);
        double *want;
        panel two = plant(&g, false, &want), d = panel_make(two.n, 3, 2);
        memcpy(d.x, two.x, (size_t)(d.n * d.p) * sizeof *d.x);
        for (int64_t i = 0; i < d.n; i++) {
            d.codes[3 * i] = two.codes[2 * i];
            d.codes[3 * i + 1] = two.codes[2 * i + 1];
            d.codes[3 * i + 2] = two.codes[2 * i] % 3; /* nested in the first */
        }
        check_honest(&d, NULL, want, graphs[k].name, true);
        free(want);
        panel_free(&d);
        panel_free(&two);
    }
}

/** Relative distance of two results. */
static double distance(const panel *d, const double *a, const double *b)
{
    double worst = 0;
    for (int c = 0; c < d->p; c++)
        worst = fmax(worst, panel_norm(d, a + c * d->n, b + c * d->n) /
                                panel_centred_norm(d, d->x + c * d->n));
    return worst;
}

/** Trends of firms among workers that rarely leave: LSMR's steps grow with the length of the firms'
 *  chain, the factor of S needs none of them.  Both give the same residuals, to what error_bound
 *  allows. */
static void firm_trends(void)
{
    for (int q = 2; q <= 3; q++) {
        panel d = panel_workers(test_size(5000, 2000), q, 2);
        panel_random_weights(&d, 0.5, 2);
        d.slope_values = panel_zeros(d.n, sizeof(double));
        for (int64_t i = 0; i < d.n; i++)
            d.slope_values[i] = 2000 + (double)(i % 8) + 0.1 * test_normal();
        d.n_slopes = 1;
        d.slopes[0] = (frg_slope){.factor = 1, .z = d.slope_values};
        frg_demean_opts o = panel_options();
        o.max_iter = 20000;
        double *r = panel_zeros(d.n * d.p, sizeof *r), *slow = panel_zeros(d.n * d.p, sizeof *r);
        frg_demean_column columns[PANEL_COLUMNS] = {0};
        panel_report report;
        frg_context *ctx = test_context();
        CHECK_OK(ctx, panel_demean(ctx, &d, &o, r, columns, &report));
        CHECK(strcmp(report.plan.method, "lsmr, direct factor") == 0);
        CHECK(report.plan.factor_bytes > 0);
        CHECK_SAYS(columns[0].iterations <= 4, "%lld steps", (long long)columns[0].iterations);
        o.method = FRG_FE_LSMR;
        CHECK_OK(ctx, panel_demean(ctx, &d, &o, slow, columns, NULL));
        CHECK_SAYS(columns[0].iterations > 20, "%lld steps", (long long)columns[0].iterations);
        CHECK_SAYS(distance(&d, r, slow) <= 2e3 * tol, "%.3g apart", distance(&d, r, slow));
        double *one = panel_residuals(&d, NULL, 1), *three = panel_residuals(&d, NULL, 3);
        CHECK(memcmp(one, three, (size_t)(d.n * d.p) * sizeof *one) == 0);
        free(one);
        free(three);
        frg_context_destroy(ctx);
        free(r);
        free(slow);
        panel_free(&d);
    }
}

/** A ring of 2 m edges, four rows each, with slopes in one factor: 3 m - 1 independent columns,
 *  counted by the sparse factor; and what happens where the cap forbids it. */
static void slopes_rank_and_cap(void)
{
    const int64_t m = 2000;
    panel d = panel_make(8 * m, 2, 1);
    d.slope_values = panel_zeros(d.n, sizeof(double));
    for (int64_t i = 0; i < d.n; i++) {
        d.codes[2 * i] = (int32_t)(i / 8);
        d.codes[2 * i + 1] = (int32_t)((i / 4 + 1) / 2 % m);
        d.slope_values[i] = test_normal();
    }
    d.n_slopes = 1;
    d.slopes[0] = (frg_slope){.factor = 1, .z = d.slope_values};
    double *r = panel_zeros(d.n, sizeof *r);
    panel_report report;
    frg_demean_column column;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, &column, &report));
    CHECK(report.rank.exact && report.rank.rank == 3 * m - 1);
    frg_demean_opts o = panel_options();
    o.fill_cap = 1000;
    o.max_iter = 20;
    CHECK(panel_demean(ctx, &d, &o, r, &column, &report) >= 0);
    CHECK(strcmp(report.plan.method, "lsmr") == 0 && !report.rank.exact);
    o.method = FRG_FE_DIRECT;
    CHECK(panel_demean(ctx, &d, &o, r, &column, NULL) < 0);
    CHECK(strcmp(frg_error_code(ctx), "FRG-FE-012") == 0);
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

/** 3000 units, 200 firms, 9 years: one column of the firms and one of the years are redundant.
 *  Where even firms are seen in even years alone, the parity is in both, and one more is.  The
 *  count is in integers, with no factor built, so that a design whose S is dense has its exact rank
 *  too. */
static void exact_rank_in_integers(void)
{
    for (int bound = 0; bound < 2; bound++) {
        panel d = panel_make(15000, 3, 1);
        for (int64_t i = 0; i < d.n; i++) {
            const int64_t firm = test_below(200);
            int64_t year = test_below(9);
            if (bound)
                year = firm % 2 + 2 * test_below(firm % 2 ? 4 : 5);
            d.codes[3 * i] = (int32_t)(i / 5);
            d.codes[3 * i + 1] = (int32_t)firm;
            d.codes[3 * i + 2] = (int32_t)year;
        }
        frg_demean_opts o = panel_options();
        o.fill_cap = 1; /* no factor can be had */
        frg_demean *plan = NULL;
        frg_demean_rank rank = {0};
        frg_context *ctx = test_context();
        CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
        CHECK_OK(ctx, frg_demean_get_rank(plan, &rank));
        CHECK(rank.exact && strcmp(rank.method, "exact") == 0);
        CHECK_SAYS(rank.rank == 3000 + 199 + 8 - bound, "rank %lld", (long long)rank.rank);
        frg_demean_destroy(plan);
        frg_context_destroy(ctx);
        panel_free(&d);
    }
}

/** A slope on time in two factors is collinear with itself. */
static void collinear_slopes(void)
{
    panel d = panel_make(600, 2, 1);
    panel_random_codes(&d, (const int64_t[]){20, 10});
    d.slope_values = panel_zeros(d.n, sizeof(double));
    for (int64_t i = 0; i < d.n; i++)
        d.slope_values[i] = 2000 + (double)(i % 12);
    d.n_slopes = 2;
    for (int f = 0; f < 2; f++)
        d.slopes[f] = (frg_slope){.factor = f, .z = d.slope_values};
    double *r = panel_zeros(d.n, sizeof *r);
    frg_demean_column column;
    frg_context *ctx = test_context();
    const frg_status s = panel_demean(ctx, &d, NULL, r, &column, NULL);
    if (s == FRG_UNSUPPORTED) {
        test_skip("slopes are not supported");
    } else if (CHECK_SAYS(s >= 0, "%s: %s", frg_status_name(s), frg_message(ctx)) && s == FRG_OK) {
        const panel_audit a = panel_check(&d, d.x, r);
        CHECK(a.gradient <= 1.01 * tol);
        long double g = 0, norm = 0; /* and orthogonal to the slope of one level */
        for (int64_t i = 0; i < d.n; i++) {
            if (d.codes[2 * i] == 3) {
                g += (long double)d.slope_values[i] * (long double)r[i];
                norm += (long double)(d.slope_values[i] * d.slope_values[i]);
            }
        }
        CHECK_NEAR((double)(g / sqrtl(norm)) / panel_centred_norm(&d, d.x), 0, 10 * tol);
    }
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

/** || a - b || over || b - mean || of one column. */
static double apart(const panel *d, const double *a, const double *b)
{
    return panel_norm(d, a, b) / panel_centred_norm(d, d->x);
}

/** Slopes of z near 1e5 whose variation is near 100: D has rank 7 in 8 columns, and the pivot that
 *  is nothing but rounding is (1e5 / 100)^2 roundings, which passes for one.  The sum of squares
 *  that is left is from Gram and Schmidt in quadruple precision. */
static void slopes_with_offset(void)
{
    static const double rows[10][6] = {
        /* f0, f1, f2, z0, z1, y */
        {0, 0, 0, 100046.37905064441, 99963.745353110018, -1.0329472447784183},
        {0, 0, 0, 100192.52870237423, 100064.85216687946, 0.72583803366995214},
        {0, 0, 1, 100114.15568050431, 100217.6503081086, -0.065635902277292268},
        {1, 1, 1, 99942.693153260538, 99926.614556456625, -0.8407471479774653},
        {1, 1, 2, 100113.10689200093, 99992.44732733912, 0.24131309234629883},
        {0, 0, 0, 99828.710845974492, 99880.362796894071, -1.5548174322485921},
        {0, 0, 2, 100013.5496911747, 100000, -0.23851073253059987},
        {0, 0, 2, 100000, 100008.64284180243, -0.20315414808853605},
        {0, 0, 1, 99932.809496172849, 99833.720263383831, 1.4435693903633842},
        {0, 0, 0, 100271.28449268352, 100000, -1.2701966918796859}};
    static const double rss = 3.5688700252;
    panel d = panel_make(10, 3, 1);
    double r[10], square = 0;
    frg_demean_column column = {0};
    d.slope_values = panel_zeros(20, sizeof(double));
    for (int i = 0; i < 10; i++) {
        for (int q = 0; q < 3; q++)
            d.codes[3 * i + q] = (int32_t)rows[i][q];
        d.slope_values[i] = rows[i][4];
        d.slope_values[10 + i] = rows[i][3];
        d.x[i] = rows[i][5];
    }
    d.n_slopes = 2;
    d.slopes[0] = (frg_slope){.factor = 0, .z = d.slope_values};
    d.slopes[1] = (frg_slope){.factor = 1, .z = d.slope_values + 10};
    d.no_intercept = 1;
    frg_context *ctx = test_context();
    CHECK_OK(ctx, panel_demean(ctx, &d, NULL, r, &column, NULL));
    for (int i = 0; i < 10; i++)
        square += r[i] * r[i];
    CHECK(column.converged && !column.absorbed);
    CHECK_SAYS(fabs(square - rss) <= 1e-7 * rss, "%.12g is left, not %.12g", square, rss);
    frg_demean_opts o = panel_options(); /* by name the factor stays, and says what it cannot do */
    o.method = FRG_FE_DIRECT;
    const frg_status s = panel_demean(ctx, &d, &o, r, &column, NULL);
    square = 0;
    for (int i = 0; i < 10; i++)
        square += r[i] * r[i];
    CHECK_SAYS(s > 0 ? !column.converged && !column.absorbed : fabs(square - rss) <= 1e-7 * rss,
               "%s with %.12g left", frg_status_name(s), square);
    frg_context_destroy(ctx);
    panel_free(&d);
}

/** Trends by calendar year in two factors, one of them without a constant, in tables of a few rows:
 *  what is said to be converged is what the row-space path finds without any factor, whichever
 *  columns stand beside it. */
static void calendar_years(void)
{
    int converged = 0;
    const int tables = (int)test_size(400, 40);
    for (int t = 0; t < tables; t++) {
        panel d = panel_make(65, 2, 2);
        double r[130], alone[65], want[65];
        frg_demean_column columns[PANEL_COLUMNS], one, reference;
        panel_random_codes(&d, (const int64_t[]){8, 8});
        d.slope_values = panel_zeros(d.n, sizeof(double));
        for (int64_t i = 0; i < d.n; i++)
            d.slope_values[i] = 1990 + (double)test_below(31);
        d.n_slopes = 2;
        for (int q = 0; q < 2; q++)
            d.slopes[q] = (frg_slope){.factor = q, .z = d.slope_values};
        d.no_intercept = 1;
        frg_context *ctx = test_context();
        const frg_status s = panel_demean(ctx, &d, NULL, r, columns, NULL);
        CHECK(s >= 0);
        d.p = 1;
        CHECK(panel_demean(ctx, &d, NULL, alone, &one, NULL) >= 0);
        CHECK(memcmp(alone, r, sizeof alone) == 0 && one.converged == columns[0].converged);
        frg_demean_opts o = panel_options();
        o.method = FRG_FE_LSMR;
        CHECK(panel_demean(ctx, &d, &o, want, &reference, NULL) >= 0);
        if (columns[0].converged && reference.converged) {
            converged++;
            CHECK(!columns[0].absorbed);
            CHECK_SAYS(apart(&d, r, want) <= 2e3 * tol, "table %d: %.3g apart", t,
                       apart(&d, r, want));
        }
        frg_context_destroy(ctx);
        panel_free(&d);
    }
    CHECK_SAYS(10 * converged >= 9 * tables, "%d of %d converged", converged, tables);
}

static const test_case cases[] = {
    {"slopes far from zero", slopes_with_offset},
    {"calendar years", calendar_years},
    {"cascade, small", cascade_small},
    {"cascade, large", cascade},
    {"cg", cg},
    {"lsmr", lsmr},
    {"lsmr, three steps", lsmr_three_steps},
    {"cg, three steps", cg_three_steps},
    {"direct", direct},
    {"ring of 20000 rows", long_ring},
    {"bridge of weight 1e-8", faint_bridge},
    {"effects 1e8 times the residual", faint_residuals},
    {"a nested third factor", third_factor},
    {"trends of firms", firm_trends},
    {"rank and cap of slopes", slopes_rank_and_cap},
    {"exact rank in integers", exact_rank_in_integers},
    {"collinear slopes", collinear_slopes},
};
TEST_MAIN(cases)
