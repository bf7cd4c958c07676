/* gp_folds.c - predictions of blocks of rows from all others, from one inverse.
 *
 * With P = K^-1, or K^-1 - E E' where a mean H beta is estimated with each block left out, a = P y, and the rows B of
 * one fold:
 *
 *     mean y_B - P_BB^-1 a_B,   covariance P_BB^-1 (noise included),
 *     log density = 1/2 log |P_BB| - 1/2 a_B' P_BB^-1 a_B - |B|/2 log 2 pi        of the block's rows together
 *
 * for each column of y.  Leave-one-out is the case of blocks of one.  Beyond the inverse sum_B |B|^3 flop, in f64
 * whatever the process's arithmetic; memory |B|^2 of the largest block.
 * Rasmussen and Williams (2006), 5.4.2; Dubrule (1983).
 */
#include <math.h>
#include <string.h>

#include "gp/gp_columns.h"

static const double LOG_2PI = 1.8378770664093454836;

typedef struct {
    ptrdiff_t folds, most; /* most: rows of the largest block */
    ptrdiff_t *begin;      /* folds + 1: where each block starts in `row` */
    ptrdiff_t *row;        /* n: rows by fold, ascending within each */
    double *block;         /* P_BB, its factor, its inverse */
    double *column;        /* most */
    double *a, *e;         /* most x q: a_B and P_BB^-1 a_B */
    double *mean, *variance;
    void *work;
    size_t elements, work_bytes; /* for every order up to `most` */
} folding;

static void lay_out(frgi_arena *a, const frg_gp *gp, folding *f)
{
    f->begin = TAKE(a, ptrdiff_t, f->folds + 2);
    f->row = TAKE(a, ptrdiff_t, gp->n);
    f->block = TAKE(a, double, f->elements);
    f->column = TAKE(a, double, f->most);
    f->a = TAKE(a, double, f->most * gp->q);
    f->e = TAKE(a, double, f->most * gp->q);
    f->mean = TAKE(a, double, gp->n * gp->q);
    f->variance = TAKE(a, double, gp->n);
    f->work = frgi_take(a, f->work_bytes);
}

/** begin and row from the codes; begin is one ahead while rows are dealt out. */
static void sort_rows(const frg_gp *gp, const int32_t *codes, folding *f)
{
    memset(f->begin, 0, (size_t)(f->folds + 2) * sizeof *f->begin);
    for (ptrdiff_t i = 0; i < gp->n; i++) {
        f->begin[codes[i] + 2]++;
    }
    for (ptrdiff_t k = 0; k < f->folds; k++) {
        f->begin[k + 2] += f->begin[k + 1];
    }
    for (ptrdiff_t i = 0; i < gp->n; i++) {
        f->row[f->begin[codes[i] + 1]++] = i;
    }
}

/** How many folds, and what the largest needs. */
static frg_status measure(const frg_gp *gp, const int32_t *codes, folding *f)
{
    ptrdiff_t *size;
    f->folds = 0;
    for (ptrdiff_t i = 0; i < gp->n; i++) {
        REQUIRE(gp->ctx, codes[i] >= 0 && codes[i] < gp->n,
                "the fold of row %lld is %d; folds are numbered 0 .. F - 1 with F <= n",
                (long long)i + 1, codes[i]);
        f->folds = codes[i] >= f->folds ? codes[i] + 1 : f->folds;
    }
    TRY(NEW0(gp->ctx, &size, f->folds, "sizes of folds"));
    for (ptrdiff_t i = 0; i < gp->n; i++) {
        size[codes[i]]++;
    }
    for (ptrdiff_t k = 0; k < f->folds; k++) {
        const frgi_spd_shape s = frgi_spd_plan(size[k], FRG_F64);
        const size_t elements = (size_t)frgi_spd_elements(&s),
                     bytes = frgi_spd_work_bytes(&s, frg_threads(gp->ctx));
        f->most = size[k] > f->most ? size[k] : f->most;
        f->elements = elements > f->elements ? elements : f->elements;
        f->work_bytes = bytes > f->work_bytes ? bytes : f->work_bytes;
    }
    DROP(gp->ctx, &size);
    return FRG_OK;
}

static double inverse_at(const frg_gp *gp, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t at = frgi_gp_place(&gp->shape, i, j), n = gp->n;
    double p = gp->shape.dtype == FRG_F64 ? ((const double *)gp->matrix)[at]
                                          : (double)((const float *)gp->matrix)[at];
    for (ptrdiff_t k = 0; k < gp->profile.count; k++) {
        p -= gp->profile.half[k * n + i] * gp->profile.half[k * n + j];
    }
    return p;
}

/** block <- P_BB; a_B beside it. */
static void gather(const frg_gp *gp, const folding *f, const frgi_spd_shape *s,
                   const ptrdiff_t *row)
{
    for (ptrdiff_t j = 0; j < s->n; j++) {
        for (ptrdiff_t i = j; i < s->n; i++) { /* rows ascend: the lower triangle of the inverse */
            f->column[i] = inverse_at(gp, row[i], row[j]);
        }
        frgi_gp_write_column(s, f->block, j, j, s->n, f->column + j);
    }
    for (ptrdiff_t c = 0; c < gp->q; c++) {
        for (ptrdiff_t i = 0; i < s->n; i++) {
            f->a[c * s->n + i] = gp->alpha[c * gp->n + row[i]];
        }
    }
}

/** One block: its means and variances, *density gains its log density. */
static frg_status predict_block(frg_gp *gp, const folding *f, ptrdiff_t fold, double *density)
{
    const ptrdiff_t *const row = f->row + f->begin[fold];
    const ptrdiff_t m = f->begin[fold + 1] - f->begin[fold], n = gp->n, q = gp->q;
    const frgi_spd_shape s = frgi_spd_plan(m, FRG_F64);
    frgi_spd_pivots pivots;
    double logdet;
    gather(gp, f, &s, row);
    frgi_spd_diagonal(&s, f->block, f->column);
    double whole = 0;
    for (ptrdiff_t i = 0; i < m; i++) {
        whole = fmax(whole, f->column[i]);
    }
    frg_status status = frgi_spd_factor(gp->ctx, &s, f->block, f->work, &logdet, &pivots);
    if (status == FRG_NOT_POSDEF ||
        (status == FRG_OK && !(pivots.smallest * pivots.smallest > 1e-12 * whole))) {
        REQUIRE(gp->ctx, gp->profile.count == 0,
                "fold %lld carries a coefficient of the mean alone: without its rows nothing is "
                "left to estimate that from",
                (long long)fold);
        FAIL(gp->ctx, E_NOT_POSDEF, "the precision of fold %lld has the pivot %.3g at its row %lld",
             (long long)fold, pivots.value, (long long)pivots.pivot + 1);
    }
    if (status == FRG_OK) {
        status = frgi_spd_inverse(gp->ctx, &s, f->block, f->work);
    }
    if (status == FRG_OK) {
        status = frgi_spd_times(gp->ctx, &s, f->block, q, f->a, m, f->e, m, f->work);
    }
    if (status != FRG_OK) {
        return status;
    }
    frgi_spd_diagonal(&s, f->block, f->column);
    *density += 0.5 * (double)q * (logdet - (double)m * LOG_2PI);
    for (ptrdiff_t i = 0; i < m; i++) {
        f->variance[row[i]] = f->column[i];
        for (ptrdiff_t c = 0; c < q; c++) {
            *density -= 0.5 * f->a[c * m + i] * f->e[c * m + i];
            f->mean[c * n + row[i]] = gp->y[c * n + row[i]] - f->e[c * m + i];
        }
    }
    return FRG_OK;
}

static frg_status predict_all(frg_gp *gp, const folding *f, double *mean, double *variance,
                              frg_gp_loo *out)
{
    const ptrdiff_t n = gp->n, q = gp->q;
    double density = 0, square = 0;
    for (ptrdiff_t k = 0; k < f->folds; k++) {
        if (f->begin[k + 1] > f->begin[k]) {
            const frg_status status = predict_block(gp, f, k, &density);
            if (status != FRG_OK) {
                return status;
            }
        }
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t c = 0; c < q; c++) {
            const double e = gp->y[c * n + i] - f->mean[c * n + i];
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
                             frg_gp_loo *out)
{
    if (!gp) {
        return FRG_BAD_ARG;
    }
    REQUIRE(gp->ctx, folds, "folds is NULL");
    frgi_run_begins(gp->ctx);
    folding f = {0};
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
    status = predict_all(gp, &f, mean, variance, out);
    frgi_arena_close(&a, gp->ctx);
    return status;
}
