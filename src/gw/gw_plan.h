/* gw_plan.h - inside a plan. */
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

#pragma GCC visibility pop
#endif
