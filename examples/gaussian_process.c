/* gaussian_process.c - fits a Gaussian process to a noisy wave, predicts beyond it, takes a new
 * point in, and keeps the model.
 *
 *     cc gp.c $(pkg-config --cflags --libs fourge) -lm -o gp
 */
#include <math.h>
#include <stdio.h>

#include <fourge/gp.h>

enum { POINTS = 60, NEW = 4 };

static frg_status fit(frg_gp *gp)
{
    frg_gp_fit_result result;
    const frg_status status = frg_gp_fit(gp, NULL, &result);
    if (status < 0) {
        return status;
    }
    printf("log-likelihood %.4f after %lld values and %lld gradients\n", result.log_likelihood,
           (long long)result.values, (long long)result.gradients);
    for (int i = 0; i < frg_gp_parameter_count(gp); i++) {
        frg_gp_parameter p;
        if (frg_gp_get_parameter(gp, i, &p) == FRG_OK) {
            printf("%-6s %8.4f   standard error %.2f\n", p.name, p.value, p.std_error);
        }
    }
    return status;
}

static frg_status predict(frg_gp *gp)
{
    const double x[NEW] = {2.5, 5.9, 6.5, 8};
    double mean[NEW] = {0}, variance[NEW] = {0};
    frg_array means = frg_vector(mean, FRG_F64, NEW),
              variances = frg_vector(variance, FRG_F64, NEW);
    frg_gp_predict_opts opts;
    frg_gp_predict_defaults(&opts, sizeof opts);
    opts.mean = &means;
    opts.variance = &variances;
    const frg_status status = frg_gp_predict(gp, frg_matrix(x, FRG_F64, NEW, 1, 1), &opts);
    for (int i = 0; i < NEW && status == FRG_OK; i++) {
        printf("f(%.1f) = %6.3f +- %.3f   (the wave: %6.3f)\n", x[i], mean[i], sqrt(variance[i]),
               sin(x[i]));
    }
    return status;
}

int main(void)
{
    double x[POINTS], y[POINTS];
    for (int i = 0; i < POINTS; i++) {
        x[i] = 0.1 * i;
        y[i] = sin(x[i]) + 0.1 * sin(97.0 * i);
    }
    frg_context *ctx = NULL;
    frg_gp *gp = NULL;
    frg_status status = frg_context_create(&ctx, NULL);
    if (status == FRG_OK) {
        status = frg_gp_create(&gp, ctx, frg_matrix(x, FRG_F64, POINTS, 1, 1),
                               frg_vector(y, FRG_F64, POINTS), "scale*rbf + noise", NULL);
    }
    if (status == FRG_OK) {
        status = fit(gp);
    }
    if (status == FRG_OK) {
        status = predict(gp);
    }
    const double later = 7, seen = sin(7);
    if (status == FRG_OK) {
        status = frg_gp_update_append(gp, frg_matrix(&later, FRG_F64, 1, 1, 1),
                                      frg_vector(&seen, FRG_F64, 1), NULL);
    }
    if (status == FRG_OK) {
        puts("with a point at 7:");
        status = predict(gp);
    }
    if (status == FRG_OK) {
        status = frg_gp_save(gp, "wave.model"); /* fourge gp predict wave.model new.csv */
    }
    if (status != FRG_OK) {
        fprintf(stderr, "%s: %s\n", frg_error_code(ctx), frg_message(ctx));
    }
    frg_gp_destroy(gp);
    frg_context_destroy(ctx);
    return status == FRG_OK ? 0 : 1;
}
