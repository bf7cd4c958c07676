/* tour_soap.c - the tour's job on the optimizer: a small network learns the heights of mountains.
 *
 * AdamW and SOAP start from the same weights and see the same batches, each at every rate of one
 * list, so that neither is tuned more than the other.  All runs take step t before any takes step
 * t + 1: what else the machine does at a time falls upon all of them alike.  Every fifth place is
 * kept back and measured by at the end.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "soap/mlp.h"
#include "soap/soap_job.h"
#include "tour.h"

enum { STEPS = 300, BATCH = 512, HIDDEN = 64, LAYERS = 3, APART = 5, RATES = 3, RUNS = 2 * RATES };
static const double RATE[RATES] = {0.02, 0.05, 0.1};
static const char *const NAMES[2] = {"AdamW", "SOAP"};

/** One optimizer at one rate: number k is NAMES[k / RATES] at RATE[k % RATES]. */
typedef struct {
    mlp net;
    frg_soap *soap;
    double seconds[STEPS],
        error[STEPS]; /* until a step's end; running mean of the loss as a height in metres */
    double mean;      /* of the loss */
    double held_out;  /* metres */
} contender;

typedef struct {
    contender run[RUNS];
    int64_t n, learnt;     /* places; those that are learnt from, which come first */
    float *place, *height; /* n x 2 and n, mean 0 and variance 1 */
    double metre;          /* a standard deviation of the heights */
    int steps;
    frg_status over;
    int best[2]; /* the rate with the least error at the end, of both */
    int reached; /* SOAP's step at AdamW's last error, STEPS + 1: it never was there */
} mountains;

/* ---- data ------------------------------------------------------------------------------------ */

/** A column, learnt places first, to mean 0 and variance 1, every `stride` floats; its standard
 *  deviation. */
static double take(const frg_column *from, int64_t n, float *to, int64_t stride)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += cli_number_at(from, i);
    }
    for (int64_t i = 0; i < n; i++) {
        square += pow(cli_number_at(from, i) - sum / (double)n, 2);
    }
    const double sd = square > 0 ? sqrt(square / (double)n) : 1;
    int64_t at = 0;
    for (int held = 0; held < 2; held++) {
        for (int64_t i = 0; i < n; i++) {
            if ((i % APART == APART - 1) == held) {
                to[stride * at++] = (float)((cli_number_at(from, i) - sum / (double)n) / sd);
            }
        }
    }
    return sd;
}

static int take_terrain(mountains *m, const cli *c, const char *path, const frg_table *t)
{
    static const char *const names[] = {"east", "south", "height"};
    const frg_column *column[3];
    for (int k = 0; k < 3; k++) {
        column[k] = frg_table_find(t, names[k]);
        if (!column[k]) {
            return cli_no_column(c, path, t, names[k]);
        }
        if (column[k]->n_missing > 0) {
            return cli_fail(c, "E_TYPE", names[k], "give numbers without gaps",
                            "column '%s' of %s has missing values", names[k], path);
        }
    }
    m->n = frg_table_rows(t);
    m->learnt = m->n - m->n / APART;
    m->place = malloc((size_t)m->n * 2 * sizeof *m->place + 1);
    m->height = malloc((size_t)m->n * sizeof *m->height + 1);
    if (!m->place || !m->height) {
        return cli_fail_memory(c);
    }
    take(column[0], m->n, m->place, 2);
    take(column[1], m->n, m->place + 1, 2);
    m->metre = take(column[2], m->n, m->height, 1);
    return 0;
}

static int read_terrain(mountains *m, cli *c)
{
    char path[4096];
    frg_table *t = NULL;
    int code = tour_find_data(c, "terrain.csv", path, sizeof path);
    code = code ? code : cli_read_table(c, path, &t);
    code = code ? code : take_terrain(m, c, path, t);
    frg_table_destroy(t);
    return code;
}

/* ---- training -------------------------------------------------------------------------------- */

static int make_contender(contender *k, const cli *c, int number)
{
    static const int64_t sizes[LAYERS + 1] = {2, HIDDEN, HIDDEN, 1};
    frg_soap_opts o;
    soap_adamw(&o, RATE[number % RATES]);
    if (number >= RATES) {
        frg_soap_defaults(&o, sizeof o, FRG_SOAP_EMERGING);
        o.lr = RATE[number % RATES];
        o.precondition_frequency = 10;
    }
    o.beta2 = 0.95;
    o.weight_decay = 0;
    const int code = mlp_create(&k->net, c, LAYERS, sizes, BATCH, c->set.context.seed + 1);
    if (code) {
        return code;
    }
    const frg_status status = frg_soap_create(&k->soap, c->ctx, &o);
    return status < 0 ? cli_fail_library(c, status) : mlp_add_params(c, k->soap, &k->net);
}

static void fill(mlp *net, float *target, const mountains *m, const int64_t *rows, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        net->a[0][2 * i] = m->place[2 * rows[i]];
        net->a[0][2 * i + 1] = m->place[2 * rows[i] + 1];
        target[i] = m->height[rows[i]];
    }
}

static frg_status step(contender *k, const mountains *m, const int64_t *rows, float *target, int t)
{
    frg_array grads[2 * LAYERS];
    const double start = now_seconds();
    fill(&k->net, target, m, rows, BATCH);
    const double loss = mlp_squares(&k->net, target, BATCH, 1);
    mlp_gradients(&k->net, grads);
    const frg_status status = frg_soap_step(k->soap, grads, 2 * LAYERS, NULL);
    k->seconds[t] = (t > 0 ? k->seconds[t - 1] : 0) + now_seconds() - start;
    k->mean = t > 0 ? 0.9 * k->mean + 0.1 * loss : loss;
    k->error[t] = m->metre * sqrt(k->mean);
    return status;
}

static frg_status train(mountains *m, const cli *c)
{
    int64_t rows[BATCH];
    float target[BATCH];
    uint64_t random = 1000003 * c->set.context.seed + 17;
    frg_status status = FRG_OK;
    while (status >= 0 && m->steps < STEPS && (m->over = cli_over(c)) == FRG_OK) {
        for (int i = 0; i < BATCH; i++) {
            rows[i] = (int64_t)(mlp_random(&random) % (uint64_t)m->learnt);
        }
        for (int k = 0; k < RUNS && status >= 0; k++) {
            status = step(&m->run[k], m, rows, target, m->steps);
        }
        m->steps += status >= 0;
    }
    return status;
}

/** The error on the places that were kept back; the network's gradients are lost. */
static void measure(contender *k, const mountains *m)
{
    int64_t rows[BATCH];
    float target[BATCH];
    double sum = 0;
    for (int64_t from = m->learnt; from < m->n; from += BATCH) {
        const int64_t n = m->n - from < BATCH ? m->n - from : BATCH;
        for (int64_t i = 0; i < n; i++) {
            rows[i] = from + i;
        }
        fill(&k->net, target, m, rows, n);
        sum += (double)n * mlp_squares(&k->net, target, n, 1);
    }
    k->held_out = m->metre * sqrt(sum / (double)(m->n - m->learnt));
}

/** NaN, an optimizer that went astray, is never the least. */
static void compare(mountains *m)
{
    const int last = m->steps - 1;
    for (int k = 0; k < 2; k++) {
        m->best[k] = k * RATES;
        for (int i = k * RATES; i < (k + 1) * RATES; i++) {
            measure(&m->run[i], m);
            if (!(m->run[m->best[k]].error[last] <= m->run[i].error[last])) {
                m->best[k] = i;
            }
        }
    }
    m->reached = 1;
    while (m->reached <= m->steps &&
           !(m->run[m->best[1]].error[m->reached - 1] <= m->run[m->best[0]].error[last])) {
        m->reached++;
    }
}

static int run(cli *c, void **state)
{
    mountains *const m = calloc(1, sizeof *m);
    *state = m;
    int code = m ? read_terrain(m, c) : cli_fail_memory(c);
    for (int k = 0; k < RUNS && !code; k++) {
        code = make_contender(&m->run[k], c, k);
    }
    if (code) {
        return code;
    }
    const frg_status status = train(m, c);
    if (status < 0) {
        return cli_fail_library(c, status);
    }
    if (m->steps > 0) {
        compare(m);
    }
    return 0;
}

/* ---- what is shown --------------------------------------------------------------------------- */

static void say_how_it_went(frg_report *r, const mountains *m)
{
    const contender *const a = &m->run[m->best[0]], *const s = &m->run[m->best[1]];
    const int last = m->steps - 1;
    char text[512];
    int n =
        snprintf(text, sizeof text,
                 "After %d steps at its best rate (%g) AdamW is %.0f m off; SOAP at its own (%g) ",
                 m->steps, RATE[m->best[0] % RATES], a->error[last], RATE[m->best[1] % RATES]);
    if (m->reached <= m->steps) {
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "was there after %d steps, in %.2f of AdamW's time, and came to %.0f m.",
                      m->reached, s->seconds[m->reached - 1] / a->seconds[last], s->error[last]);
    } else {
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "was not, and came to %.0f m in %.2f of AdamW's time.", s->error[last],
                      s->seconds[last] / a->seconds[last]);
    }
    snprintf(text + n, sizeof text - (size_t)n,
             "  At the places that neither had seen they are %.0f and %.0f m off.", a->held_out,
             s->held_out);
    frg_report_paragraph(r, text);
}

static void picture(frg_report *r, const cli *c, const void *state, int full)
{
    (void)c;
    (void)full;
    const mountains *const m = state;
    frg_report_heading(r, "A network learns the heights of mountains");
    if (m->steps == 0) {
        frg_report_paragraph(r, frg_status_sentence(m->over));
        return;
    }
    say_how_it_went(r, m);
    frg_series series[2];
    for (int k = 0; k < 2; k++) {
        const contender *const run = &m->run[m->best[k]];
        series[k] =
            (frg_series){.name = NAMES[k], .n = m->steps, .x = run->seconds, .y = run->error};
    }
    const frg_plot plot = {.caption = "Error by time, each optimizer at its best rate of three; "
                                      "the line is where AdamW ends",
                           .x_label = "seconds",
                           .y_label = "error, metres",
                           .reference = m->run[m->best[0]].error[m->steps - 1],
                           .n_series = 2,
                           .series = series};
    frg_report_plot(r, &plot);
}

/** What a step of SOAP takes of the time of one of AdamW. */
static double cost_of_step(const mountains *m)
{
    double seconds[2] = {0, 0};
    for (int k = 0; k < RUNS; k++) {
        seconds[k / RATES] += m->run[k].seconds[m->steps - 1];
    }
    return seconds[1] / seconds[0];
}

static void settings_of(frg_report *r, const mountains *m)
{
    char text[160];
    snprintf(text, sizeof text, "2-%d-%d-1, tanh, the same weights at the start of every run",
             HIDDEN, HIDDEN);
    frg_report_fact(r, "Network", text);
    snprintf(
        text, sizeof text,
        "%lld places to learn from, %lld kept back; %d random ones a batch, the same in every run",
        (long long)m->learnt, (long long)(m->n - m->learnt), BATCH);
    frg_report_fact(r, "Data", text);
    frg_report_fact(r, "AdamW", "a constant rate, beta1 0.9, beta2 0.95, no weight decay");
    frg_report_fact(r, "SOAP",
                    "the same, and eigenbases of the gradients' factors, refreshed every 10 steps");
    if (m->steps > 0) {
        snprintf(text, sizeof text, "SOAP's takes %.2f of the time of AdamW's", cost_of_step(m));
        frg_report_fact(r, "A step", text);
    }
    frg_report_fact(r, "Clock", "one thread for the network; the runs take their steps by turns");
}

static void table(frg_report *r, const mountains *m)
{
    static const char *const columns[] = {"optimizer", "rate", "error, m", "at places kept back, m",
                                          "time"};
    char a[32];
    frg_report_table_open(
        r, "Errors are roots of mean squares; the first of the last steps, by their running mean");
    for (int k = 0; k < 5; k++) {
        frg_report_table_column(r, columns[k], k ? FRG_RIGHT : FRG_LEFT);
    }
    for (int k = 0; k < RUNS && m->steps > 0; k++) {
        const contender *const run = &m->run[k];
        frg_report_cell_text(r, NAMES[k / RATES]);
        frg_report_cell_number(r, RATE[k % RATES], 2);
        frg_report_cell_number(r, run->error[m->steps - 1], 3);
        frg_report_cell_number(r, run->held_out, 3);
        frg_report_cell_text(r, seconds_text(run->seconds[m->steps - 1], a));
    }
    frg_report_table_close(r);
}

static void by_step(frg_report *r, const mountains *m)
{
    frg_series series[2];
    for (int k = 0; k < 2; k++) {
        series[k] = (frg_series){.name = NAMES[k], .n = m->steps, .y = m->run[m->best[k]].error};
    }
    const frg_plot plot = {.caption = "The same by step",
                           .x_label = "step",
                           .y_label = "error, metres",
                           .reference = m->run[m->best[0]].error[m->steps - 1],
                           .n_series = 2,
                           .series = series};
    frg_report_plot(r, &plot);
}

static void report(frg_report *r, cli *c, void *state, int full)
{
    const mountains *const m = state;
    (void)c;
    frg_report_heading(r, "Heights of mountains: AdamW beside SOAP");
    frg_report_paragraph(
        r, "How high is the ground at a place in the mountains about Jacksboro, Tennessee?  A "
           "network learns it from east and south alone.  SOAP is Adam in the eigenbases of the "
           "gradients' second moments.");
    settings_of(r, m);
    table(r, m);
    if (full && m->steps > 0) {
        by_step(r, m);
    }
}

static void json(frg_json *j, const cli *c, const void *state)
{
    const mountains *const m = state;
    const int last = m->steps - 1;
    (void)c;
    frg_json_open_object(j, NULL);
    frg_json_string(j, "job", "heights of mountains");
    frg_json_integer(j, "steps", m->steps);
    frg_json_string(j, "status", frg_status_name(m->over));
    frg_json_open_array(j, "runs");
    for (int k = 0; k < RUNS && last >= 0; k++) {
        const contender *const run = &m->run[k];
        frg_json_open_object(j, NULL);
        frg_json_string(j, "optimizer", NAMES[k / RATES]);
        frg_json_number(j, "lr", RATE[k % RATES]);
        frg_json_number(j, "error_metres", run->error[last]);
        frg_json_number(j, "held_out_metres", run->held_out);
        frg_json_number(j, "seconds", run->seconds[last]);
        frg_json_bool(j, "best", m->best[k / RATES] == k);
        frg_json_close_object(j);
    }
    frg_json_close_array(j);
    if (last >= 0 && m->reached <= m->steps) {
        frg_json_integer(j, "soap_steps_to_adamw_error", m->reached);
        frg_json_number(j, "soap_seconds_to_adamw_error",
                        m->run[m->best[1]].seconds[m->reached - 1]);
    }
    frg_json_close_object(j);
}

static int exit_code(const void *state)
{
    const mountains *const m = state;
    return frg_status_exit_code(m->over);
}

static void release(void *state)
{
    mountains *const m = state;
    if (m) {
        for (int k = 0; k < RUNS; k++) {
            frg_soap_destroy(m->run[k].soap);
            mlp_destroy(&m->run[k].net);
        }
        free(m->place);
        free(m->height);
        free(m);
    }
}

const tour_part tour_soap = {.run = run,
                             .picture = picture,
                             .report = report,
                             .json = json,
                             .exit_code = exit_code,
                             .release = release};
