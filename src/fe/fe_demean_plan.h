/* fe_demean_plan.h - what a plan of the demeaner owns: the grouped rows, the solver, the memory of
 * a run.
 *
 * fe_demean_plan.c makes it and answers questions about it, fe_demean.c runs it.
 */
#ifndef FRGI_FE_DEMEAN_PLAN_H
#define FRGI_FE_DEMEAN_PLAN_H

#include "core/host_step.h"
#include "core/row_order.h"
#include "device/device.h"
#include "fe/fe_cascade.h"
#include "fe/fe_demean.h"
#include "fe/fe_row_lsmr.h"

#pragma GCC visibility push(hidden)

/** The effects of one block of columns, kept after the run. */
typedef struct {
    int64_t first_column, lane; /* lane: those of the blocks before */
    int live, lanes;
    double *elim;    /* n_elim x lanes; on a device: the device's */
    double *reduced; /* n_reduced x lanes */
} fe_block_effects;

/** Where arrays lie on the disk and rows of an eliminated level do not stand together: the plan is
 *  that of the rows in the order of these levels, and columns are brought there and back. */
typedef struct {
    bool there;
    frgi_row_order order;
    char *columns; /* width of them, row after row in that order; NULL until the first run */
    int64_t width;
    bool lost; /* the last run was stopped with columns on their way */
} fe_detour;

struct frg_demean {
    frg_context *ctx;
    frg_demean_opts opts;
    fe_rows rows;
    fe_cascade *cascade;
    fe_row_lsmr *row_lsmr; /* the row-space path; NULL where the cascade solves */
    bool has_slopes;
    int lanes_there; /* most of a block whose passes are a device's; 0: they are the host's */
    fe_detour detour;
    /* memory of the run, grown by the first run of a shape and kept */
    int64_t columns; /* the shape it was laid out for */
    int n_blocks;
    frgi_arena lists; /* of reports and blocks; `arena` holds vectors, for the steps alone */
    frgi_arena arena;
    fe_block_work work[FE_MAX_LANES + 1]; /* by lanes */
    double *refined_elim; /* n_elim: the eliminated levels' effects in a refinement */
    double *left;         /* n_reduced: the sums that a refinement leaves */
    fe_block_effects *blocks;
    frg_demean_column *reports; /* p */
    double setup_seconds;
    double tol_used;            /* the largest that a column was judged by */
    frgi_device *dev;           /* where it computes; NULL: on the host */
    frgi_device_counts counted; /* there, by the plan alone */
    frgi_host_steps host_steps;
};

/** frg_demean_create with another table of steps than the host's, for tests. */
FRG_MUST_USE frg_status frgi_fe_demean_create(frg_demean **out, frg_context *ctx, frg_array codes,
                                              const frg_array *weights, const frg_slope *slopes,
                                              int n_slopes, uint64_t no_intercept,
                                              const frg_demean_opts *o,
                                              const struct fe_steps *steps);
/** Warns, once a context, that `tol` was raised to `raised`, what `what` can reach. */
void frgi_fe_say_raised(frg_context *ctx, double tol, double raised, const char *what);
/** The plan's tolerance becomes tol, or what float32 can reach where its dtype is that. */
void frgi_fe_take_tol(frg_demean *d, double tol);
/** What the solver of a plan depends on, as it stands in a file. */
typedef struct {
    int64_t format;
    uint64_t options; /* hash of them, of the seed, the version and the CPU level */
    uint64_t codes, weights;
} fe_plan_identity;
typedef struct {
    fe_plan_identity own;
    fe_cascade_facts cascade;
} fe_plan_facts;
/** The plan as a checkpoint whose sections point to it and to *facts. */
FRG_MUST_USE frg_status frgi_fe_plan_put(const frg_demean *d, fe_plan_facts *facts,
                                         frg_checkpoint **out);
/** Takes the solver of a saved plan over, as frg_demean_load from its file `path`. */
FRG_MUST_USE frg_status frgi_fe_plan_take(frg_demean *d, const frg_checkpoint *c, const char *path);
/** A block of columns on a device. */
static inline fe_device_block fe_block_on_device(const fe_block_effects *e)
{
    return (fe_device_block){e->first_column, e->lane, e->lanes, e->live};
}
/** The layout of the rows into files->order, where there is room for it, and back: *read where it
 *  was there and of `n` rows of `factors` factors; W_KEPT where it was of no use.  Weights are left
 *  out (frgi_fe_rows_weigh).  E_CHANGED of other data, E_ROOM, E_CREATE, E_WRITE, E_READ. */
FRG_MUST_USE frg_status frgi_fe_layout_save(const frg_demean *d, const frg_layout_files *files);
FRG_MUST_USE frg_status frgi_fe_layout_load(frg_demean *d, const frg_layout_files *files, int64_t n,
                                            int factors, bool *read);
/** Lays out the memory of a run over p columns, where the last run's is not large enough. */
FRG_MUST_USE frg_status frgi_fe_demean_prepare(frg_demean *d, int64_t p);

#pragma GCC visibility pop
#endif
