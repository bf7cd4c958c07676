/* cmd_bench_gw.c - `fourge bench gw`: verifies, then times, alignments of two noisy curves.
 *
 * A spiral in the plane and a roll in space: radius 0.3 .. 1 and angle 0 .. 9 rise with the index,
 * both coordinates of the plane get noise of 0.05 on the radius, the roll a uniform third
 * coordinate.  Points come in order of their angle, so the rank correlation rho of an alignment is
 * that of indices; a mirrored curve is as good.
 *
 * Verified is the plan that is timed: |rho| >= 0.998, and the sums of its rows and columns, made
 * again row by row, within 1e-9 of the weights (L1).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_lines.h"
#include "fourge/gw.h"
#include "simulate/designs.h"

typedef struct {
    const char *name;
    int64_t n, m;
    frg_gw_distance distance;
    int64_t landmarks;
    frg_gw_anneal anneal;
    int slow; /* not with --quick */
} curve_case;

static const curve_case cases[] = {
    {"dijkstra", 400, 500, FRG_GW_DISTANCE_DIJKSTRA, 50, FRG_GW_ANNEAL_NONE, 0},
    {"precomputed", 400, 500, FRG_GW_DISTANCE_PRECOMPUTED, 50, FRG_GW_ANNEAL_NONE, 0},
    {"landmark", 400, 500, FRG_GW_DISTANCE_LANDMARK, 20, FRG_GW_ANNEAL_NONE, 0},
    {"annealed", 400, 500, FRG_GW_DISTANCE_PRECOMPUTED, 50, FRG_GW_ANNEAL_PROGRESS, 0},
    {"landmark", 4000, 5000, FRG_GW_DISTANCE_LANDMARK, 50, FRG_GW_ANNEAL_NONE, 1},
    {"landmark annealed", 4000, 5000, FRG_GW_DISTANCE_LANDMARK, 50, FRG_GW_ANNEAL_PROGRESS, 1},
};

typedef struct {
    const curve_case *k;
    double *x, *y; /* n x 2, m x 3 */
    double *seconds, *row, *columns;
    int64_t *match, *count;
    frg_gw *solver;
    double rho, error; /* of the plan, seen from here */
} curve_job;

static void release(curve_job *job)
{
    frg_gw_destroy(job->solver);
    free(job->x);
    free(job->y);
    free(job->seconds);
    free(job->row);
    free(job->columns);
    free(job->match);
    free(job->count);
}

static void curve(random_stream *r, int64_t n, int d, double *to)
{
    for (int64_t i = 0; i < n; i++) {
        const double at = n > 1 ? (double)i / (double)(n - 1) : 0, radius = 0.3 + 0.7 * at;
        to[i * d] = (radius + 0.05 * random_normal(r)) * cos(9 * at);
        to[i * d + d - 1] = (radius + 0.05 * random_normal(r)) * sin(9 * at);
        if (d == 3) {
            to[i * d + 1] = random_uniform(r);
        }
    }
}

static int prepare(const cli *c, curve_job *job, int repeats)
{
    const int64_t n = job->k->n, m = job->k->m;
    job->x = malloc((size_t)(2 * n) * sizeof *job->x);
    job->y = malloc((size_t)(3 * m) * sizeof *job->y);
    job->seconds = calloc((size_t)repeats, sizeof *job->seconds);
    job->row = malloc((size_t)m * sizeof *job->row);
    job->columns = calloc((size_t)m, sizeof *job->columns);
    job->match = malloc((size_t)n * sizeof *job->match);
    job->count = calloc((size_t)m + 2, sizeof *job->count);
    if (!job->x || !job->y || !job->seconds || !job->row || !job->columns || !job->match ||
        !job->count) {
        return cli_fail_memory(c);
    }
    random_stream r;
    random_seed(&r, c->set.context.seed);
    curve(&r, n, 2, job->x);
    curve(&r, m, 3, job->y);
    return 0;
}

static frg_status run_once(cli *c, void *state, double *seconds)
{
    curve_job *const job = state;
    const curve_case *const k = job->k;
    const frg_array x = frg_matrix(job->x, FRG_F64, k->n, 2, 2),
                    y = frg_matrix(job->y, FRG_F64, k->m, 3, 3);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = k->distance;
    o.landmarks = k->landmarks;
    o.anneal = k->anneal;
    o.k = 5;
    o.epsilon = 0.005;
    frg_gw_destroy(job->solver);
    job->solver = NULL;
    const double begin = now_seconds();
    frg_status status = frg_gw_create(&job->solver, c->ctx, (frg_gw_side){.data = &x},
                                      (frg_gw_side){.data = &y}, NULL, &o);
    if (status >= 0) {
        status = frg_gw_run(job->solver, NULL);
    }
    *seconds = now_seconds() - begin;
    return status;
}

/** |Spearman| of i and match[i], ties at their mean rank; 0 where all matches are the same. */
static double rank_correlation(const curve_job *job)
{
    const int64_t n = job->k->n, m = job->k->m;
    int64_t *const below = job->count; /* how many matches are smaller than v */
    double xy = 0, xx = 0, yy = 0;
    for (int64_t i = 0; i < n; i++) {
        below[job->match[i] + 1]++;
    }
    for (int64_t v = 0; v < m; v++) {
        below[v + 1] += below[v];
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = job->match[i];
        const double middle = 0.5 * (double)(n - 1), a = (double)i - middle;
        const double b = 0.5 * (double)(below[v] + below[v + 1] - 1) - middle;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return yy > 0 ? fabs(xy) / sqrt(xx * yy) : 0;
}

static int verify(cli *c, void *state)
{
    curve_job *const job = state;
    const frg_plan *const plan = frg_gw_plan(job->solver);
    const int64_t n = job->k->n, m = job->k->m;
    frg_status status = frg_plan_argmax(plan, job->match);
    job->error = 0;
    for (int64_t i = 0; i < n && status >= 0; i++) {
        double sum = 0;
        status = frg_plan_rows(plan, i, i + 1, frg_matrix(job->row, FRG_F64, 1, m, m));
        for (int64_t j = 0; j < m; j++) {
            sum += job->row[j];
            job->columns[j] += job->row[j];
        }
        job->error += fabs(sum - 1 / (double)n);
    }
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    for (int64_t j = 0; j < m; j++) {
        job->error += fabs(job->columns[j] - 1 / (double)m);
    }
    job->rho = rank_correlation(job);
    if (!(job->rho >= 0.998 && job->error <= 1e-9)) {
        return cli_fail(c, "E_BUG", job->k->name, NULL,
                        "%s at %lld x %lld gave rank correlation %.4f and marginals off by %.1e",
                        job->k->name, (long long)n, (long long)m, job->rho, job->error);
    }
    return 0;
}

static int show(cli *c, const curve_job *job, int repeats, FILE *to)
{
    frg_json *j;
    int code = bench_line_begin(c, "gw", repeats, &j);
    if (code) {
        return code;
    }
    const frg_gw_report *const r = frg_gw_get(job->solver);
    frg_json_string(j, "case", job->k->name);
    frg_json_integer(j, "n", r->n);
    frg_json_integer(j, "m", r->m);
    bench_line_seconds(j, job->seconds, repeats);
    frg_json_number(j, "rho", job->rho);
    frg_json_number(j, "marginal_error", job->error);
    frg_json_number(j, "marginal_error_before_rounding",
                    frg_plan_get(frg_gw_plan(job->solver)).target_before);
    frg_json_number(j, "energy", r->energy);
    frg_json_number(j, "energy_standard_error", r->energy_standard_error);
    frg_json_number(j, "epsilon_end", r->epsilon_end);
    frg_json_integer(j, "outer_iterations", r->outer_iterations);
    frg_json_integer(j, "inner_iterations", r->inner_iterations);
    frg_json_string(j, "reason", frg_gw_reason_name(r->reason));
    return bench_line_end(c, j, to);
}

static int bench_curve(cli *c, const curve_case *k, FILE *to)
{
    const int repeats = bench_repeats(c);
    curve_job job = {.k = k};
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

int bench_gw(cli *c, FILE *to)
{
    int code = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !code; i++) {
        code = bench_case_begins(c, cases[i].slow) ? bench_curve(c, &cases[i], to) : 0;
    }
    return code;
}
