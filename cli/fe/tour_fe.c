/* tour_fe.c - the tour's job on fixed effects: what unions and marriage do for wages. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fe/fe_job.h"
#include "tour.h"

static const char FORMULA[] = "lwage ~ expersq + union + married | nr + occupation^year";

typedef struct {
    fe_job fe;
    char path[PATH_MAX];
    tour_command command;
    trace trace;
} part;

static void release(void *state)
{
    part *const p = state;
    if (p) {
        fe_job_release(&p->fe);
        tour_command_release(&p->command);
        free(p);
    }
}

static int run(cli *c, void **state)
{
    static const char *const words[] = {"fe", FORMULA, "data/wage_panel.csv", "--vcov",
                                        "cluster=nr"};
    part *const p = calloc(1, sizeof *p);
    *state = p;
    if (!p) {
        return cli_fail_memory(c);
    }
    int code = tour_find_data(c, "wage_panel.csv", p->path, sizeof p->path);
    code = code ? code : tour_command_read(c, words, sizeof words / sizeof *words, &p->command);
    if (code) {
        return code;
    }
    p->fe = (fe_job){.formula = FORMULA,
                     .path = p->path,
                     .shown = words[2],
                     .line = p->command.line,
                     .opts = p->command.line->set.fe};
    c->progress.trace = (trace){.stride = 1};
    c->progress.steps = 0;
    c->progress.keep_trace = 1;
    code = fe_job_read(c, &p->fe);
    code = code ? code : fe_job_fit(c, &p->fe);
    p->trace = c->progress.trace;
    return code;
}

/* ---- what is shown --------------------------------------------------------------------------- */

/** A coefficient of a dummy in log wages, as per cent of the wage. */
static double per_cent(double log_points)
{
    return 100 * expm1(log_points);
}

static int is_dummy(const frg_coefficient *k)
{
    return strcmp(k->term, "union") == 0 || strcmp(k->term, "married") == 0;
}

static void say_how_much(frg_report *r, const frg_coefficient *k, double level)
{
    char text[320];
    const double share = per_cent(k->estimate);
    snprintf(text, sizeof text,
             "In the same occupation and year a man is paid %.1f %% %s when he is %s than when he "
             "is not; the %g %% interval goes from %.1f to %.1f %%.",
             fabs(share), share < 0 ? "less" : "more",
             strcmp(k->term, "union") == 0 ? "in a union" : "married", 100 * level,
             per_cent(k->conf_low), per_cent(k->conf_high));
    frg_report_paragraph(r, text);
}

static void picture(frg_report *r, const cli *c, const void *state, int full)
{
    (void)c;
    (void)full;
    const part *const p = state;
    const frg_fe_result *const f = frg_fe_get(p->fe.fit);
    fe_intervals shown = {0};
    frg_report_heading(r, "Wages: what a union and a marriage are worth");
    for (int i = 0; i < f->n_coefficients; i++) {
        const frg_coefficient *const k = &f->coefficients[i];
        if (is_dummy(k) && isfinite(k->estimate) && isfinite(k->std_error)) {
            say_how_much(r, k, p->fe.opts.level);
            fe_intervals_add(&shown, k, per_cent);
        }
    }
    fe_intervals_plot(r, &shown,
                      "Wages of men in a union and of married men beside the wages of the same men "
                      "when they were not, with intervals",
                      "per cent");
}

static void report(frg_report *r, cli *c, void *state, int full)
{
    part *const p = state;
    frg_report_heading(r, "Panel regression with two fixed effects and clustered errors");
    frg_report_paragraph(
        r, "Do unions and marriage raise wages?  545 young men, 1980 to 1987 (Vella and "
           "Verbeek 1998).  The effect of each man takes out all that is constant about him, the "
           "effect of each occupation in each year the state of its market; the errors of one "
           "man are related, so the standard errors are clustered by man.");
    tour_command_fact(r, &p->command);
    c->progress.trace = p->trace;
    fe_report_build(r, c, &p->fe, full);
}

static void json(frg_json *j, const cli *c, const void *state)
{
    const part *const p = state;
    fe_json_build(j, c, &p->fe);
}

static int exit_code(const void *state)
{
    const part *const p = state;
    return frg_status_exit_code(p->fe.status);
}

const tour_part tour_fe = {.run = run,
                           .picture = picture,
                           .report = report,
                           .json = json,
                           .exit_code = exit_code,
                           .release = release};
