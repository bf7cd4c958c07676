/* test_soap_steps.c - a step of the optimizer touches the states of parameters within the steps of
 * soap_state.h alone: handles of all profiles run with states in pages without rights in between
 * (pages.h), with the bits of a run without; a touch outside faults.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pages.h"
#include "soap/soap_state.h"
#include "soap_data.h"

/* ---- the host's steps within their rights ---------------------------------------------------- */

static frg_status guarded_state(frg_soap *soap, soap_param *p)
{
    p->state = (frgi_arena){.used = p->state_bytes};
    const frg_status status = guard_open(&p->state, soap->ctx, "a state");
    if (status < 0)
        return status;
    if (!guard_enter())
        return FRG_IO;
    frgi_soap_lay_out(soap, p);
    return guard_leave(FRG_OK);
}

static void close_guarded(frg_soap *soap, soap_param *p)
{
    if (p->state.base)
        guard_close(&p->state, soap->ctx);
}

static void guarded_run(frg_soap *soap, const soap_loop *loop)
{
    (void)guard_enter();
    frgi_soap_host_steps.run(soap, loop);
    (void)guard_leave(FRG_OK);
}

static double guarded_norm(const frg_soap *soap, const soap_factor *f)
{
    (void)guard_enter();
    const double norm = frgi_soap_host_steps.norm(soap, f);
    (void)guard_leave(FRG_OK);
    return norm;
}

static void guarded_rescale(const frg_soap *soap, soap_param *p, int exponent)
{
    (void)guard_enter();
    frgi_soap_host_steps.rescale(soap, p, exponent);
    (void)guard_leave(FRG_OK);
}

static bool guarded_eigh_f64(frg_soap *soap, const soap_param *p, soap_factor *f)
{
    (void)guard_enter();
    const bool done = frgi_soap_host_steps.eigh_f64(soap, p, f);
    (void)guard_leave(FRG_OK);
    return done;
}

static const soap_steps guarded_steps = {.open = guarded_state,
                                         .close = close_guarded,
                                         .run = guarded_run,
                                         .norm = guarded_norm,
                                         .rescale = guarded_rescale,
                                         .eigh_f64 = guarded_eigh_f64};

/* ---- runs ------------------------------------------------------------------------------------ */

enum { PARAMS = 3, MOST = 512, STEPS = 9, ROWS = 14 };

static frg_soap_opts options_of(int row)
{
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, (frg_soap_profile)(row % 3));
    o.use_eigh = row == 3;
    o.use_adaptive_criteria = row == 4 || row == 5;
    o.adaptive_tolerance = 0.02;
    o.moment2_order = row == 6 || row == 8 ? FRG_MOMENT2_ROTATE : o.moment2_order;
    o.adam_warmup_steps = row == 7 || row == 9 ? 3 : 0;
    o.warmup_v = row == 9 ? FRG_WARMUP_V_ROTATE : FRG_WARMUP_V_KEEP;
    o.precondition_frequency = row >= 9 ? 2 : 1;
    o.stagger = row == 10;
    o.refresh_async = row == 11;
    o.use_kl_shampoo = row == 12;
    o.block_dim = row == 13 ? 5 : 0;
    return o;
}

/** W of three parameters after some steps; gradients of the sixth are beyond 2^40, one is missing
 *  now and then. */
static void run(int row, const soap_steps *steps, float (*w)[MOST])
{
    static const int64_t rows[PARAMS] = {16, 9, 12}, columns[PARAMS] = {16, 20, 7};
    static float g[PARAMS][MOST];
    frg_context *ctx = test_context();
    const frg_soap_opts o = options_of(row);
    frg_soap *soap = NULL;
    test_now.random = (uint64_t)row + 1;
    if (!CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o)))
        return;
    soap->steps = steps;
    for (int i = 0; i < PARAMS; i++) {
        gaussian(1, w[i], MOST);
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w[i], rows[i], columns[i]), NULL, NULL));
    }
    for (int t = 0; t < STEPS; t++) {
        frg_array grads[PARAMS];
        for (int i = 0; i < PARAMS; i++) {
            gaussian(t == 6 ? 0x1p50 : 1, g[i], MOST);
            grads[i] = t % 4 == 3 && i == 1 ? (frg_array){0} : matrix(g[i], rows[i], columns[i]);
        }
        CHECK_OK(ctx, frg_soap_step(soap, grads, PARAMS, NULL));
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
}

static void out_of_reach(void)
{
    static float want[PARAMS][MOST], got[PARAMS][MOST];
    for (int row = 0; row < ROWS; row++) {
        run(row, &frgi_soap_host_steps, want);
        guard.opened = 0;
        run(row, &guarded_steps, got);
        CHECK_BITS(got, want, sizeof want);
        CHECK_INT(guard.opened, PARAMS);
        CHECK_INT(guard.arenas, 0);
        CHECK_INT(guard.depth, 0);
    }
}

/** A first moment is read between two steps. */
static void a_touch_faults(void)
{
    static float w[64], g[64];
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        frg_context *ctx = test_context_with(1, NULL, NULL);
        frg_soap *soap = NULL;
        const frg_array at = matrix(w, 8, 8), grad = matrix(g, 8, 8);
        signal(SIGSEGV, SIG_DFL);
        if (frg_soap_create(&soap, ctx, NULL) != FRG_OK)
            _exit(3);
        soap->steps = &guarded_steps;
        if (frg_soap_add_param(soap, 0, at, NULL, NULL) == FRG_OK &&
            frg_soap_step(soap, &grad, 1, NULL) == FRG_OK)
            _exit(((volatile float *)soap->params[0]->m)[0] > 0 ? 1 : 2);
        _exit(3);
    }
    int how = 0;
    CHECK(child > 0 && waitpid(child, &how, 0) == child);
    CHECK(WIFSIGNALED(how) ||
          WEXITSTATUS(how) > 3); /* a sanitizer ends it with a status of its own */
}

/** The memory of a state is refused: the step says so, and nothing is left behind. */
static void opening_fails(void)
{
    float w[64] = {0}, g[64] = {0};
    const frg_array grad = matrix(g, 8, 8);
    frg_context *ctx = test_context();
    frg_soap *soap = NULL;
    CHECK_OK(ctx, frg_soap_create(&soap, ctx, NULL));
    soap->steps = &guarded_steps;
    CHECK_OK(ctx, frg_soap_add_param(soap, 0, matrix(w, 8, 8), NULL, NULL));
    guard.calls = 0;
    guard.fail_at = 1;
    CHECK_STATUS(frg_soap_step(soap, &grad, 1, NULL), FRG_IO);
    guard.fail_at = 0;
    CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
    frg_soap_destroy(soap);
    CHECK_INT(guard.arenas, 0);
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"states out of reach", out_of_reach},
    {"a touch faults", a_touch_faults},
    {"no memory for a state", opening_fails},
};
TEST_MAIN(cases)
