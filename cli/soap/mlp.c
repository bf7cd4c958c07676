/* mlp.c - forward and backward of a small network, and the loop that trains it.
 *
 * Products are tiles of 4 rows whose inner loop runs along a row, compiled for three CPU levels;
 * rows are shared by the threads, so bits do not depend on their number. */
#include "soap/mlp.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli_checkpoint.h"
#include "cli_worker.h"
#include "soap/soap_job.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#else
#define CLONES
#endif

/** c (4 rows of n) += a b for 4 rows of a: a[r step + p apart] times row p of b. */
CLONES static void four_rows(int64_t rows, int64_t k, int64_t n, const float *restrict a,
                             int64_t row_step, int64_t step, const float *restrict b,
                             float *restrict c)
{
    static const float zero[1] = {0};
    for (int64_t p = 0; p < k; p++) {
        const float *const restrict row = b + p * n;
        const float x0 = a[p * step], x1 = rows > 1 ? a[row_step + p * step] : zero[0];
        const float x2 = rows > 2 ? a[2 * row_step + p * step] : zero[0];
        const float x3 = rows > 3 ? a[3 * row_step + p * step] : zero[0];
        if (rows == 4) {
            for (int64_t j = 0; j < n; j++) {
                c[j] += x0 * row[j];
                c[n + j] += x1 * row[j];
                c[2 * n + j] += x2 * row[j];
                c[3 * n + j] += x3 * row[j];
            }
            continue;
        }
        const float x[4] = {x0, x1, x2, x3};
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t j = 0; j < n; j++) {
                c[r * n + j] += x[r] * row[j];
            }
        }
    }
}

/** c (m x n) = a b; a's element (i, p) lies at i row_step + p step. */
static void product(int threads, int64_t m, int64_t k, int64_t n, const float *a, int64_t row_step,
                    int64_t step, const float *b, float *c)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < m; i += 4) {
        const int64_t rows = m - i < 4 ? m - i : 4;
        memset(c + i * n, 0, (size_t)(rows * n) * sizeof *c);
        four_rows(rows, k, n, a + i * row_step, row_step, step, b, c + i * n);
    }
}

uint64_t mlp_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int mlp_create(mlp *net, const cli *c, int layers, const int64_t size[], int64_t batch,
               uint64_t seed)
{
    *net = (mlp){.layers = layers, .batch = batch};
    int64_t floats = 0;
    for (int l = 0; l <= layers; l++) {
        net->size[l] = size[l];
        floats += 2 * batch * size[l] + (l > 0 ? 3 * size[l - 1] * size[l] + 2 * size[l] : 0);
    }
    net->memory = calloc((size_t)floats, sizeof(float));
    if (!net->memory) {
        return cli_fail_memory(c);
    }
    float *at = net->memory;
    uint64_t state = seed;
    for (int l = 0; l <= layers; l++) {
        net->a[l] = at;
        net->d[l] = at + batch * size[l];
        at += 2 * batch * size[l];
        if (l == 0) {
            continue;
        }
        const int64_t count = size[l - 1] * size[l];
        net->w[l - 1] = at;
        net->gw[l - 1] = at + count;
        net->b[l - 1] = at + 3 * count; /* between them: W' for the way back */
        net->gb[l - 1] = at + 3 * count + size[l];
        at += 3 * count + 2 * size[l];
        const double range = sqrt(6.0 / (double)(size[l - 1] + size[l]));
        for (int64_t i = 0; i < count; i++) {
            const double u = (double)(mlp_random(&state) >> 11) * 0x1p-53;
            net->w[l - 1][i] = (float)(range * (2 * u - 1));
        }
    }
    return 0;
}

void mlp_destroy(mlp *net)
{
    free(net->memory);
    net->memory = NULL;
}

static double softmax_rows(const mlp *net, const int32_t *labels)
{
    const int64_t n = net->size[net->layers];
    double loss = 0;
    for (int64_t i = 0; i < net->batch; i++) {
        const float *const a = net->a[net->layers] + i * n;
        float *const d = net->d[net->layers] + i * n;
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; j++) {
            top = (double)a[j] > top ? (double)a[j] : top;
        }
        for (int64_t j = 0; j < n; j++) {
            sum += exp((double)a[j] - top);
        }
        for (int64_t j = 0; j < n; j++) {
            const double p = exp((double)a[j] - top) / sum;
            d[j] = (float)((p - (j == labels[i])) / (double)net->batch);
        }
        loss += log(sum) + top - (double)a[labels[i]];
    }
    return loss / (double)net->batch;
}

/** a[layers] <- what the network makes of the rows in a[0]. */
static void forward(mlp *net, int threads)
{
    const int64_t batch = net->batch;
    for (int l = 0; l < net->layers; l++) {
        const int64_t in = net->size[l], out = net->size[l + 1];
        float *const a = net->a[l + 1];
        product(threads, batch, in, out, net->a[l], in, 1, net->w[l], a);
        for (int64_t i = 0; i < batch; i++) {
            for (int64_t j = 0; j < out; j++) {
                const float x = a[i * out + j] + net->b[l][j];
                a[i * out + j] = l + 1 < net->layers ? tanhf(x) : x;
            }
        }
    }
}

/** All gradients from d[layers], that of the loss in the outputs. */
static void backward(mlp *net, int threads)
{
    const int64_t batch = net->batch;
    for (int l = net->layers - 1; l >= 0; l--) {
        const int64_t in = net->size[l], out = net->size[l + 1];
        const float *const d = net->d[l + 1];
        product(threads, in, batch, out, net->a[l], 1, in, d, net->gw[l]);
        for (int64_t j = 0; j < out; j++) {
            net->gb[l][j] = 0;
        }
        for (int64_t i = 0; i < batch; i++) {
            for (int64_t j = 0; j < out; j++) {
                net->gb[l][j] += d[i * out + j];
            }
        }
        if (l == 0) {
            break;
        }
        float *const turned = net->gw[l] + in * out;
        for (int64_t i = 0; i < in; i++) {
            for (int64_t j = 0; j < out; j++) {
                turned[j * in + i] = net->w[l][i * out + j];
            }
        }
        product(threads, batch, out, in, d, out, 1, turned, net->d[l]);
        for (int64_t i = 0; i < batch * in; i++) {
            const float y = net->a[l][i];
            net->d[l][i] *= 1 - y * y;
        }
    }
}

double mlp_loss(mlp *net, const int32_t *labels, int threads)
{
    forward(net, threads);
    const double loss = softmax_rows(net, labels);
    backward(net, threads);
    return loss;
}

double mlp_squares(mlp *net, const float *target, int64_t rows, int threads)
{
    const int64_t n = net->size[net->layers];
    double sum = 0;
    forward(net, threads);
    for (int64_t i = 0; i < rows * n; i++) {
        const double gap = (double)net->a[net->layers][i] - (double)target[i];
        net->d[net->layers][i] = (float)(2 * gap / (double)(rows * n));
        sum += gap * gap;
    }
    memset(net->d[net->layers] + rows * n, 0, (size_t)((net->batch - rows) * n) * sizeof(float));
    backward(net, threads);
    return sum / (double)(rows * n);
}

/* ---- data ------------------------------------------------------------------------------------ */

/** Classes in ascending order of their values. */
static int take_labels(training_set *set, cli *c, const frg_column *column)
{
    double *const sorted = malloc((size_t)set->rows * sizeof *sorted + 1);
    if (!sorted) {
        return cli_fail_memory(c);
    }
    for (int64_t i = 0; i < set->rows; i++) {
        sorted[i] = cli_number_at(column, i);
    }
    sort_numbers(sorted, set->rows);
    for (int64_t i = 0; i < set->rows; i++) {
        if (set->classes == 0 || sorted[i] != sorted[set->classes - 1]) {
            sorted[set->classes++] = sorted[i];
        }
    }
    for (int64_t i = 0; i < set->rows; i++) {
        const double x = cli_number_at(column, i);
        const int64_t at = count_below(sorted, set->classes, x);
        set->label[i] = at < set->classes && sorted[at] == x ? (int32_t)at : 0;
    }
    free(sorted);
    return 0;
}

/** Columns to mean 0 and standard deviation 1; constant ones to 0. */
static void take_column(training_set *set, const frg_column *column, int64_t at)
{
    double sum = 0, square = 0;
    const double n = (double)set->rows;
    for (int64_t i = 0; i < set->rows; i++) {
        sum += cli_number_at(column, i);
    }
    for (int64_t i = 0; i < set->rows; i++) {
        const double d = cli_number_at(column, i) - sum / n;
        square += d * d;
    }
    const double scale = square > 0 ? 1 / sqrt(square / n) : 0;
    for (int64_t i = 0; i < set->rows; i++) {
        set->x[i * set->inputs + at] = (float)((cli_number_at(column, i) - sum / n) * scale);
    }
}

static int fill_set(training_set *set, cli *c, const char *path, const frg_table *table,
                    const char *label)
{
    const frg_column *const y = frg_table_find(table, label);
    if (!y) {
        return cli_no_column(c, path, table, label);
    }
    set->rows = frg_table_rows(table);
    for (int64_t k = 0; k < frg_table_columns(table); k++) {
        const frg_column *const column = frg_table_column(table, k);
        set->inputs += column != y;
        if (column->n_missing > 0) {
            return cli_fail(c, "E_TYPE", column->name, "give numbers without gaps",
                            "column '%s' of %s has missing values", column->name, path);
        }
        if (column != y && column->kind == FRG_CATEGORY) {
            return cli_refuse_text(c, path, column, "mend the cell, or leave the column out");
        }
    }
    if (set->rows < 1 || set->inputs < 1) {
        return cli_fail(c, "E_NO_OBS", label, NULL,
                        "there are no rows or no columns to learn from");
    }
    set->x = calloc((size_t)(set->rows * set->inputs), sizeof *set->x);
    set->label = calloc((size_t)set->rows, sizeof *set->label);
    if (!set->x || !set->label) {
        return cli_fail_memory(c);
    }
    int64_t at = 0;
    for (int64_t k = 0; k < frg_table_columns(table); k++) {
        const frg_column *const column = frg_table_column(table, k);
        if (column != y) {
            take_column(set, column, at++);
        }
    }
    return take_labels(set, c, y);
}

int training_set_read(training_set *set, cli *c, const char *path, const char *label)
{
    *set = (training_set){0};
    frg_table *table = NULL;
    int code = cli_read_table(c, path, &table);
    if (!code) {
        code = fill_set(set, c, path, table, label);
    }
    frg_table_destroy(table);
    return code;
}

void training_set_destroy(training_set *set)
{
    free(set->x);
    free(set->label);
    *set = (training_set){0};
}

/* ---- training -------------------------------------------------------------------------------- */

enum { BATCH = 512 };

static int create_net(mlp *net, const cli *c, const training_set *set)
{
    const int64_t sizes[4] = {set->inputs, 256, 256, set->classes};
    return mlp_create(net, c, 3, sizes, BATCH, c->set.context.seed + 1);
}

int mlp_add_params(const cli *c, frg_soap *soap, const mlp *net)
{
    for (int l = 0; l < net->layers; l++) {
        char name[32];
        const int64_t in = net->size[l], out = net->size[l + 1];
        snprintf(name, sizeof name, "layer%d.weight", l + 1);
        frg_status s =
            frg_soap_add_param(soap, 0, frg_matrix(net->w[l], FRG_F32, in, out, out), name, NULL);
        if (s >= 0) {
            snprintf(name, sizeof name, "layer%d.bias", l + 1);
            s = frg_soap_add_param(soap, 0, frg_vector(net->b[l], FRG_F32, out), name, NULL);
        }
        if (s < 0) {
            return cli_fail_library(c, s);
        }
    }
    return 0;
}

void mlp_gradients(const mlp *net, frg_array *grads)
{
    for (int l = 0; l < net->layers; l++) {
        const int64_t in = net->size[l], out = net->size[l + 1];
        grads[2 * l] = frg_matrix(net->gw[l], FRG_F32, in, out, out);
        grads[2 * l + 1] = frg_vector(net->gb[l], FRG_F32, out);
    }
}

static void draw_batch(const training_set *set, mlp *net, int32_t *labels, uint64_t *state)
{
    for (int64_t i = 0; i < net->batch; i++) {
        const int64_t row = (int64_t)(mlp_random(state) % (uint64_t)set->rows);
        memcpy(net->a[0] + i * set->inputs, set->x + row * set->inputs,
               (size_t)set->inputs * sizeof *set->x);
        labels[i] = set->label[row];
    }
}

/** What a run stands at between two steps, besides the network and the optimizer. */
typedef struct {
    int64_t steps;
    uint64_t random; /* of the next batch */
    double smoothed, seconds;
} standing;

/** A run under way. */
typedef struct {
    training_run *run;
    keeper *keeper;
    worker *worker;
    frg_soap *soap;
    mlp *net;
    uint64_t random;
} training;

static void lock(const training *t)
{
    if (t->worker) {
        worker_lock(t->worker);
    }
}

static void unlock(const training *t)
{
    if (t->worker) {
        worker_unlock(t->worker);
    }
}

/** Sections "w0", "b0", "w1", ..: the parameters of the network. */
typedef struct {
    char name[3];
    float *at;
    int64_t count;
} section;

static int list_sections(const mlp *net, section sections[2 * MLP_LAYERS_MOST])
{
    for (int l = 0; l < net->layers; l++) {
        const int64_t out = net->size[l + 1];
        sections[2 * l] = (section){{'w', (char)('0' + l)}, net->w[l], net->size[l] * out};
        sections[2 * l + 1] = (section){{'b', (char)('0' + l)}, net->b[l], out};
    }
    return 2 * net->layers;
}

/** The state between two steps. */
typedef struct training_moment {
    standing now;
    const mlp *net; /* for the sizes alone */
    float *parameters;
    void *optimizer;
    int64_t bytes; /* of it */
} moment;

static void drop_moment(moment *m)
{
    if (m) {
        free(m->parameters);
        free(m->optimizer);
        free(m);
    }
}

static frg_status take_moment(const training *t, moment **out)
{
    section sections[2 * MLP_LAYERS_MOST];
    const int n = list_sections(t->net, sections);
    int64_t count = 0, bytes = 0;
    for (int i = 0; i < n; i++) {
        count += sections[i].count;
    }
    frg_status status = frg_soap_save_bytes(t->soap, NULL, 0, &bytes);
    moment *const m = calloc(1, sizeof *m);
    *out = m;
    if (m && status >= 0) {
        m->parameters = malloc((size_t)count * sizeof(float) + 1);
        m->optimizer = malloc((size_t)bytes + 1);
    }
    if (status < 0 || !m || !m->parameters || !m->optimizer) {
        return status < 0 ? status : FRG_NO_MEMORY;
    }
    float *to = m->parameters;
    for (int i = 0; i < n; to += sections[i++].count) {
        memcpy(to, sections[i].at, (size_t)sections[i].count * sizeof *to);
    }
    m->net = t->net;
    m->now = (standing){t->run->steps, t->random, t->run->smoothed, now_seconds() - t->run->began};
    return frg_soap_save_bytes(t->soap, m->optimizer, bytes, &m->bytes);
}

static frg_status write_moment(const training_run *run, keeper *k, const moment *m)
{
    section sections[2 * MLP_LAYERS_MOST];
    const int n = list_sections(m->net, sections);
    frg_checkpoint *state;
    frg_status status = keeper_begin(k, &state);
    if (status >= 0) {
        status = frg_checkpoint_put(state, "run", &m->now, sizeof m->now);
    }
    if (status >= 0) {
        status = frg_checkpoint_put(state, "trace", run->trace,
                                    m->now.steps * (int64_t)sizeof *run->trace);
    }
    if (status >= 0) {
        status = frg_checkpoint_put(state, "soap", m->optimizer, m->bytes);
    }
    const float *from = m->parameters;
    for (int i = 0; i < n && status >= 0; from += sections[i++].count) {
        status = frg_checkpoint_put(state, sections[i].name, from,
                                    sections[i].count * (int64_t)sizeof *from);
    }
    return keeper_write(k, state, status);
}

/** Writes a state where one is due. */
static frg_status keep(const training *t, int stopped)
{
    if (!t->keeper || !keeper_is_due(t->keeper, stopped)) {
        return FRG_OK;
    }
    moment *m;
    frg_status status = take_moment(t, &m);
    if (status >= 0) {
        status = write_moment(t->run, t->keeper, m);
        t->run->kept = status >= 0 ? t->run->steps : t->run->kept;
    }
    drop_moment(m);
    return status;
}

/** Half of a step is no state to go on from: before one that may be left in the middle the state is
 *  put aside. */
static frg_status put_aside(const training *t, double last_step)
{
    static const double LONG = 0.02; /* seconds: a stop waits for the end of shorter steps */
    training_run *const run = t->run;
    moment *m = NULL;
    if (!t->worker || !t->keeper) {
        return FRG_OK;
    }
    const frg_status status =
        last_step > LONG && run->kept != run->steps ? take_moment(t, &m) : FRG_OK;
    drop_moment(run->between);
    run->between = m;
    return status;
}

int training_may_stop(const training_run *run)
{
    return run->kept == run->steps || run->between;
}

frg_status training_keep(const training_run *run, keeper *k)
{
    return run->kept == run->steps ? FRG_OK : write_moment(run, k, run->between);
}

/** Copies a section of exactly that many bytes. */
static int take_section(const frg_checkpoint *state, const char *name, void *to, int64_t bytes)
{
    int64_t count = 0;
    const void *const from = frg_checkpoint_get(state, name, &count);
    if (!from || count != bytes) {
        return 0;
    }
    memcpy(to, from, (size_t)bytes);
    return 1;
}

/** The run goes on from `state`. */
static int take_up(training *t, const cli *c, const frg_checkpoint *state, int steps)
{
    standing was;
    section sections[2 * MLP_LAYERS_MOST];
    const int n = list_sections(t->net, sections);
    int64_t bytes = 0;
    int good = take_section(state, "run", &was, sizeof was) && was.steps >= 0 && was.steps <= steps;
    good = good &&
           take_section(state, "trace", t->run->trace, was.steps * (int64_t)sizeof *t->run->trace);
    for (int i = 0; i < n && good; i++) {
        good = take_section(state, sections[i].name, sections[i].at,
                            sections[i].count * (int64_t)sizeof(float));
    }
    const void *const optimizer = frg_checkpoint_get(state, "soap", &bytes);
    if (!good || !optimizer) {
        return cli_fail(c, "E_CHECKPOINT", c->set.checkpoint, NULL,
                        "'%s' holds no state of this training", c->set.checkpoint);
    }
    t->run->steps = (int)was.steps;
    t->run->kept = -1; /* `resume FILE --checkpoint OTHER` */
    t->run->smoothed = was.smoothed;
    t->run->began -= was.seconds;
    t->random = was.random;
    const frg_status status = frg_soap_load_bytes(t->soap, optimizer, bytes, c->set.checkpoint);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

/** One step; `last` is how long the one before took, then how long this did. */
static frg_status step(training *t, const training_set *set, int32_t *labels, int threads,
                       const frg_array grads[], double *last)
{
    training_run *const run = t->run;
    lock(t);
    frg_status status = put_aside(t, *last);
    unlock(t);
    const double start = now_seconds();
    draw_batch(set, t->net, labels, &t->random);
    const double loss = mlp_loss(t->net, labels, threads);
    frg_soap_report report = {.long_axes = run->long_axes};
    if (status >= 0) {
        status = frg_soap_step(t->soap, grads, 2 * t->net->layers, &report);
    }
    *last = now_seconds() - start;
    lock(t);
    if (status >= 0) {
        run->smoothed = run->steps == 0 ? loss : 0.9 * run->smoothed + 0.1 * loss;
        run->trace[run->steps++] = loss;
        run->long_axes = report.long_axes;
        status = keep(t, 0);
    }
    unlock(t);
    return status;
}

static int train(training *t, cli *c, const training_set *set, int32_t *labels, int steps,
                 double target)
{
    frg_array grads[2 * MLP_LAYERS_MOST];
    training_run *const run = t->run;
    const int threads = frg_threads(c->ctx);
    double last = (double)INFINITY;
    frg_status status = FRG_OK, over = FRG_OK;
    mlp_gradients(t->net, grads);
    status = soap_prepare(c, t->soap, &run->shown);
    t->random = 1000003 * c->set.context.seed + 17;
    lock(t);
    run->began = now_seconds();
    const int code = t->keeper && c->resumed ? take_up(t, c, c->resumed, steps) : 0;
    unlock(t);
    if (code) {
        return code;
    }
    while (status >= 0 && run->steps < steps &&
           !(target > 0 && run->steps > 0 && run->smoothed <= target) &&
           (over = cli_over(c)) == FRG_OK) {
        status = step(t, set, labels, threads, grads, &last);
    }
    lock(t);
    run->status = over;
    if (status >= 0 && over != FRG_OK) {
        status = keep(t, 1);
    }
    run->seconds = now_seconds() - run->began;
    drop_moment(run->between);
    run->between = NULL; /* there is no step to leave any more */
    unlock(t);
    return status < 0 ? cli_fail_library(c, status) : 0;
}

int training_run_make(training_run *run, cli *c, const training_set *set, const frg_soap_opts *o,
                      int steps, double target, keeper *k, worker *w)
{
    mlp net;
    training t = {.run = run, .keeper = k, .worker = w, .net = &net};
    int code = create_net(&net, c, set);
    int32_t *const labels = malloc(BATCH * sizeof *labels);
    lock(&t);
    *run = (training_run){.trace = malloc((size_t)(steps + 1) * sizeof *run->trace)};
    unlock(&t);
    if (!code && (!labels || !run->trace)) {
        code = cli_fail_memory(c);
    }
    if (!code) {
        const frg_status s = frg_soap_create(&t.soap, c->ctx, o);
        code = s < 0 ? cli_fail_library(c, s) : mlp_add_params(c, t.soap, &net);
    }
    if (!code) {
        code = train(&t, c, set, labels, steps, target);
    }
    frg_soap_destroy(t.soap);
    free(labels);
    mlp_destroy(&net);
    return code;
}

int training_estimate(cli *c, const training_set *set, const frg_soap_opts *o)
{
    mlp net;
    frg_soap *soap = NULL;
    int code = create_net(&net, c, set);
    if (!code) {
        const frg_status s = frg_soap_create(&soap, c->ctx, o);
        code = s < 0 ? cli_fail_library(c, s) : mlp_add_params(c, soap, &net);
    }
    code = code ? code : soap_show_size(c, 1, &soap);
    frg_soap_destroy(soap);
    mlp_destroy(&net);
    return code;
}

void training_run_destroy(training_run *run)
{
    free(run->trace);
    *run = (training_run){0};
}
