/* qr_batch.c - the public batched QR: plans workspaces for the threads, hands them matrices,
 * largest first.
 *
 * One matrix is factored by one thread where there are enough of them: panels do not scale inside a
 * matrix.  What is left over when they are dealt evenly (a single one, the fifth of five on two
 * threads) is factored first, by all threads, each of which copies and updates some columns: bits
 * depend on the matrix alone.  A matrix is copied into a workspace (by columns, in the type that is
 * computed in), factored there and its result copied out, so that q may be a and any strides serve.
 * Cost 8/3 n^3 flops and two passes of O(mn); memory: a workspace per thread for the largest matrix
 * that it may see. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "core/opts.h"
#include "core/oversubscription.h"
#include "linalg/blas.h"
#include "linalg/qr_copy.h"
#include "linalg/qr_engine.h"

typedef struct {
    int64_t m, n;
    frg_dtype dtype;
    bool r, old;
} shape;

struct frg_qr {
    frg_context *ctx;
    frg_qr_opts opts;
    int64_t n_items;
    int threads;
    shape *shapes;
    int64_t *order;                /* items, most work first */
    frg_qr_report *report;         /* where the caller wants none */
    frgi_qr_workspace *workspaces; /* [thread][f32, f64] */
    void **old;                    /* a second copy of the columns to fall back on, one a thread */
    frgi_arena arena;
};

#define OPTIONS_OF frg_qr_opts
static const frg_option options[] = {
#include "linalg/qr_opts.def"
    {.name = NULL}};

const frg_option *frg_qr_options(void)
{
    return options;
}

void frg_qr_defaults(frg_qr_opts *o, size_t struct_size)
{
    frg_qr_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

static bool is_f64(frg_dtype t)
{
    return t == FRG_F64;
}

/** The type that a matrix is computed in. */
static unsigned computed(frg_dtype t)
{
    return 1u << (is_f64(t) ? FRG_F64 : FRG_F32);
}

static frg_status check_item(frg_context *ctx, const frg_qr_item *item, int64_t i, shape *s)
{
    static const unsigned floats = 1u << FRG_F32 | 1u << FRG_F64 | 1u << FRG_F16 | 1u << FRG_BF16;
    char name[48];
    snprintf(name, sizeof name, "a of item %lld", (long long)i + 1);
    TRY(frgi_array_check(ctx, &item->a, name, 2, floats));
    const int64_t m = item->a.shape[0], n = item->a.shape[1];
    if (m < n || n < 1 || m > INT32_MAX / QR_PANEL / 2) {
        FAIL(ctx, E_SHAPE,
             "%s is %lld x %lld; at least as many rows as columns, one column and at most %d rows "
             "are expected",
             name, (long long)m, (long long)n, INT32_MAX / QR_PANEL / 2);
    }
    const struct {
        const frg_array *x;
        const char *what;
        int64_t rows;
        unsigned types;
        bool optional;
    } others[] = {{&item->q, "q", m, floats, false},
                  {&item->r, "r", n, computed(item->a.dtype), true},
                  {&item->old, "old", m, computed(item->a.dtype), true}};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        if (others[k].optional && !others[k].x->data) {
            continue;
        }
        snprintf(name, sizeof name, "%s of item %lld", others[k].what, (long long)i + 1);
        TRY(frgi_array_check(ctx, others[k].x, name, 2, others[k].types));
        if (others[k].x->shape[0] != others[k].rows || others[k].x->shape[1] != n) {
            FAIL(ctx, E_SHAPE, "%s is %lld x %lld, expected %lld x %lld", name,
                 (long long)others[k].x->shape[0], (long long)others[k].x->shape[1],
                 (long long)others[k].rows, (long long)n);
        }
    }
    *s = (shape){m, n, item->a.dtype, item->r.data != NULL, item->old.data != NULL};
    return FRG_OK;
}

static double work_of(const shape *s)
{
    return (double)s->m * (double)s->n * (double)s->n;
}

/** Most work first, equal ones in order. */
static int by_work(const void *a, const void *b, const void *shapes)
{
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const double x = work_of((const shape *)shapes + i), y = work_of((const shape *)shapes + j);
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

static void order_items(frg_qr *qr)
{
    for (int64_t i = 0; i < qr->n_items; i++) {
        qr->order[i] = i;
    }
    frgi_sort(qr->order, qr->n_items, sizeof *qr->order, by_work, qr->shapes);
}

/** How many of the largest matrices all threads factor together: by Householder alone, as BLAS has
 *  one thread. */
static int64_t shared_items(const frg_qr *qr)
{
    enum { WORTH_IT = 256 }; /* columns from which a team gains */
    const bool blas = qr->opts.method == FRG_QR_CHOLESKY || qr->opts.method == FRG_QR_VENDOR ||
                      qr->opts.verify == FRG_QR_VERIFY_FULL;
    const int64_t left_over = blas ? 0 : qr->n_items % qr->threads;
    int64_t shared = 0;
    for (; shared < left_over; shared++) {
        const shape *const s = &qr->shapes[qr->order[shared]];
        if (s->n < WORTH_IT && !frgi_qr_is_tall(s->m, s->n)) {
            break;
        }
    }
    return shared;
}

/** Workspaces: the first thread's for all matrices, the others' for those that threads factor
 *  alone; runs twice over the arena. */
static void layout(frg_qr *qr)
{
    frgi_arena *const a = &qr->arena;
    const bool cholesky = qr->opts.method == FRG_QR_CHOLESKY;
    const bool gram = qr->opts.verify == FRG_QR_VERIFY_FULL;
    const frgi_product_way way = frgi_product_way_of(qr->ctx);
    const int64_t shared = shared_items(qr);
    for (int thread = 0; thread < qr->threads; thread++) {
        const int team = thread == 0 ? qr->threads : 1; /* it leads where all take part */
        frgi_qr_extent extents[2] = {{0}};
        size_t old = 0;
        bool r = false;
        for (int64_t k = thread == 0 ? 0 : shared; k < qr->n_items; k++) {
            const shape *const s = &qr->shapes[qr->order[k]];
            frgi_qr_extent *const e = &extents[is_f64(s->dtype)];
            frgi_qr_extend(e, s->m, s->n);
            r |= s->r;
            const size_t bytes =
                (size_t)(s->m + 3 * QR_ROW_STEP) * (size_t)s->n * frg_sizeof(FRG_F64);
            old = s->old && bytes > old ? bytes : old;
        }
        for (int t = 0; t < 2; t++) {
            frgi_qr_workspace_take(a, &qr->workspaces[2 * thread + t], way, t, &extents[t], team,
                                   cholesky, gram, r);
        }
        qr->old[thread] = frgi_take(a, old);
    }
}

frg_status frg_qr_create(frg_qr **out, frg_context *ctx, int64_t n_items, const frg_qr_item items[],
                         const frg_qr_opts *o)
{
    if (!out) {
        FAIL(ctx, E_ARG, "out is NULL");
    }
    *out = NULL;
    if (!ctx) {
        FAIL(NULL, E_ARG, "ctx is NULL");
    }
    frg_qr_opts opts;
    frg_qr_defaults(&opts, sizeof opts);
    TRY(frgi_take_opts(ctx, &opts, sizeof opts, o));
    TRY(frgi_options_check(ctx, options, &opts));
    REQUIRE(ctx, n_items >= 0 && (items || n_items == 0), "n_items is %lld and items is %s",
            (long long)n_items, items ? "given" : "NULL");
    frg_status status;
    frg_qr *qr = NULL;
    TRY(NEW0(ctx, &qr, 1, "a batched QR"));
    qr->ctx = ctx;
    qr->opts = opts;
    qr->n_items = n_items;
    qr->threads = frg_threads(ctx);
    TRY_TO(failed, NEW0(ctx, &qr->shapes, n_items, "shapes"));
    TRY_TO(failed, NEW(ctx, &qr->order, n_items, "order"));
    TRY_TO(failed, NEW0(ctx, &qr->report, n_items, "reports"));
    TRY_TO(failed, NEW0(ctx, &qr->workspaces, 2 * qr->threads, "workspaces"));
    TRY_TO(failed, NEW0(ctx, &qr->old, qr->threads, "workspaces"));
    for (int64_t i = 0; i < n_items; i++) {
        TRY_TO(failed, check_item(ctx, &items[i], i, &qr->shapes[i]));
    }
    order_items(qr);
    layout(qr);
    TRY_TO(failed, frgi_arena_open(&qr->arena, ctx, "workspaces of a batched QR"));
    layout(qr);
    *out = qr;
    return FRG_OK;
failed:
    frg_qr_destroy(qr);
    return status;
}

void frg_qr_destroy(frg_qr *qr)
{
    if (!qr) {
        return;
    }
    frg_context *const ctx = qr->ctx;
    frgi_arena_close(&qr->arena, ctx);
    DROP(ctx, &qr->shapes);
    DROP(ctx, &qr->order);
    DROP(ctx, &qr->report);
    DROP(ctx, &qr->workspaces);
    DROP(ctx, &qr->old);
    DROP(ctx, &qr);
}

size_t frg_qr_bytes(const frg_qr *qr)
{
    return qr ? qr->arena.bytes +
                    (size_t)qr->n_items * (sizeof(shape) + sizeof(int64_t) + sizeof(frg_qr_report))
              : 0;
}

static bool same_shape(const shape *a, const shape *b)
{
    return a->m == b->m && a->n == b->n && a->dtype == b->dtype && a->r == b->r && a->old == b->old;
}

typedef struct {
    const frgi_qr_ops *ops;
    frgi_qr_workspace *work;
    const void *old;
} scaling;

static void scale_column(void *user, ptrdiff_t j)
{
    const scaling *const s = user;
    frgi_qr_scale_column(s->ops, s->work, j, s->old);
}

static void factor_item(const frg_qr *qr, int thread, int team, const frg_qr_item *item,
                        const shape *s, frg_qr_report *report)
{
    const bool f64 = is_f64(s->dtype);
    const frgi_qr_ops *const ops = frgi_qr_ops_of(qr->ctx, f64);
    frgi_qr_workspace work = qr->workspaces[2 * thread + f64];
    const double tol = qr->opts.ortho_tol;
    frgi_qr_request request = {.method = qr->opts.method,
                               .verify = qr->opts.verify,
                               .ortho_tol = tol > 0 ? tol
                                            : f64   ? 1e-13
                                                    : 1e-5};
    frgi_qr_workspace_shape(ops, &work, s->m, s->n);
    work.x.team = team;
    if (!s->r) {
        work.r = NULL;
    }
    if (s->old) {
        frgi_qr_take(&item->old, f64, work.x.rows, s->n, work.x.ld, qr->old[thread], team, NULL,
                     NULL);
        request.old = qr->old[thread];
    }
    frgi_qr_take(&item->a, f64, work.x.rows, work.x.columns, work.x.ld, work.x.a, team,
                 scale_column, &(scaling){ops, &work, request.old});
    frgi_qr_solve(ops, &work, &request, report);
    if (report->flags & FRG_QR_NONFINITE) {
        frgi_qr_fill(&item->q, NAN);
        if (s->r) {
            frgi_qr_fill(&item->r, NAN);
        }
        return;
    }
    frgi_qr_give(&item->q, f64, work.x.ld, work.q, team);
    if (s->r) {
        frgi_qr_give(&item->r, f64, s->n, work.r, team);
    }
}

/** Is the run to go on with matrix k?  The caller's thread calls the heartbeat, the others poll the
 *  context. */
static bool goes_on(frg_context *ctx, int64_t k, int64_t n, int *stop)
{
    int now;
#pragma omp atomic read
    now = *stop;
    if (now == FRG_OK) {
        now = omp_get_thread_num() == 0
                  ? (int)frgi_heartbeat(ctx, &(frg_progress){.solver = "qr",
                                                             .phase = "matrices",
                                                             .done = k,
                                                             .total = n,
                                                             .residual = (double)NAN,
                                                             .target = (double)NAN})
                  : (int)frgi_stopped(ctx);
        if (now != FRG_OK) {
#pragma omp atomic write
            *stop = now;
        }
    }
    return now == FRG_OK;
}

/** The k-th in order, by a team: factored, or left where the run has been stopped. */
static void do_item(const frg_qr *qr, int64_t k, int thread, int team, const frg_qr_item items[],
                    frg_qr_report reports[], int *stop)
{
    const int64_t i = qr->order[k];
    if (goes_on(qr->ctx, k, qr->n_items, stop)) {
        factor_item(qr, thread, team, &items[i], &qr->shapes[i], &reports[i]);
    } else {
        reports[i] = (frg_qr_report){
            .pivot = (double)NAN, .orthogonality = (double)NAN, .flags = FRG_QR_NOT_DONE};
    }
}

/** Threads for the matrices that each factors alone. */
static int team_for(const frg_qr *qr, int64_t shared)
{
    double work = 0;
    for (int64_t k = shared; k < qr->n_items; k++) {
        work += 4.0 / 3 * work_of(&qr->shapes[qr->order[k]]);
    }
    return frgi_team_for(qr->threads, work);
}

/** Are the items those that the plan was made for? */
static frg_status check_items(const frg_qr *qr, const frg_qr_item items[])
{
    frg_context *const ctx = qr->ctx;
    REQUIRE(ctx, items || qr->n_items == 0, "items is NULL");
    for (int64_t i = 0; i < qr->n_items; i++) {
        shape s;
        TRY(check_item(ctx, &items[i], i, &s));
        if (!same_shape(&s, &qr->shapes[i])) {
            FAIL(ctx, E_SHAPE, "item %lld is not of the shape and type that the plan was made for",
                 (long long)i + 1);
        }
    }
    return FRG_OK;
}

frg_status frg_qr_run(frg_qr *qr, const frg_qr_item items[], frg_qr_report reports[],
                      frg_info *info)
{
    if (!qr) {
        FAIL(NULL, E_ARG, "qr is NULL");
    }
    frg_context *const ctx = qr->ctx;
    const frg_status good = check_items(qr, items);
    if (info) {
        *info = (frg_info){.status = good, .residual = NAN, .objective = NAN, .device_name = "cpu"};
    }
    TRY(good);
    frgi_run_begins(ctx);
    const double start = frgi_seconds();
    frg_qr_report *const report = reports ? reports : qr->report;
    const frgi_blas_guard guard = frgi_blas_begin();
    const int64_t shared = shared_items(qr);
    const int team = team_for(qr, shared);
    int stop = FRG_OK;
    for (int64_t k = 0; k < shared; k++) {
        do_item(qr, k, 0, qr->threads, items, report, &stop);
    }
#pragma omp parallel num_threads(team)
    {
        frgi_blas_single();
#pragma omp for schedule(dynamic, 1)
        for (int64_t k = shared; k < qr->n_items; k++) {
            do_item(qr, k, omp_get_thread_num(), 1, items, report, &stop);
        }
    }
    frgi_blas_end(guard);
    frg_status status = FRG_OK;
    double worst = 0;
    for (int64_t i = 0; i < qr->n_items; i++) {
        if (report[i].flags & FRG_QR_NONFINITE) {
            status = FRG_PARTIAL;
        } else if (!(report[i].flags & FRG_QR_NOT_DONE)) {
            worst = report[i].orthogonality <= worst ? worst : report[i].orthogonality;
        }
    }
    status = stop != FRG_OK ? (frg_status)stop : status;
    if (info) {
        *info = (frg_info){.status = status,
                           .iterations = qr->n_items,
                           .residual = worst,
                           .objective = NAN,
                           .solve_seconds = frgi_seconds() - start,
                           .peak_bytes = frg_peak_bytes(ctx),
                           .device_name = "cpu"};
    }
    return status;
}
