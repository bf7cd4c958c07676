/* test_scattered.c - the demeaner beyond memory where the rows of a level are anywhere: every bit,
 * report, error and ending as in memory.
 *
 * Contexts with a spool take blocks from SMALL bytes on from the disk, so that all columns lie
 * there. */
#include "core/context.h"
#include "fault.h"
#include "fe/fe_demean_plan.h"
#include "panel.h"

enum { SMALL = 4096, LIMIT = 4 << 20 };

static frg_context *spooled(int threads)
{
    frg_context_opts o;
    frg_context *ctx = NULL;
    frg_context_defaults(&o, sizeof o);
    o.threads = threads;
    o.memory_limit = LIMIT;
    o.spool = ".";
    if (CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK))
        frgi_spool_from(ctx, SMALL);
    return ctx;
}

/** A design, how its arrays lie, and how it is solved. */
typedef struct {
    int q, p;
    frg_fe_method method;
    frg_dtype dtype;
    bool weights, rows, in_place; /* rows: one after the other, else column after column */
    int slopes;
    int32_t gap; /* between codes */
} design;

/** Random codes, fewer from factor to factor. */
static panel make_panel(const design *d, int64_t n)
{
    panel x = panel_make(n, d->q, d->p);
    int64_t levels[FE_MAX_FACTORS];
    for (int f = 0; f < d->q; f++)
        levels[f] = f == 0 ? n / 6 + 2 : n / (20 * f) + 2;
    panel_random_codes(&x, levels);
    for (int64_t i = 0; i < n * d->q; i++)
        x.codes[i] *= d->gap;
    if (d->weights)
        panel_random_weights(&x, 0.2, 3);
    x.slope_values = panel_zeros(n * (d->slopes + 1), sizeof *x.slope_values);
    for (int64_t i = 0; i < n * d->slopes; i++)
        x.slope_values[i] = test_normal();
    x.n_slopes = d->slopes;
    for (int s = 0; s < d->slopes; s++) /* the second and third share their values */
        x.slopes[s] = (frg_slope){.factor = s % 2, .z = x.slope_values + (s > 1 ? 1 : s) * n};
    return x;
}

/** The panel's columns as the design has them. */
static frg_array lay_out(const design *d, const panel *x, void *to)
{
    const int64_t n = x->n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < x->p; c++) {
            const int64_t at = d->rows ? i * x->p + c : c * n + i;
            if (d->dtype == FRG_F32)
                ((float *)to)[at] = (float)x->x[c * n + i];
            else
                ((double *)to)[at] = x->x[c * n + i];
        }
    }
    return d->rows ? frg_matrix(to, d->dtype, n, x->p, x->p)
                   : frg_matrix_columns(to, d->dtype, n, x->p, n);
}

/** What a plan gives of a design: its columns and effects, bit by bit, and what it says. */
typedef struct {
    double *columns; /* n x p of 8 bytes at most */
    double *alpha;
    frg_demean_column reports[PANEL_COLUMNS];
    frg_demean_report plan;
    frg_demean_rank rank;
} outcome;

static bool run(frg_context *ctx, const design *d, const panel *x, outcome *out)
{
    frg_demean_opts o = panel_options();
    frg_demean *plan = NULL;
    void *const in = panel_zeros(x->n * x->p, sizeof(double));
    out->columns = panel_zeros(x->n * x->p, sizeof(double));
    o.method = d->method;
    const frg_array from = lay_out(d, x, in);
    frg_array to = lay_out(d, x, out->columns);
    const frg_array twin = d->in_place ? to : from;
    bool fine = CHECK_OK(ctx, panel_create(&plan, ctx, x, &o));
    fine = fine && CHECK_SAYS(frg_demean_run(plan, twin, to, out->reports, NULL) >= 0, "%s",
                              frg_message(ctx));
    if (fine) {
        const int64_t coefficients = frg_demean_get(plan).levels;
        out->alpha = panel_zeros(coefficients * x->p, sizeof(double));
        for (int c = 0; c < x->p; c++)
            CHECK_OK(ctx, frg_demean_effects(plan, c, out->alpha + c * coefficients));
        CHECK_OK(ctx, frg_demean_get_rank(plan, &out->rank));
        out->plan = frg_demean_get(plan);
        /* once more, from the same columns: the same bits and no memory */
        const size_t before = frg_bytes_held(ctx);
        double *const again = panel_zeros(x->n * x->p, sizeof(double));
        to = lay_out(d, x, again);
        CHECK(frg_demean_run(plan, d->in_place ? to : from, to, NULL, NULL) >= 0);
        CHECK_BITS(again, out->columns, (size_t)(x->n * x->p) * sizeof(double));
        CHECK_INT(frg_bytes_held(ctx), before);
        free(again);
    }
    frg_demean_destroy(plan);
    free(in);
    return fine;
}

static void compare(const design *d, const panel *x, int64_t threads)
{
    frg_context *const memory = test_context(), *const disk = spooled((int)threads);
    outcome a = {0}, b = {0};
    if (run(memory, d, x, &a) && run(disk, d, x, &b)) {
        CHECK_BITS(b.columns, a.columns, (size_t)(x->n * x->p) * sizeof(double));
        CHECK_BITS(b.alpha, a.alpha, (size_t)(a.plan.levels * x->p) * sizeof(double));
        CHECK_TEXT(b.plan.method, a.plan.method);
        CHECK_INT(b.plan.levels, a.plan.levels);
        CHECK_INT(b.rank.rank, a.rank.rank);
        for (int c = 0; c < x->p; c++) {
            const frg_demean_column *const r = &b.reports[c], *const s = &a.reports[c];
            CHECK_INT(r->status, s->status);
            CHECK_INT(r->iterations, s->iterations);
            CHECK_INT(r->worst_level, s->worst_level);
            CHECK_BITS(&r->audit, &s->audit, sizeof r->audit);
            CHECK_BITS(&r->gradient, &s->gradient, sizeof r->gradient);
        }
        CHECK(b.plan.plan_bytes > a.plan.plan_bytes);
    }
    frg_demean_opts o = panel_options();
    o.method = d->method;
    int64_t levels[FE_MAX_FACTORS];
    for (int f = 0; f < d->q; f++)
        levels[f] = x->n;
    const frg_demean_shape shape = {.n = x->n,
                                    .p = x->p,
                                    .n_factors = d->q,
                                    .levels = levels,
                                    .weighted = d->weights,
                                    .slopes = x->n_slopes ? x->slopes : NULL,
                                    .n_slopes = x->n_slopes};
    size_t bytes = 0, factor = 0;
    double seconds;
    CHECK_OK(disk, frg_demean_estimate(disk, &shape, &o, &bytes, &factor, &seconds));
    CHECK_SAYS(b.plan.plan_bytes - b.plan.factor_bytes <= bytes, "%zu of %zu bytes",
               b.plan.plan_bytes, bytes);
    CHECK_SAYS(frg_spool_bytes(disk) <= factor + (1 << 16), "%zu of %zu bytes on the disk",
               frg_spool_bytes(disk), factor);
    free(a.columns);
    free(a.alpha);
    free(b.columns);
    free(b.alpha);
    frg_context_destroy(memory);
    frg_context_destroy(disk);
}

static void same_bits(void)
{
    static const design designs[] = {
        {.q = 1, .p = 1, .gap = 1},
        {.q = 2, .p = 3, .gap = 1, .weights = true},
        {.q = 2, .p = 11, .gap = 3, .in_place = true, .rows = true},
        {.q = 3, .p = 8, .gap = 1, .rows = true, .dtype = FRG_F32},
        {.q = 5, .p = 9, .gap = 7, .weights = true, .in_place = true, .dtype = FRG_F32},
        {.q = 2, .p = 2, .gap = 1000003, .in_place = true},
        {.q = 2, .p = 10, .gap = 1, .method = FRG_FE_LSMR, .weights = true},
        {.q = 3, .p = 2, .gap = 1, .method = FRG_FE_MAP, .in_place = true, .rows = true},
        {.q = 2, .p = 3, .gap = 1, .method = FRG_FE_DIRECT, .weights = true, .in_place = true},
        {.q = 2, .p = 9, .gap = 2, .slopes = 3, .weights = true},
        {.q = 2, .p = 4, .gap = 1, .slopes = 1, .method = FRG_FE_CG, .in_place = true},
        {.q = 10, .p = 1, .gap = 1, .in_place = true},
    };
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        design d = designs[i];
        d.dtype = d.dtype == FRG_F32 ? FRG_F32 : FRG_F64;
        panel x = make_panel(&d, test_size(600, 200) + test_below(test_size(5000, 300)));
        compare(&d, &x, 1 + test_below(3));
        panel_free(&x);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

/** The same text in memory and on the disk, with the caller's row in it; `out` is as it was. */
static void refused(const design *d, const panel *x, const char *says)
{
    for (int where = 0; where < 2; where++) {
        frg_context *const ctx = where ? spooled(2) : test_context();
        frg_demean_opts o = panel_options();
        frg_demean *plan = NULL;
        double *const r = panel_zeros(x->n * x->p, sizeof *r);
        o.method = d->method;
        frg_status s = panel_create(&plan, ctx, x, &o);
        if (s == FRG_OK)
            s = frg_demean_run(plan, panel_columns(x, x->x), panel_columns(x, r), NULL, NULL);
        CHECK_SAYS(s < 0, "'%s' was not refused", says);
        CHECK_SAYS(strstr(frg_message(ctx), says), "%s", frg_message(ctx));
        bool zeros = true;
        for (int64_t i = 0; i < x->n * x->p; i++)
            zeros &= r[i] == 0;
        CHECK(zeros);
        frg_demean_destroy(plan);
        free(r);
        frg_context_destroy(ctx);
    }
}

static void refusals(void)
{
    const design cascade = {.q = 2, .p = 3, .gap = 1, .weights = true, .dtype = FRG_F64};
    const design rows = {
        .q = 2, .p = 3, .gap = 1, .slopes = 1, .method = FRG_FE_LSMR, .dtype = FRG_F64};
    for (int way = 0; way < 2; way++) {
        const design *const d = way ? &rows : &cascade;
        panel x = make_panel(d, 700);
        char says[64];
        const int64_t row = 100 + test_below(500);
        snprintf(says, sizeof says, "row %d", (int)row + 1);
        const double value = x.x[x.n + row];
        x.x[x.n + row] = (double)NAN;
        refused(d, &x, says);
        x.x[x.n + row] = 1e200;
        refused(d, &x, says);
        x.x[x.n + row] = value;
        if (x.weights) {
            x.weights[row] = -1;
            refused(d, &x, says);
            x.weights[row] = 1;
        } else {
            x.slope_values[row] = (double)INFINITY;
            refused(d, &x, says);
            x.slope_values[row] = 0;
        }
        x.codes[2 * row + 1] = -3;
        refused(d, &x, says);
        panel_free(&x);
    }
}

/* ---- a stop on the way ----------------------------------------------------------------------- */

typedef struct {
    const char *phase;
    int after; /* of its reports */
} stop;

static int stops(const frg_progress *p, void *user)
{
    stop *const s = user;
    return !strcmp(p->phase, s->phase) && s->after-- <= 0;
}

/** The columns that were done are as in memory, the others as they came, and said to be stopped. */
static void stopped_at(const design *d, const char *phase, int after)
{
    int64_t done = 0;
    panel x = make_panel(d, 900);
    frg_context *const memory = test_context();
    stop s = {phase, after};
    frg_context_opts o;
    frg_context *ctx = NULL;
    outcome want = {0};
    frg_demean_opts with = panel_options();
    frg_demean_column reports[PANEL_COLUMNS];
    frg_demean *plan = NULL;
    frg_context_defaults(&o, sizeof o);
    o.memory_limit = LIMIT;
    o.spool = ".";
    o.on_progress = stops;
    o.user = &s;
    with.method = d->method;
    CHECK_STATUS(frg_context_create(&ctx, &o), FRG_OK);
    frgi_spool_from(ctx, SMALL);
    void *const in = panel_zeros(x.n * x.p, sizeof(double));
    void *const out = panel_zeros(x.n * x.p, sizeof(double));
    const frg_array from = lay_out(d, &x, in), to = lay_out(d, &x, out);
    memset(out, 0, (size_t)(x.n * x.p) * sizeof(double));
    const frg_array target = d->in_place ? from : to;
    CHECK_OK(ctx, panel_create(&plan, ctx, &x, &with));
    CHECK(run(memory, d, &x, &want));
    CHECK_STATUS(frg_demean_run(plan, from, target, reports, NULL), FRG_INTERRUPTED);
    CHECK(frgi_fe_demean_lost(plan));
    for (int64_t c = 0; c < x.p; c++) {
        const double *const got = (const double *)(const void *)target.data + c * x.n;
        const bool whole = reports[c].status == FRG_OK;
        CHECK_BITS(got, (whole ? want.columns : x.x) + c * x.n, (size_t)x.n * sizeof(double));
        CHECK(whole || reports[c].status == FRG_INTERRUPTED);
        CHECK(reports[c].converged == whole && isnan(reports[c].audit) == !whole);
        done += whole;
    }
    CHECK_SAYS(after ? done > 0 && done < x.p : done == 0, "%d columns were done", (int)done);
    s.after = INT32_MAX; /* the plan goes on to be of use */
    CHECK_OK(ctx, frg_demean_run(plan, lay_out(d, &x, in), target, reports, NULL));
    CHECK(!frgi_fe_demean_lost(plan));
    CHECK_BITS(target.data, want.columns, (size_t)(x.n * x.p) * sizeof(double));
    frg_demean_destroy(plan);
    free(in);
    free(out);
    free(want.columns);
    free(want.alpha);
    panel_free(&x);
    frg_context_destroy(memory);
    frg_context_destroy(ctx);
}

static void stopped(void)
{
    static const char *const phases[] = {"order by level", "back to the rows' order"};
    for (int way = 0; way < 2; way++) {
        const bool in_place = test_below(2);
        const design d = {.q = 2, .p = 11, .gap = 1, .dtype = FRG_F64, .in_place = in_place};
        stopped_at(&d, phases[way], 0);
        stopped_at(&d, phases[way], 1); /* of the second block */
        const design rows = {.q = 2,
                             .p = 11,
                             .gap = 1,
                             .dtype = FRG_F64,
                             .in_place = !in_place,
                             .method = FRG_FE_LSMR};
        stopped_at(&rows, phases[way], 0);
    }
}

/* ---- other weights, and faults --------------------------------------------------------------- */

/** A plan that is given other weights has those of the rows as they stand. */
static void other_weights(void)
{
    const design d = {.q = 2, .p = 2, .gap = 1, .weights = true, .dtype = FRG_F64};
    panel x = make_panel(&d, 1500);
    double *const w = panel_zeros(x.n, sizeof *w);
    double *r[2];
    for (int64_t i = 0; i < x.n; i++)
        w[i] = 0.1 + test_uniform();
    for (int where = 0; where < 2; where++) {
        frg_context *const ctx = where ? spooled(2) : test_context();
        frg_demean *plan = NULL;
        const frg_demean_opts o = panel_options();
        r[where] = panel_zeros(x.n * x.p, sizeof *w);
        CHECK_OK(ctx, panel_create(&plan, ctx, &x, &o));
        for (int turn = 0; turn < 2; turn++) { /* before a run, and behind one */
            CHECK_OK(ctx, frgi_demean_reweight(plan, turn ? w : x.weights, o.tol));
            CHECK_OK(ctx, frg_demean_run(plan, panel_columns(&x, x.x), panel_columns(&x, r[where]),
                                         NULL, NULL));
        }
        frg_demean_destroy(plan);
        frg_context_destroy(ctx);
    }
    CHECK_BITS(r[1], r[0], (size_t)(x.n * x.p) * sizeof *w);
    free(r[0]);
    free(r[1]);
    free(w);
    panel_free(&x);
}

/** A plan that was saved in memory is one on the disk, and the other way round; of other codes it is
 *  none. */
static void plans_in_files(void)
{
    const design d = {.q = 3, .p = 2, .gap = 1, .weights = true, .dtype = FRG_F64};
    panel x = make_panel(&d, 1200);
    const frg_demean_opts o = panel_options();
    double *r[2];
    for (int way = 0; way < 2; way++) {
        frg_context *const memory = test_context(), *const disk = spooled(2);
        frg_context *const from = way ? disk : memory, *const to = way ? memory : disk;
        frg_demean *saved = NULL, *loaded = NULL, *other = NULL;
        for (int k = 0; k < 2; k++)
            r[k] = panel_zeros(x.n * x.p, sizeof(double));
        CHECK_OK(from, panel_create(&saved, from, &x, &o));
        CHECK_OK(from, frg_demean_run(saved, panel_columns(&x, x.x), panel_columns(&x, r[0]), NULL,
                                      NULL));
        CHECK_OK(from, frg_demean_save(saved, "scattered.plan"));
        CHECK_OK(to, panel_create(&loaded, to, &x, &o));
        CHECK_OK(to, frg_demean_load(loaded, "scattered.plan"));
        CHECK_OK(to, frg_demean_run(loaded, panel_columns(&x, x.x), panel_columns(&x, r[1]), NULL,
                                    NULL));
        CHECK_BITS(r[1], r[0], (size_t)(x.n * x.p) * sizeof(double));
        int32_t *const a = x.codes, *const b = x.codes + 3 * (x.n - 1);
        for (int q = 0; q < 3; q++) { /* the same levels in another order of the rows */
            const int32_t swap = a[q];
            a[q] = b[q];
            b[q] = swap;
        }
        CHECK_OK(to, panel_create(&other, to, &x, &o));
        CHECK_STATUS(frg_demean_load(other, "scattered.plan"), FRG_MISMATCH);
        frg_demean_destroy(saved);
        frg_demean_destroy(loaded);
        frg_demean_destroy(other);
        free(r[0]);
        free(r[1]);
        remove("scattered.plan");
        remove("scattered.plan~");
        frg_context_destroy(memory);
        frg_context_destroy(disk);
    }
    panel_free(&x);
}

typedef struct {
    design d;
    panel x;
    size_t from; /* bytes of a block on the disk */
} job;

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *const j = user;
    const int64_t count = j->x.n * j->x.p;
    frg_demean_opts o = panel_options();
    frg_demean *plan = NULL;
    double *const r = panel_zeros(count, sizeof *r);
    o.method = j->d.method;
    if (!ctx->spool) {
        ctx->opts.memory_limit = LIMIT;
        const frg_status opened = frgi_spool_open(ctx, ".");
        if (opened < 0) {
            free(r);
            return opened;
        }
        frgi_spool_from(ctx, j->from);
    }
    frg_status s = panel_create(&plan, ctx, &j->x, &o);
    CHECK((s < 0) == (plan == NULL));
    if (s >= 0)
        s = frg_demean_run(plan, panel_columns(&j->x, j->x.x), panel_columns(&j->x, r), NULL, NULL);
    if (s >= 0)
        fault_hash(hash, r, (size_t)count * sizeof *r);
    for (int64_t i = 0; i < count && s < 0; i++)
        CHECK(r[i] == 0);
    frg_demean_destroy(plan);
    free(r);
    return s;
}

static void faults(void)
{
    static const design designs[] = {{.q = 2, .p = 3, .gap = 3, .weights = true, .dtype = FRG_F64},
                                     {.q = 2, .p = 2, .gap = 1, .slopes = 3, .dtype = FRG_F64}};
    for (size_t i = 0; i < 2 * sizeof designs / sizeof *designs; i++) {
        /* the second time all blocks lie in memory, where those of the sweep have guards */
        job j = {.d = designs[i / 2], .from = i % 2 ? (size_t)1 << 40 : SMALL};
        j.x = make_panel(&j.d, 600);
        CHECK(fault_sweep("scattered rows on the disk", body, &j, 1) > 10);
        panel_free(&j.x);
    }
}

static const test_case cases[] = {{"same bits", same_bits},
                                  {"refusals", refusals},
                                  {"stopped", stopped},
                                  {"other weights", other_weights},
                                  {"plans in files", plans_in_files},
                                  {"faults", faults}};
TEST_MAIN(cases)
