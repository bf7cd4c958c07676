/* qr_engine.c - one matrix: scale its columns, choose a method, factor, fix signs, verify Q.
 *
 * Columns are scaled by powers of two first, which changes neither Q nor a bit of R and keeps
 * squares in range.
 *
 * Ways:  Householder by panels (qr_cpu.tmpl.h), 8/3 n^3 flops, always good;
 *        Cholesky:  C = A'A with unit diagonal, C = R'R, Q = A R^-1, 7/3 n^3 (m = n), good while
 *        R^-1 is small.
 *
 * The smallest pivot p = min R_jj^2 of the unit-diagonal Gram guards the second one.  It does not
 * bound the condition alone (a bidiagonal R with r_jj^2 = 0.21 leaves 0.3 after one pass), so that
 * norm(R^-1)^2 is estimated besides.  Cascade: p >= 0.2 and norm(R^-1)^2 <= 16: one pass.  p >=
 * 1e-4: a second pass.  Below: a shift of 20 n u on the diagonal, then two more passes.  A pass
 * that leaves F = Q'Q - I with norm <= 1e-3 is repaired by Q (I - triu(F, 1) - diag(F) / 2), whose
 * error is norm(F)^2; up to 0.3 there is another Cholesky pass.  Else Householder, on the matrix
 * that was kept.  Unless Cholesky is forced, only one pass is tried, and only where a caller's hint
 * does not rule it out.
 *
 * References: Schreiber and Van Loan (1989), compact WY; Yamamoto, Nakatsukasa, Yanagisawa and
 * Fukaya (2015), CholeskyQR2; Fukaya et al. (2020), shifted CholeskyQR3. */
#include "linalg/qr_engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/denormals.h"
#include "linalg/blas.h"

static const double ONE_PASS_PIVOT = 0.2, ONE_PASS_INVERSE = 16, TWO_PASS_PIVOT = 1e-4;
static const double FIRST_ORDER = 1e-3, CHOLESKY_AGAIN = 0.3, HINT_TRIES = 0.45;
enum {
    MOST_PASSES = 4,
    /* one pass on a hint is tried from this order on.  ms, one AVX-512 core, Householder and one
     * pass: 0.57 and 1.03 at 256, 3.7 and 4.7 at 512, 26 and 31 at 1024, 225 and 193 at 2048 */
    ONE_PASS_FROM = 1536,
    /* columns up to which panels are narrow: their own work, which runs at half the speed of what
     * they do to the columns after them, is the larger a share the fewer columns there are */
    NARROW_UP_TO = 512,
};

#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)
#define FN(name)   CAT(name, SUF)
#define UNIT_F32   0x1p-24
#define UNIT_F64   0x1p-53

static int small_int(ptrdiff_t x)
{
    return (int)x;
}

#define SUF   f32
#define real  float
#define GEMM  frgi_sgemm
#define TRSV  frgi_strsv
#define GEQRF frgi_sgeqrf
#define ORGQR frgi_sorgqr
#define UNIT  UNIT_F32
#include "linalg/qr_engine.tmpl.h"
#undef SUF
#undef real
#undef GEMM
#undef TRSV
#undef GEQRF
#undef ORGQR
#undef UNIT
#define SUF   f64
#define real  double
#define GEMM  frgi_dgemm
#define TRSV  frgi_dtrsv
#define GEQRF frgi_dgeqrf
#define ORGQR frgi_dorgqr
#define UNIT  UNIT_F64
#include "linalg/qr_engine.tmpl.h"

/* ---- workspaces ------------------------------------------------------------------------------ */

const frgi_qr_ops *frgi_qr_ops_of(const frg_context *ctx, bool f64)
{
    static const frgi_qr_ops *const tables[ISA_COUNT] = EACH_LEVEL(frgi_qr_table);
    return &tables[frgi_context_isa(ctx)][f64];
}

/** Elements from column to column: no multiple of 256. */
static ptrdiff_t column_distance(ptrdiff_t rows)
{
    const ptrdiff_t ld = rows + QR_ROW_STEP;
    return ld % 256 == 0 ? ld + QR_ROW_STEP : ld;
}

void frgi_qr_extend(frgi_qr_extent *e, int64_t m, int64_t n)
{
    const size_t ld = (size_t)column_distance(frgi_qr_rounded(m, QR_ROW_STEP));
    const size_t elements = frgi_mul(ld, (size_t)frgi_qr_rounded(n, QR_BLOCK));
    const size_t stack = frgi_qr_stack_elements(m, n);
    e->m = m > e->m ? m : e->m;
    e->n = n > e->n ? n : e->n;
    const int64_t rows = stack > 0 ? (int64_t)stack / frgi_qr_rounded(n, QR_LEAF) : m;
    e->rows = rows > e->rows ? rows : e->rows;
    e->elements = elements > e->elements ? elements : e->elements;
    e->stack = stack > e->stack ? stack : e->stack;
    e->tall = stack > 0 && n > e->tall ? n : e->tall;
}

void frgi_qr_workspace_take(frgi_arena *arena, frgi_qr_workspace *work, frgi_product_way way,
                            bool f64, const frgi_qr_extent *e, int team, bool cholesky, bool gram,
                            bool r)
{
    const size_t element = f64 ? sizeof(double) : sizeof(float);
    const size_t ld = (size_t)frgi_qr_rounded(e->m, QR_ROW_STEP) + 2 * QR_ROW_STEP;
    const size_t rows = (size_t)frgi_qr_rounded(e->rows, QR_ROW_STEP) + 2 * QR_ROW_STEP;
    const size_t columns = (size_t)frgi_qr_rounded(e->n, QR_BLOCK), wide = QR_PANEL;
    const size_t count = (size_t)e->n, matrix = frgi_mul(e->elements, element);
    *work = (frgi_qr_workspace){.f64 = f64};
    work->x.a = frgi_take(arena, matrix);
    work->x.diagonal = frgi_take(arena, columns * element);
    work->x.v_leaf = frgi_take(arena, rows * QR_LEAF * element);
    work->x.v_tiles = frgi_take(arena, rows * wide * element);
    work->x.v_rows = frgi_take(arena, rows * wide * element);
    work->x.t = frgi_take(arena, columns * wide * element);
    work->x.small = frgi_take(arena, (wide + 2 * QR_BAND * (size_t)team) * wide * element);
    frgi_qr_wide_take(arena, &work->wide, f64 ? PRODUCT_BLAS : way, rows, columns, team);
    frgi_qr_tall_take(arena, &work->tall, way, f64, e->tall, e->stack, team);
    work->panel = frgi_take(arena, (ld + columns) * QR_BLOCK * element);
    work->inverse = frgi_take(arena, columns * QR_BLOCK * element);
    work->norm2 = TAKE(arena, double, count);
    work->scales = TAKE(arena, double, count);
    if (cholesky) {
        work->other = frgi_take(arena, matrix);
    }
    if (cholesky || gram) {
        work->gram = frgi_take(arena, frgi_mul(frgi_mul(count, count), element));
    }
    if (r) {
        work->r = frgi_take(arena, frgi_mul(frgi_mul(count, count), element));
    }
}

void frgi_qr_workspace_shape(const frgi_qr_ops *ops, frgi_qr_workspace *work, int64_t m, int64_t n)
{
    frgi_qr_matrix *const x = &work->x;
    x->m = (ptrdiff_t)m;
    x->n = (ptrdiff_t)n;
    x->rows = frgi_qr_rounded(m, QR_ROW_STEP);
    x->columns = frgi_qr_rounded(n, QR_LEAF);
    x->ld = column_distance(x->rows);
    x->panel = n <= NARROW_UP_TO ? ops->narrow : QR_PANEL;
    x->team = 1;
}

/* ---- one matrix ------------------------------------------------------------------------------ */

static char *column(const frgi_qr_workspace *work, const void *base, ptrdiff_t j)
{
    const size_t element = work->f64 ? sizeof(double) : sizeof(float);
    return (char *)base + (size_t)(j * work->x.ld) * element;
}

void frgi_qr_scale_column(const frgi_qr_ops *ops, frgi_qr_workspace *work, ptrdiff_t j,
                          const void *old)
{
    void *const a = column(work, work->x.a, j);
    const double max_abs = ops->largest(work->x.rows, a);
    if (!(max_abs > 0)) {
        work->scales[j] = 0;
        work->norm2[j] = isnan(max_abs) ? max_abs : old ? 1 : 0;
        if (old) {
            const size_t bytes =
                (size_t)work->x.rows * (work->f64 ? sizeof(double) : sizeof(float));
            memcpy(a, column(work, old, j), bytes);
        }
        return;
    }
    int exponent;
    (void)frexp(max_abs, &exponent);
    work->scales[j] = ldexp(1, -exponent);
    if (abs(exponent) > 120) { /* 2^-exponent itself may be beyond the type's range */
        const int half = exponent / 2;
        (void)ops->scale(work->x.rows, ldexp(1, -half), a);
        exponent -= half;
    }
    work->norm2[j] = ops->scale(work->x.rows, ldexp(1, -exponent), a);
}

static bool all_finite(const frgi_qr_workspace *work)
{
    bool finite = true;
    for (ptrdiff_t j = 0; j < work->x.n; j++) {
        finite = finite && !isnan(work->norm2[j]);
    }
    return finite;
}

static void take_r(const frgi_qr_workspace *work)
{
    if (work->r) {
        (work->f64 ? take_r_f64 : take_r_f32)(work);
    }
}

static void solve_tall(const frgi_qr_ops *ops, const frgi_qr_workspace *work)
{
    frgi_qr_workspace second = *work;
    frgi_qr_tall_factor(ops, &work->tall, &work->x, work->f64, &second.x);
    take_r(&second);
    frgi_qr_tall_form(ops, &work->tall, &work->x, work->f64, &second.x);
}

static void solve_householder(const frgi_qr_ops *ops, frgi_qr_workspace *work)
{
    work->q = work->x.a;
    if (frgi_qr_is_tall(work->x.m, work->x.n)) {
        solve_tall(ops, work);
    } else if (frgi_qr_is_wide(&work->wide, &work->x)) {
        frgi_qr_wide_factor(ops, &work->wide, &work->x);
        take_r(work);
        frgi_qr_wide_form(ops, &work->wide, &work->x);
    } else {
        ops->factor(&work->x);
        take_r(work);
        ops->form(&work->x);
    }
}

static bool all_zero(const frgi_qr_workspace *work)
{
    for (ptrdiff_t j = 0; j < work->x.n; j++) {
        if (work->scales[j] != 0) {
            return false;
        }
    }
    return true;
}

/** Q is the old basis itself, not its refactorisation. */
static void keep_old(frgi_qr_workspace *work, frg_qr_report *report)
{
    work->q = work->x.a;
    if (work->r) {
        const size_t element = work->f64 ? sizeof(double) : sizeof(float);
        memset(work->r, 0, (size_t)(work->x.n * work->x.n) * element);
    }
    report->rank = 0;
    report->pivot = 0;
    report->flags |= FRG_QR_DEFICIENT;
}

static void solve(const frgi_qr_ops *ops, frgi_qr_workspace *work, const frgi_qr_request *request,
                  frg_qr_report *report)
{
    *report = (frg_qr_report){.method = FRG_QR_HOUSEHOLDER, .passes = 1, .orthogonality = NAN};
    if (!all_finite(work)) {
        report->flags = FRG_QR_NONFINITE;
        report->pivot = NAN;
        return;
    }
    if (request->old && all_zero(work)) {
        keep_old(work, report);
    } else {
        const bool forced = request->method == FRG_QR_CHOLESKY;
        bool done = false;
        if (forced || (request->method == FRG_QR_AUTO && request->hint >= HINT_TRIES &&
                       work->other && work->x.n >= ONE_PASS_FROM)) {
            done = (work->f64 ? cholesky_passes_f64 : cholesky_passes_f32)(ops, work, request,
                                                                           forced, report);
        }
        if (request->method == FRG_QR_VENDOR) {
            report->method = FRG_QR_VENDOR;
            (work->f64 ? vendor_f64 : vendor_f32)(work);
        } else if (!done) {
            report->method = FRG_QR_HOUSEHOLDER;
            solve_householder(ops, work);
        }
        (work->f64 ? fix_signs_f64 : fix_signs_f32)(work, report);
    }
    if (request->verify == FRG_QR_VERIFY_PROBE) {
        report->orthogonality =
            ops->probe(work->x.rows, work->x.n, work->q, work->x.ld, work->panel);
    } else if (request->verify == FRG_QR_VERIFY_FULL) {
        report->orthogonality = (work->f64 ? verify_f64 : verify_f32)(work);
    }
}

void frgi_qr_solve(const frgi_qr_ops *ops, frgi_qr_workspace *work, const frgi_qr_request *request,
                   frg_qr_report *report)
{
    const unsigned mode = frgi_keep_denormals(); /* as the other threads of a team do */
    solve(ops, work, request, report);
    frgi_restore_denormals(mode);
}
