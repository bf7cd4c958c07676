/* spd.h - symmetric positive definite matrices in one triangle: factor, inverse and solves, in
 * place.
 *
 * Layout.  The lower triangle is cut into square storage tiles of `tile` rows.  Tile (I, J), I >=
 * J, is stored column-major with leading dimension `ld`; tiles lie row after row (frgi_spd_at).  A
 * diagonal tile is stored whole: what stands above its diagonal is scratch, never read as data.
 * Rows n .. padded-1 of the last tiles are a unit matrix (adds 0 to the logarithm of the
 * determinant); frgi_spd_factor writes them. A matrix of up to a few hundred rows is one tile, so
 * small and large are one code.
 *
 * Algorithm.  The blocked symmetric sweep (Bientinesi, Gunter, van de Geijn 2008) with pivot blocks
 * of `block` columns.  For the pivot block p with A_pp = L_pp L_pp' and V_i = A_ip L_pp^-T, every
 * step is the same update (up to the sign, see spd_sweep.c)
 *
 *     A_ij <- A_ij - V_i V_j'
 *
 * on a region: i >= j > p leaves the Cholesky factor (n^3/3), j < p finishes the inverse (2 n^3/3).
 * The two regions are two calls, so that a value costs a third of a gradient, or one call where
 * both are wanted: step p of the inverse needs no more than steps up to p of the factor.  The bits
 * are the same.
 *
 * Threads: tile rows are dealt to them cyclically, and a tile goes through the steps in one order
 * whoever does them, so the bits do not depend on their number.  Calls open their own parallel
 * regions, or run alone inside one.
 */
#ifndef FRGI_SPD_H
#define FRGI_SPD_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

/** Where the entries lie.  The files spd*.c and the passes over pairs (gp_build.c) read it, nobody
 *  else does (tests/build/test_layout.sh). */
typedef struct {
    frg_dtype dtype;  /* FRG_F64 or FRG_F32 */
    ptrdiff_t n;      /* order */
    ptrdiff_t padded; /* n rounded up to whole groups of 64 bytes of rows */
    ptrdiff_t tile;   /* rows of a storage tile; of several, a multiple of block and of 48 */
    ptrdiff_t ld;     /* elements from column to column of a tile */
    ptrdiff_t tiles;  /* tile rows, and tile columns */
    ptrdiff_t block;  /* rows of a pivot block */
} frgi_spd_layout;

/** A symmetric matrix, its factor or its inverse: opaque, read and written by the functions
 *  below. */
typedef struct {
    frgi_spd_layout layout; /* depends on the order and the type alone */
    void *elements;
    void *work;         /* scratch of the steps; nothing is kept in it between them */
    const char *solver; /* of frg_progress, while a sweep reports it */
} frgi_spd;

/** A matrix of order n in memory of frgi_spd_bytes, with scratch of frgi_spd_work_bytes; both
 *  64-byte aligned, the caller's; solver: of the progress of its sweeps. */
frgi_spd frgi_spd_place(ptrdiff_t n, frg_dtype dtype, void *elements, void *work,
                        const char *solver);
/** Another matrix of the same order and type, in other memory. */
static inline frgi_spd frgi_spd_like(const frgi_spd *a, void *elements)
{
    return (frgi_spd){
        .layout = a->layout, .elements = elements, .work = a->work, .solver = a->solver};
}
/** The order becomes n, in the same memory; the entries are lost. */
void frgi_spd_reorder(frgi_spd *a, ptrdiff_t n, frg_dtype dtype);
size_t frgi_spd_bytes(ptrdiff_t n, frg_dtype dtype);
/** threads: those of the context, or 1 for calls inside a parallel region. */
size_t frgi_spd_work_bytes(ptrdiff_t n, frg_dtype dtype, int threads);
static inline ptrdiff_t frgi_spd_order(const frgi_spd *a)
{
    return a->layout.n;
}
static inline frg_dtype frgi_spd_dtype(const frgi_spd *a)
{
    return a->layout.dtype;
}
static inline bool frgi_spd_is_single(const frgi_spd *a)
{
    return a->layout.dtype == FRG_F32;
}
/** All elements become 0. */
void frgi_spd_clear(const frgi_spd *a);
/** Rows n .. padded-1 become those of a unit matrix, as frgi_spd_factor writes them. */
void frgi_spd_pad(const frgi_spd *a);

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
FRG_MUST_USE frg_status frgi_spd_factor(frg_context *ctx, const frgi_spd *a, double *logdet,
                                        frgi_spd_pivots *pivots);
/** The same, and b <- L^-1 b, n elements, in the same steps: the bits of frgi_spd_factor and then
 *  frgi_spd_forward.  Where there is no factor, b is spoilt. */
FRG_MUST_USE frg_status frgi_spd_factor_forward(frg_context *ctx, const frgi_spd *a, void *b,
                                                double *logdet, frgi_spd_pivots *pivots);
/** The logdet of a factor that was not made here, in the bits of those above. */
double frgi_spd_logdet(frg_context *ctx, const frgi_spd *l, frgi_spd_pivots *pivots);
/** L -> A^-1 in place (lower triangle).  FRG_OK, FRG_INTERRUPTED or FRG_TIME_LIMIT: a positive
 *  status is no result.  b, of n elements, or NULL: b <- L^-T b, summed over the rows of L^-1 in
 *  the same steps, as accurate as frgi_spd_backward in norm. */
FRG_MUST_USE frg_status frgi_spd_inverse(frg_context *ctx, const frgi_spd *l, void *b);
/** frgi_spd_factor_forward and frgi_spd_inverse in one sweep: b <- L^-1 b and solved <- L^-T of
 *  that, roots <- the n L_ii. The same bits in half the phases; where there is no factor, b and
 *  solved are spoilt. */
FRG_MUST_USE frg_status frgi_spd_sweep(frg_context *ctx, const frgi_spd *a, void *b, void *solved,
                                       double *roots, double *logdet, frgi_spd_pivots *pivots);

/** b <- L^-1 b and b <- L^-T b; b is n x q of the matrix's type, column-major, ldb >= n. */
FRG_MUST_USE frg_status frgi_spd_forward(frg_context *ctx, const frgi_spd *l, ptrdiff_t q, void *b,
                                         ptrdiff_t ldb);
FRG_MUST_USE frg_status frgi_spd_backward(frg_context *ctx, const frgi_spd *l, ptrdiff_t q, void *b,
                                          ptrdiff_t ldb);
/** y <- A x for a symmetric A stored as above (an inverse, say); x, y: n x q, column-major. */
FRG_MUST_USE frg_status frgi_spd_times(frg_context *ctx, const frgi_spd *a, ptrdiff_t q,
                                       const void *x, ptrdiff_t ldx, void *y, ptrdiff_t ldy);
/** B <- A diag(w) A for symmetric A and w > 0, lower triangle, n^3 flop (the leave-one-out
 *  gradient). */
FRG_MUST_USE frg_status frgi_spd_congruence(frg_context *ctx, const frgi_spd *a, const double *w,
                                            const frgi_spd *b);
/** d <- the n elements of the diagonal as doubles; the diagonal <- d. */
void frgi_spd_diagonal(const frgi_spd *a, double *d);
void frgi_spd_set_diagonal(const frgi_spd *a, const double *d);
/** Copies a matrix into another of the same order (f64 <-> f32). */
void frgi_spd_convert(frg_context *ctx, const frgi_spd *from, const frgi_spd *to);
/** Entry (i, j) += v, i >= j; frgi_spd_get below reads it. */
void frgi_spd_add(const frgi_spd *a, ptrdiff_t i, ptrdiff_t j, double v);
/** v <- rows from .. end-1 of column j, from >= j; these rows <- v. */
void frgi_spd_read_column(const frgi_spd *a, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end, double *v);
void frgi_spd_write_column(const frgi_spd *a, ptrdiff_t j, ptrdiff_t from, ptrdiff_t end,
                           const double *v);

/** A piece of the stored triangle that lies in one tile: entry (row, column) at `at`, columns `ld`
 *  elements apart; as many rows and columns follow in this tile. */
typedef struct {
    void *at;
    ptrdiff_t ld, rows, columns;
} frgi_spd_piece;
/** Entries at multiples of this begin the largest pieces. */
static inline ptrdiff_t frgi_spd_step(const frgi_spd *a)
{
    return a->layout.tile;
}
/** The piece from entry (i, j) on, whose tile row is not above j's. */
frgi_spd_piece frgi_spd_piece_at(const frgi_spd *a, ptrdiff_t i, ptrdiff_t j);

/** Offset in elements of tile (I, J), I >= J. */
static inline ptrdiff_t frgi_spd_tile(const frgi_spd_layout *s, ptrdiff_t row, ptrdiff_t col)
{
    return (row * (row + 1) / 2 + col) * s->ld * s->tile;
}
/** Elements before entry (i, j) (i's tile row not above j's). */
static inline ptrdiff_t frgi_spd_at(const frgi_spd_layout *s, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t t = s->tile;
    if (s->tiles == 1)
        return i + j * s->ld;
    return frgi_spd_tile(s, i / t, j / t) + i % t + j % t * s->ld;
}
/** Entry (i, j), i >= j. */
static inline double frgi_spd_get(const frgi_spd *a, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t k = frgi_spd_at(&a->layout, i, j);
    return a->layout.dtype == FRG_F64 ? ((const double *)a->elements)[k]
                                      : (double)((const float *)a->elements)[k];
}

/** Rows of tile row I that are data. */
static inline ptrdiff_t frgi_spd_rows(const frgi_spd_layout *s, ptrdiff_t row)
{
    return s->n - row * s->tile < s->tile ? s->n - row * s->tile : s->tile;
}

#pragma GCC visibility pop
#endif
