/* cli_gw_page.c - --report of an alignment: its outer iterations, its matches, both clouds and the
 * joint embedding.
 *
 * A match of a point is the largest entry of its row of the plan.  Large clouds are shown by points
 * at equal steps of their order, and the captions say how many.  Points of three coordinates are
 * seen along (1, 1, 1):
 *
 *     u = (x - y) / sqrt(2),   v = (2 z - x - y) / sqrt(6)
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gw/gw_job.h"

enum { POINTS_SHOWN = 1500, LINKS_SHOWN = 200 };

static void no_memory(frg_report *r)
{
    frg_report_paragraph(r, "A figure is left out: there was no memory for it.");
}

/** "all 250" or "1500 of 20,000". */
static const char *share_text(int64_t shown, int64_t all, char text[80])
{
    char a[32], b[32];
    if (shown < all) {
        snprintf(text, 80, "%s of %s", grouped(shown, a), grouped(all, b));
    } else {
        snprintf(text, 80, "all %s", grouped(all, a));
    }
    return text;
}

/* ---- iterations ------------------------------------------------------------------------------ */

/** "1 to 20 starts, 21 to 120 outer". */
static void phases_fact(frg_report *r, const frg_gw_iteration *rows, int64_t n)
{
    char text[256] = "";
    size_t used = 0;
    for (int64_t first = 0, next = 0; first < n && used < sizeof text; first = next) {
        while (next < n && strcmp(rows[next].phase, rows[first].phase) == 0) {
            next++;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRId64 " to %" PRId64 " %s",
                                 first ? ", " : "", first + 1, next, rows[first].phase);
    }
    frg_report_fact(r, "Outer iterations shown", text);
}

static void iteration_plot(frg_report *r, const char *caption, const char *y_label, int log_y,
                           const frg_series *series, int n_series)
{
    const frg_plot plot = {.caption = caption,
                           .x_label = "outer iteration",
                           .y_label = y_label,
                           .log_y = log_y,
                           .reference = (double)NAN,
                           .n_series = n_series,
                           .series = series};
    frg_report_plot(r, &plot);
}

static int has_positive(const double *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (values[i] > 0 && isfinite(values[i])) {
            return 1;
        }
    }
    return 0;
}

/** Estimates of the cost, where there were any: x, y, low and high have room for n each. */
static void cost_plot(frg_report *r, const frg_gw_iteration *rows, int64_t n, double *x, double *y,
                      double *low, double *high)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(rows[i].cost)) {
            x[count] = (double)(i + 1);
            y[count] = rows[i].cost;
            low[count] = rows[i].cost - 2 * rows[i].cost_error;
            high[count++] = rows[i].cost + 2 * rows[i].cost_error;
        }
    }
    const frg_series series = {
        .name = "cost", .n = count, .x = x, .y = y, .low = low, .high = high, .style = FRG_POINTS};
    if (count > 0) {
        iteration_plot(
            r,
            "Energy, in scaled units and with the linear cost where there is one, estimated from "
            "held-out pairs, and two standard errors",
            "estimated energy", 0, &series, 1);
    }
}

static void iterations(frg_report *r, const frg_gw *s)
{
    int64_t n;
    const frg_gw_iteration *const rows = frg_gw_trace(s, &n);
    double *const room = n > 0 ? malloc(4 * (size_t)n * sizeof *room) : NULL;
    if (n > 0 && !room) {
        no_memory(r);
    }
    if (!room) {
        return;
    }
    double *const error = room, *const change = room + n, *const epsilon = room + 2 * n;
    for (int64_t i = 0; i < n; i++) {
        error[i] = rows[i].marginal_error;
        change[i] = rows[i].change;
        epsilon[i] = rows[i].epsilon;
    }
    const frg_series both[] = {{.name = "error of the marginals", .n = n, .y = error},
                               {.name = "change of the plan", .n = n, .y = change}};
    const frg_series steps = {.name = "epsilon", .n = n, .y = epsilon};
    frg_report_heading(r, "Convergence");
    phases_fact(r, rows, n);
    if (has_positive(error, n) || has_positive(change, n)) {
        iteration_plot(r, "Error of the marginals (L1, before rounding) and change of the plan",
                       NULL, 1, both, 2);
    }
    iteration_plot(r, "Strength of the entropy", "epsilon", 1, &steps, 1);
    cost_plot(r, rows, n, room, room + n, room + 2 * n, room + 3 * n);
    free(room);
}

/* ---- matches --------------------------------------------------------------------------------- */

typedef struct {
    int64_t n, m, count;  /* points, and how many of the source are here */
    int64_t *row, *match; /* match -1: the row has no mass */
} matches;

static int64_t largest_entry(const float *row, int64_t m)
{
    int64_t at = 0;
    for (int64_t j = 1; j < m; j++) {
        at = row[j] > row[at] ? j : at;
    }
    return row[at] > 0 ? at : -1;
}

/** Of at most POINTS_SHOWN rows.  Release it in any case. */
static frg_status find_matches(const frg_plan *plan, matches *out)
{
    const frg_plan_report p = frg_plan_get(plan);
    *out = (matches){.n = p.n, .m = p.m, .count = p.n < POINTS_SHOWN ? p.n : POINTS_SHOWN};
    out->row = malloc(2 * (size_t)out->count * sizeof *out->row + 1);
    float *const entries = malloc((size_t)p.m * sizeof *entries + 1);
    frg_status status = out->row && entries ? FRG_OK : FRG_NO_MEMORY;
    for (int64_t q = 0; status >= 0 && q < out->count; q++) {
        const int64_t i = q * p.n / out->count;
        out->match = out->row + out->count;
        out->row[q] = i;
        status = frg_plan_rows(plan, i, i + 1, frg_matrix(entries, FRG_F32, 1, p.m, p.m));
        out->match[q] = largest_entry(entries, p.m);
    }
    free(entries);
    return status;
}

static void matches_plot(frg_report *r, const matches *found)
{
    char caption[200], share[80];
    double *const x = malloc(2 * (size_t)found->count * sizeof *x + 1);
    if (!x) {
        no_memory(r);
        return;
    }
    double *const y = x + found->count;
    for (int64_t q = 0; q < found->count; q++) {
        x[q] = (double)found->row[q];
        y[q] = found->match[q] < 0 ? (double)NAN : (double)found->match[q];
    }
    snprintf(caption, sizeof caption,
             "Matches, the largest entry of a row of the plan, in the order of the files: %s "
             "points of the source",
             share_text(found->count, found->n, share));
    const frg_series series = {
        .name = "match", .n = found->count, .x = x, .y = y, .style = FRG_POINTS};
    const frg_plot plot = {.caption = caption,
                           .x_label = "point of the source, from 0 on",
                           .y_label = "its match in the target",
                           .reference = (double)NAN,
                           .n_series = 1,
                           .series = &series};
    frg_report_plot(r, &plot);
    free(x);
}

/* ---- clouds ---------------------------------------------------------------------------------- */

/** Points in the plane: (what their coordinates give - corner) * scale, moved right by `right`. */
typedef struct {
    frg_array points;
    double corner[2], scale, right;
} cloud;

static double coordinate(const frg_array *a, int64_t i, int64_t k)
{
    const int64_t at = i * a->stride[0] + k * a->stride[1];
    const char *const base = (const char *)a->data + a->offset;
    return a->dtype == FRG_F64   ? ((const double *)(const void *)base)[at]
           : a->dtype == FRG_F32 ? (double)((const float *)(const void *)base)[at]
           : a->dtype == FRG_I64 ? (double)((const int64_t *)(const void *)base)[at]
                                 : (double)((const int32_t *)(const void *)base)[at];
}

static void place(const cloud *c, int64_t i, double *u, double *v)
{
    const double x = coordinate(&c->points, i, 0), y = coordinate(&c->points, i, 1);
    *u = x;
    *v = y;
    if (c->points.shape[1] == 3) {
        *u = (x - y) / sqrt(2);
        *v = (2 * coordinate(&c->points, i, 2) - x - y) / sqrt(6);
    }
    *u = (*u - c->corner[0]) * c->scale + c->right;
    *v = (*v - c->corner[1]) * c->scale;
}

/** A cloud whose longer side is 1. */
static cloud scaled_cloud(frg_array points, double right)
{
    cloud c = {.points = points, .scale = 1};
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int64_t i = 0; i < points.shape[0]; i++) {
        double at[2];
        place(&c, i, &at[0], &at[1]);
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], at[k]);
            high[k] = fmax(high[k], at[k]);
        }
    }
    const double side = fmax(high[0] - low[0], high[1] - low[1]);
    return (cloud){.points = points,
                   .corner = {low[0], low[1]},
                   .scale = side > 0 ? 1 / side : 1,
                   .right = right};
}

/** Room for the points that are shown of a cloud; NULL where memory is out. */
static double *shown_points(const cloud *c, frg_series *out)
{
    const int64_t n = c->points.shape[0], count = n < POINTS_SHOWN ? n : POINTS_SHOWN;
    double *const u = malloc(2 * (size_t)count * sizeof *u + 1);
    for (int64_t q = 0; u && q < count; q++) {
        place(c, q * n / count, &u[q], &u[count + q]);
    }
    out->n = count;
    out->x = u;
    out->y = u ? u + count : NULL;
    out->style = FRG_POINTS;
    return u;
}

/** Lines between the points of matches; *links: how many. */
static double *shown_links(const cloud *x, const cloud *y, const matches *found, frg_series *out,
                           int64_t *links)
{
    const int64_t count = found->count < LINKS_SHOWN ? found->count : LINKS_SHOWN;
    double *const u = malloc(4 * (size_t)count * sizeof *u + 1), *const v =
                                                                     u ? u + 2 * count : NULL;
    *links = 0;
    for (int64_t q = 0; u && q < count; q++) {
        const int64_t at = q * found->count / count, to = found->match[at];
        if (to >= 0) {
            place(x, found->row[at], &u[2 * *links], &v[2 * *links]);
            place(y, to, &u[2 * *links + 1], &v[2 * *links + 1]);
            ++*links;
        }
    }
    out->n = 2 * *links;
    out->x = u;
    out->y = u ? v : NULL;
    out->style = FRG_LINKS;
    return u;
}

static void clouds_plot(frg_report *r, const char *what, const cloud *x, const cloud *y,
                        const matches *found)
{
    char caption[400], in_x[80], in_y[80], linked[80];
    int64_t links;
    frg_series series[] = {{.name = "match"}, {.name = "source"}, {.name = "target"}};
    double *const rooms[] = {shown_links(x, y, found, &series[0], &links),
                             shown_points(x, &series[1]), shown_points(y, &series[2])};
    if (rooms[0] && rooms[1] && rooms[2]) {
        snprintf(caption, sizeof caption,
                 "%s: %s points of the source and %s of the target, lines between matched points "
                 "for %s",
                 what, share_text(series[1].n, found->n, in_x),
                 share_text(series[2].n, found->m, in_y), share_text(links, found->n, linked));
        const frg_plot plot = {.caption = caption,
                               .map = 1,
                               .reference = (double)NAN,
                               .n_series = 3,
                               .series = series};
        frg_report_plot(r, &plot);
    } else {
        no_memory(r);
    }
    for (int k = 0; k < 3; k++) {
        free(rooms[k]);
    }
}

/** Whether an input has points of two or three coordinates. */
static int is_cloud(const cli *c, const gw_input *in, frg_array *points)
{
    const int is_matrix = c->set.gw.align.distance == FRG_GW_DISTANCE_MATRIX;
    *points = in->mesh ? frg_mesh_points(in->mesh) : in->array;
    return !is_matrix && points->data && points->ndim == 2 &&
           (points->shape[1] == 2 || points->shape[1] == 3);
}

void gw_page_pictures(frg_report *r, const cli *c, const gw_alignment *shown)
{
    matches found;
    frg_array of_x, of_y;
    iterations(r, shown->solver);
    const frg_status status = find_matches(frg_gw_plan(shown->solver), &found);
    frg_report_heading(r, "Alignment");
    if (status < 0) {
        no_memory(r);
    } else {
        matches_plot(r, &found);
        if (is_cloud(c, shown->x, &of_x) && is_cloud(c, shown->y, &of_y)) {
            const cloud x = scaled_cloud(of_x, 0), y = scaled_cloud(of_y, 1.2);
            clouds_plot(r,
                        of_x.shape[1] == 3 || of_y.shape[1] == 3
                            ? "Both clouds, each in its own scale, seen along (1, 1, 1)"
                            : "Both clouds, each in its own scale",
                        &x, &y, &found);
        }
        if (shown->embedding && shown->dimensions > 1) {
            const int64_t d = shown->stride;
            const cloud x = {.points = frg_matrix(shown->embedding, FRG_F64, found.n, 2, d),
                             .scale = 1},
                        y = {.points =
                                 frg_matrix(shown->embedding + found.n * d, FRG_F64, found.m, 2, d),
                             .scale = 1};
            clouds_plot(r, "Joint embedding, its first two coordinates", &x, &y, &found);
        }
    }
    free(found.row);
    page_run_facts(r, c, c);
}
