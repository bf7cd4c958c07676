/* gw_lowrank.h - plans in factors. */
#ifndef FRGI_GW_LOWRANK_H
#define FRGI_GW_LOWRANK_H

#include "device/device.h"
#include "gw/gw_solver.h"

#pragma GCC visibility push(hidden)

/** P = Q diag(1/h) W',  Q 1 = a, W 1 = b, Q' 1 = W' 1 = h > 0. */
typedef struct {
    const frgi_transport_steps *steps; /* the memory is theirs; NULL: none yet */
    int64_t n, m, rank;
    double *q, *w, *h; /* n x rank, m x rank, rank */
    float *left;       /* n x rank: Q_ik / (h_k a_i) */
    float *right;      /* rank x ld: W' */
    int64_t ld;
    frgi_arena memory;
} frgi_factored;

/** The iteration on factors: what is done with them, and with what is needed beside them. */
typedef struct frgi_lowrank frgi_lowrank;
typedef enum { FRGI_KEEP_BEST, FRGI_RECALL_BEST, FRGI_KEEP_BEFORE, FRGI_RECALL_BEFORE } frgi_copy;

/** The steps on factors, linearised costs, gradients and projections; nothing else touches them
 *  (test_gw_steps), but for copies of whole arrays (frgi_transport_copy).  They are part of a table
 *  of steps of a transport problem. */
struct frgi_lowrank_steps {
    /** All arrays 0. */
    void (*clear)(frgi_lowrank *w);
    /** Q, W, h <- the projection of |N(0, 1)| + 1 and 1 / r. */
    FRG_MUST_USE frg_status (*random)(frgi_lowrank *w, uint64_t run);
    /** The projection of the factors that there are. */
    FRG_MUST_USE frg_status (*again)(frgi_lowrank *w, int64_t passes);
    /** `count` pairs of P. */
    void (*draw)(const frgi_lowrank *w, int64_t count, uint64_t stream, frgi_pair *out);
    /** Dx, and then Dy, from R rows of distances: centred with the weights, times scale. */
    void (*centre)(frgi_lowrank *w, bool second, const float *rows, double scale);
    /** Derivatives of <L, Q diag(1/h) W'>; *value <- it and epsilon times the entropies of the
     *  factors. */
    FRG_MUST_USE frg_status (*derive)(frgi_lowrank *w, double *value);
    /** xi and its projection; pace: a factor on gamma. */
    FRG_MUST_USE frg_status (*mirror)(frgi_lowrank *w, double pace);
    /** Q, W, h into one of two copies, or back. */
    void (*copy)(frgi_lowrank *w, frgi_copy what);
    /** Factors whose sums are a, b and h. */
    void (*round)(frgi_lowrank *w);
    /** What exponents of the plan are made from; fills `left` and `right`. */
    void (*pack)(frgi_factored *f, const double *a);
};

/* ---- on a device (gw_lowrank_device.c): each does what the step of its name does ---- */

typedef struct frgi_lowrank_device frgi_lowrank_device;
/** Memory, distances, weights, a linear cost; l is borrowed until the end.  To be closed, failed or
 *  not.  Positive: stopped. */
FRG_MUST_USE frg_status frgi_lowrank_device_open(frgi_lowrank_device **out, const frgi_level *l,
                                                 frgi_device *dev, int group);
void frgi_lowrank_device_close(frgi_lowrank_device **d);
FRG_MUST_USE frg_status frgi_lowrank_device_random(frgi_lowrank_device *d, uint64_t run);
/** *error: as frgi_lowrank has it. */
FRG_MUST_USE frg_status frgi_lowrank_device_again(frgi_lowrank_device *d, int64_t passes,
                                                  double *error);
/** Pairs, and distances to them. */
FRG_MUST_USE frg_status frgi_lowrank_device_linearise(frgi_lowrank_device *d);
/** value NULL: not wanted, and nothing comes back. */
FRG_MUST_USE frg_status frgi_lowrank_device_derive(frgi_lowrank_device *d, double *value);
FRG_MUST_USE frg_status frgi_lowrank_device_mirror(frgi_lowrank_device *d, double pace);
FRG_MUST_USE frg_status frgi_lowrank_device_copy(const frgi_lowrank_device *d, frgi_copy what);
/** What the estimate of the energy is made from. */
struct frgi_pair_moments;
FRG_MUST_USE frg_status frgi_lowrank_device_estimate(const frgi_lowrank_device *d,
                                                     struct frgi_pair_moments *out);
/** Q, W, h of f there, and back. */
FRG_MUST_USE frg_status frgi_lowrank_device_put(const frgi_lowrank_device *d,
                                                const frgi_factored *f);
FRG_MUST_USE frg_status frgi_lowrank_device_fetch(const frgi_lowrank_device *d, frgi_factored *f);
/** The four arrays of a saved state, of Q, W and h and of the copy of the best start, are there. */
void frgi_lowrank_device_arrays(const frgi_lowrank_device *d, frgi_array *own);
/** What it asks of gw_lowrank.c: rows of `count` pairs, and the random numbers (2 count) of their
 *  components and columns; `count` logarithms of a side's random start; log h_min. */
void frgi_lowrank_rows(const frgi_level *l, int64_t count, uint64_t stream, int32_t *rows,
                       double *uniforms);
void frgi_lowrank_random(const frgi_level *l, uint64_t run, int second, int64_t count, double *out);
double frgi_lowrank_least(int64_t rank);
/** Components of the factors: the rank asked for, or as many as a side has points. */
int64_t frgi_lowrank_rank(const frgi_level *l);

/** The outer loop on factors: anchors, linearised cost in factors, mirror steps.  f is filled.
 *  there: NULL, or where it computes. */
FRG_MUST_USE frg_status frgi_lowrank_loop(frgi_level *l, frgi_factored *f,
                                          frgi_lowrank_device *there, frg_gw_report *report);
/** l's transport <- the plan of the factors, made from them whenever rows are asked for, ready to
 *  be finished. */
void frgi_lowrank_give_plan(frgi_level *l, frgi_factored *f);
/** q, w, h of f <- those of a dense plan: the one that l starts from, or that of groups of points,
 *  whose outer steps are added to *steps (gw_lowrank_start.c).  Positive: stopped, with factors. */
FRG_MUST_USE frg_status frgi_lowrank_groups(frgi_level *l, frgi_factored *f, int64_t *steps);
void frgi_factored_close(frgi_factored *f, frg_context *ctx);

#pragma GCC visibility pop
#endif
