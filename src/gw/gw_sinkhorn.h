/* gw_sinkhorn.h - inside the public Sinkhorn solver, and its passes on a device.
 *
 * On a device run there: the passes (two kernels each; f32 or fixed point first, then, where the
 * device has doubles, f64 from the costs as they were given until the error holds), the plan's
 * sums and its cost.  On the host stay the checks of what is given, rounding's vectors (n + m
 * numbers each way) and, where the device has no doubles, the plan's sums and its cost.  A plan's
 * rows are made from the caller's costs when they are asked for.  Costs that lie on the device are
 * looked at, read and made into rows there alone.
 */
#ifndef FRGI_GW_SINKHORN_H
#define FRGI_GW_SINKHORN_H

#include "device/device.h"
#include "gw/gw_plan.h"

#pragma GCC visibility push(hidden)

typedef struct frgi_sinkhorn_device frgi_sinkhorn_device;

struct frg_sinkhorn {
    frg_context *ctx;
    frg_sinkhorn_opts o;
    frg_array cost;
    frgi_transport t;
    frg_plan plan;
    frg_sinkhorn_report report;
    frgi_host_steps host_steps;
    double *a, *b;
    double low, high;             /* of the costs */
    frgi_sinkhorn_device *device; /* NULL: the host */
    frgi_device *counts_on;       /* the device whose counts the report has, or NULL */
    frgi_device_counts counted;   /* while it was made and given potentials to start from */
};

/** Where a solver computes. */
typedef struct {
    frgi_device *dev; /* NULL: the host */
    int group;        /* work-items of a group, 0: 128; the bits of a device depend on it */
    const frgi_transport_steps *steps; /* NULL: the host's */
} frgi_sinkhorn_place;

/** frg_sinkhorn_create there. */
FRG_MUST_USE frg_status frgi_sinkhorn_open(frg_sinkhorn **out, frg_context *ctx,
                                           frgi_sinkhorn_place where, frg_array cost,
                                           const double *a, const double *b,
                                           const frg_sinkhorn_opts *o);
/** frg_sinkhorn_create_arrays there. */
FRG_MUST_USE frg_status frgi_sinkhorn_open_arrays(frg_sinkhorn **out, frg_context *ctx,
                                                  frgi_sinkhorn_place where, frg_array cost,
                                                  const frg_array *a, const frg_array *b,
                                                  const frg_sinkhorn_opts *o);

/** E_DEVICE_STEP, by name, for what does not run on a device. */
FRG_MUST_USE frg_status frgi_sinkhorn_device_check(const frg_sinkhorn *s, frgi_device *dev);
/** The device, and of costs that lie there their place, s->low and s->high; E_DISTANCE where one is
 *  not finite.  To be closed, failed or not. */
FRG_MUST_USE frg_status frgi_sinkhorn_device_take(frg_sinkhorn *s, frgi_sinkhorn_place where);
/** Costs and memory of s on the device; s is opened but for this. */
FRG_MUST_USE frg_status frgi_sinkhorn_device_open(frg_sinkhorn *s);
void frgi_sinkhorn_device_close(frg_sinkhorn *s);
/** Passes until tol, the floor of rounding or max_iter: sets t's potentials, error and counts. */
FRG_MUST_USE frg_status frgi_sinkhorn_device_passes(frg_sinkhorn *s);
/** Whether there are doubles to finish in; else the host does. */
bool frgi_sinkhorn_device_finishes(const frg_sinkhorn *s);
/** "cpu" without a device. */
const char *frgi_sinkhorn_device_name(const frg_sinkhorn *s);
/** Whether the costs lie on the device. */
bool frgi_sinkhorn_is_away(const frg_sinkhorn *s);
/** Rows first .. last-1 of the plan into an array there. */
FRG_MUST_USE frg_status frgi_sinkhorn_device_rows(const frg_sinkhorn *s, int64_t first,
                                                  int64_t last, const frg_array *out);
/** The same visited on the host, in `chunks` runs as frgi_transport_rows has them. */
FRG_MUST_USE frg_status frgi_sinkhorn_device_visit(const frg_sinkhorn *s, int64_t first,
                                                   int64_t last, int64_t chunks,
                                                   frgi_row_visitor visit, void *user);
/** Marginals of the plan, rounding and cost, as finishing does on the host. */
FRG_MUST_USE frg_status frgi_sinkhorn_device_finish(frg_sinkhorn *s, frgi_marginal_error *before,
                                                    frgi_marginal_error *after);

#pragma GCC visibility pop
#endif
