/* gw_exact.h - linearisations without random numbers. */
#ifndef FRGI_GW_EXACT_H
#define FRGI_GW_EXACT_H

#include "gw/gw_solver.h"

#pragma GCC visibility push(hidden)

/** The name of an option that asks for what the modes exact and landmark do not do; NULL: there is
 *  none. */
const char *frgi_exact_idle_option(const frg_gw_opts *o);
/** The loop of the modes exact and landmark: L(P) of the averaged plan, passes, until the change is
 *  < tol. */
FRG_MUST_USE frg_status frgi_exact_loop(frgi_level *l, bool landmark, frg_gw_reason *reason,
                                        int64_t *steps);

#pragma GCC visibility pop
#endif
