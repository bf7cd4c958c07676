/* test_fe_steps.c - the solver looks at no vector itself: designs that call for every solver run
 * with vectors in pages without rights between steps (guard.h), with the bits of a run without;
 * a touch outside of a step faults; each step fails once.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "fe/fe_demean_plan.h"
#include "guard.h"
#include "panel.h"

/** Components that call for different solvers, two large factors, a chain, small factors. */
static panel design_of(int which)
{
    const int64_t n = 3000;
    if (which == 0)
        return panel_cycle(400);
    if (which == 1)
        return panel_workers(n, 3, 3);
    panel d = panel_make(n, 3, 3);
    panel_random_codes(&d, (const int64_t[]){300, 120, which == 2 ? 110 : 9});
    if (which == 3)
        panel_random_weights(&d, 0.5, 2);
    for (int64_t i = 0; i < n && which == 4; i++) { /* three chains of 500 levels apart */
        const int32_t part = (int32_t)(i * 3 / n), at = (int32_t)(i % 1000);
        d.codes[3 * i] = 1000 * part + at / 2;
        d.codes[3 * i + 1] = 600 * part + (at + 1) / 2;
        d.codes[3 * i + 2] = part;
    }
    return d;
}

enum { DESIGNS = 5, METHODS = 9, BY_ROWS = 5 };

static frg_demean_opts options_of(int method)
{
    static const frg_fe_method methods[METHODS] = {
        FRG_FE_AUTO, FRG_FE_DIRECT, FRG_FE_CG,   FRG_FE_CG,  FRG_FE_CG,
        FRG_FE_LSMR, FRG_FE_MAP,    FRG_FE_AUTO, FRG_FE_LSMR}; /* the last two with a slope */
    frg_demean_opts o = panel_options();
    o.method = methods[method];
    o.precond = method == 3 ? FRG_FE_PRECOND_AC : FRG_FE_PRECOND_AUTO;
    o.dtype = method == 4 ? FRG_FE_MIXED : FRG_FE_F64;
    o.max_iter = method >= 2 && method != 6 ? 300 : o.max_iter;
    o.max_sweeps = method == 6 ? 100 : o.max_sweeps;
    return o;
}

/** Residuals, reports, effects and rank of a plan with these steps. */
static frg_status run(frg_context *ctx, const panel *d, int method, const fe_steps *steps,
                      double *r, uint64_t *hash)
{
    const frg_array codes = frg_matrix(d->codes, FRG_I32, d->n, d->q, d->q);
    const frg_array weights = frg_vector(d->weights, FRG_F64, d->n);
    const frg_demean_opts o = options_of(method);
    frg_demean_column columns[PANEL_COLUMNS];
    frg_demean *plan = NULL;
    double *alpha = panel_zeros(2 * d->n * d->q, sizeof *alpha);
    const frg_slope slope = {.factor = 0, .z = d->x};
    memset(columns, 0, sizeof columns);
    frg_status s = frgi_fe_demean_create(&plan, ctx, codes, d->weights ? &weights : NULL,
                                         method > 6 ? &slope : NULL, method > 6, 0, &o, steps);
    if (s >= 0)
        s = frg_demean_run(plan, panel_columns(d, d->x), panel_columns(d, r), columns, NULL);
    const frg_status ended = s;
    for (int k = 0; k < d->p && s >= 0; k++) {
        s = frg_demean_effects(plan, k, alpha);
        fault_hash(hash, alpha, (size_t)(2 * d->n * d->q) * sizeof *alpha);
    }
    fault_hash(hash, r, (size_t)(d->n * d->p) * sizeof *r);
    for (int k = 0; k < d->p && s >= 0; k++)
        fault_hash(hash,
                   (const double[]){columns[k].audit, columns[k].error_bound,
                                    (double)columns[k].iterations},
                   3 * sizeof(double));
    frg_demean_destroy(plan);
    free(alpha);
    return s < 0 ? s : ended;
}

static void out_of_reach(void)
{
    for (int which = 0; which < DESIGNS; which++) {
        panel d = design_of(which);
        for (int method = 0; method < METHODS; method++) {
            double *r = panel_zeros(d.n * d.p, sizeof *r);
            frg_context *ctx = test_context();
            uint64_t want = 0, got = 0;
            const frg_status plain = run(ctx, &d, method, &frgi_fe_host_steps, r, &want);
            memset(r, 0, (size_t)(d.n * d.p) * sizeof *r);
            guard.opened = guard_row_calls = 0;
            CHECK_STATUS(run(ctx, &d, method, &guarded_steps, r, &got), plain);
            CHECK_SAYS(got == want, "design %d, method %d: other bits", which, method);
            CHECK(guard.opened > 0);
            CHECK_INT(guard.arenas, 0);
            CHECK(method < BY_ROWS ? guard_row_calls == 0 : guard_row_calls > 10);
            frg_context_destroy(ctx);
            free(r);
        }
        panel_free(&d);
    }
}

/** A step beside the table: the plan's first vector is read. */
static void a_touch_faults(void)
{
    panel d = panel_workers(800, 2, 1);
    double *r = panel_zeros(d.n, sizeof *r);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        frg_context *ctx = test_context_with(1, NULL, NULL);
        frg_demean *plan = NULL;
        const frg_demean_opts o = panel_options();
        signal(SIGSEGV, SIG_DFL);
        if (frgi_fe_demean_create(&plan, ctx, frg_matrix(d.codes, FRG_I32, d.n, 2, 2), NULL, NULL,
                                  0, 0, &o, &guarded_steps) == FRG_OK &&
            frg_demean_run(plan, panel_columns(&d, d.x), panel_columns(&d, r), NULL, NULL) ==
                FRG_OK)
            for (int k = 1; k <= FE_MAX_LANES; k++)
                if (plan->work[k].answer)
                    _exit(((volatile double *)plan->work[k].answer)[0] > 0 ? 1 : 2);
        _exit(3);
    }
    int how = 0;
    CHECK(child > 0 && waitpid(child, &how, 0) == child);
    CHECK(WIFSIGNALED(how) ||
          WEXITSTATUS(how) > 3); /* a sanitizer ends it with a status of its own */
    free(r);
    panel_free(&d);
}

/** Each step fails once: the run says so or copes, nothing is left behind, the plan's context
 *  works on, and columns are whole or as they were where the first step that writes them was not
 *  reached. */
static void each_step_fails(void)
{
    for (int which = 0; which < DESIGNS + METHODS - BY_ROWS; which++) {
        const int method = which < DESIGNS ? 0 : which - DESIGNS + BY_ROWS;
        panel d = design_of(which < DESIGNS ? which : 1);
        double *r = panel_zeros(d.n * d.p, sizeof *r);
        fault_memory memory;
        fault_memory_open(&memory);
        frg_context *ctx = test_context_with(1, &memory.table, NULL);
        const int64_t live = memory.live_blocks;
        bool reached = true;
        int64_t failed = 0;
        for (int64_t k = 1; reached && k < 2000; k += 1 + k / 12) {
            uint64_t hash = 0;
            guard.calls = 0;
            guard.fail_at = k;
            const frg_status s = run(ctx, &d, method, &guarded_steps, r, &hash);
            reached = guard.calls >= k;
            failed += reached && s == FRG_IO;
            CHECK_SAYS(s == FRG_IO || s >= 0, "step %lld: %s", (long long)k, frg_status_name(s));
            CHECK_INT(guard.arenas, 0);
            CHECK_INT(guard.depth, 0);
            CHECK_INT(memory.live_blocks, live);
        }
        CHECK(failed > 5);
        guard.fail_at = 0;
        frg_context_destroy(ctx);
        CHECK_INT(memory.broken, 0);
        free(r);
        panel_free(&d);
    }
}

static const test_case cases[] = {
    {"vectors out of reach", out_of_reach},
    {"a touch faults", a_touch_faults},
    {"each step fails once", each_step_fails},
};
TEST_MAIN(cases)
