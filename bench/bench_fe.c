/* bench_fe.c - times demeaning and small regressions: bench_fe [--threads N] [--repeat N] FOLDER...
 * | --small
 *
 * FOLDER holds columns.npy (n x p f64) and codes.npy (n x Q i32), as bench/peers/fe_peers.py saves
 * them.  The plan is made anew in every repetition, as the peers' set-up is in theirs; the audit of
 * the last result is recomputed here, level by level, before a time is printed.  Beside it stands
 * what one pass takes that reads codes and columns and writes a result with the same threads: the
 * machine's own cost of so many rows.  --small times a whole regression on 1000 rows with 3 effects
 * and 1 regressor, plan included, whose coefficient is compared with that of plain alternating
 * projections. One JSON line a case: best and median seconds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/fe.h"

#include "bench.h"

enum { REPEATS_MOST = 1000, SMALL_ROWS = 1000, PATH_ROOM = 4096 };

static int fail(frg_context *ctx, const char *what)
{
    fprintf(stderr, "bench_fe: %s: %s\n", what, frg_message(ctx));
    return 1;
}

/** Largest |level mean| over the standard deviation, of all columns and factors. */
static double audit(const double *r, const int32_t *codes, int64_t n, int64_t p, int64_t q)
{
    int32_t top = 0;
    for (int64_t i = 0; i < n * q; i++) {
        top = codes[i] > top ? codes[i] : top;
    }
    double *sum = malloc(((size_t)top + 1) * 2 * sizeof *sum), *count = sum + top + 1, worst = 0;
    for (int64_t f = 0; sum && f < q; f++) {
        for (int64_t c = 0; c < p; c++) {
            double square = 0;
            memset(sum, 0, ((size_t)top + 1) * 2 * sizeof *sum);
            for (int64_t i = 0; i < n; i++) {
                sum[codes[i * q + f]] += r[i * p + c];
                count[codes[i * q + f]] += 1;
                square += r[i * p + c] * r[i * p + c];
            }
            for (int32_t l = 0; l <= top; l++) {
                const double mean = count[l] > 0 ? fabs(sum[l] / count[l]) : 0;
                worst = fmax(worst, mean / sqrt(square / (double)n));
            }
        }
    }
    free(sum);
    return sum ? worst : (double)NAN;
}

/** out <- x - the row's codes: one pass over all that a demeaning reads and writes. */
static void one_pass(const double *x, const int32_t *codes, double *out, int64_t n, int64_t p,
                     int64_t q, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < n; i++) {
        int32_t sum = 0;
        for (int64_t f = 0; f < q; f++) {
            sum += codes[i * q + f];
        }
        for (int64_t c = 0; c < p; c++) {
            out[i * p + c] = x[i * p + c] - sum;
        }
    }
}

static void print_times(double *seconds, int repeats)
{
    bench_sort(seconds, repeats);
    printf("\"seconds\":%.6f,\"median_seconds\":%.6f,\"repeats\":%d", seconds[0],
           seconds[repeats / 2], repeats);
}

static int demean_folder(frg_context *ctx, const char *folder, int repeats)
{
    char path[PATH_ROOM];
    double seconds[REPEATS_MOST], worst = NAN;
    frg_npy *columns = NULL, *codes = NULL;
    double *out = NULL;
    int failed = 1;
    frg_demean_report report = {0};
    snprintf(path, sizeof path, "%s/columns.npy", folder);
    if (frg_npy_read(&columns, ctx, path) < 0) {
        return fail(ctx, path);
    }
    snprintf(path, sizeof path, "%s/codes.npy", folder);
    if (frg_npy_read(&codes, ctx, path) < 0) {
        fail(ctx, path);
        goto done;
    }
    const frg_array x = frg_npy_array(columns), k = frg_npy_array(codes);
    const int64_t n = x.shape[0], p = x.shape[1], q = k.shape[1];
    out = calloc((size_t)(n * p), sizeof *out);
    if (!out || x.dtype != FRG_F64 || k.dtype != FRG_I32) {
        fprintf(stderr, "bench_fe: %s: f64 columns and i32 codes are needed\n", folder);
        goto done;
    }
    const frg_array r = frg_matrix(out, FRG_F64, n, p, p);
    for (int i = -1; i < repeats; i++) { /* the first is a warm-up */
        frg_demean *plan;
        const double began = bench_now();
        if (frg_demean_create(&plan, ctx, k, NULL, NULL, 0, 0, NULL) < 0) {
            fail(ctx, folder);
            goto done;
        }
        const frg_status s = frg_demean_run(plan, x, r, NULL, NULL);
        seconds[i < 0 ? 0 : i] = bench_now() - began;
        report = frg_demean_get(plan);
        frg_demean_destroy(plan);
        if (s != FRG_OK) {
            fprintf(stderr, "bench_fe: %s: %s %s\n", folder, frg_status_name(s), frg_message(ctx));
            goto done;
        }
    }
    worst = audit(out, k.data, n, p, q);
    if (!(worst <= 1e-10)) {
        fprintf(stderr, "bench_fe: %s: audit %g is above 1e-10\n", folder, worst);
        goto done;
    }
    const char *name = strrchr(folder, '/');
    printf("{\"bench\":\"fe\",\"design\":\"%s\",\"n\":%lld,\"columns\":%lld,\"effects\":%lld,"
           "\"peer\":\"fourge\",\"threads\":%d,\"isa\":\"%s\",\"commit\":\"%s\",\"method\":\"%s\",",
           name ? name + 1 : folder, (long long)n, (long long)p, (long long)q, frg_threads(ctx),
           frg_isa(ctx), frg_commit(), report.method);
    print_times(seconds, repeats);
    printf(",\"audit\":%.1e,\"plan_bytes\":%zu,\"factor_bytes\":%zu,", worst,
           report.plan_bytes - report.factor_bytes, report.factor_bytes);
    for (int i = 0; i < repeats; i++) {
        const double began = bench_now();
        one_pass(x.data, k.data, out, n, p, q, frg_threads(ctx));
        seconds[i] = bench_now() - began;
    }
    bench_sort(seconds, repeats);
    printf("\"one_pass_seconds\":%.6f}\n", seconds[0]);
    failed = 0;
done:
    free(out);
    frg_npy_destroy(columns);
    frg_npy_destroy(codes);
    return failed;
}

/** 100 people, 10 years, 37 firms; the numbers need not be random, only uneven. */
static struct {
    double y[SMALL_ROWS], x[SMALL_ROWS];
    int64_t key[3][SMALL_ROWS]; /* person, year, firm */
} small;

static int small_table(frg_context *ctx, frg_table **out)
{
    for (int64_t i = 0; i < SMALL_ROWS; i++) {
        small.key[0][i] = i / 10;
        small.key[1][i] = i % 10;
        small.key[2][i] = (i * 7919 + i * i / 11) % 37;
        small.x[i] = sin(1.7 * (double)i) + 0.01 * (double)small.key[0][i];
        small.y[i] = small.x[i] + cos(2.3 * (double)i) + (double)small.key[2][i];
    }
    return frg_table_create(out, ctx, SMALL_ROWS) < 0 ||
           frg_table_add_numbers(*out, "y", small.y) < 0 ||
           frg_table_add_numbers(*out, "x", small.x) < 0 ||
           frg_table_add_integers(*out, "person", small.key[0]) < 0 ||
           frg_table_add_integers(*out, "year", small.key[1]) < 0 ||
           frg_table_add_integers(*out, "firm", small.key[2]) < 0;
}

/** Takes the means of the three factors out in turn, 500 times. */
static void project(double *v)
{
    for (int round = 0; round < 500; round++) {
        for (int f = 0; f < 3; f++) {
            double sum[SMALL_ROWS] = {0}, count[SMALL_ROWS] = {0};
            for (int i = 0; i < SMALL_ROWS; i++) {
                sum[small.key[f][i]] += v[i];
                count[small.key[f][i]] += 1;
            }
            for (int i = 0; i < SMALL_ROWS; i++) {
                v[i] -= sum[small.key[f][i]] / count[small.key[f][i]];
            }
        }
    }
}

/** x'y / x'x of the demeaned columns, by plain loops. */
static double small_coefficient(void)
{
    double y[SMALL_ROWS], x[SMALL_ROWS], xy = 0, xx = 0;
    memcpy(y, small.y, sizeof y);
    memcpy(x, small.x, sizeof x);
    project(y);
    project(x);
    for (int i = 0; i < SMALL_ROWS; i++) {
        xy += x[i] * y[i];
        xx += x[i] * x[i];
    }
    return xy / xx;
}

static int small_regression(frg_context *ctx, int repeats)
{
    double seconds[REPEATS_MOST];
    frg_table *table = NULL;
    int failed = small_table(ctx, &table);
    const double want = small_coefficient();
    for (int i = -3; !failed && i < repeats; i++) {
        frg_fe *fit = NULL;
        const double began = bench_now();
        failed = frg_fe_fit(&fit, ctx, "y ~ x | person + year + firm", table, NULL) != FRG_OK;
        seconds[i < 0 ? 0 : i] = bench_now() - began;
        const double got = failed ? (double)NAN : frg_fe_get(fit)->coefficients[0].estimate;
        frg_fe_destroy(fit);
        if (!failed && !(fabs(got - want) <= 1e-9)) {
            fprintf(stderr, "bench_fe: the small regression gives %.12g, plain loops %.12g\n", got,
                    want);
            frg_table_destroy(table);
            return 1;
        }
    }
    if (failed) {
        fail(ctx, "small regression");
    } else {
        printf(
            "{\"bench\":\"fe_small\",\"n\":%d,\"effects\":3,\"covariates\":1,\"peer\":\"fourge\","
            "\"threads\":%d,\"isa\":\"%s\",\"commit\":\"%s\",",
            SMALL_ROWS, frg_threads(ctx), frg_isa(ctx), frg_commit());
        print_times(seconds, repeats);
        printf("}\n");
    }
    frg_table_destroy(table);
    return failed;
}

int main(int argc, char **argv)
{
    frg_context_opts opts;
    frg_context_defaults(&opts, sizeof opts);
    int repeats = 7, failed = argc < 2;
    for (int i = 1; i + 1 < argc; i++) {
        opts.threads = strcmp(argv[i], "--threads") == 0 ? atoi(argv[i + 1]) : opts.threads;
        repeats = strcmp(argv[i], "--repeat") == 0 ? atoi(argv[i + 1]) : repeats;
    }
    repeats = repeats < 1 ? 1 : repeats > REPEATS_MOST ? REPEATS_MOST : repeats;
    frg_context *ctx = NULL;
    if (frg_context_create(&ctx, &opts) < 0) {
        fprintf(stderr, "bench_fe: the options are not valid\n");
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 || strcmp(argv[i], "--repeat") == 0) {
            i++;
        } else if (strcmp(argv[i], "--small") == 0) {
            failed |= small_regression(ctx, repeats);
        } else {
            failed |= demean_folder(ctx, argv[i], repeats);
        }
    }
    frg_context_destroy(ctx);
    return failed;
}
