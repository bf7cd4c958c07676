/* cli_gp_data.c - the columns of a table as the arrays of a Gaussian process. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gp/gp_job.h"

enum { MOST_COLUMNS = 4096, MOST_GROUPS = 4096 };

/* ---- names ----------------------------------------------------------------------------------- */

/** Splits "a, `b c`,d" at commas outside backticks; the words are the caller's to free.  -1: no
 *  memory. */
static int split_names(const char *text, char ***out)
{
    int n = 0;
    char **words = calloc(MOST_COLUMNS, sizeof *words);
    for (const char *at = text; words && *at && n < MOST_COLUMNS;) {
        at += strspn(at, " ");
        const int quoted = *at == '`';
        at += quoted;
        size_t length = strcspn(at, quoted ? "`" : ",");
        const char *end = at + length;
        while (!quoted && length > 0 && at[length - 1] == ' ') {
            length--;
        }
        words[n] = strndup(at, length);
        if (!words[n++]) {
            *out = words;
            return -1;
        }
        end += quoted && *end == '`';
        end += strspn(end, " ");
        at = end + (*end == ',');
    }
    *out = words;
    return words ? n : -1;
}

static void free_names(char **names)
{
    for (int i = 0; names && i < MOST_COLUMNS && names[i]; i++) {
        free(names[i]);
    }
    free(names);
}

/* ---- columns --------------------------------------------------------------------------------- */

static const char mend_or_leave[] = "mend the cell, or leave the column out with --x";

/** Copies a column of numbers into values[0], values[stride], ... */
static int take_column(const cli *c, const gp_data *d, const char *name, double *values, int stride,
                       int may_miss)
{
    const frg_column *k = frg_table_find(d->table, name);
    if (!k) {
        return cli_no_column(c, d->path, d->table, name);
    }
    if (k->kind == FRG_CATEGORY) {
        return cli_refuse_text(c, d->path, k, mend_or_leave);
    }
    for (int64_t i = 0; i < d->n; i++) {
        values[i * stride] = cli_number_at(k, i);
        if (isinf(values[i * stride]) || (isnan(values[i * stride]) && !may_miss)) {
            return cli_fail(c, "E_NOT_FINITE_GP", name, NULL,
                            "row %" PRId64 " of column '%s' of %s is %s", i + 1, name, d->path,
                            isnan(values[i * stride]) ? "missing" : "infinite");
        }
    }
    return 0;
}

static int take_columns(const cli *c, const gp_data *d, char **names, int count, double **out,
                        int may_miss)
{
    *out = malloc((size_t)d->n * (size_t)count * sizeof **out + 1);
    int code = *out ? 0 : cli_fail_memory(c);
    for (int k = 0; k < count && !code; k++) {
        code = take_column(c, d, names[k], *out + k, count, may_miss);
    }
    return code;
}

/** All columns of numbers that have no other part to play.  One that a cell made text is not left
 *  out in silence. */
static int other_columns(const cli *c, gp_data *d)
{
    const settings *s = &c->set;
    const char *mean = s->gp.mean && strncmp(s->gp.mean, "column:", 7) == 0 ? s->gp.mean + 7 : NULL;
    const char *words = NULL; /* a column that is left out */
    d->x_names = calloc(MOST_COLUMNS, sizeof *d->x_names);
    for (int64_t i = 0; d->x_names && i < frg_table_columns(d->table); i++) {
        const frg_column *k = frg_table_column(d->table, i);
        const char *const taken[] = {s->gp_job.noise_column, s->gp_job.noise_groups, mean};
        int used = 0;
        for (int w = 0; w < 3; w++) {
            used = used || (taken[w] && strcmp(k->name, taken[w]) == 0);
        }
        for (int w = 0; w < d->q; w++) {
            used = used || strcmp(k->name, d->y_names[w]) == 0;
        }
        if (!used && k->kind == FRG_CATEGORY) {
            int64_t row;
            const int code = cli_find_mistyped(c, k, &row);
            if (code || row >= 0) {
                return code ? code : cli_refuse_text(c, d->path, k, mend_or_leave);
            }
            words = k->name;
            used = 1;
        }
        if (!used && d->d < MOST_COLUMNS - 1) {
            d->x_names[d->d] = strdup(k->name);
            d->d += d->x_names[d->d] != NULL;
        }
    }
    if (d->d == 0 && words) {
        return cli_fail(c, "E_TYPE", words, "inputs are numbers: code the words by some",
                        "%s has no column of numbers for x, '%s' has words", d->path, words);
    }
    return d->x_names ? 0 : cli_fail_memory(c);
}

/** A column is an output or an input, and once. */
static int check_once(const cli *c, const gp_data *d)
{
    const int all = d->q + d->d;
    for (int i = 0; i < all; i++) {
        const char *const name = i < d->q ? d->y_names[i] : d->x_names[i - d->q];
        for (int k = 0; k < i; k++) {
            if (strcmp(name, k < d->q ? d->y_names[k] : d->x_names[k - d->q]) == 0) {
                return cli_fail(c, "E_OPTION", name, "name each column once",
                                "column '%s' is named twice in %s", name,
                                i < d->q   ? "--y"
                                : k < d->q ? "--y and --x"
                                           : "--x");
            }
        }
    }
    return 0;
}

static int open_table(cli *c, gp_data *d, const char *path)
{
    d->path = path;
    const int code = cli_read_table(c, path, &d->table);
    d->n = frg_table_rows(d->table);
    return code;
}

int gp_data_read(cli *c, gp_data *d, const char *path, const char *x, const char *y)
{
    int code = open_table(c, d, path);
    if (!code && y) {
        d->q = split_names(y, &d->y_names);
        code = d->q < 0 ? cli_fail_memory(c) : take_columns(c, d, d->y_names, d->q, &d->y, 1);
    }
    if (!code && x) {
        d->d = split_names(x, &d->x_names);
        code = d->d < 0 ? cli_fail_memory(c) : 0;
    } else if (!code) {
        code = other_columns(c, d);
    }
    code = code ? code : check_once(c, d);
    return code ? code : take_columns(c, d, d->x_names, d->d, &d->x, 0);
}

int gp_data_read_columns(cli *c, gp_data *d, const char *path, const char *const *names, int count)
{
    int code = open_table(c, d, path);
    d->x_names = code ? NULL : calloc(MOST_COLUMNS, sizeof *d->x_names);
    if (!code && !d->x_names) {
        code = cli_fail_memory(c);
    }
    for (int k = 0; k < count && !code; k++) {
        d->x_names[k] = strdup(names[k]);
        code = d->x_names[k] ? 0 : cli_fail_memory(c);
        d->d = k + 1;
    }
    return code ? code : take_columns(c, d, d->x_names, d->d, &d->x, 0);
}

/* ---- noise and means ------------------------------------------------------------------------- */

int gp_data_noise(cli *c, gp_data *d, const char *column)
{
    char *name[] = {(char *)(uintptr_t)column};
    return take_columns(c, d, name, 1, &d->noise, 0);
}

int gp_data_mean(cli *c, gp_data *d, const char *column)
{
    char *name[] = {(char *)(uintptr_t)column};
    return take_columns(c, d, name, 1, &d->mean, 0);
}

/** Codes of a column in order of first appearance. */
int gp_data_groups(cli *c, gp_data *d, const char *column)
{
    const frg_column *k = frg_table_find(d->table, column);
    if (!k) {
        return cli_no_column(c, d->path, d->table, column);
    }
    double *seen = malloc(MOST_GROUPS * sizeof *seen);
    d->groups = malloc((size_t)d->n * sizeof *d->groups + 1);
    int n = 0, code = seen && d->groups ? 0 : cli_fail_memory(c);
    for (int64_t i = 0; i < d->n && !code; i++) {
        const double v = cli_number_at(k, i);
        int g = 0;
        while (g < n && seen[g] != v) {
            g++;
        }
        if (isnan(v) || g == MOST_GROUPS) {
            code = cli_fail(c, "E_TYPE", column, "groups are a column of few different values",
                            "--noise-groups %s: row %" PRId64 " %s", column, i + 1,
                            isnan(v) ? "is missing" : "starts group 4097");
        } else if (g == n) {
            seen[n++] = v;
        }
        d->groups[i] = g;
    }
    free(seen);
    return code;
}

/** Names of the outputs, which a model does not keep: y, or y1, y2, ... */
static char **name_outputs(int q)
{
    char **const names = calloc(MOST_COLUMNS, sizeof *names);
    for (int k = 0; names && k < q; k++) {
        char text[16];
        snprintf(text, sizeof text, q > 1 ? "y%d" : "y", k + 1);
        names[k] = strdup(text);
    }
    return names;
}

int gp_data_of_model(const cli *c, gp_data *d, const frg_gp *gp)
{
    const frg_gp_report r = frg_gp_get(gp);
    if (r.d >= MOST_COLUMNS || r.q >= MOST_COLUMNS) {
        return cli_fail(c, "E_UNSUPPORTED", "MODEL", "use the library",
                        "the model has %" PRId64 " inputs and %" PRId64
                        " outputs, at most %d are shown",
                        r.d, r.q, MOST_COLUMNS - 1);
    }
    *d = (gp_data){.n = r.n, .d = (int)r.d, .q = (int)r.q, .y_names = name_outputs((int)r.q)};
    d->x_names = calloc(MOST_COLUMNS, sizeof *d->x_names);
    d->x = malloc((size_t)(r.n * r.d) * sizeof *d->x + 1);
    d->y = malloc((size_t)(r.n * r.q) * sizeof *d->y + 1);
    if (!d->x_names || !d->y_names || !d->x || !d->y) {
        return cli_fail_memory(c);
    }
    for (int k = 0; k < d->d; k++) {
        d->x_names[k] = strdup(r.column_names[k]);
    }
    memcpy(d->x, r.x, (size_t)(r.n * r.d) * sizeof *d->x);
    for (int64_t i = 0; i < r.n; i++) {
        for (int64_t k = 0; k < r.q; k++) {
            d->y[i * r.q + k] = r.y[k * r.n + i];
        }
    }
    const int named = (d->d == 0 || d->x_names[d->d - 1]) && d->y_names[d->q - 1];
    return named ? 0 : cli_fail_memory(c);
}

void gp_data_release(gp_data *d)
{
    free_names(d->x_names);
    free_names(d->y_names);
    free(d->x);
    free(d->y);
    free(d->noise);
    free(d->mean);
    free(d->groups);
    frg_table_destroy(d->table);
    *d = (gp_data){0};
}
