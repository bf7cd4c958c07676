/* reg_pool.h - what the models of one call share: rows, codes, the demeaner's plan, demeaned
 * columns.
 *
 * A sample is a set of rows with its weights and effects.  Models whose rows and effects are equal
 * have one sample, by reference; it holds each column that any of them needs once.
 */
#ifndef FRGI_REG_POOL_H
#define FRGI_REG_POOL_H

#include "fourge/fe.h"
#include "regress/reg_design.h"
#include "regress/reg_gram.h"
#include "regress/reg_panel.h"

#pragma GCC visibility push(hidden)

struct frgi_frame;

/** The rows by the levels of a column, as `split` wants them. */
typedef struct {
    const frg_column *column;
    int32_t *codes; /* of all rows of the table, -1: missing */
    frgi_levels levels;
} frgi_split;

/** E_COLUMN; a column without a value in any row has no levels. */
FRG_MUST_USE frg_status frgi_split_create(frgi_split *s, frg_context *ctx, const char *name,
                                          const frg_table *table);
void frgi_split_destroy(frgi_split *s, frg_context *ctx);

/** A column that models share. */
typedef struct {
    uint64_t hash;
    char *key; /* what it is: terms, levels, functions, by their names */
    bool ones;
    double *values;
    frgi_moments moments;
    frg_demean_column report;
} frgi_shared_column;

typedef struct frgi_sample frgi_sample;
struct frgi_sample {
    frg_context *ctx;
    int users;
    frgi_sample *next;
    unsigned char *mask; /* why rows are out (reg_frame.c), NULL: none is; n_rows */
    int64_t n_rows;
    frgi_text effects; /* their columns, slopes and intercepts */
    struct frgi_frame *frame;
    int n_columns, n_ready, capacity; /* ready: demeaned, or what takes its place */
    frgi_shared_column *columns;
    int n_blocks;
    double **blocks; /* the memory of the columns */
    double *pending; /* that of the columns that are not ready */
    frg_demean *plan;
    bool ranked;
    frg_demean_rank rank;
};

typedef struct {
    frgi_sample *first;
    const frgi_split *split; /* NULL: none */
    const frgi_panel *panel; /* NULL: none */
} frgi_pool;

/** Text of the effects of a formula, equal where what they absorb is. */
FRG_MUST_USE frg_status frgi_pool_effects(frgi_text *out, frg_context *ctx,
                                          const frgi_formula *formula);
/** The sample with these rows and effects, or NULL. */
frgi_sample *frgi_pool_find(const frgi_pool *pool, const unsigned char *mask, int64_t n_rows,
                            const char *effects);
/** Takes mask, effects and the memory of `frame` over into a new sample, which pool and frame
 *  have; on failure they stay the caller's. */
FRG_MUST_USE frg_status frgi_pool_add(frgi_pool *pool, frg_context *ctx, unsigned char **mask,
                                      frgi_text *effects, struct frgi_frame *frame);
/** The pool's own references, and what models need no more once all are fitted. */
void frgi_pool_close(frgi_pool *pool);
/** One user less. */
void frgi_sample_release(frgi_sample *s);

struct frg_fe;
/** The place of each column of f in its sample into f->matrix.shared and .columns; those that are
 *  not there yet are added, without values. */
FRG_MUST_USE frg_status frgi_sample_columns(struct frg_fe *f);
/** Has column c of f's matrix its final values from another model? */
bool frgi_sample_has(const struct frg_fe *f, int c);
/** Keeps the moments of the columns that were filled, and takes those of the others. */
void frgi_sample_moments(struct frg_fe *f);
/** Demeans the columns that are new, and takes the reports of all of f's. */
FRG_MUST_USE frg_status frgi_sample_demean(struct frg_fe *f, frg_status *worst, bool *stopped);
/** Subtracts the means of the new columns, but of the ones; a column that a model has twice is one
 *  here. */
void frgi_sample_centre(frgi_sample *s);
/** The new columns are what they are to be. */
void frgi_sample_finish(frgi_sample *s);

#pragma GCC visibility pop
#endif
