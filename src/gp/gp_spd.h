/* gp_spd.h - symmetric positive definite matrices in one triangle: factor, inverse and solves, in
 * place.
 *
 * Layout.  The lower triangle is cut into square storage tiles of `tile` rows.  Tile (I, J), I >=
 * J, is stored column-major with leading dimension `ld` at frgi_spd_tile(); tiles lie row after
 * row.  A diagonal tile is stored whole: what stands above its diagonal is scratch, never read as
 * data.  Rows n .. padded-1 of the last tiles are a unit matrix (adds 0 to the logarithm of the
 * determinant); frgi_spd_factor writes them. A matrix of up to a few hundred rows is one tile, so
 * small and large are one code.
 *
 * Algorithm.  The blocked symmetric sweep (Bientinesi, Gunter, van de Geijn 2008) with pivot blocks
 * of `block` columns.  For the pivot block p with A_pp = L_pp L_pp' and V_i = A_ip L_pp^-T, every
 * step is the same update
 *
 *     A_ij <- A_ij - V_i V_j'
 *
 * on a region: i >= j > p leaves the Cholesky factor (n^3/3), j < p finishes the inverse (2 n^3/3).
 * The two regions are two calls, so that a value costs a third of a gradient, or one where both are
 * wanted: all that the inverse's step p needs is there after the factor's.  The bits are the same.
 *
 * Threads: tile rows are dealt to them cyclically, and a tile goes through the steps in one order
 * whoever does them, so the bits do not depend on their number.  Calls open their own parallel
 * regions, or run alone inside one.
 */
#ifndef FRGI_GP_SPD_H
#define FRGI_GP_SPD_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

typedef struct {
    frg_dtype dtype;  /* FRG_F64 or FRG_F32 */
    ptrdiff_t n;      /* order */
    ptrdiff_t padded; /* n rounded up to whole micro-rows */
    ptrdiff_t tile;   /* rows of a storage tile; of several, a multiple of block and of 48 */
    ptrdiff_t ld;     /* elements from column to column of a tile */
    ptrdiff_t tiles;  /* a side */
    ptrdiff_t block;  /* rows of a pivot block */
} frgi_spd_shape;

/** The shape for n rows; depends on n and the type alone. */
frgi_spd_shape frgi_spd_plan(ptrdiff_t n, frg_dtype dtype);
/** Elements of the stored triangle. */
ptrdiff_t frgi_spd_elements(const frgi_spd_shape *s);
/** Bytes of scratch that every call needs, 64-byte aligned like the matrix; threads: those of the
 *  context, or 1 for calls inside a parallel region.  Nothing is kept in it between calls. */
size_t frgi_spd_work_bytes(const frgi_spd_shape *s, int threads);
/** Offset in elements of tile (I, J), I >= J. */
static inline ptrdiff_t frgi_spd_tile(const frgi_spd_shape *s, ptrdiff_t row, ptrdiff_t col)
{
    return (row * (row + 1) / 2 + col) * s->ld * s->tile;
}
/** Rows of tile row I that are data. */
static inline ptrdiff_t frgi_spd_rows(const frgi_spd_shape *s, ptrdiff_t row)
{
    return s->n - row * s->tile < s->tile ? s->n - row * s->tile : s->tile;
}

/** Where and how a factor failed. */
typedef struct {
    ptrdiff_t pivot; /* row whose pivot was not positive, -1: none */
    double value;    /* of that pivot */
    double smallest; /* smallest and largest L_ii so far */
    double largest;
} frgi_spd_pivots;

/** A = L L' in place.  logdet = sum_i 2 log L_ii in double.  Returns FRG_OK, FRG_NOT_POSDEF (no
 *  message is recorded: the caller decides what it means; the matrix is then spoilt),
 *  FRG_INTERRUPTED or FRG_TIME_LIMIT. */
FRG_MUST_USE frg_status frgi_spd_factor(frg_context *ctx, const frgi_spd_shape *s, void *a,
                                        void *work, double *logdet, frgi_spd_pivots *pivots);
/** The same, and b <- L^-1 b for n elements on the way, where L is at hand: the bits of
 *  frgi_spd_factor and then frgi_spd_forward.  Where there is no factor, b is spoilt. */
FRG_MUST_USE frg_status frgi_spd_factor_forward(frg_context *ctx, const frgi_spd_shape *s, void *a,
                                                void *b, void *work, double *logdet,
                                                frgi_spd_pivots *pivots);
/** The logdet of a factor that was not made here, in the bits of those above. */
double frgi_spd_logdet(frg_context *ctx, const frgi_spd_shape *s, const void *l, void *work,
                       frgi_spd_pivots *pivots);
/** L -> A^-1 in place (lower triangle).  FRG_OK, FRG_INTERRUPTED or FRG_TIME_LIMIT: a positive
 *  status is no result. b, of n elements, or NULL: b <- L^-T b by the rows of L^-1 on the way, as
 *  accurate as frgi_spd_backward in norm. */
FRG_MUST_USE frg_status frgi_spd_inverse(frg_context *ctx, const frgi_spd_shape *s, void *l,
                                         void *b, void *work);
/** frgi_spd_factor_forward and frgi_spd_inverse in one sweep: b <- L^-1 b and solved <- L^-T of
 *  that, roots <- the n L_ii. The same bits in half the phases; where there is no factor, b and
 *  solved are spoilt. */
FRG_MUST_USE frg_status frgi_spd_sweep(frg_context *ctx, const frgi_spd_shape *s, void *a, void *b,
                                       void *solved, double *roots, void *work, double *logdet,
                                       frgi_spd_pivots *pivots);

/** b <- L^-1 b and b <- L^-T b; b is n x q of the shape's type, column-major, ldb >= n. */
FRG_MUST_USE frg_status frgi_spd_forward(frg_context *ctx, const frgi_spd_shape *s, const void *l,
                                         ptrdiff_t q, void *b, ptrdiff_t ldb, void *work);
FRG_MUST_USE frg_status frgi_spd_backward(frg_context *ctx, const frgi_spd_shape *s, const void *l,
                                          ptrdiff_t q, void *b, ptrdiff_t ldb, void *work);
/** y <- A x for a symmetric A stored as above (an inverse, say); x, y: n x q, column-major. */
FRG_MUST_USE frg_status frgi_spd_times(frg_context *ctx, const frgi_spd_shape *s, const void *a,
                                       ptrdiff_t q, const void *x, ptrdiff_t ldx, void *y,
                                       ptrdiff_t ldy, void *work);
/** B <- A diag(w) A for symmetric A and w > 0, lower triangle, n^3 flop (the leave-one-out
 *  gradient). */
FRG_MUST_USE frg_status frgi_spd_congruence(frg_context *ctx, const frgi_spd_shape *s,
                                            const void *a, const double *w, void *b, void *work);
/** The diagonal as doubles, and the other direction. */
void frgi_spd_diagonal(const frgi_spd_shape *s, const void *a, double *d);
void frgi_spd_set_diagonal(const frgi_spd_shape *s, void *a, const double *d);
/** Copies a triangle into the layout and type of another shape of the same n (f64 <-> f32). */
void frgi_spd_convert(frg_context *ctx, const frgi_spd_shape *from, const void *a,
                      const frgi_spd_shape *to, void *b);

#pragma GCC visibility pop
#endif
