/* cli_tables.c - the options of input tables as the library takes them, and their columns as
 * numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli.h"

int cli_table_options(cli *c)
{
    settings *s = &c->set;
    if (s->input.delimiter) {
        const int tab =
            strcmp(s->input.delimiter, "\\t") == 0 || strcmp(s->input.delimiter, "tab") == 0;
        if (!tab && strlen(s->input.delimiter) != 1) {
            return cli_fail(c, "E_OPTION", "--delimiter", "",
                            "--delimiter takes one character or tab, got '%s'", s->input.delimiter);
        }
        s->table.delimiter = tab ? '\t' : s->input.delimiter[0];
    }
    if (s->input.n_na) {
        s->table.na = s->input.na;
        s->table.n_na = s->input.n_na;
    }
    return 0;
}

int cli_read_table(const cli *c, const char *path, frg_table **out)
{
    frg_status status;
    const int code = cli_load_table(c, path, &c->set.table, out, &status);
    if (code) {
        return code;
    }
    if (!*out) {
        return cli_fail_read(c, status);
    }
    return frg_table_rows(*out) > 0 ? 0
                                    : cli_fail(c, "E_NO_OBS", path, "give at least one row",
                                               "'%s' has columns, but no rows", path);
}

double cli_number_at(const frg_column *k, int64_t i)
{
    return k->numbers ? k->numbers[i]
           : k->integers
               ? k->integers[i] == FRG_MISSING_INTEGER ? (double)NAN : (double)k->integers[i]
           : k->codes[i] == FRG_MISSING_CODE ? (double)NAN
                                             : (double)k->codes[i];
}

int cli_find_mistyped(const cli *c, const frg_column *k, int64_t *row)
{
    frg_column_inference inference = {.mistyped = -1};
    const frg_status status =
        k->kind == FRG_CATEGORY ? frg_column_count(&inference, c->ctx, k) : FRG_OK;
    *row = inference.mistyped;
    return status < 0 ? cli_fail_library(c, status) : 0;
}

int cli_refuse_text(const cli *c, const char *path, const frg_column *k, const char *hint)
{
    int64_t row;
    const int code = cli_find_mistyped(c, k, &row);
    if (code) {
        return code;
    }
    if (row >= 0) {
        return cli_fail(c, "E_TYPE", k->name, hint,
                        "column '%s' of %s holds numbers, but row %" PRId64 " is '%.40s'", k->name,
                        path, row + 1, k->labels[k->codes[row]]);
    }
    return cli_fail(c, "E_TYPE", k->name, "give columns of numbers",
                    "column '%s' of %s holds text such as \"%s\"", k->name, path,
                    k->n_labels > 0 ? k->labels[0] : "");
}

int cli_no_column(const cli *c, const char *path, const frg_table *t, const char *name)
{
    enum { MOST = 20 };
    char hint[400];
    const char *const near = frg_table_nearest(t, name);
    const int64_t n = frg_table_columns(t);
    const char *const others = n == 1 ? "the one column is" : "there are";
    size_t used = (size_t)snprintf(hint, sizeof hint, "%s%s", near ? "did you mean " : others,
                                   near ? near : "");
    for (int64_t i = 0; !near && i < n; i++) {
        const char *const other = frg_table_column(t, i)->name;
        if (i == MOST ||
            used + strlen(other) + sizeof ", '' and 9223372036854775807 more" > sizeof hint) {
            snprintf(hint + used, sizeof hint - used, " and %" PRId64 " more", n - i);
            break;
        }
        used += (size_t)snprintf(hint + used, sizeof hint - used, "%s'%s'", i ? ", " : " ", other);
    }
    return cli_fail(c, "E_COLUMN", name, hint, "there is no column '%s' in %s", name, path);
}
