/* assign.h - the linear problems of a vertex: an assignment (assign.c), a transport between
 * other marginals (simplex.c), and what both read the costs with, per CPU level
 * (assign_cpu.c).
 *
 * Costs are n rows of ld reals, float or double, ld a multiple of FRGI_ASSIGN_PAD; what stands in
 * the padding is not read as a cost.
 */
#ifndef FRGI_ASSIGN_H
#define FRGI_ASSIGN_H

#include "core/core.h"

#pragma GCC visibility push(hidden)

enum { FRGI_ASSIGN_PAD = 16, FRGI_ASSIGN_NEAR = 32 };
/* Above all costs and duals.  A dual of -2 FRGI_ASSIGN_FAR keeps its column above that, however
 * costs are rounded beside it. */
#define FRGI_ASSIGN_FAR 1e30

enum { FRGI_ASSIGN_LIST = 64, FRGI_ASSIGN_BLOCK = 64 };       /* columns */
enum { FRGI_ASSIGN_UNLISTED = -1, FRGI_ASSIGN_NO_LIST = -2 }; /* not yet; too many are as near */

/** A dense matrix of costs, or of what costs are made of. */
typedef struct {
    void *at; /* rows x ld float (single) or double */
    int64_t rows, columns, ld;
    bool single;
} frgi_costs;

static inline int64_t frgi_costs_ld(int64_t columns)
{
    return (columns + FRGI_ASSIGN_PAD - 1) / FRGI_ASSIGN_PAD * FRGI_ASSIGN_PAD;
}

static inline size_t frgi_costs_size(bool single)
{
    return single ? sizeof(float) : sizeof(double);
}

static inline size_t frgi_costs_bytes(const frgi_costs *c)
{
    return frgi_mul(frgi_mul((size_t)c->rows, (size_t)c->ld), frgi_costs_size(c->single));
}

static inline void *frgi_costs_row(const frgi_costs *c, int64_t i)
{
    return (char *)c->at + (size_t)(i * c->ld) * frgi_costs_size(c->single);
}

static inline double frgi_costs_get(const frgi_costs *c, int64_t i, int64_t j)
{
    return c->single ? (double)((const float *)c->at)[i * c->ld + j]
                     : ((const double *)c->at)[i * c->ld + j];
}

static inline void frgi_costs_put(const frgi_costs *c, int64_t i, int64_t j, double x)
{
    if (c->single) {
        ((float *)c->at)[i * c->ld + j] = (float)x;
    } else {
        ((double *)c->at)[i * c->ld + j] = x;
    }
}

typedef struct frgi_assign frgi_assign;

/** Rows of costs, for floats ([1]) and doubles ([0]). */
typedef struct {
    /** The least c_j - v_j and the second least, and where the least is (the first of equals). */
    int64_t (*two)(const void *c, const void *v, int64_t ld, double least[2]);
    /** Of each of FRGI_ASSIGN_NEAR classes of columns (those of equal remainder) the one of least
     *  c_j - v_j and its cost; -1 and a far cost where a class has none. */
    void (*near)(const void *c, const void *v, int64_t ld, int32_t *at, void *costs);
    /** The place in such lists where costs_k - v_at(k) is least. */
    int (*nearest)(const int32_t *at, const void *costs, const void *v);
    /** Each row takes its least column where that is free, warm: by the duals that are there; how
     *  many rows wait. */
    int64_t (*begin)(frgi_assign *a, const frgi_costs *c);
    /** The assignment of least cost from there. */
    void (*finish)(frgi_assign *a, const frgi_costs *c, int64_t waiting);
    /** Every second row and column of c. */
    void (*coarsen)(const frgi_costs *c, frgi_costs *out);
    /** Duals of a from those of a->coarse. */
    void (*extend)(frgi_assign *a, const frgi_costs *c);
} frgi_assign_ops;

/** The pair of tables for the context's CPU level: [0] doubles, [1] floats. */
const frgi_assign_ops *frgi_assign_ops_of(const frg_context *ctx);

/** Of each row the columns that are least, and the shortest path over them. */
typedef struct {
    int32_t *column;               /* n lists of columns; NULL: a path looks at all */
    int32_t *length, *row;         /* n: of lists; rows of a path */
    void *cost, *bound;            /* n lists, n */
    void *reached, *less, *others; /* n: keys of a path's columns; of its rows what keys are less
                                      by, and the least key that columns outside their lists have */
    void *least;                   /* keys of blocks of columns */
} frgi_assign_lists;

/** The memory of an assignment of n rows to n columns, and the duals from which the next one
 *  begins: of assign.c and its passes per CPU level alone. */
struct frgi_assign {
    int64_t n, ld;
    const frg_context *ctx;
    const frgi_assign_ops *ops;
    bool warm;             /* v is that of an assignment that was solved; false: begin anew */
    bool moved;            /* of this solve, where it is warm */
    int32_t *column, *row; /* column[i] of row i, row[j] of column j */
    void *v;               /* ld: duals of columns; padding: -2 FRGI_ASSIGN_FAR */
    void *paid;            /* ld: what the entries of the last assignment cost, by columns */
    void *open, *key,
        *from; /* ld: v of columns that are not scanned; distances; rows before (integers as wide as
                  a real) */
    int32_t *scanned, *waiting; /* n, n */
    int64_t scans;              /* rows that were read, of all solves */
    frgi_assign_lists lists;
    frgi_assign *coarse;     /* of every second row and column; NULL: small */
    frgi_costs coarse_costs; /* its costs */
};

/** To be closed, failed or not. */
FRG_MUST_USE frg_status frgi_assign_open(frgi_assign *a, frg_context *ctx, int64_t n, bool single);
void frgi_assign_close(frgi_assign *a, frg_context *ctx);
/** The assignment of least cost (n x n), beginning with the last duals; of a run that is stopped
 *  any assignment.  moved: costs are sums over other rows than before, and these duals move by half
 *  of what the entries of the last assignment cost more. */
void frgi_assign_solve(frgi_assign *a, const frgi_costs *c, bool moved);
/** The next solve begins without duals. */
void frgi_assign_forget(frgi_assign *a);
/** n: the column of each row. */
const int32_t *frgi_assign_image(const frgi_assign *a);
/** Duals of the last solve, of costs c: u_i + v_j <= c_ij, equal for the column of a row. */
void frgi_assign_duals(const frgi_assign *a, const frgi_costs *c, double *u, double *v);

/** An entry of a plan. */
typedef struct {
    int32_t i, j;
    double mass;
} frgi_entry;

typedef struct frgi_simplex frgi_simplex;
/** Transport from weights a (n) to b (m), all positive, of equal sums. */
FRG_MUST_USE frg_status frgi_simplex_open(frgi_simplex **out, frg_context *ctx, const double *a,
                                          int64_t n, const double *b, int64_t m, bool single);
void frgi_simplex_close(frgi_simplex **s, frg_context *ctx);
/** The vertex of least cost into `out` (*count <= n + m - 1 entries of mass > 0, by rows),
 *  beginning with the last one; false: the most pivots were done before it was reached, and what is
 *  there is a vertex none the less. */
bool frgi_simplex_solve(frgi_simplex *s, const frgi_costs *c, frgi_entry *out, int64_t *count);
/** The next solve begins without a tree. */
void frgi_simplex_forget(frgi_simplex *s);
/** Duals of the last solve: u_i + v_j <= c_ij. */
void frgi_simplex_duals(const frgi_simplex *s, double *u, double *v);

/** What the annealed start of the mode vertex reads dense plans with, at one CPU level: in floats
 *  and units of log 2.  Rows are ld apart, a multiple of FRGI_ASSIGN_PAD; vectors of columns are
 *  as long as a row, with zeros in the padding. */
typedef struct {
    /** out_ij <- 2^(f_i + g_j - scale c_ij), at most 2^FRGI_ANNEAL_MOST. */
    void (*kernel)(const frgi_costs *c, const float *f, const float *g, float scale,
                   frgi_costs *out);
    /** u_i <- a_i / sum_j k_ij v_j, then v_j <- b_j / sum_i u_i k_ij; what has no mass stays as it
     *  is.  sums: ld floats. */
    void (*pass)(const frgi_costs *k, const float *a, const float *b, float *u, float *v,
                 float *sums);
} frgi_anneal_ops;

enum { FRGI_ANNEAL_MOST = 40 };

const frgi_anneal_ops *frgi_anneal_ops_of(const frg_context *ctx);

#pragma GCC visibility pop
#endif
