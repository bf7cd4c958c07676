/* fe_rows.h - the rows of a design, grouped by the levels of its largest factor, and the passes
 * over them.
 *
 * Notation.  The largest factor is eliminated: its levels are the *eliminated levels* u = 0..U-1
 * (workers, say); the levels of all other factors are the R *reduced unknowns* (firms, years, ...),
 * numbered through.  N_u and N_l are weighted counts.  P_1 is the weighted projection on the
 * eliminated levels' dummies, D_r the dummies of the reduced unknowns:
 *
 *     S = D_r' W (I - P_1) D_r        the Schur complement of the normal equations
 *
 * Layout: rows of an eliminated level stand together (`order` maps them to the caller's rows when
 * the data are not sorted so), each with its n_remaining reduced indices; sums over an
 * eliminated level therefore live in registers.
 *
 *     elim_start  |0      |3  |5         ...        U+1
 *     index       |4 9 4  |7 1|...                  n x n_remaining
 *
 * Chunks are stretches of whole eliminated levels; their number depends on the data alone.  Every
 * pass adds what it scatters into the chunk's own copy of a vector of reduced unknowns, and the
 * copies are added by one tree (core/tree_sum.h): the bits do not depend on the number of threads.
 */
#ifndef FRGI_FE_ROWS_H
#define FRGI_FE_ROWS_H

#include "core/core.h"
#include "fe/fe_weights.h"

#pragma GCC visibility push(hidden)

enum { FE_MAX_FACTORS = 64 };
/* Columns carried together: by the host 1, 2, 4 or 8, 1 << kind for the kinds 0 .. 3 of its tables;
 * on a device any number up to FE_MAX_LANES. */
enum { FE_HOST_LANES = 8, FE_LANE_KINDS = 4, FE_MAX_LANES = 16 };
enum { FE_TREE_LEVELS = 7, FE_MAX_CHUNKS = 1 << (FE_TREE_LEVELS - 1) };
enum {
    FE_KEPT_ROWS = 64,      /* of an eliminated level, which the last pass does not compute twice */
    FE_STREAM_AHEAD = 1024, /* numbers of columns in a row that are fetched ahead of their use; */
    FE_NUMBERS_AHEAD = 2048, /* bytes of reduced indices that are; */
    FE_ROWS_AHEAD = 48,      /* rows that are, where `order` scatters them; */
    FE_NEAR_BYTES = 1 << 19, /* and their pairs, where all of them take more than this */
    FE_LINE = 64             /* bytes of a line of a cache */
};

/** One factor of the design as the caller numbered it. */
typedef struct {
    int64_t levels; /* that occur */
    int32_t *label; /* level -> code, ascending; NULL: the same (no gaps) */
    int64_t first;  /* its first reduced unknown; -1 for the eliminated levels */
} fe_factor;

/** Where a window of fe_runs.h stands among the rows of its plan; all 0 for the plan's own. */
typedef struct {
    int64_t row, elim; /* its first */
    int chunk;         /* the plan's chunk that is its chunk 0 */
    bool continues;    /* chunk 0 began in the window before */
    bool goes_on;      /* the last chunk goes on in the next window */
} fe_place;

typedef struct {
    int64_t n; /* rows */
    int n_factors;
    int elim_factor;       /* which of the caller's factors the eliminated levels are */
    int n_remaining;       /* n_factors - 1 */
    int64_t n_elim;        /* U */
    int64_t n_reduced;     /* R */
    fe_factor *factor;     /* n_factors */
    int64_t *elim_start;   /* U + 1 */
    int32_t *elim_level;   /* eliminated level -> level of the eliminated factor; NULL: the same */
    double *elim_inverse;  /* 1 / N_u, 0 where N_u = 0 */
    int32_t *index;        /* (n + FE_ROWS_AHEAD) x n_remaining, any numbers at the end */
    bool index_lent;       /* it is the caller's codes, which stay */
    uint32_t *order;       /* row -> caller's row, zeros at the end; NULL: the same */
    bool weighted;         /* rows have weights */
    double *weight;        /* n in row order, brought near 1; NULL: all 1 */
    double weight_root;    /* of the least positive one, 1 at most */
    double *level_weight;  /* R: N_l */
    double *level_inverse; /* R: 1 / N_l, 0 where N_l = 0 */
    int n_chunks;          /* a power of two, FE_MAX_CHUNKS at most */
    int64_t *chunk_elim;   /* n_chunks + 1: first eliminated level of each chunk */
    fe_place at;
    const struct fe_steps *steps;       /* who does what is asked of vectors (fe_steps.h) */
    const struct fe_run_source *source; /* where rows that are not in memory lie (fe_runs.h) */
} fe_rows;

/** Remaining factor r, 0 .. n_remaining-1. */
static inline const fe_factor *fe_remaining(const fe_rows *g, int r)
{
    return &g->factor[r < g->elim_factor ? r : r + 1];
}

/** The place of factor q among the remaining ones; -1: it is the eliminated factor. */
static inline int fe_remaining_place(const fe_rows *g, int q)
{
    return q == g->elim_factor ? -1 : q < g->elim_factor ? q : q - 1;
}

/** Fetches the reduced indices of rows begin .. end-1, FE_NUMBERS_AHEAD bytes further: between
 *  lines that are anywhere the hardware does not follow the stream.  GCC drops calls of a function
 *  that only fetches where it has not inlined them before. */
static inline __attribute__((always_inline)) void
fe_fetch_numbers(const int32_t *index, int64_t begin, int64_t end, int remaining)
{
    const uintptr_t last = (uintptr_t)(index + end * remaining) + FE_NUMBERS_AHEAD;
    for (uintptr_t at = (uintptr_t)(index + begin * remaining) + FE_NUMBERS_AHEAD; at < last;
         at += FE_LINE) {
        __builtin_prefetch((const void *)at, 0);
    }
}

/** A block of up to FE_MAX_LANES columns of the caller's array; strides in elements. */
typedef struct {
    char *base;
    ptrdiff_t row, column;
    int live; /* columns in use */
} fe_block;

/** Columns first .. of a. */
static inline fe_block fe_block_of(const frg_array *a, int64_t first, int live)
{
    const ptrdiff_t size = (ptrdiff_t)frg_sizeof(a->dtype);
    return (fe_block){frgi_array_base(a) + first * a->stride[1] * size, a->stride[0], a->stride[1],
                      live};
}

/** Sums over the rows of one chunk, one value a lane. */
typedef struct {
    int64_t rows;                 /* so far; all 0: the chunk begins */
    double weight[FE_MAX_LANES];  /* sum of w */
    double shift[FE_MAX_LANES];   /* a value near the column's mean */
    double sum[FE_MAX_LANES];     /* sum of w (x - shift) */
    double square[FE_MAX_LANES];  /* sum of w (x - shift)^2 */
    double within[FE_MAX_LANES];  /* sum of w (x - eliminated level's mean)^2 */
    double max_abs[FE_MAX_LANES]; /* largest |x| */
} fe_moments;

/** The eliminated levels' share of the audit of a residual, one value a lane. */
typedef struct {
    int64_t rows;                  /* so far; all 0: the chunk begins */
    double square[FE_MAX_LANES];   /* sum of w r^2 */
    double gradient[FE_MAX_LANES]; /* sum over eliminated levels of (sum w r)^2 / N_u */
    double mean[FE_MAX_LANES];     /* largest |eliminated level's mean of r| */
    double effect[FE_MAX_LANES];   /* largest |effect of an eliminated level| */
    int64_t worst[FE_MAX_LANES];   /* the eliminated level where `mean` was found */
} fe_elim_audit;

/** to[l] = sum over chunks of the sums in the pairs of level l, begin <= l < end. */
typedef void fe_add_pairs(const fe_rows *g, int64_t begin, int64_t end, const double *pairs,
                          double *to);

/** Eliminated levels first to end - 1, and their rows. */
typedef struct {
    int64_t first, end;
} fe_elim_range;

/** The passes over some levels of one chunk; every array of reduced unknowns is R x lanes,
 *  row-major.  They add to what the levels before have left in pairs, moments and audit. */
typedef struct {
    /** partial += D_r' W (I - P_1) x, and the moments of x */
    void (*rhs)(const fe_rows *g, fe_elim_range of, const fe_block *x, double *partial,
                fe_moments *m);
    /** out <- (I - P_1)(x - D_r a);  pairs <- a and D_r' W out;  elim_effect <- the eliminated
     *  levels' means taken out */
    void (*residual)(const fe_rows *g, fe_elim_range of, const fe_block *x, const fe_block *out,
                     const double *a, double *pairs, double *elim_effect, fe_elim_audit *audit);
    fe_add_pairs *add_pairs;
} fe_row_ops;

/** The table for a column type (0: f64, 1: f32) and 1, 2, 4 or 8 lanes, at the CPU level `isa`;
 *  empty where the level has no such width. */
const fe_row_ops *frgi_fe_row_ops(frgi_isa isa, int f32, int lanes);
/** The fewest lanes of those tables that hold so many columns, or the most that there are. */
int frgi_fe_host_lanes(frgi_isa isa, int columns);

/** The factor that is eliminated, by the counts of levels: the first with the most. */
int frgi_fe_largest_factor(const fe_factor *f, int n);
/** E_TOO_BIG where n rows are more than a plan holds. */
FRG_MUST_USE frg_status frgi_fe_rows_fit(frg_context *ctx, int64_t n);
/** Reads codes (n x Q int32, any strides) and weights (n or NULL) into g; g must be zeroed before,
 *  but for index_lent: the codes stay as long as g, with FE_ROWS_AHEAD numbers behind a factor's
 *  that can be read.  Errors: E_CODES, E_WEIGHT, E_MEMORY, E_TOO_BIG. */
FRG_MUST_USE frg_status frgi_fe_rows_create(fe_rows *g, frg_context *ctx, const frg_array *codes,
                                            const frg_array *weights);
/** *level <- the eliminated level of each of the caller's rows, of *levels, where the rows of some
 *  level do not stand together: to be dropped; NULL where they do.  Errors as frgi_fe_rows_create,
 *  which takes the rows in the order of these levels (stable) for the same layout. */
FRG_MUST_USE frg_status frgi_fe_rows_scattered(frg_context *ctx, const frg_array *codes,
                                               const frg_array *weights, int32_t **level,
                                               int64_t *levels);
/** weight <- the n weights of the caller's rows in row order, brought near 1; then weight_root, N_u
 *  and N_l.  The layout is there, and memory for all of these. */
void frgi_fe_rows_take_weights(fe_rows *g, const double *w, ptrdiff_t stride,
                               const frgi_weight_range *range, int threads);
/** What a layout that is read from a file is made of: n, n_factors, n_remaining, elim_factor,
 *  n_elim and the factors' levels are there.  The first: where the reduced unknowns of each
 *  factor begin, E_TOO_BIG; then memory for the order and for the reduced indices. */
FRG_MUST_USE frg_status frgi_fe_rows_place_factors(fe_rows *g, frg_context *ctx);
FRG_MUST_USE frg_status frgi_fe_rows_open_order(fe_rows *g, frg_context *ctx);
FRG_MUST_USE frg_status frgi_fe_rows_open_index(fe_rows *g, frg_context *ctx);
/** Codes that stay, in the place of reduced indices that are the same. */
void frgi_fe_rows_lend(fe_rows *g, frg_context *ctx, const frg_array *codes);
/** Its end: N_u and N_l from the weights (NULL: counts) of the caller's rows, and the chunks. */
FRG_MUST_USE frg_status frgi_fe_rows_weigh(fe_rows *g, frg_context *ctx, const frg_array *weights);
/** Cuts the rows into chunks of whole eliminated levels: the last step of any layout. */
FRG_MUST_USE frg_status frgi_fe_rows_cut(fe_rows *g, frg_context *ctx);
/** The sizes of a layout that is not made: g has n, n_factors and the factors' levels, all else is
 *  0 or NULL; the rows are taken to need an order. */
void frgi_fe_rows_shape(fe_rows *g, int elim_factor, bool weighted);
/** Bytes that the layout holds. */
size_t frgi_fe_rows_bytes(const fe_rows *g);
void frgi_fe_rows_destroy(fe_rows *g, frg_context *ctx);

/** Work memory of the passes, for blocks of `lanes` columns. */
typedef struct {
    double *partial;       /* n_chunks x R x 2 x lanes: pairs, or sums alone in the first half */
    fe_moments *moments;   /* n_chunks */
    fe_elim_audit *audit;  /* n_chunks */
    frg_context *progress; /* that chunks are reported to; NULL: they are not */
} fe_row_work;
void frgi_fe_row_work_layout(frgi_arena *a, const fe_rows *g, int lanes, fe_row_work *w);

/** The passes over all chunks: b, y, s are R x lanes; the totals are combined by the tree. */
void frgi_fe_rhs(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w, int threads,
                 int lanes, const fe_block *x, double *b, fe_moments *total);
void frgi_fe_residual(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w, int threads,
                      int lanes, const fe_block *x, const fe_block *out, const double *a, double *s,
                      double *elim_effect, fe_elim_audit *total);
/** The same window by window (fe_runs.h), then the totals; x, out and elim_effect begin with the
 *  window's first row and eliminated level. */
void frgi_fe_rhs_window(const fe_rows *window, const fe_row_ops *ops, const fe_row_work *w,
                        int threads, int lanes, const fe_block *x);
void frgi_fe_rhs_total(const fe_rows *g, const fe_row_work *w, int threads, int lanes, double *b,
                       fe_moments *total);
void frgi_fe_residual_window(const fe_rows *window, const fe_row_ops *ops, const fe_row_work *w,
                             int threads, int lanes, const fe_block *x, const fe_block *out,
                             const double *a, double *elim_effect);
void frgi_fe_residual_total(const fe_rows *g, const fe_row_ops *ops, const fe_row_work *w,
                            int threads, int lanes, double *s, fe_elim_audit *total);
/** to[j] <- the sum over all chunks of partial[chunk * length + j], j < length. */
void frgi_fe_add_chunks(const fe_rows *g, const double *partial, int threads, int64_t length,
                        double *to);
/** to (R x lanes) <- the sums in all chunks' pairs. */
void frgi_fe_add_pairs(const fe_rows *g, fe_add_pairs *add, const double *pairs, int threads,
                       double *to);

#pragma GCC visibility pop
#endif
