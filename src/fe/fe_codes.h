/* fe_codes.h - the caller's codes while the layout of fe_rows.h is built: scanned, counted,
 * numbered.
 *
 *     scan     one pass over all codes: which factor is eliminated, is it sorted, codes of each
 *     count    rows of each code, where a factor's levels must be known
 *     number   level[code], where not every code occurs
 */
#ifndef FRGI_FE_CODES_H
#define FRGI_FE_CODES_H

#include "fe/fe_rows.h"

#pragma GCC visibility push(hidden)

enum {
    FE_SMALL_ROWS = 1 << 14, /* below, one chunk and no threads */
    FE_PIECE_ROWS = 1 << 12, /* codes are worked on in pieces that stay in the nearer caches */
    FE_CODES_Q = 4           /* factors that one kernel takes, at most */
};

/** What one pass over a stretch of a factor's codes finds. */
typedef struct {
    int32_t any, high; /* bitwise or (negative when a code is), largest */
    int64_t changes;   /* rows whose code differs from the row before */
    int64_t descents;  /* of these, to a smaller code */
} fe_scan;

/** Kernels over rows begin .. end-1 of codes that lie side by side (n x q without gaps), those of
 *  one factor behind each other among them; [q - 1]. */
typedef struct {
    void (*scan[FE_CODES_Q])(const int32_t *codes, int64_t begin, int64_t end, fe_scan *out);
    /** index[i][r] = first[r] + the code of the r-th factor that is not the eliminated levels' */
    void (*fill[FE_CODES_Q])(const int32_t *codes, int64_t begin, int64_t end, int elim,
                             const int32_t *first, int32_t *index);
    /** ends[k] = row behind the k-th run of equal codes of factor `elim`, counted from `begin`; run
     *  0 is the one that row begin - 1 belongs to, if any row of it is left.  Returns the runs
     *  after it. */
    int64_t (*runs[FE_CODES_Q])(const int32_t *codes, int64_t begin, int64_t end, int elim,
                                int32_t *ends);
} fe_code_ops;

DECLARE_LEVELS(fe_code_ops, frgi_fe_code_ops);

typedef struct {
    const char *base;
    ptrdiff_t row, column; /* strides in elements */
    int64_t n;
    int q;
    const fe_code_ops *ops;    /* NULL where the codes do not lie side by side */
    const fe_code_ops *single; /* of the codes of one factor; NULL where these do not */
} fe_codes;

static inline const int32_t *fe_code_column(const fe_codes *c, int q)
{
    return (const int32_t *)(const void *)c->base + q * c->column;
}

/** A factor's codes. */
typedef struct {
    fe_scan scan;    /* of all rows */
    int64_t codes;   /* length of count and level */
    uint32_t *count; /* rows of each code; NULL where nothing needs them */
    int tables;      /* > 0: count is so many tables, one a thread, still to be filled and added, */
    int64_t apart;   /* distance between tables in numbers: each has cache lines of its own */
    int32_t *level;  /* code -> level; NULL: the same */
    int32_t *narrow; /* n: levels by row, where codes are too far apart for a table */
} fe_factor_codes;

static inline int32_t fe_code_at(const fe_codes *c, int64_t i, int q)
{
    return ((const int32_t *)(const void *)c->base)[i * c->row + q * c->column];
}

static inline int32_t fe_level_at(const fe_codes *c, const fe_factor_codes *f, int64_t i, int q)
{
    if (f->narrow) {
        return f->narrow[i];
    }
    const int32_t code = fe_code_at(c, i, q);
    return f->level ? f->level[code] : code;
}

static inline int64_t fe_code_pieces(int64_t n)
{
    return (n + FE_PIECE_ROWS - 1) / FE_PIECE_ROWS;
}

static inline int64_t fe_code_piece_end(int64_t n, int64_t piece)
{
    const int64_t end = (piece + 1) * FE_PIECE_ROWS;
    return end < n ? end : n;
}

fe_codes frgi_fe_codes_of(const frg_context *ctx, const frg_array *codes);
/** One pass over all codes: the scan of each factor in each piece (pieces x q, the caller's to
 *  drop), and of all rows in f.  E_CODES for a negative code. */
FRG_MUST_USE frg_status frgi_fe_codes_scan(frg_context *ctx, const fe_codes *c, fe_scan **scans,
                                           fe_factor_codes *f);
/** Is a table of the factor's codes out of proportion to its rows? */
bool frgi_fe_codes_are_wide(const fe_codes *c, const fe_factor_codes *f);
/** Levels of factor q: f->count, and f->level or f->narrow where needed; out->levels,
 *  out->label. */
FRG_MUST_USE frg_status frgi_fe_codes_count(frg_context *ctx, const fe_codes *c, int q,
                                            fe_factor_codes *f, fe_factor *out);
/** The same once f->count is there. */
FRG_MUST_USE frg_status frgi_fe_codes_number(frg_context *ctx, fe_factor_codes *f, fe_factor *out);
/** Zeros for f->count, a table for each of `tables` threads. */
FRG_MUST_USE frg_status frgi_fe_codes_open_tables(frg_context *ctx, fe_factor_codes *f, int tables);
/** Adds the tables of f->count into the first. */
void frgi_fe_codes_add_tables(fe_factor_codes *f);
void frgi_fe_codes_drop(frg_context *ctx, fe_factor_codes *f);

#pragma GCC visibility pop
#endif
