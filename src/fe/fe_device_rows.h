/* fe_device_rows.h - the inside of a demeaner on a device: rows, their transposed index, memory and
 * copies; shared by the methods, each of which has a folder of kernels. */
#ifndef FRGI_FE_DEVICE_ROWS_H
#define FRGI_FE_DEVICE_ROWS_H

#include "device/device.h"
#include "fe/fe_basis.h"
#include "fe/fe_device.h"
#include "fe/fe_layout.h"

#pragma GCC visibility push(hidden)

enum { FE_DEVICE_BATCH = 16 };        /* steps are submitted in batches of 1, 2, 4, ... this many */
extern const double frgi_fe_gain_f32; /* a solve in float leaves this much of the level means */

/** The transposed index: for each reduced unknown its rows (or their eliminated levels), in pieces.
 */
typedef struct {
    int64_t entries, pieces, short_pieces;
    int32_t *entry, *piece, *level_piece, *piece_of;
    int32_t *row_entry; /* entries by rows, where `entry` has levels and the passes need rows */
} fe_transposed;

/** The whole numbers of the rows, which do not depend on the columns. */
typedef struct {
    frgi_device_arena memory;
    frgi_buffer w;
    int64_t count;
} fe_device_numbers;

/** What a method adds to the rows. */
typedef struct {
    const char *name[4]; /* for reports: in double, in float; the same with scalars on the host */
    const frgi_kernels *const *kernels;
    bool by_level; /* its transposed index may point to eliminated levels */
    /** Places of numbers a level, and of vectors for d->at[FD_K] columns; *used: reals so far. */
    void (*place_levels)(fe_device *d, int64_t *used);
    void (*place_columns)(fe_device *d, int64_t *used);
    /** Its numbers of levels; scratch: R numbers. */
    frg_status (*put_levels)(fe_device *d, double *scratch);
} fe_device_method;

/** D_r as a device has it. */
typedef struct {
    const fe_basis *slopes; /* NULL: none; then index and inverses are those of the rows */
    int64_t unknowns;       /* R */
    int width;              /* reduced indices of a row */
    const int32_t *index;   /* n x width */
    const double *inverse;  /* R: 1 / N_l, of a slope 1 */
    int32_t *own_index;
    double *own_inverse;
} fe_device_design;

struct fe_device {
    frg_context *ctx;
    frgi_device *dev;
    const fe_rows *g;
    fe_device_design design;
    const fe_device_method *method;
    const frgi_program *program;
    size_t real; /* bytes */
    int group;
    bool by_level, plain, eager; /* plain: no preconditioner; eager: scalars on the host */
    fe_transposed t;
    int64_t at[FD_AT_COUNT], reals;
    int columns; /* K that vectors lie for; 0: no memory */
    int most;    /* that memory is there for */
    fe_device_numbers rows;
    struct fe_device_columns *passes; /* over the columns; NULL: the host's */
    frgi_buffer v, counts, places;
    frgi_device_arena memory;
    double *buffer;   /* of copies */
    int64_t capacity; /* numbers that it holds */
    double *history;  /* 2 x FD_KNOWN x most */
};

extern const fe_device_method frgi_fe_device_cg_method, frgi_fe_device_lsmr_method;

/** Whole numbers of the rows to the device, once; waits. */
FRG_MUST_USE frg_status frgi_fe_device_open_rows(fe_device *d);
/** `count` whole numbers of the rows from `at` on <- x. */
FRG_MUST_USE frg_status frgi_fe_device_put_numbers(fe_device *d, int64_t at, const int32_t *x,
                                                   int64_t count);

/* ---- passes over the columns (fe_passes_device.c) ---- */
FRG_MUST_USE frg_status frgi_fe_device_passes_create(fe_device *d);
void frgi_fe_device_passes_destroy(fe_device *d);
/** Their places among the whole numbers of the rows; *used so far. */
void frgi_fe_device_passes_place(fe_device *d, int64_t *used);
FRG_MUST_USE frg_status frgi_fe_device_passes_put_rows(fe_device *d);
/** Their numbers, in double, and *at: the places of these; empty where there are no passes or no
 *  memory for them yet. */
frgi_buffer frgi_fe_device_passes_numbers(const fe_device *d, const int64_t **at);
FRG_MUST_USE frg_status frgi_fe_device_passes_put_weights(fe_device *d);
/** to (n x K), in the device's type and from number `at` of its block on, <- what is left of the K
 *  columns of a block, or of its column k >= 0 alone. */
FRG_MUST_USE frg_status frgi_fe_device_columns_copy(fe_device *d, const fe_device_block *b, int k,
                                                    frgi_buffer to, int64_t at);

/** at[which] <- *used, *used += count */
void frgi_fe_device_place_at(fe_device *d, int which, int64_t count, int64_t *used);
frgi_buffer frgi_fe_device_range(const fe_device *d, int which, int64_t from, int64_t count);
/** Memory and places for K columns. */
FRG_MUST_USE frg_status frgi_fe_device_prepare(fe_device *d, int columns);
/** The rows' values of a design with slopes to their places `at` in v, in reals of `real` bytes;
 *  waits. */
FRG_MUST_USE frg_status frgi_fe_device_put_values(fe_device *d, frgi_buffer v, const int64_t *at,
                                                  size_t real);
/** The block that has these values for the vectors, in their type: in double that of the passes. */
frgi_buffer frgi_fe_device_values(const fe_device *d);
/** Vector `which` <- x in the device's type; waits. */
FRG_MUST_USE frg_status frgi_fe_device_put(fe_device *d, int which, const double *x, int64_t count);
/** `count` numbers of vector `which` from `from` on; waits. */
FRG_MUST_USE frg_status frgi_fe_device_get(fe_device *d, int which, int64_t from, double *x,
                                           int64_t count);
/** The counts of all columns in `slot`, behind the next wait. */
FRG_MUST_USE frg_status frgi_fe_device_get_counts(fe_device *d, int slot, int32_t *count);
/** d->history <- T as far as the columns' steps, of their counts, have made it; waits. */
FRG_MUST_USE frg_status frgi_fe_device_get_history(fe_device *d, const int32_t *count);
/** Sums over the pieces of the transposed index, for a launch of a step. */
FRG_MUST_USE frg_status frgi_fe_device_pieces(fe_device *d, int slot);
/** The smallest Ritz value of column c after `steps` steps, from d->history. */
double frgi_fe_device_ritz(const fe_device *d, int c, int64_t steps);

#pragma GCC visibility pop
#endif
