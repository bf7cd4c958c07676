/* gp_folds.c - predictions of blocks of rows from all others, from one inverse.
 *
 * With P = K^-1, or K^-1 - E E' where a mean H beta is estimated with each block left out, a = P y,
 * and the rows B of one fold:
 *
 *     mean y_B - P_BB^-1 a_B,   covariance P_BB^-1 (noise included)
 *     log density of y_B = 1/2 log |P_BB| - 1/2 a_B' P_BB^-1 a_B - |B|/2 log 2 pi
 *
 * for each column of y.  Leave-one-out is the case of blocks of one.  Beyond the inverse sum_B
 * |B|^3 flop, in f64 whatever the process's arithmetic; memory |B|^2 of the largest block.
 *
 * Gradient (gp_loo.h): P D P = sum_B P_:B D_B P_B:, n^2 |B| flop a block, on tiles of the
 * second triangle; blocks are gathered until there are columns enough for a product to be worth its
 * tile.  Memory 2 n (|B| + 128) more. Rasmussen and Williams (2006), 5.4.2; Dubrule (1983).
 */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "gp/gp_loo.h"
#include "linalg/blas.h"

enum { GATHERED = 128, CHUNK = 64 };

static const double LOG_2PI = 1.8378770664093454836;

struct frgi_gp_folding {
    ptrdiff_t folds, most; /* most: rows of the largest block */
    ptrdiff_t *begin;      /* folds + 1: where each block starts in `row` */
    ptrdiff_t *row;        /* n: rows by fold, ascending within each */
    frgi_spd block;        /* P_BB, its factor, its inverse */
    void *block_memory;
    double *column; /* most */
    double *a, *e;  /* most x q: a_B and P_BB^-1 a_B */
    double *mean, *variance;
    double square; /* sum of a_B'P_BB^-1 a_B */
    void *work;
    size_t block_bytes, work_bytes; /* for every order up to `most` */
    bool wants_gradient;
    frgi_gp_density density;
    double *weight; /* D_B / (2 q) */
    double *inverse_columns,
        *product; /* n x (most + GATHERED): P_:B of the blocks gathered, and times their weights */
    double *tile; /* f32: a piece of the update a thread, of tile_elements */
    ptrdiff_t tile_elements;
    ptrdiff_t gathered; /* columns of both */
    double log_density; /* of the rows left out, but for what `square` takes */
};
typedef frgi_gp_folding folding;

static void lay_out(frgi_arena *a, const frg_gp *gp, folding *f)
{
    f->begin = TAKE(a, ptrdiff_t, f->folds + 2);
    f->row = TAKE(a, ptrdiff_t, gp->data.n);
    f->block_memory = frgi_take(a, f->block_bytes);
    f->column = TAKE(a, double, f->most);
    f->a = TAKE(a, double, f->most * gp->data.q);
    f->e = TAKE(a, double, f->most * gp->data.q);
    f->mean = TAKE(a, double, gp->data.n * gp->data.q);
    f->variance = TAKE(a, double, gp->data.n);
    f->work = frgi_take(a, f->work_bytes);
    frgi_gp_density_take(a, gp, f->wants_gradient, &f->density);
    const ptrdiff_t columns = f->wants_gradient ? f->most + GATHERED : 0;
    const bool single = f->wants_gradient && frgi_spd_is_single(&gp->own.matrix);
    f->weight = TAKE(a, double, f->wants_gradient ? f->most * f->most : 0);
    f->inverse_columns = TAKE(a, double, gp->data.n *columns);
    f->product = TAKE(a, double, gp->data.n *columns);
    const ptrdiff_t step = frgi_spd_step(&gp->own.matrix);
    f->tile_elements = step * step;
    f->tile = TAKE(a, double, single ? f->tile_elements *frg_threads(gp->ctx) : 0);
}

/** begin and row from the codes, by counting; begin[k + 1] moves from the first row of fold k to
 *  its end. */
static void sort_rows(const frg_gp *gp, const int32_t *codes, folding *f)
{
    memset(f->begin, 0, (size_t)(f->folds + 2) * sizeof *f->begin);
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        f->begin[codes[i] + 2]++;
    }
    for (ptrdiff_t k = 0; k < f->folds; k++) {
        f->begin[k + 2] += f->begin[k + 1];
    }
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        f->row[f->begin[codes[i] + 1]++] = i;
    }
}

/** How many folds, and what the largest needs. */
static frg_status measure(const frg_gp *gp, const int32_t *codes, folding *f)
{
    ptrdiff_t *size;
    f->folds = 0;
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        REQUIRE(gp->ctx, codes[i] >= 0 && codes[i] < gp->data.n,
                "the fold of row %lld is %d; folds are numbered 0 .. F - 1 with F <= n",
                frgi_nth(gp->ctx, i), codes[i]);
        f->folds = codes[i] >= f->folds ? codes[i] + 1 : f->folds;
    }
    TRY(NEW0(gp->ctx, &size, f->folds, "sizes of folds"));
    for (ptrdiff_t i = 0; i < gp->data.n; i++) {
        size[codes[i]]++;
    }
    for (ptrdiff_t k = 0; k < f->folds; k++) {
        const size_t block = frgi_spd_bytes(size[k], FRG_F64),
                     bytes = frgi_spd_work_bytes(size[k], FRG_F64, frg_threads(gp->ctx));
        f->most = size[k] > f->most ? size[k] : f->most;
        f->block_bytes = block > f->block_bytes ? block : f->block_bytes;
        f->work_bytes = bytes > f->work_bytes ? bytes : f->work_bytes;
    }
    DROP(gp->ctx, &size);
    return FRG_OK;
}

/** P_ij, i >= j. */
static double inverse_at(const frg_gp *gp, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t n = gp->data.n;
    double p = frgi_spd_get(&gp->own.matrix, i, j);
    for (ptrdiff_t k = 0; k < gp->profile.count; k++) {
        p -= gp->profile.correction[k * n + i] * gp->profile.correction[k * n + j];
    }
    return p;
}

/** block <- P_BB; a_B beside it. */
static void gather(const frg_gp *gp, const folding *f, const ptrdiff_t *row)
{
    const ptrdiff_t m = frgi_spd_order(&f->block);
    for (ptrdiff_t j = 0; j < m; j++) {
        for (ptrdiff_t i = j; i < m; i++) { /* rows ascend: the lower triangle of the inverse */
            f->column[i] = inverse_at(gp, row[i], row[j]);
        }
        frgi_spd_write_column(&f->block, j, j, m, f->column + j);
    }
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        for (ptrdiff_t i = 0; i < m; i++) {
            f->a[c * m + i] = gp->vectors.alpha[c * gp->data.n + row[i]];
        }
    }
}

/** One block: its means and variances, log_density gains its log |P_BB|, square its a_B'P_BB^-1
 *  a_B. */
static frg_status predict_block(frg_gp *gp, folding *f, ptrdiff_t fold)
{
    const ptrdiff_t *const row = f->row + f->begin[fold];
    const ptrdiff_t m = f->begin[fold + 1] - f->begin[fold], n = gp->data.n, q = gp->data.q;
    const double unit = sqrt(gp->state.scale);
    frgi_spd_pivots pivots;
    double logdet;
    f->block = frgi_spd_place(m, FRG_F64, f->block_memory, f->work, "gp");
    gather(gp, f, row);
    frgi_spd_diagonal(&f->block, f->column);
    double whole = 0;
    for (ptrdiff_t i = 0; i < m; i++) {
        whole = fmax(whole, f->column[i]);
    }
    frg_status status = frgi_spd_factor(gp->ctx, &f->block, &logdet, &pivots);
    if (status == FRG_NOT_POSDEF ||
        (status == FRG_OK && !(pivots.smallest * pivots.smallest > 1e-12 * whole))) {
        REQUIRE(gp->ctx, gp->profile.count == 0,
                "fold %lld carries a coefficient of the mean alone: without its rows nothing is "
                "left to estimate that from",
                (long long)fold);
        FAIL(gp->ctx, E_NOT_POSDEF, "the precision of fold %lld has the pivot %.3g at its row %lld",
             (long long)fold, pivots.value, frgi_nth(gp->ctx, pivots.pivot));
    }
    if (status == FRG_OK) {
        status = frgi_spd_inverse(gp->ctx, &f->block, NULL);
    }
    if (status == FRG_OK) {
        status = frgi_spd_times(gp->ctx, &f->block, q, f->a, m, f->e, m);
    }
    if (status != FRG_OK) {
        return status;
    }
    frgi_spd_diagonal(&f->block, f->column);
    f->log_density += 0.5 * (double)q * (logdet - (double)m * LOG_2PI);
    for (ptrdiff_t i = 0; i < m; i++) {
        f->variance[row[i]] = gp->state.scale * f->column[i];
        for (ptrdiff_t c = 0; c < q; c++) {
            f->square += f->a[c * m + i] * f->e[c * m + i];
            f->mean[c * n + row[i]] = gp->data.y[c * n + row[i]] - unit * f->e[c * m + i];
        }
    }
    return FRG_OK;
}

/* ---- gradient -------------------------------------------------------------------------------- */

/** weight <- (P_BB^-1 + 1/q sum_c u_c u_c') / 2 of the block at hand; u of its rows goes where all
 *  rows have theirs. */
static void block_weight(const frg_gp *gp, const folding *f, const ptrdiff_t *row)
{
    const ptrdiff_t m = frgi_spd_order(&f->block);
    for (ptrdiff_t j = 0; j < m; j++) {
        for (ptrdiff_t i = j; i < m; i++) {
            double w = frgi_spd_get(&f->block, i, j);
            for (ptrdiff_t c = 0; c < gp->data.q; c++) {
                w += f->e[c * m + i] * f->e[c * m + j] / (double)gp->data.q;
            }
            f->weight[i + j * m] = f->weight[j + i * m] = 0.5 * w;
        }
    }
    for (ptrdiff_t c = 0; c < gp->data.q; c++) {
        for (ptrdiff_t i = 0; i < m; i++) {
            f->density.u[c * gp->data.n + row[i]] = f->e[c * m + i];
        }
    }
}

/** second <- second + product (P_:B)' on one piece of it. */
static void add_piece(const frg_gp *gp, const folding *f, ptrdiff_t row, ptrdiff_t column)
{
    const frgi_spd_piece to = frgi_spd_piece_at(&f->density.second, row, column);
    const bool single = frgi_spd_is_single(&gp->own.matrix);
    double *const own = single ? f->tile + omp_get_thread_num() * f->tile_elements : to.at;
    frgi_dgemm('N', 'T', (int)to.rows, (int)to.columns, (int)f->gathered, 1, f->product + row,
               (int)gp->data.n, f->inverse_columns + column, (int)gp->data.n, single ? 0 : 1, own,
               single ? (int)to.rows : (int)to.ld);
    for (ptrdiff_t j = 0; single && j < to.columns; j++) {
        float *const narrow = (float *)to.at + j * to.ld;
        for (ptrdiff_t i = 0; i < to.rows; i++) {
            narrow[i] += (float)own[i + j * to.rows];
        }
    }
}

/** second <- second + product (P_:B)' of the blocks gathered, piece by piece. */
static void add_gathered(const frg_gp *gp, folding *f)
{
    const ptrdiff_t step = frgi_spd_step(&f->density.second);
    const ptrdiff_t steps = (gp->data.n + step - 1) / step;
    const frgi_blas_guard guard = frgi_blas_begin();
#pragma omp parallel num_threads(frg_threads(gp->ctx))
    {
        frgi_blas_single();
#pragma omp for schedule(static, 1)
        for (ptrdiff_t t = 0; t < steps * steps; t++) {
            const ptrdiff_t row = t / steps, column = t % steps;
            if (row >= column) {
                add_piece(gp, f, row * step, column * step);
            }
        }
    }
    frgi_blas_end(guard);
    f->gathered = 0;
}

/** P_:B and P_:B D_B / (2 q) of the block at hand, behind those of the blocks gathered. */
static void gather_columns(const frg_gp *gp, folding *f, ptrdiff_t fold)
{
    const ptrdiff_t *const row = f->row + f->begin[fold];
    const ptrdiff_t m = f->begin[fold + 1] - f->begin[fold], n = gp->data.n;
    double *const inverse_columns = f->inverse_columns + f->gathered * n;
    double *const product = f->product + f->gathered * n;
    block_weight(gp, f, row);
    const frgi_blas_guard guard = frgi_blas_begin();
#pragma omp parallel num_threads(frg_threads(gp->ctx))
    {
        frgi_blas_single();
#pragma omp for schedule(static)
        for (ptrdiff_t first = 0; first < n; first += CHUNK) {
            const ptrdiff_t end = first + CHUNK < n ? first + CHUNK : n;
            for (ptrdiff_t j = 0; j < m; j++) {
                for (ptrdiff_t i = first; i < end; i++) {
                    inverse_columns[i + j * n] =
                        i >= row[j] ? inverse_at(gp, i, row[j]) : inverse_at(gp, row[j], i);
                }
            }
            frgi_dgemm('N', 'N', (int)(end - first), (int)m, (int)m, 1, inverse_columns + first,
                       (int)n, f->weight, (int)m, 0, product + first, (int)n);
        }
    }
    frgi_blas_end(guard);
    f->gathered += m;
}

static void begin_gradient(frg_gp *gp, folding *f)
{
    frgi_gp_overwrite(gp, &f->density.second);
    frgi_spd_clear(&f->density.second);
    f->gathered = 0;
}

static frg_status finish_gradient(frg_gp *gp, folding *f)
{
    add_gathered(gp, f);
    f->density.scale_slope = 0.5 * (f->square - (double)(gp->data.n * gp->data.q));
    frg_status status = frgi_gp_density_apply(gp, &f->density);
    if (status == FRG_OK) {
        status = frgi_gp_density_pass(gp, &f->density, gp->result.gradient);
    }
    return status;
}

/* ---- all blocks ------------------------------------------------------------------------------ */

frg_status frgi_gp_leave_blocks_out(frg_gp *gp, folding *f)
{
    if (f->wants_gradient) {
        begin_gradient(gp, f);
    }
    for (ptrdiff_t k = 0; k < f->folds; k++) {
        if (f->begin[k + 1] == f->begin[k]) {
            continue;
        }
        const frg_status status = predict_block(gp, f, k);
        if (status != FRG_OK) {
            return status;
        }
        if (f->wants_gradient) {
            gather_columns(gp, f, k);
        }
        if (f->gathered >= GATHERED) {
            add_gathered(gp, f);
        }
    }
    return f->wants_gradient ? finish_gradient(gp, f) : FRG_OK;
}

static frg_status predict_all(frg_gp *gp, folding *f, double *mean, double *variance,
                              double *gradient, frg_gp_loo *out)
{
    const ptrdiff_t n = gp->data.n, q = gp->data.q;
    double square = 0;
    const frg_status status = gp->steps->gradient.leave_blocks_out(gp, f);
    if (status != FRG_OK) {
        return status;
    }
    if (gradient) {
        memcpy(gradient, gp->result.gradient, (size_t)gp->model.params.count * sizeof *gradient);
    }
    const double density =
        f->log_density - 0.5 * (f->square + (double)(n * q) * log(gp->state.scale));
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t c = 0; c < q; c++) {
            const double e = gp->data.y[c * n + i] - f->mean[c * n + i];
            square += e * e;
            if (mean) {
                mean[i * q + c] = f->mean[c * n + i];
            }
        }
    }
    if (variance) {
        memcpy(variance, f->variance, (size_t)n * sizeof *variance);
    }
    if (out) {
        *out = (frg_gp_loo){.log_density = density, .rmse = sqrt(square / (double)(n * q))};
    }
    return FRG_OK;
}

frg_status frg_gp_eval_folds(frg_gp *gp, const int32_t *folds, double *mean, double *variance,
                             double *gradient, frg_gp_loo *out)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    REQUIRE(gp->ctx, folds, "folds is NULL");
    frgi_run_begins(gp->ctx);
    folding f = {.wants_gradient = gradient != NULL};
    frgi_arena a = {0};
    TRY(measure(gp, folds, &f));
    frg_status status = frgi_gp_need_inverse(gp);
    if (status != FRG_OK) {
        return status;
    }
    lay_out(&a, gp, &f);
    TRY(frgi_arena_open(&a, gp->ctx, "blocks left out"));
    lay_out(&a, gp, &f);
    sort_rows(gp, folds, &f);
    status = predict_all(gp, &f, mean, variance, gradient, out);
    frgi_arena_close(&a, gp->ctx);
    return status;
}
