/* gw_plan.h - inside a plan, and what the derivatives through one share. */
#ifndef FRGI_GW_PLAN_H
#define FRGI_GW_PLAN_H

#include "fourge/gw.h"
#include "gw/gw_transport.h"

#pragma GCC visibility push(hidden)

struct frg_plan {
    frg_context *ctx;
    const frgi_transport *t;
    frg_plan_report report;
    bool factored; /* of low rank: its exponents come from factors, there is no cost behind them */
    const frg_sinkhorn *there; /* that can make rows on its device; NULL: none */
    bool away;                 /* the costs lie there: rows cannot be made on the host */
};

/** The report from the errors before and after rounding. */
void frgi_plan_set(frg_plan *p, const frgi_transport *t, frgi_marginal_error before,
                   frgi_marginal_error after);

/* ---- derivatives through a plan (gw_grad.c, gw_unroll.c) ---- */

enum { FRGI_GRAD_CHUNKS = 8 };

/** out <- the sums (chunks x m) of all chunks, added by the tree of core/tree_sum.h. */
void frgi_sum_chunks(const double *sums, int64_t m, double *out);
/** Takes the mean over the entries of weight > 0 from them; the others become 0. */
void frgi_centre(double *x, const double *weight, int64_t n);

#pragma GCC visibility pop
#endif
