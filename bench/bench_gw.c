/* bench_gw.c - times paths, Sinkhorn's iteration and alignments: bench_gw [--threads N] [--repeat
 * N] FOLDER
 *
 * FOLDER holds spiral400.npy, roll500.npy and the others that bench/peers/gw_peers.py saves.
 * Points of the two curves come in order of their angle, so Spearman's rank correlation of an
 * alignment is that of indices; its absolute value counts, because a mirrored curve is as good.
 * One JSON line a case: best and median seconds of the whole call (graph, distances, start, polish,
 * energy), after one warm-up.
 *
 * A line is printed where the result held, outside the timing:
 *     alignments  |rho| is at least 0.998 on curves; the columns are off by at most 1e-4 before
 *                 rounding, all marginals by 1e-9 after (L1); of the clouds the exact energies from
 *                 three seeds are within 2 % of the lowest of all cases on the same points at the
 *                 same epsilon
 *     paths       five rows are those of a plain Dijkstra in double
 *     Sinkhorn    P = exp((f + g - C) / epsilon) in double has the marginals: 64 rows and 64
 *                 columns
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/gw.h"
#include "fourge/table.h"

#include "bench.h"

enum { REPEATS_MOST = 100, PATH_ROOM = 4096 };

static int fail(frg_context *ctx, const char *what)
{
    fprintf(stderr, "bench_gw: %s: %s\n", what, frg_message(ctx));
    return 1;
}

static frg_npy *load(frg_context *ctx, const char *folder, const char *name)
{
    char path[PATH_ROOM];
    frg_npy *a = NULL;
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    if (frg_npy_read(&a, ctx, path) < 0) {
        fail(ctx, path);
    }
    return a;
}

static void head(FILE *out, const frg_context *ctx, const char *bench, double *seconds, int repeats)
{
    bench_sort(seconds, repeats);
    fprintf(out,
            "{\"bench\":\"%s\",\"peer\":\"fourge\",\"threads\":%d,\"isa\":\"%s\",\"commit\":\"%s\","
            "\"seconds\":%.5f,"
            "\"median_seconds\":%.5f,\"repeats\":%d",
            bench, frg_threads(ctx), frg_isa(ctx), frg_commit(), seconds[0], seconds[repeats / 2],
            repeats);
}

/** Ranks of x, ties averaged: places[i] sorted by x. */
static void ranks(const int64_t *x, int64_t n, int64_t most, double *rank)
{
    int64_t *count = calloc((size_t)most + 2, sizeof *count);
    for (int64_t i = 0; count && i < n; i++) {
        count[x[i] + 1]++;
    }
    for (int64_t v = 0; count && v <= most; v++) {
        count[v + 1] += count[v];
    }
    for (int64_t i = 0; count && i < n; i++) {
        rank[i] = 0.5 * (double)(count[x[i]] + count[x[i] + 1] - 1);
    }
    free(count);
}

/** |Spearman| of i and match[i]; 0 where all matches are the same. */
static double spearman(const int64_t *match, int64_t n, int64_t m)
{
    double *rank = calloc((size_t)n, sizeof *rank), xy = 0, xx = 0, yy = 0;
    if (!rank) {
        return NAN;
    }
    ranks(match, n, m, rank);
    const double middle = 0.5 * (double)(n - 1);
    for (int64_t i = 0; i < n; i++) {
        const double a = (double)i - middle, b = rank[i] - middle;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    free(rank);
    return yy > 0 ? fabs(xy) / sqrt(xx * yy) : 0;
}

/* ---- cases ----------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *x, *y;
    frg_gw_distance distance;
    int64_t k, landmarks, max_iter, min_iter;
    frg_gw_anneal anneal;
    frg_gw_multiscale multiscale;
    int curve; /* rho is printed */
} align_case;

enum { SEEDS = 3 };

/** E of the plan of a run with this seed, by dense products; NaN where there is none. */
static double exact_energy(const frg_context *like, uint64_t seed, const frg_array *x,
                           const frg_array *y, const frg_gw_opts *o)
{
    frg_context_opts c;
    frg_context *ctx = NULL;
    frg_gw *s = NULL;
    double energy = NAN, *dense = NULL;
    frg_context_defaults(&c, sizeof c);
    c.threads = frg_threads(like);
    c.seed = seed;
    if (frg_context_create(&ctx, &c) < 0) {
        return NAN;
    }
    const int64_t n = x->shape[0], m = y->shape[0];
    if (frg_gw_create(&s, ctx, (frg_gw_side){.data = x}, (frg_gw_side){.data = y}, NULL, o) >= 0 &&
        frg_gw_run(s, NULL) >= 0) {
        dense = malloc((size_t)(n * n + m * m + n * m) * sizeof *dense);
    }
    if (dense) {
        const frg_array a = frg_matrix(dense, FRG_F64, n, n, n),
                        b = frg_matrix(dense + n * n, FRG_F64, m, m, m),
                        p = frg_matrix(dense + n * n + m * m, FRG_F64, n, m, m);
        const bool failed = frg_gw_distances(s, 0, a) < 0 || frg_gw_distances(s, 1, b) < 0 ||
                            frg_plan_rows(frg_gw_plan(s), 0, n, p) < 0 ||
                            frg_gw_energy(ctx, a, b, p, &energy) < 0;
        energy = failed ? (double)NAN : energy;
    }
    free(dense);
    frg_gw_destroy(s);
    frg_context_destroy(ctx);
    return energy;
}

/** *line <- the case's line, NULL where its result did not hold; the energies of clouds are still
 *  to be compared. */
static int align(frg_context *ctx, const char *folder, const align_case *c, int repeats,
                 double *energies, char **line)
{
    frg_npy *fx = load(ctx, folder, c->x), *fy = load(ctx, folder, c->y);
    int failed = 1;
    double seconds[REPEATS_MOST];
    frg_gw *s = NULL;
    int64_t *match = NULL;
    if (!fx || !fy) {
        goto done;
    }
    const frg_array x = frg_npy_array(fx), y = frg_npy_array(fy);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = c->distance;
    o.k = c->k;
    o.landmarks = c->landmarks;
    o.max_iter = c->max_iter;
    o.min_iter = c->min_iter;
    o.anneal = c->anneal;
    o.multiscale = c->multiscale;
    o.epsilon = 0.005;
    for (int i = -1; i < repeats; i++) { /* the first is a warm-up */
        frg_gw_destroy(s);
        s = NULL;
        const double begin = bench_now();
        if (frg_gw_create(&s, ctx, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y}, NULL, &o) <
                0 ||
            frg_gw_run(s, NULL) < 0) {
            fail(ctx, c->name);
            goto done;
        }
        seconds[i < 0 ? 0 : i] = bench_now() - begin;
    }
    const frg_gw_report *const r = frg_gw_get(s);
    const frg_plan_report p = frg_plan_get(frg_gw_plan(s));
    match = malloc((size_t)r->n * sizeof *match);
    if (!match || frg_plan_argmax(frg_gw_plan(s), match) < 0) {
        goto done;
    }
    const double rho = c->curve ? spearman(match, r->n, r->m) : (double)NAN;
    for (int q = 0; q < SEEDS && !c->curve; q++) {
        energies[q] = exact_energy(ctx, (uint64_t)q, &x, &y, &o);
    }
    failed = (c->curve && !(rho >= 0.998)) || !(p.target_before <= 1e-4) ||
             !(p.target_error <= 1e-9) || !(p.source_error <= 1e-9);
    if (failed) {
        fprintf(
            stderr,
            "bench_gw: the time of %s does not count: |rho| %g, marginals %g before rounding, %g "
            "and %g after\n",
            c->name, rho, p.target_before, p.source_error, p.target_error);
        goto done;
    }
    size_t length;
    FILE *const out = open_memstream(line, &length);
    if (!out) {
        failed = 1;
        goto done;
    }
    head(out, ctx, "gw_align", seconds, repeats);
    fprintf(out, ",\"case\":\"%s\",\"n\":%lld,\"m\":%lld", c->name, (long long)r->n,
            (long long)r->m);
    if (c->curve) {
        fprintf(out, ",\"rho\":%.4f", rho);
    }
    fprintf(out,
            ",\"energy\":%.6g,\"energy_error\":%.1e,\"epsilon_end\":%.2g,\"outer\":%lld,"
            "\"coarse\":%lld,\"inner\":%lld,\"marginal_before\":%.1e,\"marginal\":%.1e,"
            "\"reason\":\"%s\"",
            r->energy, r->energy_standard_error, r->epsilon_end, (long long)r->outer_iterations,
            (long long)r->coarse_iterations, (long long)r->inner_iterations, p.target_before,
            p.target_error, frg_gw_reason_name(r->reason));
    fprintf(out,
            ",\"graph\":%.4f,\"distances\":%.4f,\"gather\":%.4f,\"inner_seconds\":%.4f,"
            "\"sample\":%.4f,\"polish\":%.4f,\"peak_mb\":%.0f}\n",
            r->graph_seconds, r->distances_seconds, r->build_seconds, r->inner_seconds,
            r->sample_seconds, r->polish_seconds, (double)frg_peak_bytes(ctx) / 1e6);
    fclose(out);
done:
    free(match);
    frg_gw_destroy(s);
    frg_npy_destroy(fx);
    frg_npy_destroy(fy);
    return failed;
}

/** Prints the lines of cases whose results held; of the clouds those whose energies are near the
 *  lowest on the same points. */
static int print_alignments(const align_case *cases, size_t count, double (*energies)[SEEDS],
                            char **lines)
{
    int failures = 0;
    for (size_t i = 0; i < count; i++) {
        double lowest = INFINITY, highest = 0;
        if (!lines[i]) {
            continue;
        }
        for (size_t k = 0; k < count; k++) {
            for (int q = 0; q < SEEDS; q++) {
                const int same = strcmp(cases[i].x, cases[k].x) == 0;
                lowest = same && energies[k][q] < lowest ? energies[k][q] : lowest;
                highest = i == k && !(energies[k][q] <= highest) ? energies[k][q] : highest;
            }
        }
        if (!cases[i].curve && !(highest <= 1.02 * lowest)) {
            failures++;
            fprintf(stderr, "bench_gw: the time of %s does not count: energy %g, lowest %g\n",
                    cases[i].name, highest, lowest);
        } else {
            fputs(lines[i], stdout);
        }
        if (!cases[i].curve) {
            printf("{\"bench\":\"gw_align_energy\",\"peer\":\"fourge\",\"case\":\"%s\","
                   "\"epsilon_end\":0.005,\"energies\":[%.5f,%.5f,%.5f],\"lowest\":%.5f}\n",
                   cases[i].name, energies[i][0], energies[i][1], energies[i][2], lowest);
        }
        free(lines[i]);
    }
    return failures;
}

/** Largest relative difference of a row of distances to a plain Dijkstra in double. */
static double path_error(const frg_graph *g, int64_t n, int64_t source, const float *row)
{
    const int64_t *starts;
    const int32_t *targets;
    const float *weights;
    frg_graph_arcs(g, &starts, &targets, &weights);
    double *const d = malloc((size_t)n * sizeof *d), worst = 0;
    bool *const finished = calloc((size_t)n, sizeof *finished);
    for (int64_t i = 0; d && i < n; i++) {
        d[i] = i == source ? 0 : (double)INFINITY;
    }
    for (int64_t step = 0; d && finished && step < n; step++) {
        int64_t near = -1;
        for (int64_t i = 0; i < n; i++) {
            near = !finished[i] && (near < 0 || d[i] < d[near]) ? i : near;
        }
        finished[near] = true;
        for (int64_t a = starts[near]; a < starts[near + 1]; a++) {
            d[targets[a]] = fmin(d[targets[a]], d[near] + (double)weights[a]);
        }
    }
    for (int64_t i = 0; d && finished && i < n; i++) {
        const double error = fabs((double)row[i] - d[i]) / fmax(d[i], 1e-30);
        worst = isinf(d[i]) && isinf(row[i]) ? worst : error <= worst ? worst : error;
    }
    worst = d && finished ? worst : (double)NAN;
    free(d);
    free(finished);
    return worst;
}

static int paths(frg_context *ctx, const char *folder, int64_t k, int repeats)
{
    frg_npy *f = load(ctx, folder, "roll5000");
    double seconds[REPEATS_MOST];
    frg_graph *g = NULL;
    float *rows = NULL;
    int failed = 1;
    frg_paths_report report;
    frg_graph_opts o;
    frg_graph_defaults(&o, sizeof o);
    o.k = k;
    if (!f || frg_graph_knn(&g, ctx, frg_npy_array(f), &o) != FRG_OK) {
        goto done;
    }
    const int64_t n = frg_graph_get(g).n;
    rows = malloc((size_t)(n * n) * sizeof *rows);
    for (int i = -1; rows && i < repeats; i++) {
        const double begin = bench_now();
        if (frg_graph_paths(g, NULL, n, frg_matrix(rows, FRG_F32, n, n, n), &report) < 0) {
            fail(ctx, "paths");
            goto done;
        }
        seconds[i < 0 ? 0 : i] = bench_now() - begin;
    }
    double worst = rows ? 0 : (double)NAN;
    for (int64_t i = 0; rows && i < 5; i++) {
        const int64_t source = i * (n - 1) / 4;
        worst = fmax(worst, path_error(g, n, source, rows + source * n));
    }
    /* at most n sums in f32, seldom more than a hundred: 100 * 2^-24 */
    if (!(worst <= 6e-6)) {
        fprintf(stderr, "bench_gw: the time of paths does not count: error %g\n", worst);
        goto done;
    }
    head(stdout, ctx, "gw_apsp", seconds, repeats);
    printf(",\"n\":%lld,\"k\":%lld,\"relaxations_per_arc\":%.3f,\"error\":%.1e}\n", (long long)n,
           (long long)k, report.relaxations_per_arc, worst);
    failed = 0;
done:
    free(rows);
    frg_graph_destroy(g);
    frg_npy_destroy(f);
    return failed;
}

/** Largest relative error of 64 rows and 64 columns of exp((f + g - C) / epsilon), summed in
 *  double. */
static double marginal_error(const frg_sinkhorn *s, const float *cost, int64_t n, int64_t m,
                             double epsilon)
{
    enum { LINES = 64 };
    double *const f = malloc((size_t)(n + m) * sizeof *f), *const g = f ? f + n : NULL, worst = 0;
    if (!f || frg_sinkhorn_potentials(s, f, g) < 0) {
        free(f);
        return (double)NAN;
    }
    for (int64_t k = 0; k < LINES; k++) {
        const int64_t row = k * (n - 1) / (LINES - 1), column = k * (m - 1) / (LINES - 1);
        double across = 0, down = 0;
        for (int64_t j = 0; j < m; j++) {
            across += exp((f[row] + g[j] - (double)cost[row * m + j]) / epsilon);
        }
        for (int64_t i = 0; i < n; i++) {
            down += exp((f[i] + g[column] - (double)cost[i * m + column]) / epsilon);
        }
        worst = fmax(worst, fmax(fabs(across * (double)n - 1), fabs(down * (double)m - 1)));
    }
    free(f);
    return worst;
}

/** f32 costs of [0, 1]: those of FOLDER/costNxM.npy where it is there, as the peers' are, or made
 *  here. */
static float *costs(frg_context *ctx, const char *folder, int64_t n, int64_t m)
{
    char name[64], path[PATH_ROOM];
    float *const cost = malloc((size_t)(n * m) * sizeof *cost);
    snprintf(name, sizeof name, "cost%lldx%lld", (long long)n, (long long)m);
    snprintf(path, sizeof path, "%s/%s.npy", folder, name);
    FILE *const there = fopen(path, "rb");
    if (there) {
        fclose(there);
        frg_npy *const file = load(ctx, folder, name);
        const frg_array a = file ? frg_npy_array(file) : (frg_array){0};
        const bool fits = cost && file && a.dtype == FRG_F32 && a.shape[0] == n && a.shape[1] == m;
        if (fits) {
            memcpy(cost, a.data, (size_t)(n * m) * sizeof *cost);
        }
        frg_npy_destroy(file);
        if (!fits) {
            free(cost);
            return NULL;
        }
        return cost;
    }
    uint64_t z = 1;
    for (int64_t i = 0; cost && i < n * m; i++) {
        z = z * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        cost[i] = (float)(z >> 40) * 0x1p-24f;
    }
    return cost;
}

typedef struct {
    const char *name;
    frg_gw_store store;
    frg_gw_domain domain;
    int bytes;    /* of a cost as the passes read it */
    double bound; /* of the marginals: what rounding of the exponents leaves of a sum over a line */
} sinkhorn_form;

/** Bytes a second that as many threads read of `size` bytes, the best of five: what a pass could
 *  reach at most. */
static double read_speed(frg_context *ctx, int64_t size)
{
    const int64_t count = size / 8;
    uint64_t *const a = malloc((size_t)count * sizeof *a), sum = 0;
    double best = (double)INFINITY;
#pragma omp parallel for num_threads(frg_threads(ctx)) schedule(static)
    for (int64_t i = 0; i < (a ? count : 0); i++) {
        a[i] = (uint64_t)i;
    }
    for (int k = 0; a && k < 5; k++) {
        const double begin = bench_now();
#pragma omp parallel for simd num_threads(frg_threads(ctx)) schedule(static) reduction(+ : sum)
        for (int64_t i = 0; i < count; i++) {
            sum += a[i];
        }
        best = fmin(best, bench_now() - begin);
    }
    const bool right = sum == 5 * ((uint64_t)count * (uint64_t)(count - 1) / 2);
    free(a);
    return right ? (double)size / best : (double)NAN;
}

/** 100 forced passes from costs in memory to potentials, what the peers' time is too;
 *  `passes_seconds` are the passes' alone. */
static int sinkhorn(frg_context *ctx, const char *folder, const sinkhorn_form *form, int64_t n,
                    int64_t m, int repeats)
{
    float *const cost = costs(ctx, folder, n, m);
    const int64_t size = n * m * form->bytes;
    double seconds[REPEATS_MOST], passes[REPEATS_MOST];
    frg_sinkhorn *s = NULL;
    int failed = 1;
    frg_sinkhorn_opts o;
    frg_sinkhorn_defaults(&o, sizeof o);
    o.tol = 0;
    o.max_iter = 100;
    o.accel = FRG_GW_ACCEL_NONE;
    o.cost_store = form->store;
    o.domain = form->domain;
    o.kernel_store = FRG_GW_KERNEL_BF16;
    o.round = 0;
    for (int i = -1; cost && i < repeats; i++) { /* the first is a warm-up */
        frg_sinkhorn_destroy(s);
        s = NULL;
        const double begin = bench_now();
        if (frg_sinkhorn_create(&s, ctx, frg_matrix(cost, FRG_F32, n, m, m), NULL, NULL, &o) < 0 ||
            frg_sinkhorn_run(s, NULL) < 0) {
            fail(ctx, form->name);
            goto done;
        }
        seconds[i < 0 ? 0 : i] = bench_now() - begin;
        passes[i < 0 ? 0 : i] = frg_sinkhorn_get(s).inner_seconds;
    }
    const double worst = s ? marginal_error(s, cost, n, m, o.epsilon) : (double)NAN;
    if (!(worst <= form->bound) || frg_sinkhorn_get(s).iterations != 100) {
        fprintf(stderr, "bench_gw: the time of sinkhorn %s does not count: marginals %g\n",
                form->name, worst);
        goto done;
    }
    head(stdout, ctx, "gw_sinkhorn_100_iterations", seconds, repeats);
    bench_sort(passes, repeats);
    printf(",\"passes_seconds\":%.5f,\"form\":\"%s\",\"n\":%lld,\"m\":%lld,\"marginal_error\":%.1e,"
           "\"gb_per_second\":%.1f,\"read_gb_per_second\":%.1f}\n",
           passes[0], form->name, (long long)n, (long long)m, worst,
           1e-7 * (double)size / passes[0], 1e-9 * read_speed(ctx, size));
    failed = 0;
done:
    frg_sinkhorn_destroy(s);
    free(cost);
    return failed;
}

int main(int argc, char **argv)
{
    static const align_case cases[] = {
        {"400x500 dijkstra", "spiral400", "roll500", FRG_GW_DISTANCE_DIJKSTRA, 5, 50, 200, 20,
         FRG_GW_ANNEAL_NONE, FRG_GW_MULTISCALE_AUTO, 1},
        {"400x500 precomputed", "spiral400", "roll500", FRG_GW_DISTANCE_PRECOMPUTED, 5, 50, 200, 20,
         FRG_GW_ANNEAL_NONE, FRG_GW_MULTISCALE_AUTO, 1},
        {"400x500 landmark", "spiral400", "roll500", FRG_GW_DISTANCE_LANDMARK, 5, 20, 200, 20,
         FRG_GW_ANNEAL_NONE, FRG_GW_MULTISCALE_AUTO, 1},
        {"400x500 annealed", "spiral400", "roll500", FRG_GW_DISTANCE_PRECOMPUTED, 5, 50, 500, 20,
         FRG_GW_ANNEAL_PROGRESS, FRG_GW_MULTISCALE_AUTO, 1},
        {"4000x5000 landmark", "spiral4000", "roll5000", FRG_GW_DISTANCE_LANDMARK, 5, 50, 300, 20,
         FRG_GW_ANNEAL_NONE, FRG_GW_MULTISCALE_AUTO, 1},
        {"4000x5000 annealed", "spiral4000", "roll5000", FRG_GW_DISTANCE_LANDMARK, 5, 50, 500, 20,
         FRG_GW_ANNEAL_PROGRESS, FRG_GW_MULTISCALE_AUTO, 1},
        {"2000x2500 forced", "normal2000", "normal2500", FRG_GW_DISTANCE_PRECOMPUTED, 30, 50, 100,
         100, FRG_GW_ANNEAL_NONE, FRG_GW_MULTISCALE_OFF, 0},
        {"2000x2500 default", "normal2000", "normal2500", FRG_GW_DISTANCE_PRECOMPUTED, 30, 50, 500,
         20, FRG_GW_ANNEAL_NONE, FRG_GW_MULTISCALE_AUTO, 0},
        {"5000x6000 forced", "normal5000", "normal6000", FRG_GW_DISTANCE_PRECOMPUTED, 30, 50, 100,
         100, FRG_GW_ANNEAL_NONE, FRG_GW_MULTISCALE_OFF, 0},
        {"cache 500x600", "spiral500", "roll600", FRG_GW_DISTANCE_DIJKSTRA, 5, 50, 50, 50,
         FRG_GW_ANNEAL_ITER, FRG_GW_MULTISCALE_OFF, 1},
        {"cache 1000x1200", "spiral1000", "roll1200", FRG_GW_DISTANCE_DIJKSTRA, 5, 50, 100, 100,
         FRG_GW_ANNEAL_ITER, FRG_GW_MULTISCALE_OFF, 1},
        {"cache 2000x2500", "spiral2000", "roll2500", FRG_GW_DISTANCE_DIJKSTRA, 5, 50, 100, 100,
         FRG_GW_ANNEAL_ITER, FRG_GW_MULTISCALE_OFF, 1},
        {"20000x25000 landmark", "spiral20000", "roll25000", FRG_GW_DISTANCE_LANDMARK, 5, 50, 300,
         20, FRG_GW_ANNEAL_NONE, FRG_GW_MULTISCALE_AUTO, 1}};
    frg_context_opts c;
    frg_context_defaults(&c, sizeof c);
    int repeats = 5, failures = 0;
    const char *folder = NULL, *only = "", *name = "";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            c.threads = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--repeat") == 0 && i + 1 < argc) {
            repeats = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc) {
            name = argv[++i];
        } else {
            folder = argv[i];
        }
    }
    if (!folder || repeats < 1 || repeats > REPEATS_MOST) {
        fprintf(stderr,
                "usage: bench_gw [--threads N] [--repeat N] [--only paths|sinkhorn|align|large] "
                "[--case TEXT] FOLDER\n");
        return 2;
    }
    /* a sum over a line of exponents in [0, 20]: f32 rounds each by 20 * 2^-24, u16 by 20 / 2^17,
     * bf16 an entry by 2^-9, all of which the sum averages; the passes leave less */
    enum { SMALL_FORMS = 4 };
    static const sinkhorn_form forms[] = {
        {"f32", FRG_GW_STORE_F32, FRG_GW_DOMAIN_LOG, 4, 1e-5},
        {"u16", FRG_GW_STORE_U16, FRG_GW_DOMAIN_LOG, 2, 2e-4},
        {"u16r", FRG_GW_STORE_U16R, FRG_GW_DOMAIN_LOG, 2, 2e-4},
        {"bf16 kernel", FRG_GW_STORE_AUTO, FRG_GW_DOMAIN_KERNEL, 2, 2e-3},
        {"f64", FRG_GW_STORE_F64, FRG_GW_DOMAIN_LOG, 8, 1e-5}};
    char *lines[sizeof cases / sizeof *cases] = {NULL};
    double energies[sizeof cases / sizeof *cases][SEEDS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases * SEEDS; i++) {
        energies[i / SEEDS][i % SEEDS] = NAN;
    }
    frg_context *ctx = NULL;
    if (frg_context_create(&ctx, &c) < 0) {
        return 1;
    }
    if (strstr("paths", only)) {
        failures += paths(ctx, folder, 15, repeats);
        failures += paths(ctx, folder, 30, repeats);
    }
    if (strstr("sinkhorn", only)) {
        for (int i = 0; i < SMALL_FORMS; i++) {
            failures += sinkhorn(ctx, folder, &forms[i], 5001, 6001, repeats);
        }
    }
    if (strcmp("large", only) == 0) {
        failures += sinkhorn(ctx, folder, &forms[0], 10001, 12001, repeats);
        failures += sinkhorn(ctx, folder, &forms[SMALL_FORMS], 10001, 12001, repeats);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases && strstr("align", only); i++) {
        const int large = strstr(cases[i].name, "20000") != NULL; /* by its name alone */
        if (strstr(cases[i].name, name) && (*name || !large)) {
            failures += align(ctx, folder, &cases[i], repeats, energies[i], &lines[i]);
        }
    }
    failures += print_alignments(cases, sizeof cases / sizeof *cases, energies, lines);
    frg_context_destroy(ctx);
    return failures > 0;
}
