/* gw_build.h - exponents of a sweep from costs and from factors of costs, per CPU level. */
#ifndef FRGI_GW_BUILD_H
#define FRGI_GW_BUILD_H

#include "gw/gw_sweep.h"

#pragma GCC visibility push(hidden)

#define FRGI_WHOLE 11585.0f /* largest integer in factors: 16 products of two are below 2^31 */

/** How factors are kept: as floats, by groups [group][r][8] and panels [panel][r][48]; as
 *  integers, two of r in one int32_t, [group][r / 2][8]; as bfloat16 for the CPU's tiles
 *  (gw_tiles.h). */
typedef enum { FRGI_AS_FLOATS, FRGI_AS_WHOLE, FRGI_AS_TILES } frgi_packed;

/** Factors of a cost c_ij = row_i + column_j - sum_r left_ir right_jr, and what is done to it on
 *  the way. An average over the steps needs no array of its own: the past costs are what is left of
 *  the past exponents without their potentials. */
typedef struct {
    int64_t rank;
    frgi_packed packed;
    const void *left, *right;
    float scale;                         /* of their products; 1 for floats */
    const float *mean_row, *mean_column; /* cross <- cross + 2 mean_row mean_column; NULL: 0 */
    float k;                             /* x = k cross - row - column + H0 + G0 */
    const float *row;                    /* rows, log2 units; NULL: 0 */
    const float *column;                 /* ld; NULL: 0 */
    const float *past; /* the exponents of the last step (s->x, before they are filled), or NULL */
    float keep;        /* share of the past costs; 1 - keep of the new */
    const float *linear; /* rows x ld linear cost, or NULL */
    float theta;         /* cross <- (1 - theta) cross - theta linear */
} frgi_factors;

typedef struct {
    /** Row i of the exponents, ld floats, from its m costs: x_ij = G0_j + H0_i - k c_ij; zeros in
     *  the padding. */
    void (*from_costs)(const frgi_sweep *s, int64_t i, const float *costs, float k, float *out);
    /** Exponents from factors, a frgi_fill: a panel of the right factor is read once for all
     *  groups. */
    void (*build)(const frgi_sweep *s, int64_t i0, int64_t groups, void *rows);
    /** How factors are best kept, without tiles: integers are multiplied faster than floats but
     *  where a register has 16 of these. */
    frgi_packed prefers;
    /** out[panel][r / 2][width] <- rows[r][i] / step to the nearest, two r in one; as pack does
     *  it. */
    void (*pack_pairs)(const float *rows, int64_t stride, int64_t rank, int64_t n, int width,
                       float step, int32_t *out, int64_t first, int64_t last);
    /** max |x| */
    float (*largest)(const float *x, int64_t n);
    /** out[panel][r][width] <- scale * rows[r][i], zeros beyond n; panels first .. last-1. */
    void (*pack)(const float *rows, int64_t stride, int64_t rank, int64_t n, int width, float scale,
                 float *out, int64_t first, int64_t last);
} frgi_build_ops;

const frgi_build_ops *frgi_build_ops_of(const frg_context *ctx);

#pragma GCC visibility pop
#endif
