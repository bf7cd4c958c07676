/* test_soap_golden.c - trajectories of pytorch_optimizer's SOAP (tests/golden/soap.txt) and of
 * Emerging-Optimizers' (soap_emerging.txt; with KL weights and stacks of matrices), both of
 * tools/make_soap_golden.py.
 *
 * Both sides compute in f32.  What differs is rounding: residues of 4e-7 times the norm of G in the
 * bases, over eps = 0.05, and bases that differ by u over relative gaps; as in test_soap.c, 3e-3 lr
 * a step at most. */
#include "soap_data.h"

enum { MOST = 64 };

static FILE *file;

static bool numbers(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fscanf(file, "%f", &x[i]) != 1)
            return CHECK_SAYS(false, "the file ends early");
    return true;
}

/** What follows the number of steps, by package. */
static bool read_options(frg_soap_opts *o)
{
    long frequency, limit;
    if (fscanf(file, "%lf %lf %lf %lf %lf %lf", &o->lr, &o->beta1, &o->beta2, &o->shampoo_beta,
               &o->eps, &o->weight_decay) != 6)
        return false;
    if (o->profile == FRG_SOAP_EMERGING_04)
        return fscanf(file, "%d", &o->use_kl_shampoo) == 1;
    if (fscanf(file, "%ld %ld %d", &frequency, &limit, &o->correct_bias) != 3)
        return false;
    o->precondition_frequency = frequency;
    o->max_precond_dim = limit;
    return true;
}

static bool one_case(frg_soap_profile profile)
{
    char name[32];
    int steps, axes;
    int64_t count = 1, shape[FRG_MAX_DIM];
    frg_soap_opts o;
    frg_soap_defaults(&o, sizeof o, profile);
    if (fscanf(file, " case %31s %d", name, &axes) != 2 || !CHECK(axes <= FRG_MAX_DIM))
        return false;
    for (int d = 0; d < axes; d++) {
        long size;
        if (!CHECK(fscanf(file, "%ld", &size) == 1))
            return false;
        shape[d] = size;
        count *= size;
    }
    if (!CHECK(fscanf(file, "%d", &steps) == 1 && read_options(&o) && count <= MOST))
        return false;
    float w[MOST], g[MOST], want[MOST];
    frg_context *ctx = test_context();
    frg_soap *soap = NULL;
    const frg_array grad = tensor(g, axes, shape);
    bool good = numbers(w, count) && CHECK_OK(ctx, frg_soap_create(&soap, ctx, &o)) &&
                CHECK_OK(ctx, frg_soap_add_param(soap, 0, tensor(w, axes, shape), name, NULL));
    for (int t = 1; t <= steps && good; t++) {
        good = numbers(g, count) && numbers(want, count);
        CHECK_OK(ctx, frg_soap_step(soap, &grad, 1, NULL));
        double worst = 0;
        for (int64_t i = 0; i < count; i++)
            worst = fmax(worst, fabs((double)w[i] - (double)want[i]));
        CHECK_SAYS(worst <= 3e-3 * o.lr * t + 1e-6, "%s: step %d: W differs by %.2g", name, t,
                   worst);
    }
    frg_soap_destroy(soap);
    frg_context_destroy(ctx);
    return good;
}

static void trajectories(const char *path, frg_soap_profile profile, int cases)
{
    char line[256];
    int done = 0;
    file = fopen(path, "r");
    if (!CHECK(file != NULL))
        return;
    CHECK(fgets(line, sizeof line, file) && line[0] == '#');
    while (one_case(profile))
        done++;
    CHECK_INT(done, cases);
    fclose(file);
}

static void pytorch_optimizer(void)
{
    trajectories(FOURGE_SOURCE_DIR "/tests/golden/soap.txt", FRG_SOAP_NIKHILVYAS, 6);
}

static void emerging(void)
{
    trajectories(FOURGE_SOURCE_DIR "/tests/golden/soap_emerging.txt", FRG_SOAP_EMERGING_04, 5);
}

static const test_case cases[] = {{"pytorch_optimizer", pytorch_optimizer},
                                  {"Emerging-Optimizers", emerging}};
TEST_MAIN(cases)
