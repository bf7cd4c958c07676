/* test_plan_file.c - plans of the demeaner in files: the same bits without the work, and what is
 * refused.
 *
 * That nothing is assembled, probed or factored again is seen by the solver's own progress: the
 * phases "assembly" and "factor", which a fresh plan of every solver but the rows' reports.
 */
#include <unistd.h>

#include "core/checkpoint_bytes.h"
#include "fault.h"
#include "fe/fe_demean.h"
#include "fe/fe_demean_plan.h"
#include "panel.h"

static char path[48], older[sizeof path + 1];

static void remove_files(void)
{
    remove(path);
    remove(older);
}

/** Files of this process alone, since several may run. */
__attribute__((constructor)) static void name_files(void)
{
    snprintf(path, sizeof path, "/tmp/fourge_%ld.plan", (long)getpid());
    snprintf(older, sizeof older, "%s~", path);
    atexit(remove_files);
}

typedef struct {
    const char *name;
    panel d;
    frg_demean_opts o;
} job;
enum { JOBS = 9 };

/** Designs that end with each solver. */
static void make_jobs(job *j)
{
    const frg_demean_opts o = panel_options();
    j[0] = (job){"workers", panel_workers(4000, 2, 3), o};
    j[1] = (job){"workers, years, weights", panel_workers(4000, 3, 3), o};
    panel_random_weights(&j[1].d, 0.5, 2);
    j[2] = (job){"cycle", panel_cycle(300), o};
    j[3] = (job){"easy", panel_usual(), o};
    j[4] = (job){"factor", panel_make(3000, 2, 2), o};
    panel_random_codes(&j[4].d, (const int64_t[]){700, 300});
    j[4].o.method = FRG_FE_DIRECT;
    j[5] = (job){"approximate factor", panel_workers(4000, 3, 2), o};
    j[5].o.precond = FRG_FE_PRECOND_AC;
    j[6] = (job){"explicit", panel_workers(4000, 2, 2), o};
    j[6].o.precond = FRG_FE_PRECOND_DIAG;
    j[7] = (job){"one factor", panel_make(300, 1, 2), o};
    panel_random_codes(&j[7].d, (const int64_t[]){20});
    j[8] = (job){"pairs", panel_workers(4000, 3, 2), o};
    j[8].o.precond = FRG_FE_PRECOND_SCHWARZ;
}

static void free_jobs(job *j)
{
    for (int i = 0; i < JOBS; i++)
        panel_free(&j[i].d);
}

static int count_work(const frg_progress *p, void *user)
{
    *(int *)user += strcmp(p->phase, "assembly") == 0 || strcmp(p->phase, "factor") == 0;
    return 0;
}

static frg_context *counting(int *work)
{
    frg_context_opts c;
    frg_context *ctx = NULL;
    frg_context_defaults(&c, sizeof c);
    c.threads = test_now.threads;
    c.on_progress = count_work;
    c.user = work;
    CHECK_STATUS(frg_context_create(&ctx, &c), FRG_OK);
    return ctx;
}

static void run(frg_context *ctx, frg_demean *plan, const panel *d, double *r)
{
    frg_demean_column columns[PANEL_COLUMNS];
    CHECK_OK(ctx, frg_demean_run(plan, panel_columns(d, d->x), panel_columns(d, r), columns, NULL));
}

static void same_bits(void)
{
    job j[JOBS];
    make_jobs(j);
    int worked = 0;
    for (int i = 0; i < JOBS; i++) {
        const panel *const d = &j[i].d;
        const size_t bytes = (size_t)(d->n * d->p) * sizeof(double);
        double *first = panel_zeros(d->n * d->p, sizeof *first),
               *r = panel_zeros(d->n * d->p, sizeof *r);
        int work = 0;
        frg_context *ctx = counting(&work);
        frg_demean *plan = NULL;
        CHECK_OK(ctx, panel_create(&plan, ctx, d, &j[i].o));
        run(ctx, plan, d, first);
        CHECK_OK(ctx, frg_demean_save(plan, path));
        const frg_demean_report before = frg_demean_get(plan);
        frg_demean_rank rank, again;
        CHECK_OK(ctx, frg_demean_get_rank(plan, &rank));
        frg_demean_destroy(plan);
        worked += work > 0;
        work = 0;
        CHECK_OK(ctx, panel_create(&plan, ctx, d, &j[i].o));
        if (CHECK_OK(ctx, frg_demean_load(plan, path))) {
            run(ctx, plan, d, r);
            CHECK_BITS(r, first, bytes);
            CHECK_SAYS(work == 0, "%s: %d calls of work that was saved", j[i].name, work);
            const frg_demean_report after = frg_demean_get(plan);
            CHECK_TEXT(after.method, before.method);
            CHECK_OK(ctx, frg_demean_get_rank(plan, &again));
            CHECK_INT(again.rank, rank.rank);
        }
        frg_demean_destroy(plan);
        CHECK_INT((int64_t)frg_bytes_held(ctx), 0);
        frg_context_destroy(ctx);
        free(first);
        free(r);
    }
    CHECK(worked >= 6);
    free_jobs(j);
}

static void expect_mismatch(frg_context *ctx, const panel *d, const frg_demean_opts *o,
                            const char *says)
{
    frg_demean *plan = NULL;
    double *r = panel_zeros(d->n * d->p, sizeof *r), *want = panel_residuals(d, o, 1);
    CHECK_OK(ctx, panel_create(&plan, ctx, d, o));
    CHECK_STATUS(frg_demean_load(plan, path), FRG_MISMATCH);
    CHECK_TEXT(frg_error_code(ctx), "FRG-IO-011");
    CHECK_SAYS(strstr(frg_message(ctx), says) && strstr(frg_message(ctx), path), "%s",
               frg_message(ctx));
    run(ctx, plan, d, r); /* as a plan that was not asked to read anything */
    CHECK_BITS(r, want, (size_t)(d->n * d->p) * sizeof *r);
    frg_demean_destroy(plan);
    free(r);
    free(want);
}

static void another_design(void)
{
    panel d = panel_workers(2000, 2, 1);
    panel_random_weights(&d, 0.5, 2);
    frg_demean_opts o = panel_options();
    frg_context *ctx = test_context();
    frg_demean *plan = NULL;
    double *r = panel_zeros(d.n, sizeof *r);
    CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
    run(ctx, plan, &d, r);
    CHECK_OK(ctx, frg_demean_save(plan, path));
    frg_demean_destroy(plan);

    const int32_t code = d.codes[1];
    d.codes[1] = d.codes[17];
    d.codes[17] = code;
    if (d.codes[1] != d.codes[17])
        expect_mismatch(ctx, &d, &o, "other codes");
    d.codes[17] = d.codes[1];
    d.codes[1] = code;
    const double weight = d.weights[7];
    d.weights[7] *= 1.5;
    expect_mismatch(ctx, &d, &o, "other weights");
    d.weights[7] = weight;
    o.tol = 1e-9;
    expect_mismatch(ctx, &d, &o, "other options");
    frg_context_destroy(ctx);
    free(r);
    panel_free(&d);
}

static void kinds(void)
{
    frg_context *ctx = test_context();
    panel d = panel_workers(400, 2, 1);
    frg_demean_opts o = panel_options();
    static const frg_fe_method methods[] = {FRG_FE_LSMR, FRG_FE_MLSMR, FRG_FE_MAP};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        frg_demean *plan = NULL;
        o.method = methods[i];
        CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
        CHECK_STATUS(frg_demean_save(plan, path), FRG_UNSUPPORTED);
        CHECK(strstr(frg_message(ctx), "method lsmr"));
        frg_demean_destroy(plan);
    }
    CHECK_STATUS(frg_demean_save(NULL, path), FRG_BAD_ARG);
    CHECK_STATUS(frg_demean_load(NULL, path), FRG_BAD_ARG);
    frg_demean *plan = NULL;
    o = panel_options();
    CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
    CHECK_STATUS(frg_demean_load(plan, "nowhere.plan"), FRG_NO_INPUT);
    CHECK_STATUS(frg_demean_save(plan, NULL), FRG_BAD_ARG);
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    panel_free(&d);
}

/** The bytes of a file. */
static char *read_all(const char *name, long *count)
{
    FILE *const f = fopen(name, "rb");
    char *bytes = NULL;
    if (CHECK(f != NULL)) {
        fseek(f, 0, SEEK_END);
        *count = ftell(f);
        rewind(f);
        bytes = panel_zeros(*count, 1);
        CHECK(fread(bytes, 1, (size_t)*count, f) == (size_t)*count);
        fclose(f);
    }
    return bytes;
}

static void write_all(const char *name, const char *bytes, long count)
{
    FILE *const f = fopen(name, "wb");
    if (CHECK(f != NULL)) {
        CHECK(fwrite(bytes, 1, (size_t)count, f) == (size_t)count);
        fclose(f);
    }
}

/** Cut anywhere, or with a bit flipped anywhere: refused, and the plan goes on as it was. */
static void damaged(void)
{
    static const char broken[] = "broken.plan";
    panel d = panel_workers(800, 2, 1);
    frg_demean_opts o = panel_options();
    o.method = FRG_FE_DIRECT;
    frg_context *ctx = test_context();
    frg_demean *plan = NULL;
    double *r = panel_zeros(d.n, sizeof *r), *want = panel_residuals(&d, &o, 1);
    CHECK_OK(ctx, panel_create(&plan, ctx, &d, &o));
    run(ctx, plan, &d, r);
    CHECK_OK(ctx, frg_demean_save(plan, path));
    long count = 0;
    char *const bytes = read_all(path, &count);
    for (int t = 0; t < 400 && bytes; t++) {
        const long at = (long)test_below(count);
        const char bit = (char)(1 << test_below(8));
        bytes[at] ^= bit;
        write_all(broken, bytes, t % 2 ? count : at);
        const frg_status s = frg_demean_load(plan, broken);
        CHECK_SAYS(s == FRG_BAD_DATA || s == FRG_MISMATCH, "byte %ld of %ld: %s", at, count,
                   frg_status_name(s));
        bytes[at] ^= bit;
    }
    memset(r, 0, (size_t)d.n * sizeof *r);
    run(ctx, plan, &d, r);
    CHECK_BITS(r, want, (size_t)d.n * sizeof *r);
    frg_demean_destroy(plan);
    frg_context_destroy(ctx);
    remove(broken);
    free(bytes);
    free(r);
    free(want);
    panel_free(&d);
}

/* ---- other weights --------------------------------------------------------------------------- */

/** A plan whose weights are changed has the bits of one made with them: the order of its factor,
 *  which is kept, depends on the graph alone. */
static void other_weights(void)
{
    job j[JOBS];
    make_jobs(j);
    for (int i = 0; i < JOBS; i++) {
        panel *const d = &j[i].d;
        const size_t bytes = (size_t)(d->n * d->p) * sizeof(double);
        if (!d->weights)
            panel_random_weights(d, 0.5, 2);
        double *r = panel_zeros(d->n * d->p, sizeof *r);
        frg_context *ctx = test_context();
        frg_demean *plan = NULL;
        CHECK_OK(ctx, panel_create(&plan, ctx, d, &j[i].o));
        run(ctx, plan, d, r);
        for (int turn = 0; turn < 3; turn++) {
            for (int64_t k = 0; k < d->n; k++)
                d->weights[k] *= 0.5 + test_uniform();
            if (i == 4 || j[i].o.precond != FRG_FE_PRECOND_AUTO || d->q == 1) {
                double *want = panel_residuals(d, &j[i].o, 1);
                CHECK_OK(ctx, frgi_demean_reweight(plan, d->weights, j[i].o.tol));
                run(ctx, plan, d, r);
                CHECK_BITS(r, want, bytes);
                free(want);
            } else {
                CHECK_OK(ctx, frgi_demean_reweight(plan, d->weights, j[i].o.tol));
                run(ctx, plan, d, r); /* CHECKs that each column has converged */
            }
        }
        frg_demean_destroy(plan);
        CHECK_INT((int64_t)frg_bytes_held(ctx), 0);
        frg_context_destroy(ctx);
        free(r);
    }
    free_jobs(j);
}

/* ---- plans of regressions -------------------------------------------------------------------- */

/** y, x, z and the codes of a panel of workers, with a row that no fit uses. */
static frg_table *fit_table(frg_context *ctx, const panel *d)
{
    static const char *const names[] = {"y", "x", "z"};
    frg_table *t = NULL;
    double *values = panel_zeros(d->n, sizeof *values);
    int64_t *codes = panel_zeros(d->n, sizeof *codes);
    CHECK_OK(ctx, frg_table_create(&t, ctx, d->n));
    for (int j = 0; j < 3; j++) {
        memcpy(values, d->x + j * d->n, (size_t)d->n * sizeof *values);
        values[5] = j == 0 ? (double)NAN : values[5];
        CHECK_OK(ctx, frg_table_add_numbers(t, names[j], values));
    }
    for (int64_t q = 0; q < 2; q++) {
        for (int64_t i = 0; i < d->n; i++)
            codes[i] = d->codes[i * d->q + q];
        CHECK_OK(ctx, frg_table_add_integers(t, q ? "firm" : "worker", codes));
    }
    free(values);
    free(codes);
    return t;
}

static frg_fe_opts fit_options(const char *plan, int keep_effects)
{
    frg_fe_opts o;
    frg_fe_defaults(&o, sizeof o);
    o.plan = plan;
    o.keep_effects = keep_effects;
    return o;
}

/** The estimates of a fit with the options; plan_read is `read`. */
static frg_fe *fit_with(frg_context *ctx, const frg_table *t, const frg_fe_opts *o, int read)
{
    frg_fe *f = NULL;
    if (CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x + z | worker + firm", t, o)))
        CHECK_INT(frg_fe_get(f)->plan_read, read);
    return f;
}

/** A second fit of the same rows, of other columns as well, assembles and factors nothing and has
 *  the bits of one without a file. */
static void fits(void)
{
    panel d = panel_workers(4000, 2, 3);
    for (int keep = 0; keep < 2; keep++) {
        int work = 0;
        frg_context *ctx = counting(&work);
        frg_table *t = fit_table(ctx, &d);
        const frg_fe_opts plain = fit_options(NULL, keep), kept = fit_options(path, keep);
        remove_files();
        frg_fe *want = fit_with(ctx, t, &plain, 0), *f = NULL;
        CHECK_STATUS(frg_fe_save_plan(want, path), FRG_BAD_ARG);
        CHECK_OK(ctx, frg_fe_fit(&f, ctx, "y ~ x | worker + firm", t, &kept));
        CHECK_INT(frg_fe_get(f)->plan_read, 0);
        CHECK_STATUS(frg_fe_save_plan(f, "missing/p.plan"), FRG_CANNOT_CREATE);
        CHECK_OK(ctx, frg_fe_save_plan(f, path));
        CHECK_STATUS(frg_fe_save_plan(f, path), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "written before"));
        frg_fe_destroy(f);
        CHECK(work > 0);
        work = 0;
        f = fit_with(ctx, t, &kept, 1);
        CHECK_INT(work, 0);
        for (int k = 0; k < 2; k++) {
            const frg_coefficient *const a = &frg_fe_get(f)->coefficients[k],
                                         *const b = &frg_fe_get(want)->coefficients[k];
            CHECK_BITS(&a->estimate, &b->estimate, sizeof a->estimate);
            CHECK_BITS(&a->std_error, &b->std_error, sizeof a->std_error);
        }
        CHECK_STATUS(frg_fe_save_plan(f, path), FRG_BAD_ARG);
        CHECK(strstr(frg_message(ctx), "it read one"));
        frg_fe_destroy(f);
        frg_fe_destroy(want);
        frg_table_destroy(t);
        CHECK_INT((int64_t)frg_bytes_held(ctx), 0);
        frg_context_destroy(ctx);
    }
    panel_free(&d);
}

static void refuse_fit(frg_context *ctx, const frg_table *t, const char *formula,
                       const frg_fe_opts *o, frg_status status, const char *says)
{
    frg_fe_many *m = NULL;
    CHECK_STATUS(frg_fe_fit_many(&m, ctx, formula, t, o), status);
    CHECK_SAYS(strstr(frg_message(ctx), says) != NULL, "%s", frg_message(ctx));
    CHECK(m == NULL);
}

/** Other rows are others' codes; what has no plan is refused before anything is solved. */
static void fits_refused(void)
{
    panel d = panel_workers(2000, 2, 3);
    frg_context *ctx = test_context();
    frg_table *t = fit_table(ctx, &d);
    frg_fe_opts o = fit_options(path, 0);
    remove_files();
    frg_fe *f = fit_with(ctx, t, &o, 0);
    CHECK_OK(ctx, frg_fe_save_plan(f, path));
    frg_fe_destroy(f);
    o.subset = "z > -1";
    refuse_fit(ctx, t, "y ~ x | worker + firm", &o, FRG_MISMATCH, "other codes");
    o.subset = NULL;
    o.demean.tol = 1e-9;
    refuse_fit(ctx, t, "y ~ x | worker + firm", &o, FRG_MISMATCH, "other options");
    o = fit_options(path, 0);
    refuse_fit(ctx, t, "y ~ x", &o, FRG_BAD_ARG, "no fixed effects");
    refuse_fit(ctx, t, "y ~ sw(x, z) | worker + firm", &o, FRG_BAD_ARG, "of one model");
    refuse_fit(ctx, t, "y ~ x | worker[z]", &o, FRG_UNSUPPORTED, "varying slopes");
    o.demean.method = FRG_FE_LSMR;
    refuse_fit(ctx, t, "y ~ x | worker + firm", &o, FRG_UNSUPPORTED, "method lsmr");
    o = fit_options(path, 0);
    o.family = FRG_FAMILY_GAUSSIAN;
    refuse_fit(ctx, t, "y ~ x | worker + firm", &o, FRG_UNSUPPORTED, "weights of a family");
    o = fit_options(path, 0);
    o.first_stage = "z ~ 0 | worker";
    o.vcov[0] = "hc1";
    refuse_fit(ctx, t, "y ~ x", &o, FRG_UNSUPPORTED, "one stage");
    CHECK_STATUS(frg_fe_save_plan(NULL, path), FRG_BAD_ARG);
    frg_table_destroy(t);
    frg_context_destroy(ctx);
    panel_free(&d);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static frg_status save_and_load(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *const j = user;
    double *r = panel_zeros(j->d.n * j->d.p, sizeof *r);
    frg_demean_column columns[PANEL_COLUMNS];
    frg_demean *plan = NULL;
    frg_status s = panel_create(&plan, ctx, &j->d, &j->o);
    for (int turn = 0; turn < 2 && s >= 0; turn++) {
        s = frg_demean_run(plan, panel_columns(&j->d, j->d.x), panel_columns(&j->d, r), columns,
                           NULL);
        s = s < 0 ? s : turn ? FRG_OK : frg_demean_save(plan, path);
        s = s < 0 ? s : frg_demean_load(plan, path);
    }
    if (s >= 0)
        fault_hash(hash, r, (size_t)(j->d.n * j->d.p) * sizeof *r);
    frg_demean_destroy(plan);
    free(r);
    return s;
}

/** A fit that makes its plan, and one that reads it. */
static frg_status fit_twice(frg_context *ctx, void *user, uint64_t *hash)
{
    const panel *const d = user;
    frg_table *t = NULL;
    frg_status s = frg_table_create(&t, ctx, d->n);
    s = s < 0 ? s : frg_table_add_numbers(t, "y", d->x);
    for (int64_t q = 0; q < 2 && s >= 0; q++) {
        int64_t codes[128];
        for (int64_t i = 0; i < d->n; i++)
            codes[i] = d->codes[i * d->q + q];
        s = frg_table_add_integers(t, q ? "firm" : "worker", codes);
    }
    const frg_fe_opts o = fit_options(path, 0);
    remove_files();
    for (int turn = 0; turn < 2 && s >= 0; turn++) {
        frg_fe *f = NULL;
        s = frg_fe_fit(&f, ctx, "y ~ 1 | worker + firm", t, &o);
        if (s >= 0) {
            fault_hash(hash, &frg_fe_get(f)->rss, sizeof(double));
            s = turn ? s : frg_fe_save_plan(f, path);
        }
        frg_fe_destroy(f);
    }
    frg_table_destroy(t);
    return s;
}

static void faults_of_fits(void)
{
    panel d = panel_workers(120, 2, 1);
    CHECK(fault_sweep("fits", fit_twice, &d, test_now.threads) > 10);
    panel_free(&d);
}

static void faults(void)
{
    job j[JOBS];
    make_jobs(j);
    for (int i = 0; i < JOBS; i++)
        if (i == 2) /* each save waits for the disk */
            CHECK(fault_sweep(j[i].name, save_and_load, &j[i], test_now.threads) > 10);
    free_jobs(j);
}

static const test_case cases[] = {
    {"same bits", same_bits},          {"another design", another_design},
    {"kinds of plans", kinds},         {"damaged files", damaged},
    {"other weights", other_weights},  {"fits", fits},
    {"fits refused", fits_refused},    {"faults", faults},
    {"faults of fits", faults_of_fits}};
TEST_MAIN(cases)
