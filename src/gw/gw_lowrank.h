/* gw_lowrank.h - plans in factors. */
#ifndef FRGI_GW_LOWRANK_H
#define FRGI_GW_LOWRANK_H

#include "gw/gw_solver.h"

#pragma GCC visibility push(hidden)

/** P = Q diag(1/h) W',  Q 1 = a, W 1 = b, Q' 1 = W' 1 = h > 0. */
typedef struct {
    int64_t n, m, rank;
    double *q, *w, *h; /* n x rank, m x rank, rank */
    double *a;         /* n: borrowed weights */
    float *left;       /* n x rank: Q_ik / (h_k a_i) */
    float *right;      /* rank x ld: W' */
    int64_t ld;
} frgi_factored;

/** The outer loop on factors: anchors, linearised cost in factors, mirror steps; l's transport
 *  holds the plan at the end, made from the factors whenever rows are asked for, ready to be
 *  finished.  f is filled. */
FRG_MUST_USE frg_status frgi_lowrank_loop(frgi_level *l, frgi_factored *f, frg_gw_report *report);
/** q, w, h of f <- those of a dense plan: the one that l starts from, or that of groups of points,
 *  whose outer steps are added to *steps (gw_lowrank_start.c).  Positive: stopped, with factors. */
FRG_MUST_USE frg_status frgi_lowrank_groups(frgi_level *l, frgi_factored *f, int64_t *steps);
void frgi_factored_close(frgi_factored *f, frg_context *ctx);

#pragma GCC visibility pop
#endif
