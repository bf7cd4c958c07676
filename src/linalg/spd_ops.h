/* spd_ops.h - the kernels of the symmetric matrix, one table per CPU level and type.
 *
 * A *group* is 64 bytes of rows: 8 doubles or 16 floats.  Rows and columns come in whole groups,
 * matrices are 64-byte aligned with a leading dimension of whole groups.  Panels are packed group
 * by group,
 *
 *     p[g][kk][group]      entry (row g * group + r, column kk) of a rows x k panel,
 *
 * a format that serves as left operand (vectors along rows) and as right one (broadcasts).
 *
 * z is L_pp^-1 of a pivot block, column-major with leading dimension ldz,
 * zero above the diagonal inside its squares of a group and undefined above those; t is z', zero
 * where z would be. */
#ifndef FRGI_SPD_OPS_H
#define FRGI_SPD_OPS_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { SPD_LINE = 64, SPD_INNER = 16, SPD_COLUMNS = 8 };
enum { SPD_MINUS, SPD_PLUS };
enum { SPD_BLOCK_MAX = 96 };

typedef struct {
    /** a (k x k, lower) <- its Cholesky factor, z <- the inverse of that.  scratch: k x 16
     *  elements.  Returns the row whose pivot (*pivot) is not positive, or -1. */
    ptrdiff_t (*cholesky)(ptrdiff_t k, void *a, ptrdiff_t ld, void *z, ptrdiff_t ldz, void *scratch,
                          double *pivot);
    /** z <- inverse of the lower triangle l, the same bits; t <- z'. */
    void (*invert)(ptrdiff_t k, const void *l, ptrdiff_t ld, void *z, ptrdiff_t ldz);
    void (*transpose)(ptrdiff_t k, const void *z, void *t, ptrdiff_t ldz);

    /** a (rows x k) <- a z' = a L_pp^-T, packed into p as well. */
    void (*trsm)(ptrdiff_t k, ptrdiff_t rows, void *a, ptrdiff_t ld, const void *z, ptrdiff_t ldz,
                 void *p);
    /** p <- a packed (rows x k), and a <- -a z. */
    void (*update_panel)(ptrdiff_t k, ptrdiff_t rows, void *a, ptrdiff_t ld, const void *t,
                         ptrdiff_t ldz, void *p);
    /** p <- a' z' packed (a: k x rows), and a <- z' p'. */
    void (*transpose_panel)(ptrdiff_t k, ptrdiff_t rows, void *a, ptrdiff_t ld, const void *z,
                            const void *t, ptrdiff_t ldz, void *p);
    /** a (k x k, lower) <- z' z. */
    void (*square)(ptrdiff_t k, const void *t, ptrdiff_t ldz, void *a, ptrdiff_t ld);

    /** p <- a with column kk times scale[kk], packed: a is rows x k; k x rows; k x k and symmetric
     *  (lower). */
    void (*pack)(ptrdiff_t k, ptrdiff_t rows, const void *a, ptrdiff_t ld, const double *scale,
                 void *p);
    void (*pack_transposed)(ptrdiff_t k, ptrdiff_t rows, const void *a, ptrdiff_t ld,
                            const double *scale, void *p);
    void (*pack_symmetric)(ptrdiff_t k, const void *a, ptrdiff_t ld, const double *scale, void *p);

    /** c (rows x cols) -= or += a b' where row + below >= column; above that it may write anything
     *  into groups that the diagonal crosses. */
    void (*update[2])(ptrdiff_t k, ptrdiff_t rows, const void *a, ptrdiff_t cols, const void *b,
                      void *c, ptrdiff_t ld, ptrdiff_t below);

    /** x <- l^-1 x and x <- l^-T x for the k x k triangle l; q is 1 or a multiple of 8, as
     *  below. */
    void (*forward)(ptrdiff_t k, const void *l, ptrdiff_t ld, ptrdiff_t q, void *x, ptrdiff_t ldx);
    void (*backward)(ptrdiff_t k, const void *l, ptrdiff_t ld, ptrdiff_t q, void *x, ptrdiff_t ldx);
    /** y (rows x q) -= or += a x, a: rows x k; y (k x q) -= or += a' x; y += a x for a symmetric
     *  (lower). */
    void (*times[2])(ptrdiff_t rows, ptrdiff_t k, const void *a, ptrdiff_t ld, ptrdiff_t q,
                     const void *x, ptrdiff_t ldx, void *y, ptrdiff_t ldy);
    void (*times_transposed[2])(ptrdiff_t rows, ptrdiff_t k, const void *a, ptrdiff_t ld,
                                ptrdiff_t q, const void *x, ptrdiff_t ldx, void *y, ptrdiff_t ldy);
    void (*times_symmetric)(ptrdiff_t k, const void *a, ptrdiff_t ld, ptrdiff_t q, const void *x,
                            ptrdiff_t ldx, void *y, ptrdiff_t ldy);
} frgi_spd_ops;

/** The update of f32 on the CPU's tiles (AMX), where frgi_context_tiles: `rows` of a packed panel
 *  are split into both operands, of frgi_spd_split_bytes each; c (rows x cols) -= or += a b' as
 *  above, but for blocks of 32 x 32. */
size_t frgi_spd_split_bytes(ptrdiff_t rows, ptrdiff_t k);
void frgi_spd_split(ptrdiff_t k, ptrdiff_t rows, const float *panel, unsigned char *as_rows,
                    unsigned char *as_columns);
void frgi_spd_update_tiles(int sign, ptrdiff_t k, ptrdiff_t rows, const unsigned char *a,
                           ptrdiff_t cols, const unsigned char *b, float *c, ptrdiff_t ld,
                           ptrdiff_t below);

/** Of f64 and of f32. */
enum { SPD_F64, SPD_F32, SPD_TYPES };
DECLARE_LEVELS(frgi_spd_ops[SPD_TYPES], frgi_spd_ops);

#pragma GCC visibility pop
#endif
