/* cmd_bench_gp.c - `fourge bench gp`: verifies, then times, values with gradients of Gaussian
 * processes.
 *
 * 5 inputs, normal; y = sin(sum x) + 0.1 e; scale * rbf + noise, all at log 2 (GPyTorch's start),
 * mean zero.  A step is what an optimizer asks for: new parameters, log-likelihood and gradient.
 *
 * Verified is the process that is timed: its value against a plain Cholesky factor in f64,
 *
 *     ell = -1/2 r' K^-1 r - sum log L_ii - n/2 log 2 pi,
 *
 * and up to 500 points its gradient by the log parameters against central differences of the same.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_lines.h"
#include "fourge/gp.h"
#include "simulate/designs.h"

enum { INPUTS = 5, PARAMETERS = 3, DIFFERENCES_UP_TO = 500 };

typedef struct {
    int64_t n;
    frg_gp_precision precision;
    int slow; /* not with --quick */
} process_case;

static const process_case cases[] = {
    {50, FRG_GP_F64, 0},   {50, FRG_GP_F32, 0},   {100, FRG_GP_F64, 0},  {100, FRG_GP_F32, 0},
    {500, FRG_GP_F64, 0},  {500, FRG_GP_F32, 0},  {1000, FRG_GP_F64, 1}, {1000, FRG_GP_F32, 1},
    {2000, FRG_GP_F64, 1}, {2000, FRG_GP_F32, 1},
};

typedef struct {
    const process_case *k;
    double *x, *y;         /* n x INPUTS, n */
    double *factor, *work; /* n x n, n: of the plain one */
    double *seconds;
    frg_gp *gp;
    frg_gp_value value;
    double theta[PARAMETERS], gradient[PARAMETERS];
    double value_error, gradient_error; /* a point */
} process_job;

static void release(process_job *job)
{
    frg_gp_destroy(job->gp);
    free(job->x);
    free(job->y);
    free(job->factor);
    free(job->work);
    free(job->seconds);
}

static int prepare(cli *c, process_job *job, int repeats)
{
    const size_t n = (size_t)job->k->n;
    job->x = malloc(n * INPUTS * sizeof *job->x);
    job->y = malloc(n * sizeof *job->y);
    job->factor = malloc(n * n * sizeof *job->factor);
    job->work = malloc(n * sizeof *job->work);
    job->seconds = calloc((size_t)repeats, sizeof *job->seconds);
    if (!job->x || !job->y || !job->factor || !job->work || !job->seconds) {
        return cli_fail_memory(c);
    }
    random_stream r;
    random_seed(&r, c->set.context.seed);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t d = 0; d < INPUTS; d++) {
            sum += job->x[i * INPUTS + d] = random_normal(&r);
        }
        job->y[i] = sin(sum) + 0.1 * random_normal(&r);
    }
    frg_gp_opts o;
    frg_gp_defaults(&o, sizeof o);
    o.precision = job->k->precision;
    o.mean = "zero";
    const frg_status status =
        frg_gp_create(&job->gp, c->ctx, frg_matrix(job->x, FRG_F64, (int64_t)n, INPUTS, INPUTS),
                      frg_vector(job->y, FRG_F64, (int64_t)n), "scale*rbf + noise", &o);
    for (int p = 0; p < PARAMETERS; p++) {
        job->theta[p] = log(2);
    }
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/** Parameters that differ from those before, if by little: nothing of the last step can be used
 *  again. */
static frg_status run_once(cli *c, void *state, double *seconds)
{
    process_job *const job = state;
    (void)c;
    for (int p = 0; p < PARAMETERS; p++) {
        job->theta[p] *= 1 + 1e-9;
    }
    const double begin = now_seconds();
    frg_status status = frg_gp_update_parameters(job->gp, job->theta);
    if (status >= 0) {
        status = frg_gp_eval_gradient(job->gp, job->gradient, NULL, NULL, &job->value);
    }
    *seconds = now_seconds() - begin;
    return status;
}

/** ell at theta = (scale, l, noise), row by row. */
static double plain_value(const process_job *job, const double theta[PARAMETERS])
{
    const int64_t n = job->k->n;
    double *const l = job->factor, *const z = job->work;
    double ell = -0.5 * (double)n * log(2 * acos(-1));
    for (int64_t i = 0; i < n; i++) {
        double residual = job->y[i];
        for (int64_t j = 0; j <= i; j++) {
            double square = 0, sum = i == j ? theta[2] : 0;
            for (int d = 0; d < INPUTS; d++) {
                const double gap = job->x[i * INPUTS + d] - job->x[j * INPUTS + d];
                square += gap * gap;
            }
            sum += theta[0] * exp(-0.5 * square / (theta[1] * theta[1]));
            for (int64_t k = 0; k < j; k++) {
                sum -= l[i * n + k] * l[j * n + k];
            }
            l[i * n + j] = i == j ? sqrt(sum) : sum / l[j * n + j];
        }
        for (int64_t k = 0; k < i; k++) {
            residual -= l[i * n + k] * z[k];
        }
        z[i] = residual / l[i * n + i];
        ell -= log(l[i * n + i]) + 0.5 * z[i] * z[i];
    }
    return ell;
}

/** Errors a point.  Differences with steps of 1e-5 in the logarithm are good to 1e-8 a point: 1e-10
 *  by their curvature, 1e-11 / 1e-5 times the roundings of ell; float32 promises 1e-3. */
static int verify(cli *c, void *state)
{
    process_job *const job = state;
    const double step = 1e-5, n = (double)job->k->n;
    const double allowed = job->k->precision == FRG_GP_F64 ? 1e-6 : 1e-3;
    job->value_error = fabs(job->value.log_likelihood - plain_value(job, job->theta)) / n;
    job->gradient_error = n <= DIFFERENCES_UP_TO ? 0 : (double)NAN;
    for (int p = 0; p < PARAMETERS && n <= DIFFERENCES_UP_TO; p++) {
        double up[PARAMETERS], down[PARAMETERS];
        memcpy(up, job->theta, sizeof up);
        memcpy(down, job->theta, sizeof down);
        up[p] *= exp(step);
        down[p] *= exp(-step);
        const double difference = (plain_value(job, up) - plain_value(job, down)) / (2 * step);
        job->gradient_error = fmax(job->gradient_error, fabs(job->gradient[p] - difference) / n);
    }
    if (!(job->value_error <= allowed) || job->gradient_error > allowed) {
        return cli_fail(c, "E_BUG", "gp", NULL,
                        "%lld points: the value is off by %.1e a point, the gradient by %.1e",
                        (long long)job->k->n, job->value_error, job->gradient_error);
    }
    return 0;
}

static int show(cli *c, const process_job *job, int repeats, FILE *to)
{
    frg_json *j;
    const int code = bench_line_begin(c, "gp", repeats, &j);
    if (code) {
        return code;
    }
    frg_json_string(j, "case", "value and gradient");
    frg_json_integer(j, "n", job->k->n);
    frg_json_string(j, "dtype", job->k->precision == FRG_GP_F64 ? "f64" : "f32");
    bench_line_seconds(j, job->seconds, repeats);
    frg_json_number(j, "value_error", job->value_error);
    frg_json_number(j, "gradient_error", job->gradient_error);
    frg_json_number(j, "trace_residual", job->value.trace_residual);
    return bench_line_end(c, j, to);
}

static int bench_process(cli *c, const process_case *k, FILE *to)
{
    const int repeats = bench_repeats(c);
    process_job job = {.k = k};
    int code = prepare(c, &job, repeats);
    if (!code) {
        code = bench_time(c, run_once, verify, &job, repeats, job.seconds);
    }
    if (!code) {
        code = show(c, &job, repeats, to);
    }
    release(&job);
    return code;
}

int bench_gp(cli *c, FILE *to)
{
    int code = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !code; i++) {
        code = bench_case_begins(c, cases[i].slow) ? bench_process(c, &cases[i], to) : 0;
    }
    return code;
}
