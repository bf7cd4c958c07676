/* reg_cluster_space.h - the columns in which a cluster is left out or has its errors redrawn. */
#ifndef FRGI_REG_CLUSTER_SPACE_H
#define FRGI_REG_CLUSTER_SPACE_H

#include "regress/reg_vcov.h"

#pragma GCC visibility push(hidden)

/** Z = [X~ T~], T~ the dummies of the effects that clusters cut, demeaned by the others; Z'WZ =
 *  L L' with X~ and T~ orthogonal, Z- = Z L^-T. */
typedef struct {
    frgi_vcov_work *w;
    int64_t n, G;       /* rows, clusters */
    int k, K;           /* columns of X~, of Z */
    const double **z;   /* K: Z */
    double *dummies;    /* n x their number */
    double *orthogonal; /* n x K by rows: Z- */
    double *L;          /* K x K, block diagonal, lower */
    int64_t *start;     /* rows of cluster g: row[start[g] .. start[g + 1]) */
    int64_t *row;
    double *contrast; /* k x K: L^-1 c, c'b each coefficient as it is written */
} frgi_cluster_space;

/** Of the request's first variable.  E_UNSUPPORTED for slopes of an effect that is cut, E_TOO_BIG
 *  where the cut effects have too many levels.  frgi_cluster_space_close in any case. */
FRG_MUST_USE frg_status frgi_cluster_space_open(frgi_cluster_space *s, frgi_vcov_work *w);
void frgi_cluster_space_close(frgi_cluster_space *s);
/** C (K x K) <- Z-_g' W Z-_g, score (K) <- Z-_g' W e_g. */
void frgi_cluster_space_fill(const frgi_cluster_space *s, int64_t g, double *C, double *score);

#pragma GCC visibility pop
#endif
