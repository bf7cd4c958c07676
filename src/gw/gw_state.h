/* gw_state.h - where a run of the outer iteration stands, between two steps, and taking it up
 * again.
 *
 * A step depends on what is listed here alone: potentials, pairs that wait, the plan or the factors
 * of the modes that keep them, the past costs once they are averaged, and some numbers.  Before
 * every step these are copied, if anybody wants states; a run that stops anywhere later leaves that
 * copy, so that the resumed run does the step again and ends with the same bits.  Of a run on a
 * device the copy lies there until somebody saves it (gw_state_device.c).
 */
#ifndef FRGI_GW_STATE_H
#define FRGI_GW_STATE_H

#include "gw/gw_solver.h"

#pragma GCC visibility push(hidden)

/** The loops of steps that a run may stand in. */
typedef enum {
    FRGI_PHASE_NONE,
    FRGI_COARSE_STARTS,
    FRGI_COARSE,
    FRGI_FINE,
    FRGI_LOCAL_DISTRIBUTIONS, /* no loop: the start from them is computed anew as a whole */
    FRGI_STARTS,
    FRGI_MAIN,
    FRGI_EXACT,
    FRGI_FACTOR_STARTS,
    FRGI_FACTORS,
    FRGI_VERTEX, /* no loop: the run begins anew */
    FRGI_PHASES
} frgi_phase;

/** Counts of the report that belong to a state. */
typedef struct {
    int64_t outer, coarse, inner, started_from;
    double vertex_energy;
} frgi_report_numbers;

typedef struct {
    int64_t n_lagged, truncated, count, drawn;
    int64_t lagged_count[FRGI_LAGS], lagged_used[FRGI_LAGS];
} frgi_sample_numbers;

typedef struct {
    double best, ema;
    int64_t bad, stale;
    frgi_floor floor;
} frgi_stopping_numbers;

/** Of exponents, past ones and the dummy point's. */
typedef struct {
    double k, dummy_g, dummy_f, past_k;
} frgi_potential_numbers;

typedef struct {
    int64_t run, filled, drawn;
    double energy, epsilon, information, error;
} frgi_start_numbers;

/** Of the numbers and arrays below, in a section of its own; to be raised with every change of
 *  their order or meaning.  States of format 1 have no such section. */
extern const int64_t frgi_state_format;

/** What a state has besides arrays. */
typedef struct {
    uint64_t options, data; /* hashes */
    int64_t phase, turn, t; /* the loop, which of its runs, the step in it */
    int64_t run, step, passes, smooth_from, averaged;
    double epsilon;
    frgi_report_numbers report;
    frgi_sample_numbers sampled;
    frgi_stopping_numbers stopping;
    frgi_potential_numbers potentials;
    frgi_start_numbers starts[FRGI_STARTS_HELD];
} frgi_state_numbers;

struct frgi_state {
    frg_context *ctx;
    frg_gw_report *report; /* whose counts belong to the state */
    frg_gw *owner;
    frg_gw_saver save; /* NULL: nobody wants states */
    void *user;
    uint64_t options, data;
    frgi_state_numbers numbers; /* of the last point, or of the one to take up */
    frgi_array arrays[FRGI_ARRAYS];
    int n_arrays;
    char *memory; /* of the copies, of those there, too */
    bool filled;
    frgi_device *dev;           /* NULL: the host */
    frgi_buffer copy;           /* of the arrays there */
    char device[300];           /* the kind, the model and the driver; empty: the host */
    const frg_checkpoint *from; /* to be taken up by the phase and turn in numbers; NULL: none */
};

/** An empty one of `owner`, which runs on dev; NULL: the host. */
void frgi_state_begin(struct frgi_state *s, frg_gw *owner, frgi_device *dev);
/** Memory of a start; what l is now into it (gw_level.c). */
FRG_MUST_USE frg_status frgi_start_open(const frgi_level *l, frgi_start *s);
void frgi_start_fill(const frgi_level *l, frgi_start *s);

/** Whether a state of this phase waits to be taken up. */
bool frgi_state_waits(const frgi_level *l, frgi_phase phase);
/** The turn to begin a phase with: that of a state that waits, else 0. */
int64_t frgi_state_turn(const frgi_level *l, frgi_phase phase);
/** At the beginning of the loop of l->saved.phase, l->saved.turn: *t stays, or becomes the step
 *  of the state that waits for this place, which l then has.  E_MISMATCH where that is not below
 *  `most`. */
FRG_MUST_USE frg_status frgi_state_enter(frgi_level *l, int64_t most, int64_t *t);
/** Before step t: the copy, and the call of the one who wants it. */
FRG_MUST_USE frg_status frgi_state_point(frgi_level *l, int64_t t);
/** Before work that has no states within: one of this phase that waits is taken up, and the work
 *  done as a whole. */
FRG_MUST_USE frg_status frgi_state_anew(frgi_level *l, frgi_phase phase);
/** The numbers of a checkpoint of this format, checked against the hashes; n_start: how many starts
 *  a run has. */
FRG_MUST_USE frg_status frgi_state_open(struct frgi_state *s, const frg_checkpoint *c,
                                        int64_t n_start);
void frgi_state_close(struct frgi_state *s);

/* ---- on a device (gw_state_device.c) ---- */

/** Room there for the copies of `bytes`. */
FRG_MUST_USE frg_status frgi_state_reserve_there(struct frgi_state *s, size_t bytes);
/** The pieces of a, one behind the other, into that memory from `from` on, where a is then. */
FRG_MUST_USE frg_status frgi_state_copy_there(struct frgi_state *s, frgi_array *a, size_t from);
/** The copies there of the last point into s->memory. */
FRG_MUST_USE frg_status frgi_state_fetch(const struct frgi_state *s);
/** The pieces of a <- the bytes of its section. */
FRG_MUST_USE frg_status frgi_state_put_there(const struct frgi_state *s, const frgi_array *a,
                                             const char *from);
/** Whether the bytes of a section are pairs of points, or numbers. */
bool frgi_state_is_sound_there(const frgi_level *l, const frgi_array *a, const char *from);
void frgi_state_name_device(struct frgi_state *s);
/** E_MISMATCH, with both names, where c is of another device or driver, or of the host. */
FRG_MUST_USE frg_status frgi_state_check_device(const struct frgi_state *s,
                                                const frg_checkpoint *c);

#pragma GCC visibility pop
#endif
