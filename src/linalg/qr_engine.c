/* qr_engine.c - one matrix: scale its columns, choose a way, factor, fix signs, look at what came out.
 *
 * Columns are scaled by powers of two first, which changes neither Q nor a bit of R and keeps squares in range.
 *
 * Ways:  Householder by panels (qr_cpu.tmpl.h), 8/3 n^3 flops, always good;
 *        Cholesky:  C = A'A with unit diagonal, C = R'R, Q = A R^-1, 7/3 n^3, good while R^-1 is small.
 *
 * The smallest pivot p = min R_jj^2 of the unit-diagonal Gram guards the second one.  It does not bound the
 * condition alone (a bidiagonal R with r_jj^2 = 0.21 leaves 0.3 after one pass), so that norm(R^-1)^2 is
 * estimated besides.  Ladder: p >= 0.2 and norm(R^-1)^2 <= 16: one pass.  p >= 1e-4: a second pass.  Below: a
 * shift of 20 n u on the diagonal, then two more passes.  A pass that leaves F = Q'Q - I with norm <= 1e-3 is
 * repaired by Q (I - triu(F, 1) - diag(F) / 2), whose error is norm(F)^2.  Else Householder, on the matrix that
 * was kept.  Without the forced ladder only the one-pass rung is tried, and only on a caller's hint.
 *
 * References: Schreiber and Van Loan (1989), compact WY; Yamamoto, Nakatsukasa, Yanagisawa and Fukaya (2015),
 * CholeskyQR2; Fukaya et al. (2020), shifted CholeskyQR3. */
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
    /* one pass on a hint is tried from this order on.  ms, one AVX-512 core, Householder and one pass: 0.57 and
       1.03 at 256, 3.7 and 4.7 at 512, 26 and 31 at 1024, 225 and 193 at 2048 */
    ONE_PASS_FROM = 1536,
    /* columns up to which panels are narrow: their own work, which runs at half the speed of what they do to the columns
       after them, is the larger a part the fewer columns there are */
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

/* ---- rooms --------------------------------------------------------------------------------------- */

const frgi_qr_ops *frgi_qr_ops_of(const frg_context *ctx, bool f64)
{
    static const frgi_qr_ops *const tables[ISA_COUNT] = EACH_LEVEL(frgi_qr_table);
    return &tables[frgi_context_isa(ctx)][f64];
}

/** An odd number of steps more than a multiple of 1024 bytes, at least. */
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

void frgi_qr_room_take(frgi_arena *arena, frgi_qr_room *room, frgi_product_way way, bool f64,
                       const frgi_qr_extent *e, int team, bool ladder, bool gram, bool r)
{
    const size_t element = f64 ? sizeof(double) : sizeof(float);
    const size_t ld = (size_t)frgi_qr_rounded(e->m, QR_ROW_STEP) + 2 * QR_ROW_STEP;
    const size_t rows = (size_t)frgi_qr_rounded(e->rows, QR_ROW_STEP) + 2 * QR_ROW_STEP;
    const size_t columns = (size_t)frgi_qr_rounded(e->n, QR_BLOCK), wide = QR_PANEL;
    const size_t count = (size_t)e->n, matrix = frgi_mul(e->elements, element);
    *room = (frgi_qr_room){.f64 = f64};
    room->x.a = frgi_take(arena, matrix);
    room->x.diagonal = frgi_take(arena, columns * element);
    room->x.v_leaf = frgi_take(arena, rows * QR_LEAF * element);
    room->x.v_tiles = frgi_take(arena, rows * wide * element);
    room->x.v_rows = frgi_take(arena, rows * wide * element);
    room->x.t = frgi_take(arena, columns * wide * element);
    room->x.small = frgi_take(arena, (wide + 2 * QR_BAND * (size_t)team) * wide * element);
    frgi_qr_wide_take(arena, &room->wide, f64 ? PRODUCT_BLAS : way, rows, columns, team);
    frgi_qr_tall_take(arena, &room->tall, way, f64, e->tall, e->stack, team);
    room->strip = frgi_take(arena, (ld + columns) * QR_BLOCK * element);
    room->inverse = frgi_take(arena, columns * QR_BLOCK * element);
    room->norm2 = TAKE(arena, double, count);
    room->factor = TAKE(arena, double, count);
    if (ladder) {
        room->other = frgi_take(arena, matrix);
    }
    if (ladder || gram) {
        room->gram = frgi_take(arena, frgi_mul(frgi_mul(count, count), element));
    }
    if (r) {
        room->r = frgi_take(arena, frgi_mul(frgi_mul(count, count), element));
    }
}

void frgi_qr_room_shape(const frgi_qr_ops *ops, frgi_qr_room *room, int64_t m, int64_t n)
{
    frgi_qr_matrix *const x = &room->x;
    x->m = (ptrdiff_t)m;
    x->n = (ptrdiff_t)n;
    x->rows = frgi_qr_rounded(m, QR_ROW_STEP);
    x->columns = frgi_qr_rounded(n, QR_LEAF);
    x->ld = column_distance(x->rows);
    x->panel = n <= NARROW_UP_TO ? ops->narrow : QR_PANEL;
    x->team = 1;
}

/* ---- one matrix ---------------------------------------------------------------------------------- */

static char *column(const frgi_qr_room *room, const void *base, ptrdiff_t j)
{
    const size_t element = room->f64 ? sizeof(double) : sizeof(float);
    return (char *)base + (size_t)(j * room->x.ld) * element;
}

void frgi_qr_scale_column(const frgi_qr_ops *ops, frgi_qr_room *room, ptrdiff_t j, const void *old)
{
    void *const a = column(room, room->x.a, j);
    const double top = ops->largest(room->x.rows, a);
    if (!(top > 0)) {
        room->factor[j] = 0;
        room->norm2[j] = isnan(top) ? top : old ? 1 : 0;
        if (old) {
            const size_t bytes =
                (size_t)room->x.rows * (room->f64 ? sizeof(double) : sizeof(float));
            memcpy(a, column(room, old, j), bytes);
        }
        return;
    }
    int exponent;
    (void)frexp(top, &exponent);
    room->factor[j] = ldexp(1, -exponent);
    if (abs(exponent) > 120) { /* 2^-exponent itself may be beyond the type's range */
        const int half = exponent / 2;
        (void)ops->scale(room->x.rows, ldexp(1, -half), a);
        exponent -= half;
    }
    room->norm2[j] = ops->scale(room->x.rows, ldexp(1, -exponent), a);
}

static bool all_finite(const frgi_qr_room *room)
{
    bool finite = true;
    for (ptrdiff_t j = 0; j < room->x.n; j++) {
        finite = finite && !isnan(room->norm2[j]);
    }
    return finite;
}

static void take_r(const frgi_qr_room *room)
{
    if (room->r) {
        (room->f64 ? take_r_f64 : take_r_f32)(room);
    }
}

static void solve_tall(const frgi_qr_ops *ops, const frgi_qr_room *room)
{
    frgi_qr_room second = *room;
    frgi_qr_tall_factor(ops, &room->tall, &room->x, room->f64, &second.x);
    take_r(&second);
    frgi_qr_tall_form(ops, &room->tall, &room->x, room->f64, &second.x);
}

static void solve_householder(const frgi_qr_ops *ops, frgi_qr_room *room)
{
    room->q = room->x.a;
    if (frgi_qr_is_tall(room->x.m, room->x.n)) {
        solve_tall(ops, room);
    } else if (frgi_qr_is_wide(&room->wide, &room->x)) {
        frgi_qr_wide_factor(ops, &room->wide, &room->x);
        take_r(room);
        frgi_qr_wide_form(ops, &room->wide, &room->x);
    } else {
        ops->factor(&room->x);
        take_r(room);
        ops->form(&room->x);
    }
}

static bool all_zero(const frgi_qr_room *room)
{
    for (ptrdiff_t j = 0; j < room->x.n; j++) {
        if (room->factor[j] != 0) {
            return false;
        }
    }
    return true;
}

/** Q is the old basis itself, not its refactorisation. */
static void keep_old(frgi_qr_room *room, frg_qr_report *report)
{
    room->q = room->x.a;
    if (room->r) {
        const size_t element = room->f64 ? sizeof(double) : sizeof(float);
        memset(room->r, 0, (size_t)(room->x.n * room->x.n) * element);
    }
    report->rank = 0;
    report->pivot = 0;
    report->flags |= FRG_QR_DEFICIENT;
}

static void solve(const frgi_qr_ops *ops, frgi_qr_room *room, const frgi_qr_wish *wish,
                  frg_qr_report *report)
{
    *report = (frg_qr_report){.method = FRG_QR_HOUSEHOLDER, .passes = 1, .orthogonality = NAN};
    if (!all_finite(room)) {
        report->flags = FRG_QR_NONFINITE;
        report->pivot = NAN;
        return;
    }
    if (wish->old && all_zero(room)) {
        keep_old(room, report);
    } else {
        const bool forced = wish->method == FRG_QR_CHOLESKY;
        bool done = false;
        if (forced || (wish->method == FRG_QR_AUTO && wish->hint >= HINT_TRIES && room->other &&
                       room->x.n >= ONE_PASS_FROM)) {
            done = (room->f64 ? ladder_f64 : ladder_f32)(ops, room, wish, forced, report);
        }
        if (wish->method == FRG_QR_VENDOR) {
            report->method = FRG_QR_VENDOR;
            (room->f64 ? vendor_f64 : vendor_f32)(room);
        } else if (!done) {
            report->method = FRG_QR_HOUSEHOLDER;
            solve_householder(ops, room);
        }
        (room->f64 ? settle_f64 : settle_f32)(room, report);
    }
    if (wish->verify == FRG_QR_VERIFY_PROBE) {
        report->orthogonality =
            ops->probe(room->x.rows, room->x.n, room->q, room->x.ld, room->strip);
    } else if (wish->verify == FRG_QR_VERIFY_FULL) {
        report->orthogonality = (room->f64 ? verify_f64 : verify_f32)(room);
    }
}

void frgi_qr_solve(const frgi_qr_ops *ops, frgi_qr_room *room, const frgi_qr_wish *wish,
                   frg_qr_report *report)
{
    const unsigned mode = frgi_keep_denormals(); /* as the other threads of a team do */
    solve(ops, room, wish, report);
    frgi_restore_denormals(mode);
}
