/* laplacian.c - conjugate gradients on the Laplacian of a connected graph, preconditioned by its
 * approximate Cholesky factor M (approx_chol.h).
 *
 *     x = 0, r = b, z = M^-1 r, p = z;  until ||r|| <= tol ||b||:
 *     alpha = r'z / p'L p,  x += alpha p,  r -= alpha L p,  z = M^-1 r,  p <- z + (r'z / old r'z) p
 *
 * L and M have the same null space, the constants, and r and z no part of it: nothing has to be
 * grounded.  A block of WIDTH columns shares the passes over L and M, each with its own scalars; a
 * column that has ended takes steps of length 0.
 */
#include "sparse/laplacian.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { WIDTH = 8 };
static const double OFF = 1e-11; /* of ||b||: a mean below it is no part of what tol asks for */

void frgi_laplacian_defaults(frgi_laplacian_opts *o)
{
    *o = (frgi_laplacian_opts){.tol = 1e-10, .max_iter = 1000, .seed = 1, .solver = "laplacian"};
}

/** A block of columns, n x WIDTH each, and its scalars. */
typedef struct {
    const frgi_symmetric *l;
    const frgi_ac *ac;
    double *x, *r, *z, *p, *q, *scratch;
    double rho[WIDTH], target[WIDTH], square[WIDTH];
    bool running[WIDTH];
} block;

/** q <- L p */
static void multiply(const block *b)
{
    const frgi_symmetric *const l = b->l;
    for (int64_t i = 0; i < l->n; i++) {
        double sum[WIDTH] = {0};
        for (int64_t e = l->starts[i]; e < l->starts[i + 1]; e++) {
            const double *const p = b->p + (int64_t)l->columns[e] * WIDTH;
            for (int c = 0; c < WIDTH; c++) {
                sum[c] += l->values[e] * p[c];
            }
        }
        memcpy(b->q + i * WIDTH, sum, sizeof sum);
    }
}

static void dot(int64_t n, const double *a, const double *b, double sum[WIDTH])
{
    for (int c = 0; c < WIDTH; c++) {
        sum[c] = 0;
    }
    for (int64_t i = 0; i < n * WIDTH; i += WIDTH) {
        for (int c = 0; c < WIDTH; c++) {
            sum[c] += a[i + c] * b[i + c];
        }
    }
}

/** running: the columns that are not there; whether there is one. */
static bool goes_on(block *b)
{
    bool any = false;
    for (int c = 0; c < WIDTH; c++) {
        b->running[c] = b->running[c] && b->square[c] > b->target[c] && b->rho[c] > 0;
        any |= b->running[c];
    }
    return any;
}

static void step(block *b)
{
    const int64_t n = b->l->n;
    double curvature[WIDTH], alpha[WIDTH], beta[WIDTH], rho[WIDTH];
    multiply(b);
    dot(n, b->p, b->q, curvature);
    for (int c = 0; c < WIDTH; c++) {
        alpha[c] = b->running[c] && curvature[c] > 0 ? b->rho[c] / curvature[c] : 0;
    }
    for (int64_t i = 0; i < n * WIDTH; i += WIDTH) {
        for (int c = 0; c < WIDTH; c++) {
            b->x[i + c] += alpha[c] * b->p[i + c];
            b->r[i + c] -= alpha[c] * b->q[i + c];
        }
    }
    frgi_ac_apply(b->ac, WIDTH, b->r, b->z, b->scratch);
    dot(n, b->r, b->z, rho);
    dot(n, b->r, b->r, b->square);
    for (int c = 0; c < WIDTH; c++) {
        beta[c] = b->running[c] ? rho[c] / b->rho[c] : 0;
        b->rho[c] = b->running[c] ? rho[c] : b->rho[c];
    }
    for (int64_t i = 0; i < n * WIDTH; i += WIDTH) {
        for (int c = 0; c < WIDTH; c++) {
            b->p[i + c] = b->z[i + c] + beta[c] * b->p[i + c];
        }
    }
}

/** square <- r'r, and r <- r - mean(r) where the mean is above rounding, as of a right-hand side
 *  that is itself the rounding of 0: L does not reach it.  A column of which nothing else is left
 *  is 0. */
static void centre(block *b)
{
    const int64_t n = b->l->n;
    dot(n, b->r, b->r, b->square);
    for (int c = 0; c < WIDTH; c++) {
        double mean = 0, left = 0;
        for (int64_t i = 0; i < n; i++) {
            mean += b->r[i * WIDTH + c] / (double)n;
        }
        if ((double)n * mean * mean <= OFF * OFF * b->square[c]) {
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            const double r = b->r[i * WIDTH + c] - mean;
            left += r * r;
        }
        const bool nothing = left <= OFF * OFF * b->square[c];
        for (int64_t i = 0; i < n; i++) {
            b->r[i * WIDTH + c] = nothing ? 0 : b->r[i * WIDTH + c] - mean;
        }
        b->square[c] = nothing ? 0 : left;
    }
}

/** Solves for the columns in b->r into b->x; returns the steps. */
static int64_t run(block *b, const frg_context *ctx, const frgi_laplacian_opts *o)
{
    const int64_t n = b->l->n;
    int64_t steps = 0;
    centre(b);
    memset(b->x, 0, sizeof *b->x * (size_t)(n * WIDTH));
    frgi_ac_apply(b->ac, WIDTH, b->r, b->z, b->scratch);
    memcpy(b->p, b->z, sizeof *b->p * (size_t)(n * WIDTH));
    dot(n, b->r, b->z, b->rho);
    for (int c = 0; c < WIDTH; c++) {
        b->running[c] = true;
        b->target[c] = o->tol * o->tol * b->square[c];
    }
    while (goes_on(b) && steps < o->max_iter && frgi_stopped(ctx) == FRG_OK) {
        step(b);
        steps++;
    }
    return steps;
}

/** Columns begin .. end-1 of x. */
static void solve_block(block *b, const frg_context *ctx, int64_t begin, int64_t end, int64_t k,
                        double *x, const frgi_laplacian_opts *o, frgi_laplacian_report *report)
{
    const int64_t n = b->l->n;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t c = 0; c < WIDTH; c++) {
            b->r[i * WIDTH + c] = begin + c < end ? x[i * k + begin + c] : 0;
        }
    }
    report->iterations = run(b, ctx, o);
    for (int64_t c = begin; c < end; c++) {
        report->failed += b->square[c - begin] > b->target[c - begin];
        for (int64_t i = 0; i < n; i++) {
            x[i * k + c] = b->x[i * WIDTH + c - begin];
        }
    }
}

static frg_status lay_out(frg_context *ctx, const frgi_symmetric *l, const frgi_ac *ac,
                          block *blocks, int threads, double **memory)
{
    const int64_t vector = l->n * WIDTH;
    const size_t each = frgi_add(frgi_mul(5, (size_t)vector), frgi_ac_scratch(ac, WIDTH));
    TRY(NEW(ctx, memory, frgi_mul(each, (size_t)threads), "the columns of a Laplacian"));
    for (int t = 0; t < threads; t++) {
        double *const at = *memory + each * (size_t)t;
        blocks[t] = (block){.l = l,
                            .ac = ac,
                            .x = at,
                            .r = at + vector,
                            .z = at + 2 * vector,
                            .p = at + 3 * vector,
                            .q = at + 4 * vector,
                            .scratch = at + 5 * vector};
    }
    return FRG_OK;
}

static frg_status solve(frg_context *ctx, const frgi_symmetric *l, const frgi_ac *ac, int64_t k,
                        double *x, const frgi_laplacian_opts *o, frgi_laplacian_report *report)
{
    const int64_t n_blocks = (k + WIDTH - 1) / WIDTH;
    const int most = frg_threads(ctx), threads = n_blocks < most ? (int)n_blocks : most;
    block *blocks = NULL;
    frgi_laplacian_report *reports = NULL;
    double *memory = NULL;
    frg_status status;
    TRY_TO(done, NEW(ctx, &blocks, threads, "the columns of a Laplacian"));
    TRY_TO(done, NEW0(ctx, &reports, n_blocks, "the columns of a Laplacian"));
    TRY_TO(done, lay_out(ctx, l, ac, blocks, threads, &memory));
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int64_t b = 0; b < n_blocks; b++) {
        const int64_t begin = b * WIDTH, end = begin + WIDTH < k ? begin + WIDTH : k;
        solve_block(&blocks[omp_get_thread_num()], ctx, begin, end, k, x, o, &reports[b]);
    }
    for (int64_t b = 0; b < n_blocks; b++) {
        const int64_t steps = reports[b].iterations;
        report->iterations = steps > report->iterations ? steps : report->iterations;
        report->failed += reports[b].failed;
    }
    status = frgi_stopped(ctx);
done:
    DROP(ctx, &blocks);
    DROP(ctx, &reports);
    DROP(ctx, &memory);
    return status;
}

frg_status frgi_laplacian_solve(frg_context *ctx, const frgi_symmetric *l, int64_t k, double *x,
                                const frgi_laplacian_opts *o, frgi_laplacian_report *report)
{
    frgi_ac_opts settings;
    frgi_ac *ac;
    *report = (frgi_laplacian_report){0};
    frgi_ac_defaults(&settings);
    settings.seed = o->seed;
    settings.solver = o->solver;
    frg_status status = frgi_ac_create(&ac, ctx, l, &settings);
    if (status != FRG_OK) {
        return status;
    }
    status = solve(ctx, l, ac, k, x, o, report);
    frgi_ac_destroy(ac);
    return status;
}
