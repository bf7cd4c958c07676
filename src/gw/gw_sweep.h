/* gw_sweep.h - one pass of Sinkhorn's iteration over the rows, and the steps around it, per CPU
 * level.
 *
 * Everything here is in units of log 2.  A plan is never stored; its entries are
 *
 *     P_ij = p_i 2^(x_ij + g_j),     x_ij = G0_j + H0_i - k c_ij,     k = log2(e) / epsilon
 *
 * x (the exponents) is stored, or built again for every pass; G0, H0 are the potentials it was
 * built with, so that g, the increment since then, is small and exact in f32, and sums of rows are
 * near 1.  The potentials, log2 of the scalings u and v of K = 2^(-k c) (Peyre and Cuturi), are
 * F_i = log2(p_i) + H0_i and G_j = G0_j + g_j, in double.  One full iteration reads x once and
 * takes one 2^ an entry:
 *
 *     S_i = sum_j 2^(x_ij + g_j),    p_i = a_i / S_i         u <- a / (K v): rows exact
 *     col_j = sum_i p_i 2^(x_ij + g_j)                       error = sum_j |col_j - b_j|
 *     G_j <- G_j + log2(b_j / col_j)                         v <- b / (K' u)
 *
 * A row whose sum leaves [1e-24, 1e24] is computed again relative to its maximum and counted as out
 * of range: the exponents are due to be built with new potentials.
 *
 * Of a plan with narrow support most powers are 0.  A marking pass lists, for each 8 rows, the
 * vectors of 16 columns that hold a weight above 2^-60 of its row (of the lightest column, m b_j
 * 2^-60 of it); passes that follow look at these alone.  While no potential has moved by more than
 * 12 (log2) since, what is left out of a row or of a column is below m 2^-48 of it.
 *
 * Floats end at errors of 2e-6 to 2e-5 of the mass.  X32W reads the same exponents, which are what
 * they are, and keeps potentials, weights and sums in double: the plan of these exponents to any
 * error.
 *
 * Relaxed marginals, tau = rho / (rho + epsilon) of a side, 1 where its marginal holds:
 *
 *     F_i = tau (log2 a_i + H0_i - log2 S_i),    G_j <- tau (log2 b_j + G_j - log2 col_j)
 *
 * and where the entropy is KL(P | a b')
 *
 *     F_i = log2 a_i + tau (H0_i - log2 S_i),    G_j <- log2 b_j + tau (G_j - log2 col_j)
 */
#ifndef FRGI_GW_SWEEP_H
#define FRGI_GW_SWEEP_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { FRGI_FILL_GROUPS = 4 }; /* filled at a time */
enum { FRGI_GROUP = 8, FRGI_PANEL = 48, FRGI_PAD = 48, FRGI_MARK = 16 };
enum { FRGI_SCRATCH_ROWS = (1 + FRGI_FILL_GROUPS) * FRGI_GROUP }; /* weights of 8 rows, exponents */
#define FRGI_LOST       1e-32 /* f32 cannot tell a column sum this small */
#define FRGI_BURST      1e30  /* nor one this large: rows that are relaxed may have any mass */
#define FRGI_NEGLIGIBLE 0x1p-60
#define FRGI_MARKS_HOLD 12 /* log2 units that a potential may move */

typedef enum {
    FRGI_X32,
    FRGI_X16,
    FRGI_X64,
    FRGI_X32W,
    FRGI_K32,
    FRGI_K16,
    FRGI_STORES
} frgi_store;

typedef struct frgi_sweep frgi_sweep;

/** Writes the exponents of `groups` times 8 rows from i0 on, ld apart, as float (double where the
 *  sweep is X64). */
typedef void (*frgi_fill)(const frgi_sweep *s, int64_t i0, int64_t groups, void *rows);

/** Exponents: where they are kept, and what they are made from. */
typedef struct {
    frgi_store store;
    void *at;        /* rows x ld exponents, or kernel entries; NULL: filled for every pass */
    float low, step; /* X16: x = low + step q, set for every x that is stored */
    bool fresh;      /* they are filled during this pass */
    frgi_fill fill;
    const void *source; /* of fill */
} frgi_exponents;

/** What rows and columns of the plan are to sum to. */
typedef struct {
    const double *a, *b;         /* n, m */
    const double *log_a, *log_b; /* log2, -1e30 where the weight is 0 */
    double tau_a, tau_b;         /* 1: balanced */
    bool product;                /* the entropy is relative to a b' */
} frgi_targets;

/** Partial transport: the row and the column that take what is not carried. */
typedef struct {
    double a, b; /* weight of the column, of the row; 0: none */
    double g, f; /* and their potentials, log2 */
    double *row; /* n: what the column takes of each row */
} frgi_dummy;

/** Potentials in exponents. */
typedef struct {
    double *H0, *G0;        /* whole floats, so that both precisions mean the same */
    float *h, *g;           /* the same as floats */
    float *past_h, *past_g; /* those that are in x since it was filled, and their k */
    double past_k;
} frgi_base;

/** X32: vectors of 16 columns with weights above `negligible` of their row. */
typedef struct {
    uint16_t *lists; /* for each 8 rows */
    int64_t *listed; /* their number */
    float negligible;
} frgi_active;

struct frgi_sweep {
    int64_t n, m;     /* points */
    int64_t rows, ld; /* n in whole groups, m in whole panels */
    int64_t chunks;   /* of rows; each has its own column sums */
    frgi_exponents x;
    frgi_targets to;
    frgi_dummy dummy;
    frgi_base base;
    frgi_active active;
    double *F, *G;         /* total potentials; F is an output of a pass */
    double *G_last;        /* what the plain step gave last, for the extrapolation */
    void *g;               /* ld: float, or double for X64 and X32W */
    double *p;             /* n */
    double *mass;          /* n: sum of each row of the plan */
    int64_t *out_of_range; /* chunks: rows that were far from their potentials */
    void *partial;         /* chunks x ld column sums, float or double */
    double *col;           /* m */
};

typedef struct {
    double error;     /* sum |col - b| */
    double increment; /* max |G - G0| */
    double low, high; /* of the steps of G */
    int64_t lost;     /* columns of weight whose sum is out of range; their potential stays */
} frgi_columns_result;

/** Whether a column's sum is in the range where floats add it up to rounding. */
static inline bool frgi_sum_in_range(double sum)
{
    return sum > FRGI_LOST && sum < FRGI_BURST;
}

/** Whether potentials, weights and sums are doubles. */
static inline bool frgi_is_wide(const frgi_sweep *s)
{
    return s->x.store == FRGI_X64 || s->x.store == FRGI_X32W;
}

/** In the stores K16 and K32 the entries are 2^x and g holds v_j = 2^(G_j - G0_j). */
typedef struct {
    /** Runs the pass over chunk; w: scratch of FRGI_SCRATCH_ROWS ld floats (doubles where it is
     *  wide). */
    void (*chunk[FRGI_STORES])(const frgi_sweep *s, int64_t chunk, void *w);
    /** The same for exponents that are stored (X32, balanced, all mass): all vectors, marking them;
     *  the marked ones alone. */
    void (*marking)(const frgi_sweep *s, int64_t chunk, void *w);
    void (*marked)(const frgi_sweep *s, int64_t chunk, void *w);
    /** From the chunks' sums: col, the error's share of columns first .. last-1, new potentials.
     *  momentum: G <- plain step + momentum (plain step - the last plain step). */
    frgi_columns_result (*columns)(const frgi_sweep *s, int64_t first, int64_t last,
                                   double momentum);
    /** Stores 8 rows of exponents in the form of s->x.store: q = (x - low) / step kept in
     *  0 .. 65535 for X16, 2^x for K32; for K16 of two vectors at a time, the first in the lower
     *  halves. */
    void (*keep)(const frgi_sweep *s, const float *rows, int64_t i0);
    /** Least and largest exponent of a row's columns that have weight; g is that of s->x.fresh:
     *  0, or -1e30. */
    void (*span)(const frgi_sweep *s, const float *exponents, float *least, float *most);
    /** Row i as the plan's consumers see it, in double: out[j] <- p_i 2^(x_ij + g_j); exponents: ld
     *  floats, or doubles for X64. */
    void (*row)(const frgi_sweep *s, int64_t i, const void *exponents, double *out);
    double (*sum)(const double *x, int64_t n);
    /** sum x (log x - 1), x >= 0 */
    double (*entropy)(const double *x, int64_t n);
    /** Squares of scale_x x - scale_y y: added to columns, their sum returned. */
    double (*gaps)(const float *x, const float *y, double scale_x, double scale_y, int64_t n,
                   double *columns);
    /** row <- y row; returns its sum. */
    double (*multiply)(double *row, const double *y, int64_t m);
    /** to += scale row */
    void (*add)(double *to, const double *row, double scale, int64_t m);
} frgi_sweep_ops;

const frgi_sweep_ops *frgi_sweep_ops_of(const frg_context *ctx);

#pragma GCC visibility pop
#endif
