/* estimate.c - --dry-run: bounds of memory and a guess of the time, before any work. */
#include "cli.h"

typedef struct {
    const char *schema;
    const frg_fe_size *size;
} estimate;

static void estimate_json(frg_json *j, const cli *c, const void *job)
{
    const estimate *const e = job;
    const frg_fe_size *const s = e->size;
    json_head(j, e->schema);
    frg_json_bool(j, "dry_run", 1);
    frg_json_integer(j, "n", s->n);
    frg_json_integer(j, "factors", s->n_factors);
    frg_json_integer(j, "columns", s->n_columns);
    frg_json_integer(j, "columns_bytes", (int64_t)s->matrix_bytes);
    frg_json_integer(j, "plan_bytes", (int64_t)s->plan_bytes);
    frg_json_integer(j, "with_factor_bytes", (int64_t)s->with_factor_bytes);
    frg_json_number(j, "estimated_seconds", s->seconds);
    json_foot(j, c);
}

static void estimate_text(frg_report *r, const cli *c, const void *job)
{
    (void)c;
    const frg_fe_size *const s = ((const estimate *)job)->size;
    char text[128], words[32];
    snprintf(text, sizeof text, "%s rows, %lld columns, %d %s", grouped(s->n, words),
             (long long)s->n_columns, s->n_factors, s->n_factors == 1 ? "factor" : "factors");
    frg_report_fact(r, "Data", text);
    frg_report_fact(r, "Columns", bytes_text((double)s->matrix_bytes, words));
    if (s->n_factors == 0) {
        frg_report_fact(r, "Plan", "no fixed effects: one pass over the columns");
        return;
    }
    snprintf(text, sizeof text, "at most %s", bytes_text((double)s->plan_bytes, words));
    frg_report_fact(r, "Plan", text);
    snprintf(text, sizeof text, "at most %s (--fill-cap)",
             bytes_text((double)s->with_factor_bytes, words));
    frg_report_fact(r, "With a factor", text);
    snprintf(text, sizeof text, "%s where few steps do", seconds_text(s->seconds, words));
    frg_report_fact(r, "Time, about", text);
}

int show_estimate(cli *c, const char *schema, const frg_fe_size *size)
{
    const estimate e = {schema, size};
    return write_result(c, "Dry run", estimate_json, estimate_text, &e);
}
