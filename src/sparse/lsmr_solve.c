/* lsmr_solve.c - the public frg_lsmr_*: checks, weights, column scaling, blocks of columns.
 *
 *     min || W^(1/2) (A x - b) ||^2 + d^2 ||x||^2
 *
 * A sparse matrix is copied once with W^(1/2) and the column scaling in its values, beside its
 * transpose.  An operator's products are wrapped: times, then rows times sqrt(w); rows times
 * sqrt(w), then transposed.
 *
 * Scaled columns, x = C z, leave the problem what it is: d damps x, not z.  It is that of the rows
 * [W^(1/2) A; d I] C without damping, C = diag(1 / sqrt(||W^(1/2) a_j||^2 + d^2)), whose columns
 * have unit norm.
 *
 * Everything is one arena, opened before the first product: after that the call cannot fail. */
#include <math.h>
#include <string.h>

#include "core/host_alone.h"
#include "core/opts.h"
#include "sparse/csr.h"
#include "sparse/lsmr.h"

#define OPTIONS_OF frg_lsmr_opts
static const frg_option options[] = {
#include "sparse/lsmr_opts.def"
    {.name = NULL}};

const frg_option *frg_lsmr_options(void)
{
    return options;
}

void frg_lsmr_defaults(frg_lsmr_opts *o, size_t struct_size)
{
    frg_lsmr_opts defaults = {0};
    frgi_options_set(options, &defaults);
    frgi_options_give(o, struct_size, &defaults, sizeof defaults);
}

/** One call. */
typedef struct {
    frg_context *ctx;
    frg_lsmr_opts opts;
    const frg_operator *op; /* or NULL */
    const frg_csr *csr;     /* or NULL */
    frg_array b, x;
    const frg_array *weights; /* or NULL */
    int64_t m, n, p, block;

    frgi_csr_pair pair;
    frgi_lsmr lsmr;
    double *root;        /* m: sqrt(w), or NULL */
    double *columns;     /* n: scaling, or NULL */
    double *damping;     /* n: damp times the scaling, the rows below A; NULL: none */
    double *rows, *sols; /* lsmr.m x block, n x block */
    double *weighted;    /* m x block, operators with weights */
    frg_lsmr_column *reports;
} solve;

static int64_t columns_of(frg_array a)
{
    return a.ndim == 1 ? 1 : a.shape[1];
}

static double *element(frg_array a, int64_t i, int64_t j)
{
    const int64_t at = i * a.stride[0] + (a.ndim == 1 ? 0 : j * a.stride[1]);
    return (double *)(void *)frgi_array_base(&a) + at;
}

static frg_status check_values(const solve *s)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->p; j++)
            if (!isfinite(*element(s->b, i, j)))
                FAIL(s->ctx, E_NOT_FINITE, "row %lld, column %lld of b is %g", (long long)i + 1,
                     (long long)j + 1, *element(s->b, i, j));
    for (int64_t i = 0; s->weights && i < s->m; i++) {
        const double w = *element(*s->weights, i, 0);
        if (!(w >= 0 && isfinite(w)))
            FAIL(s->ctx, E_WEIGHT, "the weight of row %lld is %g", (long long)i + 1, w);
    }
    return FRG_OK;
}

static frg_status check(const solve *s)
{
    frg_context *const ctx = s->ctx;
    const frg_lsmr_opts *const o = &s->opts;
    REQUIRE(ctx, !s->op != !s->csr, "exactly one of op and csr must be given");
    TRY(frgi_options_check(ctx, options, o));
    if (o->precond == FRG_PRECOND_DIAGONAL && s->op)
        FAIL(ctx, E_UNSUPPORTED, "the columns of an operator cannot be scaled; give it as csr");
    if (s->csr)
        TRY(frgi_csr_check(ctx, s->csr));
    if (s->op)
        REQUIRE(ctx, s->op->m >= 0 && s->op->n >= 0 && s->op->times && s->op->transposed,
                "an operator needs m, n >= 0 and both products");
    const unsigned f64 = 1u << FRG_F64;
    TRY(frgi_array_check(ctx, &s->b, "b", s->b.ndim == 1 ? 1 : 2, f64));
    TRY(frgi_array_check(ctx, &s->x, "x", s->x.ndim == 1 ? 1 : 2, f64));
    if (s->b.shape[0] != s->m)
        FAIL(ctx, E_SHAPE, "b has %lld rows, A has %lld", (long long)s->b.shape[0],
             (long long)s->m);
    if (s->x.shape[0] != s->n || columns_of(s->x) != s->p)
        FAIL(ctx, E_SHAPE, "x is %lld x %lld, it must be %lld x %lld", (long long)s->x.shape[0],
             (long long)columns_of(s->x), (long long)s->n, (long long)s->p);
    if (s->weights) {
        TRY(frgi_array_check(ctx, s->weights, "weights", 1, f64));
        if (s->weights->shape[0] != s->m)
            FAIL(ctx, E_SHAPE, "weights has %lld rows, A has %lld", (long long)s->weights->shape[0],
                 (long long)s->m);
    }
    return check_values(s);
}

/** Is the damping n rows below A?  Where columns are scaled; else LSMR does it with one rotation a
 *  step. */
static bool damps_by_rows(const solve *s)
{
    return s->opts.damp > 0 && s->opts.precond == FRG_PRECOND_DIAGONAL;
}

static void layout(frgi_arena *a, solve *s)
{
    frgi_lsmr_layout(a, &s->lsmr);
    if (s->csr)
        frgi_csr_pair_layout(a, &s->pair);
    s->root = s->weights ? TAKE(a, double, s->m) : NULL;
    s->columns = s->opts.precond == FRG_PRECOND_DIAGONAL ? TAKE(a, double, s->n) : NULL;
    s->damping = damps_by_rows(s) ? TAKE(a, double, s->n) : NULL;
    s->rows = TAKE(a, double, s->lsmr.m * s->block);
    s->sols = TAKE(a, double, s->n * s->block);
    s->weighted = s->op && s->weights ? TAKE(a, double, s->m * s->block) : NULL;
    s->reports = TAKE(a, frg_lsmr_column, s->block);
}

/* ---- the operator ---------------------------------------------------------------------------- */

static void times(const void *data, int64_t k, const double *x, double *y)
{
    const solve *const s = data;
    s->op->times(s->op->data, k, x, y);
    for (int64_t i = 0; s->root && i < s->m; i++)
        for (int64_t c = 0; c < k; c++)
            y[i * k + c] *= s->root[i];
}

static void transposed(const void *data, int64_t k, const double *y, double *x)
{
    const solve *const s = data;
    for (int64_t i = 0; s->root && i < s->m; i++)
        for (int64_t c = 0; c < k; c++)
            s->weighted[i * k + c] = s->root[i] * y[i * k + c];
    s->op->transposed(s->op->data, k, s->root ? s->weighted : y, x);
}

/** y <- [W^(1/2) A; d I] C x */
static void damped_times(const void *data, int64_t k, const double *x, double *y)
{
    const solve *const s = data;
    frgi_csr_pair_times(&s->pair, k, x, y);
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t c = 0; c < k; c++)
            y[(s->m + j) * k + c] = s->damping[j] * x[j * k + c];
}

/** x <- C [A' W^(1/2), d I] y */
static void damped_transposed(const void *data, int64_t k, const double *y, double *x)
{
    const solve *const s = data;
    frgi_csr_pair_transposed(&s->pair, k, y, x);
    for (int64_t j = 0; j < s->n; j++)
        for (int64_t c = 0; c < k; c++)
            x[j * k + c] += s->damping[j] * y[(s->m + j) * k + c];
}

/** columns[j] = 1 / norm of column j of [W^(1/2) A; d I]; 1 for a column of zeros, whose unknown
 *  stays 0. */
static void column_norms(const solve *s)
{
    const frg_csr *const a = s->csr;
    const double damp = s->opts.damp;
    for (int64_t j = 0; j < s->n; j++)
        s->columns[j] = damp * damp;
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t e = a->starts[i]; e < a->starts[i + 1]; e++) {
            const double v = (a->values ? a->values[e] : 1) * (s->root ? s->root[i] : 1);
            s->columns[a->columns[e]] += v * v;
        }
    for (int64_t j = 0; j < s->n; j++)
        s->columns[j] = s->columns[j] > 0 ? 1 / sqrt(s->columns[j]) : 1;
    for (int64_t j = 0; s->damping && j < s->n; j++)
        s->damping[j] = damp * s->columns[j];
}

static frgi_lsmr_operator prepare(solve *s)
{
    for (int64_t i = 0; s->root && i < s->m; i++)
        s->root[i] = sqrt(*element(*s->weights, i, 0));
    if (s->op)
        return (frgi_lsmr_operator){.times = times, .transposed = transposed, .data = s};
    if (s->columns)
        column_norms(s);
    frgi_csr_pair_fill(&s->pair, s->ctx, s->csr, s->root, s->columns);
    if (s->damping)
        return (frgi_lsmr_operator){
            .times = damped_times, .transposed = damped_transposed, .data = s};
    return (frgi_lsmr_operator){
        .times = frgi_csr_pair_times, .transposed = frgi_csr_pair_transposed, .data = &s->pair};
}

/* ---- the run --------------------------------------------------------------------------------- */

static void take_rows(const solve *s, int64_t first, int64_t k)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t c = 0; c < k; c++) {
            const double v = *element(s->b, i, first + c);
            s->rows[i * k + c] = s->root ? s->root[i] * v : v;
        }
    memset(s->rows + s->m * k, 0, (size_t)((s->lsmr.m - s->m) * k) * sizeof *s->rows);
}

static void give_solution(const solve *s, int64_t first, int64_t k)
{
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t c = 0; c < k; c++) {
            const double v = s->sols[i * k + c];
            *element(s->x, i, first + c) = s->columns ? s->columns[i] * v : v;
        }
}

/** Columns first .. first + k - 1; returns the heartbeat's status. */
static frg_status run_block(solve *s, const frgi_lsmr_operator *op, int64_t first, int64_t k)
{
    const frgi_lsmr_rule rule = {
        .atol = s->opts.atol,
        .btol = s->opts.btol,
        .cond_limit = s->opts.cond_limit,
        .damp = s->damping ? 0 : s->opts.damp,
        .max_iter = s->opts.max_iter,
    };
    s->lsmr.k = k;
    take_rows(s, first, k);
    frgi_lsmr_start(&s->lsmr, s->ctx, op, &rule, s->rows, s->reports);
    frg_status status = FRG_OK;
    while (!frgi_lsmr_done(&s->lsmr) && status == FRG_OK)
        status = frgi_lsmr_step(&s->lsmr);
    frgi_lsmr_finish(&s->lsmr, s->sols);
    frgi_lsmr_audit(&s->lsmr, s->rows, s->sols);
    give_solution(s, first, k);
    return status;
}

static bool success(frg_lsmr_stop stop)
{
    return stop == FRG_LSMR_CONSISTENT || stop == FRG_LSMR_LEAST_SQUARES ||
           stop == FRG_LSMR_CONSISTENT_EPS || stop == FRG_LSMR_LEAST_SQUARES_EPS ||
           stop == FRG_LSMR_ZERO;
}

/** All columns; a run that is stopped leaves zeros in the columns it had not come to. */
static frg_status run(solve *s, frg_lsmr_column columns[], frg_info *info)
{
    const frgi_lsmr_operator op = prepare(s);
    frg_status status = FRG_OK, stopped = FRG_OK;
    for (int64_t first = 0; first < s->p; first += s->block) {
        const int64_t k = s->p - first < s->block ? s->p - first : s->block;
        if (stopped) {
            memset(s->sols, 0, (size_t)(s->n * k) * sizeof *s->sols);
            memset(s->reports, 0, (size_t)k * sizeof *s->reports);
            give_solution(s, first, k);
        } else {
            stopped = run_block(s, &op, first, k);
        }
        for (int64_t c = 0; c < k; c++) {
            const frg_lsmr_column *const q = &s->reports[c];
            if (columns)
                columns[first + c] = *q;
            if (!success(q->stop))
                status = FRG_MAX_ITER;
            info->iterations = q->iterations > info->iterations ? q->iterations : info->iterations;
            const double scale = q->norm_a * q->norm_r;
            info->residual = fmax(info->residual, scale > 0 ? q->norm_ar / scale : 0);
        }
    }
    return stopped ? stopped : status;
}

static frg_status solve_all(solve *s, frg_lsmr_column columns[], frg_info *info)
{
    const double began = frgi_seconds();
    TRY(check(s));
    s->block = s->opts.block < s->p ? s->opts.block : s->p > 0 ? s->p : 1;
    s->lsmr = (frgi_lsmr){.m = s->m + (damps_by_rows(s) ? s->n : 0), .n = s->n, .k = s->block};
    s->pair = (frgi_csr_pair){.m = s->m, .n = s->n, .nnz = s->csr ? s->csr->starts[s->m] : 0};
    frgi_arena memory = {0};
    layout(&memory, s);
    TRY(frgi_arena_open(&memory, s->ctx, "LSMR"));
    layout(&memory, s);
    info->setup_seconds = frgi_seconds() - began;
    const frg_status status = run(s, columns, info);
    frgi_arena_close(&memory, s->ctx);
    info->solve_seconds = frgi_seconds() - began - info->setup_seconds;
    return status;
}

frg_status frgi_lsmr_solve(frg_context *ctx, const frg_operator *op, const frg_csr *csr,
                           frg_array b, const frg_array *weights, frg_array x,
                           const frg_lsmr_opts *o, frg_lsmr_column columns[], frg_info *info)
{
    frg_info local = {.objective = (double)NAN, .device_name = "cpu"};
    solve s = {
        .ctx = ctx,
        .op = op,
        .csr = csr,
        .b = b,
        .x = x,
        .weights = weights,
        .m = op    ? op->m
             : csr ? csr->m
                   : 0,
        .n = op    ? op->n
             : csr ? csr->n
                   : 0,
        .p = columns_of(b),
    };
    frg_lsmr_defaults(&s.opts, sizeof s.opts);
    local.status = frgi_take_opts(ctx, &s.opts, sizeof s.opts, o);
    if (local.status == FRG_OK)
        local.status = solve_all(&s, columns, &local);
    local.peak_bytes = frg_peak_bytes(ctx);
    if (info)
        *info = local;
    return local.status;
}

frg_status frg_lsmr_solve(frg_context *ctx, const frg_operator *op, const frg_csr *csr, frg_array b,
                          const frg_array *weights, frg_array x, const frg_lsmr_opts *o,
                          frg_lsmr_column columns[], frg_info *info)
{
    if (!ctx)
        return FRG_BAD_ARG;
    TRY(frgi_host_alone(ctx, "LSMR"));
    frgi_run_begins(ctx);
    return frgi_lsmr_solve(ctx, op, csr, b, weights, x, o, columns, info);
}
