/* oracle_soap.h - SOAP the slow and literal way: one parameter, loops, double precision.
 *
 * Bases are columns that are sorted and moved, second moments move with them, the first moment
 * lives in the basis and is taken out and put back around every refresh; QR by Gram-Schmidt twice
 * over, eigenvectors by Jacobi. Shares no code with the library, and none of its ways of storing
 * things.  Profiles, decay, Nesterov, KL, adaptive test, clipping as in the options struct. */
#ifndef FOURGE_ORACLE_SOAP_H
#define FOURGE_ORACLE_SOAP_H

#include "fourge/soap.h"

typedef struct {
    frg_soap_opts o;
    int axes;
    int64_t d[4], n;
    double *w, *m, *v;
    double *k[4], *q[4], *lambda[4]; /* NULL: the axis has no factor; by columns */
    double ridge;                    /* 0; refreshes by QR see K + ridge norm_F(K) I */
    int64_t t;
    int based, started;
} soap_oracle;

/** Axes longer than max_precond_dim, of length 1, and a single one without precondition_1d have no
 *  factor. */
soap_oracle *soap_oracle_create(const frg_soap_opts *o, int axes, const int64_t d[],
                                const double *w);
void soap_oracle_step(soap_oracle *s, const double *gradient);
void soap_oracle_destroy(soap_oracle *s);

#endif
