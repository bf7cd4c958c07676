/* regression.c - a regression with two fixed effects and clustered errors, from a file to a table.
 *
 *     cc regression.c $(pkg-config --cflags --libs fourge) -o regression
 *     ./regression wage_panel.csv
 */
#include <stdio.h>

#include <fourge/fe.h>

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "data/wage_panel.csv";
    frg_context *ctx = NULL;
    frg_table *data = NULL;
    frg_fe *fit = NULL;
    frg_fe_opts opts;
    frg_fe_defaults(&opts, sizeof opts);
    opts.vcov[0] = "cluster=nr";
    opts.vcov[1] = "iid";
    opts.n_vcov = 2;

    frg_status status = frg_context_create(&ctx, NULL);
    if (status == FRG_OK) {
        status = frg_table_read(&data, ctx, path, NULL);
    }
    if (status == FRG_OK) {
        status =
            frg_fe_fit(&fit, ctx, "lwage ~ union + married + expersq | nr + year", data, &opts);
    }
    if (status < 0) {
        fprintf(stderr, "%s: %s\n  %s\n", frg_error_code(ctx), frg_message(ctx),
                frg_error_hint(ctx));
        return 1;
    }
    const frg_fe_result *result = frg_fe_get(fit);
    printf("%s, %lld observations, converged %d\n", result->formula, (long long)result->n,
           result->converged);
    printf("%-10s %9s %9s %9s\n", "", "estimate", "clustered", "iid");
    for (int i = 0; i < result->n_coefficients; i++) {
        const frg_coefficient *c = &result->coefficients[i];
        printf("%-10s %9.5f %9.5f %9.5f\n", c->term, c->estimate, c->std_error,
               result->vcov[1].coefficients[i].std_error);
    }
    frg_fe_destroy(fit);
    frg_table_destroy(data);
    frg_context_destroy(ctx);
    return 0;
}
