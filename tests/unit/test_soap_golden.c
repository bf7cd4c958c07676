/* test_soap_golden.c - trajectories of pytorch_optimizer's SOAP (tests/golden/soap.txt, tools/make_soap_golden.py).
 *
 * Both sides compute in f32.  What differs is rounding: residues of 4e-7 times the norm of G in the bases, over
 * eps = 0.05, and bases that differ by u over relative gaps; as in test_soap.c, 3e-3 lr a step at most. */
#include "fourge/soap.h"
#include "test.h"

enum { MOST = 64 };

static FILE *file;

static bool numbers(float *x, int n)
{
    for (int i = 0; i < n; i++)
        if (fscanf(file, "%f", &x[i]) != 1)
            return CHECK_SAYS(false, "the file ends early");
    return true;
}

static bool one_case(void)
{
    char name[32];
    int m, n, steps, bias;
    long frequency, limit;
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, FRG_SOAP_NIKHILVYAS);
    if (fscanf(file, " case %31s %d %d %d %lf %lf %lf %lf %lf %lf %ld %ld %d", name, &m, &n, &steps,
               &o.lr, &o.beta1, &o.beta2, &o.shampoo_beta, &o.eps, &o.weight_decay, &frequency,
               &limit, &bias) != 13)
        return false;
    o.precondition_frequency = frequency;
    o.max_precond_dim = limit;
    o.correct_bias = bias;
    if (!CHECK(m * n <= MOST))
        return false;
    float w[MOST], g[MOST], want[MOST];
    frg_context *ctx = test_context();
    frg_soap *soap = NULL;
    bool good =
        numbers(w, m * n) && CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o)) &&
        CHECK_OK(ctx, frg_soap_add_param(soap, 0, frg_matrix(w, FRG_F32, m, n, n), name, NULL));
    for (int t = 1; t <= steps && good; t++) {
        good = numbers(g, m * n) && numbers(want, m * n);
        const frg_array grad = frg_matrix(g, FRG_F32, m, n, n);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        double worst = 0;
        for (int i = 0; i < m * n; i++)
            worst = fmax(worst, fabs((double)w[i] - (double)want[i]));
        CHECK_SAYS(worst <= 3e-3 * o.lr * t + 1e-6, "%s: step %d: W differs by %.2g", name, t,
                   worst);
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
    return good;
}

static void trajectories(void)
{
    char line[256];
    int done = 0;
    file = fopen(FOURGE_SOURCE_DIR "/tests/golden/soap.txt", "r");
    if (!CHECK(file != NULL))
        return;
    CHECK(fgets(line, sizeof line, file) && line[0] == '#');
    while (one_case())
        done++;
    CHECK_INT(done, 6);
    fclose(file);
}

static const test_case cases[] = {{"pytorch_optimizer", trajectories}};
TEST_MAIN(cases)
