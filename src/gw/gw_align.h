/* gw_align.h - an alignment, shared by what opens it (gw.c), runs it (gw_run.c) and reads it
 * (gw_results.c). */
#ifndef FRGI_GW_ALIGN_H
#define FRGI_GW_ALIGN_H

#include "device/device.h"
#include "gw/gw_lowrank.h"
#include "gw/gw_state.h"

enum { FRGI_WHOLE_COSTS = 6000 }; /* points of a side up to which the mode vertex makes all costs */

/** Where an alignment computes. */
typedef struct {
    frgi_device *dev; /* NULL: the host */
    int group;        /* work-items of a group, 0: the usual; the bits of a device depend on it */
    const frgi_transport_steps *steps; /* NULL: the host's */
} frgi_gw_place;

struct frg_gw {
    frg_context *ctx;
    frgi_gw_place where;
    frg_gw_opts o;
    frgi_distances x, y;
    double *a, *b;
    float *linear;
    float *start;       /* n x m */
    double *potentials; /* n + m to start from, without the terms that exponents leave out */
    frgi_level level;
    frgi_factored factors;              /* rank > 0 */
    frgi_lowrank_device *factors_there; /* NULL: the host */
    frg_plan plan;
    frg_gw_report report;
    frgi_transport_list list; /* of the mode vertex */
    struct frgi_state state;
    frgi_trace trace;
    frg_status stopped; /* positive: while distances were made; negative: nothing can be run */
    frgi_host_steps host_steps;
    frgi_device_counts opened; /* by what was done there before the first run */
    bool degenerate;
    bool by_auto;  /* the mode in o was chosen by `auto`, not by the caller */
    char why[120]; /* the reason of that choice, for the report */
};

#pragma GCC visibility push(hidden)

/** frg_gw_create there. */
FRG_MUST_USE frg_status frgi_gw_open(frg_gw **out, frg_context *ctx, frgi_gw_place where,
                                     frg_gw_side x, frg_gw_side y, const frg_array *linear,
                                     const frg_gw_opts *o);
/** The mode vertex (gw_vertex_run.c): the plan as a list, its energy and where it comes from in the
 *  report; positive: stopped, with the best plan so far. */
FRG_MUST_USE frg_status frgi_gw_vertex(frg_gw *s);
/** What vertices say of the plan of a run that has come to its end (gw_verdict.c).  Positive:
 *  stopped. */
FRG_MUST_USE frg_status frgi_gw_verdict(frg_gw *s);
/** What a step on exact costs says of a plan whose marginals are relaxed or partial (gw_audit.c).
 *  Positive: stopped. */
FRG_MUST_USE frg_status frgi_gw_audit(frg_gw *s);
/** "Converged" is not said: the plan does not confirm it. */
void frgi_gw_deny(frg_gw *s);
/** E of the plan of a level of the alignment's points, with the alignment's mass, from pairs of the
 *  next step's random numbers; by the formula with means (gw_energy.c) where the marginals hold and
 *  all distances may be looked at.  units: what scaled distances of x and of y are multiplied
 *  by. */
FRG_MUST_USE frg_status frgi_gw_estimate(frg_gw *s, frgi_level *l, const double units[2],
                                         double *energy, double *error);
/** The name of the first option given that the mode vertex has no part in; NULL: none. */
const char *frgi_gw_entropic_option(const frg_gw_opts *o);
/** The mode that auto takes, and why (gw_mode.c).  option: that was given and the mode vertex has
 *  no part in, or NULL. */
void frgi_gw_choose_mode(frg_gw *s, const char *option);
/** The mode is sampled, as `given` is given. */
void frgi_gw_take_sampled(frg_gw *s, const char *given);
/** Whether its linear problems are assignments: as many points of equal weights on both sides. */
bool frgi_gw_assigns(const frg_gw *s);
/** Whether its arrays fit into half of the memory that is allowed. */
bool frgi_gw_fits_vertex(const frg_gw *s);
/** Whether runs start from representatives. */
bool frgi_gw_is_multiscale(const frg_gw *s);
/** out[i] <- sum_k C_ik^2 w_k of one side, caller's units. */
FRG_MUST_USE frg_status frgi_gw_eccentricities(frgi_distances *d, const double *w, double *out);

/** Whether exponents are without the row and column terms of L. */
bool frgi_gw_leaves_out(const frg_gw *s);
/** out[i] <- the terms of one side in L(a b'), scaled cost units. */
FRG_MUST_USE frg_status frgi_gw_terms(const frg_gw *s, int side, double *out);

#pragma GCC visibility pop
#endif
