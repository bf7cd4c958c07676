/* tour_gw.c - the tour's job on alignment: two views of the digits, which share no coordinate.
 *
 * The even pixel columns of 1797 digits are one space of 32 coordinates, the odd ones another.  Three alignments:
 * by the distances inside each view alone, by what both views see of the same thing alone (the ink in each of the
 * eight pixel rows), and by both.  Labels are no part of an alignment; the share of images whose partners bring the
 * right digit is looked at afterwards.  The kind of the linear cost and the range of the settings were found with such
 * shares in view; the weight 1/2 is the plain choice, not the one of the best share (0.6 brought more).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fourge/gw.h"
#include "tour.h"

enum { SIDE = 8, HALF = SIDE * SIDE / 2, DIGITS = 10, RUNS = 3 };

typedef struct {
    const char *name;
    double weight; /* of the linear cost */
} setting;

static const setting settings_of_run[RUNS] = {
    {"distances inside each view", 0}, {"ink of the eight rows", 1}, {"both, half and half", 0.5}};

typedef struct {
    int64_t n;
    float *x[2];   /* n x HALF: even and odd columns */
    float *ink[2]; /* n x SIDE, standardised */
    float *cost;   /* n x n */
    int32_t *digit, *brought;
    int64_t *match;
    double truth; /* energy of the true pairing */
    frg_gw_report result[RUNS];
    double share[RUNS]; /* of digits brought over correctly */
    int64_t own[RUNS];  /* images matched to their own other half */
    frg_status status;
    double *from, *to; /* places of matched images, ordered by digit */
} part;

static void release(void *state)
{
    part *const p = state;
    if (p) {
        for (int v = 0; v < 2; v++) {
            free(p->x[v]);
            free(p->ink[v]);
        }
        free(p->cost);
        free(p->digit);
        free(p->brought);
        free(p->match);
        free(p->from);
        free(p->to);
        free(p);
    }
}

/* ---- data ------------------------------------------------------------------------------------------- */

static int reserve(part *p, int64_t n)
{
    const size_t rows = (size_t)n;
    p->n = n;
    for (int v = 0; v < 2; v++) {
        p->x[v] = malloc(rows * HALF * sizeof(float) + 1);
        p->ink[v] = calloc(rows * SIDE + 1, sizeof(float));
    }
    p->cost = malloc(rows * rows * sizeof(float) + 1);
    p->digit = malloc(rows * sizeof(int32_t) + 1);
    p->brought = malloc(rows * sizeof(int32_t) + 1);
    p->match = malloc(rows * sizeof(int64_t) + 1);
    p->from = malloc(rows * sizeof(double) + 1);
    p->to = malloc(rows * sizeof(double) + 1);
    return p->x[0] && p->x[1] && p->ink[0] && p->ink[1] && p->cost && p->digit && p->brought &&
           p->match && p->from && p->to;
}

static double value_at(const frg_column *c, int64_t i)
{
    return c->numbers ? c->numbers[i] : (double)c->integers[i];
}

/** Pixels p00 .. p77 by row, then the digit. */
static void take_pixels(part *p, const frg_table *t)
{
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t r = 0; r < SIDE; r++) {
            for (int64_t q = 0; q < SIDE; q++) {
                const float ink = (float)value_at(frg_table_column(t, r * SIDE + q), i);
                p->x[q % 2][i * HALF + r * SIDE / 2 + q / 2] = ink;
                p->ink[q % 2][i * SIDE + r] += ink;
            }
        }
        p->digit[i] = (int32_t)value_at(frg_table_column(t, (int64_t)SIDE * SIDE), i);
    }
}

/** Mean 0 and variance 1 in every column. */
static void standardise(float *x, int64_t n)
{
    for (int64_t k = 0; k < SIDE; k++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < n; i++) {
            mean += (double)x[i * SIDE + k] / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            const double d = (double)x[i * SIDE + k] - mean;
            square += d * d / (double)n;
        }
        const double scale = square > 0 ? 1 / sqrt(square) : 1;
        for (int64_t i = 0; i < n; i++) {
            x[i * SIDE + k] = (float)(((double)x[i * SIDE + k] - mean) * scale);
        }
    }
}

static float squared_gap(const float *a, const float *b, int64_t d)
{
    float sum = 0;
    for (int64_t k = 0; k < d; k++) {
        sum += (a[k] - b[k]) * (a[k] - b[k]);
    }
    return sum;
}

/** Squared gaps of the ink, divided by the largest, as the distances are by theirs. */
static void fill_cost(part *p)
{
    float most = 0;
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            const float gap = squared_gap(p->ink[0] + i * SIDE, p->ink[1] + j * SIDE, SIDE);
            p->cost[i * p->n + j] = gap;
            most = gap > most ? gap : most;
        }
    }
    for (int64_t i = 0; most > 0 && i < p->n * p->n; i++) {
        p->cost[i] /= most;
    }
}

/** Energy of the plan that pairs every image with its own other half. */
static double energy_of_truth(const part *p)
{
    double sum = 0;
    for (int64_t i = 0; i < p->n; i++) {
        for (int64_t k = 0; k < i; k++) {
            const double gap =
                sqrt((double)squared_gap(p->x[0] + i * HALF, p->x[0] + k * HALF, HALF)) -
                sqrt((double)squared_gap(p->x[1] + i * HALF, p->x[1] + k * HALF, HALF));
            sum += 2 * gap * gap;
        }
    }
    return sum / (double)p->n / (double)p->n;
}

static int read_views(cli *c, part *p)
{
    char path[4096];
    frg_table *t;
    int code = tour_find_data(c, "digits.csv", path, sizeof path);
    if (code) {
        return code;
    }
    const frg_status status = frg_table_read(&t, c->ctx, path, &c->set.table);
    if (!t) {
        return cli_fail_read(c, status);
    }
    if (frg_table_columns(t) != SIDE * SIDE + 1) {
        code = cli_fail(c, "E_SHAPE", path, NULL, "%s: 64 pixels and a digit are expected", path);
    } else if (!reserve(p, frg_table_rows(t))) {
        code = cli_fail_memory(c);
    } else {
        take_pixels(p, t);
    }
    frg_table_destroy(t);
    if (!code) {
        standardise(p->ink[0], p->n);
        standardise(p->ink[1], p->n);
        fill_cost(p);
        p->truth = energy_of_truth(p);
    }
    return code;
}

/* ---- alignments ---------------------------------------------------------------------------------------- */

static frg_status judge(part *p, const frg_plan *plan, int k)
{
    frg_status status = frg_plan_labels(plan, p->digit, DIGITS, p->brought, NULL);
    if (status >= 0) {
        status = frg_plan_argmax(plan, p->match);
    }
    int64_t right = 0;
    for (int64_t i = 0; status >= 0 && i < p->n; i++) {
        right += p->brought[i] == p->digit[i];
        p->own[k] += p->match[i] == i;
    }
    p->share[k] = (double)right / (double)p->n;
    return status;
}

static frg_status align(part *p, frg_context *ctx, int k)
{
    const frg_array x = frg_matrix(p->x[0], FRG_F32, p->n, HALF, HALF),
                    y = frg_matrix(p->x[1], FRG_F32, p->n, HALF, HALF),
                    cost = frg_matrix(p->cost, FRG_F32, p->n, p->n, p->n);
    frg_gw_opts o;
    frg_gw_defaults(&o, sizeof o);
    o.mode = FRG_GW_SAMPLED;
    o.distance = FRG_GW_DISTANCE_EUCLIDEAN;
    o.epsilon = 0.002;
    o.anneal = FRG_GW_ANNEAL_NONE;
    o.max_iter = o.min_iter = 20;
    o.polish_passes = 100;
    o.linear_weight = settings_of_run[k].weight;
    frg_gw *s = NULL;
    frg_status status = frg_gw_create(&s, ctx, (frg_gw_side){.data = &x}, (frg_gw_side){.data = &y},
                                      o.linear_weight > 0 ? &cost : NULL, &o);
    if (status >= 0) {
        status = frg_gw_run(s, NULL);
    }
    if (status >= 0 && !frg_gw_plan(s)) { /* stopped before there was a plan */
        p->status = status;
        frg_gw_destroy(s);
        return FRG_OK;
    }
    if (status >= 0) {
        p->result[k] = *frg_gw_get(s);
        p->status = status > p->status ? status : p->status;
        status = judge(p, frg_gw_plan(s), k);
    }
    frg_gw_destroy(s);
    return status;
}

/** Place of every image where they are ordered by digit; matches as pairs of places. */
static void place_matches(part *p)
{
    int64_t next[DIGITS] = {0}, below = 0;
    double *const place = p->from;
    for (int64_t i = 0; i < p->n; i++) {
        next[p->digit[i]]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        const int64_t count = next[d];
        next[d] = below;
        below += count;
    }
    for (int64_t i = 0; i < p->n; i++) {
        place[i] = (double)next[p->digit[i]]++;
    }
    for (int64_t i = 0; i < p->n; i++) {
        p->to[i] = p->match[i] < 0 ? (double)NAN : place[p->match[i]];
    }
}

static int run(cli *c, void **state)
{
    part *const p = calloc(1, sizeof *p);
    *state = p;
    if (!p) {
        return cli_fail_memory(c);
    }
    const int code = read_views(c, p);
    if (code) {
        return code;
    }
    for (int k = 0; k < RUNS && p->status == FRG_OK; k++) {
        const frg_status status = align(p, c->ctx, k);
        if (status < 0) {
            return cli_fail_library(c, status);
        }
    }
    place_matches(p);
    return 0;
}

/* ---- what is shown -------------------------------------------------------------------------------------- */

static void table(frg_report *r, const part *p)
{
    char a[32];
    frg_report_table_open(r, "Labels take no part in the alignments");
    frg_report_table_column(r, "aligned by", FRG_LEFT);
    frg_report_table_column(r, "energy", FRG_RIGHT);
    frg_report_table_column(r, "right digit", FRG_RIGHT);
    frg_report_table_column(r, "own other half", FRG_RIGHT);
    frg_report_table_column(r, "time", FRG_RIGHT);
    for (int k = 0; k < RUNS; k++) {
        char share[32];
        snprintf(share, sizeof share, "%.1f %%", 100 * p->share[k]);
        frg_report_cell_text(r, settings_of_run[k].name);
        frg_report_cell_number(r, p->result[k].energy, 3);
        frg_report_cell_text(r, share);
        frg_report_cell_integer(r, p->own[k]);
        frg_report_cell_text(r, seconds_text(p->result[k].total_seconds, a));
    }
    frg_report_table_close(r);
    frg_report_fact_number(r, "Energy of the true pairing", p->truth, 3);
}

static void report(frg_report *r, cli *c, void *state, int full)
{
    const part *const p = state;
    (void)c;
    frg_report_heading(r, "Two views of the digits: an alignment of spaces without common axes");
    frg_report_paragraph(
        r, "1797 digits of 8 x 8 pixels: the even pixel columns are one view, the odd ones the "
           "other, 32 coordinates each, none in common.  Which image of the other view belongs to "
           "which?  Gromov-Wasserstein looks at distances inside each view alone; the fused form "
           "adds what both views see, here the ink in each of the eight rows of pixels.  Each "
           "image takes the digit that most of its partners' mass has.");
    frg_report_fact(r, "Settings", "epsilon 0.002 of the scaled distances, 20 steps, weight 1/2");
    table(r, p);
    if (full) {
        const frg_series series = {
            .name = "match", .n = p->n, .x = p->from, .y = p->to, .style = FRG_POINTS};
        const frg_plot plot = {
            .caption = "Matches by distances and ink, images ordered by digit: blocks along the "
                       "diagonal are right digits",
            .x_label = "image, even columns",
            .y_label = "its match, odd columns",
            .reference = (double)NAN,
            .n_series = 1,
            .series = &series};
        frg_report_plot(r, &plot);
    }
    frg_report_paragraph(
        r, p->result[0].energy < p->truth
               ? "Read it so: the distances alone do not tell which digit is which; the plan found "
                 "has even less energy than the true pairing, so this is no matter of searching "
                 "longer.  Ink and distances together bring over more than either alone."
               : "Read it so: the distances alone do not tell which digit is which.  Ink and "
                 "distances together bring over more than either alone.");
}

static void json(frg_json *j, const cli *c, const void *state)
{
    const part *const p = state;
    (void)c;
    frg_json_open_object(j, NULL);
    frg_json_string(j, "job", "two views of the digits");
    frg_json_integer(j, "n", p->n);
    frg_json_number(j, "energy_of_true_pairing", p->truth);
    frg_json_open_array(j, "alignments");
    for (int k = 0; k < RUNS; k++) {
        frg_json_open_object(j, NULL);
        frg_json_string(j, "by", settings_of_run[k].name);
        frg_json_number(j, "linear_weight", settings_of_run[k].weight);
        frg_json_number(j, "energy", p->result[k].energy);
        frg_json_number(j, "label_accuracy", p->share[k]);
        frg_json_integer(j, "own_halves", p->own[k]);
        frg_json_number(j, "seconds", p->result[k].total_seconds);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
    frg_json_close_object(j);
}

static int exit_code(const void *state)
{
    const part *const p = state;
    return frg_status_exit_code(p->status);
}

const tour_part tour_gw = {
    .run = run, .report = report, .json = json, .exit_code = exit_code, .release = release};
