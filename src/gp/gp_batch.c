/* gp_batch.c - many independent processes with one expression.
 *
 * Members are sorted by columns and rows, so that those side by side have about the same size, and
 * cut into tasks: as many as a vector has lanes where a lane can hold them (gp_lanes.h: [variance
 * *] rbf or matern of all columns, one column of y, nothing profiled, up to 128 rows in f64 and 200
 * in f32), one elsewhere.  Whether a member goes into a lane follows from its own shape and from
 * the call, never from how many neighbours it finds: its bits would. Threads take tasks; each has a
 * context of its own.  A member is a process like any other, so that checks, starts and means are
 * the same; the next member takes its place, memory and expression.  Lanes only stand in for its
 * value and gradient.  What a lane cannot do well - a pivot that is not positive or rounding, f32
 * that is not accurate enough - is done again for that member alone.
 *
 * Fits by Adam from one start go side by side in lanes too (gp_batch_lanes.c); other fits run one a
 * core.
 *
 * Memory: per thread one process (a vector of them), n^2 vectors. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/denormals.h"
#include "core/host_alone.h"
#include "gp/gp_batch.h"
#include "gp/gp_create.h"
#include "gp/gp_fit.h"
#include "linalg/team.h"

enum { ROWS_F64 = 128, ROWS_F32 = 200, LANES_FROM = 3 };
enum { MEMBER_BYTES = 4096 }; /* of what does not grow with n */

typedef struct {
    int64_t first, count; /* in order */
    bool lanes;           /* of a size for lanes */
} task;

typedef struct {
    frg_context *ctx;
    const char *kernel;
    const frg_gp_opts *opts;
    const frgi_gp_steps *steps;
    const frg_gp_fit_opts *fit; /* NULL: value and gradient */
    frg_gp_member *members;
    int64_t count, n_tasks;
    int64_t *order;
    task *tasks;
    frg_dtype lane_type;
    int width; /* lanes to use, 1: none */
    int threads;
    frg_context **contexts;  /* one a thread */
    frgi_slab *slabs;        /* one a thread */
    frgi_arena *lane_memory; /* one a thread: of its lanes */
    frg_gp **pool;           /* LANES_MOST a thread: what members leave for the next ones */
    frg_gp *model;           /* the expression of all, parsed once; without points */
} batch;

/* ---- members --------------------------------------------------------------------------------- */

static frg_status open_member(frg_gp **reused, frg_context *ctx, const batch *b,
                              const frg_gp_member *m)
{
    TRY(frgi_gp_create_from(reused, ctx, m->x, m->y, b->kernel, b->opts, b->model, b->steps));
    return m->theta ? frg_gp_update_parameters(*reused, m->theta) : FRG_OK;
}

/** Message and warnings of a thread's context, into the member that they are about. */
static void report(frg_context *ctx, frg_gp_member *m)
{
    const int count = frg_warning_count(ctx);
    if (m->status < 0)
        snprintf(m->message, sizeof m->message, "%s", frg_message(ctx));
    for (int i = 0; m->status >= 0 && i < count; i++) {
        const size_t used = strlen(m->message);
        snprintf(m->message + used, sizeof m->message - used, "%s%s", used > 0 ? "; " : "",
                 frg_warning_message(ctx, i));
    }
    m->n_warnings += count;
    frg_warnings_clear(ctx);
}

static void give(frg_gp_member *m, const frg_gp *gp, bool gradient)
{
    m->value = gp->result.value;
    if (gradient && m->gradient)
        memcpy(m->gradient, gp->result.gradient,
               (size_t)gp->model.params.count * sizeof *m->gradient);
}

/** A member on its own: value, and the gradient where it is asked for. */
static frg_status evaluate_alone(frg_gp *gp, frg_gp_member *m)
{
    frg_status status = frgi_gp_value(gp);
    if (status == FRG_OK && m->gradient)
        status = frgi_gp_gradient(gp, gp->result.gradient, NULL);
    if (status == FRG_OK)
        give(m, gp, true);
    return status;
}

static frg_status fit_alone(const batch *b, frg_gp *gp, frg_gp_member *m)
{
    frg_gp_fit_result result;
    const frg_status fitted = frg_gp_fit(gp, b->fit, &result);
    if (fitted < 0)
        return fitted;
    m->value = result.value;
    if (m->fitted)
        memcpy(m->fitted, gp->model.theta, (size_t)gp->model.params.count * sizeof *m->fitted);
    if (m->gradient) {
        const frg_status status = frg_gp_eval_gradient(gp, m->gradient, NULL, NULL, NULL);
        return status == FRG_OK ? fitted : status;
    }
    return fitted;
}

/** A member out of its lane; false where it has to be done alone. */
static bool take_member(const batch *b, const frgi_gp_batch_lanes *r, int lane, frg_gp_member *m)
{
    frg_gp *const gp = r->gp[lane];
    if (b->fit) { /* frgi_gp_adam_lanes has left value and gradient in gp */
        if (m->fitted)
            memcpy(m->fitted, gp->model.theta, (size_t)gp->model.params.count * sizeof *m->fitted);
        frgi_gp_set_active(gp);
    } else {
        if (!r->steps->lanes.take_value(r, lane))
            return false;
        if (m->gradient)
            r->steps->lanes.take_gradient(r, lane);
    }
    give(m, gp, true);
    return true;
}

/** What a fit does before its first step, with the warnings of each member. */
static frg_status check_starts(const batch *b, const task *u, const frgi_gp_batch_lanes *r,
                               frg_context *ctx)
{
    for (int64_t i = 0; b->fit && i < u->count; i++)
        if (r->gp[i]) {
            TRY(frgi_gp_check_start(r->gp[i], 1));
            report(ctx, &b->members[b->order[u->first + i]]);
        }
    return FRG_OK;
}

static frg_status run_lanes(const batch *b, frgi_gp_batch_lanes *r, int thread, bool gradient,
                            bool done[LANES_MOST])
{
    frg_context *const ctx = b->contexts[thread];
    if (r->g.n == 0)
        return FRG_OK;
    if (b->fit)
        return frgi_gp_adam_lanes(ctx, &b->lane_memory[thread], r, b->fit, done);
    for (int l = 0; l < LANES_MOST; l++)
        done[l] = r->gp[l] != NULL;
    return frgi_gp_run_lanes(ctx, &b->lane_memory[thread], r, gradient);
}

/** Lanes for the members of a task that can be in them; the others, and those that failed, alone.
 *  What goes into lanes depends on shapes and expression alone, so that a bad member changes no
 *  other's bits. */
static void run_task(const batch *b, const task *u, int thread)
{
    frg_context *const ctx = b->contexts[thread];
    frg_gp **const pool = b->pool + thread * LANES_MOST;
    frg_gp *gp[LANES_MOST] = {NULL};
    bool gradient = false, done[LANES_MOST] = {false};
    for (int64_t i = 0; i < u->count; i++) {
        frg_gp_member *const m = &b->members[b->order[u->first + i]];
        m->status = open_member(&pool[i], ctx, b, m);
        gp[i] = m->status == FRG_OK ? pool[i] : NULL;
        report(ctx, m);
        gradient |= m->gradient != NULL;
    }
    frgi_gp_batch_lanes r;
    frgi_gp_lanes_open(&r, b->ctx, b->steps, b->lane_type, gp, u->lanes ? (int)u->count : 0);
    frg_status ran = check_starts(b, u, &r, ctx);
    if (ran == FRG_OK)
        ran = run_lanes(b, &r, thread, gradient, done);
    for (int64_t i = 0; i < u->count; i++) {
        frg_gp_member *const m = &b->members[b->order[u->first + i]];
        if (!gp[i])
            continue;
        if (r.gp[i] && ran != FRG_OK)
            m->status = ran;
        else if (r.gp[i] && done[i] && take_member(b, &r, (int)i, m))
            m->status = FRG_OK;
        else
            m->status = b->fit ? fit_alone(b, gp[i], m) : evaluate_alone(gp[i], m);
        report(ctx, m);
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/** Largest first: the last tasks are then short ones, and threads end together. */
static int by_size(const void *one, const void *two, const void *members)
{
    const frg_gp_member *const m = members;
    const int64_t i = *(const int64_t *)one, j = *(const int64_t *)two;
    const int64_t di = m[i].x.ndim == 2 ? m[i].x.shape[1] : 0,
                  dj = m[j].x.ndim == 2 ? m[j].x.shape[1] : 0;
    if (di != dj)
        return di > dj ? -1 : 1;
    if (m[i].x.shape[0] != m[j].x.shape[0])
        return m[i].x.shape[0] > m[j].x.shape[0] ? -1 : 1;
    return i < j ? -1 : i > j;
}

/** How many members from the i-th on have its columns, and so may share a task. */
static int64_t alike(const batch *b, int64_t i)
{
    const frg_array *const x = &b->members[b->order[i]].x;
    int64_t end = i + 1;
    while (end < b->count && b->members[b->order[end]].x.ndim == 2 &&
           b->members[b->order[end]].x.shape[1] == x->shape[1])
        end++;
    return end - i;
}

/** The largest task for so many members: as many tasks as the lanes ask for, rounded up to whole
 *  rounds of the threads where there is more than one, so that all threads end together. */
static int64_t even_task(const batch *b, int64_t count)
{
    const int64_t tasks = (count + b->width - 1) / b->width, t = b->threads,
                  rounds = (tasks + t - 1) / t;
    return rounds > 1 ? (count + rounds * t - 1) / (rounds * t) : b->width;
}

static void cut(batch *b)
{
    const int64_t most = b->lane_type == FRG_F64 ? ROWS_F64 : ROWS_F32;
    bool sorted = true;
    for (int64_t i = 0; i < b->count; i++) {
        b->order[i] = i;
        sorted = sorted && (i == 0 || by_size(&b->order[i - 1], &b->order[i], b->members) < 0);
    }
    if (!sorted)
        frgi_sort(b->order, b->count, sizeof *b->order, by_size, b->members);
    for (int64_t i = 0, end = 0, size = 1; i < b->count; i += b->tasks[b->n_tasks++].count) {
        const frg_array *const x = &b->members[b->order[i]].x;
        const bool lanes = b->width > 1 && x->ndim == 2 && x->shape[0] <= most;
        if (lanes && i >= end) {
            end = i + alike(b, i);
            size = even_task(b, end - i);
        }
        const int64_t count = !lanes ? 1 : size < end - i ? size : end - i;
        b->tasks[b->n_tasks] = (task){i, count, lanes};
    }
}

/** An expression or an option that no member could have is the call's mistake: found on the first
 *  member. */
static frg_status probe(batch *b)
{
    static const char *const of_the_call[] = {"FRG-GP-001", "FRG-GP-005", "FRG-CORE-006"};
    const frg_status status = frgi_gp_create_from(
        &b->model, b->ctx, b->members[0].x, b->members[0].y, b->kernel, b->opts, NULL, b->steps);
    if (b->model) {
        frgi_gp_memory_close(b->model);
    }
    for (size_t i = 0; status < 0 && i < sizeof of_the_call / sizeof *of_the_call; i++)
        if (strcmp(frg_error_code(b->ctx), of_the_call[i]) == 0)
            return status;
    return status == FRG_NO_MEMORY ? status : FRG_OK;
}

/** What a thread needs at one time, but for names and the like: a task of the largest members. */
static size_t thread_bytes(const batch *b)
{
    const frg_array *const x = &b->members[b->order[0]].x;
    const int64_t n = x->ndim == 2 ? x->shape[0] : 0;
    if (!b->model || n < 1 || n > ROWS_F32 || x->shape[1] > LANES_MOST_DIMS)
        return 0;
    const size_t member = frgi_gp_memory_bytes(b->model, n);
    frgi_gp_measure_sizes(b->model, n, 1); /* as the threads' contexts have one each */
    const size_t lanes =
        frgi_gp_lanes_bytes(frgi_gp_lanes_of(b->ctx, b->lane_type), b->lane_type, n, x->shape[1]);
    return lanes + (size_t)b->width * (member + MEMBER_BYTES);
}

static frg_status open_threads(batch *b)
{
    TRY(NEW0(b->ctx, &b->slabs, b->threads, "threads of a batch"));
    TRY(frgi_slab_open(b->slabs, b->threads, b->ctx, thread_bytes(b)));
    TRY(NEW0(b->ctx, &b->contexts, b->threads, "threads of a batch"));
    TRY(NEW0(b->ctx, &b->lane_memory, b->threads, "threads of a batch"));
    TRY(NEW0(b->ctx, &b->pool, b->threads * LANES_MOST, "threads of a batch"));
    for (int t = 0; t < b->threads; t++)
        TRY(frgi_context_fork(&b->contexts[t], b->ctx, b->threads, &b->slabs[t]));
    return FRG_OK;
}

/** What thread t has held its members in. */
static void close_thread(const batch *b, int t)
{
    if (b->contexts[t] && b->lane_memory)
        b->steps->close(&b->lane_memory[t], b->contexts[t]);
    for (int i = 0; b->pool && i < LANES_MOST; i++) {
        frg_gp_destroy(b->pool[t * LANES_MOST + i]);
        b->pool[t * LANES_MOST + i] = NULL;
    }
}

static void close_threads(batch *b)
{
    for (int t = 0; b->contexts && t < b->threads; t++) {
        close_thread(b, t);
        frg_context_destroy(b->contexts[t]);
    }
    DROP(b->ctx, &b->contexts);
    DROP(b->ctx, &b->lane_memory);
    DROP(b->ctx, &b->pool);
    if (b->slabs)
        frgi_slab_close(b->slabs, b->ctx);
    DROP(b->ctx, &b->slabs);
    frg_gp_destroy(b->model);
}

/** The message of the first member that failed: it is done again, on the caller's context. */
static void explain(const batch *b, int64_t i)
{
    frg_gp_member m = b->members[i];
    frg_gp *gp = NULL;
    m.gradient = NULL;
    frgi_at(b->ctx, "member %lld", frgi_nth(b->ctx, i));
    frg_status status = m.status == FRG_NO_MEMORY ? frgi_fail(b->ctx, E_MEMORY, __FILE__, __LINE__,
                                                              "a member could not be held")
                                                  : open_member(&gp, b->ctx, b, &m);
    if (status == FRG_OK)
        status = evaluate_alone(gp, &m);
    frg_gp_destroy(gp);
}

/** Whether the call is to end before task u. */
static frg_status poll(const batch *b, int64_t u)
{
    const frg_progress p = {.solver = "gp",
                            .phase = "batch",
                            .done = u,
                            .total = b->n_tasks,
                            .residual = (double)NAN,
                            .target = (double)NAN};
    return frgi_heartbeat(b->ctx, &p);
}

/** What became of the members that a stopped call has not done. */
static void tell_stopped(const batch *b, frg_status stopped)
{
    for (int64_t i = 0; i < b->count; i++) {
        frg_gp_member *const m = &b->members[i];
        if (m->status != FRG_INTERRUPTED)
            continue;
        m->status = stopped;
        if (m->message[0] == '\0')
            snprintf(m->message, sizeof m->message, "the call was stopped before this was done");
    }
}

static frg_status run_tasks(batch *b)
{
    for (int64_t i = 0; i < b->count; i++) {
        b->members[i].status = FRG_INTERRUPTED;
        b->members[i].message[0] = '\0';
        b->members[i].n_warnings = 0;
    }
    int stopped = (int)poll(b, 0); /* then written by thread 0 alone, which may get no task */
#pragma omp parallel num_threads(b->threads)
    {
        const int me = omp_get_thread_num();
        const unsigned mode = frgi_flush_denormals();
#pragma omp for schedule(dynamic) nowait
        for (int64_t u = 0; u < b->n_tasks; u++) {
            int stop = 0;
            if (me == 0 && u > 0 && stopped == FRG_OK) {
                stop = (int)poll(b, u);
#pragma omp atomic write
                stopped = stop;
            }
#pragma omp atomic read
            stop = stopped;
            if (stop == FRG_OK)
                run_task(b, &b->tasks[u], me);
        }
        frgi_restore_denormals(mode);
        close_thread(b, me); /* while others have a task left */
    }
    if (stopped != FRG_OK) {
        tell_stopped(b, (frg_status)stopped);
        return (frg_status)stopped;
    }
    for (int64_t i = 0; i < b->count; i++)
        if (b->members[i].status < 0) {
            explain(b, i);
            return FRG_PARTIAL;
        }
    return FRG_OK;
}

/** Fits whose members take the same steps at the same time; options that are refused are left to
 *  frg_gp_fit. */
static bool side_by_side(const frg_gp_fit_opts *o)
{
    return o->optimizer == FRG_GP_ADAM && o->starts == 1 && o->max_evaluations == 0 &&
           o->max_iter >= 1 && o->tol > 0 && o->tol < 1 && o->learning_rate > 0 &&
           isfinite(o->learning_rate);
}

/** Lanes pay from three members on, and where a vector has that many. */
static int lanes_of_call(const batch *b)
{
    const int width = frgi_gp_lanes_of(b->ctx, b->lane_type)->width;
    return b->count >= LANES_FROM && width >= LANES_FROM && (!b->fit || side_by_side(b->fit))
               ? width
               : 1;
}

static frg_status run_batch(batch *b)
{
    REQUIRE(b->ctx, b->count >= 0 && (b->members || b->count == 0),
            "a batch takes count >= 0 members");
    REQUIRE(b->ctx, b->kernel, "kernel is NULL");
    if (b->count == 0)
        return FRG_OK;
    frgi_run_begins(b->ctx);
    frg_status status;
    b->lane_type = b->opts->precision == FRG_GP_F32 ? FRG_F32 : FRG_F64;
    b->width = lanes_of_call(b);
    TRY_TO(done, probe(b));
    TRY_TO(done, NEW(b->ctx, &b->order, b->count, "order of a batch"));
    TRY_TO(done, NEW(b->ctx, &b->tasks, b->count, "tasks of a batch"));
    b->threads = (int)frgi_team_size(b->ctx, true);
    cut(b);
    b->threads = b->threads < b->n_tasks ? b->threads : (int)b->n_tasks;
    TRY_TO(done, open_threads(b));
    status = run_tasks(b);
done:
    close_threads(b);
    DROP(b->ctx, &b->order);
    DROP(b->ctx, &b->tasks);
    return status;
}

frg_status frgi_gp_batch(frg_context *ctx, int64_t count, frg_gp_member *members,
                         const char *kernel, const frg_gp_opts *o, const frg_gp_fit_opts *fit,
                         const frgi_gp_steps *steps)
{
    frg_gp_opts opts;
    frg_gp_fit_opts fit_opts;
    frg_gp_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(ctx, &opts, sizeof opts, o));
    if (fit) {
        frg_gp_fit_defaults(&fit_opts, sizeof fit_opts);
        TRY(frgi_take_opts(ctx, &fit_opts, sizeof fit_opts, fit));
    }
    return run_batch(&(batch){.ctx = ctx,
                              .kernel = kernel,
                              .opts = &opts,
                              .steps = steps,
                              .fit = fit ? &fit_opts : NULL,
                              .members = members,
                              .count = count});
}

frg_status frg_gp_batch_eval(frg_context *ctx, int64_t count, frg_gp_member *members,
                             const char *kernel, const frg_gp_opts *o)
{
    if (!ctx)
        return FRG_BAD_ARG;
    TRY(frgi_host_alone(ctx, "a batch of Gaussian processes"));
    return frgi_gp_batch(ctx, count, members, kernel, o, NULL, &frgi_gp_host_steps);
}

frg_status frg_gp_batch_fit(frg_context *ctx, int64_t count, frg_gp_member *members,
                            const char *kernel, const frg_gp_opts *o, const frg_gp_fit_opts *fit)
{
    if (!ctx)
        return FRG_BAD_ARG;
    TRY(frgi_host_alone(ctx, "a batch of Gaussian processes"));
    frg_gp_fit_opts defaults;
    frg_gp_fit_defaults(&defaults, sizeof defaults);
    return frgi_gp_batch(ctx, count, members, kernel, o, fit ? fit : &defaults,
                         &frgi_gp_host_steps);
}
