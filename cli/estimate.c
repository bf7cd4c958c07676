/* estimate.c - --dry-run: bounds of memory and a guess of the time, before any work. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "cli.h"

typedef struct {
    const char *schema;
    const size_line *lines;
    int n;
} estimate;

static void estimate_json(frg_json *j, const cli *c, const void *job)
{
    const estimate *const e = job;
    json_head(j, e->schema);
    frg_json_bool(j, "dry_run", 1);
    for (int i = 0; i < e->n; i++) {
        const size_line *const l = &e->lines[i];
        if (l->kind == SIZE_SECONDS) {
            frg_json_number(j, l->key, l->value);
        } else {
            frg_json_integer(j, l->key, (int64_t)l->value);
        }
    }
    json_foot(j, c);
}

static const char *value_text(const size_line *l, char text[32])
{
    return l->kind == SIZE_COUNT   ? grouped((int64_t)l->value, text)
           : l->kind == SIZE_BYTES ? bytes_text(l->value, text)
                                   : seconds_text(l->value, text);
}

static void estimate_text(frg_report *r, const cli *c, const void *job)
{
    (void)c;
    const estimate *const e = job;
    for (int i = 0; i < e->n; i++) {
        const size_line *const l = &e->lines[i];
        char text[128], words[32];
        snprintf(text, sizeof text, "%s%s%s", l->before ? l->before : "", value_text(l, words),
                 l->after ? l->after : "");
        if (l->label) {
            frg_report_fact(r, l->label, l->text ? l->text : text);
        }
    }
}

int show_sizes(cli *c, const char *schema, const size_line *lines, int n)
{
    const estimate e = {schema, lines, n};
    return write_result(c, "Dry run", estimate_json, estimate_text, &e);
}

/** Bytes that the folder of FILE of --checkpoint has room for; NaN: nobody knows. */
static double free_space_beside(const cli *c)
{
    const char *const slash = strrchr(c->set.checkpoint, '/');
    const size_t length = slash == c->set.checkpoint ? 1 : (size_t)(slash - c->set.checkpoint);
    char *const folder = slash ? strndup(c->set.checkpoint, length) : strdup(".");
    struct statvfs v;
    const int known = folder && statvfs(folder, &v) == 0;
    free(folder);
    return known ? (double)v.f_bavail * (double)v.f_frsize : (double)NAN;
}

/** What stands behind the bytes on the disk: the other end of their range. */
static const char *with_factor_text(const frg_fe_size *s, char *text, size_t size)
{
    char bytes[32];
    if (s->spool_with_factor_bytes <= s->spool_bytes) {
        return " (--spool)";
    }
    snprintf(text, size, ", or %s with a factor (--spool)",
             bytes_text((double)s->spool_with_factor_bytes, bytes));
    return text;
}

int show_estimate(cli *c, const char *schema, const frg_fe_size *s, size_t kept)
{
    const int effects = s->n_factors > 0, first = c->set.fe.first_stage != NULL;
    const double beside = kept > 0 ? free_space_beside(c) : (double)NAN;
    char data[128], rows[32], most[128];
    snprintf(data, sizeof data, "%s rows, %lld columns, %d %s", grouped(s->n, rows),
             (long long)s->n_columns, s->n_factors, s->n_factors == 1 ? "factor" : "factors");
    const size_line lines[] = {
        {.key = "n", .value = (double)s->n, .label = "Data", .text = data},
        {.key = "factors", .value = s->n_factors},
        {.key = "columns", .value = (double)s->n_columns},
        {.key = "columns_bytes",
         .kind = SIZE_BYTES,
         .value = (double)s->matrix_bytes,
         .label = "Columns"},
        {.key = "plan_bytes",
         .kind = SIZE_BYTES,
         .value = (double)s->plan_bytes,
         .label = "Plan",
         .before = "at most ",
         .text = effects ? NULL : "no fixed effects: one pass over the columns"},
        {.key = "first_stage_left_out",
         .value = first,
         .label = first ? "First stage" : NULL,
         .text = "not in these numbers: its factors, plan and solve come on top"},
        {.key = "with_factor_bytes",
         .kind = SIZE_BYTES,
         .value = (double)s->with_factor_bytes,
         .label = effects ? "With a factor" : NULL,
         .before = "at most ",
         .after = " (--fill-cap)"},
        {.key = "estimated_seconds",
         .kind = SIZE_SECONDS,
         .value = s->seconds,
         .label = effects ? "Time, about" : NULL,
         .after = " where few steps do"},
        {.key = "spool_bytes",
         .kind = SIZE_BYTES,
         .value = (double)s->spool_bytes,
         .label = "On the disk",
         .before = "at most ",
         .after = with_factor_text(s, most, sizeof most)},
        {.key = "spool_with_factor_bytes",
         .kind = SIZE_BYTES,
         .value = (double)s->spool_with_factor_bytes},
        {.key = "free_bytes",
         .kind = SIZE_BYTES,
         .value = (double)frg_spool_room(c->ctx),
         .label = "Free there"},
        {.key = "memory_bytes",
         .kind = SIZE_BYTES,
         .value = (double)c->set.context.memory_limit,
         .label = c->set.context.memory_limit > 0 ? "In memory" : NULL,
         .before = "at most "},
        {.key = "passes",
         .value = s->passes,
         .label = "Passes along the rows",
         .after = " where few steps do, else one more a step"},
        {.key = "kept_bytes",
         .kind = SIZE_BYTES,
         .value = (double)kept,
         .label = "Kept for resume",
         .before = "at most ",
         .after = " (--checkpoint)"},
        {.key = "kept_free_bytes", .kind = SIZE_BYTES, .value = beside, .label = "Free there"},
    };
    enum { OF_KEPT = 2, OF_SPOOL = 5 }; /* the last ones, and those before */
    const int n = sizeof lines / sizeof *lines - (kept > 0 && isfinite(beside) ? 0 : OF_KEPT);
    return show_sizes(c, schema, lines, s->spool_bytes > 0 ? n : n - OF_SPOOL);
}
