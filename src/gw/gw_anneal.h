/* gw_anneal.h - what the annealed start of the mode vertex reads dense plans with, per CPU level
 * (gw_anneal_cpu.c).
 *
 * In floats and units of log 2.  Rows are ld apart, a multiple of FRGI_ASSIGN_PAD; vectors of
 * columns are as long as a row, with zeros in the padding.
 */
#ifndef FRGI_GW_ANNEAL_H
#define FRGI_GW_ANNEAL_H

#include "gw/gw_assign.h"

#pragma GCC visibility push(hidden)

typedef struct {
    /** out_ij <- 2^(f_i + g_j - scale c_ij), at most 2^FRGI_ANNEAL_MOST. */
    void (*kernel)(const frgi_costs *c, const float *f, const float *g, float scale,
                   frgi_costs *out);
    /** u_i <- a_i / sum_j k_ij v_j, then v_j <- b_j / sum_i u_i k_ij; what has no mass stays as it
     *  is.  sums: ld floats. */
    void (*pass)(const frgi_costs *k, const float *a, const float *b, float *u, float *v,
                 float *sums);
} frgi_anneal_ops;

enum { FRGI_ANNEAL_MOST = 40 };

const frgi_anneal_ops *frgi_anneal_ops_of(const frg_context *ctx);

#pragma GCC visibility pop
#endif
