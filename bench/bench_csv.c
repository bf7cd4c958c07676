/* bench_csv.c - times reading a text file: bench_csv FILE [--threads N] [--repeat N] [--rows N]
 *                                          [--sum COLUMN=VALUE]... [--columns A,B,...]
 *
 * Reads once to warm the page cache, checks the number of rows and the sums asked for (relative
 * error 1e-9; a category's codes are summed), then times N readings and prints one JSON line: the
 * best and the median seconds, MB/s of the best, and the most memory held.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/table.h"

#include "bench.h"

enum { SUMS_MOST = 16, REPEATS_MOST = 100, COLUMNS_MOST = 64 };

typedef struct {
    const char *path;
    int threads, repeats;
    long long rows; /* -1: not asked for */
    int n_sums, n_columns;
    char *sum_name[SUMS_MOST];
    double sum_value[SUMS_MOST];
    const char *columns[COLUMNS_MOST];
} job;

static int read_arguments(job *j, int argc, char **argv)
{
    *j = (job){.repeats = 5, .rows = -1};
    for (int i = 1; i < argc; i++) {
        char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-') {
            j->path = argv[i];
            continue;
        }
        if (!value) {
            return 0;
        }
        i++;
        if (strcmp(argv[i - 1], "--threads") == 0) {
            j->threads = atoi(value);
        } else if (strcmp(argv[i - 1], "--repeat") == 0) {
            j->repeats = atoi(value);
        } else if (strcmp(argv[i - 1], "--rows") == 0) {
            j->rows = atoll(value);
        } else if (strcmp(argv[i - 1], "--sum") == 0 && strchr(value, '=') &&
                   j->n_sums < SUMS_MOST) {
            char *const equals = strrchr(value, '=');
            *equals = '\0';
            j->sum_name[j->n_sums] = value;
            j->sum_value[j->n_sums++] = atof(equals + 1);
        } else if (strcmp(argv[i - 1], "--columns") == 0) {
            for (char *name = strtok(value, ","); name && j->n_columns < COLUMNS_MOST;
                 name = strtok(NULL, ",")) {
                j->columns[j->n_columns++] = name;
            }
        } else {
            return 0;
        }
    }
    return j->path && j->repeats > 0 && j->repeats <= REPEATS_MOST;
}

static double sum_of(const frg_column *c)
{
    double sum = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const double x = c->numbers                                             ? c->numbers[i]
                         : c->integers && c->integers[i] == FRG_MISSING_INTEGER ? 0
                         : c->integers     ? (double)c->integers[i]
                         : c->codes[i] > 0 ? (double)c->codes[i]
                                           : 0;
        sum += x == x ? x : 0;
    }
    return sum;
}

static int is_as_asked(const job *j, const frg_table *t)
{
    if (j->rows >= 0 && frg_table_rows(t) != j->rows) {
        fprintf(stderr, "%lld rows, expected %lld\n", (long long)frg_table_rows(t), j->rows);
        return 0;
    }
    for (int i = 0; i < j->n_sums; i++) {
        const frg_column *const c = frg_table_find(t, j->sum_name[i]);
        const double sum = c ? sum_of(c) : (double)NAN, want = j->sum_value[i];
        if (!(fabs(sum - want) <= 1e-9 * fmax(1, fabs(want)))) {
            fprintf(stderr, "%s sums to %.17g, expected %.17g\n", j->sum_name[i], sum, want);
            return 0;
        }
    }
    return 1;
}

static long long file_bytes(const char *path)
{
    FILE *const f = fopen(path, "rb");
    long long bytes = 0;
    if (f) {
        fseeko(f, 0, SEEK_END);
        bytes = (long long)ftello(f);
        fclose(f);
    }
    return bytes;
}

int main(int argc, char **argv)
{
    job j;
    if (!read_arguments(&j, argc, argv)) {
        fprintf(stderr, "usage: bench_csv FILE [--threads N] [--repeat N] [--rows N] "
                        "[--sum COLUMN=VALUE]... [--columns A,B,...]\n");
        return 2;
    }
    frg_context_opts co;
    frg_context_defaults(&co, sizeof co);
    co.threads = j.threads;
    frg_context *ctx;
    frg_status status = frg_context_create(&ctx, &co);
    if (status < 0) {
        fprintf(stderr, "no context: %s\n", frg_status_sentence(status));
        return frg_status_exit_code(status);
    }
    frg_table_opts o;
    frg_table_defaults(&o, sizeof o);
    o.columns = j.n_columns ? j.columns : NULL;
    o.n_columns = j.n_columns;
    double seconds[REPEATS_MOST];
    long long rows = 0, columns = 0;
    for (int r = -1; r < j.repeats; r++) { /* -1: warms up and verifies */
        frg_table *t;
        const double start = bench_now();
        status = frg_table_read(&t, ctx, j.path, &o);
        const double taken = bench_now() - start;
        if (status != FRG_OK) {
            fprintf(stderr, "%s: %s: %s\n", j.path, frg_status_name(status), frg_message(ctx));
            frg_context_destroy(ctx);
            return frg_status_exit_code(status);
        }
        rows = frg_table_rows(t);
        columns = frg_table_columns(t);
        const int fine = r >= 0 || is_as_asked(&j, t);
        frg_table_destroy(t);
        if (!fine) {
            frg_context_destroy(ctx);
            return 1;
        }
        if (r >= 0) {
            seconds[r] = taken;
        }
    }
    bench_sort(seconds, j.repeats);
    const long long bytes = file_bytes(j.path);
    const char *const slash = strrchr(j.path, '/');
    printf("{\"bench\":\"csv_read\",\"file\":\"%s\",\"bytes\":%lld,\"rows\":%lld,\"columns\":%lld,"
           "\"threads\":%d,\"isa\":\"%s\",\"commit\":\"%s\",\"repeats\":%d,\"seconds\":%.4f,"
           "\"median_seconds\":%.4f,\"megabytes_per_second\":%.0f,\"peak_bytes\":%zu}\n",
           slash ? slash + 1 : j.path, bytes, rows, columns, frg_threads(ctx), frg_isa(ctx),
           frg_commit(), j.repeats, seconds[0], seconds[j.repeats / 2],
           (double)bytes / seconds[0] / 1e6, frg_peak_bytes(ctx));
    frg_context_destroy(ctx);
    return 0;
}
