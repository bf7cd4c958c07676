/* gw_stage_device.h - Sinkhorn's iteration on a device over costs that lie there, in floats or in
 * doubles: the host's side of kernels/gw/gw_sinkhorn.cl.h, shared by the solver of a given cost
 * (gw_sinkhorn_device.c) and by alignments (gw_level_device.c).
 */
#ifndef FRGI_GW_STAGE_DEVICE_H
#define FRGI_GW_STAGE_DEVICE_H

#include "device/device.h"
#include "gw/gw_at.cl.h"
#include "gw/gw_marginals.h"
#include "gw/gw_transport.h"

#pragma GCC visibility push(hidden)

enum { FRGI_STAGE_GROUP = 128 }; /* work-items */
#define FRGI_STAGE_FAR 60        /* a potential that has moved so far belongs into the exponents */

extern const frgi_kernels frgi_kernels_gw;

/** A device, and host memory for copies of vectors. */
typedef struct {
    frg_context *ctx;
    frgi_device *dev;
    int group;    /* work-items */
    void *buffer; /* `capacity` bytes: doubles of a vector at least */
    size_t capacity;
} frgi_stage_place;

/** One of the forms that passes have on a device. */
typedef struct {
    bool on;
    const frgi_program *program;
    size_t real; /* bytes */
    const char *rows, *columns;
    frgi_buffer costs, v, counts, at;
    int64_t place[SK_AT_COUNT];
    int64_t reals; /* of v */
    int slot;
} frgi_stage;

/** What a poll brings. */
typedef struct {
    double of[SKS_COUNT];
    int32_t count[SKC_COUNT];
} frgi_stage_state;

/** What does not change from pass to pass; low, step: of costs in fixed point. */
typedef struct {
    double epsilon, tol, low, step;
} frgi_stage_problem;

/** Work-items of a group: FRGI_STAGE_GROUP where `asked` is 0, fewer where the device has fewer. */
int frgi_stage_group(const frgi_device *dev, int asked);
/** group as in frgi_stage_group.  To be closed, failed or not. */
FRG_MUST_USE frg_status frgi_stage_place_open(frgi_stage_place *p, frg_context *ctx,
                                              frgi_device *dev, int group, int64_t longest);
void frgi_stage_place_close(frgi_stage_place *p);
/** Program and places of vectors for n x m costs; `real` bytes an element. */
FRG_MUST_USE frg_status frgi_stage_open(const frgi_stage_place *p, frgi_stage *g,
                                        frgi_kernel_type type, int64_t n, int64_t m);
/** Its memory, but for the costs. */
void frgi_stage_take(frgi_device_arena *a, frgi_stage *g);
/** The first `count` numbers of vector q, for copies. */
frgi_buffer frgi_stage_vector(const frgi_stage *g, int q, int64_t count);
/** Vector q of a stage <- x in its type, and back; both wait. */
FRG_MUST_USE frg_status frgi_stage_put(const frgi_stage_place *p, const frgi_stage *g, int q,
                                       const double *x, int64_t count);
FRG_MUST_USE frg_status frgi_stage_get(const frgi_stage_place *p, const frgi_stage *g, int q,
                                       double *x, int64_t count);
/** What rounding may leave of the error, as noise_of in gw_transport.c: a group's sums of a column
 *  are of at most SK_EACH / 8 terms. */
double frgi_stage_noise(const frgi_stage *g, int64_t n);
/** Weights and parameters; those of t. */
FRG_MUST_USE frg_status frgi_stage_set(const frgi_stage_place *p, frgi_stage *g,
                                       const frgi_transport *t, const frgi_stage_problem *of);
/** Potentials of t into the stage, whose state begins anew. */
FRG_MUST_USE frg_status frgi_stage_begin(const frgi_stage_place *p, frgi_stage *g,
                                         frgi_transport *t);
FRG_MUST_USE frg_status frgi_stage_submit(const frgi_stage_place *p, frgi_stage *g, int64_t count);
/** The state behind the last pass; waits. */
FRG_MUST_USE frg_status frgi_stage_poll(const frgi_stage_place *p, frgi_stage *g,
                                        frgi_stage_state *out);
/** Potentials into the exponents. */
FRG_MUST_USE frg_status frgi_stage_fold(const frgi_stage_place *p, frgi_stage *g);
/** The stage's potentials to t: those behind the last pass; of accelerated passes that have ended,
 *  of the last plain step. */
FRG_MUST_USE frg_status frgi_stage_end(const frgi_stage_place *p, frgi_stage *g, frgi_transport *t,
                                       const frgi_stage_state *st);
/** Begins, and passes in batches of 1, 2, 4, 8, 8, ... until tol, the floor or `most`; t's passes
 *  and potentials are set, *st is the last poll's.  pass_bytes: that a pass reads.  Positive:
 *  stopped by the heartbeat. */
typedef struct {
    int64_t most;
    double pass_bytes;
    const char *phase; /* of the heartbeat */
    int64_t total;
    double target;
} frgi_stage_run_limits;
FRG_MUST_USE frg_status frgi_stage_run(const frgi_stage_place *p, frgi_stage *g, frgi_transport *t,
                                       const frgi_stage_run_limits *limits, frgi_stage_state *st);
/** The plan's sums while it is finished, a frgi_add_plan of a frgi_stage_plan. */
typedef struct {
    const frgi_stage_place *place;
    frgi_stage *stage;
    frgi_transport *t;
    bool floats; /* the costs are floats though the stage has doubles */
} frgi_stage_plan;
FRG_MUST_USE frg_status frgi_stage_sums(void *user, double *row, bool exact_rows);
/** Potentials, sums and rounding of the plan there; the vectors of the rounding are put back. */
FRG_MUST_USE frg_status frgi_stage_finish(const frgi_stage_plan *plan, bool round,
                                          frgi_marginal_error *before, frgi_marginal_error *after);

#pragma GCC visibility pop
#endif
