/* bench_gp.c - times exact Gaussian processes: bench_gp [--job J] [--n 50,100,...] [--dtype
 * f64|f32|mixed]
 *              [--threads N] [--repeat N] [--storage full|packed] [--data FOLDER]
 *
 *     step      value and gradient at new parameters, as one step of a fit
 *     value     the value alone
 *     invquad   r'K^-1 r and log |K| of a dense K, with the backward
 *     factor    the same without: the factor and a solve
 *     fit       50 steps of Adam, learning rate 0.1; above 2000 points once, without a warm-up
 *     loo       leave-one-out density with its gradient
 *     predict   mean and variance at 1000 points, the factor being there
 *     batch     value and gradient of 200 processes in one call (seconds of all)
 *     fits      200 fits as above in one call
 *
 * Inputs: FOLDER/gp_x.npy and gp_y.npy as bench/peers/gp_peers.py saves them (the first n rows), or
 * made here the same way: x uniform in [0, 1]^5, y = sum_k sin(2 pi x_k) / sqrt 5 + 0.1 N(0, 1).
 * Model: scale * RBF + noise above 1e-4 + constant mean, at GPyTorch's starts (softplus of 0).
 * Before a time is printed the value is compared with a factorisation of plain loops here (n <=
 * 1000), the gradient with differences of values, the rest with what they must satisfy.  One JSON
 * line a case: best and median seconds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/gp.h"
#include "fourge/table.h"

#include "bench.h"

enum {
    REPEATS_MOST = 1000,
    DIMS = 5,
    SIZES_MOST = 16,
    PARAMETERS = 4,
    NEW_POINTS = 1000,
    MEMBERS = 200,
    CHECKED = 1000,
    LONG_FROM = 2000
};
static const char *const expression = "scale*rbf + noise";
static const double TWO_PI = 6.283185307179586;

typedef struct {
    frg_context *ctx;
    const char *job, *dtype, *folder;
    frg_gp_opts opts;
    int64_t n;
    int repeats;
    double *x, *y; /* n x DIMS, n; NEW_POINTS more rows of x behind them */
    frg_gp *gp;
    double theta[PARAMETERS];
    frg_gp_value value;
    double gradient[PARAMETERS];
    /* of the jobs */
    double *k, *dk, *r, *a, *mean, *variance;
    frg_gp_member *members;
    double *outputs; /* MEMBERS x 2 PARAMETERS, then MEMBERS x n of y */
    frg_gp_fit_result fit;
} bench;

/* ---- inputs ---------------------------------------------------------------------------------- */

/** splitmix64. */
static double uniform(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void make_data(bench *b)
{
    uint64_t state = 1;
    for (int64_t i = 0; i < b->n + NEW_POINTS; i++) {
        double sum = 0;
        for (int k = 0; k < DIMS; k++) {
            const double v = uniform(&state);
            b->x[i * DIMS + k] = v;
            sum += sin(TWO_PI * v);
        }
        const double noise = sqrt(-2 * log(1 - uniform(&state))) * cos(TWO_PI * uniform(&state));
        if (i < b->n) {
            b->y[i] = sum / sqrt(DIMS) + 0.1 * noise;
        }
    }
}

/** The first rows of a file of doubles; false where it has fewer. */
static int read_rows(bench *b, const char *name, double *to, int64_t rows, int64_t width)
{
    char path[4096];
    frg_npy *file = NULL;
    snprintf(path, sizeof path, "%s/%s.npy", b->folder, name);
    if (frg_npy_read(&file, b->ctx, path) < 0) {
        return 0;
    }
    const frg_array a = frg_npy_array(file);
    const int fits =
        a.dtype == FRG_F64 && a.shape[0] >= rows && (a.ndim == 1 || a.shape[1] == width);
    for (int64_t i = 0; fits && i < rows; i++) {
        for (int64_t k = 0; k < width; k++) {
            to[i * width + k] =
                ((const double *)a.data)[i * a.stride[0] + (a.ndim == 2 ? k * a.stride[1] : 0)];
        }
    }
    frg_npy_destroy(file);
    return fits;
}

static int load(bench *b)
{
    b->x = calloc((size_t)((b->n + NEW_POINTS) * DIMS), sizeof *b->x);
    b->y = calloc((size_t)b->n, sizeof *b->y);
    if (!b->x || !b->y) {
        return 0;
    }
    make_data(b); /* the new points, and all where there is no folder */
    return !b->folder ||
           (read_rows(b, "gp_x", b->x, b->n, DIMS) && read_rows(b, "gp_y", b->y, b->n, 1));
}

/* ---- checks ---------------------------------------------------------------------------------- */

static double kernel(const bench *b, int64_t i, int64_t j)
{
    double s = 0;
    for (int k = 0; k < DIMS; k++) {
        const double d = (b->x[i * DIMS + k] - b->x[j * DIMS + k]) / b->theta[1];
        s += d * d;
    }
    return b->theta[0] * exp(-0.5 * s) + (i == j ? b->theta[2] : 0);
}

/** The log-likelihood by the textbook: loops over a full matrix. */
static double plain_value(const bench *b)
{
    const int64_t n = b->n;
    double *const l = malloc((size_t)(n * n) * sizeof *l), *const z = malloc((size_t)n * sizeof *z);
    double ell = -0.5 * (double)n * log(TWO_PI);
    for (int64_t i = 0; l && z && i < n; i++) {
        z[i] = b->y[i] - b->theta[3];
        for (int64_t j = 0; j <= i; j++) {
            double sum = kernel(b, i, j);
            for (int64_t k = 0; k < j; k++) {
                sum -= l[i * n + k] * l[j * n + k];
            }
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
            z[i] -= j < i ? l[i * n + j] * z[j] : 0;
        }
        z[i] /= l[i * n + i];
        ell -= 0.5 * z[i] * z[i] + log(l[i * n + i]);
    }
    free(l);
    free(z);
    return ell;
}

static int agree(const char *what, double got, double want, double tolerance)
{
    const int good = fabs(got - want) <= tolerance * (1 + fabs(want));
    if (!good) {
        fprintf(stderr, "bench_gp: %s is %.12g, expected %.12g\n", what, got, want);
    }
    return good;
}

static double value_at(const bench *b, const double *theta)
{
    frg_gp_value v = {.log_likelihood = (double)NAN};
    if (frg_gp_update_parameters(b->gp, theta) < 0 || frg_gp_eval(b->gp, &v) != FRG_OK) {
        return (double)NAN;
    }
    return v.log_likelihood;
}

/** Value against plain loops, gradient against differences; in f32 against what f32 can. */
static int check_step(bench *b)
{
    const int exact = b->opts.precision != FRG_GP_F32;
    const double h = exact ? 1e-5 : 1e-2, tolerance = exact ? 1e-5 : 2e-2;
    if (frg_gp_update_parameters(b->gp, b->theta) < 0 ||
        frg_gp_eval_gradient(b->gp, b->gradient, NULL, NULL, &b->value) != FRG_OK) {
        return 0;
    }
    int good = b->n > CHECKED ||
               agree("the value", b->value.log_likelihood, plain_value(b), exact ? 1e-10 : 1e-4);
    for (int t = 0; t < PARAMETERS && b->n <= CHECKED; t++) {
        double theta[PARAMETERS];
        memcpy(theta, b->theta, sizeof theta);
        theta[t] = t == 3 ? b->theta[t] + h : b->theta[t] * exp(h);
        const double up = value_at(b, theta);
        theta[t] = t == 3 ? b->theta[t] - h : b->theta[t] * exp(-h);
        good &= agree("a gradient", b->gradient[t], (up - value_at(b, theta)) / (2 * h), tolerance);
    }
    return good && agree("the trace residual", b->value.trace_residual, 0, exact ? 1e-7 : 1e-3);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/** Parameters that differ from those of the last call by a rounding, so that nothing is kept. */
static frg_status move(bench *b, int round)
{
    double theta[PARAMETERS];
    memcpy(theta, b->theta, sizeof theta);
    theta[1] *= 1 + 1e-13 * (double)(round & 7);
    return frg_gp_update_parameters(b->gp, theta);
}

static int run_step(bench *b, int round)
{
    return move(b, round) == FRG_OK &&
           frg_gp_eval_gradient(b->gp, b->gradient, NULL, NULL, &b->value) == FRG_OK;
}

static int run_value(bench *b, int round)
{
    return move(b, round) == FRG_OK && frg_gp_eval(b->gp, &b->value) == FRG_OK;
}

static int run_loo(bench *b, int round)
{
    frg_gp_loo out;
    return move(b, round) == FRG_OK &&
           frg_gp_eval_loo(b->gp, NULL, NULL, b->gradient, &out) == FRG_OK &&
           isfinite(out.log_density);
}

static int prepare_invquad(bench *b)
{
    const size_t n = (size_t)b->n;
    b->k = malloc(n * n * sizeof *b->k);
    b->dk = malloc(n * n * sizeof *b->dk);
    b->r = malloc(n * sizeof *b->r);
    b->a = malloc(n * sizeof *b->a);
    const int f32 = b->opts.precision == FRG_GP_F32;
    for (int64_t i = 0; b->k && b->r && i < b->n; i++) {
        for (int64_t j = 0; j < b->n; j++) {
            if (f32) {
                ((float *)(void *)b->k)[i * b->n + j] = (float)kernel(b, i, j);
            } else {
                b->k[i * b->n + j] = kernel(b, i, j);
            }
        }
        if (f32) {
            ((float *)(void *)b->r)[i] = (float)(b->y[i] - b->theta[3]);
        } else {
            b->r[i] = b->y[i] - b->theta[3];
        }
    }
    return b->k && b->dk && b->r && b->a;
}

/** The quadratic form and the determinant, with the backward or without. */
static int run_dense(bench *b, int round, int backward)
{
    const frg_dtype t = b->opts.precision == FRG_GP_F32 ? FRG_F32 : FRG_F64;
    const frg_array k = frg_matrix(b->k, t, b->n, b->n, b->n),
                    dk = frg_matrix(b->dk, t, b->n, b->n, b->n);
    const frg_array r = frg_vector(b->r, t, b->n), a = frg_vector(b->a, t, b->n);
    const double half = -0.5;
    double quad = 0, logdet = 0;
    if (frg_gp_invquad_logdet(b->ctx, k, r, &quad, &logdet, backward ? &a : NULL,
                              backward ? &dk : NULL) != FRG_OK) {
        return 0;
    }
    if (backward &&
        frg_gp_invquad_logdet_backward(b->ctx, &dk, a, &half, &half, &dk, NULL) != FRG_OK) {
        return 0;
    }
    const double ell = -0.5 * (quad + logdet + (double)b->n * log(TWO_PI));
    return round >= 0 ||
           agree("the value", ell, b->value.log_likelihood, t == FRG_F64 ? 1e-10 : 1e-3);
}

static int run_invquad(bench *b, int round)
{
    return run_dense(b, round, 1);
}

static int run_factor(bench *b, int round)
{
    return run_dense(b, round, 0);
}

static void set_fit(frg_gp_fit_opts *o)
{
    frg_gp_fit_defaults(o, sizeof *o);
    o->optimizer = FRG_GP_ADAM;
    o->max_iter = 50;
    o->learning_rate = 0.1;
    o->standardize = 0;
    o->standard_errors = 0;
}

static int run_fit(bench *b, int round)
{
    frg_gp_fit_opts o;
    set_fit(&o);
    const double before = value_at(b, b->theta);
    const frg_status status = frg_gp_fit(b->gp, &o, &b->fit);
    b->value = b->fit.value;
    return round >= 0 || (status >= 0 && b->fit.log_likelihood > before);
}

static int prepare_predict(bench *b)
{
    b->mean = malloc(2 * NEW_POINTS * sizeof *b->mean);
    b->variance = b->mean ? b->mean + NEW_POINTS : NULL;
    return b->mean && frg_gp_update_parameters(b->gp, b->theta) == FRG_OK &&
           frg_gp_eval(b->gp, &b->value) == FRG_OK;
}

static int run_predict(bench *b, int round)
{
    frg_gp_predict_opts o;
    frg_gp_predict_defaults(&o, sizeof o);
    const frg_array mean = frg_vector(b->mean, FRG_F64, NEW_POINTS),
                    variance = frg_vector(b->variance, FRG_F64, NEW_POINTS);
    o.mean = (frg_array *)(uintptr_t)&mean;
    o.variance = (frg_array *)(uintptr_t)&variance;
    const double *const at = b->x + b->n * DIMS;
    if (frg_gp_predict(b->gp, frg_matrix(at, FRG_F64, NEW_POINTS, DIMS, DIMS), &o) < 0) {
        return 0;
    }
    double error = 0;
    for (int i = 0; round < 0 && i < NEW_POINTS; i++) {
        double truth = 0;
        for (int k = 0; k < DIMS; k++) {
            truth += sin(TWO_PI * at[i * DIMS + k]) / sqrt(DIMS);
        }
        error += fabs(truth - b->mean[i]) / NEW_POINTS;
    }
    return round >= 0 || error < 0.8; /* the mean alone leaves 0.6 with n = 50, 0.1 with 5000 */
}

/** Members share x; the y of member k is the single problem's with a share of its neighbours': all
 *  different. */
static int prepare_batch(bench *b)
{
    const int64_t n = b->n;
    b->members = calloc(MEMBERS, sizeof *b->members);
    b->outputs = malloc((size_t)(MEMBERS * (2 * PARAMETERS + n)) * sizeof *b->outputs);
    for (int64_t k = 0; b->members && b->outputs && k < MEMBERS; k++) {
        double *const y = b->outputs + MEMBERS * 2 * PARAMETERS + k * n;
        for (int64_t i = 0; i < n; i++) {
            y[i] = b->y[i] + 0.1 * (double)k / MEMBERS * b->y[(i + 1) % n];
        }
        b->members[k] = (frg_gp_member){.x = frg_matrix(b->x, FRG_F64, n, DIMS, DIMS),
                                        .y = frg_vector(y, FRG_F64, n),
                                        .gradient = b->outputs + k * 2 * PARAMETERS,
                                        .fitted = b->outputs + (k * 2 + 1) * PARAMETERS};
    }
    return b->members && b->outputs;
}

static int run_batch(bench *b, int round)
{
    if (frg_gp_batch_eval(b->ctx, MEMBERS, b->members, expression, &b->opts) != FRG_OK) {
        return 0;
    }
    const double tolerance = b->opts.precision == FRG_GP_F32 ? 1e-4 : 1e-10;
    int good = round >= 0 || agree("member 1", b->members[0].value.log_likelihood,
                                   b->value.log_likelihood, tolerance);
    for (int t = 0; round < 0 && t < PARAMETERS; t++) {
        good &= agree("a gradient of member 1", b->members[0].gradient[t], b->gradient[t],
                      b->opts.precision == FRG_GP_F64 ? 1e-9 : 1e-3);
    }
    return good;
}

static int run_fits(bench *b, int round)
{
    frg_gp_fit_opts o;
    set_fit(&o);
    if (frg_gp_batch_fit(b->ctx, MEMBERS, b->members, expression, &b->opts, &o) < 0) {
        return 0;
    }
    if (round >= 0) {
        return 1;
    }
    frg_gp_fit_result single;
    if (frg_gp_update_parameters(b->gp, b->theta) < 0 || frg_gp_fit(b->gp, &o, &single) < 0) {
        return 0;
    }
    return agree("the fit of member 1", b->members[0].value.log_likelihood, single.log_likelihood,
                 b->opts.precision == FRG_GP_F32 ? 1e-3 : 1e-8);
}

typedef struct {
    const char *name;
    int (*prepare)(bench *);        /* NULL: nothing */
    int (*run)(bench *, int round); /* round -1 is the warm-up, and checks */
} job;

static const job jobs[] = {{"step", NULL, run_step},
                           {"value", NULL, run_value},
                           {"invquad", prepare_invquad, run_invquad},
                           {"factor", prepare_invquad, run_factor},
                           {"fit", NULL, run_fit},
                           {"loo", NULL, run_loo},
                           {"predict", prepare_predict, run_predict},
                           {"batch", prepare_batch, run_batch},
                           {"fits", prepare_batch, run_fits}};

/* ---- one case -------------------------------------------------------------------------------- */

static int open_process(bench *b)
{
    b->opts.preset = FRG_GP_PRESET_GPYTORCH;
    if (frg_gp_create(&b->gp, b->ctx, frg_matrix(b->x, FRG_F64, b->n, DIMS, DIMS),
                      frg_vector(b->y, FRG_F64, b->n), expression, &b->opts) < 0 ||
        frg_gp_parameter_count(b->gp) != PARAMETERS) {
        return 0;
    }
    for (int i = 0; i < PARAMETERS; i++) {
        frg_gp_parameter p;
        if (frg_gp_get_parameter(b->gp, i, &p) < 0) {
            return 0;
        }
        b->theta[i] = p.value;
    }
    return 1;
}

static void print_case(const bench *b, double *seconds, int repeats)
{
    bench_sort(seconds, repeats);
    printf("{\"bench\":\"gp\",\"job\":\"%s\",\"n\":%lld,\"d\":%d,\"dtype\":\"%s\",\"peer\":"
           "\"fourge\",\"threads\":%d,"
           "\"isa\":\"%s\",\"commit\":\"%s\",\"storage\":\"%s\",\"seconds\":%.9f,\"median_"
           "seconds\":%.9f,"
           "\"repeats\":%d,\"log_likelihood\":%.10g,\"bytes\":%zu",
           b->job, (long long)b->n, DIMS, b->dtype, frg_threads(b->ctx), frg_isa(b->ctx),
           frg_commit(), frg_gp_get(b->gp).storage == FRG_GP_FULL ? "full" : "packed", seconds[0],
           seconds[repeats / 2], repeats, b->value.log_likelihood, frg_gp_get(b->gp).bytes);
    if (isfinite(b->value.trace_residual)) { /* a fit ends with a value */
        printf(",\"trace_residual\":%.1e", b->value.trace_residual);
    }
    if (strcmp(b->job, "step") == 0) {
        printf(",\"build\":%.9f,\"factor\":%.9f,\"inverse\":%.9f,\"pass\":%.9f,\"gflops\":%.1f",
               b->value.build_seconds, b->value.factor_seconds, b->value.inverse_seconds,
               b->value.gradient_seconds,
               1e-9 * (double)b->n * (double)b->n * (double)b->n / seconds[0]);
    }
    if (strcmp(b->job, "fit") == 0) {
        printf(",\"parameters\":[");
        for (int i = 0; i < PARAMETERS; i++) {
            frg_gp_parameter p = {0};
            printf("%s%.10g", i ? "," : "",
                   frg_gp_get_parameter(b->gp, i, &p) < 0 ? (double)NAN : p.value);
        }
        printf("]");
    }
    printf("}\n");
}

/** Minutes warm themselves: the run that checks is the one that is timed. */
static int is_long(const bench *b)
{
    return strcmp(b->job, "fit") == 0 && b->n > LONG_FROM;
}

static int time_case(bench *b, const job *j)
{
    double seconds[REPEATS_MOST];
    const int first = is_long(b) ? -1 : 0;
    b->repeats = is_long(b) ? 1 : b->repeats;
    if (!load(b) || !open_process(b) || !check_step(b) || (j->prepare && !j->prepare(b)) ||
        (first == 0 && !j->run(b, -1))) {
        fprintf(stderr, "bench_gp: %s, n = %lld: %s\n", b->job, (long long)b->n,
                frg_message(b->ctx));
        return 1;
    }
    for (int i = 0; i < b->repeats; i++) {
        const double began = bench_now();
        if (!j->run(b, first + i)) {
            fprintf(stderr, "bench_gp: %s, n = %lld: %s\n", b->job, (long long)b->n,
                    frg_message(b->ctx));
            return 1;
        }
        seconds[i] = bench_now() - began;
    }
    print_case(b, seconds, b->repeats);
    return 0;
}

static int run_case(frg_context *ctx, const bench *options, const job *j, int64_t n)
{
    bench b = *options;
    b.ctx = ctx;
    b.n = n;
    const int failed = time_case(&b, j);
    frg_gp_destroy(b.gp);
    free(b.x);
    free(b.y);
    free(b.k);
    free(b.dk);
    free(b.r);
    free(b.a);
    free(b.mean);
    free(b.members);
    free(b.outputs);
    return failed;
}

/** "50,100" into sizes; returns how many. */
static int read_sizes(const char *text, int64_t sizes[SIZES_MOST])
{
    int count = 0;
    for (char *end; count < SIZES_MOST && *text; text = *end ? end + 1 : end) {
        sizes[count++] = strtoll(text, &end, 10);
    }
    return count;
}

int main(int argc, char **argv)
{
    frg_context_opts opts;
    frg_context_defaults(&opts, sizeof opts);
    bench b = {.job = "step", .dtype = "f64", .repeats = 7};
    frg_gp_defaults(&b.opts, sizeof b.opts);
    int64_t sizes[SIZES_MOST] = {50, 100, 500, 1000, 2000};
    int count = 5, failed = argc % 2 == 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *const name = argv[i], *const text = argv[i + 1];
        opts.threads = strcmp(name, "--threads") == 0 ? atoi(text) : opts.threads;
        b.repeats = strcmp(name, "--repeat") == 0 ? atoi(text) : b.repeats;
        b.job = strcmp(name, "--job") == 0 ? text : b.job;
        b.dtype = strcmp(name, "--dtype") == 0 ? text : b.dtype;
        b.folder = strcmp(name, "--data") == 0 ? text : b.folder;
        count = strcmp(name, "--n") == 0 ? read_sizes(text, sizes) : count;
        if (strcmp(name, "--storage") == 0) {
            b.opts.storage = strcmp(text, "full") == 0 ? FRG_GP_FULL : FRG_GP_PACKED;
        }
    }
    b.repeats = b.repeats < 1 ? 1 : b.repeats > REPEATS_MOST ? REPEATS_MOST : b.repeats;
    b.opts.precision = strcmp(b.dtype, "f32") == 0     ? FRG_GP_F32
                       : strcmp(b.dtype, "mixed") == 0 ? FRG_GP_MIXED
                                                       : FRG_GP_F64;
    const job *chosen = NULL;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        chosen = strcmp(b.job, jobs[i].name) == 0 ? &jobs[i] : chosen;
    }
    frg_context *ctx = NULL;
    if (failed || !chosen || frg_context_create(&ctx, &opts) < 0) {
        fprintf(stderr, "bench_gp: the options are not valid\n");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        failed |= run_case(ctx, &b, chosen, sizes[i]);
    }
    frg_context_destroy(ctx);
    return failed;
}
