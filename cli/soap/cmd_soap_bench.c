/* cmd_soap_bench.c - fourge soap bench, fourge bench soap: the optimizer's step on the matrices of
 * transformer layers.
 *
 * Per layer (3h x h), (h x h), (f x h), (h x f).  Gradients: gaussian, 1e-3 N; powerlaw, 1e-3 U
 * diag(1/i) N diag(1/j) V' with fixed rotations U and V, made of log2(n) rounds of rotations of
 * pairs, so that one costs n log n.  Gradients are made outside the clock.  Each refresh estimates
 * the orthogonality of its basis within the timed step; after the run every basis is checked in
 * full.
 *
 * Nothing outlives the command but figures of whole steps, so that a stop ends it within a step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_lines.h"
#include "cli_worker.h"
#include "soap/soap_job.h"

enum { PARAMS_A_LAYER = 4, ROUNDS_MOST = 20 };

typedef struct bench_job {
    worker worker;
    int (*show)(struct bench_job *j, int code); /* the figures of the steps that are done */
    FILE *to;
    int64_t n_params, done; /* steps that were timed */
    frg_status status;
    int shown; /* warnings that were shown before the first step */
    int64_t (*shape)[2];
    float **w, **g;
    frg_array *grads;
    /* --batched-qr on: one handle, whose step refreshes all; off: one for every parameter, p of
     * handle p % handles */
    int64_t handles;
    frg_soap **soap;
    double *seconds;
    frg_soap_report sum; /* counts and seconds of the timed steps */
    double orthogonality, gflops;
    size_t state, all;
} bench_job;

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/** About normal: the sum of 12 uniforms would do; this is Box and Muller's. */
static float normal(uint64_t *state)
{
    const double u = ((double)(next_random(state) >> 11) + 0.5) * 0x1p-53;
    const double v = ((double)(next_random(state) >> 11) + 0.5) * 0x1p-53;
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

/** x (`count` vectors, elements `step` apart, vectors `apart`) rotated; `n` long. */
static void rotate(uint64_t seed, int64_t n, int64_t step, int64_t count, int64_t apart, float *x)
{
    for (int64_t s = 1; s < n; s *= 2) {
        for (int64_t i = 0; i < n; i++) {
            if ((i / s) % 2 || i + s >= n) {
                continue;
            }
            uint64_t state = seed ^ (uint64_t)(i * 64 + s);
            const double angle = 6.283185307179586 * (double)(next_random(&state) >> 11) * 0x1p-53;
            const float cosine = (float)cos(angle), sine = (float)sin(angle);
            for (int64_t k = 0; k < count; k++) {
                float *const a = x + i * step + k * apart, *const b = a + s * step;
                const float u = *a, v = *b;
                *a = cosine * u - sine * v;
                *b = sine * u + cosine * v;
            }
        }
    }
}

static void make_gradient(const cli *c, const bench_job *j, int64_t p, int64_t t)
{
    const int64_t m = j->shape[p][0], n = j->shape[p][1];
    float *const g = j->g[p];
    uint64_t state = (c->set.context.seed + 1) * 0x100000001b3u + (uint64_t)(p * 1000003 + t);
    for (int64_t i = 0; i < m * n; i++) {
        g[i] = 1e-3f * normal(&state);
    }
    if (c->set.soap_job.gradients == 0) { /* power law */
        for (int64_t i = 0; i < m * n; i++) {
            g[i] /= (float)((i / n + 1) * (i % n + 1));
        }
        rotate(77, m, n, n, 1, g);
        rotate(78, n, 1, m, n, g);
    }
}

static int prepare(cli *c, bench_job *j)
{
    const int64_t h = c->set.soap_job.hidden, f = c->set.soap_job.mlp;
    const int64_t shapes[PARAMS_A_LAYER][2] = {{3 * h, h}, {h, h}, {f, h}, {h, f}};
    j->n_params = (int64_t)c->set.soap_job.layers * PARAMS_A_LAYER;
    const size_t n = (size_t)j->n_params;
    j->shape = calloc(n, sizeof *j->shape);
    j->w = calloc(n, sizeof *j->w);
    j->g = calloc(n, sizeof *j->g);
    j->grads = calloc(n, sizeof *j->grads);
    j->seconds = calloc((size_t)c->set.soap_job.steps, sizeof *j->seconds);
    j->handles = c->set.soap_job.batched ? 1 : j->n_params;
    j->soap = calloc((size_t)j->handles, sizeof *j->soap);
    if (!j->shape || !j->w || !j->g || !j->grads || !j->seconds || !j->soap) {
        return cli_fail_memory(c);
    }
    frg_soap_opts o;
    soap_options(c, &o);
    frg_status s = FRG_OK;
    for (int64_t i = 0; i < j->handles && s >= 0; i++) {
        s = frg_soap_create(&j->soap[i], c->ctx, &o);
    }
    for (int64_t p = 0; p < j->n_params && s >= 0; p++) {
        memcpy(j->shape[p], shapes[p % PARAMS_A_LAYER], sizeof j->shape[p]);
        const int64_t rows = j->shape[p][0], columns = j->shape[p][1];
        j->w[p] = calloc((size_t)(rows * columns), sizeof(float));
        j->g[p] = calloc((size_t)(rows * columns), sizeof(float));
        if (!j->w[p] || !j->g[p]) {
            return cli_fail_memory(c);
        }
        j->grads[p] = frg_matrix(j->g[p], FRG_F32, rows, columns, columns);
        s = frg_soap_add_param(j->soap[p % j->handles], 0,
                               frg_matrix(j->w[p], FRG_F32, rows, columns, columns), NULL, NULL);
    }
    return s < 0 ? cli_fail_library(c, s) : 0;
}

static void add_report(frg_soap_report *sum, const frg_soap_report *r)
{
    sum->due += r->due;
    sum->skipped += r->skipped;
    sum->householder += r->householder;
    sum->single_pass += r->single_pass;
    sum->second_pass += r->second_pass;
    sum->eigh += r->eigh;
    sum->eigh_failures += r->eigh_failures;
    sum->indefinite += r->indefinite;
    sum->lowest_quotient = fmin(sum->lowest_quotient, r->lowest_quotient);
    sum->orthogonality = fmax(sum->orthogonality, r->orthogonality);
    sum->factors_seconds += r->factors_seconds;
    sum->refresh_seconds += r->refresh_seconds;
    sum->project_seconds += r->project_seconds;
    sum->update_seconds += r->update_seconds;
}

/** *over: a stop that was seen between two handles, with --batched-qr off after each parameter. */
static frg_status step_all(const cli *c, const bench_job *j, frg_soap_report *sum, frg_status *over)
{
    const int64_t each = j->n_params / j->handles;
    frg_status s = FRG_OK;
    *sum = (frg_soap_report){0};
    for (int64_t i = 0; i < j->handles && s >= 0 && *over == FRG_OK; i++) {
        frg_soap_report r;
        s = frg_soap_step(j->soap[i], j->grads + i * each, each, &r);
        if (s >= 0) {
            add_report(sum, &r);
        }
        *over = i + 1 < j->handles ? cli_over(c) : FRG_OK;
    }
    return s;
}

static frg_status make_gradients(const cli *c, const bench_job *j, int64_t t)
{
    frg_status status = FRG_OK;
    for (int64_t p = 0; p < j->n_params && status == FRG_OK; p++) {
        make_gradient(c, j, p, t);
        status = cli_over(c);
    }
    return status;
}

static void add_sizes(bench_job *j)
{
    j->state = j->all = 0;
    for (int64_t i = 0; i < j->handles; i++) {
        j->state += frg_soap_state_bytes(j->soap[i]);
        j->all += frg_soap_bytes(j->soap[i]);
    }
}

static int run_steps(cli *c, bench_job *j)
{
    for (int64_t i = 0; i < j->handles; i++) {
        const frg_status s = soap_prepare(c, j->soap[i], &j->shown);
        if (s < 0) {
            return cli_fail_library(c, s);
        }
    }
    for (int64_t t = -(int64_t)c->set.soap_job.warmup; t < c->set.soap_job.steps; t++) {
        frg_status over = make_gradients(c, j, t);
        frg_soap_report r;
        const double start = now_seconds();
        const frg_status s = step_all(c, j, &r, &over);
        const double seconds = now_seconds() - start;
        if (s < 0) {
            return cli_fail_library(c, s);
        }
        worker_lock(&j->worker);
        j->status = over;
        if (t >= 0 && over == FRG_OK) {
            j->seconds[j->done++] = seconds;
            add_report(&j->sum, &r);
        }
        add_sizes(j);
        worker_unlock(&j->worker);
        if (over != FRG_OK) {
            break;
        }
    }
    return 0;
}

/** max |Q'Q - I| of one basis, by the batched QR's own measure would prove little: here by plain
 *  sums. */
static double defect(const float *q, int64_t n)
{
    double worst = 0;
    for (int64_t a = 0; a < n; a++) {
        for (int64_t b = a; b < n; b++) {
            float lane[16] = {0};
            double sum = 0;
            for (int64_t i = 0; i + 16 <= n; i += 16) {
                for (int k = 0; k < 16; k++) {
                    lane[k] += q[a * n + i + k] * q[b * n + i + k];
                }
            }
            for (int k = 0; k < 16; k++) {
                sum += (double)lane[k];
            }
            for (int64_t i = n / 16 * 16; i < n; i++) {
                sum += (double)q[a * n + i] * (double)q[b * n + i];
            }
            worst = fmax(worst, fabs(sum - (a == b)));
        }
    }
    return worst;
}

/** The bases of the first layer, in full; after a stop nobody waits for that. */
static int verify(const cli *c, bench_job *j)
{
    double worst = 0;
    for (int64_t p = 0; p < j->n_params && p < PARAMS_A_LAYER; p++) {
        for (int axis = 0; axis < 2; axis++) {
            char key[8];
            frg_array shape;
            snprintf(key, sizeof key, "Q.%d", axis);
            frg_soap *const soap = j->soap[p % j->handles];
            frg_status s = frg_soap_state_shape(soap, p / j->handles, key, &shape);
            if (s < 0 || shape.ndim == 0) {
                continue;
            }
            const int64_t n = shape.shape[0];
            float *const q = malloc((size_t)(n * n) * sizeof *q);
            if (!q) {
                return cli_fail_memory(c);
            }
            s = frg_soap_state_get(soap, p / j->handles, key,
                                   frg_matrix_columns(q, FRG_F32, n, n, n));
            worst = s < 0 ? (double)NAN : fmax(worst, defect(q, n));
            free(q);
        }
    }
    worker_lock(&j->worker);
    j->orthogonality = worst;
    worker_unlock(&j->worker);
    return 0;
}

/** Of a step that refreshes everything: factors mn(m+n), three pairs of products 6 mn(m+n), K Q and
 *  QR 14/3 n^3. */
static double step_flops(const bench_job *j)
{
    double sum = 0;
    for (int64_t p = 0; p < j->n_params; p++) {
        const double m = (double)j->shape[p][0], n = (double)j->shape[p][1];
        sum += 7 * m * n * (m + n) + 14.0 / 3 * (m * m * m + n * n * n);
    }
    return sum;
}

static void bench_fields(frg_json *out, const cli *c, const bench_job *j)
{
    const double steps = (double)(j->done > 0 ? j->done : 1);
    const double threads = (double)frg_threads(c->ctx);
    double most = 0, total = 0;
    for (int64_t t = 0; t < j->done; t++) {
        most = fmax(most, j->seconds[t]);
        total += j->seconds[t];
    }
    const double median = median_of(j->seconds, (int)j->done);
    frg_json_integer(out, "layers", c->set.soap_job.layers);
    frg_json_integer(out, "hidden", c->set.soap_job.hidden);
    frg_json_integer(out, "mlp", c->set.soap_job.mlp);
    frg_json_integer(out, "steps", j->done);
    frg_json_string(out, "status", frg_status_name(j->status));
    frg_json_string(out, "gradients", c->set.soap_job.gradients ? "gaussian" : "powerlaw");
    frg_json_number(out, "median_step_seconds", median);
    frg_json_number(out, "max_step_seconds", most);
    frg_json_open_object(out, "phases");
    frg_json_number(out, "factors", j->sum.factors_seconds / steps / threads);
    frg_json_number(out, "refresh", j->sum.refresh_seconds / steps / threads);
    frg_json_number(out, "project", j->sum.project_seconds / steps / threads);
    frg_json_number(out, "update", j->sum.update_seconds / steps / threads);
    frg_json_close_object(out);
    frg_json_number(out, "max_orthogonality_error", j->orthogonality);
    frg_json_number(out, "orthogonality_estimate", j->sum.orthogonality);
    frg_json_open_object(out, "refresh");
    const int64_t refreshed = j->sum.householder + j->sum.single_pass + j->sum.second_pass;
    frg_json_integer(out, "batched", j->handles == 1 ? refreshed : 0);
    frg_json_integer(out, "single_pass", j->sum.single_pass);
    frg_json_integer(out, "second_pass", j->sum.second_pass);
    frg_json_integer(out, "householder", j->sum.householder);
    frg_json_integer(out, "indefinite", j->sum.indefinite);
    frg_json_number(out, "lowest_quotient", j->sum.lowest_quotient);
    frg_json_integer(out, "skipped", j->sum.skipped);
    frg_json_close_object(out);
    frg_json_number(out, "gflops", 1e-9 * step_flops(j) / median);
    frg_json_integer(out, "state_bytes", (int64_t)j->state);
    frg_json_integer(out, "bytes", (int64_t)j->all);
    frg_json_open_object(out, "seconds");
    frg_json_number(out, "total", total);
    frg_json_close_object(out);
}

static void bench_json(frg_json *out, const cli *c, const void *job)
{
    json_head(out, "fourge.soap.bench/1");
    bench_fields(out, c, job);
    json_foot(out, c);
}

static void bench_text(frg_report *r, const cli *c, const void *job)
{
    (void)c;
    const bench_job *j = job;
    char a[32];
    double most = 0;
    for (int64_t t = 0; t < j->done; t++) {
        most = fmax(most, j->seconds[t]);
    }
    frg_report_fact(r, "Parameters", grouped(j->n_params, a));
    frg_report_fact(r, "Steps", grouped(j->done, a));
    if (j->status != FRG_OK) {
        frg_report_fact(r, "Result", frg_status_sentence(j->status));
    }
    frg_report_fact(r, "Median step", seconds_text(median_of(j->seconds, (int)j->done), a));
    frg_report_fact(r, "Slowest step", seconds_text(most, a));
    if (j->status == FRG_OK) {
        frg_report_fact_number(r, "Orthogonality", j->orthogonality, 2);
    }
    frg_report_fact(r, "State", bytes_text((double)j->state, a));
    frg_report_fact(r, "In all", bytes_text((double)j->all, a));
}

static void release(bench_job *j)
{
    for (int64_t i = 0; i < j->handles && j->soap; i++) {
        frg_soap_destroy(j->soap[i]);
    }
    free(j->soap);
    for (int64_t p = 0; p < j->n_params && j->w && j->g; p++) {
        free(j->w[p]);
        free(j->g[p]);
    }
    free(j->shape);
    free(j->w);
    free(j->g);
    free(j->grads);
    free(j->seconds);
}

static int work(void *job)
{
    bench_job *const j = job;
    cli *const c = j->worker.c;
    int code = prepare(c, j);
    code = code ? code : run_steps(c, j);
    return code || j->status != FRG_OK ? code : verify(c, j);
}

static int abandon(void *job, frg_status why)
{
    bench_job *const j = job;
    j->status = why;
    j->orthogonality = (double)NAN;
    return j->show(j, 0);
}

/** Runs the job and shows it; the exit code. */
static int run(cli *c, int (*show)(bench_job *j, int code), FILE *to)
{
    bench_job j = {.worker = {.c = c, .work = work, .abandon = abandon, .job = &j},
                   .show = show,
                   .to = to,
                   .orthogonality = (double)NAN};
    const int code = show(&j, worker_run(&j.worker));
    release(&j);
    return code;
}

static int show_steps(bench_job *j, int code)
{
    cli *const c = j->worker.c;
    code = code || j->done > 0 ? code : cli_check(c, j->status, "a step was timed");
    if (!code) {
        cli_show_warnings_from(c, j->shown);
        code = write_result(c, "SOAP steps", bench_json, bench_text, j);
    }
    return code ? code : cli_ended(j->status);
}

static int estimate(cli *c)
{
    bench_job j = {.worker = {.c = c}};
    int code = prepare(c, &j);
    code = code ? code : soap_show_size(c, (int)j.handles, j.soap);
    release(&j);
    return code;
}

int soap_bench(cli *c)
{
    return c->set.dry_run ? estimate(c) : run(c, show_steps, NULL);
}

/* ---- fourge bench soap ----------------------------------------------------------------------- */

typedef struct {
    int hidden, mlp, gradients;
    int slow; /* not with --quick */
} layer_case;

static const layer_case cases[] = {
    {128, 512, 1, 0}, {128, 512, 0, 0}, {256, 1024, 1, 1}, {256, 1024, 0, 1}};

static int show_line(bench_job *j, int code)
{
    cli *const c = j->worker.c;
    frg_json *line;
    code = code || j->done > 0 ? code : cli_check(c, j->status, "a step was timed");
    code = code ? code : bench_check(c, j->status);
    if (!code && !(j->orthogonality <= 1e-4)) { /* a basis of order 1024 in f32 has 1e-5 */
        code = cli_fail(c, "E_BUG", "soap", NULL, "a basis is off orthogonality by %.1e",
                        j->orthogonality);
    }
    if (!code) {
        code = bench_line_begin(c, "soap", (int)j->done, &line);
    }
    if (!code) {
        bench_fields(line, c, j);
        code = bench_line_end(c, line, j->to);
    }
    return code;
}

static int bench_layers(cli *c, const layer_case *k, FILE *to)
{
    c->set.soap_job.hidden = k->hidden;
    c->set.soap_job.mlp = k->mlp;
    c->set.soap_job.gradients = k->gradients;
    c->set.soap_job.steps = bench_repeats(c);
    return run(c, show_line, to);
}

int bench_soap(cli *c, FILE *to)
{
    const settings kept = c->set;
    int code = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !code; i++) {
        code = bench_case_begins(c, cases[i].slow) ? bench_layers(c, &cases[i], to) : 0;
    }
    c->set = kept;
    return code;
}
