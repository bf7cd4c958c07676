/* test_gp_fault.c - every allocation of create, value, gradient, leave-one-out and information
 * refused in turn. */
#include "fault.h"
#include "gp_data.h"

typedef struct {
    gp_data data;
    const char *kernel;
    frg_gp_opts opts;
} fault_problem;

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    fault_problem *const b = user;
    frg_gp *gp = NULL;
    frg_gp_value v;
    double gradient[16], loo[64], information[256];
    frg_status s =
        frg_gp_create(&gp, ctx, gp_data_x(&b->data), gp_data_y(&b->data), b->kernel, &b->opts);
    if (s >= 0)
        s = frg_gp_eval(gp, &v);
    if (s >= 0)
        fault_hash(hash, &v.log_likelihood, sizeof v.log_likelihood);
    if (s >= 0)
        s = frg_gp_eval_gradient(gp, gradient, NULL, NULL, NULL);
    const size_t p = (size_t)frg_gp_parameter_count(gp);
    if (s >= 0)
        fault_hash(hash, gradient, p * 8);
    if (s >= 0)
        s = frg_gp_eval_information(gp, information);
    if (s >= 0)
        fault_hash(hash, information, p * p * 8);
    if (s >= 0)
        s = frg_gp_eval_loo(gp, loo, NULL, gradient, NULL);
    if (s >= 0)
        fault_hash(hash, gradient, p * 8);
    if (s >= 0)
        fault_hash(hash, loo, sizeof *loo * (size_t)(b->data.n * b->data.q));
    frg_gp_destroy(gp);
    return s;
}

static void plain(void)
{
    static fault_problem b;
    gp_data_random(&b.data, 20, 2, 1);
    b.kernel = "1.2*rbf(l=[0.4,0.6])*on(1; linear) + noise(0.1)";
    b.opts = gp_data_opts("const");
    b.opts.priors = "rbf.l=gamma(3,6)";
    CHECK(fault_sweep("const", body, &b, 2) > 10);
}

static void profiled(void)
{
    static fault_problem b;
    gp_data_random(&b.data, 20, 2, 2);
    b.kernel = "matern32 + noise";
    b.opts = gp_data_opts("profiled(linear)");
    b.opts.reml = b.opts.profile_scale = 1;
    b.opts.storage = FRG_GP_PACKED;
    CHECK(fault_sweep("profiled", body, &b, 1) > 10);
}

/** A warning that finds no memory must not turn the result into another. */
static void jittered(void)
{
    static fault_problem b;
    gp_data_random(&b.data, 20, 2, 1);
    memcpy(b.data.x, b.data.x + 8, 16);
    b.kernel = "rbf(l=0.5)";
    b.opts = gp_data_opts("const(1)");
    CHECK(fault_sweep("jitter", body, &b, 2) > 10);
}

static void promoted(void)
{
    static fault_problem b;
    gp_data_random(&b.data, 20, 2, 1);
    b.kernel = "rbf(l=2) + noise(1e-6)";
    b.opts = gp_data_opts("zero");
    b.opts.precision = FRG_GP_F32;
    b.opts.auto_promote = 1;
    CHECK(fault_sweep("promoted", body, &b, 2) > 10);
    b.opts.precision = FRG_GP_MIXED;
    CHECK(fault_sweep("mixed", body, &b, 2) > 10);
}

static const test_case cases[] = {
    {"plain", plain}, {"profiled", profiled}, {"jittered", jittered}, {"promoted", promoted}};
TEST_MAIN(cases)
