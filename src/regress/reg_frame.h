/* reg_frame.h - the rows of a regression: which of the table's are used, their weights and
 * effects. */
#ifndef FRGI_REG_FRAME_H
#define FRGI_REG_FRAME_H

#include "formula/keys.h"
#include "fourge/fe.h"
#include "regress/reg_design.h"
#include "regress/reg_family.h"
#include "regress/reg_pool.h"

#pragma GCC visibility push(hidden)

/** The rows of a regression. */
typedef struct frgi_frame {
    int64_t n_rows; /* of the table */
    int64_t n;      /* used */
    int64_t n_missing, n_subset, n_zero_weight, n_uncompared, n_singleton, singleton_rounds,
        n_disconnected;
    int64_t
        n_groups; /* connected sets, before all but the largest were dropped; 0: not asked for */
    int64_t n_separated; /* rows that are predicted perfectly, */
    int64_t *separated;  /* and which of the table's they are */
    int64_t *rows;       /* the n rows used; NULL: all */
    double *weights;     /* n, or NULL; those of the table times 2^-weight_exponent */
    int weight_exponent; /* even, 0 for frequencies */
    double weight_root;  /* of the least one, 1 at most */
    double count;        /* n, or the sum of frequency weights */
    int n_effects;
    frgi_key keys[FRGI_EFFECTS];
    int32_t *codes; /* n x n_effects, column-major */
    int64_t levels[FRGI_EFFECTS];
    double *slopes;      /* n x n_slopes, column-major */
    frgi_key_list later; /* keys of the columns and the covariances; numbered where they are kept */
    frgi_sample *sample; /* whose memory this is; NULL: its own */
} frgi_frame;

/** What the frame has to know beside the formula. */
typedef struct {
    const frg_table *table;
    const frgi_formula *formula;
    const frgi_variable *variables;
    const frgi_program *depvar;
    const frgi_program *offset; /* NULL: none */
    const frgi_family *family;  /* of a generalised linear model; else NULL */
    const frgi_key *clusters;
    int n_clusters;
    frgi_key_list *later; /* becomes the frame's; NULL: none */
    const frg_fe_opts *options;
    frgi_pool *pool; /* of samples to take or to add; NULL: none */
} frgi_frame_input;

FRG_MUST_USE frg_status frgi_frame_create(frgi_frame *f, frg_context *ctx,
                                          const frgi_frame_input *in);
/** Leaves out the `count` rows that are gone, as separated, and the singletons that this makes. */
FRG_MUST_USE frg_status frgi_frame_separate(frgi_frame *f, frg_context *ctx,
                                            const frgi_frame_input *in, const unsigned char *gone,
                                            int64_t count);
/** Codes and levels of the effects and of `later`, and rows, of a frame whose `before` rows were
 *  listed before some were left out by the effects, into files->codes, and back: *read where the
 *  file was there, W_KEPT where it was of no use (reg_layout.c).  The frame has its list and
 *  weights from before.  E_CHANGED of other
 *  data, E_ROOM, E_CREATE, E_WRITE, E_READ. */
FRG_MUST_USE frg_status frgi_frame_save(const frgi_frame *f, frg_context *ctx,
                                        const frgi_frame_input *in, const frg_layout_files *files,
                                        int64_t before);
FRG_MUST_USE frg_status frgi_frame_load(frgi_frame *f, frg_context *ctx, const frgi_frame_input *in,
                                        const frg_layout_files *files, bool *read);
/** Bytes of that file. */
size_t frgi_frame_save_bytes(const frgi_frame *f, int64_t before);
void frgi_frame_destroy(frgi_frame *f, frg_context *ctx);

/** An expression that is 0 or missing in rows that are left out; destroyed, then freed, by the
 *  caller in any case.  E_FORMULA, E_COLUMN, E_TYPE where it is text. */
FRG_MUST_USE frg_status frgi_subset_program(frgi_program *p, frgi_syntax *s, frg_context *ctx,
                                            const char *text, const frg_table *table);

/** group[i] <- the connected set of row i in the graph of the first two effects, 1 .. *n_groups,
 *  the largest first. counts: what a row stands for, NULL: 1.  E_OPTION where there are no two
 *  effects. */
FRG_MUST_USE frg_status frgi_connected_rows(int32_t *group, int32_t *n_groups, frg_context *ctx,
                                            const frgi_frame *f, const frgi_formula *formula,
                                            const double *counts);

/** The first two effects that are not slopes alone.  E_OPTION where there are no two, E_TOO_BIG. */
FRG_MUST_USE frg_status frgi_find_pair(frg_context *ctx, const frgi_formula *formula,
                                       const frgi_frame *f, int pair[2]);
/** group[l] <- the number of the set of level l, the largest being 1, and 0 where it has no rows;
 *  parent: the set's root, which stands before its other levels; rows: of a root, those of the
 *  set. */
FRG_MUST_USE frg_status frgi_number_sets(frg_context *ctx, const int32_t *parent,
                                         const double *rows, int64_t levels, int32_t *group,
                                         int32_t *n_groups);

/** z <- slope k of the formula in the frame's rows.  E_NOT_FINITE of an infinite value,
 *  E_MEMORY. */
FRG_MUST_USE frg_status frgi_frame_slope(frg_context *ctx, const frgi_frame *f,
                                         const frgi_frame_input *in, int k, double *z);
/** gone[i] <- 1 where slope k of the formula tells y_i within a level of its effect
 *  (reg_separation_slopes.c).  Errors of frgi_frame_slope. */
FRG_MUST_USE frg_status frgi_separated_by_slope(frg_context *ctx, const frgi_frame *frame,
                                                const frgi_frame_input *in, int k, const double *y,
                                                unsigned char *gone);
/** gone[i] <- 1 where a direction of the effects q and r alone tells that y_i is 0, or, of a binary
 *  outcome, 1 (reg_separation_pairs.c). */
FRG_MUST_USE frg_status frgi_separated_by_pair(frg_context *ctx, const frgi_frame *frame, int q,
                                               int r, const double *y, bool binary,
                                               unsigned char *gone);
/** gone[i] <- 1 where row i has a level of an effect whose outcomes are all 0, or, of a binary
 *  outcome, all the same, or, where there are none, a slope or two effects tell it; *count of
 *  them.
 *  E_FAMILY for an outcome that the family has not, E_SEPARATED where no row's outcome differs so
 *  from all others'. */
FRG_MUST_USE frg_status frgi_separated_levels(frg_context *ctx, const frgi_frame *f,
                                              const frgi_frame_input *in, unsigned char *gone,
                                              int64_t *count);

#pragma GCC visibility pop
#endif
