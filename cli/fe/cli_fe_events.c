/* cli_fe_events.c - the curve of an event study, and the first stage of difference in differences,
 * for people. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fe/fe_job.h"

/** The points of the estimates and, behind them, of the references, which are 0. */
typedef struct {
    double *time, *estimate, *low, *high;
    int n, n_references;
} curve;

static int make_curve(curve *p, const frg_fe_result *f)
{
    double *const memory = malloc(4 * (size_t)f->n_events * sizeof *memory);
    if (!memory) {
        return 0;
    }
    *p = (curve){.time = memory,
                 .estimate = memory + f->n_events,
                 .low = memory + 2 * (size_t)f->n_events,
                 .high = memory + 3 * (size_t)f->n_events};
    for (int i = 0; i < f->n_events; i++) {
        const int at = f->events[i].coefficient;
        if (at >= 0) {
            const frg_coefficient *const c = &f->coefficients[at];
            p->time[p->n] = f->events[i].time;
            p->estimate[p->n] = c->estimate;
            p->low[p->n] = isfinite(c->std_error) ? c->conf_low : c->estimate;
            p->high[p->n++] = isfinite(c->std_error) ? c->conf_high : c->estimate;
        }
    }
    for (int i = 0; i < f->n_events; i++) {
        if (f->events[i].coefficient < 0) {
            p->time[p->n + p->n_references] = f->events[i].time;
            p->estimate[p->n + p->n_references++] = 0;
        }
    }
    return 1;
}

/** "year" of the terms "year::-2". */
static void name_axis(const frg_fe_result *f, char *name, size_t room)
{
    for (int i = 0; i < f->n_events; i++) {
        if (f->events[i].coefficient >= 0) {
            const char *const term = f->coefficients[f->events[i].coefficient].term;
            const char *const end = strstr(term, "::");
            snprintf(name, room, "%.*s", end ? (int)(end - term) : 0, term);
        }
    }
}

void fe_event_plot(frg_report *r, const frg_fe_result *f, double level)
{
    curve p;
    char caption[120], axis[80] = "";
    if (f->n_events < 3 || !make_curve(&p, f)) {
        return;
    }
    name_axis(f, axis, sizeof axis);
    snprintf(caption, sizeof caption, "Estimates by %.60s with %.4g%% intervals", axis,
             100 * level);
    const frg_series series[] = {{.name = "estimate",
                                  .n = p.n,
                                  .x = p.time,
                                  .y = p.estimate,
                                  .low = p.low,
                                  .high = p.high,
                                  .style = FRG_POINTS},
                                 {.name = "reference",
                                  .n = p.n_references,
                                  .x = p.time + p.n,
                                  .y = p.estimate + p.n,
                                  .style = FRG_POINTS}};
    const frg_plot plot = {.caption = caption,
                           .x_label = axis,
                           .y_label = f->depvar,
                           .reference = 0,
                           .n_series = 1 + (p.n_references > 0),
                           .series = series};
    if (p.n > 0) {
        frg_report_plot(r, &plot);
    }
    free(p.time);
}

void fe_two_stage_fact(frg_report *r, const frg_fe_result *f)
{
    char text[400], count[32];
    if (f->first_stage) {
        snprintf(text, sizeof text, "%.300s, in %s untreated rows", f->first_stage,
                 grouped(f->n_first_stage, count));
        frg_report_fact(r, "First stage", text);
    }
}
