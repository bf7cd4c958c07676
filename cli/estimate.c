/* estimate.c - --dry-run: bounds of memory and time before any work. */
#include <math.h>

#include "cli.h"

static void estimate_json(frg_json *j, const cli *c, const char *schema, int64_t n,
                          int64_t n_factors, int64_t p, const double figures[3])
{
    json_head(j, schema);
    frg_json_bool(j, "dry_run", 1);
    frg_json_integer(j, "n", n);
    frg_json_integer(j, "factors", n_factors);
    frg_json_integer(j, "columns", p);
    frg_json_number(j, "plan_bytes", figures[0]);
    frg_json_number(j, "with_factor_bytes", figures[1]);
    frg_json_number(j, "estimated_seconds", figures[2]);
    json_foot(j, c);
}

static void estimate_text(frg_report *r, int64_t n, int64_t n_factors, int64_t p,
                          const double figures[3])
{
    char text[128], words[32];
    snprintf(text, sizeof text, "%s rows, %lld columns, %lld factors", grouped(n, words),
             (long long)p, (long long)n_factors);
    frg_report_fact(r, "Data", text);
    frg_report_fact(r, "Plan", bytes_text(figures[0], words));
    frg_report_fact(r, "With the largest factor", bytes_text(figures[1], words));
    frg_report_fact(r, "Time, about", seconds_text(figures[2], words));
}

int show_estimate(cli *c, const char *schema, int64_t n, int64_t n_factors, int64_t p)
{
    size_t plan = 0, with_factor = 0;
    double seconds = (double)NAN;
    frg_status status = frg_demean_estimate(c->ctx, n, n_factors, p, &c->set.fe.demean, &plan,
                                            &with_factor, &seconds);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    const double figures[3] = {(double)plan, (double)with_factor, seconds};
    if (c->set.format == FORMAT_JSON) {
        frg_json *j;
        status = frg_json_create(&j, c->ctx);
        if (status < 0) {
            return cli_fail_library(c, status);
        }
        estimate_json(j, c, schema, n, n_factors, p, figures);
        const int code = write_json(c, j);
        frg_json_destroy(j);
        return code;
    }
    frg_report *r;
    status = frg_report_create(&r, c->ctx, "Dry run");
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    estimate_text(r, n, n_factors, p, figures);
    const int code = write_report(c, r);
    frg_report_destroy(r);
    return code;
}
