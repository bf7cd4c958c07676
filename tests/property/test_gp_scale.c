/* test_gp_mean.c - a profiled scale f: the process K = f R against the one whose expression says f
 * R.
 *
 * At one theta the second one ("plain") has the same K, so that value, predictions, leave-one-out,
 * folds, draws and fantasies are the same numbers; of its gradient the direction log f has 0, the
 * others are the same.  Two ways of rounding with cond(K) below 1e5 and n <= 60: 1e-9, as in
 * test_gp_predict.c.  Gradients that go through f (of leave-one-out, of folds) by differences:
 * 1e-6.
 */
#include <unistd.h>

#include "gp_data.h"

enum { N = 40, T = 30, P = 16 };

/** A number a term and the noise, so that plain can multiply all of them. */
static const struct {
    const char *mean;
    int64_t q;
    bool reml;
    frg_gp_storage storage;
    double a, l, b, noise; /* a*rbf(l=[l,0.5]) + b*linear(v=1!) + noise */
} models[] = {
    {"zero", 1, false, FRG_GP_FULL, 1, 0.3, 0.2, 0.1},
    {"const(0.3)", 3, false, FRG_GP_PACKED, 2.5, 0.4, 0.7, 0.2},
    {"linear", 2, false, FRG_GP_FULL, 0.02, 0.3, 0.005, 0.003},
    {"profiled", 1, true, FRG_GP_PACKED, 7, 0.5, 3, 1},
    {"profiled(linear)", 2, true, FRG_GP_FULL, 1, 0.3, 0.4, 0.1},
    {"profiled(linear)", 1, false, FRG_GP_PACKED, 1, 0.4, 0.4, 0.2},
};
enum { MODELS = sizeof models / sizeof *models, A = 0, L1, L2, B, V, S, MEANS };

static frg_gp *open_at(frg_context *ctx, const gp_data *g, int k, double f, bool profile)
{
    char text[160];
    frg_gp_opts o = gp_data_opts(models[k].mean);
    o.reml = models[k].reml;
    o.storage = models[k].storage;
    o.profile_scale = profile;
    snprintf(text, sizeof text, "%.17g*rbf(l=[%.17g,0.5]) + %.17g*linear(v=1!) + noise(%.17g)",
             f * models[k].a, models[k].l, f * models[k].b, f * models[k].noise);
    frg_gp *gp = gp_data_open(ctx, g, text, &o);
    CHECK_INT(gp ? frg_gp_parameter_count(gp) >= MEANS : -1, 1);
    return gp;
}

typedef struct {
    gp_data data;
    frg_gp *profiled, *plain;
    frg_gp_value value; /* of profiled */
    double x[2 * T];
} pair;

static bool open_pair(frg_context *ctx, pair *b, int k)
{
    gp_data_random(&b->data, N, 2, models[k].q);
    for (int i = 0; i < 2 * T; i++) {
        b->x[i] = 1.2 * test_uniform() - 0.1;
    }
    b->plain = NULL;
    b->profiled = open_at(ctx, &b->data, k, 1, true);
    if (b->profiled && CHECK_OK(ctx, frg_gp_eval(b->profiled, &b->value))) {
        b->plain = open_at(ctx, &b->data, k, b->value.scale, false);
    }
    return b->plain != NULL;
}

static void close_pair(pair *b)
{
    frg_gp_destroy(b->profiled);
    frg_gp_destroy(b->plain);
}

/* ---- value and gradient ---------------------------------------------------------------------- */

static void values(void)
{
    frg_context *ctx = test_context();
    static pair b;
    for (int k = 0; k < MODELS; k++) {
        if (open_pair(ctx, &b, k)) {
            frg_gp_value v;
            CHECK_OK(ctx, frg_gp_eval(b.plain, &v));
            CHECK_NEAR(b.value.log_likelihood, v.log_likelihood, 1e-9);
            CHECK(v.scale == 1 && b.value.scale > 0);
            for (int side = -1; side <= 1; side += 2) { /* f is where ell is largest */
                frg_gp *other = open_at(ctx, &b.data, k, b.value.scale * (1 + 0.01 * side), false);
                CHECK(gp_data_value(ctx, other) < v.log_likelihood);
                frg_gp_destroy(other);
            }
        }
        close_pair(&b);
    }
    frg_context_destroy(ctx);
}

static void gradients(void)
{
    frg_context *ctx = test_context();
    static pair b;
    static double dx[2][2 * N], dy[2][3 * N];
    for (int k = 0; k < MODELS; k++) {
        double got[P], want[P], differences[P];
        if (open_pair(ctx, &b, k)) {
            for (int i = 0; i < 2; i++) {
                const frg_array x = frg_matrix(dx[i], FRG_F64, N, 2, 2),
                                y = frg_matrix_columns(dy[i], FRG_F64, N, models[k].q, N);
                CHECK_OK(ctx, frg_gp_eval_gradient(i ? b.plain : b.profiled, i ? want : got, &x, &y,
                                                   NULL));
            }
            const int p = frg_gp_parameter_count(b.profiled);
            CHECK(got[A] == 0 && got[V] == 0);
            CHECK_NEAR(want[A] + want[B] + want[S], 0, 1e-9 * (1 + fabs(want[A])));
            want[A] = 0;
            gp_data_check(models[k].mean, got, want, p, 1e-9);
            gp_data_check("x", dx[0], dx[1], 2 * N, 1e-9);
            gp_data_check("y", dy[0], dy[1], N * models[k].q, 1e-9);
            CHECK_OK(ctx,
                     frg_gp_update_fixed(b.profiled, A, 0)); /* redundant, and differences see it */
            CHECK_OK(ctx, frg_gp_update_fixed(b.profiled, V, 0));
            CHECK_OK(ctx, frg_gp_eval_gradient(b.profiled, got, NULL, NULL, NULL));
            gp_data_differences(ctx, b.profiled, gp_data_objective, differences);
            gp_data_check(models[k].mean, got, differences, p, 1e-6);
            CHECK_NEAR(got[A] + got[B] + got[S], 0, 1e-9 * (1 + fabs(got[A])));
        }
        close_pair(&b);
    }
    frg_context_destroy(ctx);
}

/** The information of plain in the coordinates (theta, log f), where log f moves both variances and
 *  the noise, less what an estimated log f takes away. */
static void information(void)
{
    frg_context *ctx = test_context();
    static pair b;
    double got[P * P], plain[P * P], want[P * P];
    for (int k = 0; k < MODELS; k++) {
        if (open_pair(ctx, &b, k)) {
            const int p = frg_gp_parameter_count(b.profiled), kept[] = {L1, L2, B, S};
            CHECK_OK(ctx, frg_gp_eval_information(b.profiled, got));
            CHECK_OK(ctx, frg_gp_eval_information(b.plain, plain));
            const int along[] = {A, B, S};
            double cross[P] = {0}, whole = 0;
            memset(want, 0, sizeof want);
            for (int i = 0; i < p; i++) {
                for (int j = 0; j < 3; j++) {
                    cross[i] += plain[i * p + along[j]];
                }
            }
            for (int j = 0; j < 3; j++) {
                whole += cross[along[j]];
            }
            for (int i = 0; i < 4; i++) {
                for (int j = 0; j < 4; j++) {
                    const int s = kept[i], t = kept[j];
                    want[s * p + t] = plain[s * p + t] - cross[s] * cross[t] / whole;
                }
            }
            for (int s = MEANS; s < p; s++) {
                memcpy(want + s * p + MEANS, plain + s * p + MEANS,
                       (size_t)(p - MEANS) * sizeof *want);
            }
            gp_data_check(models[k].mean, got, want, p * p, 1e-8);
        }
        close_pair(&b);
    }
    frg_context_destroy(ctx);
}

/* ---- what leaves in the units of y ----------------------------------------------------------- */

typedef struct {
    double mean[T * 3], variance[T], covariance[T * T], mean_dx[2 * T], variance_dx[2 * T];
    double draws[2 * T * 3], prior[T * 3];
    double loo_mean[N * 3], loo_variance[N], latent[N], fold_mean[N * 3], fold_variance[N];
    double to_mean[2 * T * 3], to_variance[2 * T];
    frg_gp_loo loo, folds;
} answers;

static void ask_new(frg_context *ctx, const pair *b, frg_gp *gp, answers *r)
{
    const int64_t q = b->data.q;
    frg_array mean = frg_matrix(r->mean, FRG_F64, T, q, q),
              variance = frg_vector(r->variance, FRG_F64, T),
              covariance = frg_matrix(r->covariance, FRG_F64, T, T, T),
              mean_dx = frg_matrix(r->mean_dx, FRG_F64, T, 2, 2),
              variance_dx = frg_matrix(r->variance_dx, FRG_F64, T, 2, 2),
              draws = frg_matrix(r->draws, FRG_F64, 2, T, T * q),
              prior = frg_matrix(r->prior, FRG_F64, 1, T, T * q);
    const frg_array x = frg_matrix(b->x, FRG_F64, T, 2, 2);
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    o.observed = 1;
    o.mean = &mean;
    o.variance = &variance;
    o.covariance = &covariance;
    o.mean_dx = q == 1 ? &mean_dx : NULL;
    o.variance_dx = &variance_dx;
    CHECK_OK(ctx, frg_gp_predict(gp, x, &o));
    if (q > 1) {
        draws.ndim = prior.ndim = 3;
        draws.stride[1] = prior.stride[1] = draws.shape[2] = prior.shape[2] = q;
        draws.stride[2] = prior.stride[2] = 1;
    }
    CHECK_OK(ctx, frg_gp_sample(gp, x, 2, 0, 1, draws));
    CHECK_OK(ctx, frg_gp_sample(gp, x, 1, 1, 1, prior));
}

static void ask_fantasies(frg_context *ctx, const pair *b, frg_gp *gp, answers *r)
{
    const int64_t q = b->data.q, m = 2;
    frg_array x = frg_matrix(b->x, FRG_F64, 2, m, 2 * m),
              y = frg_matrix(b->data.y, FRG_F64, 2, m, m * q),
              mean = frg_matrix(r->to_mean, FRG_F64, 2, T, T * q),
              variance = frg_matrix(r->to_variance, FRG_F64, 2, T, T);
    frg_array *const cubes[] = {&x, &y, &mean};
    for (int i = 0; i < 3; i++) {
        cubes[i]->ndim = 3;
        cubes[i]->stride[1] = cubes[i]->shape[2] = i == 0 ? 2 : q;
        cubes[i]->stride[2] = 1;
    }
    frg_gp_fantasy_opts o;
    frg_gp_fantasy_defaults(&o, sizeof o);
    o.observed = 1;
    o.mean = &mean;
    o.variance = &variance;
    CHECK_OK(ctx, frg_gp_predict_fantasies(gp, x, y, frg_matrix(b->x, FRG_F64, T, 2, 2), &o));
}

static void set_folds(int32_t *folds)
{
    for (int i = 0; i < N; i++) {
        folds[i] = i * i % 7 % 3;
    }
}

static void ask_left_out(frg_context *ctx, frg_gp *gp, answers *r)
{
    int32_t folds[N];
    set_folds(folds);
    CHECK_OK(ctx, frg_gp_eval_loo(gp, r->loo_mean, r->loo_variance, NULL, &r->loo));
    CHECK_OK(ctx, frg_gp_eval_loo_latent(gp, r->latent));
    CHECK_OK(ctx, frg_gp_eval_folds(gp, folds, r->fold_mean, r->fold_variance, NULL, &r->folds));
}

static void predictions(void)
{
    frg_context *ctx = test_context();
    static pair b;
    static answers got, want;
    for (int k = 0; k < MODELS; k++) {
        const int64_t q = models[k].q;
        if (open_pair(ctx, &b, k)) {
            for (int i = 0; i < 2; i++) {
                frg_gp *const gp = i ? b.plain : b.profiled;
                answers *const r = i ? &want : &got;
                ask_new(ctx, &b, gp, r);
                ask_fantasies(ctx, &b, gp, r);
                ask_left_out(ctx, gp, r);
            }
            gp_data_check("means", got.mean, want.mean, T * q, 1e-9);
            gp_data_check("variances", got.variance, want.variance, T, 1e-9);
            gp_data_check("covariances", got.covariance, want.covariance, T * T, 1e-9);
            gp_data_check("slopes of means", got.mean_dx, want.mean_dx, q == 1 ? 2 * T : 0, 1e-9);
            gp_data_check("slopes of variances", got.variance_dx, want.variance_dx, 2 * T, 1e-8);
            gp_data_check("draws", got.draws, want.draws, 2 * T * q, 1e-8);
            gp_data_check("prior draws", got.prior, want.prior, T * q, 1e-8);
            gp_data_check("fantasies", got.to_mean, want.to_mean, 2 * T * q, 1e-9);
            gp_data_check("their variances", got.to_variance, want.to_variance, 2 * T, 1e-9);
            gp_data_check("left out", got.loo_mean, want.loo_mean, N * q, 1e-9);
            gp_data_check("variances left out", got.loo_variance, want.loo_variance, N, 1e-9);
            gp_data_check("latent ones", got.latent, want.latent, N, 1e-9);
            gp_data_check("folds", got.fold_mean, want.fold_mean, N * q, 1e-9);
            gp_data_check("variances of folds", got.fold_variance, want.fold_variance, N, 1e-9);
            CHECK_NEAR(got.loo.log_density, want.loo.log_density, 1e-9);
            CHECK_NEAR(got.loo.rmse, want.loo.rmse, 1e-9);
            CHECK_NEAR(got.folds.log_density, want.folds.log_density, 1e-9);
            CHECK_NEAR(got.folds.rmse, want.folds.rmse, 1e-9);
        }
        close_pair(&b);
    }
    frg_context_destroy(ctx);
}

static double density_of_folds(frg_context *ctx, frg_gp *gp, const double *theta)
{
    int32_t folds[N];
    frg_gp_loo v = {.log_density = (double)NAN};
    set_folds(folds);
    CHECK_OK(ctx, frg_gp_update_parameters(gp, theta));
    CHECK_OK(ctx, frg_gp_eval_folds(gp, folds, NULL, NULL, NULL, &v));
    return v.log_density;
}

/** f moves with theta, and the densities with it. */
static void left_out_gradients(void)
{
    frg_context *ctx = test_context();
    static pair b;
    int32_t folds[N];
    double got[P], want[P];
    set_folds(folds);
    for (int k = 0; k < MODELS; k++) {
        if (open_pair(ctx, &b, k)) {
            const int p = frg_gp_parameter_count(b.profiled);
            CHECK_OK(ctx, frg_gp_eval_loo(b.profiled, NULL, NULL, got, NULL));
            gp_data_differences(ctx, b.profiled, gp_data_density, want);
            want[A] = want[V] = 0;
            gp_data_check(models[k].mean, got, want, p, 1e-6);
            CHECK_OK(ctx, frg_gp_eval_folds(b.profiled, folds, NULL, NULL, got, NULL));
            gp_data_differences(ctx, b.profiled, density_of_folds, want);
            want[A] = want[V] = 0;
            gp_data_check(models[k].mean, got, want, p, 1e-6);
        }
        close_pair(&b);
    }
    frg_context_destroy(ctx);
}

/* ---- fits, updates, files -------------------------------------------------------------------- */

/** The optimum over l, noise and f is the same point by both ways, and so are the errors of what
 *  both search; a search ends within 1e-5 of a gradient a point, so that ell agrees to the square
 *  of that and log theta to about 1e-4. */
static void fits(void)
{
    static const frg_gp_optimizer ways[] = {FRG_GP_AI, FRG_GP_LBFGSB};
    frg_context *ctx = test_context();
    static gp_data g;
    gp_data_random(&g, test_size(150, 60), 2, 1);
    for (int k = 0; k < 4; k++) {
        frg_gp_opts o = gp_data_opts(k < 2 ? "const" : "profiled(linear)");
        frg_gp_fit_opts f;
        frg_gp_fit_result r[2];
        frg_gp *gp[2];
        frg_gp_parameter at[2][3];
        frg_gp_fit_defaults(&f, sizeof f);
        f.optimizer = ways[k % 2];
        f.tol = 1e-7;
        o.reml = k >= 2;
        for (int i = 0; i < 2; i++) {
            static const char *const names[] = {"scale", "rbf.l[1]", "noise"};
            o.profile_scale = i;
            gp[i] = gp_data_open(ctx, &g, "scale*rbf(ard) + noise", &o);
            CHECK_OK(ctx, frg_gp_fit(gp[i], &f, &r[i]));
            for (int j = 0; j < 3; j++) {
                CHECK_OK(ctx,
                         frg_gp_get_parameter(gp[i], gp_data_find(gp[i], names[j]), &at[i][j]));
            }
        }
        CHECK_NEAR(r[1].log_likelihood, r[0].log_likelihood, 1e-8);
        CHECK(at[1][0].fixed && at[1][0].value == 1 && !at[0][0].fixed);
        CHECK_NEAR(r[1].value.scale / at[0][0].value, 1, 1e-3);
        CHECK_NEAR(at[1][1].value / at[0][1].value, 1, 1e-3);
        CHECK_NEAR(r[1].value.scale * at[1][2].value / at[0][2].value, 1, 1e-3);
        CHECK_NEAR(at[1][1].std_error / at[0][1].std_error, 1, 1e-3);
        for (int i = 0; i < 2; i++) {
            frg_gp_destroy(gp[i]);
        }
    }
    frg_context_destroy(ctx);
}

/** Points that come and go, another y: f is that of a process made with them. */
static void updates(void)
{
    frg_context *ctx = test_context();
    static gp_data g, h;
    gp_data_random(&h, N + 3, 2, 1);
    frg_gp_opts o = gp_data_opts("const(0.1)");
    o.profile_scale = 1;
    const char *const kernel = "1*matern52(l=0.4) + noise(0.1)";
    g = h;
    g.n = N;
    frg_gp *gp = gp_data_open(ctx, &g, kernel, &o), *all = gp_data_open(ctx, &h, kernel, &o);
    frg_gp_value got, want, again;
    if (gp && all) {
        CHECK_OK(ctx, frg_gp_eval(gp, &again));
        CHECK_OK(ctx, frg_gp_update_append(gp, frg_matrix(h.x + 2 * N, FRG_F64, 3, 2, 2),
                                           frg_vector(h.y + N, FRG_F64, 3), NULL));
        CHECK_OK(ctx, frg_gp_eval(gp, &got));
        CHECK_OK(ctx, frg_gp_eval(all, &want));
        CHECK_NEAR(got.scale, want.scale, 1e-10);
        CHECK_NEAR(got.log_likelihood, want.log_likelihood, 1e-10);
        for (int i = 2; i >= 0; i--) {
            CHECK_OK(ctx, frg_gp_update_remove(gp, N + i));
        }
        CHECK_OK(ctx, frg_gp_eval(gp, &got));
        CHECK_NEAR(got.scale, again.scale, 1e-10);
        for (int i = 0; i < N; i++) {
            g.y[i] = 0.1 + 10 * (g.y[i] - 0.1);
        }
        CHECK_OK(ctx, frg_gp_update_y(gp, gp_data_y(&g)));
        CHECK_OK(ctx, frg_gp_eval(gp, &got));
        CHECK_NEAR(got.scale / again.scale, 100, 1e-10);
        CHECK_NEAR(got.log_likelihood, again.log_likelihood - N * log(10.0), 1e-10);
    }
    frg_gp_destroy(gp);
    frg_gp_destroy(all);
    frg_context_destroy(ctx);
}

static void files(void)
{
    frg_context *ctx = test_context();
    static gp_data g;
    char path[] = "/tmp/fourge-scale-XXXXXX";
    const int file = mkstemp(path);
    CHECK(file >= 0 && close(file) == 0);
    gp_data_random(&g, N, 2, 2);
    frg_gp_opts o = gp_data_opts("profiled");
    o.profile_scale = o.reml = 1;
    frg_gp *gp = gp_data_open(ctx, &g, "1*rbf(l=0.3) + noise(0.2)", &o), *back = NULL;
    frg_gp_value before, after;
    double mean[2][4], variance[2][2];
    if (gp && CHECK_OK(ctx, frg_gp_save(gp, path)) &&
        CHECK_OK(ctx, frg_gp_load(&back, ctx, path))) {
        CHECK_OK(ctx, frg_gp_eval(gp, &before));
        CHECK_OK(ctx, frg_gp_eval(back, &after));
        CHECK(before.scale == after.scale);
        CHECK_NEAR(before.log_likelihood, after.log_likelihood, 1e-12);
        for (int i = 0; i < 2; i++) {
            frg_array m = frg_matrix(mean[i], FRG_F64, 2, 2, 2),
                      v = frg_vector(variance[i], FRG_F64, 2);
            frg_gp_predict_opts po;
            frg_gp_predict_defaults(&po, sizeof po);
            po.mean = &m;
            po.variance = &v;
            CHECK_OK(ctx, frg_gp_predict(i ? back : gp, frg_matrix(g.x, FRG_F64, 2, 2, 2), &po));
        }
        CHECK_BITS(mean[1], mean[0], sizeof mean[0]);
        CHECK_BITS(variance[1], variance[0], sizeof variance[0]);
    }
    frg_gp_destroy(gp);
    frg_gp_destroy(back);
    unlink(path);
    frg_context_destroy(ctx);
}

/* ---- types, threads, batches ----------------------------------------------------------------- */

static void precisions(void)
{
    static gp_data g;
    double gradient[3][P], first[P];
    frg_gp_value v[3];
    gp_data_random(&g, test_size(300, 60), 2, 1);
    for (int threads = 1; threads <= 3; threads++) {
        frg_context *ctx = test_context_with(threads, NULL, NULL);
        for (int k = 0; k < 3; k++) {
            frg_gp_opts o = gp_data_opts("const");
            o.precision = (frg_gp_precision)k;
            o.profile_scale = 1;
            frg_gp *gp = gp_data_open(ctx, &g, "3*rbf(l=[0.4,0.6]) + noise(0.3)", &o);
            CHECK_OK(ctx, frg_gp_eval_gradient(gp, gradient[k], NULL, NULL, &v[k]));
            frg_gp_destroy(gp);
        }
        if (threads == 1) {
            memcpy(first, gradient[0], sizeof first);
        }
        CHECK_BITS(gradient[0], first, 5 * sizeof *first);
        CHECK(v[FRG_GP_MIXED].log_likelihood == v[FRG_GP_F64].log_likelihood);
        CHECK(v[FRG_GP_MIXED].scale == v[FRG_GP_F64].scale);
        CHECK_NEAR(v[FRG_GP_F32].scale / v[FRG_GP_F64].scale, 1, 1e-4);
        gp_data_check("mixed", gradient[FRG_GP_MIXED], gradient[0], 5, 1e-4);
        gp_data_check("f32", gradient[FRG_GP_F32], gradient[0], 5, 1e-3);
        frg_context_destroy(ctx);
    }
}

/** What f32 is worth does not depend on the units of y: where the bound is too large, residuals say
 *  so in those of R. */
static void judged_by_shape(void)
{
    static gp_data g;
    frg_context *ctx = test_context();
    frg_gp_value v[2];
    gp_data_random(&g, test_size(300, 200), 2, 1);
    const double shift = (double)g.n * log(1024.0);
    double least = 0;
    for (int k = 0; k < 2; k++) {
        frg_gp_opts o = gp_data_opts("zero");
        o.precision = FRG_GP_F32;
        o.accuracy = k == 0 ? 5e-4 : 5e-4 * least / (1 + fabs(v[0].log_likelihood - shift));
        o.profile_scale = 1;
        frg_gp *gp = gp_data_open(ctx, &g, "1*rbf(l=0.4) + noise(0.01)", &o);
        CHECK_OK(ctx, frg_gp_eval(gp, &v[k]));
        least = 1 + fabs(v[0].log_likelihood);
        frg_gp_destroy(gp);
        for (int i = 0; i < g.n; i++) {
            g.y[i] *= 1024; /* exact, so that nothing else changes */
        }
    }
    CHECK_NEAR(v[1].scale / v[0].scale, 1024.0 * 1024.0, 1e-3);
    CHECK_NEAR(v[1].error_estimate / v[0].error_estimate, 1, 1e-6);
    frg_context_destroy(ctx);
}

static void batches(void)
{
    enum { COUNT = 5 };
    frg_context *ctx = test_context();
    static gp_data g[COUNT];
    frg_gp_member members[COUNT] = {{.status = FRG_OK}};
    double gradient[COUNT][P];
    frg_gp_opts o = gp_data_opts("const");
    o.profile_scale = 1;
    for (int i = 0; i < COUNT; i++) {
        gp_data_random(&g[i], 10 + i, 2, 1);
        members[i] =
            (frg_gp_member){.x = gp_data_x(&g[i]), .y = gp_data_y(&g[i]), .gradient = gradient[i]};
    }
    const char *const kernel = "1*rbf(l=0.4) + noise(0.2)";
    CHECK_OK(ctx, frg_gp_batch_eval(ctx, COUNT, members, kernel, &o));
    for (int i = 0; i < COUNT; i++) {
        frg_gp *gp = gp_data_open(ctx, &g[i], kernel, &o);
        double want[P];
        frg_gp_value v;
        CHECK_OK(ctx, frg_gp_eval_gradient(gp, want, NULL, NULL, &v));
        CHECK(members[i].value.scale == v.scale && v.scale != 1);
        CHECK_BITS(gradient[i], want, 4 * sizeof *want);
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

/* ---- what is held, and what is refused ------------------------------------------------------- */

static void held(void)
{
    static const struct {
        const char *kernel, *fixed; /* NULL: none */
    } cases[] = {
        {"scale*rbf + noise", "scale"},
        {"rbf + noise", NULL},
        {"2*rbf + noise", "scale"},
        {"2!*rbf + noise", NULL},
        {"scale*rbf + noise(0.1!)", NULL},
        {"scale*rbf", "scale"},
        {"scale*rbf + scale*matern12 + noise", "scale"},
        {"rbf*(scale*matern12) + const(v=2) + noise", "scale"},
        {"scale*rbf + matern12 + noise", NULL},
        {"linear + white(0.3)", "linear.v"},
        {"on(x1; linear)*rbf + noise", "linear.v"},
        {"sm(q=2) + noise", "sm.w[1]"},
        {"poly(q=2) + noise", NULL},
    };
    frg_context *ctx = test_context();
    static gp_data g;
    gp_data_random(&g, N, 2, 1);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        frg_gp_opts o = gp_data_opts("zero");
        o.profile_scale = 1;
        frg_gp *with = gp_data_open(ctx, &g, cases[k].kernel, &o);
        o.profile_scale = 0;
        frg_gp *without = gp_data_open(ctx, &g, cases[k].kernel, &o);
        const int want = cases[k].fixed ? gp_data_find(with, cases[k].fixed) : -1;
        CHECK_SAYS(!cases[k].fixed || want >= 0, "%s", cases[k].kernel);
        for (int i = 0; with && without && i < frg_gp_parameter_count(with); i++) {
            frg_gp_parameter a, b;
            CHECK_OK(ctx, frg_gp_get_parameter(with, i, &a));
            CHECK_OK(ctx, frg_gp_get_parameter(without, i, &b));
            CHECK_SAYS((a.fixed && !b.fixed) == (i == want), "%s: %s", cases[k].kernel, a.name);
        }
        frg_gp_destroy(with);
        frg_gp_destroy(without);
    }
    frg_context_destroy(ctx);
}

static void refusals(void)
{
    frg_context *ctx = test_context();
    static gp_data g;
    double variances[N];
    gp_data_random(&g, N, 2, 1);
    frg_gp_opts o = gp_data_opts("const");
    frg_gp *gp = NULL;
    o.profile_scale = 1;
    for (int i = 0; i < N; i++) {
        variances[i] = 0.1;
    }
    o.noise_variances = variances;
    CHECK_STATUS(frg_gp_create(&gp, ctx, gp_data_x(&g), gp_data_y(&g), "rbf", &o), FRG_BAD_ARG);
    CHECK_SAYS(strstr(frg_message(ctx), "known noise"), "%s", frg_message(ctx));
    o.noise_variances = NULL;
    static const char *const means[] = {"const", "profiled", "profiled(linear)"};
    for (int k = 0; k < 3; k++) { /* y is what the mean says: f would be 0, ell infinite */
        o.mean = means[k];
        o.reml = k == 1;
        for (int i = 0; i < N; i++) {
            g.y[i] = 7.3 + (k == 2 ? 0.7 * g.x[2 * i] : 0);
        }
        gp = gp_data_open(ctx, &g, "1*rbf(l=0.3) + noise(0.1)", &o);
        frg_gp_fit_result r;
        CHECK_STATUS(frg_gp_eval(gp, NULL), FRG_BAD_ARG);
        CHECK_SAYS(strstr(frg_message(ctx), "residuals"), "%s", frg_message(ctx));
        CHECK_STATUS(frg_gp_fit(gp, NULL, &r), FRG_BAD_ARG);
        for (int i = 0; i < N; i++) { /* and the process is none the worse for it */
            g.y[i] += test_normal();
        }
        CHECK_OK(ctx, frg_gp_update_y(gp, gp_data_y(&g)));
        CHECK(isfinite(gp_data_value(ctx, gp)));
        frg_gp_destroy(gp);
    }
    frg_context_destroy(ctx);
}

static const test_case cases[] = {
    {"values", values},
    {"gradients", gradients},
    {"information", information},
    {"predictions and points left out", predictions},
    {"gradients of points left out", left_out_gradients},
    {"fits", fits},
    {"updates", updates},
    {"files", files},
    {"precisions and threads", precisions},
    {"judged by shape", judged_by_shape},
    {"batches", batches},
    {"held", held},
    {"refusals", refusals},
};
TEST_MAIN(cases)
