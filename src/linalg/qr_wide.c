/* qr_wide.c - Householder QR in single precision by blocks of 128 columns: what they do to the
 * columns after them are products on tiles, which are another unit of the core and several times as
 * fast as its multiply-adds.
 *
 *     block    factored by its own panels (qr_cpu.tmpl.h)
 *     T        T^-1 = striu(V'V) + diag(V'V) / 2,  by halves:  T_12 = -T_11 (V'V)_12 T_22
 *     others   C <- C - V T'(V'C);  where Q is formed, T in place of T' and the blocks in reverse
 *
 * The diagonal of V'V is summed in double, as what T makes of it decides how orthogonal Q is.
 * Columns of C may be dealt in any ranges: products are our own at every size that occurs here (the
 * last block takes what would be less than 32 columns), so that bits do not depend on the team.
 *
 * Cost: 2 n 128^2 flops a block more than panels alone.  Danger: tiles lose numbers below 2^-126,
 * which columns scaled to norms near 1 do not feel. */
#include "linalg/qr_wide.h"

#include <omp.h>
#include <string.h>

enum {
    WIDE = 128,
    LEAST = 32,  /* a product's least size */
    RANGE = 128, /* columns of a range, at least */
    /* columns from which this gains: 0.99 of the time of panels at 512, 0.92 at 640, 0.85 at 1024;
     * 1.05 at 448 */
    WORTH_IT = 4 * WIDE,
};

void frgi_qr_wide_take(frgi_arena *arena, frgi_qr_wide *wide, frgi_product_way way, size_t ld,
                       size_t columns, int team)
{
    *wide = (frgi_qr_wide){0};
    if (way != PRODUCT_TILES || columns < WORTH_IT) {
        return;
    }
    wide->products = TAKE(arena, frgi_product_workspace, team);
    for (int i = 0; i < team; i++) {
        frgi_product_workspace work;
        frgi_product_workspace_take(arena, &work, way);
        if (wide->products) {
            wide->products[i] = work;
        }
    }
    wide->v = TAKE(arena, float, ld *WIDE);
    wide->t = TAKE(arena, float, columns *WIDE);
    wide->w = TAKE(arena, float, columns *WIDE);
    wide->x = TAKE(arena, float, columns *WIDE);
    wide->gram = TAKE(arena, float, WIDE *WIDE);
    wide->product = TAKE(arena, float, WIDE *WIDE);
}

bool frgi_qr_is_wide(const frgi_qr_wide *wide, const frgi_qr_matrix *x)
{
    return wide->v && x->columns >= WORTH_IT;
}

/** The block whose first row and column is `first`, with all that is below it. */
static frgi_qr_matrix block_of(const frgi_qr_matrix *x, ptrdiff_t first)
{
    const ptrdiff_t left = x->columns - first, width = left < WIDE + LEAST ? left : WIDE;
    frgi_qr_matrix b = *x;
    b.m -= first;
    b.rows -= first;
    b.n = b.columns = width;
    b.a = (float *)x->a + first * (x->ld + 1);
    b.diagonal = (float *)x->diagonal + first;
    b.t = (float *)x->t + first * x->panel;
    return b;
}

/** V of a block, from what its panels left; a reflector that is none left zeros, and has none on
 *  its diagonal. */
static void take_v(const frgi_qr_wide *wide, const frgi_qr_matrix *b)
{
    for (ptrdiff_t j = 0; j < WIDE; j++) {
        const float *const a = (const float *)b->a + j * b->ld;
        float *const v = wide->v + j * b->ld;
        bool live = false;
        memset(v, 0, (size_t)j * sizeof *v);
        memcpy(v + j, a + j, (size_t)(b->rows - j) * sizeof *v);
        for (ptrdiff_t i = j + 1; i < b->rows && !live; i++) {
            live = v[i] != 0;
        }
        v[j] = live ? 1 : 0;
    }
}

/** T of 32 columns, at its place in t and gram; the rest of t there is zero. */
static void small_t(const float *gram, float *t)
{
    for (ptrdiff_t j = 0; j < LEAST; j++) {
        const float diagonal = t[j * WIDE + j];
        for (ptrdiff_t k = 0; k < j; k++) { /* -T_11 times column j of V'V */
            const float s = -gram[k * WIDE + j];
            for (ptrdiff_t i = 0; i <= k; i++) {
                t[j * WIDE + i] += s * t[k * WIDE + i];
            }
        }
        for (ptrdiff_t i = 0; i < j; i++) {
            t[j * WIDE + i] *= diagonal;
        }
    }
}

/** T of the block whose V is in wide->v. */
static void make_t(const frgi_qr_wide *wide, const frgi_qr_matrix *b, float *t)
{
    float *const gram = wide->gram;
    memset(t, 0, (size_t)(WIDE * WIDE) * sizeof *t);
    frgi_product_square(wide->products, 'T', WIDE, b->rows, 1, wide->v, b->ld, 0, gram, WIDE);
    for (ptrdiff_t j = 0; j < WIDE; j++) {
        const float *const v = wide->v + j * b->ld;
        double norm2 = 0;
#pragma omp simd reduction(+ : norm2)
        for (ptrdiff_t i = 0; i < b->rows; i++) {
            norm2 += (double)v[i] * (double)v[i];
        }
        t[j * WIDE + j] = norm2 > 0 ? (float)(2 / norm2) : 1;
    }
    for (ptrdiff_t j = 0; j < WIDE; j += LEAST) {
        small_t(gram + j * WIDE + j, t + j * WIDE + j);
    }
    for (ptrdiff_t n = LEAST; n < WIDE; n *= 2) {
        for (ptrdiff_t j = 0; j < WIDE; j += 2 * n) {
            float *const first = t + j * WIDE + j, *const second = first + n * WIDE + n;
            frgi_product(wide->products, 'T', 'N', n, n, n, gram + j * WIDE + j + n, WIDE, second,
                         WIDE, wide->product, WIDE);
            frgi_product_blend(wide->products, 'N', 'N', n, n, n, -1, first, WIDE, wide->product,
                               WIDE, 0, first + n * WIDE, WIDE);
        }
    }
}

/** The columns right of a block. */
typedef struct {
    const frgi_qr_wide *wide;
    const frgi_qr_matrix *b;
    const float *t;
    ptrdiff_t columns;
    bool transposed; /* T': the factorisation, where the block's rows of C are not zero */
} update;

/** Columns from .. of  C <- C - V T'(V'C) or C - V T (V'C). */
static void update_columns(const update *u, const frgi_product_workspace *work, ptrdiff_t from,
                           ptrdiff_t count)
{
    const frgi_qr_matrix *const b = u->b;
    const ptrdiff_t zeros = u->transposed ? 0 : WIDE;
    float *const c = (float *)b->a + (WIDE + from) * b->ld;
    float *const w = u->wide->w + from * WIDE, *const x = u->wide->x + from * WIDE;
    for (ptrdiff_t j = 0; zeros && j < count; j++) {
        memset(c + j * b->ld, 0, (size_t)zeros * sizeof *c);
    }
    frgi_product(work, 'T', 'N', WIDE, count, b->rows - zeros, u->wide->v + zeros, b->ld, c + zeros,
                 b->ld, w, WIDE);
    frgi_product(work, u->transposed ? 'T' : 'N', 'N', WIDE, count, WIDE, u->t, WIDE, w, WIDE, x,
                 WIDE);
    frgi_product_blend(work, 'N', 'N', b->rows, count, WIDE, -1, u->wide->v, b->ld, x, WIDE, 1, c,
                       b->ld);
}

static void update_all(const update *u)
{
    const int team = u->b->team;
    const ptrdiff_t ranges = team > 1 && u->columns > RANGE ? u->columns / RANGE : 1;
    if (team == 1) { /* within a region of the caller's */
        update_columns(u, u->wide->products, 0, u->columns);
        return;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
    for (ptrdiff_t i = 0; i < ranges; i++) {
        const ptrdiff_t from = u->columns * i / ranges, to = u->columns * (i + 1) / ranges;
        update_columns(u, &u->wide->products[omp_get_thread_num()], from, to - from);
    }
}

void frgi_qr_wide_factor(const frgi_qr_ops *ops, const frgi_qr_wide *wide, const frgi_qr_matrix *x)
{
    ptrdiff_t width;
    for (ptrdiff_t first = 0; first < x->columns; first += width) {
        const frgi_qr_matrix b = block_of(x, first);
        float *const t = wide->t + first * WIDE;
        ops->factor(&b);
        width = b.columns;
        if (first + width < x->columns) {
            take_v(wide, &b);
            make_t(wide, &b, t);
            update_all(&(update){wide, &b, t, x->columns - first - width, true});
        }
    }
}

void frgi_qr_wide_form(const frgi_qr_ops *ops, const frgi_qr_wide *wide, const frgi_qr_matrix *x)
{
    ptrdiff_t first = (x->columns - 1) / WIDE * WIDE;
    first -= first > 0 && x->columns - first < LEAST ? WIDE : 0;
    for (; first >= 0; first -= WIDE) {
        const frgi_qr_matrix b = block_of(x, first);
        if (first + b.columns < x->columns) {
            take_v(wide, &b);
            update_all(
                &(update){wide, &b, wide->t + first * WIDE, x->columns - first - WIDE, false});
        }
        ops->form(&b);
    }
}
