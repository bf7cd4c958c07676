/* gw_grad.h - what the ways through a plan share. */
#ifndef FRGI_GW_GRAD_H
#define FRGI_GW_GRAD_H

#include "core/core.h"
#include "gw/gw_plan.h"

#pragma GCC visibility push(hidden)

enum { FRGI_GRAD_CHUNKS = 8 };

/** out <- the sums (chunks x m) of all chunks, added by the tree of core/tree_sum.h. */
void frgi_sum_chunks(const double *sums, int64_t m, double *out);
/** Takes the mean over the entries of weight > 0 from them; the others become 0. */
void frgi_centre(double *x, const double *weight, int64_t n);

#pragma GCC visibility pop
#endif
