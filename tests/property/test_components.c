/* test_components.c - components of the graph that call for different solvers are solved apart.
 *
 * A row's residual depends on its own component alone: what a design gives has to be what each
 * component gives by itself, to the error bounds that both report.  The designs are such that no
 * single solver serves all: a ring, where CG takes as many steps as it has levels, beside units of
 * so many firms that their S is too dense, or beside random graphs that fill a factor.
 */
#include "fe/fe_cascade.h"
#include "fe/fe_demean_plan.h"
#include "fe/fe_runs.h"
#include "panel.h"

/** Edges of a design of two factors. */
typedef struct {
    int64_t n, m[2];
    int32_t *end; /* n x 2 */
} graph;

static graph graph_of(int64_t n, int64_t left, int64_t right)
{
    return (graph){n, {left, right}, panel_zeros(2 * n, sizeof(int32_t))};
}

static graph ring(int64_t p)
{
    graph g = graph_of(2 * p, p, p);
    for (int64_t i = 0; i < 2 * p; i++) {
        g.end[2 * i] = (int32_t)(i / 2);
        g.end[2 * i + 1] = (int32_t)((i + 1) / 2 % p);
    }
    return g;
}

/** `units` units, each with `rows` rows in firms at random. */
static graph random_firms(int64_t units, int64_t rows, int64_t firms)
{
    graph g = graph_of(units * rows, units, firms);
    for (int64_t i = 0; i < g.n; i++) {
        g.end[2 * i] = (int32_t)(i / rows);
        g.end[2 * i + 1] = (int32_t)(i < firms ? i : test_below(firms)); /* no firm is left out */
    }
    return g;
}

/** Columns at random on the graphs side by side; the graphs are freed. */
static panel beside(graph *g, int count, bool weighted)
{
    int64_t n = 0, first[2] = {0, 0};
    for (int k = 0; k < count; k++)
        n += g[k].n;
    panel d = panel_make(n, 2, 3);
    int32_t *code = d.codes;
    for (int k = 0; k < count; k++) {
        for (int64_t i = 0; i < 2 * g[k].n; i++)
            *code++ = g[k].end[i] + (int32_t)first[i % 2];
        for (int side = 0; side < 2; side++)
            first[side] += g[k].m[side];
        free(g[k].end);
    }
    for (int64_t i = 0; i < d.n * d.p; i++)
        d.x[i] = test_normal();
    if (weighted)
        panel_random_weights(&d, 0.5, 2);
    return d;
}

/** Rows first .. first + n - 1 by themselves. */
static panel cut(const panel *d, int64_t first, int64_t n)
{
    panel part = panel_make(n, d->q, d->p);
    memcpy(part.codes, d->codes + first * d->q, (size_t)(n * d->q) * sizeof *part.codes);
    for (int c = 0; c < d->p; c++)
        memcpy(part.x + c * n, d->x + c * d->n + first, (size_t)n * sizeof *part.x);
    if (d->weights) {
        part.weights = panel_zeros(n, sizeof *part.weights);
        memcpy(part.weights, d->weights + first, (size_t)n * sizeof *part.weights);
    }
    return part;
}

enum { MOST_PARTS = 8 };

typedef struct {
    double *r;
    frg_demean_column columns[PANEL_COLUMNS];
    double effect[PANEL_COLUMNS]; /* the largest |effect| of each column */
    frg_demean_report plan;
    frg_demean_part parts[MOST_PARTS];
    frg_demean_rank rank;
} outcome;

static void largest_effects(const frg_demean *plan, int p, double *effect)
{
    const int64_t levels = frg_demean_get(plan).levels;
    double *const alpha = panel_zeros(levels, sizeof *alpha);
    for (int c = 0; c < p; c++) {
        CHECK_STATUS(frg_demean_effects(plan, c, alpha), FRG_OK);
        effect[c] = 0;
        for (int64_t l = 0; l < levels; l++)
            effect[c] = fmax(effect[c], fabs(alpha[l]));
    }
    free(alpha);
}

static outcome demean_by(const panel *d, int threads, const frg_demean_opts *opts)
{
    outcome o = {.r = panel_zeros(d->n * d->p, sizeof *o.r)};
    frg_context *ctx = test_context_with(threads, NULL, NULL);
    frg_demean *plan = NULL;
    CHECK_OK(ctx, panel_create(&plan, ctx, d, opts));
    CHECK_OK(ctx,
             frg_demean_run(plan, panel_columns(d, d->x), panel_columns(d, o.r), o.columns, NULL));
    o.plan = frg_demean_get(plan);
    for (int64_t i = 0; i < o.plan.n_parts && i < MOST_PARTS; i++)
        CHECK_OK(ctx, frg_demean_get_part(plan, i, &o.parts[i]));
    frg_demean_part none;
    CHECK_STATUS(frg_demean_get_part(plan, o.plan.n_parts, &none), FRG_BAD_ARG);
    CHECK_OK(ctx, frg_demean_get_rank(plan, &o.rank));
    largest_effects(plan, d->p, o.effect);
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    return o;
}

static outcome demean(const panel *d, int threads)
{
    return demean_by(d, threads, NULL);
}

/** What the roundings of r = x - (Q effects) may come to in the norm of the rows of d: Q
 *  subtractions a row, each rounded to 2^-53 of a number of at most |x_i| + Q effect.  The reported
 *  bound sees of them what level means show, not the rest. */
static double roundings(const panel *d, const double *x, double effect)
{
    double mass = 0;
    for (int64_t i = 0; i < d->n; i++)
        mass += d->weights ? d->weights[i] : 1;
    return d->q * 0x1p-53 * (panel_norm(d, x, NULL) + d->q * effect * sqrt(mass));
}

/** The rows from `first` on of a result are those of the component alone, to what both claim; its
 *  own steps too, to those that a test by the whole's scale may add. */
static void check_alone(const panel *d, const outcome *whole, int64_t first, int64_t n,
                        int64_t part)
{
    panel alone = cut(d, first, n);
    outcome o = demean(&alone, test_now.threads);
    int64_t steps = 0;
    for (int c = 0; c < d->p; c++) {
        const double bound =
            whole->columns[c].error_bound * panel_centred_norm(d, d->x + c * d->n) +
            o.columns[c].error_bound * panel_centred_norm(&alone, alone.x + c * n);
        const double gap = panel_norm(&alone, whole->r + c * d->n + first, o.r + c * n);
        const double rounded = roundings(&alone, alone.x + c * n, whole->effect[c]) +
                               roundings(&alone, alone.x + c * n, o.effect[c]);
        /* a bound from Ritz values is an estimate: ten times; where both are exact their own
         * rounding */
        CHECK_SAYS(gap <=
                       10 * bound + rounded + 1e-12 * panel_centred_norm(&alone, alone.x + c * n),
                   "rows %lld..: column %d differs by %.3g, the bounds say %.3g and roundings %.3g",
                   (long long)first, c, gap, bound, rounded);
        steps = o.columns[c].iterations > steps ? o.columns[c].iterations : steps;
    }
    if (part >= 0) {
        const frg_demean_part *p = &whole->parts[part];
        CHECK_SAYS(p->n == n, "part %lld has %lld rows", (long long)part, (long long)p->n);
        CHECK_SAYS(p->iterations <= steps + 4, "part %lld took %lld steps by %s, alone %lld by %s",
                   (long long)part, (long long)p->iterations, p->method, (long long)steps,
                   o.plan.method);
    }
    free(o.r);
    panel_free(&alone);
}

/** The largest weighted level mean of rows first .. first + n - 1, both factors, over the sd of the
 *  whole column. */
static double audit_by_hand(const panel *d, const double *r, int64_t first, int64_t n)
{
    double *const sum = panel_zeros(2 * d->n, sizeof *sum), *const mass =
                                                                panel_zeros(2 * d->n, sizeof *mass);
    double worst = 0, total = 0;
    for (int64_t i = 0; i < d->n; i++)
        total += d->weights ? d->weights[i] : 1;
    const double sd = panel_norm(d, r, NULL) / sqrt(total);
    for (int q = 0; q < d->q; q++) {
        memset(sum, 0, (size_t)d->n * sizeof *sum);
        memset(mass, 0, (size_t)d->n * sizeof *mass);
        for (int64_t i = first; i < first + n; i++) {
            const double w = d->weights ? d->weights[i] : 1;
            sum[d->codes[i * d->q + q]] += w * r[i];
            mass[d->codes[i * d->q + q]] += w;
        }
        for (int64_t l = 0; l < d->n; l++)
            worst = mass[l] > 0 ? fmax(worst, fabs(sum[l]) / mass[l]) : worst;
    }
    free(sum);
    free(mass);
    return worst / sd;
}

/** A part's audit is that of its rows; 64 rows a level, each rounded once. */
static void check_audit(const panel *d, const outcome *o, int64_t part, int64_t first, int64_t n)
{
    double want = 0;
    for (int c = 0; c < d->p; c++)
        want = fmax(want, audit_by_hand(d, o->r + c * d->n, first, n));
    CHECK_SAYS(fabs(o->parts[part].audit - want) <= 64 * 2.3e-16,
               "part %lld: an audit of %.17g, by hand %.17g", (long long)part, o->parts[part].audit,
               want);
}

/** The designs of this file: rings of p levels a side, units of 60 firms, units of 4. */
static graph dense(void)
{
    const int64_t units = test_size(1200, 300);
    return random_firms(units, 60, units);
}
static graph sparse(void)
{
    const int64_t units = test_size(1000, 300);
    return random_firms(units, 4, units);
}

/** A ring beside units of 60 firms each: the S of the latter is not assembled, and the ring's is
 *  factored. */
static void dense_neighbour(void)
{
    for (int weighted = 0; weighted < 2; weighted++) {
        const int64_t p = test_size(4000, 300);
        graph g[] = {ring(p), dense()};
        const int64_t units = g[1].m[0];
        panel d = beside(g, 2, weighted);
        outcome o = demean(&d, test_now.threads);
        CHECK_SAYS(o.plan.n_parts == 2, "%lld parts, by %s", (long long)o.plan.n_parts,
                   o.plan.method);
        CHECK_SAYS(strcmp(o.plan.method, "direct and cg by components") == 0, "%s", o.plan.method);
        CHECK_SAYS(strcmp(o.parts[0].method, "direct") == 0, "the ring by %s", o.parts[0].method);
        CHECK(o.parts[0].levels == 2 * p && o.parts[1].levels == 2 * units);
        CHECK(o.parts[0].components == 1 && o.parts[1].components == 1);
        CHECK(strncmp(o.parts[1].method, "cg rows", 7) == 0 && o.parts[1].iterations > 0);
        for (int c = 0; c < d.p; c++) {
            CHECK(o.columns[c].converged);
            CHECK_SAYS(o.columns[c].iterations < 60, "%lld steps",
                       (long long)o.columns[c].iterations);
        }
        CHECK(o.rank.exact && o.rank.components == 2);
        CHECK(o.rank.rank == 2 * p + 2 * units - 2);
        check_alone(&d, &o, 0, 2 * p, 0);
        check_alone(&d, &o, 2 * p, d.n - 2 * p, 1);
        check_audit(&d, &o, 0, 0, 2 * p);
        check_audit(&d, &o, 1, 2 * p, d.n - 2 * p);
        free(o.r);
        panel_free(&d);
    }
}

/** Middle components make one part, which is taken apart by itself; small ones go with the
 *  largest. */
static void middle_and_small(void)
{
    const int64_t p = test_size(1000, 280);
    graph g[] = {ring(p), sparse(), ring(20), ring(7), dense()};
    const int64_t own[] = {g[0].n, g[1].n}, n_large = g[4].n;
    panel d = beside(g, 5, false);
    outcome o = demean(&d, test_now.threads);
    CHECK_SAYS(o.plan.n_parts == 3, "%lld parts, by %s", (long long)o.plan.n_parts, o.plan.method);
    int64_t components = 0, rows = 0;
    for (int64_t i = 0; i < o.plan.n_parts; i++) {
        components += o.parts[i].components;
        rows += o.parts[i].n;
    }
    CHECK(components == 5 && rows == d.n && o.parts[2].components == 3);
    for (int c = 0; c < d.p; c++)
        CHECK(o.columns[c].converged);
    check_alone(&d, &o, 0, own[0], -1);
    check_alone(&d, &o, own[0], own[1], -1);
    check_alone(&d, &o, d.n - n_large, n_large, -1);
    check_alone(&d, &o, own[0] + own[1], 40, -1);
    check_audit(&d, &o, 2, own[0] + own[1], d.n - own[0] - own[1]);
    for (int64_t i = 0; i < 2; i++) /* the middle ones, inside a part of their own */
        check_audit(&d, &o, i, o.parts[i].n == own[0] ? 0 : own[0], o.parts[i].n);
    free(o.r);
    panel_free(&d);
}

/** Three effects: a level of each factor is in one component, the third factor splits the units'
 *  second half. */
static void three_effects(void)
{
    const int64_t p = test_size(2000, 300);
    graph g[] = {ring(p), dense()};
    panel two = beside(g, 2, true), d = panel_make(two.n, 3, two.p);
    memcpy(d.x, two.x, (size_t)(d.n * d.p) * sizeof *d.x);
    d.weights = two.weights;
    two.weights = NULL;
    for (int64_t i = 0; i < d.n; i++) {
        d.codes[3 * i] = two.codes[2 * i];
        d.codes[3 * i + 1] = two.codes[2 * i + 1];
        d.codes[3 * i + 2] = (int32_t)(5 * (i >= 2 * p) + test_below(5));
    }
    outcome o = demean(&d, test_now.threads);
    CHECK_SAYS(o.plan.n_parts == 2, "%lld parts, by %s", (long long)o.plan.n_parts, o.plan.method);
    CHECK(o.rank.components == 2);
    CHECK_SAYS(strcmp(o.parts[0].method, "direct") == 0, "the ring by %s", o.parts[0].method);
    check_alone(&d, &o, 0, 2 * p, 0);
    check_alone(&d, &o, 2 * p, d.n - 2 * p, 1);
    free(o.r);
    panel_free(&two);
    panel_free(&d);
}

/** Two dense halves that hang together by a row of weight 1e-8, and a residual that needs the mode
 *  between them: CG leaves an error bound that is too large, and that subproblem alone goes on to
 *  its factor. The ring's part has none to go to, and the third needs none. */
static void escalation(void)
{
    graph g[] = {ring(test_size(1000, 300)), dense(), dense(), dense()};
    const int64_t half = g[1].n, first = g[0].n;
    panel d = beside(g, 4, true);
    d.codes[2 * d.n - 1] = d.codes[2 * (first + half) + 1];
    d.weights[d.n - 1] = 1e-8;
    d.x[d.n - 1] = 1e6;
    outcome o = demean(&d, test_now.threads);
    CHECK_SAYS(o.plan.n_parts == 3, "%lld parts", (long long)o.plan.n_parts);
    CHECK_SAYS(strcmp(o.plan.method, "direct and cg by components") == 0, "%s", o.plan.method);
    CHECK_SAYS(strncmp(o.parts[1].method, "cg rows", 7) == 0, "the third by %s", o.parts[1].method);
    CHECK_SAYS(strcmp(o.parts[2].method, "direct") == 0, "the halves by %s", o.parts[2].method);
    for (int c = 0; c < d.p; c++)
        CHECK_SAYS(o.columns[c].converged, "column %d: audit %.3g", c, o.columns[c].audit);
    check_alone(&d, &o, 0, first, 0);
    check_alone(&d, &o, first, half, 1);
    check_alone(&d, &o, first + half, 2 * half, -1);
    check_audit(&d, &o, 0, 0, first);
    check_audit(&d, &o, 1, first, half);
    check_audit(&d, &o, 2, first + half, 2 * half);
    free(o.r);
    panel_free(&d);
}

/** One component, or small ones beside it, are left alone. */
static void left_alone(void)
{
    graph one[] = {dense()}, small[] = {ring(7), dense(), ring(20)};
    panel d[] = {beside(one, 1, false), beside(small, 3, false)};
    for (size_t k = 0; k < sizeof d / sizeof *d; k++) {
        outcome o = demean(&d[k], test_now.threads);
        CHECK_SAYS(o.plan.n_parts == 0, "%lld parts", (long long)o.plan.n_parts);
        free(o.r);
        panel_free(&d[k]);
    }
}

/** For any threads, and for a column in any company. */
static void same_bits(void)
{
    static const int threads[] = {2, 3, 8};
    graph g[] = {ring(test_size(1000, 280)), sparse(), dense()};
    panel d = beside(g, 3, true);
    const size_t bytes = (size_t)(d.n * d.p) * sizeof *d.x;
    outcome want = demean(&d, 1);
    CHECK(want.plan.n_parts == 3);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        outcome o = demean(&d, threads[t]);
        CHECK_SAYS(memcmp(o.r, want.r, bytes) == 0, "other bits with %d threads", threads[t]);
        free(o.r);
    }
    frg_demean_opts by_one = panel_options();
    by_one.block = 1;
    outcome o = demean_by(&d, test_now.threads, &by_one);
    CHECK_SAYS(memcmp(o.r, want.r, bytes) == 0, "other bits column by column");
    free(o.r);
    free(want.r);
    panel_free(&d);
}

/** user: how many more calls are answered with "go on"; below 0 none is refused. */
static int stop_after(const frg_progress *p, void *user)
{
    (void)p;
    int *const left = user;
    *left -= *left > 0;
    return *left == 0;
}

/** A run may be stopped at every one of its calls, also while the cascades of some subproblems have
 *  not begun: what it leaves is finite and marked, and the plan's next run gives the bits of one
 *  that was never stopped. */
static void stopped(void)
{
    graph g[] = {ring(300), random_firms(300, 4, 300), random_firms(300, 60, 300), ring(280)};
    panel d = beside(g, 4, true);
    const size_t bytes = (size_t)(d.n * d.p) * sizeof *d.x;
    double *const r = panel_zeros(d.n * d.p, sizeof *r);
    outcome want = demean(&d, test_now.threads);
    CHECK(want.plan.n_parts >= 3);
    frg_status status = FRG_INTERRUPTED;
    int calls = 1;
    for (; status == FRG_INTERRUPTED; calls += 1 + calls / 16) {
        int left = calls;
        frg_context_opts c;
        frg_context *ctx = NULL;
        frg_demean *plan = NULL;
        frg_demean_column columns[PANEL_COLUMNS];
        frg_context_defaults(&c, sizeof c);
        c.threads = test_now.threads;
        c.on_progress = stop_after;
        c.user = &left;
        CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
        if (CHECK_OK(ctx, panel_create(&plan, ctx, &d, NULL))) {
            status =
                frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), columns, NULL);
            CHECK_SAYS(status == FRG_OK || status == FRG_INTERRUPTED, "call %d gave %s", calls,
                       frg_status_name(status));
            for (int k = 0; k < d.p && status == FRG_INTERRUPTED; k++)
                CHECK(columns[k].status == FRG_INTERRUPTED || columns[k].converged);
            for (int64_t i = 0; i < d.n * d.p; i++)
                CHECK(isfinite(r[i]));
            left = -1;
            CHECK_OK(ctx, frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r),
                                         columns, NULL));
            CHECK_SAYS(memcmp(r, want.r, bytes) == 0, "other bits after a stop at call %d", calls);
        } else
            status = FRG_OK;
        frg_demean_destroy(plan);
        frg_context_destroy(ctx);
    }
    CHECK_SAYS(calls > 12, "%d calls", calls);
    free(want.r);
    free(r);
    panel_free(&d);
}

/** Rows in memory, as if they were read: one window, and a stop at one of the reads. */
typedef struct {
    int reads, stop_at; /* 0: none */
} stopping_reads;

static frg_status read_or_stop(void *state, frg_context *ctx, int64_t elim, fe_rows *w)
{
    stopping_reads *const s = state;
    (void)ctx;
    (void)w;
    CHECK_INT(elim, 0);
    return ++s->reads == s->stop_at ? FRG_INTERRUPTED : FRG_OK;
}

static void no_rest(void *state)
{
    (void)state;
}

/** A count that is stopped at any of its passes over the rows says so and gives nothing; it gave a
 *  bound before, as if that had been asked for. */
static void stopped_rank(void)
{
    graph g[] = {ring(60), ring(50)};
    panel two = beside(g, 2, false), d = panel_make(two.n, 3, 1);
    for (int64_t i = 0; i < d.n; i++) {
        memcpy(d.codes + 3 * i, two.codes + 2 * i, 2 * sizeof *d.codes);
        d.codes[3 * i + 2] = (int32_t)(i % 7);
    }
    static const frg_fe_dof rules[] = {FRG_DOF_EXACT, FRG_DOF_PAIRWISE};
    for (int rule = 0; rule < 2; rule++) {
        frg_demean_opts o = panel_options();
        o.dof = rules[rule];
        frg_context *ctx = test_context();
        frg_demean *plan = NULL;
        frg_demean_rank want = {0};
        stopping_reads reads = {0};
        const struct fe_run_source source = {read_or_stop, no_rest, &reads};
        CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
        CHECK_OK(ctx, frg_demean_get_rank(plan, &want));
        plan->rows.source = &source;
        frg_status status = FRG_INTERRUPTED;
        int stops = 0;
        while (status == FRG_INTERRUPTED) {
            frg_demean_rank found = {.rank = -7};
            reads = (stopping_reads){.stop_at = stops + 1};
            status = frg_demean_get_rank(plan, &found);
            CHECK_INT(found.rank, status == FRG_OK ? want.rank : -7);
            stops += status == FRG_INTERRUPTED;
        }
        CHECK_OK(ctx, status);
        CHECK_SAYS(stops >= 2, "rule %d: %d passes", rule, stops);
        frg_demean_destroy(plan);
        frg_context_destroy(ctx);
    }
    panel_free(&two);
    panel_free(&d);
}

/** A part's stop ends the count by the parts' factors, which then gives no number: the ring has its
 *  factor from the run, the dense part would make its own. */
static void stopped_count(void)
{
    graph g[] = {ring(300), dense()};
    panel d = beside(g, 2, true);
    double *const r = panel_zeros(d.n * d.p, sizeof *r);
    int64_t rank = -7;
    frg_demean_rank whole = {0};
    frg_context *ctx = test_context();
    frg_demean *plan = NULL;
    CHECK_OK(ctx, panel_create(&plan, ctx, &d, NULL));
    CHECK_OK(ctx, frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), NULL, NULL));
    CHECK_INT(frg_demean_get(plan).n_parts, 2);
    frg_interrupt(ctx);
    CHECK_STATUS(frgi_fe_cascade_count(plan->cascade, ctx, false, &rank), FRG_INTERRUPTED);
    CHECK_INT(rank, -1);
    frg_interrupt_clear(ctx);
    CHECK_OK(ctx, frgi_fe_cascade_count(plan->cascade, ctx, false, &rank));
    CHECK_OK(ctx, frg_demean_get_rank(plan, &whole));
    CHECK_INT(plan->rows.n_elim + rank, whole.rank);
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

static const test_case cases[] = {
    {"stopped at every call", stopped},
    {"a rank is stopped at every pass", stopped_rank},
    {"a count by parts is stopped", stopped_count},
    {"a ring beside a dense component", dense_neighbour},
    {"middle and small components", middle_and_small},
    {"three effects", three_effects},
    {"a part that needs its factor", escalation},
    {"nothing to take apart", left_alone},
    {"the same bits", same_bits},
};
TEST_MAIN(cases)
