/* test_gp_fit_fault.c - every allocation of a fit, of predictions, draws, updates and model files
 * failed in turn; every file call of saving and loading. */
#include <unistd.h>

#include "fault.h"
#include "gp_data.h"

static char folder[] = "/tmp/fourge-gpfault-XXXXXX";
static char path[64];

typedef struct {
    gp_data data;
    const char *kernel, *mean;
    frg_gp_optimizer method;
} job;

static frg_status predict(frg_gp *gp, uint64_t *hash)
{
    double x[6] = {0.1, 0.4, 0.7, 0.2, 0.9, 0.95}, out[3 + 3 + 9 + 6 + 6] = {0}, drawn[6] = {0};
    frg_array mean = frg_vector(out, FRG_F64, 3), variance = frg_vector(out + 3, FRG_F64, 3);
    frg_array covariance = frg_matrix(out + 6, FRG_F64, 3, 3, 3);
    frg_array dm = frg_matrix(out + 15, FRG_F64, 3, 2, 2),
              dv = frg_matrix(out + 21, FRG_F64, 3, 2, 2);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.mean = &mean;
    o.variance = &variance;
    o.covariance = &covariance;
    o.mean_dx = &dm;
    o.variance_dx = &dv;
    const frg_array at = frg_matrix(x, FRG_F64, 3, 2, 2);
    frg_status s = frg_gp_predict(gp, at, &o);
    if (s >= 0) {
        fault_hash(hash, out, sizeof out);
        s = frg_gp_sample(gp, at, 2, 0, 1, frg_matrix(drawn, FRG_F64, 2, 3, 3));
    }
    if (s >= 0)
        fault_hash(hash, drawn, sizeof drawn);
    return s;
}

/** A call that fails leaves the process as it was: n and the prediction are asked for again without
 *  faults. */
static frg_status change(frg_gp *gp, const gp_data *g, uint64_t *hash)
{
    const int64_t n = frg_gp_get(gp).n;
    frg_status s = frg_gp_update_append(gp, frg_matrix(g->x + 2 * g->n, FRG_F64, 2, 2, 2),
                                        frg_vector(g->y + g->n, FRG_F64, 2), NULL);
    CHECK(s < 0 || frg_gp_get(gp).n == n + 2);
    if (s >= 0)
        s = predict(gp, hash);
    if (s >= 0)
        s = frg_gp_update_remove(gp, 1);
    if (s >= 0)
        s = frg_gp_update_y(gp, frg_vector(g->y, FRG_F64, n + 1));
    return s >= 0 ? predict(gp, hash) : s;
}

static frg_status body(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *const j = user;
    const frg_gp_opts o = gp_data_opts(j->mean);
    frg_gp *gp = NULL;
    frg_gp_fit_result r = {.best_start = -5};
    frg_gp_fit_opts f;
    frg_gp_fit_defaults(&f, sizeof f);
    f.optimizer = j->method;
    f.starts = 2;
    f.max_iter = 3;
    frg_status s = frg_gp_create(&gp, ctx, gp_data_x(&j->data), gp_data_y(&j->data), j->kernel, &o);
    if (s >= 0) {
        s = frg_gp_fit(gp, &f, &r);
        CHECK(s >= 0 || r.best_start == -5);
    }
    if (s >= 0) {
        fault_hash(hash, &r.log_likelihood, sizeof r.log_likelihood);
        s = predict(gp, hash);
    }
    if (s >= 0)
        s = change(gp, &j->data, hash);
    frg_gp_destroy(gp);
    return s < 0 ? s : FRG_OK;
}

static void sweep(const char *name, const char *kernel, const char *mean, frg_gp_optimizer method)
{
    static job j;
    j = (job){.kernel = kernel, .mean = mean, .method = method};
    gp_data_random(&j.data, 16, 2, 1);
    j.data.n = 14; /* two are appended later */
    const int64_t k = fault_sweep(name, body, &j, test_now.threads);
    printf("# %s: %" PRId64 " allocations\n", name, k);
    CHECK_SAYS(k > 30, "%s: only %" PRId64 " allocations were seen", name, k);
}

static void memory(void)
{
    sweep("ai", "scale*rbf(ard) + noise", "const", FRG_GP_AI);
    sweep("lbfgsb", "1.2*matern52*linear + noise", "profiled", FRG_GP_LBFGSB);
    sweep("adam", "rbf + noise(0.1)", "zero", FRG_GP_ADAM);
}

/** Blocks left out, fantasies, one noise, draws of two outputs, ties. */
static frg_status what_if_body(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *const j = user;
    double noise[14], mean[14], variance[14], latent[14], gradient[GP_DATA_PARAMETERS],
        x[8] = {0.1, 0.4, 0.7, 0.2, 0.9, 0.95, 0.3, 0.3};
    double y[4] = {1, -1, 0.5, 0}, to_mean[6] = {0}, to_variance[6] = {0};
    int32_t folds[14];
    for (int i = 0; i < 14; i++) {
        noise[i] = 0.01 * (i + 1);
        folds[i] = i / 5;
    }
    frg_gp_opts o = gp_data_opts(j->mean);
    o.noise_variances = noise;
    frg_gp *gp = NULL;
    frg_gp_fantasy_opts f;
    frg_gp_fantasy_defaults(&f, sizeof f);
    frg_array m = frg_matrix(to_mean, FRG_F64, 2, 3, 3),
              v = frg_matrix(to_variance, FRG_F64, 2, 3, 3);
    m.ndim = 3;
    m.shape[2] = m.stride[2] = 1;
    f.mean = &m;
    f.variance = &v;
    f.noise_variances = noise;
    frg_array at = frg_matrix(x, FRG_F64, 2, 2, 4), outcome = frg_matrix(y, FRG_F64, 2, 2, 2);
    at.ndim = outcome.ndim = 3;
    at.stride[1] = 2;
    at.shape[2] = 2;
    at.stride[2] = outcome.shape[2] = outcome.stride[2] = 1;
    frg_status s = frg_gp_create(&gp, ctx, gp_data_x(&j->data), gp_data_y(&j->data), j->kernel, &o);
    if (s >= 0)
        s = frg_gp_eval_folds(gp, folds, mean, variance, gradient, NULL);
    if (s >= 0)
        s = frg_gp_eval_loo_latent(gp, latent);
    if (s >= 0)
        s = frg_gp_predict_fantasies(gp, at, outcome, frg_matrix(x, FRG_F64, 3, 2, 2), &f);
    if (s >= 0) {
        fault_hash(hash, mean, sizeof mean);
        fault_hash(hash, latent, sizeof latent);
        fault_hash(hash, gradient, (size_t)frg_gp_parameter_count(gp) * sizeof *gradient);
        fault_hash(hash, to_mean, sizeof to_mean);
        fault_hash(hash, to_variance, sizeof to_variance);
        s = frg_gp_update_noise(gp, 3, 0.5);
    }
    if (s >= 0)
        s = predict(gp, hash);
    frg_gp_destroy(gp);
    return s;
}

static void what_if(void)
{
    static job j;
    j = (job){.kernel = "1.2*rbf(l=0.4) + noise(0.1)", .mean = "profiled(linear)"};
    gp_data_random(&j.data, 14, 2, 1);
    CHECK(fault_sweep("what if", what_if_body, &j, test_now.threads) > 20);
}

/** The old model stands after a failed save, and no temporary file is left. */
static frg_status save_and_load(frg_context *ctx, void *user, uint64_t *hash)
{
    const job *const j = user;
    frg_gp *gp = NULL, *back = NULL;
    frg_status s =
        frg_gp_create(&gp, ctx, gp_data_x(&j->data), gp_data_y(&j->data), j->kernel, NULL);
    if (s >= 0)
        s = frg_gp_save(gp, path);
    if (s >= 0) {
        s = frg_gp_load(&back, ctx, path);
        CHECK((s >= 0) == (back != NULL));
    }
    if (s >= 0)
        s = predict(back, hash);
    frg_gp_destroy(back);
    frg_gp_destroy(gp);
    return s;
}

static void files(void)
{
    static job j = {.kernel = "1.2*rbf(l=0.3) + noise(0.1)"};
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    snprintf(path, sizeof path, "%s/model", folder);
    gp_data_random(&j.data, 5, 2, 1);
    CHECK(fault_sweep("model", save_and_load, &j, 1) > 15);
    fault_sweep_files("model", save_and_load, &j);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0); /* nothing else was left in it */
}

static const test_case cases[] = {
    {"memory", memory},
    {"what if", what_if},
    {"files", files},
};
TEST_MAIN(cases)
